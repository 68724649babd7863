"""Which ports have a multicast router, and which groups it may have."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet

from controller.multicast.group import Place

Groups = frozenset[Container[bytes]]
"""The groups that are in one of these."""


class RouterTable:
    """Router ports by family and datapath; most may have every group of their family, some only those allowed."""

    def __init__(self) -> None:
        self._ports: dict[int, dict[int, set[int]]] = {4: {}, 6: {}}
        self._limited: dict[int, dict[Place, Groups]] = {4: {}, 6: {}}

    def __bool__(self) -> bool:
        """Tell whether there is a router port of either family."""
        return any(self._ports.values())

    def change(self, dpid: int, port_no: int, family: int, present: bool, groups: Groups | None) -> None:
        """Enter a router port with its groups (None: every one), or take it out."""
        ports, limited = self._ports[family], self._limited[family]
        limited.pop((dpid, port_no), None)
        if present:
            ports.setdefault(dpid, set()).add(port_no)
            if groups is not None:
                limited[dpid, port_no] = groups
        elif dpid in ports:
            ports[dpid].discard(port_no)
            if not ports[dpid]:
                del ports[dpid]

    def has(self, dpid: int, port_no: int, family: int) -> bool:
        """Tell whether a router of a family is behind a port."""
        return port_no in self._ports[family].get(dpid, ())

    def of_group(self, group: bytes) -> Mapping[int, AbstractSet[int]]:
        """Return the port numbers, by dpid, that get a group which is served at all."""
        family = 4 if len(group) == 4 else 6
        ports, limited = self._ports[family], self._limited[family]
        if not limited:
            return ports
        allowed: dict[int, set[int]] = {}
        for dpid, port_nos in ports.items():
            kept = {port_no for port_no in port_nos if self._may_have(dpid, port_no, family, group)}
            if kept:
                allowed[dpid] = kept
        return allowed

    def families(self, dpid: int) -> Iterator[tuple[int, int]]:
        """Yield the (port number, family) of each router port of a datapath."""
        for family, ports in self._ports.items():
            for port_no in ports.get(dpid, ()):
                yield port_no, family

    def ports(self, family: int, groups: Iterable[bytes] | None = None) -> Iterator[Place]:
        """Yield each router port of a family, or those that may have one of some groups."""
        asked = None if groups is None else tuple(groups)
        for dpid, port_nos in self._ports[family].items():
            for port_no in port_nos:
                if asked is None or any(self._may_have(dpid, port_no, family, group) for group in asked):
                    yield dpid, port_no

    def _may_have(self, dpid: int, port_no: int, family: int, group: bytes) -> bool:
        groups = self._limited[family].get((dpid, port_no))
        return groups is None or any(group in allowed for allowed in groups)
