"""Files of events: CSV with a heading, or JSON lines.

    time_s,event,group,member,u,v,rate_bps
    0.5,join,g1,h3,,,2e6
    7,link_down,,,t0-0,a0-1,
    9,switch_down,,,a0-1,,

    {"time_s": 0.5, "event": "join", "group": "g1", "member": "h3", "rate_bps": 2e6}

Columns and keys that an event does not use may be left out or empty.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Container, Iterable, Iterator, Mapping
from math import isfinite
from typing import Any

from controller.simulation.dynamics import LINK_EVENTS, MEMBER_EVENTS, EventKind, GroupEvent, homes_of
from topology.graph import Graph, NodeId, NodeKind

FIELDS = ("time_s", "event", "group", "member", "u", "v", "rate_bps")
MAX_RATE_BPS = 1e15

_KINDS = {str(kind): kind for kind in EventKind}


class EventFileError(ValueError):
    """An event that cannot be: the text names the file, the line and the field."""

    def __init__(self, source: str, line: int, field: str, message: str) -> None:
        self.source = source
        self.line = line
        self.field = field
        self.message = message
        super().__init__(f"{source}:{line}: {field}: {message}" if field else f"{source}:{line}: {message}")


def read_events(lines: Iterable[str], source: str, graph: Graph) -> list[GroupEvent]:
    """Return the events of a file in order of time; of equal times the one that comes first in the file.

    Parameters
    ----------
    lines
        The lines of the file. It is JSON lines where the first one that is not empty begins with a brace, else CSV.
    source
        The file's name, with which errors begin.
    graph
        The fabric, with its hosts: members are hosts or switches, what fails are switches or links between them.

    Raises
    ------
    EventFileError
        For the first line that cannot be read, or names what the fabric does not have.
    """
    numbered = ((number, line) for number, line in enumerate(lines, 1) if line.strip())
    first = next(numbered, None)
    if first is None:
        raise EventFileError(source, 1, "", "no events")
    reader = _json_rows if first[1].lstrip().startswith("{") else _csv_rows
    names = {str(node): node for node in graph.nodes()}
    homes = homes_of(graph)
    events = [_event(_Row(source, line, row), names, graph, homes) for line, row in reader(first, numbered, source)]
    return sorted(events, key=lambda event: event.time_s)


def _json_rows(
    first: tuple[int, str], rest: Iterable[tuple[int, str]], source: str
) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for number, line in (first, *rest):
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise EventFileError(source, number, "", f"no JSON: {error}") from None
        if not isinstance(row, dict):
            raise EventFileError(source, number, "", "no JSON object")
        unknown = next((key for key in row if key not in FIELDS), None)
        if unknown is not None:
            raise EventFileError(source, number, str(unknown)[:40], f"no such field; known: {', '.join(FIELDS)}")
        yield number, row


def _csv_rows(
    first: tuple[int, str], rest: Iterable[tuple[int, str]], source: str
) -> Iterator[tuple[int, Mapping[str, Any]]]:
    heading = [name.strip() for name in next(csv.reader([first[1]]))]
    for name in heading:
        if name not in FIELDS:
            raise EventFileError(source, first[0], name[:40], f"no such column; known: {', '.join(FIELDS)}")
        if heading.count(name) > 1:
            raise EventFileError(source, first[0], name, "column named twice")
    for name in ("time_s", "event"):
        if name not in heading:
            raise EventFileError(source, first[0], name, "column is missing")
    for number, line in rest:
        try:
            cells = next(csv.reader([line], strict=True))
        except csv.Error as error:
            raise EventFileError(source, number, "", f"no CSV: {error}") from None
        if len(cells) > len(heading):
            raise EventFileError(source, number, "", f"{len(cells)} cells under {len(heading)} columns")
        yield number, dict(zip(heading, cells, strict=False))


class _Row:
    """One event as it stands in the file."""

    def __init__(self, source: str, line: int, cells: Mapping[str, Any]) -> None:
        self._source, self._line, self._cells = source, line, cells

    def fault(self, field: str, message: str) -> EventFileError:
        return EventFileError(self._source, self._line, field, message)

    def text(self, field: str) -> str:
        """Return a field that must not be empty."""
        value = self._cells.get(field)
        if isinstance(value, bool) or not isinstance(value, str | int):
            raise self.fault(field, "missing" if value is None else f"{str(value)[:40]!r} is no name")
        text = str(value).strip()
        if not text:
            raise self.fault(field, "missing")
        return text

    def given(self, field: str) -> bool:
        return self._cells.get(field) not in (None, "")

    def number(self, field: str, most: float) -> float:
        """Return a field as a number from 0 to `most`."""
        value = self._cells.get(field)
        try:
            if isinstance(value, bool) or not isinstance(value, str | int | float):
                raise ValueError
            number = float(value)
        except (ValueError, OverflowError):
            shown = "missing" if value in (None, "") else f"{str(value)[:40]!r} is no number"
            raise self.fault(field, shown) from None
        if not (isfinite(number) and 0 <= number <= most):
            raise self.fault(field, f"{number:g} is not a number from 0 to {most:g}")
        return number


def _event(row: _Row, names: Mapping[str, NodeId], graph: Graph, homes: Container[NodeId]) -> GroupEvent:
    time_s = row.number("time_s", 1e12)
    word = row.text("event")
    kind = _KINDS.get(word)
    if kind is None:
        raise row.fault("event", f"{word[:40]!r} is none of {', '.join(_KINDS)}")
    if kind in MEMBER_EVENTS:
        member = _node(row, "member", names)
        if graph.kind(member) is NodeKind.HOST and member not in homes:
            raise row.fault("member", f"{member} has no link to a switch")
        rate_bps = row.number("rate_bps", MAX_RATE_BPS) if row.given("rate_bps") else None
        return GroupEvent(time_s, kind, row.text("group"), member, rate_bps=rate_bps)
    u = _switch(row, "u", names, graph)
    if kind not in LINK_EVENTS:
        return GroupEvent(time_s, kind, u=u)
    v = _switch(row, "v", names, graph)
    if not graph.has_link(u, v):
        raise row.fault("v", f"no link joins {u} and {v}")
    return GroupEvent(time_s, kind, u=u, v=v)


def _node(row: _Row, field: str, names: Mapping[str, NodeId]) -> NodeId:
    name = row.text(field)
    if name not in names:
        raise row.fault(field, f"{name[:40]!r} is not in the topology")
    return names[name]


def _switch(row: _Row, field: str, names: Mapping[str, NodeId], graph: Graph) -> NodeId:
    node = _node(row, field, names)
    if graph.kind(node) is NodeKind.HOST:
        raise row.fault(field, f"{node} is a host, not a switch")
    return node
