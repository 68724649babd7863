"""What link-scope flooding follows: the ports of switches, and a spanning tree of the links between them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from controller.kernel.domains import address_of
from controller.kernel.vlan_ports import VlanOifs
from topology.graph import Graph
from topology.live import LiveFabric


class SwitchPorts(NamedTuple):
    """What flooding has to know of a switch.

    `edges` are the ports that lead to hosts, `closed` those of which it is not known what they lead to, `routers` the
    (port, family, VLAN id) of those with a multicast router, VLAN id 0 standing for the fabric's own domain: PIM from
    elsewhere goes nowhere. `quiet` are the edge ports that link-scope groups are not flooded to, being legs of link
    aggregation groups, and `unheard` what is not flooded back to the leg that is: the port where it comes in, or the
    MAC address of the host that sent it by another switch, and the leg. A switch that is not `connected`
    may go on forwarding by what it holds. `vlans` are the ports by VLAN, None where no port of the fabric is in one.
    Frames to groups that have a second tag behind that of a VLAN are flooded too where `passes_double_tagged` says
    so. `counts_stale_versions` tells whether packets of trees that the switch does not know are dropped apart.
    """

    ofp_version: int
    edges: tuple[int, ...]
    closed: tuple[int, ...]
    connected: bool = True
    routers: frozenset[tuple[int, int, int]] = frozenset()
    vlans: Mapping[int, VlanOifs] | None = None
    quiet: frozenset[int] = frozenset()
    unheard: tuple[tuple[int | bytes, int], ...] = ()
    passes_double_tagged: bool = False
    counts_stale_versions: bool = False

    def opened(self, port_no: int) -> SwitchPorts:
        """Return the ports of which one leads to a switch."""
        return self._replace(closed=tuple(port for port in self.closed if port != port_no))

    def shut(self, port_no: int) -> SwitchPorts:
        """Return the ports of which one lets nothing in."""
        edges = tuple(port for port in self.edges if port != port_no)
        return self._replace(edges=edges, closed=tuple(sorted({*self.closed, port_no})))


def with_legs(ports: SwitchPorts, fabric: LiveFabric, dpid: int) -> SwitchPorts:
    """Return the ports of a switch with what is to be known of those that are legs."""
    quiet = frozenset(port_no for port_no in ports.edges if not fabric.is_flooded(dpid, port_no))
    unheard: list[tuple[int | bytes, int]] = []
    for port_no in ports.edges:
        legs = fabric.aggregations.legs((dpid, port_no))
        if port_no in quiet or len(legs) < 2:
            continue
        unheard += [(other, port_no) for at, other in legs if at == dpid and other != port_no]
        if any(at != dpid for at, _ in legs):
            macs = {address_of(host.mac) for leg in legs for host in fabric.hosts_at(*leg)}
            unheard += [(mac, port_no) for mac in sorted(macs)]
    return ports._replace(quiet=quiet, unheard=tuple(unheard))


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
