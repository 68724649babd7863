"""The normalcy of many series on all cores of one machine."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
from numpy.typing import NDArray

from controller.anomaly.normalcy.fit import fit
from controller.anomaly.normalcy.result import Normalcy
from controller.anomaly.normalcy.series import make_series
from controller.anomaly.normalcy.settings import Settings

Points = tuple[NDArray[np.float64], NDArray[np.float64]]
WORTH_A_PROCESS = 16
"""Fewer series than this are done in the calling process."""


def fit_many(series: Sequence[Points], settings: Settings, jobs: int | None = None) -> list[Normalcy]:
    """Return the normalcy of each series (times, values) in their order, by `jobs` processes (default: all cores)."""
    jobs = jobs or os.cpu_count() or 1
    if jobs == 1 or len(series) < WORTH_A_PROCESS:
        return [_fit(points, settings) for points in series]
    part = max(1, min(50, len(series) // (4 * jobs)))
    with ProcessPoolExecutor(jobs, mp_context=get_context("fork")) as pool:
        return list(pool.map(_fit, series, [settings] * len(series), chunksize=part))


def _fit(points: Points, settings: Settings) -> Normalcy:
    return fit(make_series(*points, settings), settings)
