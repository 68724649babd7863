"""What a storm showed: how long hosts waited, who was not served, and whether that is good enough."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from controller.storm.attempts import RequestState

QUANTILES = (50, 95, 99)


class Waits(NamedTuple):
    """How long requests took, in milliseconds; None where none was done. `unserved` were given up."""

    requests: int
    unserved: int
    mean_ms: float | None
    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None
    max_ms: float | None

    def document(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return self._asdict()


def waits_of(states: Sequence[RequestState]) -> Waits:
    """Return how long requests took."""
    taken_ms = np.array([1000 * took for state in states if (took := state.took_s) is not None])
    unserved = len(states) - len(taken_ms)
    if not len(taken_ms):
        return Waits(len(states), unserved, None, None, None, None, None)
    p50, p95, p99 = np.percentile(taken_ms, QUANTILES).tolist()
    told_ms = (round(each, 3) for each in (float(taken_ms.mean()), p50, p95, p99, float(taken_ms.max())))
    return Waits(len(states), unserved, *told_ms)


class StormOutcome(NamedTuple):
    """What a storm showed.

    `up` are the hosts whose ports were up, `off` those whose ports had to come up first. `late_p99_ms` is how much
    later than planned requests were made; `busiest` how many were under way at a time at most.
    """

    up: Waits
    off: Waits
    late_p99_ms: float
    attempts: dict[int, int]
    busiest: int

    @property
    def unserved(self) -> int:
        """How many were given up."""
        return self.up.unserved + self.off.unserved

    def keeps(self, slo_ms: float) -> bool:
        """Tell whether all were served, and of those whose ports were up 99 % within so long."""
        return not self.unserved and (self.up.p99_ms is None or self.up.p99_ms <= slo_ms)


def outcome_of(states: Sequence[RequestState]) -> StormOutcome:
    """Return what the requests of a storm show."""
    late_ms = np.array([1000 * state.late_s for state in states] or [0.0])
    return StormOutcome(
        waits_of([state for state in states if not state.is_off]),
        waits_of([state for state in states if state.is_off]),
        round(float(np.percentile(late_ms, 99)), 3),
        dict(sorted(Counter(state.attempts for state in states).items())),
        _busiest(states),
    )


def _busiest(states: Sequence[RequestState]) -> int:
    """Return how many requests were under way at a time at most."""
    changes = [(state.at_s, 1) for state in states if state.done_s is not None]
    changes += [(state.done_s, -1) for state in states if state.done_s is not None]
    most = now = 0
    for _, change in sorted(changes, key=lambda each: (each[0], -each[1])):
        now += change
        most = max(most, now)
    return most


def room_needed(service_s: float, peak_per_s: float) -> float:
    """Return how many joins are under way at the peak: by Little's law what each takes times how many come."""
    return service_s * peak_per_s
