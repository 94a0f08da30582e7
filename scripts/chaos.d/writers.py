"""All who write while things break. A round in which few of them wrote, or one of them broke down, shows nothing."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from processes import wait_until
from writer import TROUBLE, Writer

from traffic.wire import Target, loopback, request

WRITERS = 8
# Of all of them, before something breaks and again afterwards. In half a second they do several times as many.
LEAST = 2 * WRITERS
# How long those may take to be acknowledged, and how long everybody may take to end.
PATIENCE = 300.0
LONGEST_LOOK = 900.0


class Writers:
    """From addresses in 127.BLOCK/16."""

    def __init__(self, target: Target, block: int):
        self.target = target
        self.block = block
        self.all = [Writer(target, loopback(block, number), number) for number in range(WRITERS)]
        self.complaints: list[str] = []

    @property
    def acknowledged(self) -> int:
        return sum(writer.acknowledged for writer in self.all)

    @property
    def lost(self) -> int:
        return sum(writer.lost for writer in self.all)

    @contextmanager
    def writing(self, seed: int, only_items: bool = False) -> Iterator[None]:
        over = threading.Event()
        threads = self.start(lambda writer: writer.write_until(over, seed, only_items), "writing")
        try:
            yield
        finally:
            over.set()
            self.join(threads, PATIENCE, "writing")

    def go_on(self, seconds: float) -> None:
        """Lets them write for so long, and until they are told of enough that was written."""
        before = self.acknowledged
        time.sleep(seconds)
        wait_until(PATIENCE, lambda: self.acknowledged >= before + LEAST, f"{LEAST} writes to be acknowledged")

    def look(self) -> None:
        """All at once. What is not answered is a complaint: nothing is broken now."""
        if not any(writer.accounts for writer in self.all):
            self.complaints.append("there is no account to look at")
        self.join(self.start(Writer.look, "looking"), LONGEST_LOOK, "looking")

    def take_complaints(self) -> list[str]:
        """Those of all, which are told once."""
        taken, self.complaints = self.complaints, []
        for writer in self.all:
            taken += writer.complaints
            writer.complaints = []
        return taken

    def are_served(self, patience: float, status: str | None = None) -> bool:
        """Whether the server is ready, with this word when there is one, and takes writes: a registration, and an item."""
        probe = Writer(self.target, loopback(self.block, 200), 200)
        probe.connection.patience = patience
        try:
            ready = probe.connection.exchange(request("GET", "/v1/health/ready"))
            if ready.status != 200 or status not in (None, ready.json["status"]):
                return False
            probe.register()
            if probe.acknowledged:
                probe.put(probe.accounts[0])
            return probe.acknowledged == 2
        except TROUBLE:
            return False
        finally:
            probe.connection.close()

    def start(self, act: Callable[[Writer], None], what: str) -> list[threading.Thread]:
        def guarded(writer: Writer) -> None:
            # Every error is reported: a thread that ends by an error does not end the others.
            try:
                act(writer)
            except Exception as error:
                writer.complaints.append(f"while {what}: {error!r}")

        threads = [threading.Thread(target=guarded, args=(writer,), daemon=True) for writer in self.all]
        for thread in threads:
            thread.start()
        return threads

    def join(self, threads: list[threading.Thread], seconds: float, what: str) -> None:
        deadline = time.monotonic() + seconds
        for thread in threads:
            thread.join(max(0, deadline - time.monotonic()))
        if hanging := sum(thread.is_alive() for thread in threads):
            self.complaints.append(f"{hanging} of {len(threads)} have not ended {what} after {seconds:.0f} s")
