"""What PIM routers have joined of each other through a domain: their join and prune messages, read along.

RFC 7761, 4.5 and 4.9.5 have the messages, RFC 8220 the principles. A port is in a group while a router behind it has
joined it, or is asked for it by a join of another router: for the sources joined, or for every one but those that all
who joined it of any source have pruned from the shared tree.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import inf
from typing import NamedTuple

from controller.membership.events import ANY_SOURCE, FilterMode, Interest, MembershipEffect, RouterJoined
from controller.membership.limits import MembershipTally
from controller.membership.router_ports import HeardRouter, RouterPortTable
from controller.membership.settings import MembershipLimits, PortKey
from controller.membership.tables import MemberPort
from controller.membership.timers import TimedState, TimerQueue
from controller.wire.packets import PimGroup, PimJoinPrune

OVERRIDE_S = 3.0
"""Time in which another router behind the port may override a prune (J/P_Override_Interval: RFC 7761, 4.11)."""

Channel = tuple[bytes, bytes | None]
"""The router that joins, and the source; None for any."""


class Joined(NamedTuple):
    """A join that holds: which router it asks, until when, and whether it was taken back since."""

    upstream: bytes
    until: float
    is_pruned: bool = False


class Pruned(NamedTuple):
    """A source that a router wants no more by the shared tree of another one (S,G,rpt), from when and until when."""

    upstream: bytes
    since: float
    until: float
    holds: bool = False


class JoinedGroup(TimedState):
    """A group that routers behind a port have joined, or are asked for.

    `prunes` are by router and source; `told` is what was last said that the port is to get, None before.
    """

    __slots__ = ("group", "joins", "place", "prunes", "told")

    def __init__(self, place: PortKey, group: bytes) -> None:
        super().__init__()
        self.place = place
        self.group = group
        self.joins: dict[Channel, Joined] = {}
        self.prunes: dict[tuple[bytes, bytes], Pruned] = {}
        self.told: Interest | None = None

    def due_at(self) -> float:
        """Return when the next join or prune ends, or a prune is to hold."""
        ends = [joined.until for joined in self.joins.values()]
        ends += [pruned.until if pruned.holds else pruned.since for pruned in self.prunes.values()]
        return min(ends, default=inf)

    def postpone(self, by_s: float) -> None:
        """Have all joins and prunes end, and prunes hold, so much later."""
        self.joins = {by: joined._replace(until=joined.until + by_s) for by, joined in self.joins.items()}
        self.prunes = {
            key: pruned._replace(since=pruned.since + by_s, until=pruned.until + by_s)
            for key, pruned in self.prunes.items()
        }

    def interest(self, sources_bound: int) -> Interest:
        """Return what the port is to get; every source where more than a number would have to be named."""
        by_any = [router for router, source in self.joins if source is None]
        named = frozenset(source for _, source in self.joins if source is not None)
        if by_any:
            pruned = [
                {source for (by, source), prune in self.prunes.items() if by == router and prune.holds}
                for router in by_any
            ]
            wanted = Interest(FilterMode.EXCLUDE, frozenset(set.intersection(*pruned) - named))
        else:
            wanted = Interest(FilterMode.INCLUDE, named)
        return wanted if len(wanted.sources) <= sources_bound else ANY_SOURCE


class PimJoins:
    """The joined groups of the ports of a domain.

    A router that hears a join of another one to the same neighbour holds its own back (join suppression), so that
    such a join keeps those of all.
    """

    def __init__(self, limits: MembershipLimits, timers: TimerQueue, tally: MembershipTally) -> None:
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
        port: MemberPort,
        message: PimJoinPrune,
        routers: RouterPortTable,
        now: float,
        effects: list[MembershipEffect],
    ) -> None:
        """Take in the message of a router; one that is not known at the port, by its hello, is passed over."""
        self._tally.count("pim-joins")
        here, asked = (port.dpid, port.port_no), routers.pim_place(message.upstream)
        known = routers.get(*here, message.family)
        if known is None or HeardRouter(message.source, False) not in known.routers:
            self._tally.count("pim-join-of-stranger")
            return
        # Another router behind the port may override a prune.
        pruned_s = now if sum(not speaker.asks for speaker in known.routers) == 1 else now + OVERRIDE_S
        until = now + min(message.holdtime_s, routers.settings.join_believed_s)
        for listed in message.groups:
            group, prefix_bits, joins, prunes = listed
            if prefix_bits != 8 * len(group):
                self._tally.count("pim-join-of-prefix")
                continue
            for source in prunes:
                if source.is_wildcard or not source.is_rpt:
                    channel = (message.source, None if source.is_wildcard else source.address)
                    self._prune(group, channel, pruned_s)
            places = [place for place in dict.fromkeys((here, asked)) if place is not None]
            refused_count = 0
            for source in joins:
                if source.is_wildcard or not source.is_rpt:
                    channel = (message.source, None if source.is_wildcard else source.address)
                    joined = Joined(message.upstream, until)
                    self._keep_suppressed(group, channel[1], joined)
                    for place in places:
                        refused_count += not self._enter(place, group, channel, joined)
            for place in places:
                begins = pruned_s if place == here else now + OVERRIDE_S
                refused_count += not self._follow_shared(place, message, listed, begins, until)
            for entry in list(self._groups.get(group, {}).values()):
                self.fire(entry, now, effects)
            for _ in range(refused_count):
                does = "has routers that join and prune more than its limit: further joins and prunes are ignored"
                self._tally.warn(port, "limit-joins", does, now, effects)

    def restore(
        self,
        place: PortKey,
        group: bytes,
        joins: Mapping[Channel, Joined],
        prunes: Mapping[Channel, Pruned],
        now: float,
        effects: list[MembershipEffect],
    ) -> None:
        """Enter what was joined and pruned of a group at a port, as far as there is room for it."""
        for channel, joined in joins.items():
            self._enter(place, group, channel, joined)
        entry = self._groups.get(group, {}).get(place)
        if entry is None:
            return
        for (router, source), pruned in prunes.items():
            if source is not None and (router, source) not in entry.prunes and self._has_room(place):
                entry.prunes[router, source] = pruned
        self.fire(entry, now, effects)

    def port_removed(self, place: PortKey, effects: list[MembershipEffect]) -> None:
        """Forget what routers behind a port have joined."""
        if place in self._counts:
            for entry in [entry for entry in self if entry.place == place]:
                self._end(entry, effects)

    def forget(self, entry: JoinedGroup, effects: list[MembershipEffect]) -> None:
        """Forget what routers behind a port have joined of a group."""
        self._end(entry, effects)

    def fire(self, entry: JoinedGroup, now: float, effects: list[MembershipEffect]) -> None:
        """End the joins and prunes that are due, have prunes hold, and tell what the port is to get from now on."""
        before = len(entry.joins) + len(entry.prunes)
        entry.joins = {channel: joined for channel, joined in entry.joins.items() if joined.until > now}
        entry.prunes = {
            key: pruned._replace(holds=pruned.since <= now)
            for key, pruned in entry.prunes.items()
            if pruned.until > now and (key[0], None) in entry.joins
        }
        self._counts[entry.place] -= before - len(entry.joins) - len(entry.prunes)
        if not entry.joins:
            self._end(entry, effects)
            return
        self._timers.arm(entry, entry.due_at())
        wanted = entry.interest(self.limits.sources_per_group)
        if wanted != entry.told:
            entry.told = wanted
            effects.append(RouterJoined(*entry.place, entry.group, wanted))

    def _has_room(self, place: PortKey) -> bool:
        """Take room for one more join or prune at a port; False where there is none."""
        count = self._counts.get(place, 0)
        if count >= self.limits.joins_per_port:
            return False
        self._counts[place] = count + 1
        return True

    def _enter(self, place: PortKey, group: bytes, channel: Channel, joined: Joined) -> bool:
        entry = self._groups.get(group, {}).get(place)
        if (entry is None or channel not in entry.joins) and not self._has_room(place):
            return False
        if entry is None:
            entry = self._groups.setdefault(group, {})[place] = JoinedGroup(place, group)
        entry.joins[channel] = joined
        return True

    def _follow_shared(
        self, place: PortKey, message: PimJoinPrune, listed: PimGroup, begins: float, until: float
    ) -> bool:
        """Take in at a port what a message says of single sources on the shared tree; False without room for it.

        A join of the shared tree stands for its sources but those pruned in the same message (RFC 7761, 4.5.3). A
        join of one of them takes back the prunes of others too, towards the same router.
        """
        entry = self._groups.get(listed.group, {}).get(place)
        if entry is None:
            return True
        pruned = {source.address for source in listed.prunes if source.is_rpt and not source.is_wildcard}
        joined = {source.address for source in listed.joins if source.is_rpt and not source.is_wildcard}
        is_whole = any(source.is_wildcard for source in listed.joins)
        over = [
            (router, source)
            for (router, source), prune in entry.prunes.items()
            if (router == message.source and is_whole and source not in pruned)
            or (prune.upstream == message.upstream and source in joined)
        ]
        for key in over:
            del entry.prunes[key]
        self._counts[place] -= len(over)
        shared = entry.joins.get((message.source, None))
        if shared is None or shared.upstream != message.upstream:
            return True
        for address in sorted(pruned - joined):
            key = (message.source, address)
            before = entry.prunes.get(key)
            if before is None and not self._has_room(place):
                return False
            since = begins if before is None else before.since
            entry.prunes[key] = Pruned(message.upstream, since, until, before is not None and before.holds)
        return True

    def _prune(self, group: bytes, channel: Channel, until: float) -> None:
        for entry in self._groups.get(group, {}).values():
            joined = entry.joins.get(channel)
            if joined is not None:
                entry.joins[channel] = joined._replace(until=min(until, joined.until), is_pruned=True)

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
        left = self._counts.get(entry.place, 0) - len(entry.joins) - len(entry.prunes)
        if left:
            self._counts[entry.place] = left
        else:
            self._counts.pop(entry.place, None)
        if entry.told is not None:
            effects.append(RouterJoined(*entry.place, entry.group, None))
