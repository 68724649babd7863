"""Flows that have a way of their own among those of equal length, and the entries that keep them on it.

A flow is what the hosts of one switch send to one host. Its first switch has an entry that sends it by a port; each
switch behind it that has a choice has one for what comes in by the port that the flow comes by. Every entry leads
nearer to the host, as those by label do, so nothing circles whichever of them are there: where links change, a flow
whose way is no shortest one any more loses its entries before any other entry towards that switch changes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple, TypeAlias

from controller.effects import Edit, Put, Remove
from controller.kernel.ports import End
from controller.rules.model import FlowEntry, FlowKey
from controller.unicast.destinations import Destination, HostLocation
from controller.unicast.entries import pinned_flow_rule, pinned_way_rule
from controller.unicast.links import UsableLinks
from controller.unicast.paths import NextHop

Stage: TypeAlias = list[tuple[int, Edit]]

Way: TypeAlias = tuple[End, ...]
"""The switches that a flow passes, but for the host's own, each with the port by which it sends."""

Held: TypeAlias = tuple[int, FlowKey]

WAYS_BOUND = 256
"""Ways of equal length that are looked at for a flow."""


class FlowName(NamedTuple):
    """What hosts at a switch send to a host, by the name of its MAC address."""

    dpid: int
    mac: bytes


class PinnedFlow(NamedTuple):
    """A flow's way to the switch `goal`, and its entries: at its first switch, and at those behind it."""

    goal: int
    way: Way
    first: FlowEntry
    further: tuple[tuple[int, FlowEntry], ...]


def equal_ways(destination: Destination, start: int, usable: Callable[[int], bool]) -> list[Way]:
    """Return the shortest ways from a switch to a destination over usable switches, `WAYS_BOUND` at most."""
    next_hops = destination.paths.next_hops
    found: list[Way] = []
    open_ways: list[tuple[int, Way]] = [(start, ())]
    while open_ways and len(found) < WAYS_BOUND:
        dpid, way = open_ways.pop()
        if dpid == destination.dpid:
            found.append(way)
            continue
        hops = next_hops.get(dpid, ())
        open_ways += [(hop.dpid, (*way, (dpid, hop.port_no))) for hop in reversed(hops) if usable(hop.dpid)]
    return found


class PinnedFlows:
    """All flows with ways of their own."""

    def __init__(self, links: UsableLinks) -> None:
        self._links = links
        self._flows: dict[FlowName, PinnedFlow] = {}
        self._to_switch: dict[int, dict[FlowName, None]] = {}
        self._users: dict[Held, dict[FlowName, None]] = {}
        self._left: dict[int, set[tuple[int, FlowKey]]] = {}

    def __len__(self) -> int:
        return len(self._flows)

    def way(self, name: FlowName) -> Way | None:
        """Return the way that a flow is kept on, None where its label decides."""
        flow = self._flows.get(name)
        return None if flow is None else flow.way

    def at(self, dpid: int) -> list[FlowName]:
        """Return the flows that begin at a switch."""
        return [name for name in self._flows if name.dpid == dpid]

    def planned(
        self, name: FlowName, place: HostLocation, destination: Destination, way: Way, versions: Mapping[int, int]
    ) -> PinnedFlow | None:
        """Return a flow with its entries for a way, None where they cannot be said or are another flow's already."""
        (dpid, port_no), *further = way
        first = pinned_flow_rule(versions[dpid], name.mac, place.address, port_no)
        if first is None:
            return None
        entries = []
        before = way[0]
        for here in further:
            arrived = self._links.other_end(*before)
            if arrived is None or arrived[0] != here[0]:
                return None
            if len(destination.paths.next_hops[here[0]]) > 1:
                rule = pinned_way_rule(versions[here[0]], name.mac, place.address, arrived[1], here[1])
                others = self._users.get((here[0], rule.key), {}).keys() - {name}
                if any((here[0], rule) not in self._flows[other].further for other in others):
                    return None
                entries.append((here[0], rule))
            before = here
        return PinnedFlow(destination.dpid, way, first, tuple(entries))

    def pin(self, name: FlowName, flow: PinnedFlow) -> list[Stage]:
        """Have a flow take a way: return the stages of edits, from its end to its beginning."""
        former = self._forget(name)
        self._flows[name] = flow
        self._to_switch.setdefault(flow.goal, {})[name] = None
        stages: list[Stage] = [[(dpid, Put(rule)) for dpid, rule in flow.further], [(name.dpid, Put(flow.first))]]
        for held in _held(name, flow):
            self._users.setdefault(held, {})[name] = None
        return [*stages, self._unused(name, former)]

    def unpin(self, name: FlowName) -> list[Stage]:
        """Have a flow go by its label again: return the stages of edits, from its beginning to its end."""
        flow = self._forget(name)
        return [] if flow is None else [[(name.dpid, Remove(flow.first.key))], self._unused(name, flow)]

    def unpin_all(self) -> list[Stage]:
        """Have all flows go by their labels again."""
        edits = [stage for name in tuple(self._flows) for stage in self.unpin(name)]
        return [[edit for stage in edits for edit in stage]]

    # What follows from other changes

    def follow(self, destination: Destination) -> Stage:
        """Return the edits that take away ways to a switch that are none of its shortest ones now."""
        next_hops = destination.paths.next_hops
        return [
            edit
            for name in tuple(self._to_switch.get(destination.dpid, ()))
            if not self._is_shortest(self._flows[name], next_hops)
            for edit in self._taken(name)
        ]

    def host_left(self, mac: bytes, goal: int) -> Stage:
        """Return the edits that take away ways to a host that is at a switch no more."""
        names = [name for name in self._to_switch.get(goal, ()) if name.mac == mac]
        return [edit for name in names for edit in self._taken(name)]

    def switch_left(self, dpid: int) -> Stage:
        """Return the edits that take away ways by a switch without a connection, which may keep its own entries."""
        stage: Stage = []
        for name, flow in tuple(self._flows.items()):
            if any(at == dpid for at, _ in flow.way) or flow.goal == dpid:
                own = {(flow.goal, key) for at, key in _held(name, flow) if at == dpid}
                if own:
                    self._left.setdefault(dpid, set()).update(own)
                stage += self._taken(name)
        return stage

    def switch_back(self, dpid: int) -> None:
        """Take it that a switch holds what it shall again."""
        self._left.pop(dpid, None)

    def left(self, dpid: int, goal: int) -> list[FlowKey]:
        """Return the keys of entries towards another switch that one without a connection may still hold."""
        return [key for to, key in self._left.get(dpid, ()) if to == goal]

    def _is_shortest(self, flow: PinnedFlow, next_hops: Mapping[int, Collection[NextHop]]) -> bool:
        """Tell whether a way is a shortest one still, and its switches without an entry have no choice still."""
        chosen = {flow.way[0][0], *(dpid for dpid, _ in flow.further)}
        for place, (dpid, port_no) in enumerate(flow.way):
            onward = flow.way[place + 1][0] if place + 1 < len(flow.way) else flow.goal
            hops = next_hops.get(dpid, ())
            if NextHop(onward, port_no) not in hops or (dpid not in chosen and len(hops) > 1):
                return False
        return True

    def _taken(self, name: FlowName) -> Stage:
        return [edit for stage in self.unpin(name) for edit in stage]

    def _forget(self, name: FlowName) -> PinnedFlow | None:
        flow = self._flows.pop(name, None)
        if flow is None:
            return None
        to_switch = self._to_switch[flow.goal]
        del to_switch[name]
        if not to_switch:
            del self._to_switch[flow.goal]
        for held in _held(name, flow):
            users = self._users[held]
            del users[name]
            if not users:
                del self._users[held]
        return flow

    def _unused(self, name: FlowName, flow: PinnedFlow | None) -> Stage:
        """Return the edits that remove what a former way had behind its first switch and no flow needs any more."""
        if flow is None:
            return []
        return [(dpid, Remove(rule.key)) for dpid, rule in flow.further if (dpid, rule.key) not in self._users]


def _held(name: FlowName, flow: PinnedFlow) -> list[Held]:
    return [(name.dpid, flow.first.key), *((dpid, rule.key) for dpid, rule in flow.further)]
