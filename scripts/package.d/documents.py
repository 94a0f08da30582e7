"""Copies the documents of the package, with the paths that they have in the repository.

documents.py REPOSITORY FOLDER

A link to a file that is not in the package becomes its text, and a Mermaid block its picture.
"""

import os
import pathlib
import re
import sys

# Folders end with a slash.
installed = ["SECURITY.md", "docs/command.md", "docs/admin/", "docs/security/", "docs/images/", "docs/observability/"]
link = re.compile(r"(?<!!)\[([^][]*)\]\(([^()# ]+)(#[^() ]*)?\)")

diagram = re.compile(r"^```mermaid\n.*?^```\n", re.MULTILINE | re.DOTALL)


def files(repository):
    for name in installed:
        place = repository / name
        if not name.endswith("/"):
            yield pathlib.PurePosixPath(name)
        else:
            for path in sorted(place.rglob("*")):
                if path.is_file():
                    yield pathlib.PurePosixPath(path.relative_to(repository).as_posix())


def target_of(document, path):
    """The file that a relative link names, from the repository on; nothing for other links."""
    if ":" in path:
        return None
    parts = []
    for part in (document.parent / path).parts:
        if part == ".." and parts:
            parts.pop()
        else:
            parts.append(part)
    return pathlib.PurePosixPath(*parts)


def without_absent_links(text, document, present):
    def replaced(found):
        target = target_of(document, found[2])
        return found[0] if target is None or target in present else found[1]

    return link.sub(replaced, text)


def pictures(repository, document):
    """The pictures of a document's Mermaid blocks, in their order."""
    lines = (repository / "scripts/diagrams.d/pictures").read_text().splitlines()
    listed = sorted(
        (int(number), name)
        for name, place, number in (line.split() for line in lines if line[0] != "#")
        if place == str(document)
    )
    return [name for _, name in listed]


def with_pictures(text, repository, document):
    names = iter(pictures(repository, document))

    def replaced(_):
        name = next(names)
        return f"![{name}]({os.path.relpath(f'docs/images/{name}.svg', document.parent)})\n"

    return diagram.sub(replaced, text)


def main():
    repository, folder = map(pathlib.Path, sys.argv[1:])
    present = set(files(repository))
    for name in sorted(present):
        content = (repository / name).read_bytes()
        if name.suffix == ".md":
            content = without_absent_links(with_pictures(content.decode(), repository, name), name, present).encode()
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
        place.chmod(0o644)


if __name__ == "__main__":
    main()
