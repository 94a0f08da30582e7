"""Files of another device of the account whose names or contents would have a folder in sync write outside of itself."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from journey import Journey
from traffic.device import Device, snapshot

#: Titles of items in the folder's collection. FOLDER and OUTSIDE are replaced by paths.
TITLES = (
    "../escape", "../../escape", "a/../../escape", "a/../escape", "./dot", "..", ".", "OUTSIDE/escape",
    "//OUTSIDE/escape", "a//b", "a/", "", " ", "link/escape", "link/inner/escape", "link-file",
    "dangling", "dangling/x", ".saltern/folder", ".saltern/trash/x", ".SALTERN/folder", "a/.saltern/folder",
    "\u2024\u2024/escape", "..\\escape", "C:\\escape", "~/escape", "$HOME/escape", "con", "x" * 255, "x" * 256,
    "/".join(["d"] * 600), "/".join(["d" * 200] * 30), "new\nline", "tab\tname", "\x1b[2J", "\u202egnp.exe", "-rf",
    "inner", "inner/short/below", "short", "short/below/it", ".git/hooks/post-checkout", "e\u0301", "\u00e9",
    "\ufb01le", "file", "FILE", "loop/loop/loop/x", "fifo", "socket",
)  # fmt: skip


def make_traps(folder: Path, outside: Path) -> None:
    """Names in the folder that lead out of it."""
    (folder / "link").symlink_to(outside, target_is_directory=True)
    (folder / "link-file").symlink_to(outside / "file")
    (folder / "dangling").symlink_to(outside / "made-by-a-link")
    (folder / "loop").symlink_to(folder / "loop")
    os.mkfifo(folder / "fifo")


def judge_titles(journey: Journey, before: Callable[[], object] = lambda: None) -> list[str]:
    """What is wrong after a folder has taken all of them. `before` is called before it does."""
    journey.begin()
    phone = journey.phone
    assert phone is not None
    outside = journey.outside
    lines: list[dict[str, Any]] = [{"type": "documents", "version": 1}]
    for number, title in enumerate(TITLES):
        text = f"content {number}"
        document = {
            "type": "document", "id": f"00000000-0000-4000-8000-{number:012}", "collection": "files",
            "title": title.replace("OUTSIDE", str(outside)), "text": text,
            "properties": {"executable": "1", "modified": str(2**63 - 1 - number)},
        }  # fmt: skip
        lines.append(document)
    lines.append({"type": "end", "documents": len(TITLES)})
    file = journey.work / "titles.ndjson"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    journey.done(phone.run("import", str(file), "--json"), 0, 2)
    journey.done(phone.run("sync", "--json"), 0, 2)
    laptop = journey.device("laptop")
    try:
        journey.done(laptop.run("login", *journey.contact(journey.userid, "laptop", journey.relay.port)), 0, 2)
        make_traps(laptop.folder, outside)
        before()
        return _complaints(journey, laptop)
    finally:
        laptop.remove()
        journey.end()


def _complaints(journey: Journey, laptop: Device) -> list[str]:
    complaints = []
    before = snapshot(journey.outside)
    around = sorted(os.listdir(journey.work))
    for _ in range(3):
        outcome = laptop.run("sync", str(laptop.folder), "--json")
        if outcome.status not in (0, 2):
            complaints.append(str(outcome))
        if outcome.status == 2 and not outcome.json["warnings"]:
            complaints.append("no warning names what was left alone")
    if snapshot(journey.outside) != before:
        complaints.append("something outside of the folder is another than before")
    if sorted(os.listdir(journey.work)) != around:
        complaints.append("something was made beside the folder")
    if sorted(os.listdir(laptop.home)) != [".config", ".local", "files"]:
        complaints.append(f"something was made in the home: {os.listdir(laptop.home)}")
    for name in ("link", "link-file", "dangling", "loop"):
        if not (laptop.folder / name).is_symlink():
            complaints.append(f"the link {name} was replaced")
    if (laptop.folder / ".git/hooks/post-checkout").exists():
        complaints.append("a hidden executable file came unasked")
    marker = laptop.folder / ".saltern/folder"
    if not marker.is_file() or b"content" in marker.read_bytes():
        complaints.append("the folder's marker is another's file")
    if not (laptop.folder / "new\nline").is_file() or not (laptop.folder / "long").is_file():
        complaints.append("usable names did not arrive")
    return complaints
