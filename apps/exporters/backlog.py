"""What waits for a writer thread, so that no poll waits for a disk."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable
from typing import Generic, TypeVar

T = TypeVar("T")


class Backlog(Generic[T]):
    """Items with weights, at most `capacity` in all: where a new one has no room, the oldest go and are counted.

    The writer is woken when a weight of `enough` has come together.
    """

    def __init__(self, capacity: int, enough: int) -> None:
        self.dropped = 0
        self._capacity = capacity
        self._enough = enough
        self._items: deque[tuple[T, int]] = deque()
        self._weight = 0
        self._hurried = False
        self._changed = threading.Condition()

    @property
    def weight(self) -> int:
        """The weight of what waits."""
        return self._weight

    @property
    def fill(self) -> float:
        """The part of the capacity that is taken, 0 to 1."""
        return self._weight / self._capacity

    def put(self, item: T, weight: int = 1) -> None:
        """Append an item; never waits for the writer."""
        with self._changed:
            self._items.append((item, weight))
            self._weight += weight
            self._make_room()
            if self._weight >= self._enough:
                self._changed.notify()

    def put_back(self, items: Iterable[tuple[T, int]]) -> None:
        """Return items that could not be written to the front, in their order."""
        with self._changed:
            for item, weight in reversed(list(items)):
                self._items.appendleft((item, weight))
                self._weight += weight
            self._make_room()

    def hurry(self) -> None:
        """Have the next, or present, `take` return at once."""
        with self._changed:
            self._hurried = True
            self._changed.notify()

    def take(self, timeout_s: float) -> list[tuple[T, int]]:
        """Wait until enough is there, or for `timeout_s`, and return all there is with its weights."""
        with self._changed:
            self._changed.wait_for(lambda: self._weight >= self._enough or self._hurried, timeout_s)
            self._hurried = False
            items, self._items, self._weight = list(self._items), deque(), 0
            return items

    def _make_room(self) -> None:
        while self._weight > self._capacity and self._items:
            _, weight = self._items.popleft()
            self._weight -= weight
            self.dropped += weight
