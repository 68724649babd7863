"""Certificates for tests, made by OpenSSL's command."""

from __future__ import annotations

import ssl
import subprocess
from pathlib import Path
from typing import NamedTuple

KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")


class Identity(NamedTuple):
    """A certificate and its key, in files."""

    certificate: Path
    key: Path


def openssl(*arguments: str | Path) -> None:
    """Run OpenSSL's command."""
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)


class Authority:
    """A certificate authority of its own; `certificate` is what its certificates are checked by."""

    def __init__(self, directory: Path, name: str = "authority") -> None:
        self._directory = directory
        self.certificate, self._key = directory / f"{name}.pem", directory / f"{name}.key"
        openssl(
            "req", "-x509", *KEY, "-days", "2", "-subj", f"/CN={name}", "-keyout", self._key, "-out", self.certificate
        )

    def revocations(self, *revoked: Identity, until: str = "20991231235959Z") -> Path:
        """Make the list of revoked certificates, which is good until then, and return its file."""
        database, settings = self._directory / "index.txt", self._directory / "ca.cnf"
        database.touch()
        settings.write_text(f"[ca]\ndefault_ca = own\n[own]\ndatabase = {database}\ndefault_md = sha256\n")
        by = ("ca", "-config", settings, "-cert", self.certificate, "-keyfile", self._key)
        for identity in revoked:
            openssl(*by, "-revoke", identity.certificate)
        path = self._directory / "revoked.crl"
        openssl(*by, "-gencrl", "-crl_lastupdate", "20200101000000Z", "-crl_nextupdate", until, "-out", path)
        return path

    def issue(self, name: str, days: int = 1, at: str = "", since: str = "") -> Identity:
        """Make a certificate that is valid for so many days, its files named after it; with -1 it has expired.

        `at` is the address that clients may have asked for, such as ``IP:127.0.0.1``; `since` is when it begins to be
        valid, such as ``20900101000000Z``, now by default.
        """
        certificate, key, request = (self._directory / f"{name}{end}" for end in (".pem", ".key", ".csr"))
        openssl("req", *KEY, "-subj", f"/CN={name}", "-keyout", key, "-out", request)
        by: tuple[str | Path, ...] = ("-CA", self.certificate, "-CAkey", self._key, "-CAcreateserial")
        if at:
            extensions = self._directory / f"{name}.ext"
            extensions.write_text(f"subjectAltName={at}\n")
            by = (*by, "-extfile", extensions)
        if since:
            settings = self._directory / "later.cnf"
            (self._directory / "later.txt").touch()
            settings.write_text(
                f"[ca]\ndefault_ca = own\n[own]\ndatabase = {self._directory / 'later.txt'}\ndefault_md = sha256\n"
                f"new_certs_dir = {self._directory}\nrand_serial = yes\npolicy = any\n[any]\ncommonName = supplied\n"
            )
            by = ("-config", settings, "-cert", self.certificate, "-keyfile", self._key, "-startdate", since)
            openssl("ca", "-batch", "-notext", *by, "-days", str(days), "-in", request, "-out", certificate)
        else:
            openssl("x509", "-req", "-in", request, *by, "-days", str(days), "-out", certificate)
        return Identity(certificate, key)


def client_context(authority: Authority, identity: Identity | None) -> ssl.SSLContext:
    """Return the context of a client that trusts an authority alone, with a certificate or without."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.load_verify_locations(authority.certificate)
    if identity is not None:
        context.load_cert_chain(*identity)
    return context
