"""The normalcy of many series at once, fitted anew or carried on from a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from apps.cli.batch import MapLike
from controller.anomaly.normalcy.fit import fit
from controller.anomaly.normalcy.result import SeriesNormalcy
from controller.anomaly.normalcy.rolling import RollingNormalcy, RollingState
from controller.anomaly.normalcy.series import make_series
from controller.anomaly.normalcy.settings import Settings

Points = tuple[NDArray[np.float64], NDArray[np.float64]]
WORTH_CORES = 16
"""Fewer series than this are done in the calling process."""
SERIES_AT_ONCE = 25


class Addition(NamedTuple):
    """Further points of a series, and what was known of it before."""

    state: RollingState | None
    at_s: NDArray[np.float64]
    values: NDArray[np.float64]


class _Part(NamedTuple):
    additions: Sequence[Addition]
    settings: Settings


def fit_many(series: Sequence[Points], settings: Settings, run: MapLike) -> list[SeriesNormalcy]:
    """Return the normalcy of each series (times, values) in their order."""
    parts = _parts([Addition(None, *points) for points in series], settings)
    return [found for part in run(_fit, parts) for found in part]


def advance_many(additions: Sequence[Addition], settings: Settings, run: MapLike) -> list[RollingState]:
    """Return the state of each series with its further points; points that are not later than before are left out."""
    return [state for part in run(_advance, _parts(additions, settings)) for state in part]


def _parts(additions: Sequence[Addition], settings: Settings) -> list[_Part]:
    at_once = max(1, min(SERIES_AT_ONCE, len(additions) // 8))
    return [_Part(additions[start : start + at_once], settings) for start in range(0, len(additions), at_once)]


def _fit(part: _Part) -> list[SeriesNormalcy]:
    return [fit(make_series(one.at_s, one.values, part.settings), part.settings) for one in part.additions]


def _advance(part: _Part) -> list[RollingState]:
    return [_advanced(one, part.settings) for one in part.additions]


def _advanced(addition: Addition, settings: Settings) -> RollingState:
    state, at_s, values = addition
    if state is None:
        rolling = RollingNormalcy(settings)
    else:
        rolling = RollingNormalcy.restored(state, settings)
        if len(state.at_s):
            later = ~(at_s <= state.at_s[-1])
            at_s, values = at_s[later], values[later]
    rolling.add(at_s, values)
    return rolling.state()
