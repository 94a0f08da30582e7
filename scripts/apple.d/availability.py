"""Compares the APIs that the client kit uses with the lowest iOS and macOS that Package.swift names.

The compiler on Linux does not check Apple's versions. But the modules of the toolchain say since which versions their symbols
exist, and the index of a build says which symbols the sources use. Symbols that Linux's Foundation or a stand-in declares
without a version are in introduced.txt, with the versions of Apple's documentation.
"""

import json
import pathlib
import re
import sys

import index

# What the compiler takes for these versions, where the source has no reference: `for await` calls `next()` there.
IMPLICIT = {"next(isolation:)"}


def floors(manifest):
    text = manifest.read_text()
    found = {platform: int(version) for platform, version in re.findall(r"\.(macOS|iOS)\(\.v(\d+)\)", text)}
    if set(found) != {"macOS", "iOS"}:
        sys.exit("Package.swift does not name the lowest iOS and macOS")
    return found


def raised(file):
    """The versions that a file's own `@available` names: what is in it is for them."""
    found = re.search(r"^@available\(iOS (\d+), macOS (\d+), \*\)", pathlib.Path(file).read_text(), re.MULTILINE)
    return {"iOS": int(found[1]), "macOS": int(found[2])} if found else {}


def version(introduced):
    return (introduced.get("major", 0), introduced.get("minor", 0))


def availability(folder):
    """Since when each symbol exists, by its USR; and the module of each."""
    since, modules = {}, {}
    for file in sorted(folder.glob("*.symbols.json")):
        graph = json.loads(file.read_text())
        for symbol in graph["symbols"]:
            usr = symbol["identifier"]["precise"].split("::SYNTHESIZED::")[0]
            modules[usr] = graph["module"]["name"]
            for entry in symbol.get("availability", []):
                if entry.get("domain") in ("iOS", "macOS") and "introduced" in entry:
                    since.setdefault(usr, {})[entry["domain"]] = version(entry["introduced"])
    return since, modules


def documented(file):
    """The lines of introduced.txt: iOS, macOS, name."""
    names = {}
    for line in file.read_text().splitlines():
        if line and not line.startswith("#"):
            ios, macos, name = line.split(maxsplit=2)
            names[name] = {"iOS": version_of(ios), "macOS": version_of(macos)}
    return names


def version_of(text):
    major, _, minor = text.partition(".")
    return (int(major), int(minor or 0))


def main():
    manifest, graphs, store, table = map(pathlib.Path, sys.argv[1:5])
    lowest = floors(manifest)
    since, modules = availability(graphs)
    names, used, faults = documented(table), set(), set()
    count, files = 0, {}
    for file, line, usr, name, is_implicit in index.references(store, {"SalternClient", "Cryptography"}):
        # The index also has files of earlier builds.
        if is_implicit and name in IMPLICIT or not pathlib.Path(file).exists():
            continue
        where = f"{file[file.find('/Sources/') + 1:]}:{line}"
        count += 1
        versions = since.get(usr)
        if versions is None and modules.get(usr) in ("Foundation", "FoundationNetworking"):
            versions = names.get(name)
            used.add(name)
            if versions is None:
                faults.add(f"{name} ({where}) is not in {table.name}: add it with the versions of Apple's documentation")
        if file not in files:
            files[file] = lowest | raised(file)
        for platform, lowest_version in files[file].items():
            if versions and versions.get(platform, (0, 0)) > (lowest_version, 0):
                found = ".".join(map(str, versions[platform]))
                faults.add(f"{where}: {name} needs {platform} {found}, and Package.swift names {lowest_version}")
    faults |= {f"{table.name}: {name} is not used" for name in set(names) - used}
    if count < 10_000:
        sys.exit("the index is not that of the kit")
    print("\n".join(sorted(faults)) if faults else f"{count} references exist on iOS {lowest['iOS']} and macOS {lowest['macOS']}")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
