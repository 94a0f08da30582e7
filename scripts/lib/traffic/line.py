"""A line between devices and a server on this machine: it counts bytes, and it can be slow, cut or silent.

How slow it is shows in the devices' clocks alone: for each byte that moves they are moved forward (`AHEAD` in hurry.c). So a
line of 4 kB/s needs no more time than another one, and what is judged does not depend on the machine.
"""

import asyncio
import mmap
import struct
import threading
from collections.abc import Callable
from pathlib import Path

PIECE = 4096
#: While the line is silent, the devices' clocks move on by a second in so many seconds.
TICK = 0.01


class LineClock:
    """The nanoseconds by which the clocks of devices are ahead, in a file that they read."""

    def __init__(self, file: Path):
        self.file = file
        file.write_bytes(bytes(8))
        with open(file, "r+b") as opened:
            self._map = mmap.mmap(opened.fileno(), 8)
        self.nanoseconds = 0

    def advance(self, seconds: float) -> None:
        self.nanoseconds += int(seconds * 1e9)
        self._map[:] = struct.pack("<q", self.nanoseconds)


class Line:
    """Carries connections, on a thread of its own. Bytes are counted when they are handed on."""

    def __init__(self, port: int, clock: LineClock | None = None):
        self.origin = port
        self.clock = clock
        #: Bytes a second of both directions together; 0 for any number.
        self.rate = 0
        self.sent = 0
        self.received = 0
        self.port = 0
        self._left = -1
        self._at_end: Callable[[], None] = lambda: None
        self._is_upward = True
        self._is_dead = False
        self._is_silent = False
        self._writers: set[asyncio.StreamWriter] = set()
        self._loop = asyncio.new_event_loop()
        self._whole = asyncio.Event()

    def start(self) -> "Line":
        ready = threading.Event()
        threading.Thread(target=self._serve, args=(ready,), daemon=True).start()
        if not ready.wait(60):
            raise RuntimeError("the line was not laid")
        return self

    def after(self, count: int, happens: Callable[[], None], *, is_upward: bool = True) -> None:
        """Calls `happens` on the line's thread once so many more bytes have moved in a direction."""
        self._left, self._at_end, self._is_upward = count, happens, is_upward

    def cut(self) -> None:
        """Ends all connections. For the line's thread, like the next two."""
        for writer in list(self._writers):
            writer.transport.abort()

    def break_down(self) -> None:
        """Ends all connections and takes none, until it is mended."""
        self._is_dead = True
        self.cut()

    def fall_silent(self) -> None:
        """Carries nothing, until it is mended."""
        self._is_silent = True
        self._whole.clear()

    def mend(self) -> None:
        """Carries everything again, on new connections."""
        done = threading.Event()

        def mend() -> None:
            self._left = -1
            self._is_dead = self._is_silent = False
            self.cut()
            self._whole.set()
            done.set()

        self._loop.call_soon_threadsafe(mend)
        if not done.wait(60):
            raise RuntimeError("the line was not mended")

    def _serve(self, ready: threading.Event) -> None:
        asyncio.set_event_loop(self._loop)
        self._whole.set()
        server = self._loop.run_until_complete(asyncio.start_server(self._carry, "127.0.0.1", 0, limit=PIECE))
        self.port = server.sockets[0].getsockname()[1]
        ticking = self._loop.create_task(self._tick())
        ready.set()
        self._loop.run_forever()
        ticking.cancel()

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(TICK)
            if self._is_silent and self.clock:
                self.clock.advance(1)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._is_dead:
            writer.transport.abort()
            return
        self._writers.add(writer)
        mine = {writer}
        try:
            server_reader, server_writer = await asyncio.open_connection("127.0.0.1", self.origin, limit=PIECE)
            mine.add(server_writer)
            self._writers.add(server_writer)
            if self._is_dead:
                return
            await asyncio.gather(self._pump(reader, server_writer, True), self._pump(server_reader, writer, False))
        except OSError:
            pass
        finally:
            self._writers -= mine
            for each in mine:
                each.transport.abort()

    async def _pump(self, source: asyncio.StreamReader, target: asyncio.StreamWriter, is_upward: bool) -> None:
        while data := await source.read(PIECE):
            await self._whole.wait()
            if target.transport.is_closing():
                raise ConnectionResetError("the line was cut")
            if self.rate and self.clock:
                self.clock.advance(len(data) / self.rate)
            if is_upward:
                self.sent += len(data)
            else:
                self.received += len(data)
            target.write(data)
            await target.drain()
            if is_upward == self._is_upward:
                self._note(len(data))
        if target.can_write_eof():
            target.write_eof()

    def _note(self, count: int) -> None:
        if self._left < 0:
            return
        self._left -= count
        if self._left <= 0:
            self._left = -1
            self._at_end()
