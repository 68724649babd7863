"""Times counted in bins, in bounded room, whose quantiles are told to a few percent."""

from __future__ import annotations

from collections import Counter
from math import log10

BINS_PER_DECADE = 50
"""A quantile is told to 2.3 %: by the middle of a bin."""

SHORTEST_NS = 100
"""What is not longer is in the first bin, and told as 0."""

QUANTILES = (50, 95, 99)


class TimeBins:
    """Times of 0 and more nanoseconds; `longest_ns` and the sum of all, `total_ns`, are told as they were."""

    __slots__ = ("_bins", "longest_ns", "time_count", "total_ns")

    def __init__(self) -> None:
        self.longest_ns = self.total_ns = self.time_count = 0
        self._bins: Counter[int] = Counter()

    def count(self, time_ns: int) -> None:
        """Count one."""
        number = int(BINS_PER_DECADE * log10(time_ns / SHORTEST_NS)) + 1 if time_ns > SHORTEST_NS else 0
        self._bins[number] += 1
        self.time_count += 1
        self.total_ns += time_ns
        if time_ns > self.longest_ns:
            self.longest_ns = time_ns

    def mean_ms(self) -> float | None:
        """Return the mean in milliseconds, None of none."""
        return self.total_ns / self.time_count / 1e6 if self.time_count else None

    def counts(self) -> list[tuple[float, int]]:
        """Return seconds (the middle of a bin) and how many times were in it, in order."""
        return [(_middle_s(number), count) for number, count in sorted(self._bins.items())]

    def document(self) -> dict[str, float]:
        """Return quantiles and the longest in milliseconds, as JSON has them; 0 where there is none."""
        longest_ms = self.longest_ns / 1e6
        told = {f"p{quantile}_ms": round(min(self._quantile_ms(quantile), longest_ms), 6) for quantile in QUANTILES}
        return {**told, "max_ms": round(longest_ms, 6)}

    def _quantile_ms(self, quantile: int) -> float:
        rank, passed = self.time_count * quantile / 100, 0
        for middle_s, count in self.counts():
            passed += count
            if passed >= rank:
                return 1000 * middle_s
        return 0.0


def _middle_s(number: int) -> float:
    return SHORTEST_NS * 1e-9 * float(10 ** ((number - 0.5) / BINS_PER_DECADE)) if number else 0.0
