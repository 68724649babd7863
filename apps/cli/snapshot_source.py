"""Where `vsrt` reads what a controller knows and has things done: its Unix socket, or the API of its dashboard."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from apps.cli.common import InputError, OperationFailed
from apps.cli.perf_console import add_api, add_socket, socket_path
from controller.snapshot.reader import Snapshot


class Action(NamedTuple):
    """What a controller is to do: as the socket is asked, and as the API is."""

    question: Mapping[str, Any]
    method: str
    path: str


class ConnectionLost(OperationFailed):
    """Nobody answers, or offers what is sought, or no longer; it may be otherwise a little later."""


class SnapshotSource(Protocol):
    """A running controller, however it is reached."""

    def follow(self, sections: Sequence[str], beside: Sequence[str] = ()) -> Iterator[Snapshot]:
        """Yield the snapshot once the sections are read, and again each time that something of them has changed.

        Sections `beside` them are read where they are offered.

        It is one snapshot, also if followed anew after ConnectionLost, which is raised where the controller does not
        answer or offers none of the sections.
        """
        ...

    def do(self, action: Action) -> Any:
        """Have an action done and return what the controller tells of it.

        OperationFailed where it is refused, InputError where its fields are wrong, ConnectionLost.
        """
        ...


def add_source(parser: argparse.ArgumentParser) -> None:
    """Declare where the controller is reached."""
    add_socket(parser)
    add_api(parser)


def open_source(args: argparse.Namespace) -> SnapshotSource:
    """Return the source that the arguments ask for; InputError where they do not go together."""
    if args.url is None:
        for option in ("token_file", "ca"):
            if getattr(args, option) is not None:
                raise InputError(f"--{option.replace('_', '-')}: only with --url")
        from apps.cli.snapshot_socket import SocketSource

        return SocketSource(socket_path(args))
    if args.socket is not None:
        raise InputError("--socket: not with --url")
    from apps.cli.snapshot_http import HttpSource

    return HttpSource(args.url, args.token_file, args.ca)
