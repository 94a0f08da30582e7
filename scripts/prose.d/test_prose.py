"""Each check fails for a text that violates its rule, and passes what is right."""

import pathlib
import tempfile
import unittest

import blocks
import prose
import wording


def texts(source: str, is_history: bool = False) -> list[str]:
    return [problem for _, problem in prose.check_text(blocks.parse(source), is_history)]


def some_words(count: int) -> str:
    return " ".join(["word"] * count)


def some_sentences(count: int) -> str:
    """Each has ten words."""
    return "\n".join([f"A {some_words(9)}."] * count)


class Lengths(unittest.TestCase):
    def expect(self, source: str, *starts: str) -> None:
        found = texts(source)
        self.assertEqual(len(found), len(starts), found)
        for problem, start in zip(found, starts, strict=True):
            self.assertTrue(problem.startswith(start), problem)

    def test_paragraphs(self) -> None:
        self.expect(some_sentences(10))
        self.expect(some_sentences(10) + "\nOne.", "a paragraph of 101 words")

    def test_items_and_quotes_with_all_their_paragraphs(self) -> None:
        paragraph = some_sentences(6).replace("\n", " ")
        self.expect(f"- {paragraph}\n\n  {paragraph}\n", "a item of 120 words")
        self.expect(f"> {paragraph}\n>\n> {paragraph}\n", "a quote of 120 words")
        self.expect(f"- {paragraph}\n\n  - {paragraph}\n")

    def test_sentences(self) -> None:
        self.expect(f"A {some_words(34)}.\n")
        self.expect(f"A {some_words(35)}.\n", "a sentence of 36 words")
        self.expect(f"A {some_words(20)}. A {some_words(20)}.\n")
        self.expect(f"A {some_words(20)}, e.g. 12 {some_words(20)}.\n", "a sentence of 43 words")
        self.expect(f"A {some_words(20)} `a.b C` {some_words(20)}.\n", "a sentence of 43 words")

    def test_cells(self) -> None:
        self.expect(f"| A |\n|---|\n| {some_words(25)} |\n")
        self.expect(f"| A |\n|---|\n| {some_words(26)} |\n", "a cell of 26 words")
        self.expect(f"| {some_words(26)} |\n|---|\n| b |\n", "a cell of 26 words")

    def test_html(self) -> None:
        self.expect(f"<details>\n{some_words(36)}\n</details>\n", "a sentence of 36 words")
        self.expect(f"<!-- {some_words(101)} -->\n")

    def test_code_has_no_length(self) -> None:
        self.expect(f"```text\n{some_words(101)}\n```\n")


class Wording(unittest.TestCase):
    def expect(self, sentence: str, *found: str) -> None:
        self.assertEqual([word for word, _ in wording.avoided(sentence, False)], list(found), sentence)

    def test_each_avoided_word(self) -> None:
        for sentence, word in [
            ("Ask whoever has it.", "whoever"),
            ("Somebody's key.", "Somebody's"),
            ("It was someone else.", "someone"),
            ("Nobody reads it.", "Nobody"),
            ("It begins anew.", "anew"),
            ("It stays for ever.", "for ever"),
            ("The key of before.", "of before"),
            ("Nothing is done by halves.", "by halves"),
            ("It ends all the same.", "all the same"),
            ("The status for wrong words.", "wrong words"),
            ("It is his key.", "his"),
            ("He may.", "He"),
            ("The client is told so.", "is told"),
            ("This table says it.", "says"),
            ("It needs a look.", "a look"),
            ("The server does not know it.", "server does not know"),
            ("A client that knows it.", "client that knows"),
            ("That is 404.", "is 404"),
            ("All are the same 404.", "are the same 404"),
            ("It waits for its turn.", "its turn"),
            ("A bite of rows.", "bite"),
            ("A lane of its own.", "lane"),
            ("One of four leases.", "leases"),
            ("The rooms of the source.", "rooms"),
            ("Users may leave the account.", "leave the account"),
            ("Keys are stretched.", "stretched"),
            ("Time went back.", "Time went back"),
            ("It is no longer there.", "no longer"),
            ("It is not there any more.", "any more"),
            ("This was so before 0.9.", "before 0.9"),
        ]:
            self.expect(sentence, word)

    def test_what_only_resembles_them(self) -> None:
        for sentence in [
            "The other theory is there.",
            "Users know the password, and tell no one.",
            "The index looks up rows.",
            "In turn, each is tried.",
            "A file of 404 bytes.",
            "A limit is 500 ms.",
            "Nobody can read it.",
            "There is room for one.",
            "Leave the folder.",
        ]:
            self.expect(sentence)

    def test_history_belongs_to_the_change_log(self) -> None:
        self.assertEqual(texts("It is no longer there.", is_history=True), [])
        self.assertEqual(len(texts("It is told no longer.", is_history=True)), 1)

    def test_code_is_no_prose(self) -> None:
        self.assertEqual(texts("Set `SAYS=whoever` and `anew`.\n\n```sh\nsomebody says\n```\n"), [])
        self.assertEqual(len(texts("An unknown link is `404`.")), 1)
        self.assertEqual(len(texts("Then `saltern doctor` knows it.")), 1)

    def test_cells_and_headings_are_prose(self) -> None:
        self.assertEqual(len(texts("# For ever\n\n| A |\n|---|\n| anew |\n")), 2)

    def test_openings(self) -> None:
        for sentence in ["What it stores is sealed.", "Whether it fails is open.", "(Who may do it is fixed.)", "How it ends."]:
            self.assertEqual(len(texts(f"It is so. {sentence}")), 1, sentence)
        self.assertEqual(texts("Show it. What is it?"), [])
        self.assertEqual(texts("# How it compares\n\nIt is how it is."), [])
        self.assertEqual(len(texts("| What |\n|---|\n| What it has |\n")), 1)


class Files(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.repository = pathlib.Path(folder.name)

    def problems(self, files: dict[str, str], bounds: str = "9 99 *.md") -> list[str]:
        for name, text in files.items():
            path = self.repository / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return list(prose.Checker(self.repository, prose.limits(bounds)).check_all())

    def test_sizes(self) -> None:
        self.assertEqual(self.problems({"a.md": "# A\n\nb c\n"}, "3 4 a.md"), [])
        self.assertEqual(self.problems({}, "2 3 a.md"), ["a.md: 3 lines, at most 2", "a.md: 4 words, at most 3"])
        self.assertEqual(self.problems({"b.md": "A\n"}, "9 9 *.md\n4 *"), ["*: 5 words together, at most 4"])

    def test_every_document_has_limits_and_every_limit_a_document(self) -> None:
        self.assertEqual(
            self.problems({"new/a.md": "A\n"}, "9 9 b.md"),
            ["new/a.md: has no limits in scripts/prose.d/limits", "b.md: is missing"],
        )

    def test_folders_with_a_dot_are_built(self) -> None:
        self.assertEqual(self.problems({".build/a.md": "whoever\n", "a.md": "A\n"}), [])

    def test_headings(self) -> None:
        self.assertEqual(self.problems({"a.md": "# A\n\n## `b`!\n\n## B\n"}), ["a.md:5: a second heading: B"])

    def test_links(self) -> None:
        target = '# Plan\'s `x` — y_z\n\n<a id="own"></a>\n'
        good = "[a](b/c.md) [b](b/c.md#plans-x--y_z) [c](b/c.md#own) [d](#here) [e](b) [f](https://a.example/x#y)\n\n# Here\n"
        self.assertEqual(self.problems({"a.md": good, "b/c.md": target}), [])
        for link, problem in {
            "b/none.md": "does not exist",
            "b/c.md#none": "has no such anchor",
            "#none": "has no such anchor",
            "../a.md": "is outside of the repository",
            "/b/c.md": "is outside of the repository",
            "http://a.example": "neither relative nor https",
            "b#x": "an anchor in a file that is no document",
        }.items():
            self.assertEqual(self.problems({"a.md": f"A\n[a]({link})\n"}), [f"a.md:1: link {link}: {problem}"])
        self.assertEqual(self.problems({"a.md": "![a](none.svg)\n"}), ["a.md:1: link none.svg: does not exist"])
        self.assertIn("a broken link", self.problems({"a.md": "A [b][c].\n"})[0])

    def test_paths_of_the_map(self) -> None:
        table = "# A\n\n## {}\n\n| A |\n|---|\n| `{}` |\n\n## B\n\n`c/none.swift`\n"
        files = {"Sources/b/C.swift": "", "d.yaml": ""}
        bounds = "19 99 *.md"
        for path in ["b/C.swift", "b", "Sources/b", "d.yaml", "sync", "A.b"]:
            self.assertEqual(self.problems(files | {"ARCHITECTURE.md": table.format("Find the code", path)}, bounds), [])
        for path in ["b/D.swift", "C.swift", "none.yaml"]:
            document = table.format("Find the code", path)
            found = self.problems(files | {"ARCHITECTURE.md": document}, bounds)
            self.assertEqual(found, [f"ARCHITECTURE.md:7: path {path}: does not exist"])
            self.assertEqual(self.problems(files | {"ARCHITECTURE.md": document.replace("Find the", "Some")}, bounds), [])

    def test_code_blocks_name_their_language(self) -> None:
        self.assertEqual(
            self.problems({"a.md": "```\na\n```\n\n    b\n"}),
            ["a.md:1: a code block without a language", "a.md:5: a code block without a language"],
        )

    def test_widths(self) -> None:
        wide = "a" * 60 + " " + "b" * 60
        self.assertEqual(self.problems({"a.md": wide + "\n"}), ["a.md:1: a line of 121 columns, at most 120"])
        self.assertEqual(self.problems({"a.md": f"```sh\n{wide}\n```\n\n| a |\n|---|\n| {wide} |\n"}), [])

    def test_numbers_of_lines(self) -> None:
        found = self.problems({"a.md": "# A\n\n| a | b |\n|---|---|\n| c | anew |\n\n- d\n\n  anew\n"})
        self.assertEqual([problem.split(" ")[0] for problem in found], ["a.md:5:", "a.md:9:"])


if __name__ == "__main__":
    unittest.main()
