"""How long something takes of a thread's processor time, looked at so that most looks cost next to nothing."""

from __future__ import annotations

from collections.abc import Callable

LONG_NS = 20_000
"""What takes longer is timed by the processor time; that clock may take longer to read than most firings do."""


class Stopwatch:
    """Times what is done again and again, by a clock that is quick to read as long as that does.

    No more processor time passes than time, so what is short by the clock is short. What is not may be long, or
    something else ran meanwhile: it counts as `LONG_NS`, and the next is timed by the processor time, as the first
    is.

    Parameters
    ----------
    clock, cpu_clock
        Return the time in nanoseconds: of a clock that is never set, and of the thread's processor time.
    timing_ns
        What `cpu_clock` itself takes.

    Attributes
    ----------
    is_unsure
        Whether the last one may have taken longer than was told.
    """

    def __init__(self, clock: Callable[[], int], cpu_clock: Callable[[], int], timing_ns: int) -> None:
        self._clock, self._cpu_clock, self._timing_ns = clock, cpu_clock, timing_ns
        self._reads_cpu, self.is_unsure = True, False
        self._began_ns = 0

    def begin(self) -> None:
        """Begin to time."""
        self._began_ns = self._cpu_clock() if self._reads_cpu else self._clock()

    def took_ns(self) -> int:
        """Return how long it took, 1 at least."""
        if not self._reads_cpu:
            took_ns = self._clock() - self._began_ns
            self._reads_cpu = self.is_unsure = took_ns > LONG_NS
            return min(max(1, took_ns), LONG_NS)
        took_ns = self._cpu_clock() - self._began_ns - self._timing_ns
        self._reads_cpu, self.is_unsure = took_ns > LONG_NS, False
        return max(1, took_ns)
