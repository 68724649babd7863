"""Whether switches can be listened for, found out before the framework tries: it goes on where it cannot."""

from __future__ import annotations

import socket


class CannotListen(Exception):  # noqa: N818
    """An address and port on which no switch could connect; the text says which and why."""


def try_to_listen(host: str, port: int) -> None:
    """Listen on a TCP port (1 to 65,535) for a moment; CannotListen where that fails."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_STREAM) as server:
            server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            server.bind((host, port))
            server.listen()
    except OSError as error:
        where = f"{host or 'all addresses'}, port {port}"
        raise CannotListen(f"cannot listen for switches on {where}: {error.strerror}") from error
