"""The bound on groups that have a tree: who is refused for want of room, who gives way, and who is served next."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from controller.multicast.groups import GroupPlane

WAITING_BOUND = 65536
"""Refused groups that are remembered; those beyond wait until all of these have been served."""


class Room:
    """Counts trees, those promised but not there yet, and those that are about to go.

    A group that nobody receives holds its tree only as long as no receiver needs the room: it gives way, and waits
    again. Groups wait in the order in which they were refused, those with receivers before those with senders alone.
    """

    def __init__(self, plane: GroupPlane, bound: int) -> None:
        self.bound = bound
        self.overflowed = False
        self._plane = plane
        self._promised: set[bytes] = set()
        self._giving_way: dict[bytes, None] = {}
        self._receiving: dict[bytes, None] = {}
        self._sending: dict[bytes, None] = {}
        self._ready: dict[bytes, None] = {}

    def has(self, group: bytes) -> bool:
        """Tell whether a group has a tree already, or there is room for one more."""
        return self._holds(group) or self._used() < self.bound

    def refuses(self, group: bytes, receives: bool) -> bool:
        """Tell whether a group, with a receiver or with senders alone, must wait; it is remembered then."""
        trees = self._plane.forest.trees
        if len(trees) + len(self._promised) < self.bound:  # for less than `_used` takes
            return False
        if self._holds(group) or group in self._promised or self._used() < self.bound:
            return False
        if receives and self._enough_unheard() is not None:
            return False
        if len(self._receiving) + len(self._sending) < WAITING_BOUND:
            (self._receiving if receives else self._sending)[group] = None
        else:
            self.overflowed = True
        return True

    def promise(self, group: bytes) -> None:
        """Keep room for a group that a receiver was admitted to, and have another give way where there is none."""
        trees, promised, giving_way = self._plane.forest.trees, self._promised, self._giving_way
        if not (giving_way or self._sending or self._receiving) and len(trees) + len(promised) < self.bound:
            if group not in trees:
                promised.add(group)
            return
        if group in promised or (group in trees and group not in giving_way):
            return
        if len(trees) + len(promised) >= self.bound and (unheard := self._enough_unheard()) is not None:
            giving_way.update(dict.fromkeys(unheard))
        if giving_way and group in giving_way:
            del giving_way[group]
        else:
            promised.add(group)
        if self._sending or self._receiving:
            self.served(group)

    def served(self, group: bytes) -> None:
        """Take note that a group has room now: whoever else of it waits is next."""
        if group in self._sending or group in self._receiving:
            self._sending.pop(group, None)
            self._receiving.pop(group, None)
            self._ready[group] = None

    def is_quiet(self) -> bool:
        """Tell whether nobody waits, gives way or was promised room."""
        return not (
            self._promised or self._giving_way or self._ready or self._receiving or self._sending or self.overflowed
        )

    def settle(self) -> list[bytes]:
        """Count what has a tree from now on; returns the groups that give way, which wait again."""
        self._promised.clear()
        if not self._giving_way:
            return []
        giving, self._giving_way = list(self._giving_way), {}
        self._sending.update(dict.fromkeys(giving))
        return giving

    def waits(self) -> bool:
        """Tell whether a group that waits can be served now."""
        if self._ready:
            return True
        if not self._receiving and not self._sending:
            return False
        return self._used() < self.bound or bool(
            self._receiving and self._used() - self.bound < len(self._plane.unheard)
        )

    def next_waiting(self, count: int) -> Iterator[bytes]:
        """Yield up to `count` groups that can be served now, each after the ones before were dealt with."""
        for _ in range(count):
            if not self.waits():
                return
            waiting = self._ready or self._receiving or self._sending
            group = next(iter(waiting))
            del waiting[group]
            yield group

    @property
    def waiting_count(self) -> int:
        """How many groups wait."""
        return len(self._ready) + len(self._receiving) + len(self._sending)

    def _holds(self, group: bytes) -> bool:
        """Tell whether a group has a tree, and keeps it."""
        return group in self._plane.forest.trees and group not in self._giving_way

    def _used(self) -> int:
        plane = self._plane
        return len(plane.forest.trees) - plane.aliases.bound_count + len(self._promised) - len(self._giving_way)

    def _enough_unheard(self) -> list[bytes] | None:
        """Return the groups that can give way so that there is room for another; None where they are too few.

        More than one has to where the bound was lowered.
        """
        missing = self._used() - self.bound + 1
        if missing <= 0:
            return []
        giving = self._giving_way
        others = (other for other in self._plane.unheard if other not in giving)
        found = list(islice(others, missing))
        return None if len(found) < missing else found
