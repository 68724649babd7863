"""The links that packets to hosts take: those of the fabric, but for what switches that are drained do without."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TypeAlias

from controller.kernel.drains import avoided_links
from controller.kernel.ports import End
from controller.unicast.paths import Pair
from topology.graph import Graph, NodeId

Ports: TypeAlias = Mapping[int, tuple[int, ...]]
"""By which ports switches send to a destination, one for each label."""


class UsableLinks:
    """Between which switches packets may go, and by which ports.

    A drained switch has one link to each part of the fabric that nothing else joins, as trees have it
    (`controller.kernel.drains`): its own hosts stay reachable, and what is for others goes round it.

    Attributes
    ----------
    near : dict
        For each switch its neighbours, each with the ports of the switch that lead there, as `Near` has it
        (`controller.unicast.paths`).
    """

    def __init__(self) -> None:
        self.near: dict[int, dict[int, tuple[int, ...]]] = {}
        self._drained: frozenset[int] = frozenset()
        self._avoided: set[frozenset[tuple[NodeId, int | None]]] = set()
        self._is_drain_new = False

    def drain(self, dpids: Collection[int]) -> bool:
        """Have packets leave these switches and no others, from the next `follow` on; False where they do already."""
        is_new = self._drained != frozenset(dpids)
        self._is_drain_new |= is_new
        self._drained = frozenset(dpids)
        return is_new

    def follow(self, graph: Graph, touched: Iterable[int]) -> list[Pair]:
        """Take in the links of switches that may have others than at the last call; return the pairs that differ."""
        near, pairs = self.near, list[Pair]()
        touched = set(touched)
        if self._is_drain_new or (touched and self._drained):
            touched |= self._avoid(graph)
        for dpid in touched:
            former = near.pop(dpid, None)
            links: dict[int, tuple[int, ...]] = {}
            if dpid in graph:
                links = self._links_of(graph, dpid)
                near[dpid] = links
            for far in (former or {}).keys() - links.keys():
                near.get(far, {}).pop(dpid, None)
                pairs.append((dpid, far))
            for far, port_nos in links.items():
                back, back_ports = near.setdefault(far, {}), self._ports(graph, far, dpid)
                if back.get(dpid) != back_ports or (former or {}).get(far) != port_nos:
                    back[dpid] = back_ports
                    pairs.append((dpid, far))
            if (former is None) != (dpid not in near):
                pairs.append((dpid, dpid))
        return pairs

    def beyond(self, dpid: int, port_no: int) -> int | None:
        """Return the switch that packets get to by a port of another, None where they get to none."""
        return next((far for far, port_nos in self.near[dpid].items() if port_no in port_nos), None)

    def other_end(self, dpid: int, port_no: int) -> End | None:
        """Return the switch that packets get to by a port of another, and its port there; None for none."""
        far = self.beyond(dpid, port_no)
        return None if far is None else (far, self.near[far][dpid][self.near[dpid][far].index(port_no)])

    def turn(self, stage: Iterable[tuple[int, object]], former: Ports, ports: Ports) -> bool:
        """Tell whether a switch of a stage is to send by its `ports` to one that sent to it by its `former` ones.

        A switch sends nothing back where it came in: what is under way to it has to pass before.
        """
        for dpid in {at for at, _ in stage}:
            for port_no in ports.get(dpid, ()):
                far = self.beyond(dpid, port_no)
                if far is not None and any(self.beyond(far, back) == dpid for back in former.get(far, ())):
                    return True
        return False

    def _avoid(self, graph: Graph) -> set[int]:
        """Find what is to be done without now; return the switches at whose ports that is otherwise than before."""
        self._is_drain_new = False
        avoided = avoided_links(graph, self._drained)
        turned = {end[0] for ends in avoided ^ self._avoided for end in ends if isinstance(end[0], int)}
        self._avoided = avoided
        return turned

    def _links_of(self, graph: Graph, dpid: int) -> dict[int, tuple[int, ...]]:
        avoided = self._avoided
        return {
            far: self._ports(graph, dpid, far)
            for far in graph.neighbours(dpid)
            if isinstance(far, int)
            and not (avoided and all(cable.ends in avoided for cable in graph.cables(dpid, far)))
        }

    def _ports(self, graph: Graph, dpid: int, far: int) -> tuple[int, ...]:
        """Return the ports of a switch that lead to another, in the order that their cables have from either end."""
        cables, avoided = graph.cables(dpid, far), self._avoided
        return tuple([c.u_port for c in cables if c.u_port is not None and not (avoided and c.ends in avoided)])
