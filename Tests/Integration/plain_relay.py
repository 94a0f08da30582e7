"""Takes connections without TLS and brings them to a server with it: plain_relay.py PORT CERTIFICATE.

Prints the port that it listens at, once it does, and ends with its standard input.

One thread: OpenSSL does not let one thread read from a connection while another writes to it.
"""

import asyncio
import ssl
import sys


async def pump(source, target):
    try:
        while data := await source.read(65536):
            target.write(data)
            await target.drain()
    except OSError:
        pass
    target.close()


async def main():
    port, certificate = int(sys.argv[1]), sys.argv[2]
    context = ssl.create_default_context(cafile=certificate)

    async def carry(reader, writer):
        try:
            server_reader, server_writer = await asyncio.open_connection(
                "127.0.0.1", port, ssl=context, server_hostname="localhost")
        except OSError:
            writer.close()
            return
        await asyncio.gather(pump(reader, server_writer), pump(server_reader, writer))

    server = await asyncio.start_server(carry, "127.0.0.1", 0)
    async with server:
        print(server.sockets[0].getsockname()[1], flush=True)
        await asyncio.to_thread(sys.stdin.read)


asyncio.run(main())
