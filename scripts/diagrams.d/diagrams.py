"""Renders the Mermaid blocks of the documents as pictures, or checks the pictures.

diagrams.py REPOSITORY MERMAID [--all | --check | --png FOLDER]
"""

import base64
import dataclasses
import hashlib
import html
import json
import pathlib
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator

import markdown_it

MARK = re.compile(r"<!-- block ([0-9a-f]{64}), picture ([0-9a-f]{64}) -->\n")


@dataclasses.dataclass(frozen=True)
class Picture:
    name: str
    place: pathlib.Path
    source: str

    @property
    def is_current(self) -> bool:
        """Whether the file is what this program made of the block."""
        if not self.place.exists():
            return False
        text = self.place.read_text()
        mark = MARK.match(text)
        return mark is not None and (mark[1], mark[2]) == (digest(self.source), digest(text[mark.end() :]))

    def write(self, svg: str) -> None:
        svg = finished(svg)
        self.place.parent.mkdir(exist_ok=True)
        self.place.write_text(f"<!-- block {digest(self.source)}, picture {digest(svg)} -->\n{svg}")


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def finished(svg: str) -> str:
    """With a size, and a white ground for dark pages. The words of a line are kept apart in every viewer."""
    found = re.search(r'viewBox="([-0-9.]+) ([-0-9.]+) ([0-9.]+) ([0-9.]+)"', svg)
    if found is None:
        sys.exit("diagrams: a picture without a viewBox")
    left, top, width, height = (float(number) for number in found.groups())
    head, _, rest = svg.partition(">")
    head = re.sub(r' (?:style|width|height)="[^"]*"', "", head)
    ground = f'<rect x="{left:g}" y="{top:g}" width="{width:g}" height="{height:g}" fill="#ffffff"/>'
    rest = rest.replace("<text ", '<text xml:space="preserve" ')
    return f'{head} width="{width:.0f}" height="{height:.0f}">{ground}{rest}\n'


def blocks(document: pathlib.Path) -> list[str]:
    tokens = markdown_it.MarkdownIt("commonmark").parse(document.read_text())
    return [token.content for token in tokens if token.type == "fence" and token.info.strip() == "mermaid"]


def pictures(repository: pathlib.Path) -> list[Picture]:
    found: list[Picture] = []
    listed: dict[str, int] = {}
    for line in (pathlib.Path(__file__).parent / "pictures").read_text().splitlines():
        if line.startswith("#"):
            continue
        name, document, number = line.split()
        sources = blocks(repository / document)
        if not 0 < int(number) <= len(sources):
            sys.exit(f"diagrams: {document} has no Mermaid block {number}")
        found.append(Picture(name, repository / "docs/images" / f"{name}.svg", sources[int(number) - 1]))
        listed[document] = listed.get(document, 0) + 1
    for path in [*repository.glob("*.md"), *repository.glob("docs/**/*.md")]:
        document = path.relative_to(repository).as_posix()
        if len(blocks(path)) != listed.get(document, 0):
            sys.exit(f"diagrams: scripts/diagrams.d/pictures has not all Mermaid blocks of {document}")
    return found


def problems(repository: pathlib.Path) -> Iterator[str]:
    listed = pictures(repository)
    for picture in listed:
        if not picture.is_current:
            yield f"{picture.place.relative_to(repository)} is not what its block gives: scripts/diagrams"
    for path in (repository / "docs/images").iterdir():
        if path not in [picture.place for picture in listed]:
            yield f"{path.relative_to(repository)} is a picture of no block"


def chromium(*arguments: str) -> str:
    with tempfile.TemporaryDirectory(prefix="saltern-chromium-") as profile:
        command = ["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]
        command += ["--disable-background-networking", "--no-proxy-server", "--host-resolver-rules=MAP * ~NOTFOUND"]
        command += ["--allow-file-access-from-files", f"--user-data-dir={profile}", *arguments]
        result = subprocess.run(command, capture_output=True, text=True, timeout=180, check=True)
    return result.stdout


def render(wanted: list[Picture], mermaid: pathlib.Path) -> None:
    page = (pathlib.Path(__file__).parent / "page.html").read_text()
    sources = json.dumps({picture.name: picture.source for picture in wanted}).replace("<", "\\u003c")
    with tempfile.TemporaryDirectory() as folder:
        place = pathlib.Path(folder) / "page.html"
        place.write_text(page.replace("MERMAID", mermaid.as_uri()).replace("SOURCES", sources))
        dom = chromium("--virtual-time-budget=60000", "--dump-dom", place.as_uri())
    result = re.search(r'<pre id="result">([^<]+)</pre>', dom)
    if result is None:
        sys.exit("diagrams: Chromium rendered nothing")
    rendered = json.loads(base64.b64decode(html.unescape(result[1])))
    for picture in wanted:
        if not rendered[picture.name].startswith("<svg"):
            sys.exit(f"diagrams: {picture.name}: {rendered[picture.name]}")
        picture.write(rendered[picture.name])
        print(f"{picture.name}.svg")


def render_png(picture: Picture, folder: pathlib.Path) -> None:
    size = re.search(r' width="(\d+)" height="(\d+)"', picture.place.read_text())
    if size is None:
        sys.exit(f"diagrams: {picture.name} has no size")
    with tempfile.TemporaryDirectory() as work:
        page = pathlib.Path(work) / "page.html"
        page.write_text(f'<!doctype html><body style="margin:0"><img src="{picture.place.as_uri()}">')
        target = folder / f"{picture.name}.png"
        # A window is higher than its page.
        chromium("--hide-scrollbars", f"--window-size={size[1]},{int(size[2]) + 90}", f"--screenshot={target}", page.as_uri())


def main() -> None:
    repository, mermaid, options = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3:]
    if options == ["--check"]:
        found = list(problems(repository))
        if found:
            sys.exit("\n".join(found))
        return
    wanted = [picture for picture in pictures(repository) if options == ["--all"] or not picture.is_current]
    if wanted:
        render(wanted, mermaid)
    if options[:1] == ["--png"]:
        folder = pathlib.Path(options[1])
        folder.mkdir(exist_ok=True)
        for picture in pictures(repository):
            render_png(picture, folder)


if __name__ == "__main__":
    main()
