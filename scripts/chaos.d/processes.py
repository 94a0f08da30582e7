"""PostgreSQL and the server, and somebody who starts again what has ended, as systemd or docker would."""

import os
import resource
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

# Between the end of a process and its next start.
RESTART_PAUSE = 0.5


@dataclass
class Recipe:
    """How to run a program, and where what it says goes."""

    words: list[str]
    log: str
    environment: dict[str, str] = field(default_factory=dict)

    def start(self) -> "subprocess.Popen[bytes]":
        with open(self.log, "ab") as log:
            return subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", *self.words],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                cwd="/",
                env={**os.environ, **self.environment},
            )


class Supervised:
    """A program that is started again whenever it has ended."""

    def __init__(self, recipe: Recipe):
        self.recipe = recipe
        self.starts = 0
        self.is_over = threading.Event()
        self.process = recipe.start()
        self.thread = threading.Thread(target=self.look_after, daemon=True)
        self.thread.start()

    def look_after(self) -> None:
        while not self.is_over.is_set():
            self.process.wait()
            if self.is_over.wait(RESTART_PAUSE):
                return
            self.starts += 1
            self.process = self.recipe.start()

    @property
    def pid(self) -> int:
        return self.process.pid

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def restart(self, environment: dict[str, str]) -> None:
        """A clean end, and a start with other variables."""
        self.recipe.environment = environment
        before = self.starts
        self.send(signal.SIGTERM)
        self.wait_for_start(before)

    def wait_for_start(self, starts: int) -> None:
        """Until it was started more often than so."""
        wait_until(180, lambda: self.starts > starts, "the program to start again")

    def end(self, number: signal.Signals) -> None:
        self.is_over.set()
        self.send(number)
        try:
            self.process.wait(120)
        except subprocess.TimeoutExpired:
            self.process.kill()


def family(pid: int) -> list[int]:
    """A process and its children."""
    found = [pid]
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", encoding="ascii", errors="replace") as file:
                if int(file.read().rpartition(")")[2].split()[1]) == pid:
                    found.append(int(name))
        except (FileNotFoundError, ProcessLookupError):
            pass
    return found


def signal_all(pids: list[int], number: signal.Signals) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass


def limit_descriptors(pid: int, soft: int) -> int:
    """Sets the soft limit of a running process. What it was."""
    before, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (soft, hard))
    return before


def wait_until(seconds: float, condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {seconds:.0f} s for {what}")
        time.sleep(0.05)
