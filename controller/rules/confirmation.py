"""How long changes take until switches have confirmed every flow entry that they needed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from controller.histogram import Histogram
from controller.rules.model import Key
from controller.rules.switch_state import OwnerBatch, OwnerState, TimedChange, TimedEntries

OPEN_BOUND = 65536
"""Changes that are timed at once; further ones are counted and not timed."""


class ConfirmationClock:
    """Times what the installer is told between `begin` and `end`: until the last barrier, in `latency`.

    Only entries that are put count, at switches that are connected. `untimed_count` is how many changes were not
    timed to their end: their switch was lost, or too many were open.
    """

    __slots__ = ("_open_count", "current", "latency", "untimed_count")

    def __init__(self) -> None:
        self.latency = Histogram()
        self.untimed_count = 0
        self.current: TimedChange | None = None
        self._open_count = 0

    def begin(self, now: float) -> None:
        """Time what is changed from here on."""
        self.current = TimedChange(now)

    def end(self) -> None:
        """Time no more changes; those of before go on."""
        current, self.current = self.current, None
        if current is None or not current.entry_count:
            return
        if self._open_count < OPEN_BOUND:
            self._open_count += 1
        else:
            current.is_open = False
            self.untimed_count += 1

    @contextmanager
    def timing(self, now: float, is_timed: bool) -> Iterator[None]:
        """Time what is changed meanwhile as a change by itself, where it is to be timed."""
        if is_timed:
            self.begin(now)
        try:
            yield
        finally:
            if is_timed:
                self.end()

    def put(self, entry_count: int, now: float, is_timed: bool) -> tuple[TimedChange, ...]:
        """Return the changes that wait for so many entries more, all that there are of one that `is_timed` by itself.

        These entries are to be sent to switches.
        """
        if not is_timed:
            if self.current is None:
                return ()
            self.current.entry_count += entry_count
            return (self.current,)
        if self._open_count >= OPEN_BOUND:
            self.untimed_count += 1
            return ()
        self._open_count += 1
        return (TimedChange(now, entry_count),)

    def add(self, state: OwnerState, key: Key) -> None:
        """Wait for an entry that is to be sent to a switch."""
        current = self.current
        if current is not None and state.connected:
            current.entry_count += 1
            state.add_timed(key, (current,))

    def settled(self, entries: TimedEntries, now: float) -> None:
        """Take it that entries are confirmed for those who waited for them."""
        current = self.current
        took_s: list[float] = []
        for changes in entries.values():
            for change in changes:
                change.entry_count -= 1
                if not change.entry_count and change.is_open and change is not current:
                    change.is_open = False
                    took_s.append(now - change.began_s)
        self._open_count -= len(took_s)
        self.latency.observe_each(took_s)

    def failed(self, state: OwnerState, batch: OwnerBatch, now: float) -> None:
        """Take it that the edits of a batch are confirmed, but for those that failed, which are waited for still."""
        keys = {key for index, key in enumerate(batch.edits) if index in batch.failed}
        self.settled({key: changes for key, changes in batch.timed.items() if key not in keys}, now)
        for key in keys & batch.timed.keys():
            state.add_timed(key, batch.timed[key])

    def lost(self, state: OwnerState) -> None:
        """Time no longer what waits for a switch whose connection has ended."""
        waiting = [*state.timed.values(), *(state.batch.timed.values() if state.batch is not None else ())]
        state.timed = {}
        for changes in waiting:
            for change in changes:
                if change.is_open:
                    self.untimed_count += 1
                    self._close(change)

    def _close(self, change: TimedChange) -> None:
        change.is_open = False
        self._open_count -= 1
