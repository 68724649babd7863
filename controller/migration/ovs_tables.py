"""Rows of Open vSwitch's database, as JSON tables or as `ovs-vsctl show` prints them, with their lines."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import yaml

from controller.migration.report import BadConfiguration, Fault, ImportReport, InputFile, Place
from controller.migration.yaml_file import YamlFile, int_of, is_integer

TABLES = ("Bridge", "Port", "Interface")
_MARKS = {"Bridge": "datapath_id", "Port": "vlan_mode", "Interface": "ofport"}
"""By a column that no other of the tables has, tables are told that come without their name."""


class Cell(NamedTuple):
    """A column of a row: its value, maps as dictionaries and sets as lists, and where it stands."""

    value: Any
    place: Place


class OvsRow(NamedTuple):
    """A row of a table, by columns."""

    table: str
    cells: dict[str, Cell]
    place: Place

    def get(self, column: str) -> Any:
        """Return the value of a column; None where there is none, or an empty set."""
        value = self.cells[column].value if column in self.cells else None
        return None if value == [] else value

    @property
    def name(self) -> str:
        """The row's name."""
        return str(self.get("name") or "")


def read_rows(source: InputFile, report: ImportReport, faults: list[Fault]) -> Iterator[OvsRow]:
    """Yield the rows of a file: JSON tables, one or several, or what `ovs-vsctl show` prints."""
    text = source.text.lstrip()
    if not text:
        faults.append(Fault(source.name, 0, "the file is empty"))
    elif text[0] == "{":
        for document in _documents(source):
            yield from _table(document, report, faults)
    else:
        yield from _shown(source, report, faults)


def _documents(source: InputFile) -> Iterator[InputFile]:
    """Yield JSON documents that stand one after the other, each with empty lines in place of what is before it."""
    decoder = json.JSONDecoder()
    text, at = source.text, 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        line = text.count("\n", 0, at)
        try:
            _, end = decoder.raw_decode(text, at)
        except json.JSONDecodeError as error:
            raise BadConfiguration([Fault(source.name, error.lineno, f"JSON syntax: {error.msg}")]) from None
        except RecursionError:
            raise BadConfiguration([Fault(source.name, line + 1, "JSON that is nested too deeply")]) from None
        yield InputFile(source.name, "\n" * line + text[at:end])
        at = end


def _table(source: InputFile, report: ImportReport, faults: list[Fault]) -> Iterator[OvsRow]:
    file = YamlFile(source, faults)
    fields = file.entries(file.root, "a table") if file.root is not None else {}
    if "headings" not in fields or "data" not in fields:
        file.fault(
            file.root, "no table: expected `headings` and `data`, as `ovs-vsctl --format=json list` prints them"
        )
        return
    report.idle(file.place(file.root), "what holds the rows below")
    headings = [file.text(node, "a column") or "" for node in file.items(fields["headings"].node, "columns")]
    caption = str(getattr(fields["caption"].node, "value", "")) if "caption" in fields else ""
    table = next((name for name in TABLES if caption.startswith(name)), "")
    table = table or next((name for name, mark in _MARKS.items() if mark in headings), "")
    for row in file.items(fields["data"].node, "rows"):
        place = file.place(row)
        values = list(file.items(row, "a row"))
        if len(values) != len(headings):
            file.fault(row, f"a row of {len(values)} values, while there are {len(headings)} columns")
            continue
        cells = {name: Cell(_value(node), file.place(node)) for name, node in zip(headings, values, strict=True)}
        if table:
            yield OvsRow(table, cells, place)
        else:
            report.idle(place, "a table that says nothing of switches, ports and VLANs")


def _value(node: yaml.Node) -> Any:
    """Return what a cell of OVSDB's JSON says (RFC 7047, 5.1): sets as lists, maps as dictionaries."""
    if isinstance(node, yaml.ScalarNode):
        if is_integer(node):
            return int_of(node)
        return {"true": True, "false": False}.get(node.value, node.value) if node.style in (None, "") else node.value
    if not isinstance(node, yaml.SequenceNode) or len(node.value) != 2:
        return None
    kind, content = (node.value[0].value, node.value[1])
    if kind == "set" and isinstance(content, yaml.SequenceNode):
        return [_value(item) for item in content.value]
    if kind == "map" and isinstance(content, yaml.SequenceNode):
        pairs = [pair.value for pair in content.value if isinstance(pair, yaml.SequenceNode) and len(pair.value) == 2]
        return {str(_value(key)): _value(value) for key, value in pairs}
    return _value(content)


def _shown(source: InputFile, report: ImportReport, faults: list[Fault]) -> Iterator[OvsRow]:
    """Yield the rows of `ovs-vsctl show`: what is indented below `Bridge`, `Port` and `Interface` is theirs."""
    rows: list[OvsRow] = []
    lasts: dict[int, int] = {}
    open_rows: list[tuple[int, OvsRow]] = []
    for number, line in enumerate(source.text.splitlines(), 1):
        text = line.strip()
        if not text:
            continue
        place = Place(source.name, number, number)
        depth = len(line) - len(line.lstrip())
        open_rows = [(at, row) for at, row in open_rows if at < depth]
        for _, row in open_rows:
            lasts[id(row)] = number
        kind, _, rest = text.partition(" ")
        column, colon, value = text.partition(":")
        if kind in TABLES and not text.endswith(":"):
            row = OvsRow(kind, {"name": Cell(_unquoted(rest), place)}, place)
            if open_rows:
                owner = open_rows[-1][1]
                column = {"Port": "ports", "Interface": "interfaces"}.get(kind, "")
                owner.cells.setdefault(column, Cell([], owner.place)).value.append(_unquoted(rest))
            open_rows.append((depth, row))
            rows.append(row)
        elif colon and open_rows and depth > open_rows[-1][0] and value.strip() and " " not in column:
            open_rows[-1][1].cells.setdefault(column, Cell(_shown_value(value.strip()), place))
        elif depth and not open_rows and not colon and kind not in ("Manager", "Controller"):
            faults.append(Fault(source.name, number, "not what `ovs-vsctl show` prints: a line that is in no bridge"))
        else:
            report.idle(place, "a setting of the switch itself, which stays there")
    if not rows and not faults:
        faults.append(Fault(source.name, 1, "neither JSON tables, nor what `ovs-vsctl show` prints"))
    for row in rows:
        yield row._replace(place=row.place._replace(last=lasts.get(id(row), row.place.line)))


def _unquoted(text: str) -> str:
    return text.strip().strip('"')


def _shown_value(text: str) -> Any:
    if text.startswith("["):
        return [_shown_value(word.strip()) for word in text.strip("[]").split(",") if word.strip()]
    return int(text) if text.isdecimal() else {"true": True, "false": False}.get(text, _unquoted(text))
