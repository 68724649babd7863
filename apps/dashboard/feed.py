"""Following a controller by the change feed on its Unix socket, and asking it to do something."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from apps.dashboard.board import Board
from controller.snapshot.reader import FeedInvalid, silent_apps

POLL_S = 0.2
RETRY_S = 0.5
ANSWER_S = 10.0
ACT_S = 25.0
"""Longer than the controller waits for its own apps: it tells what became of the question."""

LINE_BYTES = 256 << 20
LIMIT = 500
"""Documents of an app in one answer: a few milliseconds on its loop at most."""

logger = logging.getLogger("vsrt.dashboard")


class ControllerUnanswered(Exception):  # noqa: N818
    """The controller is not there or does not answer; the text says why."""


class Conversation:
    """One connection to the controller's socket."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(cls, path: Path) -> Conversation:
        """Connect; ControllerUnanswered where nobody listens."""
        try:
            return cls(*await asyncio.open_unix_connection(path, limit=LINE_BYTES))
        except OSError as error:
            raise ControllerUnanswered(f"{path}: {error.strerror or error}") from error

    async def ask(self, question: Mapping[str, Any], timeout_s: float = ANSWER_S) -> Any:
        """Return the answer to a question; ControllerUnanswered where there is none in time."""
        try:
            async with asyncio.timeout(timeout_s):
                self._writer.write(json.dumps(question).encode() + b"\n")
                await self._writer.drain()
                line = await self._reader.readline()
            if not line.endswith(b"\n"):
                raise ControllerUnanswered("the controller closed the connection")
            return json.loads(line)
        except TimeoutError as error:
            raise ControllerUnanswered(f"no answer within {timeout_s:g} s") from error
        except (OSError, ValueError) as error:
            raise ControllerUnanswered(f"no answer: {error}") from error

    async def close(self) -> None:
        """Close the connection."""
        self._writer.close()
        with suppress(OSError):
            await self._writer.wait_closed()


async def follow(path: Path, board: Board) -> None:
    """Keep the board as the controller at `path` is, for ever; a controller that is away is waited for."""
    while True:
        try:
            await _converse(path, board)
        except (ControllerUnanswered, FeedInvalid) as error:
            if board.connected:
                logger.warning("The controller does not answer: %s", error)
            board.connect(False, str(error))
        await asyncio.sleep(RETRY_S)


async def _converse(path: Path, board: Board) -> None:
    conversation = await Conversation.open(path)
    try:
        while True:
            answer = await conversation.ask({**board.snapshot.question(), "limit": LIMIT})
            if (silent := silent_apps(answer)) is not None:
                raise ControllerUnanswered(silent)
            more = board.apply(answer)
            if not more:
                if not board.connected:
                    logger.info("The server follows the controller at %s.", path)
                board.connect(True)
                await asyncio.sleep(POLL_S)
    finally:
        await conversation.close()


async def act(path: Path, question: Mapping[str, Any], timeout_s: float = ACT_S) -> Any:
    """Ask one question on a connection of its own; ControllerUnanswered where there is no answer."""
    conversation = await Conversation.open(path)
    try:
        return await conversation.ask(question, timeout_s)
    finally:
        await conversation.close()
