"""The types of a Swift file, their members, and the links of doc comments to them."""

import dataclasses
import re
from collections.abc import Iterator

TYPE = re.compile(r"\b(struct|class|enum|actor|protocol|extension)\s+([A-Za-z_][\w.]*)")
MEMBER = re.compile(r"\b(func|var|let|case|init|subscript|typealias|associatedtype)\b[?!]?\s*(`?[^\s(<:=,]+`?)?")
ALIAS = re.compile(r"\btypealias\s+(\w+)\s*=\s*(?:any\s+|some\s+)?(?:\w+\.)*(\w+)")
MODIFIER = r"(?:public|package|internal|private|fileprivate|nonisolated|unowned|weak|lazy|final)"
STORED = re.compile(rf"^\s*(?:@\w+(?:\([^)]*\))?\s+)*(?:{MODIFIER}(?:\([^)]*\))?\s+)*(?:var|let)\s+\w+", re.MULTILINE)


@dataclasses.dataclass
class Type:
    """A type or an extension. `start` is its keyword, `open` and `end` are its braces; `header` is the text before these."""

    kind: str
    name: str
    start: int
    open: int
    end: int
    header: str
    # Each name, and for functions also with its argument labels.
    members: set[str] = dataclasses.field(default_factory=set)


@dataclasses.dataclass
class File:
    types: list[Type]
    # Those at the top level.
    top: list[Type]
    # The functions and variables at the top level.
    functions: set[str]
    # Names of types with the types that they stand for.
    aliases: dict[str, str]


def end_of_pair(code: str, at: int) -> int:
    """The offset of the brace or parenthesis that closes the one at `at`."""
    depth, pair = 0, "{}" if code[at] == "{" else "()"
    for mark in re.compile(f"[{pair}]").finditer(code, at):
        depth += 1 if mark[0] == pair[0] else -1
        if depth == 0:
            return mark.start()
    return len(code)


def shallow(code: str, start: int, end: int) -> str:
    """The code between two offsets with spaces in place of nested braces and their contents."""
    parts, at = [], start
    while (brace := code.find("{", at, end)) >= 0:
        close = min(end_of_pair(code, brace) + 1, end)
        parts += [code[at:brace], re.sub(r"[^\n]", " ", code[brace:close])]
        at = close
    return "".join([*parts, code[at:end]])


def parse(code: str) -> File:
    """Reads a file whose comments and literals are blank."""
    types = []
    for found in TYPE.finditer(code):
        before = code[code.rfind("\n", 0, found.start()) + 1 : found.start()]
        # `any class`, `.extension`, a class member, a name.
        if re.search(r"[.:(,=]\s*$", before) or found[2] in ("func", "var", "let"):
            continue
        opening = code.find("{", found.end())
        if opening < 0:
            continue
        end = end_of_pair(code, opening)
        types.append(
            Type(found[1], found[2].split(".")[-1], found.start(), opening, end, before + code[found.start() : opening])
        )
    for each in types:
        each.members = members(shallow(code, each.open + 1, each.end))
    for each in types:
        for nested in types:
            if each.open < nested.start < each.end and nested.kind != "extension":
                each.members.add(nested.name)
    top = [each for each in types if not any(other.open < each.start < other.end for other in types)]
    return File(types, top, members(shallow(code, 0, len(code))), dict(ALIAS.findall(code)))


def members(body: str) -> set[str]:
    found = set()
    for member in MEMBER.finditer(body):
        kind, name = member[1], (member[2] or "").strip("`")
        if kind in ("init", "subscript"):
            name = kind
        if kind == "case":
            found |= set(cases(body[member.start(2) if member[2] else member.end() :]))
            continue
        if not name:
            continue
        found.add(name)
        if kind in ("func", "init", "subscript"):
            found.add(name + labels(body, member.start()))
    return found


def cases(text: str) -> Iterator[str]:
    """The cases of one declaration, `a, b(Int)`, with and without labels."""
    at = 0
    while name := re.compile(r"\s*`?(\w+)`?").match(text, at):
        yield name[1]
        at = name.end()
        if text[at : at + 1] == "(":
            yield name[1] + labels(text, at, is_case=True)
            at = end_of_pair(text, at) + 1
        value = re.compile(r"[ ]*=[^,\n]*").match(text, at)
        at = value.end() if value else at
        comma = re.compile(r"\s*,").match(text, at)
        if not comma:
            return
        at = comma.end()


def labels(text: str, at: int, is_case: bool = False) -> str:
    """The argument labels of a declaration, as `(_:from:)`."""
    opening = text.find("(", at)
    if opening < 0:
        return "()"
    found = []
    for parameter in split(text[opening + 1 : end_of_pair(text, opening)]):
        name = re.match(r"\s*(?:@\w+(?:\([^)]*\))?\s+)*`?(\w+)`?(?:\s+`?\w+`?)?\s*:(?!:)", parameter)
        if name:
            found.append(name[1] + ":")
        elif parameter.strip():
            found.append("_:" if is_case else "")
    return f"({''.join(found)})"


def split(parameters: str) -> Iterator[str]:
    """The text between commas outside brackets."""
    depth, start = 0, 0
    text = parameters.replace("->", "  ")
    for at, character in enumerate(text):
        if character in "([{<":
            depth += 1
        elif character in ")]}>":
            depth -= 1
        elif character == "," and depth == 0:
            yield parameters[start:at]
            start = at + 1
    yield parameters[start:]


class Index:
    """All declarations of a repository, for links."""

    def __init__(self, files: list[File], modules: set[str]) -> None:
        self.modules = modules
        self.members: dict[str, set[str]] = {}
        self.inherited: dict[str, set[str]] = {}
        self.functions: set[str] = set()
        for file in files:
            self.functions |= file.functions
            for alias, name in file.aliases.items():
                self.members.setdefault(alias, set())
                self.inherited.setdefault(alias, set()).add(name)
            for each in file.types:
                self.members.setdefault(each.name, set()).update(each.members)
                heritage = each.header.partition(":")[2]
                self.inherited.setdefault(each.name, set()).update(re.findall(r"\w+", heritage))

    def has(self, owner: str, member: str) -> bool:
        owners = {owner, *self.inherited.get(owner, ())}
        return any(member in self.members.get(each, ()) for each in owners)

    def resolves(self, link: str, scopes: list[str]) -> bool:
        """`scopes`: the types around the comment, and the one that it describes."""
        # A suffix distinguishes overloads: `name-1a2b3`.
        first, *rest = [re.sub(r"-[\w.]+$", "", part) for part in link.split("/")]
        if first in self.modules:
            if not rest:
                return True
            first, *rest = rest
        if first in self.members:
            owner = first
        elif not any(self.has(scope, first) for scope in scopes):
            return not rest and first in self.functions
        else:
            return not rest
        for part in rest:
            if not self.has(owner, part):
                return False
            owner = part
        return True


LINK = re.compile(r"(?<!`)``([^`\n]+)``(?!`)")


def scopes(file: File, offset: int) -> list[str]:
    """The types around a comment, and the one that begins after it."""
    around = [each.name for each in file.types if each.open < offset < each.end]
    following = min((each for each in file.types if each.start > offset), key=lambda each: each.start, default=None)
    return around + ([following.name] if following else [])
