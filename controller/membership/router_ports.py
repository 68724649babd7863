"""Ports with a multicast router: set by the operator, or learnt from queries and PIM hellos (RFC 4541, 2.1.1)."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator
from math import inf
from typing import NamedTuple

from controller.membership.events import HostRef, MembershipEffect, RouterPortChanged, RouterVerdict
from controller.membership.limits import MembershipTally
from controller.membership.settings import MembershipLimits, MembershipSettings, PortKey, applies
from controller.membership.tables import MemberPort
from controller.membership.timers import TimedState, TimerQueue

HELLO_BELIEVED_S = 600.0
"""The longest holdtime that is believed of a PIM hello, 65535 (for ever) included; hellos come every 30 s."""

Groups = frozenset[Container[bytes]] | None
"""What the routers of a port may have together: any group in one of these; None: every group."""


class HeardRouter(NamedTuple):
    """A router as it was heard: its address, and whether by queries or by PIM hellos."""

    address: bytes
    asks: bool


class Heard(NamedTuple):
    """The host that spoke as a router, until when it is believed, and its groups (None: every one).

    `dr_priority` is its bid for designated router, None where it makes none.
    """

    host: HostRef
    until: float
    groups: Container[bytes] | None
    dr_priority: int | None = None


class RouterPort(TimedState):
    """What is known of routers of one family behind one port.

    `settles_at` is when all of them have had time to say what they joined, infinity where they had.
    """

    __slots__ = (
        "announced",
        "dpid",
        "family",
        "groups",
        "on_join",
        "on_request",
        "port_no",
        "proxied",
        "routers",
        "settles_at",
        "static",
    )

    def __init__(self, dpid: int, port_no: int, family: int, settles_at: float) -> None:
        super().__init__()
        self.settles_at = settles_at
        self.dpid = dpid
        self.port_no = port_no
        self.family = family
        self.static = False
        self.announced = False
        self.on_request = False
        self.on_join = False
        self.proxied = False
        self.groups: Groups = None
        self.routers: dict[HeardRouter, Heard] = {}

    def due_at(self) -> float:
        """Return when the next router times out, or `settles_at`."""
        return min(self.settles_at, min((heard.until for heard in self.routers.values()), default=inf))

    def allowed(self) -> Groups:
        """Return which groups the routers that are there may have."""
        groups = frozenset(heard.groups for heard in self.routers.values())
        return None if self.static or None in groups else groups  # type: ignore[return-value]


class RouterPortTable:
    """The router ports of the fabric, by (dpid, port_no, family)."""

    def __init__(
        self, settings: MembershipSettings, limits: MembershipLimits, timers: TimerQueue, tally: MembershipTally
    ) -> None:
        self.settings = settings
        self.limits = limits
        self._timers = timers
        self._tally = tally
        self._ports: dict[tuple[int, int, int], RouterPort] = {}
        self._designated: dict[int, PortKey | None] = {4: None, 6: None}

    def __iter__(self) -> Iterator[RouterPort]:
        return iter(self._ports.values())

    def get(self, dpid: int, port_no: int, family: int) -> RouterPort | None:
        """Return what is known of routers of a family behind a port, None where there are none."""
        return self._ports.get((dpid, port_no, family))

    def pim_place(self, address: bytes) -> PortKey | None:
        """Return the port of the PIM router with an address, None where none is known."""
        speaker = HeardRouter(address, False)
        return next(((e.dpid, e.port_no) for e in self._ports.values() if speaker in e.routers), None)

    def speak_for(self, addresses: Iterable[bytes]) -> bool:
        """Tell whether a router was heard with one of these MAC or IP addresses."""
        sought = set(addresses)
        return any(
            speaker.address in sought or heard.host.mac in sought
            for entry in self._ports.values()
            for speaker, heard in entry.routers.items()
        )

    def set_static(
        self, port: MemberPort, family: int, static: bool, now: float, effects: list[MembershipEffect]
    ) -> None:
        """Say whether the operator declares a port to be a router port."""
        if static or (port.dpid, port.port_no, family) in self._ports:
            entry = self._entry((port.dpid, port.port_no, family), now + self.settings.joins_heard_s)
            entry.static = static
            self._update(entry, now, effects)

    def heard(
        self,
        port: MemberPort,
        family: int,
        speaker: HeardRouter,
        heard: Heard,
        now: float,
        effects: list[MembershipEffect],
    ) -> bool:
        """Note a router; a time in the past is its farewell. Tell whether it is a new one."""
        known = self._ports.get((port.dpid, port.port_no, family))
        is_new = known is None or speaker not in known.routers
        if heard.until <= now:
            if known is not None:
                known.routers.pop(speaker, None)
                self._update(known, now, effects)
            return False
        if is_new and known is not None and len(known.routers) >= self.limits.routers_per_port:
            known.routers = {other: at for other, at in known.routers.items() if at.until > now}
            if len(known.routers) >= self.limits.routers_per_port:
                does = "has more multicast routers behind it than its limit: a further one is ignored"
                self._tally.warn(port, "limit-routers", does, now, effects)
                return False
        entry = known or self._entry((port.dpid, port.port_no, family), now + self.settings.joins_heard_s)
        entry.routers[speaker] = heard
        self._update(entry, now, effects)
        return is_new

    def reconsider(
        self, judge: Callable[[HostRef], RouterVerdict], now: float, effects: list[MembershipEffect]
    ) -> None:
        """Judge every router anew; those that are refused now are forgotten."""
        for entry in list(self._ports.values()):
            routers = {}
            for speaker, heard in entry.routers.items():
                verdict = judge(heard.host)
                if verdict.admit:
                    routers[speaker] = heard._replace(groups=verdict.groups)
            entry.routers = routers
            self._update(entry, now, effects)

    def restore(
        self,
        key: tuple[int, int, int],
        routers: Iterable[tuple[HeardRouter, Heard]],
        now: float,
        effects: list[MembershipEffect],
    ) -> None:
        """Enter a port's routers read from the journal, unless some are known there already."""
        if key in self._ports:
            return
        left = [(speaker, heard) for speaker, heard in routers if heard.until > now]
        if left:
            entry = self._entry(key, now + self.settings.joins_heard_s)
            entry.routers = dict(left[: self.limits.routers_per_port])
            self._update(entry, now, effects)

    def forget(self, entry: RouterPort, now: float, effects: list[MembershipEffect]) -> None:
        """Forget the routers of a family behind a port that were heard."""
        entry.routers = {}
        self._update(entry, now, effects)

    def port_removed(self, port: MemberPort, now: float, effects: list[MembershipEffect]) -> None:
        """Forget the routers behind a port."""
        for family in (4, 6):
            entry = self._ports.get((port.dpid, port.port_no, family))
            if entry is not None:
                entry.static = False
                entry.routers = {}
                self._update(entry, now, effects)

    def fire(self, entry: RouterPort, now: float, effects: list[MembershipEffect]) -> None:
        """Time out routers."""
        self._update(entry, now, effects)

    def _entry(self, key: tuple[int, int, int], settles_at: float) -> RouterPort:
        if key not in self._ports:
            self._ports[key] = RouterPort(*key, settles_at)
        return self._ports[key]

    def _update(self, entry: RouterPort, now: float, effects: list[MembershipEffect]) -> None:
        if entry.due_at() <= now:
            entry.routers = {speaker: heard for speaker, heard in entry.routers.items() if heard.until > now}
            if entry.settles_at <= now:
                entry.settles_at = inf
        present = entry.static or bool(entry.routers)
        self._announce(entry, present, effects)
        if present:
            self._timers.arm(entry, entry.due_at())
        else:
            self._timers.cancel(entry)
            del self._ports[entry.dpid, entry.port_no, entry.family]
        self._elect(entry.family, effects)

    def _announce(self, entry: RouterPort, present: bool, effects: list[MembershipEffect]) -> None:
        groups = entry.allowed() if present else None
        place = (entry.dpid, entry.port_no)
        on_request = present and applies(self.settings.router_ports_on_request, place)
        proxied = present and applies(self.settings.proxied_router_ports, place)
        on_join = present and applies(self.settings.router_ports_on_join, place)
        if on_join:
            on_request = entry.settles_at == inf and self._designated[entry.family] != place
        now_so = (present, groups, on_request, proxied, on_join)
        if now_so != (entry.announced, entry.groups, entry.on_request, entry.proxied, entry.on_join):
            entry.announced, entry.groups, entry.on_request, entry.proxied, entry.on_join = now_so
            effects.append(RouterPortChanged(entry.dpid, entry.port_no, entry.family, *now_so))

    def _elect(self, family: int, effects: list[MembershipEffect]) -> None:
        """Follow the election of the designated router (RFC 7761, 4.3.2), which is to get what every host sends."""
        bids = [
            (heard.dr_priority, speaker.address, (entry.dpid, entry.port_no))
            for entry in self._ports.values()
            for speaker, heard in entry.routers.items()
            if entry.family == family and not speaker.asks
        ]
        have_priorities = all(priority is not None for priority, _, _ in bids)
        best = max(bids, key=lambda bid: ((bid[0] or 0) if have_priorities else 0, bid[1]), default=None)
        before, self._designated[family] = self._designated[family], None if best is None else best[2]
        if self._designated[family] != before:
            for place in (before, self._designated[family]):
                entry = None if place is None else self._ports.get((*place, family))
                if entry is not None:
                    self._announce(entry, True, effects)
