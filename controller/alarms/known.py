"""The fabric as it is expected: the switches and links of the policy and those seen so far, and how each is now."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from controller.config.alarm_settings import ExpectedTopology
from controller.events import Port, PortChanged, SwitchConnected
from topology.events import LinkUp
from topology.graph import DEFAULT_CAPACITY_BPS

SWITCHES_BOUND = 4096
"""Switches that are known; further ones are counted and not missed when they go."""

LINKS_BOUND = 65536
"""Links that are known; for a new one beyond it the one that failed longest ago is forgotten."""

DOWN_PORTS_BOUND = 4096
"""Ports of a switch that are known to be down; of further ones nobody is told (`down-ports-over-limit`)."""

_LAST_PHYSICAL_PORT = {1: 0xFF00, 4: 0xFFFFFF00}
"""OFPP_MAX by OpenFlow version."""


class End(NamedTuple):
    """One end of a link."""

    dpid: int
    port_no: int

    def __str__(self) -> str:
        return f"{self.dpid}:{self.port_no}"


class Cable(NamedTuple):
    """A link by both ends, the lower one first."""

    a: End
    b: End

    def __str__(self) -> str:
        return f"{self.a}-{self.b}"

    @property
    def pair(self) -> tuple[int, int]:
        """The switches that it joins."""
        return self.a.dpid, self.b.dpid

    def beyond(self, dpid: int) -> int:
        """Return the switch at the other end."""
        return self.b.dpid if self.a.dpid == dpid else self.a.dpid


class LinkState(StrEnum):
    """How a known link is."""

    UP = "up"
    FAILED = "failed"
    MOVED = "moved"
    """It is missing, and a port of it leads elsewhere now."""


@dataclass(slots=True)
class KnownSwitch:
    """A switch that is expected. `present`: it is part of the fabric, also for a while after its connection ended.

    `down_s` is since when each port is down that is known to be.
    """

    dpid: int
    connected: bool = False
    present: bool = False
    connected_s: float | None = None
    lost_s: float | None = None
    tier: str = "switch"
    level: int | None = None
    host_count: int = 0
    counted_s: float = float("-inf")
    down_s: dict[int, float] = field(default_factory=dict)


@dataclass(slots=True)
class KnownLink:
    """A link that is expected; `lost_s` is since when it is missed, None where it is up or not missed yet."""

    cable: Cable
    capacity_bps: float = DEFAULT_CAPACITY_BPS
    up_s: float | None = None
    lost_s: float | None = None
    is_seen: bool = False
    repaired_count: int = 0

    @property
    def is_up(self) -> bool:
        """Whether it works now."""
        return self.up_s is not None


class KnownFabric:
    """Facts about what is expected: the same facts give the same states, in whatever order they were told."""

    def __init__(self, topology: ExpectedTopology) -> None:
        self.counters: Counter[str] = Counter()
        self.switches: dict[int, KnownSwitch] = {}
        self.links: dict[Cable, KnownLink] = {}
        self.expected_switches: frozenset[int] = frozenset()
        self.expected_links: frozenset[Cable] = frozenset()
        self.expected_ports: frozenset[End] = frozenset()
        self._expected_ports_of: dict[int, list[End]] = {}
        self._links_of: dict[int, dict[Cable, KnownLink]] = {}
        self._up_at: dict[End, Cable] = {}
        self._versions: dict[int, int] = {}
        self.expect(topology)

    def expect(self, topology: ExpectedTopology) -> None:
        """Take over what the policy expects; what was seen so far stays known."""
        switches, links = self.expected_switches, self.expected_links
        self.expected_switches = topology.all_switches()
        self.expected_links = frozenset(cable_of(*link.a, *link.b) for link in topology.links)
        self.expected_ports = frozenset(End(*port) for port in topology.ports)
        self._expected_ports_of = {}
        for end in sorted(self.expected_ports):
            self._expected_ports_of.setdefault(end.dpid, []).append(end)
        for cable in links - self.expected_links:
            link = self.links.get(cable)
            if link is not None and not link.is_seen:
                self.forget_link(cable)
        for dpid in switches - self.expected_switches:
            switch = self.switches.get(dpid)
            if switch is not None and not switch.connected and switch.lost_s is None:
                self.forget_switch(dpid)
        for dpid in sorted(self.expected_switches):
            self.switch(dpid)
        for cable in sorted(self.expected_links):
            self.link(cable)

    def expected_ports_of(self, dpid: int) -> Iterable[End]:
        """Return the ports of a switch that shall be up."""
        return self._expected_ports_of.get(dpid, ())

    @property
    def is_declared(self) -> bool:
        """Whether the policy says what to expect."""
        return bool(self.expected_switches)

    # Facts

    def switch(self, dpid: int) -> KnownSwitch | None:
        """Return a switch, known from here on; None where there is no room for it."""
        switch = self.switches.get(dpid)
        if switch is None:
            if len(self.switches) >= SWITCHES_BOUND and dpid not in self.expected_switches:
                self.counters["known-switches-over-limit"] += 1
                return None
            switch = self.switches[dpid] = KnownSwitch(dpid)
        return switch

    def link(self, cable: Cable) -> KnownLink | None:
        """Return a link, known from here on with both its switches; None where there is no room for it."""
        link = self.links.get(cable)
        if link is not None:
            return link
        if len(self.links) >= LINKS_BOUND:
            self.counters["known-links-over-limit"] += 1
            failed = [known for known in self.links.values() if known.lost_s is not None]
            if not failed:
                return None
            self.forget_link(min(failed, key=lambda known: known.lost_s or 0.0).cable)
        if self.switch(cable.a.dpid) is None or self.switch(cable.b.dpid) is None:
            return None
        link = self.links[cable] = KnownLink(cable)
        for dpid in cable.pair:
            self._links_of.setdefault(dpid, {})[cable] = link
        return link

    def links_of(self, dpid: int) -> Iterable[KnownLink]:
        """Return the known links of a switch."""
        return self._links_of.get(dpid, {}).values()

    def switch_connected(self, event: SwitchConnected, now: float) -> None:
        """Take in a switch's connection and the state of its ports."""
        switch = self.switch(event.dpid)
        self._versions[event.dpid] = event.ofp_version
        if switch is None:
            return
        switch.connected, switch.connected_s, switch.lost_s = True, now, None
        for port_no in switch.down_s.keys() - {port.port_no for port in event.ports}:
            del switch.down_s[port_no]
        for port in event.ports:
            self._port(event.dpid, port, not port.up, now)

    def switch_disconnected(self, dpid: int, now: float) -> None:
        """Take in that the connection to a switch ended."""
        self._versions.pop(dpid, None)
        switch = self.switches.get(dpid)
        if switch is not None and switch.connected:
            switch.connected, switch.lost_s = False, now

    def port_changed(self, event: PortChanged, now: float) -> bool:
        """Take in the state of a port and tell whether that is news."""
        return self._port(event.dpid, event.port, event.deleted or not event.port.up, now)

    def link_up(self, event: LinkUp, now: float) -> list[KnownLink]:
        """Take in that a cable works; return the links of which this changes the state."""
        cable = cable_of(*event[:4])
        changed: list[KnownLink] = []
        for end in cable:
            if self._up_at.get(end) not in (None, cable):
                changed += self._down(end, now)
        link = self.link(cable)
        if link is None:
            return changed
        link.capacity_bps, link.is_seen = event.capacity_bps, True
        if not link.is_up:
            link.up_s, link.lost_s, link.repaired_count = now, None, 0
        for end in cable:
            self._up_at[end] = cable
        return [*changed, *self._concerned(cable)]

    def link_down(self, cable: Cable, now: float) -> list[KnownLink]:
        """Take in that a cable works no more; return the links of which this changes the state."""
        return self._down(cable.a, now) if self._up_at.get(cable.a) == cable else []

    def _down(self, end: End, now: float) -> list[KnownLink]:
        cable = self._up_at[end]
        for either in cable:
            del self._up_at[either]
        link = self.links.get(cable)
        if link is not None:
            link.up_s, link.lost_s = None, now
        return self._concerned(cable)

    def _concerned(self, cable: Cable) -> list[KnownLink]:
        """Return the links whose state depends on one: those that share a port."""
        ends = set(cable)
        known = {link.cable: link for dpid in cable.pair for link in self.links_of(dpid)}
        return [link for link in known.values() if ends & set(link.cable)]

    def forget_link(self, cable: Cable) -> None:
        """Expect a link no more."""
        if self.links.pop(cable, None) is not None:
            for dpid in cable.pair:
                del self._links_of[dpid][cable]

    def forget_switch(self, dpid: int) -> list[Cable]:
        """Expect a switch and its links no more; return these."""
        cables = list(self._links_of.pop(dpid, {}))
        for cable in cables:
            del self.links[cable]
            del self._links_of[cable.beyond(dpid)][cable]
        self.switches.pop(dpid, None)
        return cables

    # What follows from them

    def state(self, link: KnownLink) -> LinkState:
        """Return how a known link is."""
        if link.is_up:
            return LinkState.UP
        others = [self._up_at.get(end) for end in link.cable]
        if any(others):
            return LinkState.MOVED
        return LinkState.FAILED

    def port_down_s(self, end: End) -> float | None:
        """Return since when a port is down, None where it is not known to be."""
        switch = self.switches.get(end.dpid)
        return None if switch is None else switch.down_s.get(end.port_no)

    def is_missing(self, link: KnownLink) -> bool:
        """Tell whether a link is not there as it shall be."""
        return self.state(link) in (LinkState.FAILED, LinkState.MOVED)

    def elsewhere(self, link: KnownLink) -> list[tuple[End, End]]:
        """Return the ports of a link that lead elsewhere now, each with where to."""
        found = []
        for end in link.cable:
            cable = self._up_at.get(end)
            if cable is not None and cable != link.cable:
                found.append((end, cable.b if cable.a == end else cable.a))
        return found

    def is_cut_off(self, dpid: int) -> bool:
        """Tell whether a switch has links to two or more switches that are connected, and all of them failed."""
        neighbours = set()
        for link in self.links_of(dpid):
            neighbour = self.switches[link.cable.beyond(dpid)]
            if neighbour.connected:
                if self.state(link) is not LinkState.FAILED:
                    return False
                neighbours.add(neighbour.dpid)
        return len(neighbours) > 1

    def counts(self) -> tuple[int, int, int, int]:
        """Return switches there and expected, links there and expected: those of the policy, else all known ones."""
        if self.is_declared:
            switches = [self.switches[dpid] for dpid in self.expected_switches]
            links = [self.links[cable] for cable in self.expected_links if cable in self.links]
            link_count = len(self.expected_links)
        else:
            switches, links = list(self.switches.values()), list(self.links.values())
            link_count = len(links)
        there = sum(1 for switch in switches if switch.connected)
        return there, len(switches), sum(1 for link in links if not self.is_missing(link)), link_count

    def _port(self, dpid: int, port: Port, is_down: bool, now: float) -> bool:
        if port.port_no > _LAST_PHYSICAL_PORT.get(self._versions.get(dpid, 4), 0xFFFFFF00):
            return False
        switch = self.switches.get(dpid)
        if switch is None or is_down == (port.port_no in switch.down_s):
            return False
        if not is_down:
            del switch.down_s[port.port_no]
        elif len(switch.down_s) < DOWN_PORTS_BOUND:
            switch.down_s[port.port_no] = now
        else:
            self.counters["down-ports-over-limit"] += 1
            return False
        return True


def cable_of(dpid_a: int, port_a: int, dpid_b: int, port_b: int) -> Cable:
    """Return a link by its ends, given in any order."""
    return Cable(*sorted((End(dpid_a, port_a), End(dpid_b, port_b))))


def read_cable(text: str) -> Cable:
    """Return the link of an id; ValueError where it is none."""
    ends = [End(*map(int, end.split(":"))) for end in text.split("-")]
    if len(ends) != 2 or ends[0].dpid >= ends[1].dpid:
        raise ValueError(f"{text!r} is no link")
    return Cable(*ends)
