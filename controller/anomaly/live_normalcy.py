"""Bounds of what is normal for many series at once, by the hour of the day and of the week, in bounded memory.

A day has `SLOTS_A_DAY` slots and a week seven days. Each slot keeps an envelope of the values seen in it: what goes
beyond it widens it at once, and it narrows slowly towards what the newest day or week had. So a bound is the
streaming form of the extremes over the columns of a slot that the batch method takes (`controller.anomaly.normalcy`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from controller.config.anomaly_settings import Normalcy

SLOTS_A_DAY, DAYS_A_WEEK = 24, 7
SLOTS_A_WEEK = SLOTS_A_DAY * DAYS_A_WEEK
FIRST_WEEKDAY = 3
"""The day on which the epoch begins, counted from Monday."""

DAILY_SHARE, WEEKLY_SHARE = 0.03, 0.2
"""How far an envelope narrows towards the newest day or week: over five days off from one no more than its margin."""
EDGE = 0.25
"""In so much of a slot at each end the slot beside it counts too: what comes by the clock is not on the minute."""
LEAST_KNOWN = 0.5
"""A slot of which less is known teaches nothing."""
GAP_POINTS = 3.0
"""After a longer time without a point what was seen before is not in a row with what comes."""
FEW = 2.0
"""The margin of an envelope of n days is that of many times 1 + `FEW` / n."""
TELLING = 0.75
"""Weekly bounds are taken where they are no wider than so much of the daily ones: else the week says nothing."""
TELLING_SHARE = 0.05
LEVEL_SHARE = 0.01
"""A unit is no smaller than so much of the level."""
LARGEST = 1e30
NO_SLOT = np.iinfo(np.int64).min
_SEEN_MOST = 255
_COUNT_MOST = 65535

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Rows = NDArray[np.intp]
Flags = NDArray[np.bool_]

LEARNT = ("day_low", "day_high", "days", "missed", "week_low", "week_high", "weeks")
"""Arrays of slots, (slots, rows): all that is to be kept of a series beside what is open."""
_OF_ROW = {
    "slot": np.int64,
    "newest_s": np.float64,
    "low": np.float32,
    "high": np.float32,
    "taught_low": np.float32,
    "taught_high": np.float32,
    "points": np.uint16,
    "out": np.uint16,
    "run": np.uint16,
    "calm": np.uint16,
    "unit": np.float32,
    "telling": np.float32,
    "least": np.float32,
    "score": np.float32,
    "value": np.float32,
    "lower": np.float32,
    "upper": np.float32,
}


class Judged(NamedTuple):
    """What points came to: entry by entry the row, and whether enough points in a row were outside, or were not.

    `closed` are rows of which a slot ended: what was learnt of them changed.
    """

    rows: Rows
    confirmed: Flags
    calm: Flags
    closed: Rows


class SlotBounds:
    """Envelopes and scores of series, a row each.

    Parameters
    ----------
    settings
        Length of a day, when bounds are known, how wide they are, and when a series counts as outside.

    Attributes
    ----------
    score
        float32[rows], d / (1 + d) of the newest point, d its distance from the bounds in units of the range that the
        series has over a day. NaN where no bounds are known.
    value, lower, upper
        float32[rows], the newest point and the bounds that it was held against, NaN where not known.
    newest_s
        float64[rows], when the newest point ended, in epoch seconds, NaN before the first.
    least
        float32[rows], distances below are none; set with `begin`.
    late, steps
        Points that were not later than the newest of their series, and rows whose clock was set back.
    """

    def __init__(self, settings: Normalcy) -> None:
        self.settings = settings
        self.late = self.steps = 0
        self.capacity = 0
        self.day_low = np.empty((SLOTS_A_DAY, 0), np.float32)
        self.day_high = np.empty((SLOTS_A_DAY, 0), np.float32)
        self.days = np.empty((SLOTS_A_DAY, 0), np.uint8)
        self.missed = np.empty((SLOTS_A_DAY, 0), np.uint8)
        self.week_low = np.empty((SLOTS_A_WEEK, 0), np.float32)
        self.week_high = np.empty((SLOTS_A_WEEK, 0), np.float32)
        self.weeks = np.empty((SLOTS_A_WEEK, 0), np.uint8)
        self.slot = np.empty(0, np.int64)
        self.newest_s = np.empty(0)
        self.low, self.high, self.taught_low, self.taught_high = (np.empty(0, np.float32) for _ in range(4))
        self.points, self.out, self.run, self.calm = (np.empty(0, np.uint16) for _ in range(4))
        self.unit, self.telling, self.least = (np.empty(0, np.float32) for _ in range(3))
        self.score, self.value, self.lower, self.upper = (np.empty(0, np.float32) for _ in range(4))

    @property
    def bytes_per_row(self) -> int:
        """Memory that a series takes."""
        of_slots: int = sum(len(array) * array.itemsize for array in (getattr(self, name) for name in LEARNT))
        return of_slots + sum(np.dtype(kind).itemsize for kind in _OF_ROW.values())

    def fit(self, capacity: int) -> None:
        """Make room for rows."""
        added = capacity - self.capacity
        if added > 0:
            for name in (*LEARNT, *_OF_ROW):
                array = getattr(self, name)
                setattr(self, name, np.pad(array, [*[(0, 0)] * (array.ndim - 1), (0, added)]))
            former, self.capacity = self.capacity, capacity
            self.begin(np.arange(former, capacity), np.ones(added))

    def begin(self, rows: Rows, least: Floats) -> None:
        """Let rows begin with nothing known; `least` float64[n] are the distances below which there are none."""
        for name in LEARNT:
            getattr(self, name)[:, rows] = 0
        for array in (self.newest_s, self.score, self.value, self.lower, self.upper):
            array[rows] = np.nan
        self.slot[rows] = NO_SLOT
        self.least[rows] = self.unit[rows] = least
        self.telling[rows] = 1.0
        self.run[rows] = self.calm[rows] = 0

    def configure(self, settings: Normalcy) -> None:
        """Go on with other settings; days must be as long as before, else all rows are to `begin` anew."""
        self.settings = settings

    def measure(self, rows: Rows) -> None:
        """Find the units of rows anew, after what was learnt of them was put in place."""
        seen = self.days[:, rows] > 0
        low = np.where(seen, self.day_low[:, rows], np.inf).min(axis=0)
        high = np.where(seen, self.day_high[:, rows], -np.inf).max(axis=0)
        known = low <= high
        low, high = np.where(known, low, 0.0), np.where(known, high, 0.0)
        floor = np.maximum(self.least[rows], LEVEL_SHARE * np.abs(low + high) / 2)
        self.unit[rows] = np.maximum(high - low, floor)

    def take(self, rows: Rows, at_s: Floats, values: Floats) -> Judged:
        """Hold points against the bounds of their slots, then learn from them.

        Points that are no numbers and those not later than the newest of their series are left out. Where a clock was
        set back, the slot under way is given up and the series goes on at the new time.

        Parameters
        ----------
        rows : NDArray[np.intp]
            (n,), each once.
        at_s, values : NDArray[np.float64]
            (n,): when the points ended, in epoch seconds, and what was measured.
        """
        usable = np.isfinite(at_s) & (np.abs(values) <= LARGEST)
        rows, at_s, values = self._in_order(rows[usable], at_s[usable], values[usable])
        place = at_s / self._slot_s
        slots = np.floor(place).astype(np.int64)
        closed = self._turn(rows, slots)
        lower, upper = self._bounds(rows, slots, place - slots)
        apart = np.maximum(np.maximum(values - upper, lower - values), 0.0)
        distance = apart / self.unit[rows]
        score = distance / (1 + distance)
        self.value[rows], self.lower[rows], self.upper[rows], self.score[rows] = values, lower, upper, score
        out = score >= self.settings.raise_score
        self._note(rows, values, out)
        known = ~np.isnan(score)
        self.run[rows] = np.where(out, np.minimum(self.run[rows], _COUNT_MOST - 1) + 1, 0)
        self.calm[rows] = np.where(known & ~out, np.minimum(self.calm[rows], _COUNT_MOST - 1) + 1, 0)
        confirmed = self.run[rows] >= self.settings.confirm_points
        return Judged(rows, confirmed, self.calm[rows] >= self.settings.hold_off_points, closed)

    def bounds_at(self, row: int, at_s: Floats) -> tuple[Floats, Floats]:
        """Return lower and upper bounds of a series at any times, by what was learnt up to now; NaN where none are.

        Parameters
        ----------
        row : int
            The series.
        at_s : NDArray[np.float64]
            (n,), epoch seconds.
        """
        place = at_s / self._slot_s
        slots = np.floor(place).astype(np.int64)
        return self._bounds(np.full(len(at_s), row, np.intp), slots, place - slots)

    # Time.

    @property
    def _slot_s(self) -> float:
        return self.settings.day_s / SLOTS_A_DAY

    def _in_order(self, rows: Rows, at_s: Floats, values: Floats) -> tuple[Rows, Floats, Floats]:
        since_s = at_s - self.newest_s[rows]
        gap_s = GAP_POINTS * self.settings.point_s
        set_back = since_s < -gap_s
        if set_back.any():
            self.steps += int(set_back.sum())
            self.slot[rows[set_back]] = NO_SLOT
        apart = rows[set_back | (since_s > gap_s)]
        self.run[apart] = self.calm[apart] = 0
        late = (since_s <= 0) & ~set_back
        if late.any():
            self.late += int(late.sum())
            rows, at_s, values = rows[~late], at_s[~late], values[~late]
        self.newest_s[rows] = at_s
        return rows, at_s, values

    def _turn(self, rows: Rows, slots: NDArray[np.int64]) -> Rows:
        """End the slots that are over and begin others; return the rows of those that ended."""
        former = self.slot[rows]
        turned = former != slots
        if not turned.any():
            return rows[:0]
        ended: Rows = rows[turned & (former != NO_SLOT)]
        self._close(ended)
        begun = rows[turned]
        self.slot[begun] = slots[turned]
        self.low[begun] = self.taught_low[begun] = np.inf
        self.high[begun] = self.taught_high[begun] = -np.inf
        self.points[begun] = self.out[begun] = 0
        return ended

    # Bounds.

    def _bounds(self, rows: Rows, slots: NDArray[np.int64], part: Floats) -> tuple[Floats, Floats]:
        low, high, margin = self._envelope(rows, slots)
        is_early, is_late = part < EDGE, part > 1 - EDGE
        near = np.flatnonzero(is_early | is_late)
        if len(near):
            beside = slots[near] - is_early[near] + is_late[near]
            near_low, near_high, _ = self._envelope(rows[near], beside)
            low[near] = np.where(near_low < low[near], near_low, low[near])
            high[near] = np.where(near_high > high[near], near_high, high[near])
        pad = np.maximum(margin * (high - low), self.least[rows])
        return low - pad, high + pad

    def _envelope(self, rows: Rows, slots: NDArray[np.int64]) -> tuple[Floats, Floats, Floats]:
        """Return low, high and margin of slots, NaN where too few days were seen."""
        hour, of_week = _places(slots)
        settings = self.settings
        days, weeks = self.days[hour, rows], self.weeks[of_week, rows]
        weekly = (weeks >= settings.least_weeks) & (self.telling[rows] < TELLING)
        low, high = self.day_low[hour, rows].astype(np.float64), self.day_high[hour, rows].astype(np.float64)
        if weekly.any():
            low[weekly] = self.week_low[of_week[weekly], rows[weekly]]
            high[weekly] = self.week_high[of_week[weekly], rows[weekly]]
        low[~weekly & (days < settings.least_days)] = np.nan
        seen = np.where(weekly, weeks, days)
        return low, high, settings.margin * (1 + FEW / np.maximum(seen, 1))

    # Learning.

    def _note(self, rows: Rows, values: Floats, out: Flags) -> None:
        """Take points into the slots under way; those that are anomalous teach only what is told anew."""
        self.low[rows] = np.minimum(self.low[rows], values)
        self.high[rows] = np.maximum(self.high[rows], values)
        self.taught_low[rows] = np.minimum(self.taught_low[rows], np.where(out, np.inf, values))
        self.taught_high[rows] = np.maximum(self.taught_high[rows], np.where(out, -np.inf, values))
        self.points[rows] = np.minimum(self.points[rows], _COUNT_MOST - 1) + 1
        self.out[rows] = np.minimum(self.out[rows], _COUNT_MOST - 1) + out

    def _close(self, rows: Rows) -> None:
        """Learn from slots that are over; one that was missed on enough days in a row is normal from here on."""
        settings = self.settings
        whole = self.points[rows] >= LEAST_KNOWN * self._slot_s / settings.point_s
        rows = rows[whole]
        hour, of_week = _places(self.slot[rows])
        is_missed = 2 * self.out[rows].astype(np.int64) > self.points[rows]
        missed = np.where(is_missed, np.minimum(self.missed[hour, rows], _SEEN_MOST - 1) + 1, 0)
        self.missed[hour, rows] = missed
        anew = is_missed & (missed >= settings.relearn_days)
        taught = anew | ~is_missed
        rows, hour, of_week, anew = rows[taught], hour[taught], of_week[taught], anew[taught]
        low = np.where(anew, self.low[rows], self.taught_low[rows])
        high = np.where(anew, self.high[rows], self.taught_high[rows])
        days, weeks = self.days[hour, rows], self.weeks[of_week, rows]
        day = _moved(self.day_low[hour, rows], self.day_high[hour, rows], low, high, anew | (days == 0), DAILY_SHARE)
        self.day_low[hour, rows], self.day_high[hour, rows] = day
        self.days[hour, rows] = np.where(anew, settings.least_days, np.minimum(days, _SEEN_MOST - 1) + 1)
        first = anew | (weeks == 0)
        week = _moved(self.week_low[of_week, rows], self.week_high[of_week, rows], low, high, first, WEEKLY_SHARE)
        self.week_low[of_week, rows], self.week_high[of_week, rows] = week
        self.weeks[of_week, rows] = np.where(anew, 1, np.minimum(weeks, _SEEN_MOST - 1) + 1)
        compared = ~first & (weeks + 1 >= settings.least_weeks)
        width = (week[1] - week[0])[compared] / np.maximum(day[1] - day[0], self.least[rows])[compared]
        self.telling[rows[compared]] += TELLING_SHARE * (width - self.telling[rows[compared]])
        self.measure(rows)


def _places(slots: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the places of slots in the day and in the week."""
    day = slots // SLOTS_A_DAY
    hour = slots - day * SLOTS_A_DAY
    return hour, (day + FIRST_WEEKDAY) % DAYS_A_WEEK * SLOTS_A_DAY + hour


def _moved(
    old_low: Singles, old_high: Singles, low: Singles, high: Singles, first: Flags, share: float
) -> tuple[Singles, Singles]:
    """Return envelopes after one more day or week: wider at once, narrower by `share` of what is left over."""
    return (
        np.where(first | (low < old_low), low, old_low + np.float32(share) * (low - old_low)),
        np.where(first | (high > old_high), high, old_high + np.float32(share) * (high - old_high)),
    )
