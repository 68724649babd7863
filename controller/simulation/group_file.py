"""Groups from a file, one a line: CSV or JSON lines, with every fault named by line and field."""

from __future__ import annotations

import csv
import json
import math
from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np

from controller.simulation.data_centre import DataCentre
from controller.simulation.groups import SimulatedGroups, attach
from controller.simulation.workload import MAX_RATE_BPS
from topology.graph import NodeId, NodeKind

COLUMNS = ("group", "members", "rate_bps")
MEMBER_SEPARATOR = ";"

MEMBER_KINDS = frozenset({NodeKind.HOST, NodeKind.TOR, NodeKind.SWITCH})
"""What may be a member: a host, or a switch that may have hosts."""

Record = tuple[int, object, object, object]
"""Line number, group, members and rate, the last three as the file has them."""


class GroupFileError(ValueError):
    """A groups file that cannot be read; the text names file, line and field.

    Attributes
    ----------
    source, line, field, message
        The file, the line from 1 (None where none is at fault), the field (empty where none is), and what is wrong.
    """

    def __init__(self, source: str, line: int | None, field: str, message: str) -> None:
        self.source = source
        self.line = line
        self.field = field
        self.message = message
        place = source if line is None else f"{source}:{line}"
        super().__init__(f"{place}: {field}: {message}" if field else f"{place}: {message}")


class GroupFile(NamedTuple):
    """The groups of a file, and what the file calls each of them."""

    groups: SimulatedGroups
    names: Sequence[str]


def read_groups(lines: Iterable[str], source: str, centre: DataCentre) -> GroupFile:
    """Return the groups that a file describes.

    Parameters
    ----------
    lines
        The file's lines in order. A file whose first line begins with ``{`` holds a JSON object a line, with the keys
        ``group`` (text or whole number), ``members`` (list of names) and ``rate_bps``; any other is CSV whose first
        line names these three columns, in any order, with ``;`` between members. Empty lines are skipped.
    source
        The file's name, for errors.
    centre
        The fabric. Members are hosts, ToRs and switches of unknown kind; several names of one member count once, and
        all members behind one switch are one terminal of the tree.

    Raises
    ------
    GroupFileError
        For the first line that is no group: unknown or isolated members, a rate that is negative or no number,
        a second group of a name, missing or unknown fields.
    """
    fault = _Fault(source)
    switch_of = _Attachment(centre)
    names: dict[str, int] = {}
    rates, sizes, switches = array("q"), array("q"), array("q")
    for line, group, members, rate in _records(iter(lines), fault):
        name = _name(group, line, fault)
        if name in names:
            raise fault(line, "group", f"{name!r} is the group of line {names[name]} already")
        names[name] = line
        rates.append(_rate(rate, line, fault))
        if not isinstance(members, list):
            raise fault(line, "members", "is no list")
        try:
            if not set(map(type, members)) <= _MEMBER_TYPES:
                raise KeyError
            found = list(map(switch_of.__getitem__, dict.fromkeys(members)))
        except (KeyError, TypeError):
            raise fault(line, "members", switch_of.complaint(members)) from None
        if not found:
            raise fault(line, "members", "is empty")
        switches.extend(found)
        sizes.append(len(found))
    if not names:
        raise fault(None, "", "holds no group")
    offsets = np.concatenate(([0], np.cumsum(np.array(sizes, dtype=np.int64))))
    flat = np.array(switches, dtype=np.int64)
    return GroupFile(attach(np.array(rates, dtype=np.int64), offsets, flat, len(centre.switches)), list(names))


class _Fault:
    """Makes the errors of one file."""

    def __init__(self, source: str) -> None:
        self._source = source

    def __call__(self, line: int | None, field: str, message: str) -> GroupFileError:
        return GroupFileError(self._source, line, field, message)


class _Attachment(dict[object, int]):
    """The number of the switch of every member, by its id and, where that is a number, by its text as well."""

    def __init__(self, centre: DataCentre) -> None:
        super().__init__()
        self._centre = centre
        self._isolated = set(centre.isolated_hosts())
        for host, switch in zip(centre.hosts, centre.home.tolist(), strict=True):
            if switch >= 0:
                self._add(host, switch)
        for node, number in centre.number.items():
            if centre.graph.kind(node) in MEMBER_KINDS:
                self._add(node, number)

    def _add(self, node: NodeId, switch: int) -> None:
        self[node] = switch
        if isinstance(node, int):
            self.setdefault(str(node), switch)

    def complaint(self, members: Sequence[object]) -> str:
        """Return what is wrong with the first of `members` that cannot be one."""
        for member in members:
            if isinstance(member, bool) or not isinstance(member, (str, int)):
                return f"{member!r} is neither a text nor a whole number"
            if member in self:
                continue
            if member == "":
                return "empty name"
            if member in self._isolated:
                return f"host {member!r} has no link to a switch"
            if member in self._centre.number:
                return f"{member!r} is of kind {self._centre.graph.kind(member)}: members are hosts or ToRs"
            return f"the fabric has no {member!r}"
        raise AssertionError(members)


def _records(lines: Iterator[str], fault: _Fault) -> Iterator[Record]:
    begin = [next(lines, "").removeprefix("\ufeff")]
    while begin[-1].isspace():
        begin.append(next(lines, ""))
    read = _json_records if begin[-1].lstrip().startswith("{") else _csv_records
    return read(chain(begin, lines), fault)


def _json_records(lines: Iterator[str], fault: _Fault) -> Iterator[Record]:
    for number, line in enumerate(lines, 1):
        if line.isspace() or not line:
            continue
        try:
            document = json.loads(line)
        except (ValueError, RecursionError) as error:
            message = error.msg if isinstance(error, json.JSONDecodeError) else "nested too deep or no number"
            raise fault(number, "", f"no JSON: {message}") from None
        if not isinstance(document, dict):
            raise fault(number, "", "no JSON object")
        if document.keys() != _KEYS:
            _complain(document.keys(), number, fault)
        yield number, document["group"], document["members"], document["rate_bps"]


def _csv_records(lines: Iterator[str], fault: _Fault) -> Iterator[Record]:
    reader = csv.reader(lines, strict=True)
    try:
        header = [name.strip() for name in next(filter(None, reader), [])]
        if set(header) != _KEYS or len(header) != len(COLUMNS):
            _complain(header, max(1, reader.line_num), fault)
        group, members, rate = (header.index(name) for name in COLUMNS)
        for row in reader:
            if len(row) == len(COLUMNS):
                names = row[members].split(MEMBER_SEPARATOR)
                if " " in row[members]:
                    names = [name.strip() for name in names]
                yield reader.line_num, row[group], names, row[rate]
            elif row:
                raise fault(reader.line_num, "", f"{len(row)} columns instead of {len(COLUMNS)}")
    except csv.Error as error:
        raise fault(reader.line_num, "", f"no CSV: {error}") from None


_KEYS = set(COLUMNS)
_MEMBER_TYPES = {str, int}


def _complain(found: Iterable[str], line: int, fault: _Fault) -> None:
    names = list(found)
    for name in COLUMNS:
        if name not in names:
            raise fault(line, name, "missing")
    for name in names:
        if name not in _KEYS or names.count(name) > 1:
            raise fault(line, str(name), "unknown" if name not in _KEYS else "given twice")


def _name(group: object, line: int, fault: _Fault) -> str:
    if type(group) not in _MEMBER_TYPES:
        raise fault(line, "group", f"{group!r} is neither a text nor a whole number")
    name = str(group)
    if not name or name.isspace():
        raise fault(line, "group", "is empty")
    return name


def _rate(rate: object, line: int, fault: _Fault) -> int:
    try:
        value = float(rate) if isinstance(rate, (str, int, float)) and not isinstance(rate, bool) else math.nan
    except (ValueError, OverflowError):
        value = math.nan
    if 0 <= value <= MAX_RATE_BPS:
        return round(value)
    what = "is negative" if value < 0 else "is no number" if math.isnan(value) else f"is above {MAX_RATE_BPS:g}"
    raise fault(line, "rate_bps", f"{str(rate)[:40]!r} {what}")
