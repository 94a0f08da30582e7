"""Tests of the checks of the public interface."""

import json
import pathlib
import tempfile
import unittest

import breaking
import symbols

KIT = "SalternClient"


class Breaking(unittest.TestCase):
    def compare(self, old: str, new: str) -> tuple[list[str], list[str]]:
        """Each line is `PATH | KIND | DECLARATION`, as in docs/api."""
        lists = []
        for text in (old, new):
            found: dict[tuple[str, str], set[str]] = {}
            for line in text.splitlines():
                path, kind, declaration = line.split(" | ", 2)
                found.setdefault((path, kind), set()).add(declaration)
            lists.append(found)
        return breaking.compare(*lists)

    def test_removed(self) -> None:
        broken, _ = self.compare("K.A | struct | struct A\nK.A.f() | method | func f()", "K.A | struct | struct A")
        self.assertEqual(broken, ["removed   K.A.f() (method)\n  was     func f()"])

    def test_changed(self) -> None:
        broken, _ = self.compare("K.A.f() | method | func f()", "K.A.f() | method | func f() throws")
        self.assertEqual(broken, ["changed   K.A.f()\n  from    func f()", "  to      func f() throws"])

    def test_conformance(self) -> None:
        broken, _ = self.compare("K.A | conformance | Hashable\nK.A | conformance | Sendable", "K.A | conformance | Sendable")
        self.assertEqual(broken, ["removed   K.A: Hashable"])

    def test_requirement(self) -> None:
        broken, _ = self.compare("K.P | protocol | protocol P", "K.P | protocol | protocol P\nK.P.f() | requirement | func f()")
        self.assertEqual(broken, ["required  K.P.f()\n  is      func f()"])

    def test_writable(self) -> None:
        for old, new in [("let a: Int", "var a: Int"), ("var a: Int { get }", "var a: Int { get set }")]:
            with self.subTest(old):
                self.assertEqual(self.compare(f"K.a | property | {old}", f"K.a | property | {new}"), ([], ["writable  K.a"]))
                self.assertEqual(len(self.compare(f"K.a | property | {new}", f"K.a | property | {old}")[0]), 2)

    def test_additions(self) -> None:
        broken, notes = self.compare("K.E | enum | enum E", "K.E | enum | enum E\nK.E.a | enum.case | case a\nK.B | struct | struct B")
        self.assertEqual((broken, notes), ([], ["new       K.B (struct)", "new case  K.E.a"]))


class DocComments(unittest.TestCase):
    def faults(self, *found: tuple[str, str, str]) -> list[str]:
        """Each symbol has a path, a kind and a doc comment."""
        graph: dict[str, object] = {"module": {"name": KIT}, "relationships": []}
        graph["symbols"] = [
            {
                "identifier": {"precise": path},
                "kind": {"identifier": f"swift.{kind}"},
                "names": {"title": path},
                "pathComponents": path.split("."),
                "declarationFragments": [],
                "location": {"uri": "file:///r/Sources/K/A.swift", "position": {"line": 0}},
                "docComment": {"lines": [{"text": line} for line in comment.splitlines()]},
            }
            for path, kind, comment in found
        ]
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "K.symbols.json").write_text(json.dumps(graph))
            (root / "page.md").write_text("# Page\n\n## Edit\n")
            faults = symbols.faults(symbols.Symbols(root), root)
            return [fault.removeprefix(f"Sources/K/A.swift:1: {KIT}.") for fault in faults]

    def test_without_comment(self) -> None:
        self.assertEqual(self.faults(("A", "struct", ""), ("A.hash(into:)", "method", "")), ["A has no doc comment"])

    def test_example_of_each_function(self) -> None:
        example = "Edits.\n```swift\nedit()\n```"
        found = self.faults(
            ("Vault", "class", example), ("Vault.a()", "method", "Edits."), ("Vault.b()", "method", example),
            ("Vault.c()", "method", 'Edits.\nExample: "Edit" in page.md.'), ("Vault.d", "property", "A value."),
        )
        self.assertEqual(found, ["Vault.a() (a()) has neither an example nor a link to one"])

    def test_example_at_the_type(self) -> None:
        bare = [("Retries", "struct", "Retries."), ("Retries.init()", "init", "Creates a rule.")]
        self.assertEqual(self.faults(*bare), ["Retries.init() (init()) has neither an example nor a link to one"])
        self.assertEqual(self.faults(("Retries", "struct", "Retries.\n```swift\nRetries()\n```"), bare[1]), [])

    def test_link_to_nothing(self) -> None:
        found = self.faults(("Vault.a()", "method", 'Edits.\nExample: "Delete" in page.md.'))
        self.assertEqual(found, ['Vault.a() refers to "Delete", which page.md does not have'])


if __name__ == "__main__":
    unittest.main()
