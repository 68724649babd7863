"""What the spans of a profile show while it runs: counts in bounded room, and quantiles to a few percent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from math import log10
from typing import Any

from controller.profiles.spans import Operation, Span, SpanOutcome

BINS_PER_DECADE = 20
"""A quantile is told to 6 %: by the middle of a bin."""

LEAST_S, DECADES = 1e-5, 8
QUANTILES = (50, 95, 99)


class LiveFigures:
    """Spans by operation: how many, and of those that are done how long they took."""

    def __init__(self) -> None:
        self._bins: dict[Operation, Counter[int]] = {}
        self._others: Counter[Operation] = Counter()
        self._sums_s: Counter[Operation] = Counter()
        self._longest_s: dict[Operation, float] = {}

    def add(self, spans: Iterable[Span]) -> None:
        """Count spans that have ended."""
        for span in spans:
            operation = span.operation
            if span.outcome is not SpanOutcome.DONE:
                self._others[operation] += 1
                continue
            took_s = max(0.0, span.ended_s - span.begun_s)
            number = int(BINS_PER_DECADE * log10(max(took_s, LEAST_S) / LEAST_S))
            self._bins.setdefault(operation, Counter())[min(number, BINS_PER_DECADE * DECADES)] += 1
            self._sums_s[operation] += took_s  # type: ignore[assignment]
            self._longest_s[operation] = max(took_s, self._longest_s.get(operation, 0.0))

    def document(self) -> list[dict[str, Any]]:
        """Return the figures of each operation that there was, in order, as JSON has them."""
        return [self._of(each) for each in Operation if each in self._bins or self._others[each]]

    def _of(self, operation: Operation) -> dict[str, Any]:
        bins = self._bins.get(operation, Counter())
        done = bins.total()
        told: dict[str, Any] = {"operation": operation.value, "count": done, "others": self._others[operation]}
        if done:
            told["mean_ms"] = round(1000 * self._sums_s[operation] / done, 3)
            longest_ms = 1000 * self._longest_s[operation]
            for quantile in QUANTILES:
                told[f"p{quantile}_ms"] = round(min(_quantile_ms(bins, done * quantile / 100), longest_ms), 3)
            told["max_ms"] = round(longest_ms, 3)
        return told


def _quantile_ms(bins: Counter[int], rank: float) -> float:
    passed = 0
    number = 0
    for number in sorted(bins):
        passed += bins[number]
        if passed >= rank:
            break
    return 1000 * LEAST_S * float(10 ** ((number + 0.5) / BINS_PER_DECADE))
