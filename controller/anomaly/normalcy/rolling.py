"""Normalcy that follows a series: days are added, the past is counted once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from controller.anomaly.normalcy.categories import CATEGORIES, Detector
from controller.anomaly.normalcy.cyclochart import find_cycle
from controller.anomaly.normalcy.fit import HIGH, LOW, fit
from controller.anomaly.normalcy.footprint import Footprint, footprint, quantile_frame
from controller.anomaly.normalcy.regular import periodic_bounds
from controller.anomaly.normalcy.result import Normalcy
from controller.anomaly.normalcy.series import Floats, Series, make_series
from controller.anomaly.normalcy.settings import Settings


class RollingNormalcy:
    """Holds the latest `history_s` of a series and its normalcy.

    The category is determined anew once `refit_s` has passed or the series has grown by half. In between the columns
    of new days are added to the footprint of a periodic series without a parametric model, and period and bounds
    follow from the columns; the points of the past are not looked at again. Any other normalcy stands until the next
    fit.
    """

    def __init__(self, settings: Settings | None = None, categories: Mapping[str, Detector] = CATEGORIES) -> None:
        self._settings = settings or Settings()
        self._categories = categories
        self._at_s: list[Floats] = []
        self._values: list[Floats] = []
        self._fitted_s, self._fitted_length_s = -np.inf, 0.0
        self._footprint: Footprint | None = None
        self.fits = 0
        self.normalcy = fit(self.history(), self._settings, categories)

    def history(self) -> Series:
        """Return the points that are held, in order."""
        at_s = np.concatenate(self._at_s) if self._at_s else np.empty(0)
        values = np.concatenate(self._values) if self._values else np.empty(0)
        return make_series(at_s, values, self._settings)

    def add(self, at_s: Floats, values: Floats) -> Normalcy:
        """Add points that follow all before, a day's or any number, and return the normalcy with them.

        Raises ValueError for a time that is not later than all before.
        """
        new = make_series(at_s, values, self._settings)
        if not len(new):
            return self.normalcy
        if self._at_s and new.at_s[0] <= self._at_s[-1][-1]:
            raise ValueError(f"points at {new.at_s[0]:.0f} s are not later than those before")
        self._at_s.append(new.at_s)
        self._values.append(new.values)
        self._forget(float(new.at_s[-1]) - self._settings.history_s)
        length_s = float(self._at_s[-1][-1] - self._at_s[0][0])
        due = new.at_s[-1] >= self._fitted_s + self._settings.refit_s or length_s >= 1.5 * self._fitted_length_s
        if due or self._settings.refit_s == 0:
            self._refit(float(new.at_s[-1]), length_s)
        elif self._footprint is not None:
            self._extend(self._footprint, new)
        return self.normalcy

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

    def _refit(self, now_s: float, length_s: float) -> None:
        series = self.history()
        self.normalcy = fit(series, self._settings, self._categories)
        self.fits += 1
        self._fitted_s, self._fitted_length_s = now_s, length_s
        self._footprint = None
        if self.normalcy.category in (LOW, HIGH) and self.normalcy.periodic:
            since_s = self.normalcy.since_s
            stable = series if since_s is None else series.part(series.at_s >= since_s)
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
