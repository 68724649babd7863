"""What can be read by the API: lists, single documents, a port's history, the stream."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Annotated, Any, Literal, NamedTuple

from fastapi import APIRouter, Depends, Path, Query, Security
from fastapi.security import HTTPBearer
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from apps.dashboard import lists, models
from apps.dashboard.answers import JSON, Problem, encode, page
from apps.dashboard.board import Board
from apps.dashboard.check_models import CheckReportModel, FindingsModel
from apps.dashboard.model_parts import Page
from apps.dashboard.past import PastFiles, Stretch, with_learnt_bounds
from apps.dashboard.places import port_number, speed_of, switch_dpid
from apps.dashboard.probe_routes import add_probe_reads
from apps.dashboard.questions import Ask, answered
from apps.dashboard.streams import Streams
from apps.dashboard.workflow_routes import add_workflow_reads
from apps.dashboard.workflow_runs import WorkflowRuns
from apps.registry import TABLE_APPS
from apps.tenants.connections import connections
from apps.tenants.hosts import PolicyUnreadable
from apps.tenants.unused import unused
from controller.config.terms import LABEL_KEY, PORT_NAME, SWITCH_NAME
from controller.snapshot.reader import Document, DocumentCopy, Snapshot
from controller.snapshot.selectors import MAX_LENGTH, SelectorInvalid, parse_selector, selected
from controller.wire.addresses import format_ip, parse_name

MAX_DPID = (1 << 64) - 1
MAX_LIMIT = 10_000
DEFAULT_LIMIT = 1000

SwitchPath = Annotated[
    str,
    Path(
        min_length=1,
        max_length=64,
        description="A switch: its name, or its datapath id as 16 hexadecimal digits, as 0x..., or decimal.",
        json_schema_extra={"pattern": f"^({SWITCH_NAME}|[0-9a-fA-F]{{2}}(:[0-9a-fA-F]{{2}}){{7}})$"},
    ),
]
TablesPath = Annotated[
    str,
    Path(
        description="The app whose flow entries are meant.",
        pattern=f"^({'|'.join(TABLE_APPS)})$",
        json_schema_extra={"enum": [*TABLE_APPS]},
    ),
]
PortPath = Annotated[
    str,
    Path(
        min_length=1,
        max_length=64,
        description="Number of a port, or its name.",
        json_schema_extra={"pattern": f"^([0-9]{{1,10}}|{PORT_NAME})$"},
    ),
]
AddressPath = Annotated[
    str,
    Path(
        max_length=45,
        description="Address of a group, IPv4 or IPv6; in a VLAN `@` and its number follow.",
        json_schema_extra={"anyOf": [{"format": "ipv4"}, {"format": "ipv6"}]},
    ),
]
_CONDITION = rf"{LABEL_KEY}(=|!=|==)[^,=!\s][^,=!]*"
Select = Annotated[
    str,
    Query(
        max_length=MAX_LENGTH,
        description="Conditions with commas between that must all hold, such as `tier=core,pod=2,rack!=b7`: "
        "by labels, and by `tier`, `dpid`, `name`, `state`.",
        json_schema_extra={"pattern": f"^({_CONDITION}(,{_CONDITION}){{0,31}})?$"},
    ),
]
Gravity = Literal["info", "warning", "critical"]
Metric = Literal["rx_bps", "tx_bps", "rx_utilisation_pct", "tx_utilisation_pct", "errors_pps"]
"""What the monitor remembers of a port; its own names, so that this process needs nothing of it."""

Limit = Annotated[int, Query(ge=0, le=MAX_LIMIT, description="Most documents answered.")]


class List(NamedTuple):
    """A list of the API: the section it is made of, and how it is made."""

    section: str
    make: Callable[[DocumentCopy], Sequence[Document]] = DocumentCopy.in_order


LISTS = {
    "switches": List("switches"),
    "fabrics": List("switches", lists.fabrics),
    "links": List("links"),
    "ports": List("ports"),
    "hosts": List("hosts"),
    "groups": List("groups"),
    "members": List("groups", lists.of_groups(lists.members)),
    "senders": List("groups", lists.of_groups(lists.senders)),
    "refusals": List("groups", lists.of_groups(lists.refusals)),
    "routers": List("routers"),
    "rules": List("rules"),
    "staged": List("staged"),
    "candidates": List("candidates"),
    "events": List("events", lists.newest_first),
    "alarms": List("alarms", lists.gravest_first),
    "cleared-alarms": List("cleared-alarms", lists.cleared_last),
    "anomalies": List("anomalies"),
    "allocations": List("allocations", lists.newest_first),
    "cluster": List("cluster"),
    "monitors": List("monitors"),
    "scaling": List("scaling"),
    "classes": List("classes"),
    "queues": List("queues"),
    "tables": List("tables"),
    "versions": List("versions"),
    "maintenance": List("maintenance"),
    "pools": List("pools"),
    "addresses": List("addresses"),
    "runs": List("runs"),
}
"""The lists by name; each is a path of the API."""

OF_TENANTS: Mapping[str, Callable[[Snapshot], Sequence[Document]]] = {"connections": connections, "unused": unused}
"""Lists that are made of several sections by the tenants of the policy."""

STREAMED = (
    *("status", "switches", "links", "ports", "hosts", "groups", "routers", "rules", "staged", "events", "alarms"),
    *("cleared-alarms", "anomalies", "allocations", "policy", "cluster", "monitors", "scaling", "classes", "queues"),
    *("tables", "maintenance", "pools", "addresses", "candidates", "runs", "versions"),
)
"""The sections that can be followed."""

_SECTION = "|".join(STREAMED)

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
    select: str = ""
    severity: Gravity | None = None


GRADED = ("events", "alarms", "cleared-alarms")
"""Lists of which documents have a severity."""

SELECTABLE = ("switches", "ports", "links", "hosts")
"""Lists of which documents can be chosen by labels."""


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


def _selectable(model: type[Any]) -> Any:
    """Return the parameter that reads the query of a list whose documents can be chosen by labels too."""
    shaped = _shaped(model)

    def shape(select: Select = "", others: Shape = shaped) -> Shape:
        return others._replace(select=select)

    return Depends(shape)


def _graded(model: type[Any]) -> Any:
    """Return the parameter that reads the query of a list whose documents can be chosen by their severity too."""
    shaped = _shaped(model)

    def shape(
        severity: Annotated[Gravity | None, Query(description="Only what is at least this grave.")] = None,
        others: Shape = shaped,
    ) -> Shape:
        return others._replace(severity=severity)

    return Depends(shape)


_EVENTS_SHAPE = _graded(models.EventModel)


def reads(
    board: Board, streams: Streams, ask: Ask, past: PastFiles | None, runs: WorkflowRuns, need_token: bool
) -> APIRouter:
    """Return the routes; `ask` puts a question to the controller, `past` reads the monitor's files, `runs` workflows.

    The guard has seen to the token that reads need.
    """
    bearer = HTTPBearer(
        scheme_name="read_token",
        auto_error=False,
        description="A token of `dashboard.read_token_file` (viewers) or of `dashboard.token_file` (operators).",
    )
    router = APIRouter(
        responses=PROBLEMS, dependencies=[Security(bearer)] if need_token else [], default_response_class=Response
    )
    for name, entry in LISTS.items():
        if name != "events":
            _add_list(router, board, name, entry)

    for name, make in OF_TENANTS.items():
        _add_list_of_tenants(router, board, name, make)

    async def status() -> Response:
        """Return the state of controller and server."""
        board.refresh()
        return _one(board, "status", "status", "")

    async def policy() -> Response:
        """Return the policy file."""
        return _one(board, "policy", "policy", "the controller has told no policy")

    async def switch(dpid: SwitchPath) -> Response:
        """Return a switch."""
        return _one(board, "switches", str(switch_dpid(board, dpid)), f"there is no switch {dpid}")

    async def port(dpid: SwitchPath, port_no: PortPath) -> Response:
        """Return a port."""
        of_switch = switch_dpid(board, dpid)
        number = port_number(board, of_switch, port_no)
        return _one(board, "ports", f"{of_switch}:{number}", f"switch {dpid} has no port {port_no}")

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
        return _page(found, shape, models.EventModel)

    async def history(
        dpid: SwitchPath,
        port_no: PortPath,
        metric: Annotated[Metric, Query(description="What is asked for.")] = "rx_bps",
        since_s: Annotated[float | None, Query(ge=0, le=1e11, description="Only after this time.")] = None,
        step_s: Annotated[float | None, Query(gt=0, le=1e9, description="Time between two points.")] = None,
        until_s: Annotated[
            float | None, Query(ge=0, le=1e11, description="From the files, up to this time; needs since_s.")
        ] = None,
    ) -> Response:
        """Return what the monitor remembers of a port, or what its files hold of a stretch."""
        of_switch = switch_dpid(board, dpid)
        number = port_number(board, of_switch, port_no)
        speed_bps = speed_of(board, of_switch, number)
        if until_s is None:
            question: dict[str, Any] = {"do": "port-history", "dpid": of_switch, "port_no": number, "metric": metric}
            given = (("since_s", since_s), ("step_s", step_s))
            question |= {name: value for name, value in given if value is not None}
            found = await answered(ask, question)
        elif since_s is None or since_s >= until_s:
            raise Problem(422, "since_s: a time before until_s is needed", field="since_s")
        elif past is None:
            raise Problem(501, "this server was not told where the monitor's files are")
        else:
            stretch = Stretch(of_switch, number, metric, since_s, until_s, step_s or 0.0)
            found = await past.history(stretch, speed_bps)
        found = await with_learnt_bounds(found, speed_bps, partial(answered, ask))
        return Response(encode(found), media_type=JSON)

    async def stream(
        sections: Annotated[
            str,
            Query(
                max_length=256,
                description="Sections, with commas between; all without.",
                json_schema_extra={"pattern": f"^(({_SECTION})(,({_SECTION}))*)?$"},
            ),
        ] = "",
    ) -> Response:
        """Follow sections: an event `snapshot`, then events `change` (server-sent events)."""
        names = tuple(dict.fromkeys(sections.split(","))) if sections else STREAMED
        unknown = [name for name in names if name not in STREAMED]
        if unknown:
            raise Problem(422, f"sections: {unknown[0]!r} is none of {', '.join(STREAMED)}")
        return _Stream(streams, names)

    async def check_findings() -> Response:
        """Look for what does not fit together, apart from flow entries; ask again until it is done."""
        return Response(encode(await answered(ask, {"do": "check-findings"})), media_type=JSON)

    async def check_discovery_findings() -> Response:
        """Return the bonds that speak LACP and that the policy does not declare."""
        return Response(encode(await answered(ask, {"do": "check-discovery-findings"})), media_type=JSON)

    async def check_report(
        app: TablesPath,
        number: Annotated[int, Path(ge=1, le=1 << 31, description="The check's number.")],
        after: Annotated[int, Query(ge=0, le=1 << 31, description="Leave out so many reports.")] = 0,
    ) -> Response:
        """Return what a check has found so far, some switches at a time."""
        question = {"do": f"check-{app}-report", "number": number, "after": after}
        return Response(encode(await answered(ask, question)), media_type=JSON)

    _add(router, "/checks/findings", check_findings, FindingsModel)
    _add(router, "/checks/discovery/findings", check_discovery_findings, FindingsModel)
    _add(router, "/checks/{app}/{number}", check_report, CheckReportModel)
    add_probe_reads(router, ask)
    add_workflow_reads(router, board, runs)
    _add(router, "/status", status, models.StatusModel)
    _add(router, "/policy", policy, models.PolicyFileModel)
    _add(router, "/switches/{dpid}", switch, models.SwitchModel)
    _add(router, "/ports/{dpid}/{port_no}", port, models.PortModel)
    _add(router, "/ports/{dpid}/{port_no}/history", history, models.HistoryModel)
    _add(router, "/groups/{address}", group, models.GroupModel)
    _add(router, "/events", events, Page[models.EventModel])
    router.add_api_route(
        "/stream",
        stream,
        operation_id="stream",
        responses={200: {"description": "The stream.", "content": {"text/event-stream": {}}}},
    )
    return router


def group_address(text: str) -> str:
    """Return a group's address as the controller writes it; Problem where it is none."""
    try:
        return format_ip(parse_name(text))
    except ValueError:
        raise Problem(422, f"address: {text!r} is no IP address") from None


def _add(router: APIRouter, path: str, endpoint: Callable[..., Any], model: Any) -> None:
    router.add_api_route(
        path, endpoint, operation_id=endpoint.__name__, responses={200: {"model": model}}, response_model=None
    )


def _add_list(router: APIRouter, board: Board, name: str, entry: List) -> None:
    model = models.DOCUMENTS[name]
    made = _selectable if name in SELECTABLE else _graded if name in GRADED else _shaped
    shaped = made(model)

    async def list_(shape: Shape = shaped) -> Response:
        whole = board.made(entry.section, name, entry.make)
        if shape.select:
            try:
                terms = parse_selector(shape.select)
            except SelectorInvalid as error:
                raise Problem(422, f"select: {error}") from None
            whole = selected(whole, terms, board.section("switches"), board.section("ports"))
        return _page(whole, shape, model)

    list_.__name__ = name
    list_.__doc__ = f"Return {name}."
    _add(router, f"/{name}", list_, Page[model])  # type: ignore[valid-type]


def _add_list_of_tenants(
    router: APIRouter, board: Board, name: str, make: Callable[[Snapshot], Sequence[Document]]
) -> None:
    model = models.DOCUMENTS[name]
    shaped = _shaped(model)
    known: list[tuple[int, Sequence[Document]]] = []

    async def list_(shape: Shape = shaped) -> Response:
        if not known or known[0][0] != board.version:
            try:
                known[:] = [(board.version, make(board.snapshot))]
            except PolicyUnreadable as fault:
                raise Problem(503, str(fault)) from None
        return _page(known[0][1], shape, model)

    list_.__name__ = name
    list_.__doc__ = f"Return {name}."
    _add(router, f"/{name}", list_, Page[model])  # type: ignore[valid-type]


def _page(whole: Sequence[Document], shape: Shape, model: type[Any]) -> Response:
    name = (shape.sort or "id").removeprefix("-")
    if not lists.is_field(name, model, whole):
        raise Problem(422, f"sort: {name!r} is no field here, such as {', '.join(sorted(model.model_fields))}")
    found = lists.at_least(lists.matching(whole, shape.search), shape.severity)
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
