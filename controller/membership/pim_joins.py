"""What PIM routers have joined of each other through a domain: their join and prune messages, read along.

RFC 7761, 4.9.5 has the messages, RFC 8220 the principles. A port is in a group while a router behind it has joined
it, of any source, or is asked for it by a join of another router.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf
from typing import NamedTuple

from controller.membership.events import MembershipEffect, RouterJoined
from controller.membership.limits import Tally
from controller.membership.router_ports import RouterPorts, Speaker
from controller.membership.settings import MembershipLimits, PortKey
from controller.membership.tables import Port
from controller.membership.timers import Timed, TimerQueue
from controller.wire.packets import PimJoinPrune

OVERRIDE_S = 3.0
"""Time in which another router behind the port may override a prune (J/P_Override_Interval: RFC 7761, 4.11)."""

Channel = tuple[bytes, bytes | None]
"""The router that joins, and the source; None for any."""


class Joined(NamedTuple):
    """A join that holds: which router it asks, until when, and whether it was taken back since."""

    upstream: bytes
    until: float
    is_pruned: bool = False


class JoinedGroup(Timed):
    """A group that routers behind a port have joined, or are asked for."""

    __slots__ = ("group", "joins", "place")

    def __init__(self, place: PortKey, group: bytes) -> None:
        super().__init__()
        self.place = place
        self.group = group
        self.joins: dict[Channel, Joined] = {}

    def due_at(self) -> float:
        """Return when the next join ends."""
        return min((joined.until for joined in self.joins.values()), default=inf)


class PimJoins:
    """The joined groups of the ports of a domain.

    A router that hears a join of another one to the same neighbour holds its own back (join suppression), so that
    such a join keeps those of all.
    """

    def __init__(self, limits: MembershipLimits, timers: TimerQueue, tally: Tally) -> None:
        self.limits = limits
        self._timers = timers
        self._tally = tally
        self._groups: dict[bytes, dict[PortKey, JoinedGroup]] = {}
        self._counts: dict[PortKey, int] = {}

    def __iter__(self) -> Iterator[JoinedGroup]:
        for places in self._groups.values():
            yield from places.values()

    def at(self, place: PortKey, family: int) -> Iterator[bytes]:
        """Iterate over the groups of a family that routers behind a port have joined, or are asked for."""
        size = 4 if family == 4 else 16
        return (entry.group for entry in self if entry.place == place and len(entry.group) == size)

    def heard(
        self,
        port: Port,
        message: PimJoinPrune,
        routers: RouterPorts,
        now: float,
        effects: list[MembershipEffect],
    ) -> None:
        """Take in the message of a router; one that is not known at the port, by its hello, is passed over."""
        self._tally.count("pim-joins")
        here, asked = (port.dpid, port.port_no), routers.pim_place(message.upstream)
        known = routers.get(*here, message.family)
        if known is None or Speaker(message.source, False) not in known.routers:
            self._tally.count("pim-join-of-stranger")
            return
        # Another router behind the port may override a prune.
        pruned_s = now if sum(not speaker.asks for speaker in known.routers) == 1 else now + OVERRIDE_S
        until = now + min(message.holdtime_s, routers.settings.join_believed_s)
        for group, prefix_bits, joins, prunes in message.groups:
            if prefix_bits != 8 * len(group):
                self._tally.count("pim-join-of-prefix")
                continue
            for source in prunes:
                if source.is_wildcard or not source.is_rpt:
                    channel = (message.source, None if source.is_wildcard else source.address)
                    self._prune(group, channel, pruned_s, now, effects)
            for source in joins:
                if source.is_wildcard or not source.is_rpt:
                    channel = (message.source, None if source.is_wildcard else source.address)
                    joined = Joined(message.upstream, until)
                    self._keep_suppressed(group, channel[1], joined)
                    for place in dict.fromkeys((here, asked)):
                        if place is not None and not self.join(place, group, channel, joined, now, effects):
                            does = "has routers that join more groups than its limit: further joins are ignored"
                            self._tally.warn(port, "limit-joins", does, now, effects)

    def join(
        self,
        place: PortKey,
        group: bytes,
        channel: Channel,
        joined: Joined,
        now: float,
        effects: list[MembershipEffect],
    ) -> bool:
        """Enter a join at a port; False where it has no room for another one."""
        if joined.until <= now:
            self._prune(group, channel, now, now, effects)
            return True
        entry = self._groups.get(group, {}).get(place)
        if entry is None or channel not in entry.joins:
            if self._counts.get(place, 0) >= self.limits.joins_per_port:
                return False
            self._counts[place] = self._counts.get(place, 0) + 1
        if entry is None:
            entry = self._groups.setdefault(group, {})[place] = JoinedGroup(place, group)
            effects.append(RouterJoined(*place, group, True))
        entry.joins[channel] = joined
        self._timers.arm(entry, entry.due_at())
        return True

    def port_removed(self, place: PortKey, effects: list[MembershipEffect]) -> None:
        """Forget what routers behind a port have joined."""
        if place in self._counts:
            for entry in [entry for entry in self if entry.place == place]:
                self._end(entry, effects)

    def fire(self, entry: JoinedGroup, now: float, effects: list[MembershipEffect]) -> None:
        """End the joins that are due."""
        over = [channel for channel, joined in entry.joins.items() if joined.until <= now]
        for channel in over:
            del entry.joins[channel]
        self._counts[entry.place] -= len(over)
        if entry.joins:
            self._timers.arm(entry, entry.due_at())
        else:
            self._end(entry, effects)

    def _prune(
        self, group: bytes, channel: Channel, until: float, now: float, effects: list[MembershipEffect]
    ) -> None:
        for entry in list(self._groups.get(group, {}).values()):
            joined = entry.joins.get(channel)
            if joined is not None:
                entry.joins[channel] = joined._replace(until=min(until, joined.until), is_pruned=True)
                if until <= now:
                    self.fire(entry, now, effects)
                else:
                    self._timers.arm(entry, entry.due_at())

    def _keep_suppressed(self, group: bytes, source: bytes | None, heard: Joined) -> None:
        for entry in self._groups.get(group, {}).values():
            for channel, joined in entry.joins.items():
                is_same = channel[1] == source and joined.upstream == heard.upstream
                if is_same and not joined.is_pruned and joined.until < heard.until:
                    entry.joins[channel] = joined._replace(until=heard.until)

    def _end(self, entry: JoinedGroup, effects: list[MembershipEffect]) -> None:
        self._timers.cancel(entry)
        places = self._groups[entry.group]
        del places[entry.place]
        if not places:
            del self._groups[entry.group]
        left = self._counts.get(entry.place, 0) - len(entry.joins)
        if left:
            self._counts[entry.place] = left
        else:
            self._counts.pop(entry.place, None)
        effects.append(RouterJoined(*entry.place, entry.group, False))
