"""Timers by key, pulled: at most one moment per key, earliest first."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from typing import Generic, TypeVar

Key = TypeVar("Key")

_SLACK_COUNT = 64


class Deadlines(Generic[Key]):
    """One deadline per key. Deadlines at the same moment come out in the order in which they were set."""

    def __init__(self) -> None:
        self._current: dict[Key, tuple[float, int]] = {}
        self._heap: list[tuple[float, int, Key]] = []
        self._count = 0

    def __len__(self) -> int:
        return len(self._current)

    def __contains__(self, key: Key) -> bool:
        return key in self._current

    def at(self, key: Key) -> float | None:
        """Return the deadline of `key`, None where it has none."""
        current = self._current.get(key)
        return None if current is None else current[0]

    def set(self, key: Key, at: float) -> None:
        """Let `key` come due at `at` and at no other time."""
        self._count += 1
        self._current[key] = (at, self._count)
        if len(self._heap) > 2 * len(self._current) + _SLACK_COUNT:
            self._heap = [(at, count, key) for key, (at, count) in self._current.items()]
            heapify(self._heap)
        else:
            heappush(self._heap, (at, self._count, key))

    def set_sooner(self, key: Key, at: float) -> None:
        """Let `key` come due at `at`, unless it comes due before that."""
        current = self._current.get(key)
        if current is None or at < current[0]:
            self.set(key, at)

    def cancel(self, key: Key) -> None:
        """Forget the deadline of `key`, if it has one."""
        self._current.pop(key, None)

    def next(self) -> float | None:
        """Return the earliest deadline, None where there is none."""
        heap = self._heap
        while heap:
            at, count, key = heap[0]
            if self._current.get(key) == (at, count):
                return at
            heappop(heap)
        return None

    def due(self, now: float) -> Iterator[Key]:
        """Yield and forget the keys whose deadline is at or before `now`; one set meanwhile for `now` waits."""
        last = self._count
        while (at := self.next()) is not None and at <= now:
            _at, count, key = self._heap[0]
            if count > last:
                return
            heappop(self._heap)
            del self._current[key]
            yield key
