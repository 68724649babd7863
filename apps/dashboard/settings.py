"""What the server is told at its start, and the files with secrets among it."""

from __future__ import annotations

import os
import socket
import ssl
import stat
from dataclasses import dataclass
from pathlib import Path

MIN_TOKEN_LENGTH = 16
MAX_TOKEN_BYTES = 4096
BACKLOG = 128


class SettingsInvalid(Exception):  # noqa: N818
    """Settings that the server cannot run with; the text names the setting and never a secret."""


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """Where to listen, whom to follow, and by which files to be safe; without a token file nobody may write."""

    socket: str
    host: str = "127.0.0.1"
    port: int = 8181
    token_file: str = ""
    certificate: str = ""
    key: str = ""
    names: str = ""
    """Host names besides ``localhost`` by which browsers may ask, separated by spaces."""


def read_token(settings: ServerSettings) -> bytes | None:
    """Return the token that writes need, None where there is none; SettingsInvalid where its file is no good."""
    if not settings.token_file:
        return None
    path = Path(settings.token_file)
    _check_private(path, "token_file")
    try:
        with path.open("rb") as file:
            token = file.read(MAX_TOKEN_BYTES + 1).strip()
    except OSError as error:
        raise SettingsInvalid(f"token_file: {path}: {error.strerror}") from error
    if not MIN_TOKEN_LENGTH <= len(token) <= MAX_TOKEN_BYTES or not token.isascii() or len(token.split()) != 1:
        raise SettingsInvalid(
            f"token_file: {path}: expected one word of {MIN_TOKEN_LENGTH} to {MAX_TOKEN_BYTES} ASCII characters"
        )
    return token


def tls_context(settings: ServerSettings) -> ssl.SSLContext | None:
    """Return what TLS is spoken by, None for plain HTTP; SettingsInvalid where the files are no good."""
    if not settings.certificate and not settings.key:
        return None
    if not (settings.certificate and settings.key):
        raise SettingsInvalid("certificate and key: only one of them is given")
    certificate, key = Path(settings.certificate), Path(settings.key)
    _check_private(key, "key")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    try:
        context.load_cert_chain(certificate, key, password="")
    except OSError as error:
        raise SettingsInvalid(f"certificate: {certificate} with key {key}: {error.strerror or error}") from error
    return context


def listen(settings: ServerSettings) -> socket.socket:
    """Return a listening socket; SettingsInvalid where there can be none."""
    try:
        family, _, _, _, address = socket.getaddrinfo(settings.host, settings.port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(address, family=family, backlog=BACKLOG)
    except (OSError, OverflowError) as error:
        number = getattr(error, "errno", None) or 0
        told = os.strerror(number) if number > 0 else error
        raise SettingsInvalid(f"port: cannot listen on {settings.host}, port {settings.port}: {told}") from error


def _check_private(path: Path, setting: str) -> None:
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
