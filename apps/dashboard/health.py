"""Whether controller and fabric are there, in a word: for load balancers, containers and service managers."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import PlainTextResponse, Response

from apps.dashboard.board import Board

PATHS = ("/healthz", "/readyz")
"""They tell no more than yes or no, so whoever asks need neither have a token nor know the server's name."""


def health(board: Board) -> APIRouter:
    """Return the routes."""
    router = APIRouter(include_in_schema=False)

    @router.api_route("/healthz", methods=["GET", "HEAD"])
    async def healthz() -> Response:
        return _answer(_away(board))

    @router.api_route("/readyz", methods=["GET", "HEAD"])
    async def readyz() -> Response:
        return _answer(_away(board) or _not_ready(board))

    return router


def _away(board: Board) -> str | None:
    return None if board.connected else "the controller does not answer"


def _not_ready(board: Board) -> str | None:
    """Return why the fabric is not ready; a controller without an app that knows is."""
    status = board.section("status").documents.get("status")
    if status is not None and status.fields.get("ready") is False:
        return "a switch is missing, or holds not yet what it should"
    return None


def _answer(fault: str | None) -> Response:
    return PlainTextResponse("ok\n") if fault is None else PlainTextResponse(f"not ok: {fault}\n", 503)
