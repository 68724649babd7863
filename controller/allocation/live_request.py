"""Requests for ports of the live fabric: which are meant, and what is known of them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from controller.allocation.candidates import Candidates, PortId
from controller.allocation.documents import PathRequest, read_paths
from controller.allocation.events import PortKey
from controller.allocation.fabric_domains import LEVELS
from controller.allocation.fields import RequestError, boolean, identifiers, mapping, number, text, whole
from controller.allocation.live import AllocatorCore, port_name
from controller.allocation.port_list import Scope, read_levels
from controller.allocation.request import known_ports, read_affinity, read_mode, read_used
from controller.allocation.selection import Wish
from controller.performance.poller_settings import SWITCH_KINDS
from topology.events import PortRole

ALL, HOSTS = "all", "hosts"
TYPES = (ALL, HOSTS, *(kind.value for kind in SWITCH_KINDS))
ROLES = (ALL, *(role.value for role in PortRole))
DEFAULT_SIZE_PCT = 1.0

MOST_DRAWN = 262144
"""Ports that are kept of selectors, over all of them; some 200 bytes each."""

LIVE_KEYS = frozenset({"size_pct", "reserve", "allow_down"})
KEYS = frozenset(
    {"levels", "ports", "count", "allow_fewer", "previously_allocated", "used", "affinity", "mode"} | LIVE_KEYS
)
SELECTOR_KEYS = frozenset({"type", "role", "node"})
PORT_KEYS = frozenset({"id", "connected", "components"})
_NAME = re.compile(r"(0x[0-9a-fA-F]{1,16}|[0-9]{1,20}):([0-9]{1,10})\Z")


class Size(NamedTuple):
    """What one port will carry more in the request's steady state, percent; reserved where `reserve` says so."""

    size_pct: float
    reserve: bool


class LiveRequest(NamedTuple):
    """A request for ports that was read."""

    candidates: Candidates
    wish: Wish
    size: Size


class LivePaths(NamedTuple):
    """A request over several networks and hosts that was read."""

    request: PathRequest
    size: Size


class _Asked(NamedTuple):
    """A port that is asked for, with what the request says of it."""

    key: PortKey
    connected: bool = True
    components: Mapping[str, Any] = MappingProxyType({})


class Drawn(NamedTuple):
    """The ports of a request without their usage, and their rows in the book."""

    candidates: Candidates
    rows: NDArray[np.intp]


class LiveReader:
    """Reads requests; the ports that a selector means are kept until the fabric changes."""

    def __init__(self, core: AllocatorCore) -> None:
        self._core = core
        self._version = -1
        self._drawn: dict[str, Drawn] = {}

    def read(self, document: Any, now_ms: int) -> LiveRequest:
        """Return the request of a decoded document, with metrics as of `now_ms`; RequestError names the field."""
        core, found = self._core, mapping(document, "request", KEYS)
        levels = read_levels(list(LEVELS) if found.get("levels") is None else found["levels"])
        listed = identifiers(found.get("previously_allocated") or [], "previously_allocated")
        previous: list[PortId] = [
            port_name(read_key(core, name, f"previously_allocated[{index}]")) for index, name in enumerate(listed)
        ]
        allow_down = boolean(found.get("allow_down", False), "allow_down")
        candidates = self._read_ports(found.get("ports"), levels, "ports", frozenset(previous), allow_down, now_ms)
        known_ports(previous, candidates, "previously_allocated")
        wish = Wish(
            count=whole(found.get("count"), "count", 1),
            allow_fewer=boolean(found.get("allow_fewer", False), "allow_fewer"),
            previously_allocated=previous,
            carried=read_used(found.get("used") or {}, levels),
            affinity=read_affinity(found.get("affinity"), levels),
            mode=read_mode(found.get("mode", "default")),
        )
        return LiveRequest(candidates, wish, read_size(found))

    def read_paths(self, document: Any, now_ms: int) -> LivePaths:
        """Return a request over several networks and hosts, likewise."""
        found = mapping(document, "request", None)
        allow_down = boolean(found.get("allow_down", False), "allow_down")

        def read(ports: Any, levels: Sequence[str], path: str, scope: Scope) -> Candidates:
            return self._read_ports(ports, list(levels), path, scope.keep, allow_down, now_ms)

        others = {key: value for key, value in found.items() if key not in LIVE_KEYS}
        return LivePaths(read_paths(others, read, LEVELS), read_size(found))

    def drawn(self, ports: Any, allow_down: bool) -> Drawn:
        """Return the ports that are meant, at all levels, whatever they carry; RequestError names the field."""
        return self._draw(ports, list(LEVELS), "ports", frozenset(), allow_down)

    def _read_ports(
        self, ports: Any, levels: list[str], path: str, keep: frozenset[PortId], allow_down: bool, now_ms: int
    ) -> Candidates:
        return _measured(self._core, self._draw(ports, levels, path, keep, allow_down), keep, now_ms)

    def _draw(self, ports: Any, levels: list[str], path: str, keep: frozenset[PortId], allow_down: bool) -> Drawn:
        core = self._core
        if isinstance(ports, list) or keep:
            return _draw(core, _asked(core, ports, path), levels, keep, allow_down)
        if self._version != core.version:
            self._version = core.version
            self._drawn.clear()
        question = json.dumps([ports, levels, allow_down], sort_keys=True)
        drawn = self._drawn.get(question)
        if drawn is None:
            drawn = _draw(core, _asked(core, ports, path), levels, keep, allow_down)
            if sum(len(each.rows) for each in self._drawn.values()) + len(drawn.rows) > MOST_DRAWN:
                self._drawn.clear()
            self._drawn[question] = drawn
        return drawn


def read_size(found: Mapping[str, Any]) -> Size:
    """Return what a request reserves; RequestError names the field."""
    size_pct = number(found.get("size_pct", DEFAULT_SIZE_PCT), "size_pct")
    if size_pct > 100:
        raise RequestError(f"size_pct: {size_pct:g} is not within 0 and 100")
    return Size(size_pct, boolean(found.get("reserve", True), "reserve"))


def read_key(core: AllocatorCore, value: Any, path: str) -> PortKey:
    """Return the port with a name; RequestError where it is no name, or the allocator never heard of the port."""
    match = _NAME.match(value) if isinstance(value, str) else None
    if match is None:
        raise RequestError(f"{path}: {value!r} is not DPID:PORT")
    key = (int(match[1], 0), int(match[2]))
    try:
        core.book.row(port_name(key))
    except KeyError:
        raise RequestError(f"{path}: there is no port {port_name(key)}") from None
    return key


def select_keys(core: AllocatorCore, selector: Any, path: str) -> list[PortKey]:
    """Return the ports of connected switches that a selector means, in order; RequestError where it is faulty."""
    found = mapping({} if selector is None else selector, path, SELECTOR_KEYS)
    of_type, role = (text(found.get(field, ALL), f"{path}.{field}") for field in ("type", "role"))
    for field, value, known in (("type", of_type, TYPES), ("role", role, ROLES)):
        if value not in known:
            raise RequestError(f"{path}.{field}: {value!r} is none of {', '.join(known)}")
    node = found.get("node")
    if node is not None and whole(node, f"{path}.node", 0) not in core.ports:
        raise RequestError(f"{path}.node: switch {node} is not connected")
    wanted_role = PortRole.EDGE if of_type == HOSTS else None if role == ALL else PortRole(role)
    keys = []
    for dpid in sorted(core.ports) if node is None else (node,):
        if of_type in (ALL, HOSTS) or core.domains.kind(dpid).value == of_type:
            roles = ((port_no, core.fabric.role(dpid, port_no)) for port_no in sorted(core.ports[dpid]))
            keys += [(dpid, port_no) for port_no, found_role in roles if wanted_role in (None, found_role)]
    return list(filter(core.has, keys))


def _asked(core: AllocatorCore, ports: Any, path: str) -> list[_Asked]:
    if not isinstance(ports, list):
        return [_Asked(key) for key in select_keys(core, ports, path)]
    found: dict[PortKey, _Asked] = {}
    for index, item in enumerate(ports):
        where = f"{path}[{index}]"
        if isinstance(item, str):
            asked = _Asked(read_key(core, item, where))
        else:
            port = mapping(item, where, PORT_KEYS)
            asked = _Asked(
                read_key(core, port.get("id"), f"{where}.id"),
                boolean(port.get("connected", True), f"{where}.connected"),
                {
                    level: text(entity, f"{where}.components.{level}")
                    for level, entity in mapping(port.get("components") or {}, f"{where}.components", None).items()
                    if entity is not None
                },
            )
        if asked.key in found:
            raise RequestError(f"{where}: {port_name(asked.key)} is there twice")
        found[asked.key] = asked
    return list(found.values())


def _draw(
    core: AllocatorCore, asked: list[_Asked], levels: list[str], keep: frozenset[PortId], allow_down: bool
) -> Drawn:
    """Return what does not change by measuring: who is there, and in which failure domains."""
    excluded: dict[PortId, str] = {}
    kept: list[_Asked] = []
    connected: list[bool] = []
    for each in asked:
        name = port_name(each.key)
        reason = _absence(core, each.key, allow_down)
        if reason:
            excluded[name] = reason
        if not reason or name in keep:
            kept.append(each)
            connected.append(each.connected and not reason)
    components = []
    for each in kept:
        port = core.port(each.key)
        components.append(
            {**core.domains.components(*each.key, "" if port is None else port.name), **each.components}
        )
    names = [port_name(each.key) for each in kept]
    unknown = np.full(len(kept), np.nan)
    columns = {level: [own.get(level) for own in components] for level in levels}
    rows = np.fromiter(map(core.book.row, names), np.intp, len(names))
    return Drawn(Candidates(names, unknown, unknown, np.array(connected, np.bool_), columns, excluded), rows)


def _measured(core: AllocatorCore, drawn: Drawn, keep: frozenset[PortId], now_ms: int) -> Candidates:
    """Return the ports with their usage, without those over a ceiling."""
    found = core.book.metrics(now_ms, drawn.rows)
    candidates = drawn.candidates.measured(found.usage_pct, core.book.volumes(drawn.rows))
    if not found.disqualified.any():
        return candidates
    ids = candidates.ids
    over = {
        ids[index]: "; ".join(core.book.assess(str(ids[index]), now_ms).reasons)
        for index in np.flatnonzero(found.disqualified & candidates.connected).tolist()
    }
    kept = np.array([index for index, name in enumerate(ids) if name not in over or name in keep], np.intp)
    return candidates.narrowed(kept, (candidates.connected & ~found.disqualified)[kept], over)


def _absence(core: AllocatorCore, key: PortKey, allow_down: bool) -> str:
    """Return why a port cannot be used at all, '' where it can."""
    port = core.port(key)
    if port is None:
        return "the port is gone" if key[0] in core.ports else f"switch {key[0]} is not connected"
    return "" if port.up or allow_down else "its link is down"
