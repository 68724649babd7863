"""Files of templates: named settings for the switches, ports and interfaces that a selector chooses."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

from controller.config.document import MAX_BYTES, Mapping, Node, Scalar, Sequence, decode, parse
from controller.config.faults import Faults, PolicyInvalid, quoted
from controller.config.read import NodeReader, scalar_value
from controller.config.terms import MAX_PORT_NO
from controller.snapshot.selectors import SelectorInvalid, parse_selector
from controller.wire.dpids import looks_like_dpid, parse_dpid

SECTIONS = {
    "bridge": "Bridge",
    "controller": "Controller",
    "mirror": "Mirror",
    "port": "Port",
    "interface": "Interface",
    "qos": "QoS",
    "queue": "Queue",
}
"""What settings of each table stand under."""

_TEMPLATE_KEYS = ("about", "select", "resources", *SECTIONS)

SHIPPED = """\
version: 1
templates:
  openflow-fabric:
    about: a bridge that the controller alone decides on, by OpenFlow 1.3
    bridge:
      fail_mode: secure
      protocols: [OpenFlow13]
      stp_enable: false
      rstp_enable: false
      mcast_snooping_enable: false
      "other_config:disable-in-band": "true"
"""
"""Templates that are there without a file."""


class TemplateSetting(NamedTuple):
    """A setting: a column of a table, or a key in a column that is a map; None has it empty, or the key not there."""

    table: str
    column: str
    key: str | None
    value: Any
    place: str

    @property
    def name(self) -> str:
        """The column, and the key in it, as the file has them."""
        return self.column if self.key is None else f"{self.column}:{self.key}"


class SwitchTemplate(NamedTuple):
    """A template; `select` '' stands for every switch and every port.

    `resources`, where it is given, are switches by datapath id, with None, and ports by that and their number: it is
    about no others.
    """

    name: str
    about: str
    select: str
    resources: frozenset[tuple[int, int | None]] | None
    settings: tuple[TemplateSetting, ...]
    place: str


def read_templates(data: bytes, source: str) -> tuple[SwitchTemplate, ...]:
    """Return the templates of a file, in its order; PolicyInvalid with all its faults, each with its line."""
    faults = Faults()
    if len(data) > MAX_BYTES:
        faults.error(1, "", f"the file is larger than {MAX_BYTES} bytes")
        raise PolicyInvalid(faults.errors(), source)
    text = decode(data, faults)
    root = None if text is None else parse(text, faults)
    found: list[SwitchTemplate] = []
    if root is not None:
        reader = NodeReader(faults)
        record = reader.record(
            root, "", ("version", "templates"), ("version", "templates"), what="version, templates"
        )
        if record is not None and "version" in record:
            reader.integer(record["version"][1], "version", 1, 1)
        if record is not None and "templates" in record:
            entries = reader.entries(record["templates"][1], "templates", "a mapping of names to templates") or {}
            for name, (line, node) in entries.items():
                found.append(_template(reader, name, line, node, source))
    if faults.any_error:
        raise PolicyInvalid(faults.errors(), source)
    return tuple(found)


def _template(reader: NodeReader, name: str, line: int, node: Node, source: str) -> SwitchTemplate:
    path = f"templates.{name}"
    record = reader.record(node, path, _TEMPLATE_KEYS, (), what=f"a mapping with {', '.join(SECTIONS)}") or {}
    about = reader.text(record["about"][1], f"{path}.about", "a text") if "about" in record else ""
    select = reader.text(record["select"][1], f"{path}.select", "a selector") if "select" in record else ""
    if select:
        try:
            parse_selector(select)
        except SelectorInvalid as error:
            reader.faults.error(record["select"][0], f"{path}.select", str(error))
    resources = None
    if "resources" in record:
        what = "a list of switches and ports"
        resources = frozenset(
            reader.items(record["resources"][1], f"{path}.resources", what, partial(_resource, reader))
        )
    settings = [
        setting
        for section, table in SECTIONS.items()
        if section in record
        for setting in _settings(reader, table, record[section][1], f"{path}.{section}", source)
    ]
    if not settings and not reader.faults.any_error:
        reader.faults.error(line, path, f"no settings: name {', '.join(SECTIONS)}")
    return SwitchTemplate(name, about or "", select or "", resources, tuple(settings), f"{source}:{line}")


def _resource(reader: NodeReader, node: Node, path: str) -> tuple[int, int | None] | None:
    """Return a switch, or a port as ``26:3``."""
    text = node.text if isinstance(node, Scalar) else ""
    if looks_like_dpid(text):
        switch, colon, port_no = text, "", ""
    else:
        switch, colon, port_no = text.rpartition(":")
    try:
        dpid = parse_dpid(switch)
    except ValueError:
        dpid = 0
    is_port = port_no.isascii() and port_no.isdecimal() and 1 <= int(port_no[:11]) <= MAX_PORT_NO
    if not dpid or (colon and not is_port):
        reader.faults.error(node.line, path, f"{quoted(text)} is no switch and no port, such as 26 and 26:3")
        return None
    return dpid, int(port_no) if colon else None


def _settings(reader: NodeReader, table: str, node: Node, path: str, source: str) -> Iterator[TemplateSetting]:
    for name, (line, child) in (reader.entries(node, path, "a mapping of columns to values") or {}).items():
        column, colon, key = name.partition(":")
        if colon and not key:
            reader.faults.error(line, path, f"{quoted(name)}: expected COLUMN or COLUMN:KEY")
            continue
        yield TemplateSetting(table, column, key if colon else None, _value(reader, child, path), f"{source}:{line}")


def _value(reader: NodeReader, node: Node, path: str) -> Any:
    if isinstance(node, Scalar):
        return scalar_value(node)
    if isinstance(node, Sequence):
        return tuple(_value(reader, item, path) for item in node.items)
    what = "a mapping: write COLUMN:KEY for each key" if isinstance(node, Mapping) else "an alias"
    reader.faults.error(node.line, path, f"expected a value or a list of values, not {what}")
    return None
