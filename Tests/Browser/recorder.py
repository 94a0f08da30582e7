"""A TLS proxy between browser and server which writes down every byte that the browser sends."""

import asyncio
import base64
import datetime
import hashlib
import ipaddress
import os
import ssl
import threading

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


class Recorder:
    """Ends the browser's TLS with a key of its own, and speaks TLS to the server, whose certificate it checks."""

    def __init__(self, host, port, certificate, folder):
        self.upstream = (host, port)
        self.to_server = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self.to_server.load_verify_locations(cafile=certificate)
        self.to_browser = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.pin = self.make_identity(folder)
        self.streams = []
        self.port = None
        ready = threading.Event()
        threading.Thread(target=asyncio.run, args=(self.serve(ready),), daemon=True).start()
        ready.wait()
        self.origin = f"https://localhost:{self.port}"

    def make_identity(self, folder):
        """A self-signed certificate for this run; its pin in base64."""
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
        now = datetime.datetime.now(datetime.timezone.utc)
        names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
        certificate = (
            x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
            .serial_number(x509.random_serial_number()).not_valid_before(now - datetime.timedelta(days=1))
            .not_valid_after(now + datetime.timedelta(days=1))
            .add_extension(x509.SubjectAlternativeName(names), critical=False).sign(key, hashes.SHA256())
        )
        path = os.path.join(folder, "recorder.pem")
        with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as file:
            file.write(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
                                         serialization.NoEncryption()))
            file.write(certificate.public_bytes(serialization.Encoding.PEM))
        self.to_browser.load_cert_chain(path)
        public = key.public_key().public_bytes(serialization.Encoding.DER,
                                               serialization.PublicFormat.SubjectPublicKeyInfo)
        return base64.b64encode(hashlib.sha256(public).digest()).decode()

    async def serve(self, ready):
        server = await asyncio.start_server(self.connect, "127.0.0.1", 0, ssl=self.to_browser)
        self.port = server.sockets[0].getsockname()[1]
        ready.set()
        await server.serve_forever()

    async def connect(self, reader, writer):
        stream = bytearray()
        self.streams.append(stream)
        try:
            host, port = self.upstream
            server_reader, server_writer = await asyncio.open_connection(
                host, port, ssl=self.to_server, server_hostname="localhost")
            await asyncio.gather(
                self.pump(reader, server_writer, stream), self.pump(server_reader, writer, bytearray()))
        except OSError:
            # The browser is free to close connections whenever it likes.
            writer.close()

    async def pump(self, reader, writer, stream):
        try:
            while data := await reader.read(1 << 16):
                stream += data
                writer.write(data)
                await writer.drain()
        finally:
            writer.close()

    def forget(self):
        """What was sent so far is of no interest."""
        for stream in list(self.streams):
            stream.clear()

    def sent(self):
        """Every byte that the browser has sent, connection by connection."""
        return b"\n".join(bytes(stream) for stream in list(self.streams))

    def request_lines(self):
        """The first line of every request. None has a body: the page sends GET and HEAD."""
        heads = [head for stream in list(self.streams) for head in bytes(stream).split(b"\r\n\r\n") if head]
        return [head.split(b"\r\n")[0].decode() for head in heads]
