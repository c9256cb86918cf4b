"""Certificates that a careful client refuses, each for a reason of its own."""

from __future__ import annotations

import datetime as dt
import ipaddress
import ssl
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

if TYPE_CHECKING:
    from pathlib import Path

_DAY = dt.timedelta(days=1)


class Authority:
    """A certificate authority that a client may be told to trust."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Test authority")])
        usual = x509.BasicConstraints(ca=True, path_length=None)
        made = self._builder(self._name, self._key).issuer_name(self._name)
        self._certificate = made.add_extension(usual, critical=True).sign(
            self._key, hashes.SHA256()
        )
        self.path = folder / "authority.pem"
        self.path.write_bytes(self._certificate.public_bytes(serialization.Encoding.PEM))

    def context(
        self, address: str, *, days: tuple[int, int] = (-1, 30), signed: bool = True
    ) -> ssl.SSLContext:
        """Return a server's side of TLS.

        Parameters
        ----------
        address : IP address or host name the certificate is for
        days : from when to when it holds, from now
        signed : by the authority; otherwise by nobody but itself
        """
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, address)])
        names = x509.SubjectAlternativeName([_general_name(address)])
        made = self._builder(name, key, days).add_extension(names, critical=False)
        made = made.issuer_name(self._name if signed else name)
        certificate = made.sign(self._key if signed else key, hashes.SHA256())
        secret = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        pem = self._folder / "server.pem"
        pem.write_bytes(secret + certificate.public_bytes(serialization.Encoding.PEM))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pem)
        return context

    @staticmethod
    def _builder(
        name: x509.Name, key: ec.EllipticCurvePrivateKey, days: tuple[int, int] = (-1, 30)
    ) -> x509.CertificateBuilder:
        now = dt.datetime.now(dt.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now + days[0] * _DAY)
            .not_valid_after(now + days[1] * _DAY)
        )


def _general_name(address: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(address))
    except ValueError:
        return x509.DNSName(address)
