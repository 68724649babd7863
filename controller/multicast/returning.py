"""Links that come back while a switch may still send over them by entries of former trees."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from controller.rules.installer import Installer
from topology.aggregations import Place
from topology.events import LinkDown, LinkUp
from topology.graph import Graph, NodeId

Ends = tuple[Place, Place]
"""Both ends of a cable, the lower one first."""


class ReturningLinks:
    """Says which links that are back stay out of use, and which ports let no multicast in meanwhile.

    A switch is told at once to send nothing over a link that is lost, and trees are repaired without waiting for it.
    Where it has not carried that out when the cable is back, its packets would go the former way and the repaired one
    as well, or round. So such a link is held until both its ends have confirmed what they were told, and whichever
    end can be told lets nothing in. Nothing goes round over a link without which its ends do not reach each other: it
    is never held. There are never more held links and shut ports than the fabric has ports.

    Parameters
    ----------
    installer
        Tells over which ports switches may still send.
    cables
        The links that are in use.

    Attributes
    ----------
    shut
        Ports that lead to a switch and let nothing in: those of held links, and others while it is not known to which
        switch, since one that may still send over a lost link may be behind them.
    """

    def __init__(self, installer: Installer, cables: Graph) -> None:
        self._installer = installer
        self._cables = cables
        self._lost: set[Place] = set()
        self._held: dict[Ends, LinkUp] = {}
        self._parts: dict[NodeId, int] = {}
        self._parts_version = -1
        self.shut: set[Place] = set()

    def is_lost(self, place: Place) -> bool:
        """Tell whether the link at a port was lost, and its switch is not known to send nothing there any more."""
        return place in self._lost

    def link_down(self, event: LinkDown) -> Iterable[Place]:
        """Take in that discovery has lost a link; return its ends where it was in use."""
        self._parts.clear()
        self._parts_version = -1
        ends = _ends(event)
        if self._held.pop(ends, None) is not None or not self._is_cable(event):
            return ()
        self._lost.update(ends)
        return ends

    def switch_down(self, dpid: int) -> None:
        """Take in that a switch, whose links are all lost, is no part of the fabric any more."""
        self._lost = {place for place in self._lost if place[0] != dpid}
        self._parts.clear()
        self._parts_version = -1

    def holds(self, event: LinkUp) -> bool:
        """Take in that discovery has found a link, and tell whether it stays out of use for now."""
        ends = _ends(event)
        held = self._must_wait(event)
        if held:
            self._held[ends] = event
            self.shut.update(ends)
        else:
            self._held.pop(ends, None)
        return held

    def shuts(self, place: Place) -> bool:
        """Take in that a port turned out to lead to a switch, and tell whether it lets nothing in for now."""
        shut = self._is_any_lost() and not self._is_in_use(*place)
        if shut:
            self.shut.add(place)
        else:
            self.shut.discard(place)
        return shut

    def waits_for(self, dpid: int) -> bool:
        """Tell whether a link or port waits for what a switch confirms."""
        return bool(self.shut) and any(at == dpid for at, _ in self._lost)

    def released(self) -> Iterator[LinkUp]:
        """Yield the links that need not be held any more, one after the other has been taken into use."""
        for event in list(self._held.values()):
            if not self._must_wait(event):
                yield event

    def opened(self) -> list[Place]:
        """Return the ports that need not be shut any more, and forget them."""
        if not self.shut or self._is_any_lost():
            return []
        opened = sorted(self.shut)
        self.shut.clear()
        return opened

    def _must_wait(self, event: LinkUp) -> bool:
        if not any(self._may_send(end) for end in _ends(event)):
            return False
        return not self._is_cable(event) and self._are_joined(event.dpid_a, event.dpid_b)

    def _is_cable(self, event: LinkUp | LinkDown) -> bool:
        """Tell whether a cable is in use."""
        cable = self._cables.cable(event.dpid_a, event.dpid_b, event.port_a)
        return cable is not None and cable.v_port == event.port_b

    def _may_send(self, place: Place) -> bool:
        """Tell whether a switch may still send over the lost link at a port; where not, forget that it was lost."""
        if place not in self._lost:
            return False
        if self._installer.may_send(*place):
            return True
        self._lost.discard(place)
        return False

    def _is_any_lost(self) -> bool:
        return any(self._may_send(place) for place in list(self._lost))

    def _is_in_use(self, dpid: int, port_no: int) -> bool:
        cables = self._cables
        near = cables.neighbours(dpid) if dpid in cables else ()
        return any(cables.cable(dpid, other, port_no) is not None for other in near)

    def _are_joined(self, a: NodeId, b: NodeId) -> bool:
        """Tell whether links that are in use lead from one switch to another.

        The fabric is looked through once after a loss, and again where what was added since may join the two.
        """
        parts = self._parts
        if self._parts_version != self._cables.version and (a not in parts or parts[a] != parts.get(b)):
            parts = self._parts = self._parts_of_cables()
            self._parts_version = self._cables.version
        return a in parts and parts[a] == parts.get(b)

    def _parts_of_cables(self) -> dict[NodeId, int]:
        parts: dict[NodeId, int] = {}
        for number, start in enumerate(self._cables.nodes()):
            if start not in parts:
                parts[start] = number
                queue = [start]
                for node in queue:
                    new = [other for other in self._cables.neighbours(node) if other not in parts]
                    parts.update(dict.fromkeys(new, number))
                    queue += new
        return parts


def _ends(event: LinkUp | LinkDown) -> Ends:
    one, other = (event.dpid_a, event.port_a), (event.dpid_b, event.port_b)
    return (one, other) if one < other else (other, one)
