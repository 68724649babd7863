"""Typed reading of nodes: each reader returns a value, or records a fault with its line and returns None."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection
from typing import Any, TypeVar

from controller.config.anomaly_settings import PEER_GROUPS, GroupWindows, PeerWindows
from controller.config.declarations import Section, Setting, SettingType, declared
from controller.config.document import Alias, Mapping, Node, Scalar, Sequence
from controller.config.faults import Faults, quoted
from controller.config.overcommit_settings import MOST_ENTRIES, TableCapacity, TableShare, TenantShare
from controller.config.service_class_settings import StaticTrees
from controller.config.settings import REQUIRED_THRESHOLD_KEYS, Threshold
from controller.config.terms import (
    MAX_PORT_NO,
    Prefix,
    SwitchLink,
    SwitchPort,
    is_ovsdb_target,
    parse_group_prefix,
)
from controller.kernel.domains import address_of, domain_of, in_domain
from controller.service_classes.pool import MAX_ALIASES
from controller.wire.addresses import format_ip, is_multicast_ip, parse_ip, parse_name
from controller.wire.dpids import MAX_DPID, parse_dpid

T = TypeVar("T")

_INTEGER = re.compile(r"[+-]?(0|[1-9][0-9]{0,30})\Z|0x[0-9a-fA-F]{1,16}\Z")
_NUMBER = re.compile(r"[+-]?([0-9]{1,30}\.?[0-9]{0,30}|\.[0-9]{1,30})([eE][+-]?[0-9]{1,5})?\Z")
_NOT_FINITE = re.compile(r"[+-]?\.(inf|nan)\Z", re.IGNORECASE)
_STEP = re.compile(r"[A-Za-z0-9_-]+\Z")
_BOOLEANS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
_NULLS = ("", "~", "null", "Null", "NULL")


_IN_VLAN = "an IPv4 address with @ and its VLAN, such as 10.0.20.250@20"


def scalar_value(node: Scalar) -> bool | int | float | str | None:
    """Return what a scalar stands for; quoted ones are always text."""
    text = node.text
    if not node.plain:
        return text
    if text in _NULLS:
        return None
    if text.lower() in _BOOLEANS:
        return _BOOLEANS[text.lower()]
    if _INTEGER.match(text):
        return int(text, 0)
    if _NUMBER.match(text):
        return float(text)
    if _NOT_FINITE.match(text):
        return float(text.replace(".", ""))
    return text


def kind_of(node: Node) -> str:
    """Return the words for what a node is, for messages."""
    match node:
        case Sequence():
            return "a list"
        case Mapping():
            return "a mapping"
        case Alias():
            return "an alias"
        case Scalar():
            value = scalar_value(node)
            if value is None:
                return "nothing"
            kind = {bool: "the boolean", int: "the number", float: "the number", str: "the text"}[type(value)]
            return f"{kind} {quoted(node.text)}"


def step(path: str, key: str) -> str:
    """Return the path of an entry of the mapping at `path`."""
    if not _STEP.match(key):
        return f"{path}[{quoted(key)}]"
    return f"{path}.{key}" if path else key


def bound(value: float) -> str:
    """Return a bound as text, whole numbers with all their digits."""
    return str(int(value)) if value == int(value) else f"{value:g}"


class NodeReader:
    """Reads nodes into values and keeps the faults."""

    def __init__(self, faults: Faults) -> None:
        self.faults = faults
        self.switch_names: dict[str, int] = {}
        self.tenant_names: dict[str, int] = {}
        self.standing_ports: dict[SwitchPort, SwitchPort] = {}
        """For each port of a link aggregation group the one that stands for all of it."""
        self.vlan_of_name: Callable[[str], int] = _no_vlan
        """Returns the VLAN of a name; ValueError, which says so, where there is none."""

    def wrong_type(self, node: Node, path: str, expected: str) -> None:
        """Record that a node is not what it should be (an alias has been reported already)."""
        if not isinstance(node, Alias):
            self.faults.error(node.line, path, f"expected {expected}, found {kind_of(node)}")

    def entries(
        self, node: Node, path: str, what: str = "a mapping", text_keys: bool = True
    ) -> dict[str, tuple[int, Node]] | None:
        """Return the values of a mapping with their keys' lines; the first of duplicate keys counts."""
        if not isinstance(node, Mapping):
            self.wrong_type(node, path, what)
            return None
        found: dict[str, tuple[int, Node]] = {}
        for key, value in node.pairs:
            if not isinstance(key, Scalar):
                self.wrong_type(key, path, "a text as key")
            elif text_keys and not isinstance(scalar_value(key), str):
                self.wrong_type(key, step(path, key.text), "a text as key (put it in quotes)")
            elif key.text in found:
                first = found[key.text][0]
                self.faults.error(key.line, step(path, key.text), f"duplicate key, first on line {first}")
            else:
                found[key.text] = (key.line, value)
        return found

    def record(
        self, node: Node, path: str, known: Collection[str], required: Collection[str] = (), what: str = "a mapping"
    ) -> dict[str, tuple[int, Node]] | None:
        """Return the values of a mapping whose keys are given; unknown and missing ones are errors."""
        found = self.entries(node, path, what)
        if found is None:
            return None
        for name in [name for name in found if name not in known]:
            line, _ = found.pop(name)
            self.faults.error(line, step(path, name), f"unknown key{self.faults.suggestion(name, known)}")
        for name in required:
            if name not in found:
                self.faults.error(node.line, step(path, name), "missing")
        return found

    def items(self, node: Node, path: str, what: str, read: Callable[[Node, str], T | None]) -> list[T]:
        """Return the readable items of a list."""
        if not isinstance(node, Sequence):
            self.wrong_type(node, path, what)
            return []
        values = (read(item, f"{path}[{index}]") for index, item in enumerate(node.items))
        return [value for value in values if value is not None]

    def text(self, node: Node, path: str, what: str = "a text") -> str | None:
        """Return a text that is not empty."""
        if isinstance(node, Scalar) and isinstance(scalar_value(node), str) and node.text:
            return node.text
        self.wrong_type(node, path, what)
        return None

    def choice(self, node: Node, path: str, choices: Collection[str]) -> str | None:
        """Return one of the given texts."""
        what = "one of " + ", ".join(choices)
        if isinstance(node, Scalar) and node.text in choices and isinstance(scalar_value(node), bool):
            return node.text  # off, as YAML 1.2 reads it: a text
        text = self.text(node, path, what)
        if text is None or text in choices:
            return text
        near = self.faults.suggestion(text, choices)
        self.faults.error(node.line, path, f"expected {what}, found {quoted(text)}{near}")
        return None

    def boolean(self, node: Node, path: str) -> bool | None:
        """Return a boolean."""
        value = scalar_value(node) if isinstance(node, Scalar) else None
        if isinstance(value, bool):
            return value
        self.wrong_type(node, path, "true or false")
        return None

    def integer(self, node: Node, path: str, lower: float, upper: float) -> int | None:
        """Return a whole number within inclusive bounds, decimal or with 0x in front."""
        value = scalar_value(node) if isinstance(node, Scalar) else None
        if type(value) is not int:
            self.wrong_type(node, path, "a whole number")
            return None
        return value if self._within(node, path, value, lower, upper) else None

    def number(self, node: Node, path: str, lower: float, upper: float) -> float | None:
        """Return a finite number within inclusive bounds."""
        value = scalar_value(node) if isinstance(node, Scalar) else None
        if type(value) is not int and type(value) is not float:
            self.wrong_type(node, path, "a number")
            return None
        if not math.isfinite(value):
            self.faults.error(node.line, path, f"expected a finite number, found {kind_of(node)}")
            return None
        return float(value) if self._within(node, path, value, lower, upper) else None

    def dpid(self, node: Node, path: str) -> int | None:
        """Return a datapath id: a whole number, a text of hexadecimal digits, or the name of a switch."""
        value = scalar_value(node) if isinstance(node, Scalar) else None
        if not isinstance(node, Scalar) or not isinstance(value, str):
            if isinstance(value, float):
                self.faults.error(node.line, path, f"{kind_of(node)} could be read in several ways: put it in quotes")
                return None
            return self.integer(node, path, 1, MAX_DPID)
        if node.text in self.switch_names:
            return self.switch_names[node.text]
        try:
            return parse_dpid(node.text)
        except ValueError as error:
            near = self.faults.suggestion(node.text, self.switch_names)
            self.faults.error(node.line, path, f"{error}, and no switch of that name{near}")
            return None

    def switch_port(self, node: Node, path: str) -> SwitchPort | None:
        """Return a port written as ``{dpid: 1, port: 3}``."""
        both = ("dpid", "port")
        found = self.record(node, path, both, both, what="{dpid: ..., port: ...}")
        if found is None:
            return None
        dpid = self.dpid(found["dpid"][1], f"{path}.dpid") if "dpid" in found else None
        port_no = self.integer(found["port"][1], f"{path}.port", 1, MAX_PORT_NO) if "port" in found else None
        return None if dpid is None or port_no is None else SwitchPort(dpid, port_no)

    def host_port(self, node: Node, path: str) -> SwitchPort | None:
        """Return the port by which hosts at a port are known: that which stands for its link aggregation group."""
        port = self.switch_port(node, path)
        return None if port is None else self.standing_ports.get(port, port)

    def switch_link(self, node: Node, path: str) -> SwitchLink | None:
        """Return a link written as a list of its two ends."""
        ends = self.items(node, path, "[{dpid, port}, {dpid, port}]", self.switch_port)
        if not isinstance(node, Sequence) or (len(node.items) == 2 and len(ends) < 2):
            return None
        if len(ends) != 2 or ends[0].dpid == ends[1].dpid:
            self.faults.error(node.line, path, "expected the two ends of a link, at different switches")
            return None
        return SwitchLink(*sorted(ends))

    def settings(self, type_: type[T], node: Node, path: str, required: Collection[str] = ()) -> T:
        """Return a section of settings, with the default for each that is absent or wrong."""
        known = declared(type_)
        found = self.record(node, path, known, required)
        values: dict[str, Any] = {}
        for name, (_, child) in (found or {}).items():
            entry = known[name]
            if isinstance(entry, Section):
                values[name] = self.settings(entry.type, child, f"{path}.{name}")
                continue
            value = self._setting(entry, child, f"{path}.{name}")
            if value is not None:
                values[name] = value
        return type_(**values)

    def plain(self, node: Node, path: str) -> Any:
        """Return a node as dicts, lists, texts, numbers, booleans and None, unchecked but for duplicate keys."""
        match node:
            case Mapping():
                found = self.entries(node, path, text_keys=False)
                return {key: self.plain(child, step(path, key)) for key, (_, child) in (found or {}).items()}
            case Sequence(items=items):
                return [self.plain(child, f"{path}[{index}]") for index, child in enumerate(items)]
            case Scalar():
                return scalar_value(node)
        return None

    def _within(self, node: Node, path: str, value: float, lower: float, upper: float) -> bool:
        if lower <= value <= upper:
            return True
        self.faults.error(node.line, path, f"{value} is not within {bound(lower)} and {bound(upper)}")
        return False

    def _setting(self, entry: Setting, node: Node, path: str) -> Any:
        lower, upper = entry.lower or 0, entry.upper or 0
        match entry.type:
            case SettingType.INTEGER:
                return self.integer(node, path, lower, upper)
            case SettingType.NUMBER:
                return self.number(node, path, lower, upper)
            case SettingType.BOOLEAN:
                return self.boolean(node, path)
            case SettingType.CHOICE:
                return self.choice(node, path, entry.choices)
            case SettingType.TEXT:
                return self.text(node, path)
            case SettingType.WORDS:
                return tuple(self.items(node, path, "a list of words", self.text))
            case SettingType.SWITCHES:
                return frozenset(self.items(node, path, "a list of datapath ids", self.dpid))
            case SettingType.LINKS:
                return frozenset(self.items(node, path, "a list of links", self.switch_link))
            case SettingType.THRESHOLDS:
                return tuple(self.items(node, path, "a list of thresholds", self._threshold))
            case SettingType.STATIC_TREES:
                return self._static_trees(node, path)
            case SettingType.CAPACITIES:
                return self._capacities(node, path)
            case SettingType.TENANT_SHARES:
                return self._tenant_shares(node, path)
            case SettingType.PEER_WINDOWS:
                return self._peer_windows(node, path)
            case SettingType.OVSDB_SERVERS:
                return tuple(self.items(node, path, "a list of OVSDB servers", self._ovsdb_server))
            case SettingType.IP | SettingType.IPV4 | SettingType.IPV6_LINK_LOCAL:
                return self._address(entry.type, node, path)
            case SettingType.IPV4_IN_VLANS:
                return self._addresses_in_vlans(node, path)
            case SettingType.PORTS:
                return frozenset(self.items(node, path, "a list of {dpid, port}", self.switch_port))
            case SettingType.BOOLEAN_OR_PORTS:
                if isinstance(node, Sequence):
                    return frozenset(self.items(node, path, "a list of {dpid, port}", self.switch_port))
                if isinstance(node, Scalar) and isinstance(value := scalar_value(node), bool):
                    return value
                self.wrong_type(node, path, entry.type)
                return None

    def _threshold(self, node: Node, path: str) -> Threshold | None:
        found = self.settings(Threshold, node, path, REQUIRED_THRESHOLD_KEYS)
        upper, lower = found.raise_above, found.clear_below
        if upper is not None and lower is not None and lower > upper:
            self.faults.error(node.line, f"{path}.clear_below", f"{lower:g} is above raise_above {upper:g}")
        return found

    def _static_trees(self, node: Node, path: str) -> tuple[StaticTrees, ...]:
        first: dict[Prefix, int] = {}
        trees = []
        for text, (line, child) in (self.entries(node, path, "a mapping of groups to numbers") or {}).items():
            own_path = step(path, text)
            count = self.integer(child, own_path, 1, MAX_ALIASES)
            try:
                groups = parse_group_prefix(text)
            except ValueError as error:
                self.faults.error(line, own_path, str(error))
                continue
            if groups in first:
                self.faults.error(line, own_path, f"{groups} has its number already, on line {first[groups]}")
            first.setdefault(groups, line)
            if count is not None:
                trees.append(StaticTrees(groups, count))
        return tuple(trees)

    def _capacities(self, node: Node, path: str) -> tuple[TableCapacity, ...]:
        known = self.entries(node, path, "a mapping of switches to numbers", text_keys=False) or {}
        first: dict[int, int] = {}
        found = []
        for key, child in node.pairs if isinstance(node, Mapping) else ():
            if not isinstance(key, Scalar) or known[key.text] != (key.line, child):
                continue
            own_path = step(path, key.text)
            dpid, entries = self.dpid(key, own_path), self.integer(child, own_path, 1, MOST_ENTRIES)
            if dpid in first:
                self.faults.error(key.line, own_path, f"switch {dpid} has its number already, on line {first[dpid]}")
            elif dpid is not None:
                first[dpid] = key.line
                if entries is not None:
                    found.append(TableCapacity(dpid, entries))
        return tuple(found)

    def _tenant_shares(self, node: Node, path: str) -> tuple[TenantShare, ...]:
        found = []
        known = self.entries(node, path, "a mapping of tenants to {shares, reservation, limit}") or {}
        for name, (line, child) in known.items():
            own_path = step(path, name)
            if name not in self.tenant_names:
                near = self.faults.suggestion(name, self.tenant_names)
                self.faults.error(line, own_path, f"unknown tenant {quoted(name)}{near}")
            share = self.settings(TableShare, child, own_path)
            if share.limit is not None and share.reservation > share.limit:
                message = f"{share.reservation} is above the limit, {share.limit}"
                self.faults.error(line_of(child, "reservation"), f"{own_path}.reservation", message)
            found.append(TenantShare(name, share))
        return tuple(found)

    def _peer_windows(self, node: Node, path: str) -> tuple[GroupWindows, ...]:
        found = []
        known = self.entries(node, path, "a mapping of peer groups to {window_samples, ...}") or {}
        for name, (line, child) in known.items():
            own_path = step(path, name)
            if name not in PEER_GROUPS:
                near = self.faults.suggestion(name, PEER_GROUPS)
                self.faults.error(line, own_path, f"unknown peer group {quoted(name)}{near}")
            found.append(GroupWindows(name, self.settings(PeerWindows, child, own_path)))
        return tuple(found)

    def _ovsdb_server(self, node: Node, path: str) -> str | None:
        server = self.text(node, path, "unix:PATH or tcp:HOST:PORT")
        if server is None or is_ovsdb_target(server):
            return server
        self.faults.error(node.line, path, f"{quoted(server)} is neither unix:PATH nor tcp:HOST:PORT")
        return None

    def _address(self, type_: SettingType, node: Node, path: str) -> bytes | None:
        if not isinstance(node, Scalar):
            self.wrong_type(node, path, f"an {type_}")
            return None
        try:
            address = b"" if "%" in node.text else parse_ip(node.text)
        except ValueError:
            address = b""
        if type_ is SettingType.IP:
            fits = len(address) > 0 and not is_multicast_ip(address)
        elif type_ is SettingType.IPV4:
            fits = len(address) == 4 and not is_multicast_ip(address) and address != b"\xff" * 4
        else:
            fits = len(address) == 16 and address[:8] == b"\xfe\x80" + bytes(6)
        if fits:
            return address
        shown = format_ip(address) if address else quoted(node.text)
        self.faults.error(node.line, path, f"expected an {type_}, found {shown}")
        return None

    def _addresses_in_vlans(self, node: Node, path: str) -> tuple[bytes, ...]:
        """Return the names of IPv4 addresses in VLANs, one at most in each."""
        found: dict[int, bytes] = {}

        def one(child: Node, own_path: str) -> None:
            if not isinstance(child, Scalar):
                self.wrong_type(child, own_path, _IN_VLAN)
                return
            text, _, vlan = child.text.partition("@")
            try:
                is_named = vlan[:1].isalpha() or vlan[:1] == "_"
                name = in_domain(parse_ip(text), self.vlan_of_name(vlan)) if is_named else parse_name(child.text)
            except ValueError as error:
                self.faults.error(child.line, own_path, str(error))
                return
            address, vlan_id = address_of(name), domain_of(name)
            if not vlan_id or len(address) != 4 or is_multicast_ip(address) or address == b"\xff" * 4:
                self.faults.error(child.line, own_path, f"expected {_IN_VLAN}, found {quoted(child.text)}")
            elif vlan_id in found:
                self.faults.error(child.line, own_path, f"VLAN {vlan_id} has {format_ip(found[vlan_id])} already")
            else:
                found[vlan_id] = name

        self.items(node, path, f"a list of {_IN_VLAN[3:]}", one)
        return tuple(found.values())


def _no_vlan(name: str) -> int:
    raise ValueError(f"no VLAN is called {quoted(name)}")


def line_of(node: Node, *keys: str) -> int:
    """Return the line of a nested value, or of the innermost mapping on the way to it that exists."""
    for wanted in keys:
        children = node.pairs if isinstance(node, Mapping) else []
        node = next((value for key, value in children if isinstance(key, Scalar) and key.text == wanted), node)
    return node.line
