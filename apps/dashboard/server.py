"""The server: it listens, follows the controller, and answers until it is told to end."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from apps.dashboard.api import build_api
from apps.dashboard.board import Board
from apps.dashboard.connections import BoundedServer
from apps.dashboard.feed import act, follow
from apps.dashboard.guard import Guard
from apps.dashboard.guesses import Guesses
from apps.dashboard.limits import ServerLimits
from apps.dashboard.past import PastFiles
from apps.dashboard.settings import ServerSettings, listen, tls_context
from apps.dashboard.static_files import StaticFiles
from apps.dashboard.streams import Streams
from apps.dashboard.tally import RequestTally
from apps.dashboard.tokens import TokenFiles
from apps.dashboard.workflow_runs import WorkflowFolder, WorkflowRuns

REFRESH_S = 1.0


class DashboardServer:
    """A server that listens already; SettingsInvalid where its settings are no good."""

    def __init__(self, settings: ServerSettings, limits: ServerLimits | None = None) -> None:
        self._files, context = TokenFiles(settings), tls_context(settings)
        self._socket = listen(settings)
        self.url = _url(self._socket, "http" if context is None else "https")
        self._path = Path(settings.socket)
        limits, tally = limits or ServerLimits(), RequestTally()
        guesses, reads_need_token = Guesses(limits), bool(settings.read_token_file)

        def state() -> dict[str, Any]:
            return {
                **tally.document(),
                "wrong_tokens": guesses.document(),
                "writes": self._files.tokens.have_operators,
                "reads_need_token": reads_need_token,
                "workflows": bool(settings.workflows),
            }

        self._board = Board(state)
        self._streams = Streams(self._board, tally, limits)
        past = PastFiles(Path(settings.history)) if settings.history else None
        runs = WorkflowRuns(
            WorkflowFolder(Path(settings.workflows) if settings.workflows else None),
            Path(settings.workflow_runs) if settings.workflow_runs else self._path.parent / "workflow-runs",
            self._path,
        )
        ask = partial(act, self._path)
        api = build_api(self._board, self._streams, ask, StaticFiles(), past, runs, reads_need_token)
        names = (settings.host, *settings.names.split())
        guard = Guard(api, tally, self._files, guesses, names, limits, reads_need_token=reads_need_token)
        self._server = BoundedServer(guard, context, limits, tally)

    async def run(self, ready: Callable[[str], None]) -> None:
        """Serve until `stop`, SIGINT or SIGTERM; `ready` is told the address once requests are answered."""
        works = (follow(self._path, self._board), self._refresh(), self._server.announce(partial(ready, self.url)))
        beside = [asyncio.create_task(work) for work in works]
        try:
            with self._socket:
                await self._server.serve(sockets=[self._socket])
        finally:
            for task in beside:
                task.cancel()
            for task in beside:
                with suppress(asyncio.CancelledError):
                    await task

    def stop(self) -> None:
        """Let `run` end; from any thread."""
        self._server.should_exit = True

    async def _refresh(self) -> None:
        while True:
            await asyncio.sleep(REFRESH_S)
            if self._files.poll():
                self._streams.end()
            self._board.refresh()


def serve(settings: ServerSettings, ready: Callable[[str], None]) -> None:
    """Serve until SIGINT or SIGTERM; SettingsInvalid where the settings are no good."""
    asyncio.run(DashboardServer(settings).run(ready))


def _url(listening: socket.socket, scheme: str) -> str:
    host, port = listening.getsockname()[:2]
    return f"{scheme}://[{host}]:{port}/" if ":" in host else f"{scheme}://{host}:{port}/"
