"""Holes in a series: their share of time, and how data and holes follow each other."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from controller.anomaly.normalcy.series import Floats


class Presence(NamedTuple):
    """Share of time in holes (percent), transition probabilities (1: data, 0: hole), hole durations float64[k]."""

    gap_pct: float
    p11: float
    p10: float
    p00: float
    p01: float
    holes_s: Floats


def presence(at_s: Floats, interval_s: float, hole_factor: float) -> Presence:
    """Measure the holes between points at sorted times.

    A hole is a step longer than `hole_factor` intervals (lost text before formula -19; confidence high). T is the
    sum of gapless durations, G that of holes, and the percentage 100 G / (G + T) (formulas -19 to -21; confidence
    high). The probabilities count transitions on a grid of the interval (formulas -22, -23; meaning high). Fewer
    than two points, or an interval of 0, have no holes.
    """
    steps = np.diff(at_s)
    if not len(steps) or interval_s <= 0:
        return Presence(0.0, 1.0, 0.0, 0.0, 0.0, np.empty(0))
    holes = steps[steps > hole_factor * interval_s]
    span_s = float(steps.sum())
    missing = np.maximum(np.rint(holes / interval_s) - 1, 1).sum()
    starts = len(steps)
    p10 = len(holes) / starts
    p01 = len(holes) / float(missing) if missing else 0.0
    return Presence(100.0 * float(holes.sum()) / span_s, 1 - p10, p10, 1 - p01 if missing else 0.0, p01, holes)
