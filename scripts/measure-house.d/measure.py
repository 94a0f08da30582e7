"""Measures the structure and the comments of the sources, and compares the values with limits.

measure.py REPOSITORY             a line for each row: value, limit, target; status 1 if a value exceeds its limit
measure.py REPOSITORY --list [ROW…]    the findings of all rows, or of these, as FILE:LINE: TEXT
"""

import dataclasses
import functools
import pathlib
import re
import statistics
import sys
from collections.abc import Callable, Iterator

import comments
import declarations
import wording

SHORT = 40
# Folders and suffixes of the half of a type that one platform has.
PLATFORMS = {"Apple", "Linux", "OpenSSL", "Curl"}

# The begin of a closure with a capture list.
CAPTURES = re.compile(r"\{\s*(?:@\w+\s+)?\[[A-Za-z_][^\]]*\][^{}]*?\bin\b")


@dataclasses.dataclass(frozen=True)
class Finding:
    file: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.text}"


@dataclasses.dataclass(frozen=True)
class Row:
    name: str
    value: int
    findings: list[Finding] = dataclasses.field(default_factory=list)
    is_minimum: bool = False


@dataclasses.dataclass(frozen=True)
class Limit:
    target: int
    allowed: int


def limits(source: str) -> dict[str, Limit]:
    found = {}
    for line in source.splitlines():
        if line and not line.startswith("#"):
            name, target, allowed = line.split()
            found[name] = Limit(int(target), int(allowed))
    return found


@dataclasses.dataclass(frozen=True)
class Source:
    """A file of Sources. `code` has spaces in place of comments and literals."""

    name: str
    text: str
    code: str
    blocks: list[comments.Block]
    file: declarations.File | None

    @property
    def lines(self) -> int:
        return self.text.count("\n")

    @property
    def is_platform_half(self) -> bool:
        path = pathlib.PurePosixPath(self.name)
        if PLATFORMS & set(path.parts) or path.stem.partition("+")[2] in PLATFORMS:
            return True
        return re.fullmatch(r"\s*#if\b.*?#endif\s*", self.code, re.DOTALL) is not None


class House:
    def __init__(self, repository: pathlib.Path) -> None:
        self.repository = repository
        paths = sorted(path for path in (repository / "Sources").rglob("*") if path.suffix in (".swift", ".h", ".c"))
        self.all = [read(repository, path) for path in paths]
        self.swift = [source for source in self.all if source.name.endswith(".swift")]
        self.index = declarations.Index(
            [source.file for source in self.swift if source.file is not None],
            {path.name for path in (repository / "Sources").iterdir() if path.is_dir()},
        )

    def rows(self) -> Iterator[Row]:
        lengths = [source.lines for source in self.swift]
        yield Row("swift-files", len(self.swift))
        yield Row("median-lines", round(statistics.median(lengths)) if lengths else 0, is_minimum=True)
        short = [source for source in self.swift if source.lines < SHORT]
        yield row("short-files", (Finding(source.name, 1, f"{source.lines} lines") for source in short))
        yield row(
            "short-files-without-reason",
            (
                Finding(source.name, 1, f"{source.lines} lines, neither a public type nor the half of a platform")
                for source in short
                if not source.is_platform_half and not declares_public_type(source)
            ),
        )
        yield row(
            "split-types",
            (
                Finding(source.name, 1, "extends a type of another file with more than conformances")
                for source in self.swift
                if "+" in pathlib.PurePosixPath(source.name).stem
                and not source.is_platform_half
                and not has_only_conformances(source)
            ),
        )
        for path in sorted((self.repository / "scripts/measure-house.d/paths").glob("*")):
            yield self.path(path)
        yield row("detached-closures", (finding for source in self.swift for finding in detached_closures(source)))
        yield from self.comment_rows()
        yield from self.vault()
        yield Row("architecture-lines", (self.repository / "ARCHITECTURE.md").read_text().count("\n"))
        yield Row("decision-records", len(list((self.repository / "docs/decisions").glob("[0-9]*.md"))))

    def path(self, path: pathlib.Path) -> Row:
        """The number of files in a list. A file that does not exist is an error."""
        names = [line for line in path.read_text().splitlines() if line and not line.startswith("#")]
        for name in names:
            if not (self.repository / name).is_file():
                sys.exit(f"measure-house: {path.relative_to(self.repository)}: no such file: {name}")
        return row(f"path-{path.name}", (Finding(name, 1, "is on the path") for name in dict.fromkeys(names)))

    def comment_rows(self) -> Iterator[Row]:
        yield row("clause-openings", self.each_block(clause_openings))
        yield row("pronouns-of-people", self.each_block(prose(wording.pronouns)))
        yield row("told-and-tells", self.each_block(prose(functools.partial(wording.words, wording.TELLING))))
        yield row("avoided-words", self.each_block(prose(functools.partial(wording.words, wording.OTHERS))))
        yield row("long-sentences", self.each_block(prose(wording.long_sentences)))
        yield row("wide-comments", (finding for source in self.all for finding in wide_lines(source)))
        yield row("unresolved-links", (finding for source in self.swift for finding in self.unresolved(source)))

    def each_block(self, check: Callable[[comments.Block], Iterator[tuple[int, str]]]) -> Iterator[Finding]:
        for source in self.all:
            for block in source.blocks:
                for line, text in check(block):
                    yield Finding(source.name, block.line + line, text)

    def unresolved(self, source: Source) -> Iterator[Finding]:
        for block in source.blocks:
            if not block.is_doc or source.file is None:
                continue
            for number, line in enumerate(block.lines):
                for link in declarations.LINK.finditer(line):
                    if not self.index.resolves(link[1], declarations.scopes(source.file, block.start)):
                        yield Finding(source.name, block.line + number, link[0])

    def vault(self) -> Iterator[Row]:
        """The files that declare or extend `Vault`: their lines, its functions and its stored properties."""
        parts = [
            (source, each)
            for source in self.swift
            if source.file is not None
            for each in source.file.types
            if each.name == "Vault" and each.kind in ("actor", "class", "struct", "extension")
        ]
        sources = {source.name: source for source, _ in parts}
        bodies = [(source, each, declarations.shallow(source.code, each.open + 1, each.end)) for source, each in parts]
        found = [Finding(source.name, 1, f"{source.lines} lines with a part of Vault") for source in sources.values()]
        yield Row("vault-lines", sum(source.lines for source in sources.values()), found)
        yield Row("vault-functions", sum(len(re.findall(r"\bfunc\b", body)) for _, _, body in bodies))
        yield row(
            "vault-stored-properties",
            (
                Finding(source.name, line_of(source.text, each.open + 1 + found.end()), found[0].strip())
                for source, each, body in bodies
                if each.kind != "extension"
                for found in stored_properties(source.code, each, body)
            ),
        )


def prose(check: Callable[[list[str]], Iterator[tuple[int, str]]]) -> Callable[[comments.Block], Iterator[tuple[int, str]]]:
    """A check of blocks from a check of lines without code."""
    return lambda block: check(wording.prose(block.lines))


def row(name: str, findings: Iterator[Finding]) -> Row:
    found = list(findings)
    return Row(name, len(found), found)


def read(repository: pathlib.Path, path: pathlib.Path) -> Source:
    text = path.read_text()
    scanner = comments.Scanner(text)
    code = comments.blank(text, scanner)
    file = declarations.parse(code) if path.suffix == ".swift" else None
    name = path.relative_to(repository).as_posix()
    return Source(name, text, code, list(comments.blocks(scanner.comments)), file)


def detached_closures(source: Source) -> Iterator[Finding]:
    """Async closures of the kit with a capture list, but for the bodies of tasks.

    The compiler runs them outside of their caller's actor: WeakReference of the kit says more.
    """
    if not source.name.startswith(("Sources/SalternClient/", "Sources/VaultLog/")):
        return
    for found in CAPTURES.finditer(source.code):
        is_task = re.search(r"\b(?:Task|Task\.detached|addTask)\s*(?:\([^()]*\))?\s*$", source.code[: found.start()])
        body = source.code[found.start() : declarations.end_of_pair(source.code, found.start())]
        if not is_task and re.search(r"\b(?:async|await)\b", body):
            yield Finding(source.name, line_of(source.text, found.start()), found[0])


def declares_public_type(source: Source) -> bool:
    """`package` types are the interface of a module of the package."""
    types = source.file.top if source.file is not None else []
    return any(each.kind != "extension" and re.search(r"\b(?:public|package|open)\b", each.header) for each in types)


def has_only_conformances(source: Source) -> bool:
    types = source.file.top if source.file is not None else []
    return bool(types) and all(each.kind == "extension" and ":" in each.header.partition(" where ")[0] for each in types)


def stored_properties(code: str, each: declarations.Type, body: str) -> Iterator[re.Match[str]]:
    for found in declarations.STORED.finditer(body):
        if re.search(r"\bstatic\b", found[0]):
            continue
        rest = code[each.open + 1 + found.end() : each.end]
        # A computed property has braces without an initial value, and no observers in them.
        if re.match(r"[^={\n]*\{", rest) is None or re.match(r"[^={\n]*\{\s*(?:didSet|willSet)\b", rest) is not None:
            yield found


def line_of(text: str, offset: int) -> int:
    return text.count("\n", 0, offset) + 1


def clause_openings(block: comments.Block) -> Iterator[tuple[int, str]]:
    if block.is_doc and wording.opens_with_clause(block.lines):
        yield 0, next(line for line in block.lines if line.strip())


def wide_lines(source: Source) -> Iterator[Finding]:
    """Lines of comments, without those of code blocks."""
    lines = source.text.splitlines()
    for block in source.blocks:
        code = wording.code_lines(block.lines)
        for number in (block.line + offset for offset in range(len(block.lines)) if offset not in code):
            width = len(lines[number - 1])
            # An address cannot be broken.
            if width > wording.WIDEST_LINE and not re.search(r"https?://\S{60}", lines[number - 1]):
                yield Finding(source.name, number, f"{width} columns")


def report(rows: list[Row], bounds: dict[str, Limit]) -> bool:
    """Prints the rows. Returns whether all are within their limits."""
    is_right = True
    print(f"{'row':28} {'value':>6} {'limit':>6} {'target':>6}")
    for each in rows:
        bound = bounds[each.name]
        print(f"{each.name:28} {each.value:6} {bound.allowed:6} {bound.target:6}")
        excess = bound.allowed - each.value if each.is_minimum else each.value - bound.allowed
        if excess > 0:
            is_right = False
            side = "at least" if each.is_minimum else "at most"
            more = f" (scripts/measure-house --list {each.name})" if each.findings else ""
            print(f"measure-house: {each.name} is {each.value}, {side} {bound.allowed}{more}", file=sys.stderr)
        elif excess < 0 and bound.allowed != bound.target:
            print(f"  the limit of {each.name} can be {each.value}: scripts/measure-house.d/limits")
    return is_right


def main() -> None:
    repository = pathlib.Path(sys.argv[1])
    rows = list(House(repository).rows())
    if sys.argv[2:3] == ["--list"]:
        chosen = sys.argv[3:] or [each.name for each in rows]
        for name in chosen:
            if name not in [each.name for each in rows]:
                sys.exit(f"measure-house: no such row: {name}")
        for each in rows:
            for finding in each.findings if each.name in chosen else []:
                print(f"{finding} ({each.name})" if len(chosen) > 1 else finding)
        return
    bounds = limits((pathlib.Path(__file__).parent / "limits").read_text())
    names = {each.name for each in rows}
    if names != set(bounds):
        sys.exit(f"measure-house: rows and limits differ: {', '.join(sorted(names ^ set(bounds)))}")
    if not report(rows, bounds):
        sys.exit(1)


if __name__ == "__main__":
    main()
