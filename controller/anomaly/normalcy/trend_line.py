"""Whether a series has a trend, and the line through it."""

from __future__ import annotations

import numpy as np

from controller.anomaly.normalcy.bounds import Trend
from controller.anomaly.normalcy.series import Floats

_BLOCK = 64


def mann_kendall_sum(values: Floats) -> int:
    """Return S0, the sum over k < j of sign(x_j - x_k), in O(n log n) steps by merging sorted halves.

    Source: formula -26; confidence high.
    """
    return _concordance(np.asarray(values, np.float64))[0]


def _concordance(values: Floats) -> tuple[int, Floats]:
    """Return the sum over a stretch and its values in order."""
    count = len(values)
    if count <= _BLOCK:
        signs = np.sign(values[None, :] - values[:, None])
        return int(np.triu(signs, 1).sum()), np.sort(values)
    left_sum, left = _concordance(values[: count // 2])
    right_sum, right = _concordance(values[count // 2 :])
    smaller = int(np.searchsorted(left, right, side="left").sum())
    not_greater = int(np.searchsorted(left, right, side="right").sum())
    greater = len(left) * len(right) - not_greater
    merged = np.concatenate([left, right])
    merged.sort(kind="stable")
    return left_sum + right_sum + smaller - greater, merged


def trend_pct(values: Floats) -> float:
    """Return 100 abs(S0) / (n (n - 1) / 2), 0 for fewer than two values.

    Source: formulas -27 and -28; confidence high.
    """
    pairs = len(values) * (len(values) - 1) / 2
    return 100.0 * abs(mann_kendall_sum(values)) / pairs if pairs else 0.0


def goodness_of_fit(values: Floats, line: Floats) -> float:
    """Return R = 1 - R_regression / R_0, both sums of squares of vertical distances; R_0 those from the mean.

    Source: formula -29; confidence very high. Values that are all equal give 0.
    """
    around_mean = float(((values - values.mean()) ** 2).sum())
    return 1.0 - float(((values - line) ** 2).sum()) / around_mean if around_mean > 0 else 0.0


def change_of_level(values: Floats) -> tuple[int, float]:
    """Return how many values lie before the best change from one level to another, and 1 - the share that is left.

    The second figure is what `goodness_of_fit` gives for a line, here for two constants. Fewer than two values, or
    values that are all equal, give (0, 0).
    """
    count = len(values)
    around = values - values.mean() if count else values
    whole = float((around**2).sum())
    if count < 2 or whole <= 0:
        return 0, 0.0
    before = np.arange(1, count)
    explained = np.cumsum(around)[:-1] ** 2 * count / (before * (count - before))
    best = int(np.argmax(explained))
    return best + 1, float(explained[best]) / whole


def is_change_of_level(averages: Floats, goes_on: float) -> bool:
    """Tell a change from one level to another from a trend.

    It is one where two constants leave less than the better of a line over time and one over its logarithm, and what
    they leave is no trend that goes on: a line through each part fits it no better than `goes_on` (R). Two constants
    have a place to choose as well, so that what they leave counts 1 + ln n / n times, as in Schwarz's criterion.
    """
    count = len(averages)
    place, fit = change_of_level(averages)
    if place == 0:
        return False
    rows = np.arange(1.0, count + 1)
    lines = max(fit_line(rows, averages, logarithmic=kind, interval_s=1.0)[1] for kind in (False, True))
    if (1 - fit) * (1 + np.log(count) / count) >= 1 - lines:
        return False
    parts = slice(None, place), slice(place, None)
    left = np.concatenate([averages[part] - averages[part].mean() for part in parts])
    trends = [fit_line(rows[part], left[part], logarithmic=False, interval_s=1.0)[0].at(rows[part]) for part in parts]
    return goodness_of_fit(left, np.concatenate(trends)) <= goes_on


def fit_line(at_s: Floats, values: Floats, *, logarithmic: bool, interval_s: float) -> tuple[Trend, float]:
    """Return the regression line of values over time, or over the logarithm of time, and its goodness of fit.

    The article regresses f(e^(c t)) over t, which is f over the logarithm of time; time counts from one interval
    before the first point.
    """
    start_s = float(at_s[0]) - max(interval_s, 1.0)
    passed = at_s - start_s
    if logarithmic:
        passed = np.log(passed)
    centred = passed - passed.mean()
    spread = float((centred**2).sum())
    slope = float((centred * (values - values.mean())).sum()) / spread if spread > 0 else 0.0
    trend = Trend(slope, float(values.mean()) - slope * float(passed.mean()), start_s, logarithmic)
    return trend, goodness_of_fit(values, trend.at(at_s))
