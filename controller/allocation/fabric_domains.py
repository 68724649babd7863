"""Failure domains of a fabric's ports, from what discovery found."""

from __future__ import annotations

import re
from collections.abc import Iterable

from controller.allocation.events import PortKey
from controller.performance.poller import LEVEL_KINDS
from topology.graph import Graph, NodeKind
from topology.live import LiveFabric

LEVELS = ("plane", "pod", "switch", "line_card", "neighbour")
"""From the one that takes most ports with it to the one that takes fewest."""

_LINE_CARD = re.compile(r"(\d+(?:/\d+)*)/\d+(?::\d+)?\Z")


class FabricDomains:
    """The failure domains of the ports of `fabric`, worked out anew when its graph changes.

    Notes
    -----
    A pod is what stays joined without the highest switches, a plane what stays joined without the lowest; each is
    named after the lowest datapath id of its lowest or highest switches. Where planes are not apart, each of the
    highest switches is one. A port has the plane and pod of its switch, or where that has none, of the switch that it
    leads to. The line card is what stands before the last number in the names of ports such as ``xe-2/0/3``.
    """

    def __init__(self, fabric: LiveFabric) -> None:
        self._fabric = fabric
        self._version = -1
        self._has_tors = False
        self._planes: dict[int, int] = {}
        self._pods: dict[int, int] = {}
        self._far: dict[PortKey, int] = {}

    def components(self, dpid: int, port_no: int, name: str) -> dict[str, str]:
        """Return the entity of a port at each level where it has one."""
        self._follow()
        far = self._far.get((dpid, port_no))
        card = _LINE_CARD.search(name)
        found = {
            "plane": _first(self._planes, dpid, far),
            "pod": _first(self._pods, dpid, far),
            "switch": dpid,
            "line_card": None if card is None else f"{dpid}/{card[1]}",
            "neighbour": far,
        }
        return {level: str(entity) for level, entity in found.items() if entity is not None}

    def kind(self, dpid: int) -> NodeKind:
        """Return the class of a switch: by its hops from the servers, `SWITCH` where no host was found yet."""
        self._follow()
        graph = self._fabric.graph
        if dpid not in graph or not self._has_tors:
            return NodeKind.SWITCH
        return LEVEL_KINDS.get(graph.level(dpid), NodeKind.CORE)

    def _follow(self) -> None:
        graph = self._fabric.graph
        if graph.version == self._version:
            return
        self._version = graph.version
        self._has_tors = bool(graph.nodes(NodeKind.TOR))
        self._far = {}
        for link in graph.links():
            for each in (link, link.reversed()):
                if isinstance(each.u, int) and isinstance(each.v, int) and each.u_port is not None:
                    self._far[each.u, each.u_port] = each.v
        levels = _levels(graph)
        highest = max(levels.values(), default=0)
        self._pods = self._planes = {}
        if highest > 1:
            tops = {dpid for dpid, level in levels.items() if level == highest}
            lowest = {dpid for dpid, level in levels.items() if level == 1}
            self._pods = _joined(graph, levels.keys() - tops, lowest)
            self._planes = _joined(graph, levels.keys() - lowest, tops)
            if len(set(self._planes.values())) == 1:
                self._planes = {dpid: dpid for dpid in tops}


def _first(entities: dict[int, int], dpid: int, far: int | None) -> int | None:
    found = entities.get(dpid)
    return entities.get(far) if found is None and far is not None else found


def _levels(graph: Graph) -> dict[int, int]:
    """Return the levels of the switches that a ToR reaches."""
    levels = {dpid: graph.level(dpid) for dpid in graph.nodes() if isinstance(dpid, int)}
    return {
        dpid: level
        for dpid, level in levels.items()
        if level == 1 or any(graph.level(near) == level - 1 for near in graph.neighbours(dpid))
    }


def _joined(graph: Graph, members: Iterable[int], namesakes: set[int]) -> dict[int, int]:
    """Return for each member the lowest namesake among those it is joined to; members without one are left out."""
    inside, found = set(members), dict[int, int]()
    for start in sorted(inside & namesakes):
        if start in found:
            continue
        found[start] = start
        stack = [start]
        while stack:
            for near in graph.neighbours(stack.pop()):
                if isinstance(near, int) and near in inside and near not in found:
                    found[near] = start
                    stack.append(near)
    return found
