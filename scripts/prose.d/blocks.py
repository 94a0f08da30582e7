"""The text of a Markdown document: its paragraphs, headings and cells, its links and anchors."""

import dataclasses
import re
import urllib.parse

import markdown_it
import markdown_it.token

Token = markdown_it.token.Token

# Stands for a word of code: it has no grammar.
CODE = "¤"


@dataclasses.dataclass(frozen=True)
class Block:
    """Text that is read in one piece. `kind` is paragraph, item, quote, heading, header or cell."""

    kind: str
    line: int
    text: str


@dataclasses.dataclass(frozen=True)
class Link:
    line: int
    target: str


@dataclasses.dataclass(frozen=True)
class Code:
    """A code span in a cell of a table, with the heading above it."""

    line: int
    heading: str
    text: str


@dataclasses.dataclass
class Document:
    # Of these, an item or a quote repeats the paragraphs inside.
    blocks: list[Block] = dataclasses.field(default_factory=list)
    links: list[Link] = dataclasses.field(default_factory=list)
    cell_code: list[Code] = dataclasses.field(default_factory=list)
    # Each heading with its line, as it is printed.
    headings: list[tuple[int, str]] = dataclasses.field(default_factory=list)
    anchors: set[str] = dataclasses.field(default_factory=set)
    # Lines of code blocks without a language.
    nameless_code: list[int] = dataclasses.field(default_factory=list)
    # Numbers of the lines of code and tables, which may be wide.
    wide_lines: set[int] = dataclasses.field(default_factory=set)


def parse(source: str) -> Document:
    reader = Reader()
    for token in markdown_it.MarkdownIt("commonmark").enable("table").parse(source):
        reader.read(token)
    return reader.document


def slug(heading: str) -> str:
    """The anchor that GitHub gives to a heading."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def without_code(code: str) -> str:
    """Code in a sentence: a placeholder for each word. A status stays, because the wording of statuses has a rule."""
    return code if re.fullmatch(r"\d{3}", code) else " ".join(CODE for _ in code.split())


class Reader:
    def __init__(self) -> None:
        self.document = Document()
        self.line = 0
        # The open items and quotes, each with its paragraphs so far.
        self.containers: list[Container] = []
        self.kind = "paragraph"
        self.slugs: dict[str, int] = {}

    def read(self, token: Token) -> None:
        if token.map is not None:
            self.line = token.map[0] + 1
        match token.type:
            case "list_item_open" | "blockquote_open":
                kind = "item" if token.type == "list_item_open" else "quote"
                self.containers.append(Container(kind, self.line))
            case "list_item_close" | "blockquote_close":
                self.close_container()
            case "heading_open":
                self.kind = "heading"
            case "th_open":
                self.kind = "header"
            case "td_open":
                self.kind = "cell"
            case "heading_close" | "th_close" | "td_close":
                self.kind = "paragraph"
            case "table_open":
                self.mark_wide(token)
            case "fence" | "code_block":
                self.mark_wide(token)
                if not token.info.strip():
                    self.document.nameless_code.append(self.line)
            case "html_block":
                self.read_html(token.content)
            case "inline":
                self.read_inline(token)

    def mark_wide(self, token: Token) -> None:
        if token.map is not None:
            self.document.wide_lines.update(range(token.map[0] + 1, token.map[1] + 1))

    def close_container(self) -> None:
        closed = self.containers.pop()
        if closed.texts:
            self.document.blocks.append(Block(closed.kind, closed.line, "\n".join(closed.texts)))

    def read_html(self, source: str) -> None:
        self.find_anchors(source)
        text = re.sub(r"<[^>]*>", " ", re.sub(r"<!--.*?-->", " ", source, flags=re.DOTALL)).strip()
        if text:
            self.add(Block("paragraph", self.line, " ".join(text.split())))

    def read_inline(self, token: Token) -> None:
        words, printed = [], []
        for child in token.children or []:
            match child.type:
                case "text":
                    words.append(child.content)
                    printed.append(child.content)
                case "code_inline":
                    words.append(without_code(child.content))
                    printed.append(child.content)
                    if self.kind == "cell":
                        heading = self.document.headings[-1][1] if self.document.headings else ""
                        self.document.cell_code.append(Code(self.line, heading, child.content))
                case "softbreak" | "hardbreak":
                    words.append(" ")
                    printed.append(" ")
                case "html_inline":
                    self.find_anchors(child.content)
                    words.append(" " if child.content.startswith("<br") else "")
                case "link_open":
                    self.add_link(child, "href")
                case "image":
                    self.add_link(child, "src")
                    self.add(Block("cell", self.line, child.content))
        text = "".join(words).strip()
        if self.kind == "heading":
            self.add_heading("".join(printed))
        if text:
            self.add(Block(self.kind, self.line, text))

    def add(self, block: Block) -> None:
        self.document.blocks.append(block)
        if block.kind == "paragraph" and self.containers:
            self.containers[-1].texts.append(block.text)

    def add_link(self, token: Token, attribute: str) -> None:
        self.document.links.append(Link(self.line, urllib.parse.unquote(str(token.attrs[attribute]))))

    def add_heading(self, heading: str) -> None:
        self.document.headings.append((self.line, heading))
        anchor = slug(heading)
        count = self.slugs.get(anchor, 0)
        self.slugs[anchor] = count + 1
        self.document.anchors.add(f"{anchor}-{count}" if count else anchor)

    def find_anchors(self, html: str) -> None:
        self.document.anchors.update(re.findall(r"\b(?:id|name)=[\"']([^\"']+)[\"']", html))


@dataclasses.dataclass
class Container:
    kind: str
    line: int
    texts: list[str] = dataclasses.field(default_factory=list)
