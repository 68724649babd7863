"""Which groups have their entries in a table, and which are a packet away: what comes in, and what leaves for it.

A controller sees every packet of a group that is out, since each misses, and of a group that is in only what its
counters have grown by when they are read. All that is decided here is decided from these two.

A group that is idle sends on at its rate r, or has ended. After a silence of I seconds it is still sending with the
odds exp(-rI) to hI, where h is how often groups end; what it is expected to send is r times that chance. Who is
expected to send least leaves first, and a group comes in for it only if it sends more. So groups that have ended
leave at once whatever they sent before, and the slow ones that go on are not driven out by slower ones.
"""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Generic

from controller.overcommit.draws import Chance, G, Urn

READING_INTERVAL_S = 2.0
"""The most time between two readings of the counters."""

LEAST_READING_INTERVAL_S = 0.25
"""The least, while readings that are made sooner find groups that have ended."""

USED_UP = 0.75
"""Part of the idle groups found last whose leave makes another reading due sooner."""

WORTH_PART = 0.02
"""Part of all groups that are in which must have ended for a sooner reading to have been worth it."""

ONE_PACKET = 1
"""Packets of a group while it was in, up to which it must show that it has more to say before it comes in again."""

SECOND_PACKET_S = 5.0
"""Within which such a group must send two packets to come in."""

RISE_WEIGHT = 0.7
"""What a reading counts for where a group sends faster than it was thought to."""

RATE_MEMORY_S = 30.0
"""Over which a rate falls, and misses are forgotten."""

LEAST_RATE = 0.1
"""Packets per second that a group is given credit for at least, so that it has some time to show what it sends."""

END_RATE = 0.05
"""How often a group that sends is taken to end, per second."""

ENDED_RATE = 0.02
"""Packets per second below which what a group is expected to send is nothing: it may leave ahead of need."""

DRAWN = 16
"""Groups of which the slowest leaves where none is idle."""

LEAST_ADVANTAGE = 1.1
"""How many times as much as the one that leaves a group must send to come in."""

LOOKED_AT = 64
"""Ended groups that are looked at for the one that frees most entries."""


_NOBODY: Mapping[Any, float] = {}


class _Inside:
    """A group that is in: when it was last active and read, its packets and its rate.

    Time of which nothing is known, as of a switch that did not answer, is no silence: it was active so much later.
    It `is_unread` where a reading told nothing of it.
    """

    __slots__ = ("active_s", "is_new", "is_unread", "packets", "rate", "read_s")

    def __init__(self, now_s: float, rate: float, is_new: bool) -> None:
        self.active_s = self.read_s = now_s
        self.packets = 1
        self.rate = rate
        self.is_new = is_new
        self.is_unread = False

    def count(self, packets: int, now_s: float) -> None:
        """Take in what a reading shows."""
        elapsed_s = max(now_s - self.read_s, LEAST_READING_INTERVAL_S)
        self.read_s = now_s
        self.is_unread = False
        seen = packets / elapsed_s
        if packets:
            self.packets += packets
            self.active_s = now_s
        if seen > self.rate:
            self.rate += RISE_WEIGHT * (seen - self.rate)
        else:
            self.rate = seen + (self.rate - seen) * math.exp(-elapsed_s / RATE_MEMORY_S)

    def expected(self, known_s: float) -> float:
        """Return what the group is expected to send by what is known until a time, in packets per second."""
        rate = max(self.rate, LEAST_RATE)
        silent_s = max(0.0, known_s - self.active_s)
        goes_on = math.exp(-rate * silent_s)
        return rate * goes_on / (goes_on + END_RATE * silent_s)


class _Outside:
    """A group that is out: its rate while it was in, its misses, and whether one is reason enough to come in."""

    __slots__ = ("missed_s", "misses", "needs_second", "rate")

    def __init__(self, rate: float, needs_second: bool) -> None:
        self.rate = rate
        self.needs_second = needs_second
        self.misses = 0.0
        self.missed_s = -math.inf

    def rate_now(self, now_s: float) -> float:
        """Return the rate of its misses, or that of when it was in if that is higher."""
        recent = self.misses * math.exp(-(now_s - self.missed_s) / RATE_MEMORY_S) / RATE_MEMORY_S
        return max(self.rate, recent)


class _Newcomers:
    """What groups send of which nothing is known when they come in: all that a first packet can say of one.

    It is what they had at their first readings by how long these were after they came; the latest count most.
    """

    __slots__ = ("_packets", "_read_s", "_seconds")

    def __init__(self) -> None:
        self._packets = self._seconds = 0.0
        self._read_s = -math.inf

    def count(self, packets: int, elapsed_s: float, now_s: float) -> None:
        """Take in what the first reading of one shows."""
        if self._seconds:
            kept = math.exp(-(now_s - self._read_s) / RATE_MEMORY_S)
            self._packets *= kept
            self._seconds *= kept
        self._read_s = now_s
        self._packets += packets
        self._seconds += elapsed_s

    @property
    def rate(self) -> float:
        """What one is expected to send, in packets per second; 0 before any was read."""
        return self._packets / self._seconds if self._seconds else 0.0


class TableGroups(Generic[G]):
    """Groups of one table, one of which may have to leave it: any may be drawn, idle ones are in an order.

    Attributes
    ----------
    urn
        Those with entries in the table.
    idle
        What each that was idle at the last reading is expected to send in packets/s, falling, and the group; some may
        be out by now.
    found, taken
        How many were idle then, and how many of these were to leave since.
    read_s
        When the reading was that all this is of.
    """

    __slots__ = ("found", "idle", "read_s", "taken", "urn")

    def __init__(self) -> None:
        self.urn: Urn[G] = Urn()
        self.idle: list[tuple[float, G]] = []
        self.found = self.taken = 0
        self.read_s = -math.inf


class Residence(Generic[G]):
    """Which groups are in and which are out, and which of them change places.

    Parameters
    ----------
    chance
        Draws the groups of which the slowest leaves.
    remembered
        Groups out of which the rate is known, at most; beyond, the one noted longest ago is forgotten.
    """

    def __init__(self, chance: Chance, remembered: int) -> None:
        self._chance = chance
        self._remembered = remembered
        self._inside: dict[G, _Inside] = {}
        self._outside: dict[G, _Outside] = {}
        self._newcomers = _Newcomers()
        self._turned_away = 0
        self._is_used_up = True
        self._read_s = self._known_s = -math.inf
        self._sooner_s = READING_INTERVAL_S

    def __contains__(self, group: G) -> bool:
        return group in self._inside

    def __len__(self) -> int:
        return len(self._inside)

    def came_in(self, group: G, now_s: float) -> None:
        """Note that a group is in, brought by a packet of it."""
        known = self._outside.pop(group, None)
        rate = 0.0 if known is None else known.rate
        self._inside[group] = _Inside(now_s, rate, is_new=not rate)

    def went_out(self, group: G) -> None:
        """Note that a group is out."""
        left = self._inside.pop(group)
        self._remember(group, _Outside(left.rate, left.packets <= ONE_PACKET))

    def forget(self, group: G) -> None:
        """Drop a group that is no more."""
        self._inside.pop(group, None)
        self._outside.pop(group, None)

    def missed(self, group: G, now_s: float) -> bool:
        """Note a packet of a group that is out; return whether it is reason for the group to come in."""
        known = self._outside.get(group)
        if known is None:
            known = _Outside(0.0, needs_second=False)
            self._remember(group, known)
        since_s = now_s - known.missed_s
        known.misses = known.misses * math.exp(-since_s / RATE_MEMORY_S) + 1
        known.missed_s = now_s
        return not known.needs_second or since_s <= SECOND_PACKET_S

    def remember(self, remembered: int) -> None:
        """Know the rate of so many groups out at most from here on."""
        self._remembered = remembered

    def active(self, since_s: float) -> list[G]:
        """Return the groups that are in and had a packet since a time."""
        return [group for group, inside in self._inside.items() if inside.active_s >= since_s]

    def idle(self, since_s: float) -> Iterator[G]:
        """Yield the groups that are in and had no packet since a time."""
        return (group for group, inside in self._inside.items() if inside.active_s < since_s)

    def next_reading_s(self) -> float:
        """Return when the counters are to be read: sooner where idle groups run short or somebody was turned away."""
        return self._read_s + (self._sooner_s if self._is_short() else READING_INTERVAL_S)

    def read(
        self,
        packets: Mapping[G, int],
        now_s: float,
        known_s: float | None = None,
        late: Mapping[G, float] = _NOBODY,
    ) -> None:
        """Take in how many packets each group that is in had since the reading before; those not named had none.

        Parameters
        ----------
        known_s
            Until when that is known for sure, as switches were asked then; by default until now.
        late
            Groups of which it is known for less long, and until when.
        """
        known_s = self._learn(packets, now_s if known_s is None else known_s, late)
        idle = ended = 0
        for group, inside in self._inside.items():
            count = packets.get(group, 0)
            if not count and (inside.read_s >= known_s or inside.read_s >= late.get(group, now_s)):
                inside.is_unread = True
            else:
                self._count(inside, count, now_s)
            if not count and inside.active_s < known_s:
                idle += 1
                ended += inside.expected(known_s) <= ENDED_RATE
        if self._is_short():
            self._pace(ended)
        self._turned_away = 0
        self._is_used_up = not idle
        self._read_s = now_s

    def read_active(
        self,
        packets: Mapping[G, int],
        now_s: float,
        known_s: float | None = None,
        late: Mapping[G, float] = _NOBODY,
    ) -> None:
        """Take in the same where nobody is to leave: silent groups are left to the next `read`."""
        self._learn(packets, now_s if known_s is None else known_s, late)
        for group, count in packets.items():
            inside = self._inside.get(group)
            if inside is not None:
                self._count(inside, count, now_s)
        self._turned_away = 0
        self._sooner_s = READING_INTERVAL_S
        self._read_s = now_s

    def _learn(self, packets: Mapping[G, int], known_s: float, late: Mapping[G, float]) -> float:
        """Have it known until a time who is silent, of late ones for less long; return the time."""
        before_s, self._known_s = self._known_s, max(known_s, self._known_s)
        for group, since_s in late.items():
            inside = self._inside.get(group)
            if inside is not None and not packets.get(group):
                inside.active_s += max(0.0, self._known_s - max(since_s, before_s, inside.active_s))
        return self._known_s

    def _count(self, inside: _Inside, count: int, now_s: float) -> None:
        """Take in what a reading shows of a group, which may have been silent at some before."""
        if inside.is_new:
            inside.is_new = False
            self._newcomers.count(count, max(now_s - inside.read_s, LEAST_READING_INTERVAL_S), now_s)
        if count and inside.read_s < self._read_s and not inside.is_unread:
            inside.count(0, self._read_s)
        inside.count(count, now_s)

    def take_ended(self, at: TableGroups[G], frees: Callable[[G], int] | None = None) -> G | None:
        """Return a group that may leave ahead of need, for it has ended; None where the last reading found no more.

        Parameters
        ----------
        at
            The groups that it is one of, all of them in.
        frees
            How many entries that are wanted a group would free; one that would free none is passed over.
        """
        return self._take(at, ENDED_RATE, frees)

    def find_leaving(
        self, group: G, now_s: float, at: TableGroups[G], frees: Callable[[G], int] | None = None
    ) -> G | None:
        """Return which group leaves for one that is to come in, or needs more; None where that sends too little.

        Parameters
        ----------
        at, frees
            As in `take_ended`.
        """
        known, inside = self._outside.get(group), self._inside.get(group)
        rate = 0.0 if known is None else known.rate_now(now_s)
        rate = rate if inside is None else inside.rate
        is_new = inside is None and (known is None or not known.rate)
        expected = max(rate, self._newcomers.rate) if is_new else rate
        leaving = self._take(at, expected / LEAST_ADVANTAGE, frees)
        if leaving is None and not at.idle:
            leaving = self._draw_slower(at.urn, rate, frees)
        self._turned_away += leaving is None or self._inside[leaving].expected(self._known_s) > ENDED_RATE
        return leaving

    def revoke(self, at: TableGroups[G], frees: Callable[[G], int]) -> G | None:
        """Return which of some groups leaves whatever the others send; None where none frees what is wanted."""
        leaving = self._take(at, math.inf, frees)
        return self._draw_slower(at.urn, math.inf, frees) if leaving is None else leaving

    def silent(self, at: TableGroups[G]) -> Iterator[G]:
        """Yield those that were idle at the last reading and are in yet, first who is expected to send least."""
        if at.read_s < self._read_s:
            self._order(at)
        return (group for _, group in reversed(at.idle) if group in at.urn)

    def is_active(self, group: G, since_s: float) -> bool:
        """Tell whether a group that is in had a packet since a time."""
        return self._inside[group].active_s >= since_s

    def silence_s(self, group: G, now_s: float) -> float:
        """Return how long ago a group that is in had a packet at the latest, in seconds; 0 where it is out."""
        inside = self._inside.get(group)
        return 0.0 if inside is None else now_s - inside.active_s

    @property
    def read_s(self) -> float:
        """When the counters were read last."""
        return self._read_s

    def stays(self, group: G, at: TableGroups[G]) -> None:
        """Take back that a group was to leave: all that might have left with it would not have been enough."""
        inside = self._inside[group]
        idle = inside.expected(self._known_s), group
        if inside.active_s < self._known_s and idle not in at.idle:
            insort(at.idle, idle, key=_by_falling)
            at.taken -= 1

    def _is_short(self) -> bool:
        return self._turned_away > 0 or self._is_used_up

    def _pace(self, ended: int) -> None:
        """Choose how soon to read again from how many groups a reading has found to have ended."""
        worth = max(1, min(self._turned_away, math.ceil(WORTH_PART * len(self._inside))))
        factor = 0.5 if ended >= worth else 2.0
        self._sooner_s = min(max(self._sooner_s * factor, LEAST_READING_INTERVAL_S), READING_INTERVAL_S)

    def _take(self, at: TableGroups[G], most: float, frees: Callable[[G], int] | None) -> G | None:
        """Return the idle group expected to send least, if that is not above `most`; of ended ones the freest."""
        if at.read_s < self._read_s:
            self._order(at)
        idle = at.idle
        best, freed = -1, 0
        for position in range(len(idle) - 1, -1, -1):
            expected, group = idle[position]
            if expected > most or (best >= 0 and (expected > ENDED_RATE or len(idle) - position > LOOKED_AT)):
                break
            if group not in at.urn:
                continue
            wanted = 1 if frees is None else frees(group)
            if wanted > freed:
                best, freed = position, wanted
            if frees is None:
                break
        if best < 0:
            return None
        at.taken += 1
        self._is_used_up |= at.taken >= USED_UP * at.found
        taken = idle.pop(best)[1]
        while idle and idle[-1][1] not in at.urn:
            idle.pop()
        return taken

    def _order(self, at: TableGroups[G]) -> None:
        """Find those that were idle at the last reading."""
        at.read_s, known_s = self._read_s, self._known_s
        inside = ((group, self._inside[group]) for group in at.urn)
        at.idle = [(each.expected(known_s), group) for group, each in inside if each.active_s < known_s]
        at.idle.sort(key=_by_falling)
        at.found, at.taken = len(at.idle), 0

    def _draw_slower(self, groups: Urn[G], rate: float, frees: Callable[[G], int] | None) -> G | None:
        drawn = dict.fromkeys(groups.draw(self._chance) for _ in range(DRAWN if len(groups) else 0))
        expected = {group: self._inside[group].expected(self._known_s) for group in drawn}
        for group in sorted(drawn, key=expected.__getitem__):
            if rate < LEAST_ADVANTAGE * expected[group]:
                return None
            if frees is None or frees(group):
                return group
        return None

    def _remember(self, group: G, known: _Outside) -> None:
        self._outside[group] = known
        while len(self._outside) > self._remembered:
            self._outside.pop(next(iter(self._outside)))


def _by_falling(entry: tuple[float, G]) -> float:
    return -entry[0]
