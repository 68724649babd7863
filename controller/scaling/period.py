"""After how many intervals the load of a pool repeats, as the normalcy engine finds it."""

from __future__ import annotations

from collections.abc import Mapping

from controller.anomaly.normalcy.regular import detect_cycle
from controller.anomaly.normalcy.series import make_series
from controller.anomaly.normalcy.settings import DAY_S, Settings

LEAST_POINTS = 20
"""Fewer intervals say nothing."""

WHOLE_CYCLES = 2
"""Cycles of which the engine needs to see so many."""


def period_of(loads: Mapping[int, float], interval_s: int) -> int | None:
    """Return after how many intervals loads repeat, in whole days; None where no period is found.

    Parameters
    ----------
    loads
        By number of the interval, in any order; intervals may be missing.
    interval_s
        How long an interval is.
    """
    numbers = sorted(loads)
    if len(numbers) < LEAST_POINTS or (numbers[-1] - numbers[0]) * interval_s < WHOLE_CYCLES * DAY_S:
        return None
    settings = Settings(monitoring_interval_s=interval_s)
    series = make_series([number * interval_s for number in numbers], [loads[number] for number in numbers], settings)
    period_s = detect_cycle(series, settings).period_s
    return round(period_s / interval_s) or None
