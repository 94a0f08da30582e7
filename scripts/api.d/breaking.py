"""Compares the public interface of the client kit at two commits, by the lists in docs/api.

Breaking are removed and changed symbols, removed conformances, and new requirements of protocols without a default. New cases
of enums are noted, because they break a `switch` without `default`. A property that becomes writable is noted, too.
"""

import argparse
import collections
import re
import subprocess
import sys

LISTS = ["docs/api/SalternClient.txt", "docs/api/SalternClient-Apple.txt"]


def listed(commit):
    """The symbols at a commit: declarations by path and kind. Without a commit, of the folder as it is."""
    found = collections.defaultdict(set)
    for name in LISTS:
        if commit is None:
            with open(name) as file:
                text = file.read()
        else:
            run = subprocess.run(["git", "show", f"{commit}:{name}"], capture_output=True, text=True)
            if run.returncode != 0:
                sys.exit(f"scripts/api: {commit} has no {name}")
            text = run.stdout
        for line in text.splitlines():
            path, kind, declaration = line.split(" | ", 2)
            found[path, kind].add(declaration)
    return found


def writable(declaration):
    """The declaration of a property, once it can be set."""
    return re.sub(r"\blet ", "var ", declaration.replace(" { get }", ""))


def compare(old, new):
    """Returns the breaking changes, and those that are worth a note."""
    breaking, notes = [], []
    for key in sorted(old.keys() | new.keys()):
        (path, kind), before, after = key, old.get(key, set()), new.get(key, set())
        gone, come = sorted(before - after), sorted(after - before)
        if kind.endswith("property") and [writable(name) for name in gone] == [name.replace(" { get set }", "") for name in come]:
            notes += [f"writable  {path}" for _ in come]
            continue
        if kind == "conformance":
            breaking += [f"removed   {path}: {name}" for name in gone]
        elif gone and come:
            breaking += [f"changed   {path}\n  from    {a}" for a in gone] + [f"  to      {b}" for b in come]
        elif gone:
            breaking += [f"removed   {path} ({kind})\n  was     {a}" for a in gone]
        elif come and kind == "requirement" and any(path.rsplit(".", 1)[0] == other for other, _ in old):
            breaking += [f"required  {path}\n  is      {b}" for b in come]
        elif come and kind == "enum.case" and any(path.rsplit(".", 1)[0] == other for other, _ in old):
            notes += [f"new case  {path}" for _ in come]
        elif come:
            notes += [f"new       {path} ({kind})" for _ in come]
    return breaking, notes


def main():
    parser = argparse.ArgumentParser(prog="scripts/api")
    parser.add_argument("old")
    parser.add_argument("new", nargs="?")
    arguments = parser.parse_args()
    breaking, notes = compare(listed(arguments.old), listed(arguments.new))
    for line in breaking + notes:
        print(line)
    if breaking:
        sys.exit("breaking changes: they need a new major version, or before 1.0 a new minor one")
    print("no breaking change")


if __name__ == "__main__":
    main()
