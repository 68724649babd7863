"""Entries at cores that groups share: which trees go by each, so that it goes some time after the last of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from controller.rules.model import FlowKey
from controller.trees.tree import Key

UNUSED_S = 5.0
"""How long an entry stays that nobody uses: packets may be under way that name its ports, and a switch next to it may
be slow to send others. Groups that come and go have it put and removed less often."""


class SharedEntries:
    """Who uses which entries; `counts` has how many there are, by dpid and table, `changed` where that is another.

    `unused` has those that nobody uses, and since when.
    A tree that takes an entry up has it put whether another uses it or not: that one may still wait for it.
    """

    def __init__(self) -> None:
        self.counts: Counter[tuple[int, int]] = Counter()
        self.changed: set[tuple[int, int]] = set()
        self._users: dict[tuple[int, FlowKey], set[Key]] = {}
        self.unused: dict[tuple[int, FlowKey], float] = {}

    def __contains__(self, place: tuple[int, FlowKey]) -> bool:
        return place in self._users

    def users(self, dpid: int, key: FlowKey) -> Iterable[Key]:
        """Return the trees that go by an entry."""
        return self._users.get((dpid, key), ())

    def take(self, dpid: int, key: FlowKey, user: Key) -> None:
        """Take in that a tree goes by an entry."""
        users = self._users.get((dpid, key))
        if users is None:
            users = self._users[dpid, key] = set()
            self._count(dpid, key, 1)
        self.unused.pop((dpid, key), None)
        users.add(user)

    def give_up(self, dpid: int, key: FlowKey, user: Key, now: float) -> None:
        """Take in that a tree goes by an entry no more."""
        users = self._users[dpid, key]
        users.discard(user)
        if not users:
            self.unused[dpid, key] = now

    def next_deadline(self) -> float | None:
        """Return when `take_unused` has something to tell, None where all are used."""
        return next(iter(self.unused.values())) + UNUSED_S if self.unused else None

    def take_unused(self, now: float) -> list[tuple[int, FlowKey]]:
        """Return the entries that nobody has used for some time, and forget them."""
        found = []
        for place, since_s in self.unused.items():
            if now < since_s + UNUSED_S:
                break
            found.append(place)
        for place in found:
            del self.unused[place], self._users[place]
            self._count(*place, -1)
        return found

    def take_unused_at(self, dpid: int, keys: Iterable[FlowKey]) -> list[tuple[int, FlowKey]]:
        """Return those of some entries that nobody uses, without a wait, and forget them."""
        found = [(dpid, key) for key in keys if (dpid, key) in self.unused]
        for place in found:
            del self.unused[place], self._users[place]
            self._count(*place, -1)
        return found

    def _count(self, dpid: int, key: FlowKey, change: int) -> None:
        place = dpid, key.table
        self.counts[place] += change
        if not self.counts[place]:
            del self.counts[place]
        self.changed.add(place)
