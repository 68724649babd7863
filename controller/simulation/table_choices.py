"""Choices of which groups are in a table: the controller's own, and others to hold it against."""

from __future__ import annotations

import heapq
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence

from controller.overcommit.draws import Chance, Urn
from controller.overcommit.residence import Residence, TableGroups
from controller.overcommit.shares import Shares
from controller.overcommit.states import FREED_PCT, TableRoom, next_room
from controller.overcommit.tables import GroupTables
from controller.simulation.table_trace import Choice, Trace

NEVER = 1 << 62
TABLE = 0
ONE_ENTRY = {TABLE: 1}
OWN = "default"
"""The controller's own choice among `CHOICES`."""


class ByController:
    """The controller's choice: misses are seen at once, other packets when counters are read."""

    def __init__(self, table: int, generator: Chance) -> None:
        self.readings = 0
        self.has_limits = False
        self._table = table
        self._residence: Residence[int] = Residence(generator, remembered=1 << 20)
        self._groups: TableGroups[int] = TableGroups()
        self._counted: dict[int, int] = {}
        self._room = TableRoom.HIGH

    def hit(self, group: int, position: int) -> None:
        """Count a packet at the switch."""
        counted = self._counted
        counted[group] = counted.get(group, 0) + 1

    def missed(self, group: int, position: int, now_s: float) -> bool:
        """Take a packet of a group that is out."""
        return self._residence.missed(group, now_s)

    def victims(self, group: int, position: int, now_s: float) -> Sequence[int] | None:
        """Return the group that is expected to send least, if that is less than the one that is to come in sends."""
        left = self._residence.find_leaving(group, now_s, self._groups)
        return None if left is None else (left,)

    def came_in(self, group: int, position: int, now_s: float) -> None:
        """Note that a group is in."""
        self._residence.came_in(group, now_s)
        self._groups.urn.add(group)

    def went_out(self, group: int) -> None:
        """Note that a group is out."""
        self._residence.went_out(group)
        self._groups.urn.remove(group)
        self._counted.pop(group, None)

    def due(self, now_s: float) -> Sequence[int]:
        """Read the counters when they are due, and have groups that have ended leave ahead of need."""
        self._read(now_s)
        table = self._table
        free = table - len(self._residence)
        self._room = next_room(self._room, free, table)
        if self._room < TableRoom.HARD:
            return ()
        leaving: list[int] = []
        while free + len(leaving) < FREED_PCT / 100 * table:
            left = self._residence.take_ended(self._groups)
            if left is None:
                break
            leaving.append(left)
        return leaving

    def _read(self, now_s: float) -> None:
        """Read the counters if they are due."""
        if now_s >= self._residence.next_reading_s():
            self._residence.read(self._counted, now_s)
            self._counted.clear()
            self.readings += 1


class ByShares(ByController):
    """The controller's choice where tenants share the table; `tenants` has that of each group."""

    def __init__(self, table: int, generator: Chance, shares: Shares, tenants: Sequence[str]) -> None:
        super().__init__(table, generator)
        self.has_limits = True
        self._tables: GroupTables[int] = GroupTables(generator, remembered=1 << 20)
        self._tables.set_capacity(TABLE, table)
        self._tables.use_shares(shares, lambda group: tenants[group])
        self._residence = self._tables.residence

    def victims(self, group: int, position: int, now_s: float) -> Sequence[int] | None:
        """Return the group that leaves of a tenant that has more than it is entitled to, else of the same tenant."""
        return self._tables.find_leaving(group, ONE_ENTRY, now_s)

    def came_in(self, group: int, position: int, now_s: float) -> None:
        """Note that a group is in."""
        self._tables.came_in(group, ONE_ENTRY, now_s)

    def went_out(self, group: int) -> None:
        """Note that a group is out."""
        self._tables.went_out(group)
        self._counted.pop(group, None)

    def due(self, now_s: float) -> Sequence[int]:
        """Read the counters when they are due, and have groups that have ended leave ahead of need."""
        self._read(now_s)
        return self._tables.take_ended() if self._tables.short else ()

    def entitled(self) -> dict[str, float]:
        """Return how many entries each tenant with entries is entitled to."""
        return {each.tenant: each.entitled for each in self._tables.tenants(TABLE)}


class _Eager:
    """Takes in every group that misses."""

    readings = 0
    has_limits = False

    def missed(self, group: int, position: int, now_s: float) -> bool:
        """Take the group in."""
        return True

    def due(self, now_s: float) -> Sequence[int]:
        """Have nobody leave ahead of need."""
        return ()


class LeastRecentlyUsed(_Eager):
    """Has the group leave whose last packet is longest ago: it would take a look at every packet."""

    def __init__(self) -> None:
        self._order: OrderedDict[int, None] = OrderedDict()

    def hit(self, group: int, position: int) -> None:
        """Note a packet."""
        self._order.move_to_end(group)

    def victims(self, group: int, position: int, now_s: float) -> Sequence[int]:
        """Return the group whose last packet is longest ago."""
        return (next(iter(self._order)),)

    def came_in(self, group: int, position: int, now_s: float) -> None:
        """Note that a group is in."""
        self._order[group] = None

    def went_out(self, group: int) -> None:
        """Note that a group is out."""
        del self._order[group]


class FirstIn(LeastRecentlyUsed):
    """Has the group leave that came in first."""

    def hit(self, group: int, position: int) -> None:
        """Let packets count for nothing."""


class AtRandom(_Eager):
    """Has a group leave that is drawn."""

    def __init__(self, generator: Chance) -> None:
        self._generator = generator
        self._urn: Urn[int] = Urn()

    def hit(self, group: int, position: int) -> None:
        """Let packets count for nothing."""

    def victims(self, group: int, position: int, now_s: float) -> Sequence[int]:
        """Return any group."""
        return (self._urn.draw(self._generator),)

    def came_in(self, group: int, position: int, now_s: float) -> None:
        """Note that a group is in."""
        self._urn.add(group)

    def went_out(self, group: int) -> None:
        """Note that a group is out."""
        self._urn.remove(group)


class Belady:
    """Has the group out whose next packet is farthest away, which takes knowing the future.

    A group that misses stays out where its own next packet is farther away than any other's.
    """

    readings = 0
    has_limits = False

    def __init__(self, trace: Trace) -> None:
        self._next = _next_positions(trace.groups)
        self._due: dict[int, int] = {}
        self._heap: list[tuple[int, int]] = []

    def hit(self, group: int, position: int) -> None:
        """Note a packet."""
        self._set(group, position)

    def missed(self, group: int, position: int, now_s: float) -> bool:
        """Take the group in unless it never sends again."""
        return self._next[position] < NEVER

    def victims(self, group: int, position: int, now_s: float) -> Sequence[int] | None:
        """Return the group whose next packet is farthest away, None where it is this one's."""
        while True:
            negative, farthest = self._heap[0]
            if self._due.get(farthest) == -negative:
                break
            heapq.heappop(self._heap)
        return None if -negative <= self._next[position] else (farthest,)

    def came_in(self, group: int, position: int, now_s: float) -> None:
        """Note that a group is in."""
        self._set(group, position)

    def went_out(self, group: int) -> None:
        """Note that a group is out."""
        del self._due[group]

    def due(self, now_s: float) -> Sequence[int]:
        """Have nobody leave ahead of need."""
        return ()

    def _set(self, group: int, position: int) -> None:
        following = self._next[position]
        self._due[group] = following
        heapq.heappush(self._heap, (-following, group))


def _next_positions(groups: Sequence[int]) -> list[int]:
    """Return for each packet the position of its group's next one."""
    following = [NEVER] * len(groups)
    latest: dict[int, int] = {}
    for position in range(len(groups) - 1, -1, -1):
        group = groups[position]
        following[position] = latest.get(group, NEVER)
        latest[group] = position
    return following


CHOICES: Mapping[str, Callable[[Trace, int, Chance], Choice]] = {
    OWN: lambda trace, table, generator: ByController(table, generator),
    "lru": lambda trace, table, generator: LeastRecentlyUsed(),
    "random": lambda trace, table, generator: AtRandom(generator),
    "fifo": lambda trace, table, generator: FirstIn(),
    "belady": lambda trace, table, generator: Belady(trace),
}
"""Choices by the names of `vsrt overcommit simulate`."""
