"""The stream of changes as server-sent events: the snapshot first, then what becomes of it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator, Sequence

from starlette.types import Receive, Scope, Send

from apps.dashboard.answers import Problem, comma_separated, encode, pieces
from apps.dashboard.board import Board
from apps.dashboard.limits import ServerLimits
from apps.dashboard.tally import RequestTally
from controller.snapshot.reader import DocumentCopy

INTERVAL_S = 0.2

_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
]


class Streams:
    """The streams that are open, bounded in number."""

    def __init__(self, board: Board, tally: RequestTally, limits: ServerLimits) -> None:
        self.board = board
        self._tally = tally
        self._limits = limits
        self._ended = asyncio.Event()

    def end(self) -> None:
        """End those that are open: whoever follows asks anew, and by a token that counts."""
        self._ended.set()
        self._ended = asyncio.Event()

    async def answer(self, names: Sequence[str], scope: Scope, receive: Receive, send: Send) -> None:
        """Send the snapshot of sections and its changes until the client goes away, or `end`.

        What changes while the client is slow to read is sent as one change: nothing waits for it in a queue.
        """
        most = self._limits.streams
        if self._tally.streams >= most:
            self._tally.refuse("streams", scope["client"], f"{most} are open")
            raise Problem(503, f"{most} streams are open already", reason="streams")
        self._tally.streams += 1
        try:
            await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
            if scope["method"] == "HEAD":
                await send({"type": "http.response.body", "body": b""})
                return
            works = [self._send(names, send), _gone(receive), self._ended.wait()]
            async with asyncio.TaskGroup() as tasks:
                under_way = [tasks.create_task(work) for work in works]
                await asyncio.wait(under_way, return_when=asyncio.FIRST_COMPLETED)
                for task in under_way:
                    task.cancel()
            await send({"type": "http.response.body", "body": b""})
        finally:
            self._tally.streams -= 1

    async def _send(self, names: Sequence[str], send: Send) -> None:
        async for piece in self._events(names):
            await send({"type": "http.response.body", "body": piece, "more_body": True})

    async def _events(self, names: Sequence[str]) -> AsyncIterator[bytes]:
        board, loop = self.board, asyncio.get_running_loop()
        version = -1
        while True:
            due_s = loop.time() + INTERVAL_S
            event = self._change(names, version) if version >= 0 else None
            if event is None:
                version = board.version
                for piece in pieces(_snapshot([board.section(name) for name in names], version)):
                    yield piece
            else:
                version = board.version
                if event:
                    yield event
            while not await board.newer(version, self._limits.heartbeat_s):
                yield b": still there\n\n"
            await asyncio.sleep(due_s - loop.time())

    def _change(self, names: Sequence[str], since: int) -> bytes | None:
        """Return the event of all that changed; empty where nothing did, None where that is no longer known."""
        changes = []
        for name in names:
            found = self.board.change(name, since, _difference)
            if found is None:
                return None
            if found:
                changes.append(found)
        if not changes:
            return b""
        head = f'event: change\ndata: {{"version":{self.board.version},"sections":{{'.encode()
        return head + b",".join(changes) + _end()


def _difference(section: DocumentCopy, since: int) -> bytes | None:
    difference = section.since(since)
    if difference is None or not (difference.put or difference.removed):
        return None if difference is None else b""
    put = b"".join(comma_separated(difference.put))
    removed = encode(difference.removed).encode()
    return b'%b:{"put":[%b],"remove":%b}' % (encode(section.name).encode(), put, removed)


def _snapshot(sections: Sequence[DocumentCopy], version: int) -> Iterator[bytes]:
    yield f'event: snapshot\ndata: {{"version":{version},"sections":{{'.encode()
    comma = ""
    for section in sections:
        yield f"{comma}{encode(section.name)}:[".encode()
        yield from comma_separated(list(section.documents.values()))
        yield b"]"
        comma = ","
    yield _end()


def _end() -> bytes:
    """Return what follows the sections of an event; the time comes last, so that it is that of sending."""
    return f'}},"time_s":{time.time():.3f}}}\n\n'.encode()


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
