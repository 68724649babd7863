"""How abnormal each point of a series is, from the points before it alone."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from controller.anomaly.normalcy.categories import CATEGORIES, Detector
from controller.anomaly.normalcy.discord import Discords
from controller.anomaly.normalcy.result import SeriesNormalcy
from controller.anomaly.normalcy.rolling import RollingNormalcy
from controller.anomaly.normalcy.series import Floats
from controller.anomaly.normalcy.settings import Settings
from controller.anomaly.series import LARGEST

FURTHEST = 10.0
"""A habit is told from distances up to here, in units of the series' range."""

ROUNDING = 1e-9
"""What is a rung but for rounding is on it."""

MAX_EVENTS = 10_000
"""Events that a scorer holds until they are taken; the oldest go first."""


class Units(NamedTuple):
    """What a distance below the bounds, and one above them, is told in; both above 0."""

    below: float
    above: float


def units_of(values: Floats, settings: Settings) -> Units:
    """Return the units of a series that has had these values, one at least.

    Both are the range between the quantile `scale_quantile` and its opposite, with a floor. Of counts, integers none
    of which is below 0, the range above goes on to the value that is passed once in so many: of the k values above
    the upper quantile, whose mean excess is e, that is e ln k further up by an exponential tail. The tail of mentions
    or requests is so long that what was outside of the quantiles before would be alarm after alarm.
    """
    low, middle, high = np.quantile(values, (settings.scale_quantile, 0.5, 1 - settings.scale_quantile))
    unit = max(float(high - low), settings.scale_floor_share * abs(float(middle)), 1e-9)
    tail = values[values > high]
    if not len(tail) or values.min() < 0 or not np.array_equal(values, np.rint(values)):
        return Units(unit, unit)
    return Units(unit, unit + float((tail - high).mean()) * math.log(len(tail)))


class Excursion(NamedTuple):
    """A stretch of points in a row outside the bounds, or within them in an order not seen before.

    It tells when, how far out and how abnormal. `furthest` is the greatest distance from the nearest normal value in
    the value's unit, negative below it, 0 within the bounds.
    """

    first_s: float
    last_s: float
    points: int
    furthest: float
    score: float


class Scorer:
    """Scores points as they come, 0 to 1.

    A score is d / (1 + d). Two witnesses tell d, and the one that tells more is heard: the distance from the nearest
    normal value in units of the range that the series has had (`units_of`), raised by how long points have been
    outside in a row, and `discord_gain` times how much further than is usual the stretch that ends with the point is
    from all stretches before it (`Discords`), which tells a change among values that are normal each. What the first
    one alone sees, little or of a shape that was seen before, is divided by `known_shape_divisor`. d is lowered where
    points are unusual on most days: by 1 + `habit_gain` times the median of the greatest distances of past days. It
    is then taken down to a rung, the distance of `alarm_score` times a whole power of `repeat_factor`: for
    `hold_off_s` after a point that was scored only points on higher rungs are. What is not scored has 0 and holds
    nothing off. At any threshold that is a rung, as `alarm_score` is, the points that pass it are those of an alarm
    at that threshold which repeats within the hold-off at the next rung alone.

    Bounds are those of `RollingNormalcy` with the points before the current time unit; until a unit has passed they
    follow whenever the number of points has doubled, and later with every quarter of `history_points` as well. Of
    corrupted data what was seen before is normal.
    """

    def __init__(self, settings: Settings | None = None, categories: Mapping[str, Detector] = CATEGORIES) -> None:
        self._settings = settings or Settings()
        self._rolling = RollingNormalcy(self._settings, categories)
        self._waiting: list[tuple[Floats, Floats]] = []
        self._waiting_points = 0
        self._update_at_s, self._due_points = np.inf, self._settings.min_points
        self._newest_s, self._first_s = -np.inf, np.inf
        self._points = 0
        self._units = Units(1.0, 1.0)
        self._discords = Discords(self._settings)
        self._seen = (-np.inf, np.inf)
        self._event: Excursion | None = None
        self.events: deque[Excursion] = deque(maxlen=MAX_EVENTS)
        self._alarm_s, self._alarm_rung = -np.inf, 0
        self._greatest: deque[float] = deque(maxlen=self._settings.habit_units)
        self._today, self._today_greatest, self._habit = -1, 0.0, 0.0
        self.not_finite = 0
        self.late = 0

    @property
    def normalcy(self) -> SeriesNormalcy:
        """The normalcy that the next point is held against."""
        return self._rolling.normalcy

    def extend(self, at_s: ArrayLike, values: ArrayLike) -> Floats:
        """Return the scores of further points, float64[n], each from the points before it alone.

        Points that are not finite are not scored (0) and not learnt from, and counted in `not_finite`; so are points
        earlier than the newest one (`late`). A second point at the same time is scored and not learnt from.
        """
        times, points = np.asarray(at_s, np.float64).ravel(), np.asarray(values, np.float64).ravel()
        if len(times) != len(points):
            raise ValueError(f"{len(times)} times for {len(points)} values")
        scores = np.zeros(len(times))
        finite = np.isfinite(times) & (np.abs(points) <= LARGEST)
        self.not_finite += int((~finite).sum())
        newest = np.maximum.accumulate(np.concatenate(([self._newest_s], np.where(finite, times, -np.inf))))
        usable = finite & (times >= newest[:-1])
        self.late += int((finite & ~usable).sum())
        rows = np.flatnonzero(usable)
        start = 0
        while start < len(rows):
            end = self._until(times[rows[start:]]) + start
            part = rows[start:end]
            fresh = times[part] > np.concatenate(([self._newest_s], times[part][:-1]))
            scores[part] = self._score(times[part], points[part], self._unlike(points[part], fresh))
            self._waiting.append((times[part][fresh], points[part][fresh]))
            self._waiting_points += int(fresh.sum())
            self._newest_s = float(times[part][-1])
            start = end
        return scores

    def _until(self, times: Floats) -> int:
        """Return how many of the points come before the next update of the bounds; update them where that is now."""
        unit_s = self._settings.time_unit_s
        if not np.isfinite(self._first_s):
            self._first_s = float(times[0])
            self._update_at_s = self._first_s + unit_s
        due = times[0] >= self._update_at_s or self._waiting_points >= self._due_points
        if due and times[0] > self._newest_s:
            self._update()
            units = np.floor((times[0] - self._first_s) / unit_s)
            self._update_at_s = self._first_s + (units + 1) * unit_s
            self._due_points = self._points if units < 1 else self._settings.history_points // 4
        before = int(np.searchsorted(times, self._update_at_s, side="left"))
        return max(1, min(before, self._due_points - self._waiting_points))

    def _update(self) -> None:
        if not self._waiting:
            return
        at_s = np.concatenate([times for times, _ in self._waiting])
        values = np.concatenate([points for _, points in self._waiting])
        self._waiting, self._waiting_points = [], 0
        self._points += len(at_s)
        self._rolling.add(at_s, values)
        held = self._rolling.history().values
        self._units = units_of(held, self._settings)
        self._seen = (float(held.min()), float(held.max()))
        if not self._discords.has_begun and len(at_s) > 1:
            self._discords.begin(float(np.median(np.diff(at_s))))
            self._discords.extend(values)
        self._discords.learn()

    def _unlike(self, values: Floats, fresh: NDArray[np.bool_]) -> Floats:
        """Return how much further than is usual the stretches that end with points are, 0 where that is not known."""
        found = np.zeros(len(values))
        if self._discords.has_begun:
            found[fresh] = self._discords.extend(values[fresh])
        return found

    def _distances(self, at_s: Floats, values: Floats) -> Floats:
        if self._points < self._settings.min_points:
            return np.zeros(len(values))
        bounds = self._rolling.normalcy.bounds
        if bounds is not None:
            return bounds.outside(at_s, values)
        lower, upper = self._seen
        return np.maximum(values - upper, 0.0) - np.maximum(lower - values, 0.0)

    def _score(self, at_s: Floats, values: Floats, unlike: Floats) -> Floats:
        settings = self._settings
        alarm = settings.alarm_score / (1 - settings.alarm_score)
        apart = self._distances(at_s, values)
        outside = np.abs(apart) / np.where(apart > 0, self._units.above, self._units.below)
        outside = np.where(unlike > 0, outside, outside / settings.known_shape_divisor)
        shapes = settings.discord_gain * unlike / self._units.above
        days = np.floor((at_s - self._first_s) / settings.time_unit_s).astype(np.int64)
        scores = np.zeros(len(at_s))
        for row, (now_s, distance, shape, day) in enumerate(
            zip(at_s.tolist(), outside.tolist(), shapes.tolist(), days.tolist(), strict=True)
        ):
            if day != self._today:
                self._new_day(day)
            if self._event is not None and ((self._event.furthest != 0) != (distance > 0) or distance + shape <= 0):
                self.close_event()
            if distance + shape <= 0:
                continue
            self._today_greatest = max(self._today_greatest, min(max(distance, shape), FURTHEST))
            since_s = now_s if self._event is None else self._event.first_s
            lasted = min(1.0, (now_s - since_s) / settings.duration_s)
            raw = max(distance * (1 + settings.duration_gain * lasted), shape) / (
                1 + settings.habit_gain * self._habit
            )
            rung = math.floor(math.log(raw / alarm) / math.log(settings.repeat_factor) + ROUNDING)
            if now_s >= self._alarm_s + settings.hold_off_s or rung > self._alarm_rung:
                self._alarm_s, self._alarm_rung = now_s, rung
                held = alarm * settings.repeat_factor**rung
                scores[row] = held / (1 + held)
            self._event = _grown(self._event, now_s, float(apart[row]), scores[row])
        return scores

    def close_event(self) -> None:
        """Put the stretch that the newest point belongs to among the events, where it was scored at all."""
        if self._event is not None and self._event.score > 0:
            self.events.append(self._event)
        self._event = None

    def _new_day(self, day: int) -> None:
        if self._today >= 0:
            self._greatest.append(self._today_greatest)
            self._greatest.extend([0.0] * min(day - self._today - 1, self._settings.habit_units))
            self._habit = float(np.median(self._greatest))
        self._today, self._today_greatest = day, 0.0


def _grown(event: Excursion | None, now_s: float, apart: float, score: float) -> Excursion:
    if event is None:
        return Excursion(now_s, now_s, 1, apart, score)
    furthest = apart if abs(apart) > abs(event.furthest) else event.furthest
    return Excursion(event.first_s, now_s, event.points + 1, furthest, max(event.score, score))
