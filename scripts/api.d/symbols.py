"""Reads symbol graphs: lists what is public, and reports symbols without a doc comment.

The list has one line for each symbol and each conformance, so that a change of the interface is a change of the list.
"""

import argparse
import json
import pathlib
import re
import sys

KIT = "SalternClient"
# Members that a protocol of the standard library or of Foundation requires, and whose purpose it documents.
REQUIRED = re.compile(
    r"^(==\(|<\(|hash\(into:\)|hashValue$|encode\(to:\)|init\(from:\)|init\(rawValue:\)|rawValue$|RawValue$|description$"
    r"|debugDescription$|customMirror$|errorDescription$|makeAsyncIterator\(\)|next\(\)|next\(isolation:\)|Element$"
    r"|AsyncIterator$|AsyncSequence|init\(stringLiteral:\)|StringLiteralType|ExtendedGraphemeClusterLiteralType"
    r"|UnicodeScalarLiteralType|allCases$|AllCases$|withContiguousBytes\(_:\)$)"
)
# Types of which an app calls each function: each has an example, or names the section of a page that has one.
EXEMPLARY = {"Vault", "VaultCollection"}
# Other types that an app creates or calls: the example can also stand at the type.
ILLUSTRATED = {
    "AttachmentSource", "AttachmentStorage", "CollectionEntry", "CollectionModel", "CollectionOrder", "CurlTransport",
    "FileKeyStore", "FolderSettings", "FolderSync", "Identifier", "ItemSchema", "KeychainDeviceKeyStore", "Password",
    "PinnedServer", "RecoveryCode", "Retries", "SharedLink", "StretchingRule", "URLSessionTransport", "VaultEdits",
    "VaultModel", "VaultSettings",
}
# The kit or the standard library calls these, by a protocol.
CALLED_BY_KIT = re.compile(r"^(load\(\)|save\(_:\)|remove\(\)|send\(_:\)|stream\(_:\)|encode\(to:\)|init\(from:\))$")
CALLABLE = {"swift.method", "swift.type.method", "swift.init", "swift.subscript"}
EXAMPLE = re.compile(r'Examples?: "([^"]+)" in (\S+\.md)')
CONFORMANCES_OF_ALL = {"Copyable", "Escapable", "SendableMetatype", "Sendable", "BitwiseCopyable"}


class Symbols:
    """The public symbols of the modules in a folder."""

    def __init__(self, folder):
        self.symbols = {}
        self.relationships = []
        for file in sorted(pathlib.Path(folder).glob("*.symbols.json")):
            graph = json.loads(file.read_text())
            module = graph["module"]["name"]
            for symbol in graph["symbols"]:
                symbol["module"] = module
                self.symbols[symbol["identifier"]["precise"]] = symbol
            self.relationships += graph["relationships"]

    def own(self):
        """The symbols that stand in a source file; what the compiler adds does not."""
        for precise, symbol in self.symbols.items():
            if "::SYNTHESIZED::" in precise or symbol["kind"]["identifier"] == "swift.extension":
                continue
            if "location" in symbol:
                yield symbol


def path(symbol):
    return ".".join([symbol["module"], *symbol["pathComponents"]])


def declaration(symbol):
    return " ".join("".join(part["spelling"] for part in symbol["declarationFragments"]).split())


def listed_types(symbols):
    """The types of other modules that are in the kit's interface: of those alone the members are listed."""
    used = set()
    for symbol in symbols.own():
        if symbol["module"] == KIT:
            used |= {part.get("preciseIdentifier") for part in symbol["declarationFragments"]}
    others = {
        symbol["pathComponents"][0]
        for precise, symbol in symbols.symbols.items()
        if precise in used and symbol["module"] != KIT
    }
    return others


def lines(symbols):
    """The lines of the list."""
    listed, others = set(), listed_types(symbols)
    requirements = {r["source"] for r in symbols.relationships if r["kind"] == "requirementOf"}
    defaulted = {r["target"] for r in symbols.relationships if r["kind"] == "defaultImplementationOf"}
    for symbol in symbols.own():
        if symbol["module"] != KIT and symbol["pathComponents"][0] not in others:
            continue
        kind = symbol["kind"]["identifier"].removeprefix("swift.")
        if symbol["identifier"]["precise"] in requirements:
            kind = "requirement" if symbol["identifier"]["precise"] not in defaulted else "requirement with a default"
        listed.add(f"{path(symbol)} | {kind} | {declaration(symbol)}")
    for relation in symbols.relationships:
        source = symbols.symbols.get(relation["source"])
        if relation["kind"] != "conformsTo" or source is None or "location" not in source:
            continue
        if source["module"] != KIT and source["pathComponents"][0] not in others:
            continue
        target = symbols.symbols.get(relation["target"])
        name = target["pathComponents"][-1] if target else relation.get("targetFallback", "").split(".")[-1]
        if name and name not in CONFORMANCES_OF_ALL - {"Sendable"}:
            listed.add(f"{path(source)} | conformance | {name}")
    return listed


def comment(symbol):
    return "\n".join(line["text"] for line in symbol.get("docComment", {}).get("lines", []))


def place(symbol, root):
    file = symbol["location"]["uri"].removeprefix("file://")
    for part in ("/Sources/", "/Tests/"):
        if part in file:
            file = file[file.index(part) + 1 :]
    return f"{file}:{symbol['location']['position']['line'] + 1}"


def headings(root, page):
    file = root / page
    if not file.exists():
        return set()
    return {line.lstrip("#").strip() for line in file.read_text().splitlines() if line.startswith("#")}


def has_example(text):
    return "```swift" in text or EXAMPLE.search(text) is not None


def faults(symbols, root):
    """What is missing in doc comments."""
    illustrated = {".".join(symbol["pathComponents"]) for symbol in symbols.own() if has_example(comment(symbol))}
    for symbol in symbols.own():
        text, name = comment(symbol), symbol["names"]["title"].split(".")[-1]
        where = f"{place(symbol, root)}: {path(symbol)}"
        if not text.strip():
            if not REQUIRED.match(symbol["pathComponents"][-1]):
                yield f"{where} has no doc comment"
            continue
        for heading, page in EXAMPLE.findall(text):
            if heading not in headings(root, page):
                yield f'{where} refers to "{heading}", which {page} does not have'
        owner = symbol["pathComponents"][:-1]
        if len(owner) != 1 or symbol["kind"]["identifier"] not in CALLABLE or has_example(text):
            continue
        is_bare = owner[0] in ILLUSTRATED and owner[0] not in illustrated
        if owner[0] in EXEMPLARY or (is_bare and not CALLED_BY_KIT.match(symbol["pathComponents"][-1])):
            yield f"{where} ({name}) has neither an example nor a link to one"


def main():
    parser = argparse.ArgumentParser(prog="scripts/api")
    parser.add_argument("linux")
    parser.add_argument("--apple", help="symbol graphs of the kit on Apple's platforms")
    parser.add_argument("--lists", type=pathlib.Path, required=True)
    parser.add_argument("--documents", type=pathlib.Path, required=True)
    parser.add_argument("--update", action="store_true")
    arguments = parser.parse_args()
    linux = Symbols(arguments.linux)
    found = list(faults(linux, arguments.documents))
    lists = {"SalternClient.txt": lines(linux)}
    if len(lists["SalternClient.txt"]) < 500:
        sys.exit("the symbol graphs are not those of the kit")
    if arguments.apple:
        apple = Symbols(arguments.apple)
        found += [fault for fault in faults(apple, arguments.documents) if fault not in set(found)]
        lists["SalternClient-Apple.txt"] = lines(apple) - lists["SalternClient.txt"]
    for name, content in lists.items():
        file, text = arguments.lists / name, "".join(sorted(line + "\n" for line in content))
        if arguments.update:
            file.write_text(text)
        elif not file.exists() or file.read_text() != text:
            before = set(file.read_text().splitlines()) if file.exists() else set()
            found += [f"{name}: - {line}" for line in sorted(before - content)]
            found += [f"{name}: + {line}" for line in sorted(content - before)]
            found.append(f"docs/api/{name} is not what is public: scripts/api --update, and say in CHANGELOG.md what breaks")
    print("\n".join(found) if found else f"{sum(map(len, lists.values()))} public symbols and conformances")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
