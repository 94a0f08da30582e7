"""Takes connections without TLS and brings them to a server with it: plain_relay.py PORT CERTIFICATE.

Prints the port that it listens at, once it does, and ends with its standard input.
"""

import socket
import ssl
import sys
import threading


def pump(source, target):
    try:
        while data := source.recv(65536):
            target.sendall(data)
    except OSError:
        pass
    for end in (source, target):
        try:
            end.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


def carry(client, port, context):
    server = context.wrap_socket(socket.create_connection(("127.0.0.1", port)), server_hostname="localhost")
    threading.Thread(target=pump, args=(client, server), daemon=True).start()
    pump(server, client)


def accept(listener, port, context):
    while True:
        client, _ = listener.accept()
        threading.Thread(target=carry, args=(client, port, context), daemon=True).start()


def main():
    port, certificate = int(sys.argv[1]), sys.argv[2]
    context = ssl.create_default_context(cafile=certificate)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=accept, args=(listener, port, context), daemon=True).start()
        print(listener.getsockname()[1], flush=True)
        sys.stdin.read()


main()
