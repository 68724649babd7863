"""The page and the API as one ASGI application, and its description (OpenAPI 3.1)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fastapi import Depends, FastAPI, Request
from fastapi.dependencies.models import Dependant
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response

from apps.dashboard.answers import Problem
from apps.dashboard.board import Board
from apps.dashboard.health import health
from apps.dashboard.models import ProblemDocument
from apps.dashboard.past import PastFiles
from apps.dashboard.questions import Ask
from apps.dashboard.reads import reads
from apps.dashboard.static_files import INDEX, StaticFiles
from apps.dashboard.streams import Streams
from apps.dashboard.workflow_runs import WorkflowRuns
from apps.dashboard.writes import writes

PREFIX = "/api/v1"
VERSION = "1.0.0"
DESCRIPTION = """What the fabric is doing, and what an operator may change of it.

Lists answer `{"items": [...], "total": n}`; what is wrong with a request is told by a problem document (RFC 9457).
Fields that are not known are null or absent; times are seconds since 1970-01-01 UTC. Writing needs a bearer token of
an operator; reading needs one of a viewer or an operator where `dashboard.read_token_file` is set."""


def build_api(
    board: Board,
    streams: Streams,
    ask: Ask,
    files: StaticFiles,
    past: PastFiles | None,
    runs: WorkflowRuns,
    reads_need_token: bool,
) -> FastAPI:
    """Return the application around a board."""
    api = FastAPI(
        title="vsrt operator API",
        version=VERSION,
        description=DESCRIPTION,
        openapi_url=f"{PREFIX}/openapi.json",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        exception_handlers={
            Problem: _problem,
            RequestValidationError: _invalid,
            HTTPException: _http_error,
            Exception: _failed,
        },
    )
    known = [Depends(_parameters_known)]
    api.include_router(reads(board, streams, ask, past, runs, reads_need_token), prefix=PREFIX, dependencies=known)
    api.include_router(writes(board, ask, runs), prefix=PREFIX, dependencies=known)
    api.include_router(health(board))
    _describe(api)

    @api.api_route("/", methods=["GET", "HEAD"], include_in_schema=False)
    async def index(request: Request) -> Response:
        return files.answer(INDEX, request)

    @api.get("/favicon.ico", include_in_schema=False)
    async def icon() -> Response:
        return RedirectResponse("/static/favicon.svg", 308)

    @api.api_route("/static/{name:path}", methods=["GET", "HEAD"], include_in_schema=False)
    async def static(name: str, request: Request) -> Response:
        return files.answer(name, request)

    return api


def _describe(api: FastAPI) -> None:
    """Let the description tell of problem documents, and not of the framework's own form of faults."""
    make = api.openapi

    def openapi() -> dict[str, Any]:
        if api.openapi_schema is None:
            description = make()
            schemas = description["components"]["schemas"]
            for name in ("HTTPValidationError", "ValidationError"):
                schemas.pop(name, None)
            schemas[ProblemDocument.__name__] = ProblemDocument.model_json_schema()
            for methods in description["paths"].values():
                for operation in methods.values():
                    operation["responses"].pop("422", None)
            api.openapi_schema = description
        return api.openapi_schema

    api.openapi = openapi  # type: ignore[method-assign]


async def _parameters_known(request: Request) -> None:
    """Refuse a query with a parameter that the description does not have: it would change nothing in silence."""
    given = request.query_params.keys()
    if not given:
        return
    known = list(_parameters(request.scope["route"].dependant))
    for name in given:
        if name not in known:
            there_are = f"there are {', '.join(known)}" if known else "there is none"
            raise Problem(422, f"{name[:64]}: no parameter here; {there_are}", field=name[:64])


def _parameters(dependant: Dependant) -> Iterator[str]:
    """Yield the names of the parameters that an operation takes in the query."""
    for part in dependant.dependencies:
        yield from _parameters(part)
    yield from (parameter.alias for parameter in dependant.query_params)


async def _problem(_request: Request, problem: Exception) -> Response:
    assert isinstance(problem, Problem)
    return problem.response()


async def _invalid(_request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    faults = [_fault(fault) for fault in error.errors()]
    return Problem(422, faults[0]["message"] if faults else "the request is not valid", errors=faults).response()


def _fault(fault: Mapping[str, Any]) -> dict[str, str]:
    field = ".".join(str(step) for step in fault["loc"][1:]) or str(fault["loc"][0])
    return {"field": field, "message": f"{field}: {fault['msg']}"}


async def _http_error(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return Problem(error.status_code, str(error.detail)).response(error.headers)


async def _failed(_request: Request, _error: Exception) -> Response:
    return Problem(500, "the server failed; its log says how").response()
