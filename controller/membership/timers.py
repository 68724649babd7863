"""Deadlines pulled by the shell: a heap whose entries are corrected only when they come to the top."""

from __future__ import annotations

from heapq import heapify, heappop, heappush, heapreplace
from math import inf

_COMPACT_ABOVE = 1024


class TimedState:
    """Something with a deadline, which may move later without telling the queue (but not earlier)."""

    __slots__ = ("armed_at",)

    def __init__(self) -> None:
        self.armed_at = inf

    def due_at(self) -> float:
        """Return the present deadline; infinity where there is none."""
        raise NotImplementedError


class TimerQueue:
    """All deadlines of a core, in the order in which they fall due."""

    __slots__ = ("_armed_count", "_heap", "_pushed_count")

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, TimedState]] = []
        self._pushed_count = 0
        self._armed_count = 0

    def __len__(self) -> int:
        return len(self._heap)

    def arm(self, timed: TimedState, at: float) -> None:
        """See that `timed` is looked at no later than `at`; needed when a deadline is set or moves earlier."""
        before = timed.armed_at
        if at < before:
            timed.armed_at = at
            heap = self._heap
            self._pushed_count = count = self._pushed_count + 1
            heappush(heap, (at, count, timed))
            if before == inf:
                self._armed_count += 1
            else:
                self._bound()

    def cancel(self, timed: TimedState) -> None:
        """Forget `timed`."""
        if timed.armed_at != inf:
            timed.armed_at = inf
            self._armed_count -= 1
            self._bound()

    def has_due(self, now: float) -> bool:
        """Tell cheaply whether `pop_due` may have something; False is certain."""
        heap = self._heap
        return heap[0][0] <= now if heap else False

    def pop_due(self, now: float) -> TimedState | None:
        """Take the earliest whose deadline is not after `now`, or None."""
        at = self.next_deadline()
        if at is None or at > now:
            return None
        timed = heappop(self._heap)[2]
        timed.armed_at = inf
        self._armed_count -= 1
        return timed

    def next_deadline(self) -> float | None:
        """Return the earliest deadline, exactly; None where there is none."""
        heap = self._heap
        while heap:
            at, _, timed = heap[0]
            if at != timed.armed_at:
                heappop(heap)
                continue
            due = timed.due_at()
            if due <= at:
                return at
            if due == inf:
                heappop(heap)
                timed.armed_at = inf
                self._armed_count -= 1
            else:
                timed.armed_at = due
                self._pushed_count += 1
                heapreplace(heap, (due, self._pushed_count, timed))
        return None

    def _bound(self) -> None:
        """Drop the entries that were corrected or forgotten where they are more than the rest."""
        if len(self._heap) > 2 * self._armed_count + _COMPACT_ABOVE:
            current = {timed: (at, count, timed) for at, count, timed in self._heap if at == timed.armed_at}
            self._heap = list(current.values())
            heapify(self._heap)
