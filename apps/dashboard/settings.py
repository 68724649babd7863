"""What the server is told at its start, and the files with secrets among it."""

from __future__ import annotations

import os
import socket
import ssl
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import cast

from apps.tls_files import SettingsInvalid, TlsFiles, server_context
from controller.config.checks import tokens_in_clear

BACKLOG = 128
REFUSED, ACCEPTED = "refused", "accepted"


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """Where to listen, whom to follow, and by which files to be safe.

    Without `token_file` nobody may write, without `read_token_file` everybody may read.
    """

    socket: str
    host: str = "127.0.0.1"
    port: int = 8181
    token_file: str = ""
    read_token_file: str = ""
    tokens_over_plain_http: str = REFUSED
    """Whether tokens may cross a network that is not this machine's without TLS."""
    certificate: str = ""
    key: str = ""
    names: str = ""
    """Host names besides ``localhost`` by which browsers may ask, separated by spaces."""
    history: str = ""
    """Where the monitor's files are, '' where there are none to be read."""
    workflows: str = ""
    """The folder with the workflows that are offered, '' where there are none."""
    workflow_runs: str = ""
    """The folder for results of their runs; '' has one beside the controller's socket."""


def tls_context(settings: ServerSettings) -> ssl.SSLContext | None:
    """Return what TLS is spoken by, None for plain HTTP; SettingsInvalid where the files are no good."""
    if not settings.certificate and not settings.key:
        return None
    if not (settings.certificate and settings.key):
        raise SettingsInvalid("certificate and key: only one of them is given")
    context = server_context(TlsFiles(Path(settings.certificate), Path(settings.key)))
    context.set_alpn_protocols(["http/1.1"])
    return context


def check_transport(settings: ServerSettings) -> None:
    """SettingsInvalid where tokens would cross a network in clear, unless the settings accept that."""
    if settings.certificate or settings.tokens_over_plain_http == ACCEPTED:
        return
    _, address = _resolved(settings)
    if not ip_address(address[0].partition("%")[0]).is_loopback:
        raise SettingsInvalid(f"tokens_over_plain_http: {tokens_in_clear(settings.host)}")


def listen(settings: ServerSettings) -> socket.socket:
    """Return a listening socket; SettingsInvalid where there can be none."""
    family, address = _resolved(settings)
    try:
        return socket.create_server(address, family=family, backlog=BACKLOG)
    except (OSError, OverflowError) as error:
        raise _unusable(settings, error) from error


def _resolved(settings: ServerSettings) -> tuple[socket.AddressFamily, tuple[str, int]]:
    try:
        family, _, _, _, address = socket.getaddrinfo(settings.host, settings.port, type=socket.SOCK_STREAM)[0]
    except (OSError, OverflowError) as error:
        raise _unusable(settings, error) from error
    return family, cast("tuple[str, int]", address)


def _unusable(settings: ServerSettings, error: OSError | OverflowError) -> SettingsInvalid:
    number = getattr(error, "errno", None) or 0
    told = os.strerror(number) if number > 0 else error
    return SettingsInvalid(f"port: cannot listen on {settings.host}, port {settings.port}: {told}")
