"""Brings connections to a server on this machine, and cuts them all once the server has sent a number of bytes.

usage: cutting_relay.py PORT

Prints the port that it listens at. Each line of standard input is a new number of bytes, counted from then on; 0 is no limit. The
answer is a line with the bytes that the server has sent since the line before. It ends with its standard input.
"""

import asyncio
import sys


class Relay:
    def __init__(self, port: int) -> None:
        self.port = port
        self.limit = 0
        self.count = 0
        self.writers: set[asyncio.StreamWriter] = set()

    def is_cut(self) -> bool:
        return 0 < self.limit <= self.count

    async def pump(self, source, target, counts: bool) -> None:
        try:
            while not self.is_cut() and (data := await source.read(16384)):
                target.write(data)
                await target.drain()
                if counts:
                    self.count += len(data)
        except OSError:
            pass
        if self.is_cut():
            for writer in self.writers:
                writer.transport.abort()
        target.close()

    async def carry(self, reader, writer) -> None:
        if self.is_cut():
            writer.transport.abort()
            return
        server_reader, server_writer = await asyncio.open_connection("127.0.0.1", self.port)
        mine = {writer, server_writer}
        self.writers |= mine
        await asyncio.gather(
            self.pump(reader, server_writer, False), self.pump(server_reader, writer, True))
        self.writers -= mine


async def main() -> None:
    relay = Relay(int(sys.argv[1]))
    server = await asyncio.start_server(relay.carry, "127.0.0.1", 0)
    async with server:
        print(server.sockets[0].getsockname()[1], flush=True)
        while line := await asyncio.to_thread(sys.stdin.readline):
            print(relay.count, flush=True)
            relay.limit, relay.count = int(line), 0


asyncio.run(main())
