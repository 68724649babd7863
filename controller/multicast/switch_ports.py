"""What link-scope flooding follows: the ports of switches, and a spanning tree of the links between them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from controller.kernel.vlan_ports import VlanOifs
from topology.graph import Graph


class SwitchPorts(NamedTuple):
    """What flooding has to know of a switch.

    `edges` are the ports that lead to hosts, `closed` those of which it is not known what they lead to, `routers` the
    (port, family, VLAN id) of those with a multicast router, VLAN id 0 standing for the fabric's own domain: PIM from
    elsewhere goes nowhere. A switch that is not `connected`
    may go on forwarding by what it holds. `vlans` are the ports by VLAN, None where no port of the fabric is in one.
    """

    ofp_version: int
    edges: tuple[int, ...]
    closed: tuple[int, ...]
    connected: bool = True
    routers: frozenset[tuple[int, int, int]] = frozenset()
    vlans: Mapping[int, VlanOifs] | None = None

    def opened(self, port_no: int) -> SwitchPorts:
        """Return the ports of which one leads to a switch."""
        return self._replace(closed=tuple(port for port in self.closed if port != port_no))

    def shut(self, port_no: int) -> SwitchPorts:
        """Return the ports of which one lets nothing in."""
        edges = tuple(port for port in self.edges if port != port_no)
        return self._replace(edges=edges, closed=tuple(sorted({*self.closed, port_no})))


def spanning_tree(graph: Graph) -> dict[int, set[int]]:
    """Return for each switch its neighbours on a breadth-first spanning forest, the lowest dpid first."""
    tree: dict[int, set[int]] = {}
    for root in graph.switches():
        if root in tree:
            continue
        tree[root] = set()  # type: ignore[index]
        queue = [root]
        for node in queue:
            for neighbour in graph.neighbours(node):
                if neighbour not in tree:
                    tree[neighbour] = {node}  # type: ignore[index,arg-type]
                    tree[node].add(neighbour)  # type: ignore[index,arg-type]
                    queue.append(neighbour)
    return tree
