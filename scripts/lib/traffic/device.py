"""A device of one account: runs saltern-client, and measures how long it takes and how much memory it has."""

import contextlib
import hashlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

#: The exit statuses that docs/command.md lists, but 64 (usage) and 130 (a signal), which no server can bring about.
DOCUMENTED = frozenset([0, 1, 2, 65, 66, 69, 73, 74, 75, 76, 77, 78])
#: Without an error object on standard error.
SILENT = frozenset([0, 2])


@dataclass(frozen=True)
class Outcome:
    """What a command has come to."""

    words: tuple[str, ...]
    status: int | None
    output: str
    errors: str
    seconds: float
    kilobytes: int

    @property
    def json(self) -> Any:
        return json.loads(self.output)

    @property
    def code(self) -> str | None:
        """The stable code of the failure."""
        for line in self.errors.splitlines():
            with contextlib.suppress(ValueError, KeyError, TypeError):
                return str(json.loads(line)["error"]["code"])
        return None

    def __str__(self) -> str:
        return f"{' '.join(self.words)}: status {self.status}, {self.errors.strip()[-400:]}"


class Device:
    """A home of its own. `keep` and `reset` take it back to an earlier state, with everything at the same place."""

    def __init__(self, client: str, home: Path, hurry_library: str = ""):
        self.client = client
        self.home = home
        self.folder = home / "files"
        self.kept = home.with_name(home.name + ".kept")
        self.hurry_library = hurry_library
        #: A file with what the clocks of hurry.c are ahead.
        self.ahead = ""
        self.process: subprocess.Popen[bytes] | None = None
        self.folder.mkdir(parents=True)

    def keep(self) -> None:
        shutil.rmtree(self.kept, ignore_errors=True)
        shutil.copytree(self.home, self.kept, symlinks=True)

    def reset(self) -> None:
        shutil.rmtree(self.home, ignore_errors=True)
        shutil.copytree(self.kept, self.home, symlinks=True)

    def remove(self) -> None:
        for path in (self.home, self.kept):
            shutil.rmtree(path, ignore_errors=True)

    def kill(self) -> None:
        """Ends the command that runs, on whichever thread, with SIGKILL."""
        if self.process:
            self.process.kill()

    def interrupt(self) -> None:
        """The same as Ctrl-C."""
        if self.process:
            self.process.send_signal(signal.SIGINT)

    def run(
        self,
        *words: str,
        given: bytes = b"",
        hurry: int = 1,
        limit: float = 240,
        interrupt: Callable[[], bool] | None = None,
        clock: str = "",
    ) -> Outcome:
        """Runs a command to its end; status None when it does not end within `limit` seconds. It is interrupted when
        `interrupt` returns true. The wall clock is what faketime makes of `clock`."""
        faked = ["faketime", "--exclude-monotonic", "-f", clock] if clock else []
        environment = {"HOME": str(self.home), "PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
        if hurry > 1 or self.ahead:
            environment |= {"LD_PRELOAD": self.hurry_library, "HURRY": str(hurry), "AHEAD": self.ahead}
        with tempfile.TemporaryFile() as source, tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
            source.write(given)
            source.seek(0)
            begin = time.monotonic()
            process = self.process = subprocess.Popen(
                [*faked, self.client, *words], env=environment, stdin=source, stdout=output, stderr=errors, cwd=self.home.parent
            )
            status, kilobytes = _wait(process, begin + limit, interrupt)
            self.process = None
            seconds = time.monotonic() - begin
            texts = []
            for file in (output, errors):
                file.seek(0)
                texts.append(file.read(4 << 20).decode("utf-8", "replace"))
        return Outcome(words, status, texts[0], texts[1], seconds, kilobytes)


def _wait(
    process: subprocess.Popen[bytes], end: float, interrupt: Callable[[], bool] | None
) -> tuple[int | None, int]:
    """The exit status, negative for a signal, and the greatest resident set."""
    pause = 0.002
    is_late = False
    kilobytes = 0
    while True:
        kilobytes = max(kilobytes, _resident(process.pid))
        if process.poll() is not None:
            return (None if is_late else process.returncode), kilobytes
        now = time.monotonic()
        if interrupt is not None and interrupt():
            process.send_signal(signal.SIGINT)
            interrupt = None
        if now > end and not is_late:
            is_late = True
            process.kill()
        time.sleep(pause)
        pause = min(pause * 1.5, 0.02)


def _resident(pid: int) -> int:
    """The greatest resident set of a process until now, in kilobytes; 0 when it has ended. What wait4 reports counts the memory of
    the process that started it, too."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/status", encoding="ascii") as file:
        for line in file:
            if line.startswith("VmHWM:"):
                return int(line.split()[1])
    return 0


def snapshot(folder: Path) -> dict[str, str]:
    """Everything in a folder: what it is, and of files the mode and a digest."""
    found = {}
    for place, folders, files in os.walk(folder):
        for name in [*folders, *files]:
            path = Path(place, name)
            if path.is_symlink():
                found[str(path)] = f"link to {path.readlink()}"
            elif path.is_dir():
                found[str(path)] = "folder"
            else:
                digest = hashlib.sha256(path.read_bytes()).hexdigest()
                found[str(path)] = f"{path.stat().st_mode:o} {digest}"
    return found
