"""Bounds of measured series without a parametric model: extremes per slot of the period, whiskers without one."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from controller.anomaly.normalcy.bounds import Bounds, constant_bounds, filled, group_extremes, whisker_bounds
from controller.anomaly.normalcy.cyclochart import Cycle, find_cycle, kept_columns
from controller.anomaly.normalcy.footprint import Footprint, footprint, quantile_frame
from controller.anomaly.normalcy.series import Series
from controller.anomaly.normalcy.settings import Settings


class Detected(NamedTuple):
    """A series' footprint and the cycle found in it."""

    columns: Footprint
    cycle: Cycle

    @property
    def period_s(self) -> float:
        """The period; 0 where there is none."""
        frame = self.columns.frame
        return self.cycle.units * frame.parts * frame.column_s


def detect_cycle(series: Series, settings: Settings) -> Detected:
    """Build the footprint of a series (one point at least) and look for its period."""
    columns = footprint(series, quantile_frame(series, settings))
    return Detected(columns, find_cycle(columns, settings))


def regular_bounds(series: Series, detected: Detected, whisker: float) -> Bounds:
    """Return the extremes of each slot of the period, or the whiskers of all values where there is none."""
    lower, upper = whisker_bounds(series.values, whisker)
    frame = detected.columns.frame
    if detected.cycle.grouped is None:
        return constant_bounds(frame.origin_s, frame.column_s, lower, upper)
    return periodic_bounds(detected.columns, detected.cycle, (lower, upper))


def periodic_bounds(columns: Footprint, cycle: Cycle, otherwise: tuple[float, float]) -> Bounds:
    """Return the extremes over the kept columns of every slot; `otherwise` holds where a slot has no points."""
    assert cycle.grouped is not None
    kept = kept_columns(cycle.grouped, columns.present)
    extremes = group_extremes(cycle.grouped, kept, columns.low, columns.high)[:, None, :]
    frame = columns.frame
    return Bounds(frame.origin_s, frame.column_s, filled(extremes, np.array([otherwise])))
