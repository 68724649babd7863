"""Scenario files: an experiment written in YAML, checked as a whole, every fault with its line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from apps.emulation.plan import (
    DEFAULT_DURATION_S,
    DEFAULT_WARMUP_S,
    EVENT_KINDS,
    EventKind,
    EventPlan,
    ExperimentPlan,
    GroupPlan,
    ReceiverPlan,
    SenderPlan,
)
from controller.config.document import Node, Scalar, Sequence, decode, parse
from controller.config.faults import Faults, PolicyInvalid
from controller.config.read import NodeReader, step
from controller.wire.addresses import format_ip, is_multicast_ip, parse_ip
from topology.graph import Graph, NodeId

VERSION = 1
KEYS = ("version", "topology", "policy", "capacities", "warmup_s", "duration_s", "addresses", "groups", "events")
LONGEST_S = 3600.0
HIGHEST_RATE_BPS = 1e9
IGMP_VERSIONS = (1, 3)

MakeGraph = Callable[[str, dict[str, Any]], Graph]
ReadGraph = Callable[[Path], Graph]


class ScenarioInvalid(PolicyInvalid):
    """A scenario file that cannot be run; its text has one line per fault."""


def load_scenario(path: Path, make: MakeGraph, read: ReadGraph) -> ExperimentPlan:
    """Read a scenario file; `make` generates a topology by name, `read` loads one from a file.

    Raises ScenarioInvalid with every fault, OSError where the file cannot be read.
    """
    faults = Faults()
    text = decode(path.read_bytes(), faults)
    root = None if text is None else parse(text, faults)
    plan = None if root is None else _Scenario(NodeReader(faults), path, make, read).read(root)
    if faults.any_error or plan is None:
        raise ScenarioInvalid(faults.errors(), str(path))
    return plan


class _Scenario:
    """Reads one file; hosts, switches and links are looked up in its topology."""

    def __init__(self, reader: NodeReader, path: Path, make: MakeGraph, read: ReadGraph) -> None:
        self._reader = reader
        self._faults = reader.faults
        self._path = path
        self._make = make
        self._read_file = read
        self._graph = Graph()
        self._by_name: dict[str, NodeId] = {}

    def read(self, root: Node) -> ExperimentPlan | None:
        found = self._reader.record(root, "", KEYS, ("version", "topology", "groups"))
        if found is None or any(name not in found for name in ("version", "topology", "groups")):
            return None
        nodes = {name: node for name, (_, node) in found.items()}
        self._reader.integer(nodes["version"], "version", VERSION, VERSION)
        graph = self._topology(nodes["topology"])
        if graph is None:
            return None
        self._graph = graph
        self._by_name = {str(node): node for node in graph.nodes()}
        groups = tuple(self._reader.items(nodes["groups"], "groups", "a list of groups", self._group))
        duration_s = self._seconds(nodes, "duration_s", DEFAULT_DURATION_S, 0.1)
        events: list[EventPlan] = []
        if "events" in nodes:
            events = self._reader.items(
                nodes["events"], "events", "a list of events", lambda node, path: self._event(node, path, duration_s)
            )
        capacities = self._reader.boolean(nodes["capacities"], "capacities") if "capacities" in nodes else False
        return ExperimentPlan(
            graph,
            groups,
            tuple(sorted(events, key=lambda event: event.at_s)),
            self._policy(nodes),
            bool(capacities),
            self._seconds(nodes, "warmup_s", DEFAULT_WARMUP_S, 0.0),
            duration_s,
            self._addresses(nodes["addresses"]) if "addresses" in nodes else {},
        )

    def _addresses(self, node: Node) -> dict[str, NodeId]:
        """Return which host plays whom of a capture."""
        found: dict[str, NodeId] = {}
        for text, (line, child) in (self._reader.entries(node, "addresses", "IP addresses with hosts") or {}).items():
            path = step("addresses", text)
            host = self._host(child, path)
            try:
                address = format_ip(parse_ip(text))
            except ValueError:
                self._faults.error(line, path, f"{text!r} is not an IP address")
                continue
            if address in found:
                self._faults.error(line, path, f"{address} is there twice")
            elif host is not None:
                found[address] = host
        return found

    def _seconds(self, nodes: dict[str, Node], name: str, default: float, lower: float) -> float:
        if name not in nodes:
            return default
        value = self._reader.number(nodes[name], name, lower, LONGEST_S)
        return default if value is None else value

    def _topology(self, node: Node) -> Graph | None:
        found = self._reader.entries(node, "topology", "{name: ...} with its parameters, or {file: ...}")
        if found is None:
            return None
        both = [name for name in ("name", "file") if name in found]
        if len(both) != 1 or ("file" in found and len(found) > 1):
            self._faults.error(node.line, "topology", "needs either name, with its parameters, or file alone")
            return None
        value = self._reader.text(found[both[0]][1], f"topology.{both[0]}")
        if value is None:
            return None
        try:
            if both[0] == "file":
                return self._read_file(self._path.parent / value)
            parameters = self._reader.plain(node, "topology")
            del parameters["name"]
            return self._make(value, parameters)
        except (ValueError, TypeError, KeyError, OSError) as error:
            self._faults.error(found[both[0]][0], f"topology.{both[0]}", str(error))
            return None

    def _policy(self, nodes: dict[str, Node]) -> Path | None:
        if "policy" not in nodes:
            return None
        name = self._reader.text(nodes["policy"], "policy")
        if name is None:
            return None
        path = self._path.parent / name
        if not path.is_file():
            self._faults.error(nodes["policy"].line, "policy", f"{path}: no such file")
        return path

    def _node(self, node: Node, path: str, hosts: bool | None) -> NodeId | None:
        """Return a node of the topology; `hosts` True for a host, False for a switch, None for either."""
        if not isinstance(node, Scalar):
            self._reader.wrong_type(node, path, "the name of a node")
            return None
        found = self._by_name.get(node.text)
        if found is None:
            self._faults.error(node.line, path, f"{node.text!r} is not in the topology")
        elif hosts is not None and (found in set(self._graph.hosts())) is not hosts:
            self._faults.error(node.line, path, f"{node.text!r} is {'no host' if hosts else 'a host, not a switch'}")
        else:
            return found
        return None

    def _host(self, node: Node, path: str) -> NodeId | None:
        return self._node(node, path, True)

    def _address(self, node: Node, path: str) -> str | None:
        text = self._reader.text(node, path, "a multicast address")
        if text is None:
            return None
        try:
            address = parse_ip(text)
        except ValueError:
            address = b""
        if not address or not is_multicast_ip(address):
            self._faults.error(node.line, path, f"{text!r} is not a multicast address")
            return None
        return format_ip(address)

    def _group(self, node: Node, path: str) -> GroupPlan | None:
        keys = ("group", "senders", "receivers")
        found = self._reader.record(node, path, keys, keys)
        if found is None or len(found) < len(keys):
            return None
        address = self._address(found["group"][1], f"{path}.group")
        senders = self._reader.items(found["senders"][1], f"{path}.senders", "a list of senders", self._sender)
        receivers = self._reader.items(
            found["receivers"][1], f"{path}.receivers", "a list of receivers", self._receiver
        )
        return None if address is None else GroupPlan(address, tuple(senders), tuple(receivers))

    def _sender(self, node: Node, path: str) -> SenderPlan | None:
        keys = ("host", "rate_bps")
        found = self._reader.record(node, path, keys, keys, what="{host: ..., rate_bps: ...}")
        if found is None or len(found) < len(keys):
            return None
        host = self._host(found["host"][1], f"{path}.host")
        rate_bps = self._reader.number(found["rate_bps"][1], f"{path}.rate_bps", 1.0, HIGHEST_RATE_BPS)
        return None if host is None or rate_bps is None else SenderPlan(host, rate_bps)

    def _receiver(self, node: Node, path: str) -> ReceiverPlan | None:
        if isinstance(node, Scalar):
            host = self._host(node, path)
            return None if host is None else ReceiverPlan(host)
        found = self._reader.record(node, path, ("host", "include", "exclude", "igmp_version"), ("host",))
        if found is None or "host" not in found:
            return None
        host = self._host(found["host"][1], f"{path}.host")
        filters = {
            name: tuple(self._reader.items(found[name][1], f"{path}.{name}", "a list of hosts", self._host))
            for name in ("include", "exclude")
            if name in found
        }
        if len(filters) > 1:
            self._faults.error(node.line, path, "include and exclude cannot both be given")
        version = None
        if "igmp_version" in found:
            version = self._reader.integer(found["igmp_version"][1], f"{path}.igmp_version", *IGMP_VERSIONS)
        if host is None:
            return None
        return ReceiverPlan(host, filters.get("include", ()), filters.get("exclude", ()), version)

    def _event(self, node: Node, path: str, duration_s: float) -> EventPlan | None:
        found = self._reader.record(node, path, ("at_s", "do", "link", "switch", "host", "group"), ("at_s", "do"))
        if found is None or "at_s" not in found or "do" not in found:
            return None
        at_s = self._reader.number(found["at_s"][1], f"{path}.at_s", 0.0, duration_s)
        word = self._reader.choice(found["do"][1], f"{path}.do", EVENT_KINDS)
        if at_s is None or word is None:
            return None
        kind: EventKind = next(known for known in EVENT_KINDS if known == word)
        wanted = {"link": ("link",), "switch": ("switch",)}.get(kind.partition("-")[0], ("host", "group"))
        for name in found:
            if name not in ("at_s", "do", *wanted):
                self._faults.error(found[name][0], f"{path}.{name}", f"has no meaning for {kind}")
        missing = [name for name in wanted if name not in found]
        if missing:
            self._faults.error(node.line, path, f"{kind} needs {' and '.join(missing)}")
            return None
        if wanted == ("link",):
            ends = self._link(found["link"][1], f"{path}.link")
            return None if ends is None else EventPlan(at_s, kind, ends)
        end = self._node(found[wanted[0]][1], f"{path}.{wanted[0]}", wanted[0] == "host")
        group = self._address(found["group"][1], f"{path}.group") if "group" in found else ""
        return None if end is None or group is None else EventPlan(at_s, kind, (end,), group)

    def _link(self, node: Node, path: str) -> tuple[NodeId, ...] | None:
        ends = tuple(
            self._reader.items(node, path, "a list of two nodes", lambda item, at: self._node(item, at, None))
        )
        if len(ends) == 2 and self._graph.has_link(*ends):
            return ends
        if isinstance(node, Sequence) and len(ends) == len(node.items):
            self._faults.error(node.line, path, "these are not the two ends of a link")
        return None
