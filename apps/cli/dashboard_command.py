"""`vsrt dashboard`: the operator's page and API of a controller that runs already."""

from __future__ import annotations

import argparse
import importlib.util
import logging
import sys
from pathlib import Path

from apps.cli.common import InputError, OperationFailed, emit_json
from apps.cli.perf_console import add_socket, socket_path

MAX_TCP_PORT = 65535


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    add_socket(parser)
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (127.0.0.1)")
    parser.add_argument("--port", type=int, default=8181, help="TCP port (8181; 0 takes any free one)")
    parser.add_argument("--token-file", type=Path, metavar="PATH", help="file with the tokens of operators")
    parser.add_argument(
        "--read-token-file", type=Path, metavar="PATH", help="file with the tokens of viewers; reads need one then"
    )
    parser.add_argument(
        "--tokens-over-plain-http",
        choices=("refused", "accepted"),
        default="refused",
        help="whether tokens may cross a network without TLS (refused)",
    )
    parser.add_argument("--certificate", type=Path, metavar="PATH", help="certificate chain (PEM) for TLS")
    parser.add_argument("--key", type=Path, metavar="PATH", help="its private key (PEM)")
    parser.add_argument(
        "--workflows", type=Path, metavar="DIR", help="folder with workflows that the page offers (none)"
    )
    parser.add_argument("--names", default="", metavar="NAMES", help="further host names that browsers may ask by")


def run(args: argparse.Namespace) -> int:
    """Serve until interrupted."""
    if not 0 <= args.port <= MAX_TCP_PORT:
        raise InputError(f"--port: {args.port} is no TCP port")
    if importlib.util.find_spec("fastapi") is None:
        raise OperationFailed("fastapi is not installed")
    from apps.dashboard.server import serve
    from apps.dashboard.settings import ServerSettings
    from apps.tls_files import SettingsInvalid

    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(levelname)s %(message)s")
    settings = ServerSettings(
        socket=str(socket_path(args)),
        host=args.host,
        port=args.port,
        token_file=str(args.token_file or ""),
        read_token_file=str(args.read_token_file or ""),
        tokens_over_plain_http=args.tokens_over_plain_http,
        certificate=str(args.certificate or ""),
        key=str(args.key or ""),
        names=args.names,
        workflows=str(args.workflows or ""),
    )

    def ready(url: str) -> None:
        if args.json:
            emit_json({"url": url})
        else:
            print(f"serving {url}")
        sys.stdout.flush()

    try:
        serve(settings, ready)
    except SettingsInvalid as error:
        raise InputError(str(error)) from error
    return 0
