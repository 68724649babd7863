"""Where `vsrt` reads what a controller knows and has things done: its Unix socket, or the API of its dashboard."""

from __future__ import annotations

import argparse

from apps.cli.common import InputError
from apps.cli.perf_console import add_api, add_socket, socket_path
from apps.cli.snapshot_source import SnapshotSource


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
