"""The server's process: it listens, follows the controller, and answers until it is told to end."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

from apps.dashboard.api import build_api
from apps.dashboard.board import Board
from apps.dashboard.connections import BoundedServer, Limits
from apps.dashboard.feed import act, follow
from apps.dashboard.guard import Guard
from apps.dashboard.settings import ServerSettings, listen, read_token, tls_context
from apps.dashboard.static_files import StaticFiles
from apps.dashboard.streams import Streams
from apps.dashboard.tally import Tally

REFRESH_S = 1.0

logger = logging.getLogger("vsrt.dashboard")


def serve(settings: ServerSettings, ready: Callable[[str], None], limits: Limits | None = None) -> None:
    """Serve until SIGINT or SIGTERM; `ready` is told the address once requests are answered.

    SettingsInvalid where the settings are no good, the address among them.
    """
    token, context = read_token(settings), tls_context(settings)
    listening = listen(settings)
    address = listening.getsockname()
    host = f"[{address[0]}]" if ":" in address[0] else address[0]
    url = f"{'https' if context else 'http'}://{host}:{address[1]}/"
    with listening:
        asyncio.run(_serve(settings, token, limits or Limits(), listening, context, partial(ready, url)))


async def _serve(
    settings: ServerSettings,
    token: bytes | None,
    limits: Limits,
    listening: socket.socket,
    context: ssl.SSLContext | None,
    ready: Callable[[], None],
) -> None:
    path = Path(settings.socket)
    tally = Tally()
    board = Board(lambda: {**tally.document(), "writes": token is not None})
    streams = Streams(board, tally)
    api = build_api(board, streams, partial(act, path), StaticFiles())
    guard = Guard(api, tally, token, (settings.host, *settings.names.split()))
    server = BoundedServer(guard, context, limits, tally)
    beside = [asyncio.create_task(work) for work in (follow(path, board), _refresh(board), server.announce(ready))]
    try:
        await server.serve(sockets=[listening])
    finally:
        for task in beside:
            task.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.gather(*beside)


async def _refresh(board: Board) -> None:
    while True:
        await asyncio.sleep(REFRESH_S)
        board.refresh()
