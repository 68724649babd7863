"""Assembles a graph from the records of a file, whatever its format, and refuses what makes no fabric."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from ipaddress import IPv4Address
from typing import Any, NamedTuple

from topology.files.faults import MAX_LINKS, MAX_NAME_CHARACTERS, MAX_NODES, TopologyFileError
from topology.graph import DEFAULT_CAPACITY_BPS, Graph, NodeId, NodeKind

MAC = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}", re.ASCII)
HIGHEST_DPID = 2**64 - 1
HIGHEST_PORT_NO = 0xFFFFFF00
"""OFPP_MAX (OpenFlow 1.3.5, section A.2.1)."""


class RecordPosition(NamedTuple):
    """Where a record stands: its line or its path in the document, as far as the format has them."""

    line: int | None = None
    path: str = ""


class LoadedTopology(NamedTuple):
    """What a topology file holds; `terminals` are those of a Steiner problem, empty elsewhere."""

    graph: Graph
    terminals: tuple[NodeId, ...] = ()

    def node(self, name: str) -> NodeId:
        """Return the node whose id reads `name` (KeyError where none does)."""
        if name in self.graph:
            return name
        if re.fullmatch(r"0|-?[1-9][0-9]{0,19}", name) and int(name) in self.graph:
            return int(name)
        raise KeyError(name)


class Assembly:
    """Takes the nodes and links of one file; every method raises TopologyFileError for what cannot be.

    Of the attributes of nodes ``kind`` (a switch where it is missing), ``pod``, ``dpid``, ``ip`` and ``mac`` are
    read, of those of links ``capacity_bps``, ``weight``, and either ``ports`` or ``source_port`` and
    ``target_port``. Others are left out.
    """

    def __init__(self, source: str) -> None:
        self.source = source
        self.graph = Graph()
        self._names: set[str] = set()
        self._unique: set[tuple[str, object]] = set()
        self._link_count = 0

    def fault(self, message: str, place: RecordPosition, field: str = "") -> TopologyFileError:
        """Return the error to raise for a fault at `place`."""
        path = f"{place.path}.{field}" if place.path and field else place.path or field
        return TopologyFileError(self.source, message, place.line, path)

    def node(self, node: object, attributes: Mapping[str, Any], place: RecordPosition) -> None:
        """Add a node that is not there yet."""
        self._identify(node, place)
        if node in self.graph or str(node) in self._names:
            raise self.fault(f"second node with the id {node!r}", place, "id")
        self._names.add(str(node))
        if len(self.graph) >= MAX_NODES:
            raise self.fault(f"more than {MAX_NODES} nodes", place)
        name = attributes.get("kind", NodeKind.SWITCH)
        if name not in list(NodeKind):
            raise self.fault(f"{name!r} is none of: {', '.join(NodeKind)}", place, "kind")
        self.graph.add_node(node, NodeKind(name), **self._known(attributes, place))

    def end(self, node: object, place: RecordPosition) -> None:
        """Add a node that only links name, unless it is there."""
        self._identify(node, place)
        if node not in self.graph:
            self.node(node, {}, place)

    def _identify(self, node: object, place: RecordPosition) -> None:
        if isinstance(node, bool) or not isinstance(node, (str, int)):
            raise self.fault(f"{node!r} is neither a text nor a whole number", place, "id")
        if isinstance(node, int) and abs(node) > HIGHEST_DPID:
            raise self.fault(f"is beyond {HIGHEST_DPID}", place, "id")
        if isinstance(node, str) and not (node.isprintable() and 0 < len(node) <= MAX_NAME_CHARACTERS):
            raise self.fault(
                f"{node[:20]!r} does not have 1 to {MAX_NAME_CHARACTERS} characters, all printable", place, "id"
            )

    def _known(self, attributes: Mapping[str, Any], place: RecordPosition) -> dict[str, Any]:
        known: dict[str, Any] = {}
        pod, dpid, ip, mac = (attributes.get(name) for name in ("pod", "dpid", "ip", "mac"))
        if pod is not None:
            if isinstance(pod, bool) or not isinstance(pod, (int, str)) or len(str(pod)) > MAX_NAME_CHARACTERS:
                raise self.fault("is neither a short text nor a whole number", place, "pod")
            known["pod"] = pod
        if dpid is not None:
            known["dpid"] = self._whole(dpid, 1, HIGHEST_DPID, place, "dpid")
        if ip is not None:
            try:
                known["ip"] = str(IPv4Address(ip if isinstance(ip, str) else ""))
            except ValueError:
                raise self.fault(f"{ip!r} is no IPv4 address", place, "ip") from None
        if mac is not None:
            if not isinstance(mac, str) or not MAC.fullmatch(mac.lower()):
                raise self.fault(f"{mac!r} is no MAC address", place, "mac")
            known["mac"] = mac.lower()
        for name in ("dpid", "ip", "mac"):
            if name in known:
                self._once(name, known[name], f"second node with the {name} {known[name]}", place)
        return known

    def _once(self, what: str, value: object, message: str, place: RecordPosition) -> None:
        if (what, value) in self._unique:
            raise self.fault(message, place, what)
        self._unique.add((what, value))

    def _whole(self, value: object, lower: int, upper: int, place: RecordPosition, field: str) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not lower <= value <= upper:
            raise self.fault(f"{value!r} is not a whole number from {lower} to {upper}", place, field)
        return value

    def link(self, u: object, v: object, attributes: Mapping[str, Any], place: RecordPosition) -> None:
        """Add a link between two nodes that are there."""
        for node, end in ((u, "source"), (v, "target")):
            self._identify(node, place)
            if node not in self.graph:
                raise self.fault(f"there is no node {node!r}", place, end)
        if u == v:
            raise self.fault(f"self-loop at {u!r}", place)
        if self.graph.has_link(u, v):
            raise self.fault(f"second link between {u!r} and {v!r}", place)
        self._link_count += 1
        if self._link_count > MAX_LINKS:
            raise self.fault(f"more than {MAX_LINKS} links", place)
        capacity_bps = self._number(attributes, "capacity_bps", DEFAULT_CAPACITY_BPS, place)
        if capacity_bps <= 0:
            raise self.fault(f"{capacity_bps:.15g} is not positive", place, "capacity_bps")
        weight = self._number(attributes, "weight", 1.0, place)
        if weight < 0:
            raise self.fault(f"{weight:.15g} is negative", place, "weight")
        ports = attributes.get("ports")
        if ports is None:
            u_port, v_port = attributes.get("source_port"), attributes.get("target_port")
            fields = ("source_port", "target_port")
        elif isinstance(ports, Mapping) and set(ports) <= {u, v, str(u), str(v)}:
            u_port, v_port = (ports.get(node, ports.get(str(node))) for node in (u, v))
            fields = ("ports", "ports")
        else:
            raise self.fault("does not map the two ends to port numbers", place, "ports")
        for node, port, field in ((u, u_port, fields[0]), (v, v_port, fields[1])):
            if port is not None:
                lowest = 0 if self.graph.kind(node) in (NodeKind.HOST, NodeKind.SWITCH) else 1
                self._whole(port, lowest, HIGHEST_PORT_NO, place, field)
                self._once(field, (node, port), f"second link at port {port} of {node!r}", place)
        self.graph.add_link(u, v, u_port, v_port, capacity_bps, weight)

    def _number(self, attributes: Mapping[str, Any], field: str, default: float, place: RecordPosition) -> float:
        value = attributes.get(field, default)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise self.fault(f"{value!r} is no number", place, field)
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            raise self.fault("is no finite number", place, field)
        return number
