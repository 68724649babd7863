"""Ports with a multicast router: set by the operator, or learnt from queries and PIM hellos (RFC 4541, 2.1.1)."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

from controller.membership.events import MembershipEffect, RouterPortChanged
from controller.membership.limits import Tally
from controller.membership.settings import MembershipLimits
from controller.membership.tables import Port
from controller.membership.timers import Timed, TimerQueue

FOREVER_HOLDTIME_S = 0xFFFF
"""The holdtime of a PIM neighbour that is never timed out (RFC 7761, 4.9.2)."""


class RouterPort(Timed):
    """What is known of routers of one family behind one port; `neighbours` maps PIM routers to their timeout."""

    __slots__ = ("announced", "dpid", "family", "neighbours", "port_no", "query_until", "static")

    def __init__(self, dpid: int, port_no: int, family: int) -> None:
        super().__init__()
        self.dpid = dpid
        self.port_no = port_no
        self.family = family
        self.static = False
        self.announced = False
        self.query_until = -inf
        self.neighbours: dict[bytes, float] = {}

    def until(self) -> float:
        """Return until when a router is taken to be there."""
        return inf if self.static else max(self.query_until, *self.neighbours.values(), -inf)

    def due_at(self) -> float:
        """Return when the last router times out."""
        return self.until() if self.announced else inf


class RouterPorts:
    """The router ports of the fabric, by (dpid, port_no, family)."""

    def __init__(self, limits: MembershipLimits, timers: TimerQueue, tally: Tally) -> None:
        self.limits = limits
        self._timers = timers
        self._tally = tally
        self._ports: dict[tuple[int, int, int], RouterPort] = {}

    def __iter__(self) -> Iterator[RouterPort]:
        return iter(self._ports.values())

    def get(self, dpid: int, port_no: int, family: int) -> RouterPort | None:
        """Return what is known of routers of a family behind a port, None where there are none."""
        return self._ports.get((dpid, port_no, family))

    def set_static(self, port: Port, family: int, static: bool, now: float, effects: list[MembershipEffect]) -> None:
        """Say whether the operator declares a port to be a router port."""
        if static or (port.dpid, port.port_no, family) in self._ports:
            entry = self._entry(port, family)
            entry.static = static
            self._update(entry, now, effects)

    def heard_query(self, port: Port, family: int, until: float, now: float, effects: list[MembershipEffect]) -> None:
        """Note a query from a port."""
        entry = self._entry(port, family)
        entry.query_until = max(entry.query_until, until)
        self._update(entry, now, effects)

    def heard_hello(
        self,
        port: Port,
        family: int,
        source: bytes,
        holdtime_s: float,
        now: float,
        effects: list[MembershipEffect],
    ) -> None:
        """Note a PIM hello; a holdtime of 0 is a farewell."""
        if holdtime_s <= 0 and (port.dpid, port.port_no, family) not in self._ports:
            return
        entry = self._entry(port, family)
        entry.neighbours = {address: at for address, at in entry.neighbours.items() if at > now and address != source}
        if holdtime_s > 0:
            if len(entry.neighbours) >= self.limits.routers_per_port:
                self._tally.warn(port, "limit-routers", "too many PIM neighbours behind one port", now, effects)
            else:
                entry.neighbours[source] = inf if holdtime_s >= FOREVER_HOLDTIME_S else now + holdtime_s
        self._update(entry, now, effects)

    def restore(self, entry: RouterPort, now: float, effects: list[MembershipEffect]) -> None:
        """Enter a router port read from the journal, unless it is known already."""
        key = (entry.dpid, entry.port_no, entry.family)
        if key not in self._ports:
            self._ports[key] = entry
            self._update(entry, now, effects)

    def port_removed(self, port: Port, now: float, effects: list[MembershipEffect]) -> None:
        """Forget the routers behind a port."""
        for family in (4, 6):
            entry = self._ports.get((port.dpid, port.port_no, family))
            if entry is not None:
                entry.static = False
                entry.query_until = -inf
                entry.neighbours = {}
                self._update(entry, now, effects)

    def fire(self, entry: RouterPort, now: float, effects: list[MembershipEffect]) -> None:
        """Time out a router port."""
        self._update(entry, now, effects)

    def _entry(self, port: Port, family: int) -> RouterPort:
        key = (port.dpid, port.port_no, family)
        if key not in self._ports:
            self._ports[key] = RouterPort(*key)
        return self._ports[key]

    def _update(self, entry: RouterPort, now: float, effects: list[MembershipEffect]) -> None:
        present = entry.until() > now
        if present != entry.announced:
            entry.announced = present
            effects.append(RouterPortChanged(entry.dpid, entry.port_no, entry.family, present))
        if present:
            self._timers.arm(entry, entry.until())
        else:
            self._timers.cancel(entry)
            del self._ports[entry.dpid, entry.port_no, entry.family]
