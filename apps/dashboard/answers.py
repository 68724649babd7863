"""Bodies of answers: JSON made of documents already encoded, in pieces, and problem documents (RFC 9457)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import Any

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from controller.snapshot.reader import Document

JSON = "application/json"
PROBLEM = "application/problem+json"
PIECE_BYTES = 65536

encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


class Problem(Exception):  # noqa: N818
    """A request that is not carried out; `detail`, for who asked, says why."""

    def __init__(self, status: int, detail: str, **extensions: Any) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.extensions = extensions

    def response(self, headers: Mapping[str, str] | None = None) -> Response:
        """Return the problem document."""
        document = {
            "type": "about:blank",
            "title": HTTPStatus(self.status).phrase,
            "status": self.status,
            "detail": self.detail,
            **self.extensions,
        }
        return Response(encode(document), self.status, headers, PROBLEM)


class InPieces(Response):
    """An answer sent piece by piece, so that a client that reads slowly holds one piece and not the whole."""

    def __init__(self, parts: Sequence[bytes], media_type: str = JSON) -> None:
        super().__init__(None, media_type=media_type)
        self._parts = parts
        self.headers["content-length"] = str(sum(map(len, parts)))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the head and the pieces."""
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        if scope["method"] != "HEAD":
            for piece in pieces(self._parts):
                await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


def page(documents: Iterable[Document], total: int) -> InPieces:
    """Return a list of documents as an answer."""
    return InPieces([b'{"items":[', *comma_separated(documents), f'],"total":{total}}}'.encode()])


def comma_separated(documents: Iterable[Document]) -> Iterator[bytes]:
    """Yield the documents in JSON with commas between them."""
    comma = b""
    for document in documents:
        yield comma + document.encoded
        comma = b","


def pieces(parts: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the parts joined to pieces of about `PIECE_BYTES`."""
    waiting: list[bytes] = []
    length = 0
    for part in parts:
        waiting.append(part)
        length += len(part)
        if length >= PIECE_BYTES:
            yield b"".join(waiting)
            waiting, length = [], 0
    if waiting:
        yield b"".join(waiting)
