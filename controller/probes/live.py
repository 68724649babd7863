"""Scripts that look at what happens now: a run on each loop, which keeps to its share of the loop's time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import CellType
from typing import Any

from controller.probes.firing import Firing, FiringPlace
from controller.probes.points import ProbePoint
from controller.probes.runtime import LINES_PER_S, SUMMED_EVERY
from controller.probes.script import Probe, Script
from controller.probes.static_points import Derive
from controller.probes.stopwatch import Stopwatch

WINDOW_NS = 100_000_000
"""The share of a loop's time holds for each so long: who has used it up is refused until the next."""

TIMED_EVERY = 64
"""One firing of so many is timed, and more where they take long."""

FULL_WINDOWS = 100
"""After so many windows one after the other in which its share was used up, a script ends."""

FAULTS_IN_A_ROW = 1000
"""After so many firings one after the other that end by a fault, a script ends."""

OVER_BUDGET = "it took all its time for ten seconds"
FAULTY = "a thousand firings one after the other ended by a fault"
EXITED = "exit() was called"


class LoopBudget:
    """What of a loop's time all scripts may take together, in equal shares.

    Parameters
    ----------
    budget_pct
        Percent of the loop's time.
    """

    def __init__(self, budget_pct: float) -> None:
        self.budget_pct = budget_pct
        self.script_count = 0

    def share_ns(self) -> int:
        """Return how long the firings of one script may take in a window."""
        return int(WINDOW_NS * self.budget_pct / 100 / max(1, self.script_count))


class LoopRun:
    """A script on one loop, all of which is used on that loop alone.

    Parameters
    ----------
    script
        What runs.
    clock, cpu_clock
        Return the time in nanoseconds: of a clock that is never set, and of the thread's processor time.
    budget
        What scripts may take of the loop's time.
    keys
        Keys that a bag or an aggregate may have.
    timing_ns
        What `cpu_clock` itself takes, which is no time of the script's.

    Attributes
    ----------
    ending
        Why the script is to end, empty while it is not: nothing fires any more then.
    budget
        As given.
    """

    def __init__(
        self,
        script: Script,
        clock: Callable[[], int],
        cpu_clock: Callable[[], int],
        budget: LoopBudget,
        keys: int,
        timing_ns: int = 0,
    ) -> None:
        self.ending = ""
        self._probe = Probe(script, script.new_run(keys=keys, lines_per_s=LINES_PER_S))
        self.budget = budget
        self._clock = clock
        self._firing, self._summing, self._deriving = (Stopwatch(clock, cpu_clock, timing_ns) for _ in range(3))
        self._left = CellType(0)
        self._granted = self._skipped = 0
        self._sum_at = SUMMED_EVERY
        self._window_end_ns = self._spent_ns = self._share_ns = 0
        self._took_ns = self._last_grant = 0
        self._is_full = False
        self._full_windows = self._faults_in_a_row = self._last_fault = 0

    def begin(self) -> None:
        """Have what is to be done at the beginning done."""
        self._probe.begin(self._clock())
        if self._probe.has_ended:
            self.ending = EXITED

    def end(self) -> None:
        """Have what is to be done at the end done; what was found is whole then, and on any thread."""
        self.ending = self.ending or "it was stopped"
        self._probe.end(self._clock())

    def findings(self) -> Probe:
        """Return what was found so far, with how often it fired; on the loop until the script has ended."""
        run = self._probe.run
        run.fired, run.skipped = self._fired, self._skipped
        return self._probe

    def watchers(self, points: Iterable[ProbePoint]) -> Mapping[ProbePoint, Firing]:
        """Return what is to be called with each record, by the points whose records these are."""
        return {point: self._watcher(point) for point in points}

    def in_time(self, derive: Derive) -> Derive:
        """Return what derives as this does, as long as the script has time; what is refused counts as one firing.

        What was granted before, 63 firings at most, is not taken back where the time is used up so.
        """

        def derived(record: Any, core: Any) -> Iterable[Any]:
            if not self._has_time():
                return ()
            self._deriving.begin()
            try:
                return tuple(derive(record, core))
            finally:
                self._spent_ns += self._deriving.took_ns()
                self._is_full = self._spent_ns >= self._share_ns

        return derived

    def _has_time(self) -> bool:
        """Return whether something that is timed may be done now; count what is refused."""
        now_ns = self._clock()
        if now_ns >= self._window_end_ns:
            self._begin_window(now_ns)
        elif self._is_full:
            self._skipped += not self.ending
            return False
        return not self.ending

    @property
    def _fired(self) -> int:
        fired: int = self._granted - self._left.cell_contents
        return fired

    def _watcher(self, point: ProbePoint) -> Firing:
        place = FiringPlace(self._probe.run, point.app, point.name, self._clock)
        watchers = []
        for numbers, every in self._probe.script.at[point]:
            fire = self._alone(numbers, place) if len(numbers) == 1 else self._together(numbers, place)
            watchers.append(fire if every == 1 else _sometimes(fire, every))
        return one_after_the_other(watchers)

    def _alone(self, number: tuple[int, ...], place: FiringPlace) -> Firing:
        """Return what fires one clause: where it is none of those that were granted, it is timed or refused."""

        def not_granted(record: Any) -> None:
            if not self.ending:
                self._fire_timed(fire, record)

        fire = self._probe.script.bound(number, place, self._left, not_granted, self._failed)
        return fire

    def _together(self, numbers: tuple[int, ...], place: FiringPlace) -> Firing:
        """Return what fires several clauses for a record; where not all were granted, one after the other."""
        count, singly = len(numbers), one_after_the_other([self._alone((number,), place) for number in numbers])

        def not_granted(record: Any) -> None:
            if self._is_full and not self._left.cell_contents and self._clock() < self._window_end_ns:
                self._skipped += 0 if self.ending else count
            else:
                singly(record)

        return self._probe.script.bound(numbers, place, self._left, not_granted, self._failed)

    def _fire_timed(self, firing: Firing, record: Any) -> None:
        """Fire where there is time for it, and let so many follow unseen as there is time for."""
        if not self._has_time():
            return
        self._left.cell_contents = 1
        self._granted += 1
        self._firing.begin()
        firing(record)
        took_ns = self._firing.took_ns()
        # Those between two that are timed are taken to have taken as long as the shorter of these: what befalls one
        # of them by chance, such as a collection of garbage, did not befall all.
        self._spent_ns += took_ns + self._last_grant * min(took_ns, self._took_ns or took_ns)
        self._took_ns = took_ns
        if self._granted >= self._sum_at:
            self._sum_samples()
        room = 0 if self._firing.is_unsure else (self._share_ns - self._spent_ns) // (2 * took_ns)
        self._is_full = self._spent_ns >= self._share_ns
        self._grant(0 if self._is_full or self.ending else max(0, min(TIMED_EVERY - 1, room)))

    def _sum_samples(self) -> None:
        self._sum_at = self._granted + SUMMED_EVERY
        if self._probe.run.notes_samples:
            self._summing.begin()
            self._probe.run.sum_samples()
            self._spent_ns += self._summing.took_ns()

    def _grant(self, count: int) -> None:
        self._left.cell_contents = self._last_grant = count
        self._granted += count

    def _begin_window(self, now_ns: int) -> None:
        was_long_ago = now_ns >= self._window_end_ns + WINDOW_NS
        self._full_windows = self._full_windows + 1 if self._is_full and not was_long_ago else 0
        self._window_end_ns = now_ns + WINDOW_NS
        self._spent_ns, self._share_ns, self._is_full = 0, self.budget.share_ns(), False
        if was_long_ago:
            self._last_grant = 0
        if self._full_windows >= FULL_WINDOWS:
            self.ending = OVER_BUDGET

    def _failed(self, error: Exception, to_come: int) -> bool:
        """Note that a firing failed before others for the same record; return whether the script is to end."""
        if self._probe.run.failed(error):
            self._end(EXITED, to_come)
            return True
        number = self._fired - to_come
        self._faults_in_a_row = self._faults_in_a_row + 1 if number == self._last_fault + 1 else 1
        self._last_fault = number
        if self._faults_in_a_row >= FAULTS_IN_A_ROW:
            self._end(FAULTY, to_come)
        return bool(self.ending)

    def _end(self, reason: str, to_come: int) -> None:
        """Fire no more: nothing that was granted is left."""
        self.ending = reason
        self._granted -= self._left.cell_contents + to_come
        self._left.cell_contents = 0


def _sometimes(fire: Firing, every: int) -> Firing:
    """Return what fires for one record in so many."""
    seen = 0

    def fire_sometimes(record: Any) -> None:
        nonlocal seen
        seen += 1
        if seen == every:
            seen = 0
            fire(record)

    return fire_sometimes


def one_after_the_other(watchers: Sequence[Firing]) -> Firing:
    """Return what calls several watchers with a record, in order."""
    if len(watchers) == 1:
        return watchers[0]

    def fire(record: Any) -> None:
        for watcher in watchers:
            watcher(record)

    return fire
