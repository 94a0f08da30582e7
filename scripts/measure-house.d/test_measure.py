"""Each measurement finds what its row counts, and nothing that only resembles it."""

import contextlib
import io
import pathlib
import tempfile
import unittest

import comments
import declarations
import measure
import wording


def texts(source: str) -> list[str]:
    return [block.text for block in comments.blocks(comments.Scanner(source).comments)]


class Comments(unittest.TestCase):
    def test_consecutive_lines_are_one_text(self) -> None:
        self.assertEqual(texts("/// A\n/// b.\nlet c = 1 // D\n// e\n/// F\n"), ["A\nb.", "D", "e", "F"])
        self.assertEqual(texts("/* A\n * b */ let c = 1\n"), ["A\nb"])

    def test_strings_are_no_comments(self) -> None:
        for literal in ['"//"', '"\\"//"', '#"\\"//"#', '"""\n//\n"""', '"\\(f("//") + ")//")"', '#"\\#(f("//"))"#']:
            self.assertEqual(texts(f"let a = {literal}"), [], literal)
            self.assertEqual(texts(f"let a = {literal} // B"), ["B"], literal)

    def test_blank_keeps_offsets(self) -> None:
        source = 'let a = "b" // c\nlet d = """\n e\n """\n'
        blanked = comments.blank(source, comments.Scanner(source))
        self.assertEqual(blanked, "let a =" + " " * 9 + "\nlet d =    \n  \n    \n")


class Wording(unittest.TestCase):
    def test_openings(self) -> None:
        for opening in ["What", "Whether", "How", "Who", "Whoever", "Where", "When", "Whose", "Of", "That"]:
            self.assertTrue(wording.opens_with_clause(["", f"{opening} it is."]), opening)
        self.assertFalse(wording.opens_with_clause(["Returns", "what it is."]))
        self.assertFalse(wording.opens_with_clause(["Offset of it."]))

    def test_pronouns_are_for_people(self) -> None:
        for text in ["Whoever asks.", "It waits for\nsomebody.", "the one who asks", "Nobody waits.", "his lane", "he has it"]:
            self.assertEqual(len(list(wording.pronouns(text.split("\n")))), 1, text)
        for text in [
            "a user who asks",
            "a caller with a session who asks",
            "users of it who ask",
            "anyone\nwho has it",
            "Nobody can read it.",
            "the whole",
        ]:
            self.assertEqual(list(wording.pronouns(text.split("\n"))), [], text)
        self.assertEqual(list(wording.pronouns(["A b", "c whoever"])), [(1, "whoever")])

    def test_words(self) -> None:
        for text in ["is told 429", "Tells it."]:
            self.assertEqual(len(list(wording.words(wording.TELLING, [text]))), 1, text)
        for text in [
            "says so",
            "for\never",
            "begins anew",
            "its turn",
            "a party",
            "in vain",
            "buries it",
            "the news",
            "it knows",
        ]:
            self.assertEqual(len(list(wording.words(wording.OTHERS, text.split("\n")))), 1, text)
        for text in ["the server which does not\nlook", "looks at it"]:
            self.assertEqual(len(list(wording.words(wording.OTHERS, text.split("\n")))), 1, text)
        for text in ["a third party", "it looks up rows", "users know it", "in turn", "turns it on", "half", "partial"]:
            self.assertEqual(list(wording.words(wording.OTHERS, [text])), [], text)

    def test_code_has_no_wording(self) -> None:
        lines = ["See `party` and ``a/b`` of `c", "d` it.", "```swift", "whoever", "```", "e"]
        self.assertEqual(wording.prose(lines), ["See ¤ and ¤ of ¤", " it.", "", "", "", "e"])
        self.assertEqual(wording.prose(["- Parameter party: A", "  - told: b"]), ["- ¤: A", "- ¤: b"])

    def test_long_sentences(self) -> None:
        words = ["word"] * 35
        self.assertEqual(list(wording.long_sentences([" ".join(words) + ". A."])), [])
        self.assertEqual(list(wording.long_sentences(["A b.", " ".join(["A", *words])])), [(1, "36 words")])
        self.assertEqual(list(wording.long_sentences([" ".join(words[:20]), "- " + " ".join(words[:20])])), [])


class Declarations(unittest.TestCase):
    def parse(self, source: str) -> declarations.File:
        return declarations.parse(comments.blank(source, comments.Scanner(source)))

    def test_types_and_members(self) -> None:
        file = self.parse(
            """
            public struct A<B>: C where B: D {
                let e: Int, f = 1
                enum G { case h, i(Int, j: Int), k = 2; }
                init?(_ l: (Int, Int) -> Void, m n: [String: Int] = [:]) { let o = 1 }
                func p<Q>(r s: Q) async throws(T) {}
                class func u() {}
                subscript(v: Int) -> Int { 0 }
            }
            extension W.X: Y {}
            func z(_ a: Int) {}
            typealias AB = any N.AC
            """
        )
        self.assertEqual([(each.kind, each.name) for each in file.types], [("struct", "A"), ("enum", "G"), ("extension", "X")])
        self.assertEqual([each.name for each in file.top], ["A", "X"])
        expected = {"e", "G", "init", "init(_:m:)", "p", "p(r:)", "u", "u()", "subscript", "subscript(v:)"}
        self.assertEqual(file.types[0].members, expected)
        self.assertEqual(file.types[1].members, {"h", "i", "i(_:j:)", "k"})
        self.assertEqual(file.functions, {"z", "z(_:)", "AB"})
        self.assertEqual(file.aliases, {"AB": "AC"})

    def test_links(self) -> None:
        file = self.parse(
            "struct A: B { func c(d: Int) {} \n struct E { var f = 1 } }\nprotocol B { func g() }\ntypealias H = A\nfunc i() {}"
        )
        index = declarations.Index([file], {"Module"})
        for link in ["A", "A/c(d:)", "A/c", "A/E/f", "A/g()", "H/c(d:)", "Module", "Module/A/c(d:)", "i()", "A/c(d:)-1a2b"]:
            self.assertTrue(index.resolves(link, []), link)
        for link in ["J", "A/j", "A/c()", "A/c(e:)", "A/f", "c(d:)", "f"]:
            self.assertFalse(index.resolves(link, []), link)
        for link in ["c(d:)", "E", "g()"]:
            self.assertTrue(index.resolves(link, ["A"]), link)

    def test_scopes(self) -> None:
        source = "/// 1\nstruct A {\n /// 2\n var b = 1\n}\n"
        file = self.parse(source)
        self.assertEqual(declarations.scopes(file, source.index("1")), ["A"])
        self.assertEqual(declarations.scopes(file, source.index("2")), ["A"])


class Rows(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.repository = pathlib.Path(folder.name)
        for name in ["docs/decisions", "Sources"]:
            (self.repository / name).mkdir(parents=True)
        self.write("ARCHITECTURE.md", "a\nb\n")

    def write(self, name: str, text: str) -> None:
        path = self.repository / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def rows(self) -> dict[str, measure.Row]:
        return {each.name: each for each in measure.House(self.repository).rows()}

    def findings(self, row: str) -> list[str]:
        return [str(finding) for finding in self.rows()[row].findings]

    def test_numbers_of_files(self) -> None:
        for name, lines in [("A", 10), ("B", 39), ("C", 40)]:
            self.write(f"Sources/M/{name}.swift", "\n" * lines)
        self.write("docs/decisions/0001-a.md", "")
        self.write("docs/decisions/README.md", "")
        rows = self.rows()
        for name, value in {
            "swift-files": 3,
            "median-lines": 39,
            "short-files": 2,
            "architecture-lines": 2,
            "decision-records": 1,
        }.items():
            self.assertEqual(rows[name].value, value, name)

    def test_reasons_of_short_files(self) -> None:
        self.write("Sources/M/A.swift", "public struct A {}\n")
        self.write("Sources/M/B.swift", "package final class B {}\n")
        self.write("Sources/M/C.swift", "struct C { public struct D {} }\n")
        self.write("Sources/M/E.swift", "public extension E { struct F {} }\n")
        self.write("Sources/M/Apple/G.swift", "struct G {}\n")
        self.write("Sources/M/H+OpenSSL.swift", "extension H {}\n")
        self.write("Sources/M/I.swift", "// I\n#if os(Linux)\nstruct I {}\n#endif\n")
        found = [finding.file for finding in self.rows()["short-files-without-reason"].findings]
        self.assertEqual(found, ["Sources/M/C.swift", "Sources/M/E.swift"])

    def test_split_types(self) -> None:
        self.write("Sources/M/A+B.swift", "extension A: B { func c() {} }\n")
        self.write("Sources/M/A+C.swift", "extension A: C {}\nextension A { func d() {} }\n")
        self.write("Sources/M/A+Apple.swift", "extension A { func e() {} }\n")
        self.write("Sources/M/A+F.swift", "extension A where B: C { func f() {} }\n")
        self.assertEqual(
            [finding.file for finding in self.rows()["split-types"].findings], ["Sources/M/A+C.swift", "Sources/M/A+F.swift"]
        )

    def test_paths(self) -> None:
        self.write("Sources/M/A.swift", "")
        self.write("scripts/measure-house.d/paths/log-in", "# B\nSources/M/A.swift\nSources/M/A.swift\n")
        self.assertEqual(self.rows()["path-log-in"].value, 1)
        self.write("scripts/measure-house.d/paths/log-in", "Sources/M/B.swift\n")
        with self.assertRaisesRegex(SystemExit, "no such file: Sources/M/B.swift"):
            self.rows()

    def test_detached_closures(self) -> None:
        lines = [
            "a = { [weak b] in try await b?.c() }",
            "a = { [weak b] () async throws(E) in c() }",
            "a = { [b,\n c = d] (e: [F]) in\n await f { [g] in g() } }",
            "a = { [weak b] in b?.c() }",
            "let a = Task(name: n) { [weak b] in await b?.c() }",
            "group.addTask { [b] in await b.c() }",
            "let a = { b in await [c].d(b) }",
            "// { [weak b] in await c() }",
        ]
        self.write("Sources/SalternClient/A.swift", "\n".join(lines) + "\n")
        self.write("Sources/M/A.swift", lines[0])
        self.assertEqual([finding.line for finding in self.rows()["detached-closures"].findings], [1, 2, 3])

    def test_comments(self) -> None:
        self.write("Sources/M/A.swift", "/// A.\nstruct A {\n    /// Whether it is ``B``.\n    var b = 1 // told\n}\n")
        self.write("Sources/N/n.h", "// A\n// b whoever\n" + "//" + " a" * 60 + "\n")
        self.assertEqual(self.findings("clause-openings"), ["Sources/M/A.swift:3: Whether it is ``B``."])
        self.assertEqual(self.findings("unresolved-links"), ["Sources/M/A.swift:3: ``B``"])
        self.assertEqual(self.findings("told-and-tells"), ["Sources/M/A.swift:4: told"])
        self.assertEqual(self.findings("pronouns-of-people"), ["Sources/N/n.h:2: whoever"])
        self.assertEqual(self.findings("wide-comments"), ["Sources/N/n.h:3: 122 columns"])
        wide = " a" * 60
        self.write("Sources/M/B.swift", f"/// ```\n///{wide}\n/// ```\n///{wide}\nlet b = 1\n")
        self.assertEqual(self.findings("wide-comments")[0], "Sources/M/B.swift:4: 123 columns")

    def test_vault(self) -> None:
        self.write(
            "Sources/M/Vault.swift",
            "public actor Vault {\n let a = 1\n private var b: Int? { didSet { c() } }\n static let d = 1\n"
            " var e: Int { 1 }\n func f() { let g = 1 }\n}\n",
        )
        self.write("Sources/M/Vault+A.swift", "struct B { func c() {} }\nextension Vault {\n func g() {}\n}\n")
        rows = self.rows()
        self.assertEqual([rows[f"vault-{name}"].value for name in ["lines", "functions", "stored-properties"]], [11, 2, 2])
        self.assertEqual(self.findings("vault-stored-properties")[1], "Sources/M/Vault.swift:3: private var b")

    def test_limits(self) -> None:
        bounds = measure.limits("# A\n\na 0 2\nb 9 5\n")

        def report(a: int, b: int) -> tuple[bool, str, str]:
            rows = [measure.Row("a", a), measure.Row("b", b, is_minimum=True)]
            output, errors = io.StringIO(), io.StringIO()
            with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
                return measure.report(rows, bounds), output.getvalue(), errors.getvalue()

        self.assertEqual(report(2, 5)[0], True)
        self.assertEqual(report(3, 5)[::2], (False, "measure-house: a is 3, at most 2\n"))
        self.assertEqual(report(2, 4)[::2], (False, "measure-house: b is 4, at least 5\n"))
        self.assertIn("the limit of a can be 1", report(1, 5)[1])
        self.assertNotIn("the limit of", report(2, 5)[1])


if __name__ == "__main__":
    unittest.main()
