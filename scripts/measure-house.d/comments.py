"""Separates comments and string literals from the code of a Swift or C file."""

import dataclasses
import re
from collections.abc import Iterator


@dataclasses.dataclass(frozen=True)
class Comment:
    """One `//` or `/* */` comment. `is_trailing`: code precedes it on its line."""

    start: int
    end: int
    line: int
    is_doc: bool
    is_trailing: bool
    text: str


@dataclasses.dataclass(frozen=True)
class Block:
    """Comments on consecutive lines, which are one text. `lines` have no comment marks."""

    start: int
    line: int
    is_doc: bool
    is_trailing: bool
    lines: list[str]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)


MARK = re.compile(r'//|/\*|(#*)("""|")|[()]')
BLOCK_MARK = re.compile(r"/\*|\*/")
# The marks at the beginning of a comment's line.
MARGIN = re.compile(r"^\s*(?:///?|/\*\*?|\*/|\* ) ?")


class Scanner:
    """Reads a source once. `comments` and `literals` (start, end) are in its order."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.comments: list[Comment] = []
        self.literals: list[tuple[int, int]] = []
        self.line, self.counted = 1, 0
        self.read_code(0, is_interpolation=False)

    def read_code(self, at: int, is_interpolation: bool) -> int:
        """Reads to the end, or to the parenthesis that ends an interpolation, and returns the offset after it."""
        depth = 0
        while mark := MARK.search(self.source, at):
            at = mark.end()
            match mark[0]:
                case "//":
                    at = self.add_comment(mark.start(), self.end_of_line(at))
                case "/*":
                    at = self.add_comment(mark.start(), self.end_of_block(mark.start()))
                case "(":
                    depth += 1
                case ")" if depth == 0 and is_interpolation:
                    return at
                case ")":
                    depth -= 1
                case _:
                    at = self.end_of_string(at, mark[1], mark[2])
                    if not is_interpolation:
                        self.literals.append((mark.start(), at))
        return len(self.source)

    def end_of_line(self, at: int) -> int:
        end = self.source.find("\n", at)
        return len(self.source) if end < 0 else end

    def end_of_block(self, at: int) -> int:
        depth = 0
        for mark in BLOCK_MARK.finditer(self.source, at):
            depth += 1 if mark[0] == "/*" else -1
            if depth == 0:
                return mark.end()
        return len(self.source)

    def end_of_string(self, at: int, pounds: str, quotes: str) -> int:
        closing, escape = quotes + pounds, "\\" + pounds
        # A literal in one line ends there at the latest, so that a stray quote hides nothing else.
        marks = re.compile("|".join([re.escape(closing), re.escape(escape), *([] if len(quotes) == 3 else [r"\n"])]))
        while mark := marks.search(self.source, at):
            if mark[0] == closing:
                return mark.end()
            if mark[0] == "\n":
                return mark.start()
            after = mark.start() + len(escape)
            at = self.read_code(after + 1, is_interpolation=True) if self.source[after : after + 1] == "(" else after + 1
        return len(self.source)

    def add_comment(self, start: int, end: int) -> int:
        self.line += self.source.count("\n", self.counted, start)
        self.counted = start
        text = self.source[start:end]
        before = self.source[self.source.rfind("\n", 0, start) + 1 : start]
        is_doc = text.startswith(("///", "/**"))
        self.comments.append(Comment(start, end, self.line, is_doc, bool(before.strip()), text))
        return end


def blank(source: str, scanner: Scanner, literals: bool = True) -> str:
    """The source with spaces in place of comments and, by default, of string literals. All offsets stay."""
    spans = [(comment.start, comment.end) for comment in scanner.comments] + (scanner.literals if literals else [])
    parts, at = [], 0
    for start, end in sorted(spans):
        if start >= at:
            parts += [source[at:start], re.sub(r"[^\n]", " ", source[start:end])]
            at = end
    return "".join([*parts, source[at:]])


def blocks(comments: list[Comment]) -> Iterator[Block]:
    block: Block | None = None
    for comment in comments:
        lines = [MARGIN.sub("", line).removesuffix("*/").rstrip() for line in comment.text.splitlines()]
        follows = block is not None and not block.is_trailing and block.line + len(block.lines) == comment.line
        if block is not None and follows and not comment.is_trailing and block.is_doc == comment.is_doc:
            block.lines.extend(lines)
            continue
        if block is not None:
            yield block
        block = Block(comment.start, comment.line, comment.is_doc, comment.is_trailing, lines)
    if block is not None:
        yield block
