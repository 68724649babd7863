"""Channels of named sources that are silent while others of their group are not, and covering trees for these alone.

A group that is silent as a whole goes under a covering tree with all that it has (`covering`). Of one that is not,
each channel that members name by its source, and from which nothing came, may be under one by itself: its senders'
switches and those of its members have entries for it by the address of that tree, all others none of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import islice
from math import ceil, inf
from typing import TypeAlias

from controller.multicast.covers import Channel, channel_members, channel_switches
from controller.multicast.departures import Departures
from controller.multicast.group import Group, Sender, SenderKey
from controller.multicast.groups import GroupPlane
from controller.multicast.table_limits import table_of
from controller.overcommit.covers import CoverNeed, sending_part
from controller.rules.compile import COVERED_VERSIONS
from controller.rules.pipeline import FORWARD, VLAN_FORWARD

GROUPS_AT_ONCE, CHANNELS_AT_ONCE = 256, 1024
"""Groups whose channels are looked at between two readings of counters, at most, and channels of these, but for the
last group."""

GROUP_TABLES = (FORWARD, VLAN_FORWARD)
"""The tables that have an entry of each group, at switches of OpenFlow 1.3."""

LEAST_BPS = 6000
"""What a sender of which no rate is known is taken to send for each packet between two readings, in bits per second:
a full frame every 2 s."""

_Senders: TypeAlias = dict[SenderKey, Sender]


class CoveredChannels:
    """Which channels of a plane's groups may be under covering trees by themselves, and which sent again.

    Attributes
    ----------
    waking
        The sources that sent while their channels were apart, by group.
    """

    def __init__(self, plane: GroupPlane, departures: Departures) -> None:
        self.waking: dict[bytes, dict[bytes, None]] = {}
        self._plane = plane
        self._departures = departures
        self._heard: dict[bytes, None] = {}
        self._sent_bps: dict[bytes, dict[bytes, dict[int, int]]] = {}
        self._known_s = -inf
        self._late: Collection[bytes] = ()

    def clear(self) -> None:
        """Forget all that was told of senders."""
        for known in (self.waking, self._heard, self._sent_bps):
            known.clear()

    def forget(self, address: bytes) -> None:
        """Drop all that is known of a group that is no more."""
        for known in (self.waking, self._heard, self._sent_bps):
            known.pop(address, None)

    def read(self, addresses: Collection[bytes], known_s: float, late: Collection[bytes]) -> None:
        """Take in which groups had packets since the last reading, for which switches were asked at a time.

        Of those that are `late` it is not known of all senders.
        """
        self._known_s, self._late = known_s, late
        for address in addresses:
            group = self._plane.groups.get(address)
            if group is not None and group.named_sources:
                self._heard[address] = None
                self._take(group)

    def _take(self, group: Group) -> None:
        """Take in what came of each source that members name."""
        named, apart = group.named_sources or (), group.apart or {}
        sent: dict[bytes, Counter[int]] = {}
        for key, sender in group.senders.items():
            if sender.admitted and sender.sent_s >= self._known_s and key.address in named:
                sent.setdefault(key.address, Counter())[key.dpid] += round(sender.rate_bps) or LEAST_BPS
        before = self._sent_bps.get(group.address, {})
        self._sent_bps[group.address] = {source: bps for source, bps in before.items() if source in named} | sent
        for source in sent:
            if source in apart:
                self.waking.setdefault(group.address, {})[source] = None

    def wake_all(self) -> None:
        """Have all channels that are apart have their own trees again."""
        for channels in self._plane.covers.channels.values():
            for address, source in channels:
                self.waking.setdefault(address, {})[source] = None

    def wanted(self, short: Mapping[int, int], now: float) -> Iterator[tuple[Channel, CoverNeed]]:
        """Yield channels that would free entries of short tables by going under a tree, of some groups in turn."""
        left = CHANNELS_AT_ONCE
        for address in list(islice(self._heard, GROUPS_AT_ONCE)):
            if left <= 0:
                return
            del self._heard[address]
            group = self._plane.groups.get(address)
            if group is None or not group.named_sources:
                continue
            self._heard[address] = None
            if address not in self._late and group.trees is None and self.may_go_over(group, now):
                left -= len(group.named_sources)
                yield from self._wanted_of(group, group.named_sources, short, now)

    def _wanted_of(
        self, group: Group, sources: Iterable[bytes], short: Mapping[int, int], now: float
    ) -> Iterator[tuple[Channel, CoverNeed]]:
        by_source, places, apart = _by_source(group), _places(group), group.apart or {}
        for source in sources:
            senders = by_source.get(source, {})
            if source in apart or any(_last_s(each) >= self._known_s for each in senders.values()):
                continue
            need = self._need(group, source, senders, now)
            own = need.switches
            if any(table in short and dpid not in own for dpid, table in places.get(source, ())):
                yield Channel(group.address, source), need

    def may_go_over(self, group: Group, now: float) -> bool:
        """Tell whether channels of a group that is in may come and go: nothing of it is under way.

        Entries that they have by the group's own tree must not be there from before.
        """
        transitions = self._plane.transitions
        if group.address in self._departures or transitions.settle(group, now):
            return False
        return not transitions.has_former(group, group.tree_version)

    def may_be_under(self, channel: Channel, number: int) -> bool:
        """Tell whether a covering tree holds a channel, and no switch may have former entries of it there."""
        group = self._plane.groups[channel.address]
        routers = self._plane.routers.of_group(group.address, group.senders)
        if self._plane.transitions.has_former(group, COVERED_VERSIONS + number):
            return False
        return self._plane.covers.holds_channel(group, channel.source, number, routers)

    def entries_under(self, channel: Channel) -> Counter[int]:
        """Return how many entries of its own a channel has in each table while it is under a covering tree."""
        group = self._plane.groups[channel.address]
        routers = self._plane.routers.of_group(group.address, group.senders)
        table_id = VLAN_FORWARD if group.vlan_id else FORWARD
        return Counter(table_of(dpid, table_id) for dpid in channel_switches(group, channel.source, routers))

    def need(self, channel: Channel, now: float) -> CoverNeed:
        """Return what a channel is expected to send, by what it did when it sent last, and where its members are."""
        group = self._plane.groups[channel.address]
        return self._need(group, channel.source, _by_source(group).get(channel.source, {}), now)

    def _need(self, group: Group, source: bytes, senders: _Senders, now: float) -> CoverNeed:
        rates: Counter[int] = Counter()
        for key, sender in senders.items():
            rates[key.dpid] += round(sender.rate_bps) or LEAST_BPS
        sent = self._sent_bps.get(group.address, {}).get(source, {})
        part = sending_part(now - max(map(_last_s, senders.values()), default=-inf))
        routers = self._plane.routers.of_group(group.address, group.senders)
        members = frozenset(channel_members(group, source, routers))
        charged = {dpid: ceil(max(bps, sent.get(dpid, 0)) * part) for dpid, bps in rates.items()}
        return CoverNeed(charged, members, group.queue_id)


def _by_source(group: Group) -> dict[bytes, _Senders]:
    """Return the admitted senders of a group by their source addresses."""
    found: dict[bytes, _Senders] = {}
    for key, sender in group.senders.items():
        if sender.admitted:
            found.setdefault(key.address, {})[key] = sender
    return found


def _last_s(sender: Sender) -> float:
    """Return when a sender was found to have sent last, or became known."""
    return max(sender.sent_s, sender.since_s)


def _places(group: Group) -> dict[bytes, list[tuple[int, int]]]:
    """Return the switches and tables that have an entry of each channel of a named source."""
    found: dict[bytes, list[tuple[int, int]]] = {}
    for dpid, rules in group.rules.items():
        for rule in rules:
            source, table_id = rule.key.match.ip_src, rule.key.table
            if source is not None and table_id in GROUP_TABLES:
                found.setdefault(source, []).append((dpid, table_of(dpid, table_id)))
    return found
