"""What can be read by the API: lists, single documents, a port's history, the stream."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any, NamedTuple

from fastapi import APIRouter, Depends, Path, Query
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from apps.dashboard import lists, models
from apps.dashboard.answers import JSON, Problem, encode, page
from apps.dashboard.board import Board
from apps.dashboard.feed import Unanswered
from apps.dashboard.streams import Streams
from controller.snapshot.reader import Document, Section
from controller.wire.addresses import format_ip, parse_ip

Ask = Callable[[dict[str, Any]], Any]

MAX_DPID = (1 << 64) - 1
MAX_PORT_NO = (1 << 32) - 1
MAX_LIMIT = 10_000
DEFAULT_LIMIT = 1000

DpidPath = Annotated[int, Path(ge=1, le=MAX_DPID, description="Datapath id.")]
PortPath = Annotated[int, Path(ge=1, le=MAX_PORT_NO, description="Port number.")]
AddressPath = Annotated[
    str,
    Path(
        max_length=45,
        description="Address of a group, IPv4 or IPv6.",
        json_schema_extra={"anyOf": [{"format": "ipv4"}, {"format": "ipv6"}]},
    ),
]
Limit = Annotated[int, Query(ge=0, le=MAX_LIMIT, description="Most documents answered.")]


class List(NamedTuple):
    """A list of the API: the section it is made of, the form of its documents, and how it is made."""

    section: str
    model: type[Any]
    make: Callable[[Section], Sequence[Document]] = Section.in_order


LISTS = {
    "switches": List("switches", models.Switch),
    "links": List("links", models.Link),
    "ports": List("ports", models.Port),
    "hosts": List("hosts", models.Host),
    "groups": List("groups", models.Group),
    "members": List("groups", models.GroupMember, lists.of_groups(lists.members)),
    "senders": List("groups", models.GroupSender, lists.of_groups(lists.senders)),
    "refusals": List("groups", models.Refusal, lists.of_groups(lists.refusals)),
    "routers": List("routers", models.Router),
    "rules": List("rules", models.Rule),
    "events": List("events", models.Event, lists.newest_first),
    "anomalies": List("anomalies", models.Anomaly),
    "allocations": List("allocations", models.Allocation, lists.newest_first),
}
"""The lists by name; each is a path of the API."""

STREAMED = (
    *("status", "switches", "links", "ports", "hosts", "groups", "routers", "rules", "events", "anomalies"),
    *("allocations", "policy"),
)
"""The sections that can be followed."""

PROBLEMS: dict[int | str, dict[str, Any]] = {
    "default": {
        "description": "What was wrong with the request.",
        "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/ProblemDocument"}}},
    }
}


class Shape(NamedTuple):
    """How a list is asked for."""

    limit: int
    offset: int
    sort: str | None
    search: str


def _shaped(model: type[Any]) -> Any:
    """Return the parameter that reads the query of a list of such documents; fields that an app adds sort too."""
    known = [f"{sign}{name}" for name in model.model_fields for sign in ("", "-")]
    described = "Field to sort by; downwards with `-` before it."
    by_field: Any = Query(None, max_length=64, description=described, json_schema_extra={"enum": known})

    def shape(
        limit: Limit = DEFAULT_LIMIT,
        offset: Annotated[int, Query(ge=0, le=MAX_DPID, description="Documents left out at the beginning.")] = 0,
        sort: str | None = by_field,
        search: Annotated[str, Query(max_length=256, description="Words that a document's values must hold.")] = "",
    ) -> Shape:
        return Shape(limit, offset, sort, search)

    return Depends(shape)


_EVENTS_SHAPE = _shaped(models.Event)


def reads(board: Board, streams: Streams, ask: Ask) -> APIRouter:
    """Return the routes; `ask` puts a question to the controller."""
    router = APIRouter(responses=PROBLEMS, default_response_class=Response)
    for name, entry in LISTS.items():
        if name != "events":
            _add_list(router, board, name, entry)

    async def status() -> Response:
        """Return the state of controller and server."""
        board.refresh()
        return _one(board, "status", "status", "")

    async def policy() -> Response:
        """Return the policy file."""
        return _one(board, "policy", "policy", "the controller has told no policy")

    async def switch(dpid: DpidPath) -> Response:
        """Return a switch."""
        return _one(board, "switches", str(dpid), f"there is no switch {dpid}")

    async def port(dpid: DpidPath, port_no: PortPath) -> Response:
        """Return a port."""
        return _one(board, "ports", f"{dpid}:{port_no}", f"switch {dpid} has no port {port_no}")

    async def group(address: AddressPath) -> Response:
        """Return a group."""
        written = group_address(address)
        return _one(board, "groups", written, f"there is no group {written}")

    async def events(
        shape: Shape = _EVENTS_SHAPE,
        since: Annotated[
            float | None, Query(ge=0, description="Only events after this time (epoch seconds).")
        ] = None,
    ) -> Response:
        """Return events, the newest first."""
        found = board.made("events", "events", LISTS["events"].make)
        if since is not None:
            found = [document for document in found if (document.fields.get("time_s") or 0) > since]
        return _page(found, shape, LISTS["events"].model)

    async def history(
        dpid: DpidPath,
        port_no: PortPath,
        metric: Annotated[str, Query(max_length=64, description="What is asked for, such as `rx_bps`.")] = "rx_bps",
        since_s: Annotated[float | None, Query(ge=0, le=1e11, description="Only after this time.")] = None,
        step_s: Annotated[float | None, Query(gt=0, le=1e9, description="Time between two points.")] = None,
    ) -> Response:
        """Return what the monitor remembers of a port."""
        question: dict[str, Any] = {"do": "port-history", "dpid": dpid, "port_no": port_no, "metric": metric}
        question |= {name: value for name, value in (("since_s", since_s), ("step_s", step_s)) if value is not None}
        return Response(encode(await answered(ask, question)), media_type=JSON)

    async def stream(
        sections: Annotated[
            str, Query(max_length=256, description="Sections, with commas between; all without.")
        ] = "",
    ) -> Response:
        """Follow sections: an event `snapshot`, then events `change` (server-sent events)."""
        names = tuple(dict.fromkeys(sections.split(","))) if sections else STREAMED
        unknown = [name for name in names if name not in STREAMED]
        if unknown:
            raise Problem(422, f"sections: {unknown[0]!r} is none of {', '.join(STREAMED)}")
        return _Stream(streams, names)

    _add(router, "/status", status, models.Status)
    _add(router, "/policy", policy, models.PolicyFile)
    _add(router, "/switches/{dpid}", switch, models.Switch)
    _add(router, "/ports/{dpid}/{port_no}", port, models.Port)
    _add(router, "/ports/{dpid}/{port_no}/history", history, models.History)
    _add(router, "/groups/{address}", group, models.Group)
    _add(router, "/events", events, models.Page[models.Event])
    router.add_api_route(
        "/stream",
        stream,
        operation_id="stream",
        responses={200: {"description": "The stream.", "content": {"text/event-stream": {}}}},
    )
    return router


async def answered(ask: Ask, question: dict[str, Any]) -> Any:
    """Return the controller's answer; Problem where it refuses, fails or is away."""
    try:
        answer = await ask(question)
    except Unanswered as error:
        raise Problem(503, f"the controller does not answer: {error}", reason="disconnected") from error
    if isinstance(answer, dict) and isinstance(answer.get("error"), dict):
        raise Problem(409, "there are too few ports", error=answer["error"])
    if isinstance(answer, dict) and isinstance(answer.get("error"), str):
        if answer.get("refused"):
            field = answer.get("field")
            raise Problem(409, answer["error"], **({"field": field} if isinstance(field, str) else {}))
        if answer["error"].startswith("ask with"):
            raise Problem(501, "no app of this controller does that")
        raise Problem(502, answer["error"])
    return answer


def group_address(text: str) -> str:
    """Return a group's address as the controller writes it; Problem where it is none."""
    try:
        return format_ip(parse_ip(text))
    except ValueError:
        raise Problem(422, f"address: {text!r} is no IP address") from None


def _add(router: APIRouter, path: str, endpoint: Callable[..., Any], model: Any) -> None:
    router.add_api_route(
        path, endpoint, operation_id=endpoint.__name__, responses={200: {"model": model}}, response_model=None
    )


def _add_list(router: APIRouter, board: Board, name: str, entry: List) -> None:
    shaped = _shaped(entry.model)

    async def list_(shape: Shape = shaped) -> Response:
        return _page(board.made(entry.section, name, entry.make), shape, entry.model)

    list_.__name__ = name
    list_.__doc__ = f"Return {name}."
    _add(router, f"/{name}", list_, models.Page[entry.model])  # type: ignore[name-defined]


def _page(whole: Sequence[Document], shape: Shape, model: type[Any]) -> Response:
    name = (shape.sort or "id").removeprefix("-")
    if name not in model.model_fields and not any(name in document.fields for document in whole):
        raise Problem(422, f"sort: {name!r} is no field here, such as {', '.join(sorted(model.model_fields))}")
    found = lists.matching(whole, shape.search)
    if shape.sort:
        found = lists.ordered(found, shape.sort)
    return page(found[shape.offset : shape.offset + shape.limit], len(found))


def _one(board: Board, section: str, id_: str, otherwise: str) -> Response:
    document = board.section(section).documents.get(id_)
    if document is None:
        raise Problem(404, otherwise)
    return Response(document.encoded, media_type=JSON)


class _Stream(Response):
    """The answer that is a stream."""

    def __init__(self, streams: Streams, names: Sequence[str]) -> None:
        super().__init__(None)
        self._streams = streams
        self._names = names

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._streams.answer(self._names, scope, receive, send)
