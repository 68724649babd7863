"""Certificates, keys and other files with secrets that a server reads: checked, and told what is wrong with them."""

from __future__ import annotations

import ssl
import stat
import time
from collections.abc import Mapping
from math import inf
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from apps.peer_names import PeerNames
from apps.revocation_lists import next_update_s

Signature: TypeAlias = tuple[tuple[int, int, int] | None, ...]


_EXPIRED, _NOT_YET_VALID = "certificate has expired", "certificate is not yet valid"
"""Of OpenSSL."""


class SettingsInvalid(Exception):  # noqa: N818
    """Settings or files by which a server cannot run; the text names the setting, and never a secret."""


class TlsFiles(NamedTuple):
    """PEM files by which a server speaks TLS; with `ca`, only peers that have a certificate of its are let in.

    With `crl`, revocation lists of that authority, one whose certificate is on a list is not let in. With `names`, a
    list of names as `PeerNames` reads it, only those whose certificates have one, and for its datapath ids alone.
    """

    certificate: Path
    key: Path
    ca: Path | None = None
    crl: Path | None = None
    names: Path | None = None


class ServerTls:
    """What a server speaks TLS by, read again when its files have changed.

    `fault` says what is wrong with the files as they are now, or that the certificate or the revocation list in use
    has expired, while what was read before goes on being used. Raises SettingsInvalid where the files are no good
    from the beginning.
    """

    def __init__(self, files: TlsFiles, ciphers: str | None = None) -> None:
        self._fault: str | None = None
        self._files = files
        self._ciphers = ciphers
        self._signature = _signature(files)
        self._in_use = _load(files, ciphers)

    @property
    def fault(self) -> str | None:
        """What is wrong, None for nothing."""
        if self._fault is not None:
            return self._fault
        now_s = time.time()
        return next((fault for expires_s, fault in self._in_use.expiries if now_s > expires_s), None)

    def context(self) -> ssl.SSLContext:
        """Return the context for one more connection."""
        self.look()
        return self._in_use.context

    def look(self) -> None:
        """Read files again that have changed."""
        signature = _signature(self._files)
        if signature != self._signature:
            self._signature = signature
            try:
                self._in_use = _load(self._files, self._ciphers)
            except SettingsInvalid as error:
                self._fault = str(error)
            else:
                self._fault = None

    def refusal(self, certificate: Mapping[str, Any] | None) -> str | None:
        """Return why a peer is not let in whose certificate, as `getpeercert` has it, is sound; None where it is."""
        names = self._in_use.names
        return None if names is None else names.refusal(_names_of(certificate or {}))

    def dpid_refusal(self, certificate: Mapping[str, Any] | None, dpid: int) -> str | None:
        """Return why a peer that was let in may not speak for a datapath id; None where it may."""
        names = self._in_use.names
        return None if names is None else names.dpid_refusal(_names_of(certificate or {}), dpid)


def server_context(files: TlsFiles, ciphers: str | None = None) -> ssl.SSLContext:
    """Return what a server speaks TLS by, version 1.2 at least; SettingsInvalid where the files are no good.

    `ciphers` are those of TLS 1.2, as OpenSSL writes a list of them; by default those that Python chooses.
    """
    return _load(files, ciphers).context


class _Loaded(NamedTuple):
    """What was read of files; `expiries` has when something of it expires (s since 1970), and what is wrong then."""

    context: ssl.SSLContext
    names: PeerNames | None
    expiries: list[tuple[float, str]]


def _load(files: TlsFiles, ciphers: str | None) -> _Loaded:
    """Read the files of a server; SettingsInvalid where they are no good."""
    certificate, key, ca, crl, names = files
    check_private(key, "key")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION
    try:
        context.load_cert_chain(certificate, key, password="")
    except OSError as error:
        raise SettingsInvalid(f"certificate: {certificate} with key {key}: {_words(error)}") from error
    expiries = [(_expires_s(context, certificate), f"certificate: {certificate}: {_EXPIRED}")]
    if ciphers is not None:
        try:
            context.set_ciphers(ciphers)
        except ssl.SSLError as error:
            raise SettingsInvalid(f"ciphers: {ciphers!r} names none that OpenSSL has") from error
    if ca is not None:
        try:
            context.load_verify_locations(ca)
        except OSError as error:
            raise SettingsInvalid(f"ca: {ca}: {_words(error)}") from error
        context.verify_mode = ssl.CERT_REQUIRED
    if names is not None and ca is None:
        raise SettingsInvalid(f"names: {names}: names are vouched for by an authority, which is not given (ca)")
    peer_names = _names(files)
    if crl is not None:
        if ca is None:
            raise SettingsInvalid(f"crl: {crl}: revocation lists are of an authority, which is not given (ca)")
        until_s, out_of_date = _out_of_date_s(crl), _out_of_date(crl)
        if time.time() > until_s:
            raise SettingsInvalid(out_of_date)
        expiries.append((until_s, out_of_date))
        context.load_verify_locations(crl)
        context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF
    return _Loaded(context, peer_names, expiries)


def _names(files: TlsFiles) -> PeerNames | None:
    """Return who is let in, None where nobody is told by name; SettingsInvalid for a bad file."""
    path = files.names
    if path is None:
        return None
    try:
        return PeerNames(path.read_text(encoding="utf-8"), str(path))
    except OSError as error:
        raise SettingsInvalid(f"names: {path}: {_words(error)}") from error
    except UnicodeDecodeError as error:
        raise SettingsInvalid(f"names: {path} is no text in UTF-8") from error
    except ValueError as error:
        raise SettingsInvalid(f"names: {error}") from error


def _names_of(certificate: Mapping[str, Any]) -> list[str]:
    """Return the common names of a certificate's subject, and its alternative names in the DNS."""
    subject = [value for part in certificate.get("subject", ()) for kind, value in part if kind == "commonName"]
    alternative = [value for kind, value in certificate.get("subjectAltName", ()) if kind == "DNS"]
    return list(dict.fromkeys(subject + alternative))


def _out_of_date_s(crl: Path) -> float:
    """Return when revocation lists are out of date, in seconds since 1970; SettingsInvalid where they are no good."""
    try:
        return next_update_s(crl.read_text(encoding="ascii"))
    except OSError as error:
        raise SettingsInvalid(f"crl: {crl}: {_words(error)}") from error
    except ValueError as error:
        raise SettingsInvalid(f"crl: {crl}: {error}") from error


def _out_of_date(crl: Path) -> str:
    return f"crl: {crl}: the revocation list is out of date, so that no peer is let in"


def _expires_s(context: ssl.SSLContext, certificate: Path) -> float:
    """Return when the certificate of a server expires, in seconds since 1970; infinity where OpenSSL does not say.

    SettingsInvalid where it has expired, or is not valid yet. Its own client is asked, which trusts nothing else and
    has no certificate: the context asks for none yet.
    """
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname = False
    client.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    client.load_verify_locations(certificate)
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    near = client.wrap_bio(to_client, to_server)
    far = context.wrap_bio(to_server, to_client, server_side=True)
    for side in (near, far, near, far, near):  # TLS 1.2, the most that a system may allow, takes two round trips
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            continue
        except ssl.SSLCertVerificationError as error:
            if error.verify_message in (_EXPIRED, _NOT_YET_VALID):
                raise SettingsInvalid(f"certificate: {certificate}: {error.verify_message}") from error
            return inf
        except ssl.SSLError:
            return inf
    found = near.getpeercert() or {}
    return ssl.cert_time_to_seconds(str(found["notAfter"]))


def check_private(path: Path, setting: str) -> None:
    """SettingsInvalid where a file with secrets is not there, or is not its owner's alone."""
    try:
        found = path.stat()
    except OSError as error:
        raise SettingsInvalid(f"{setting}: {path}: {error.strerror}") from error
    if not stat.S_ISREG(found.st_mode):
        raise SettingsInvalid(f"{setting}: {path} is no file")
    if found.st_mode & (stat.S_IRWXO | stat.S_IWGRP):
        mode = f"mode {stat.S_IMODE(found.st_mode):04o}"
        raise SettingsInvalid(
            f"{setting}: {path} may be read by others, or written by its group ({mode}): chmod 600 {path}"
        )


def _words(error: OSError) -> str:
    """Return what went wrong in words: OpenSSL's reason, or the system's."""
    if isinstance(error, ssl.SSLError):
        return (error.reason or "the file is no PEM file").lower().replace("_", " ")
    return str(error.strerror or error)


def _signature(files: TlsFiles) -> Signature:
    """Return what differs once one of the files is another."""
    found: list[tuple[int, int, int] | None] = []
    for path in files:
        try:
            status = path.stat() if path is not None else None
        except OSError:
            status = None
        found.append(None if status is None else (status.st_mtime_ns, status.st_size, status.st_ino))
    return tuple(found)
