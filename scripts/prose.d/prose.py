"""Checks Markdown documents, and prints a line for each violation.

prose.py REPOSITORY [FILE…]     the documents named, or all of the repository and their sizes together
prose.py REPOSITORY --sizes     the lines and words of each document, and its limits
"""

import dataclasses
import fnmatch
import functools
import os
import pathlib
import re
import sys
from collections.abc import Iterator

import blocks
import wording

LONGEST_PARAGRAPH = 100
LONGEST_SENTENCE = 35
LONGEST_CELL = 25
WIDEST_LINE = 120
# The document and the heading of the tables whose paths begin at the repository or in its folder of sources.
MAP = ("ARCHITECTURE.md", "Find the code")
SOURCES = "Sources"


@dataclasses.dataclass(frozen=True)
class Limits:
    # The lines and words of each document that matches.
    each: list[tuple[int, int, str]]
    # The words of all that match.
    together: list[tuple[int, str]]

    def of(self, name: str) -> tuple[int, int] | None:
        return next(((lines, words) for lines, words, pattern in self.each if fnmatch.fnmatchcase(name, pattern)), None)


def limits(source: str) -> Limits:
    found = Limits([], [])
    for line in source.splitlines():
        if not line or line.startswith("#"):
            continue
        *numbers, pattern = line.split()
        if len(numbers) == 2:
            found.each.append((int(numbers[0]), int(numbers[1]), pattern))
        else:
            found.together.append((int(numbers[0]), pattern))
    return found


def documents(repository: pathlib.Path) -> list[str]:
    """All Markdown of the repository; what is built or installed is in folders with a dot."""
    found = []
    for folder, folders, files in os.walk(repository):
        folders[:] = [name for name in folders if not name.startswith(".")]
        found += [(pathlib.Path(folder) / name).relative_to(repository).as_posix() for name in files if name.endswith(".md")]
    return sorted(found)


class Checker:
    def __init__(self, repository: pathlib.Path, bounds: Limits) -> None:
        self.repository = repository
        self.limits = bounds
        self.parse = functools.cache(lambda path: blocks.parse(path.read_text()))

    def check_all(self) -> Iterator[str]:
        names = documents(self.repository)
        for name in names:
            yield from self.check(name)
        for _, _, pattern in self.limits.each:
            if not fnmatch.filter(names, pattern):
                yield f"{pattern}: is missing"
        for most, pattern in self.limits.together:
            count = sum(self.size(name)[1] for name in fnmatch.filter(names, pattern))
            if count > most:
                yield f"{pattern}: {count} words together, at most {most}"

    def check_named(self, files: list[str]) -> Iterator[str]:
        for file in files:
            path = pathlib.Path(file)
            if not path.is_file() or not path.is_relative_to(self.repository):
                sys.exit(f"prose: no document of the repository: {file}")
            yield from self.check(path.relative_to(self.repository).as_posix())

    def check(self, name: str) -> Iterator[str]:
        document = self.parse(self.repository / name)
        yield from self.check_size(name)
        found = [*check_form(document), *self.check_links(name, document), *self.check_map(name, document)]
        for line, problem in sorted(found):
            yield f"{name}:{line}: {problem}"
        for line, problem in check_text(document, name == "CHANGELOG.md"):
            yield f"{name}:{line}: {problem}"
        for number, text in enumerate((self.repository / name).read_text().splitlines(), 1):
            if len(text) > WIDEST_LINE and number not in document.wide_lines and not text.startswith("["):
                yield f"{name}:{number}: a line of {len(text)} columns, at most {WIDEST_LINE}"

    def size(self, name: str) -> tuple[int, int]:
        text = (self.repository / name).read_text()
        return text.count("\n"), len(text.split())

    def check_size(self, name: str) -> Iterator[str]:
        bounds = self.limits.of(name)
        if bounds is None:
            yield f"{name}: has no limits in scripts/prose.d/limits"
            return
        for count, most, what in zip(self.size(name), bounds, ("lines", "words"), strict=True):
            if count > most:
                yield f"{name}: {count} {what}, at most {most}"

    def check_links(self, name: str, document: blocks.Document) -> Iterator[tuple[int, str]]:
        for link in document.links:
            problem = self.problem_of(name, link.target, document)
            if problem:
                yield link.line, f"link {link.target}: {problem}"

    def check_map(self, name: str, document: blocks.Document) -> Iterator[tuple[int, str]]:
        for code in document.cell_code:
            is_path = "/" in code.text or pathlib.PurePosixPath(code.text).suffix in (".swift", ".md", ".yaml")
            if (name, code.heading) != MAP or not is_path:
                continue
            if not any((self.repository / folder / code.text).exists() for folder in ("", SOURCES)):
                yield code.line, f"path {code.text}: does not exist"

    def problem_of(self, name: str, target: str, document: blocks.Document) -> str | None:
        if re.match(r"[a-z][a-z0-9+.-]*:", target):
            return None if re.match(r"https://[^/\s]|mailto:|https?://localhost\b", target) else "neither relative nor https"
        path, _, anchor = target.partition("#")
        linked = document
        if path:
            place = pathlib.Path(os.path.normpath(self.repository / pathlib.PurePosixPath(name).parent / path))
            if path.startswith("/") or not place.is_relative_to(self.repository):
                return "is outside of the repository"
            if not place.exists():
                return "does not exist"
            if not anchor:
                return None
            if place.suffix != ".md":
                return "an anchor in a file that is no document"
            linked = self.parse(place)
        return None if anchor in linked.anchors else "has no such anchor"


def check_form(document: blocks.Document) -> Iterator[tuple[int, str]]:
    seen = set()
    for line, heading in document.headings:
        if blocks.slug(heading) in seen:
            yield line, f"a second heading: {heading}"
        seen.add(blocks.slug(heading))
    for line in document.nameless_code:
        yield line, "a code block without a language"


def check_text(document: blocks.Document, is_history: bool) -> Iterator[tuple[int, str]]:
    for block in document.blocks:
        count = wording.words(block.text)
        if block.kind in ("paragraph", "item", "quote") and count > LONGEST_PARAGRAPH:
            yield block.line, f"a {block.kind} of {count} words, at most {LONGEST_PARAGRAPH}: {excerpt(block.text)}"
        if block.kind in ("cell", "header") and count > LONGEST_CELL:
            yield block.line, f"a cell of {count} words, at most {LONGEST_CELL}: {excerpt(block.text)}"
        # Their paragraphs are checked by themselves.
        if block.kind in ("item", "quote"):
            continue
        for found, instead in wording.avoided(block.text, is_history):
            yield block.line, f"“{found}” ({instead})"
        if re.search(r"(?<!\w)/(?:home|root)/", block.text) or "](" in block.text or "][" in block.text:
            yield block.line, f"a path of one machine, or a broken link: {excerpt(block.text)}"
        for sentence in wording.sentences(block.text):
            yield from ((block.line, problem) for problem in check_sentence(sentence, block.kind))


def check_sentence(sentence: str, kind: str) -> Iterator[str]:
    count = wording.words(sentence)
    if count > LONGEST_SENTENCE:
        yield f"a sentence of {count} words, at most {LONGEST_SENTENCE}: {excerpt(sentence)}"
    if kind not in ("heading", "header") and wording.begins_with_clause(sentence):
        yield f"begins with a clause (name the thing): {excerpt(sentence)}"


def excerpt(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "…"


def print_sizes(checker: Checker) -> None:
    names = documents(checker.repository)
    for name in names:
        lines, words = checker.size(name)
        most = checker.limits.of(name)
        print(f"{lines:6} {words:6}  {name}" + (f" (at most {most[0]}, {most[1]})" if most else ""))
    for bound, pattern in checker.limits.together:
        print(f"{sum(checker.size(name)[1] for name in fnmatch.filter(names, pattern)):13}  {pattern} (at most {bound})")


def main() -> None:
    repository = pathlib.Path(sys.argv[1])
    checker = Checker(repository, limits((pathlib.Path(__file__).parent / "limits").read_text()))
    if sys.argv[2:] == ["--sizes"]:
        print_sizes(checker)
        return
    count = 0
    for problem in checker.check_named(sys.argv[2:]) if sys.argv[2:] else checker.check_all():
        count += 1
        print(problem)
    if count:
        sys.exit(f"prose: {count} violations")


if __name__ == "__main__":
    main()
