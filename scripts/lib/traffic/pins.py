"""Pins of public keys (RFC 7469 section 2.4)."""

import base64
import hashlib
import subprocess


def pin_of(certificate: str) -> str:
    """The SHA-256 of the public key of a certificate in PEM, in the form that saltern-client takes."""
    key = subprocess.run(
        ["openssl", "x509", "-in", certificate, "-noout", "-pubkey"], check=True, capture_output=True
    ).stdout
    der = base64.b64decode(b"".join(line for line in key.splitlines() if not line.startswith(b"-----")))
    return "sha256//" + base64.b64encode(hashlib.sha256(der).digest()).decode()
