"""Normalcy that follows a series: days are added, the past is counted once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from controller.anomaly.normalcy.categories import CATEGORIES, Detector
from controller.anomaly.normalcy.cyclochart import find_cycle
from controller.anomaly.normalcy.fit import HIGH, LOW, fit
from controller.anomaly.normalcy.footprint import Footprint, footprint, quantile_frame
from controller.anomaly.normalcy.regular import periodic_bounds
from controller.anomaly.normalcy.result import SeriesNormalcy
from controller.anomaly.normalcy.series import NOTHING_LEFT_OUT, Floats, InputCounts, Series, make_series
from controller.anomaly.normalcy.settings import Settings


class RollingState(NamedTuple):
    """All that a `RollingNormalcy` knows between two additions."""

    at_s: Floats
    values: Floats
    left_out: InputCounts
    """Of all additions."""
    fitted_s: float
    """The newest time at the latest fit."""
    fitted_length_s: float
    since_s: float | None
    """Where the bounds started again, None where they are those of all points."""
    columns: Footprint | None
    normalcy: SeriesNormalcy


class RollingNormalcy:
    """Holds the latest `history_s` of a series and its normalcy.

    The category is determined anew once `refit_s` has passed or the series has grown by half. In between the columns
    of new days are added to the footprint of a periodic series without a parametric model, and period and bounds
    follow from the columns; the points of the past are not looked at again. Any other normalcy stands until the next
    fit.

    Where most points of the latest time unit are outside of the bounds, and of bounds determined anew, the level has
    changed: bounds start again with that unit, in start-up mode, and follow from what has come since until a week
    has. Then what was before counts again, where the normalcy of all holds the latest unit.
    """

    def __init__(self, settings: Settings | None = None, categories: Mapping[str, Detector] = CATEGORIES) -> None:
        self._settings = settings or Settings()
        self._categories = categories
        self._at_s: list[Floats] = []
        self._values: list[Floats] = []
        self._fitted_s, self._fitted_length_s = -np.inf, 0.0
        self._since_s: float | None = None
        self._footprint: Footprint | None = None
        self._left_out = NOTHING_LEFT_OUT
        self.fits = 0
        self.normalcy = fit(self.history(), self._settings, categories)

    @classmethod
    def restored(
        cls, state: RollingState, settings: Settings, categories: Mapping[str, Detector] = CATEGORIES
    ) -> RollingNormalcy:
        """Return one that goes on where the state was taken, with the settings of then."""
        rolling = cls(settings, categories)
        if len(state.at_s):
            rolling._at_s, rolling._values = [state.at_s], [state.values]
        rolling._left_out = state.left_out
        rolling._fitted_s, rolling._fitted_length_s = state.fitted_s, state.fitted_length_s
        rolling._since_s = state.since_s
        rolling._footprint, rolling.normalcy = state.columns, state.normalcy
        return rolling

    def state(self) -> RollingState:
        """Return what `restored` goes on from."""
        held = self.history()
        return RollingState(
            held.at_s,
            held.values,
            self._left_out,
            self._fitted_s,
            self._fitted_length_s,
            self._since_s,
            self._footprint,
            self.normalcy,
        )

    def history(self) -> Series:
        """Return the points that are held, in order, and what was left out of all additions."""
        at_s = np.concatenate(self._at_s) if self._at_s else np.empty(0)
        values = np.concatenate(self._values) if self._values else np.empty(0)
        return replace(make_series(at_s, values, self._settings), counts=self._left_out)

    def add(self, at_s: Floats, values: Floats) -> SeriesNormalcy:
        """Add points that follow all before, a day's or any number, and return the normalcy with them.

        Raises ValueError for a time that is not later than all before.
        """
        new = make_series(at_s, values, self._settings)
        if self._at_s and len(new) and new.at_s[0] <= self._at_s[-1][-1]:
            raise ValueError(f"points at {new.at_s[0]:.0f} s are not later than those before")
        self._left_out = InputCounts(*(one + other for one, other in zip(self._left_out, new.counts, strict=True)))
        if not len(new):
            if not self._at_s:
                self.normalcy = fit(self.history(), self._settings, self._categories)
            return self.normalcy
        self._at_s.append(new.at_s)
        self._values.append(new.values)
        self._forget(float(new.at_s[-1]) - self._settings.history_s)
        self._follow(new)
        return self.normalcy

    def _follow(self, new: Series) -> None:
        """Determine the normalcy anew where that is due or the level has changed, else add the new columns."""
        settings, since_s = self._settings, self._since_s
        now_s = float(new.at_s[-1])
        length_s = now_s - float(self._at_s[0][0] if since_s is None else since_s)
        due = now_s >= self._fitted_s + settings.refit_s or length_s >= 1.5 * self._fitted_length_s
        left = self._is_left(now_s)
        if not left and not due and settings.refit_s > 0:
            if self._footprint is not None:
                self._extend(self._footprint, new)
            return
        if since_s is not None and not left and length_s < settings.min_length_s:
            self._refit(since_s, now_s)
            return
        self._refit(None, now_s)
        if self._is_left(now_s):
            self._refit(now_s - settings.time_unit_s if since_s is None or left else since_s, now_s)

    def _is_left(self, now_s: float) -> bool:
        """Tell whether most points of the latest time unit are outside of the bounds; not of a unit with too few."""
        latest = self._latest(now_s - self._settings.time_unit_s)
        if len(latest) < self._settings.min_points:
            return False
        bounds = self.normalcy.bounds
        return bounds is None or bool((bounds.outside(latest.at_s, latest.values) != 0).mean() > 0.5)

    def _latest(self, after_s: float) -> Series:
        """Return the points after a time; additions before it are not touched."""
        first = len(self._at_s) - 1
        while first > 0 and self._at_s[first][0] > after_s:
            first -= 1
        at_s, values = np.concatenate(self._at_s[first:]), np.concatenate(self._values[first:])
        return make_series(at_s[at_s > after_s], values[at_s > after_s], self._settings)

    def _forget(self, before_s: float) -> None:
        """Let go of points before a time, and of whole additions beyond `history_points`."""
        points = sum(map(len, self._at_s))
        while len(self._at_s) > 1 and (
            self._at_s[0][-1] < before_s or points - len(self._at_s[0]) >= self._settings.history_points
        ):
            points -= len(self._at_s[0])
            del self._at_s[0], self._values[0]
        keep = self._at_s[0] >= before_s
        if not keep.all():
            self._at_s[0], self._values[0] = self._at_s[0][keep], self._values[0][keep]

    def _refit(self, since_s: float | None, now_s: float) -> None:
        """Determine the normalcy of what came after a time, of all where None is given."""
        series = self.history() if since_s is None else self._latest(since_s)
        self.normalcy = fit(series, self._settings, self._categories)
        self.fits += 1
        self._since_s, self._fitted_s = since_s, now_s
        self._fitted_length_s = now_s - float(series.at_s[0])
        self._footprint = None
        if self.normalcy.category in (LOW, HIGH) and self.normalcy.periodic:
            stable_s = self.normalcy.since_s
            stable = series if stable_s is None else series.part(series.at_s >= stable_s)
            self._footprint = footprint(stable, quantile_frame(stable, self._settings))

    def _extend(self, columns: Footprint, new: Series) -> None:
        columns = columns.extended(new)
        excess = len(columns) - int(self._settings.history_s // columns.frame.column_s)
        if excess > 0:
            columns = columns.without_first(excess)
        self._footprint = columns
        cycle = find_cycle(columns, self._settings)
        if cycle.grouped is None or self.normalcy.bounds is None:
            return
        otherwise = (float(np.nanmin(columns.low)), float(np.nanmax(columns.high)))
        period_s = cycle.units * columns.frame.parts * columns.frame.column_s
        bounds = periodic_bounds(columns, cycle, otherwise)
        self.normalcy = replace(self.normalcy, bounds=bounds, period_s=period_s, cycle=cycle)
