"""Certificates, keys and other files with secrets that a server reads: checked, and told what is wrong with them."""

from __future__ import annotations

import ssl
import stat
from pathlib import Path
from typing import NamedTuple, TypeAlias

Signature: TypeAlias = tuple[tuple[int, int, int] | None, ...]


class SettingsInvalid(Exception):  # noqa: N818
    """Settings or files by which a server cannot run; the text names the setting, and never a secret."""


class TlsFiles(NamedTuple):
    """PEM files by which a server speaks TLS; with `ca`, only peers that have a certificate of its are let in."""

    certificate: Path
    key: Path
    ca: Path | None = None


class ServerTls:
    """What a server speaks TLS by, read again when its files have changed.

    `fault` says what is wrong with the files as they are now, while the ones read before go on being used.
    Raises SettingsInvalid where the files are no good from the beginning.
    """

    def __init__(self, files: TlsFiles, ciphers: str | None = None) -> None:
        self.fault: str | None = None
        self._files = files
        self._ciphers = ciphers
        self._signature = _signature(files)
        self._context = server_context(files, ciphers)

    def context(self) -> ssl.SSLContext:
        """Return the context for one more connection."""
        self.look()
        return self._context

    def look(self) -> None:
        """Read files again that have changed."""
        signature = _signature(self._files)
        if signature != self._signature:
            self._signature = signature
            try:
                self._context = server_context(self._files, self._ciphers)
            except SettingsInvalid as error:
                self.fault = str(error)
            else:
                self.fault = None


def server_context(files: TlsFiles, ciphers: str | None = None) -> ssl.SSLContext:
    """Return what a server speaks TLS by, version 1.2 at least; SettingsInvalid where the files are no good.

    `ciphers` are those of TLS 1.2, as OpenSSL writes a list of them; by default those that Python chooses.
    """
    certificate, key, ca = files
    check_private(key, "key")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION
    try:
        context.load_cert_chain(certificate, key, password="")
    except OSError as error:
        raise SettingsInvalid(f"certificate: {certificate} with key {key}: {_words(error)}") from error
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
    return context


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
