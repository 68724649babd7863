"""Windows of each member's own past, kept as a few quantiles each, and how far a window is from the nearest one."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from controller.anomaly.peers.distances import LEVEL_RESOLUTION, sorted_windows
from controller.anomaly.peers.settings import PeerSettings

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

KEPT_WINDOWS = 128
"""Most windows of a past that are kept."""
KEPT_QUANTILES = 12
"""Quantiles that are kept of each: means of so many parts of its sorted samples."""
LEAST_OWN_WINDOWS = 48
"""Of a member that was seen in fewer windows nothing is kept: what it may do has hardly been seen."""
LEVEL_S = 86_400.0
"""Samples are seen beside the level of so many seconds before them: a day, so that every hour of it counts alike."""
LEVEL_STEPS = 24
"""How often in that time the level is taken anew."""
LEVEL_SAMPLES = 96
"""Samples, evenly spread over that time, that a level is the median of."""
GOLDEN = (5**0.5 - 1) / 2
"""Multiples of it fall evenly into any span and keep no step with the hours of the day."""


class OwnPast(NamedTuple):
    """Windows without faults of each member of a group."""

    ends_s: Floats
    """(kept,): the end of each window."""
    quantiles: Floats
    """(kept, members, quantiles), float32 in all digits; NaN where a member was not there, or seen too seldom."""

    def of(self, rows: NDArray[np.int64]) -> OwnPast:
        """Return the same for some of the members, by their numbers."""
        return self._replace(quantiles=self.quantiles[:, rows])

    @property
    def is_known(self) -> Flags:
        """Return of which members there is a past, (members,)."""
        return np.asarray(~np.isnan(self.quantiles[:, :, 0]).all(axis=0))


def quantiles_kept(settings: PeerSettings) -> int:
    """Return how many quantiles are kept of a window."""
    return min(KEPT_QUANTILES, settings.window_samples)


def usual_sizes(reference: Floats, usual_bin: float) -> Floats:
    """Return what is much for each member, (members,): the mean size of its samples.

    Parameters
    ----------
    reference : NDArray[np.float64]
        (members, quantiles) of the time without faults; NaN where there was none.
    usual_bin : float
        The usual size of bins: that of members which were idle, or not there, in that time.
    """
    mean = np.abs(reference).mean(axis=1)
    return np.where(mean > 0, mean, usual_bin)


def least_difference(sizes: Floats, resolution: float) -> Floats:
    """Return what is not told apart in what `levelled` returns, (members,).

    Parameters
    ----------
    sizes : NDArray[np.float64]
        Those of `usual_sizes`.
    resolution : float
        What is not told apart in the unit of the samples.
    """
    return np.asarray(np.fmax(LEVEL_RESOLUTION, np.arcsinh(resolution / sizes)))


def levelled(smoothed: Floats, reference: Floats, sizes: Floats, settings: PeerSettings) -> Floats:
    """Return samples beside the level of the day before them, as logarithms of ratios; around zero as differences.

    A level that drifts leaves within days all that a member ever did. The level is the median of what there is of a
    day before; in the first quarter of the first day that of this day, and where the samples span less than a day
    that of the time without faults.

    Parameters
    ----------
    smoothed : NDArray[np.float64]
        (members, cells), NaN where unknown.
    reference : NDArray[np.float64]
        (members, quantiles) of the time without faults; NaN where there was none.
    sizes : NDArray[np.float64]
        (members,), those of `usual_sizes`.
    settings : PeerSettings
        The length of a cell.

    Returns
    -------
    NDArray[np.float64]
        (members, cells), arcsinh(x / size) less that of the level.
    """
    cells = smoothed.shape[1]
    span = max(1, round(LEVEL_S / settings.interval_s))
    found = np.arcsinh(smoothed / sizes[:, None])
    usual = np.arcsinh(reference[:, reference.shape[1] // 2] / sizes)
    levels = np.repeat(usual[:, None], cells, axis=1)
    step, apart = max(1, span // LEVEL_STEPS), max(1, span // LEVEL_SAMPLES)
    for start in range(0, cells if cells >= span else 0, step):
        before = max(0, start - span)
        part = found[:, before : start if 4 * start >= span else span : apart]
        there = ~np.isnan(part).all(axis=1)
        levels[there, start : start + step] = np.nanmedian(part[there], axis=1)[:, None]
    return np.asarray(found - levels)


def own_past(samples: Floats, fault_free: Flags, ends_s: Floats, settings: PeerSettings) -> OwnPast:
    """Return what is kept of windows without faults.

    Parameters
    ----------
    samples : NDArray[np.float64]
        (members, cells), NaN where unknown.
    fault_free : NDArray[np.bool_]
        (windows,).
    ends_s : NDArray[np.float64]
        (windows,), when each ends.
    settings : PeerSettings
        The lengths of windows and shifts.
    """
    members, kept = samples.shape[0], quantiles_kept(settings)
    numbers = np.flatnonzero(fault_free)
    if len(numbers) < LEAST_OWN_WINDOWS:
        return OwnPast(np.empty(0), np.empty((0, members, kept)))
    chosen = numbers
    if len(numbers) > KEPT_WINDOWS:
        chosen = numbers[np.unique((np.arange(KEPT_WINDOWS) * GOLDEN % 1 * len(numbers)).astype(np.int64))]
    window, shift = settings.window_samples, settings.shift_samples
    seen = np.zeros(members, np.int64)
    found = np.full((len(chosen), members, kept), np.nan)
    rows = {int(number): row for row, number in enumerate(chosen)}
    for number in numbers.tolist():
        ordered = sorted_windows(samples, window, shift, number, number + 1)[0]
        seen += ~np.isnan(ordered[:, 0])
        if number in rows:
            found[rows[number]] = _few(ordered, kept)
    found[:, seen < LEAST_OWN_WINDOWS] = np.nan
    return OwnPast(ends_s[chosen], found.astype(np.float32).astype(np.float64))


def nearest_distance(samples: Floats, ends_s: Floats, past: OwnPast, window_s: float) -> Floats:
    """Return how far each window of a member is from the nearest of its own past that it does not overlap.

    The distance is the area between the two distribution functions, as between peers, from the quantiles kept.

    Parameters
    ----------
    samples : NDArray[np.float64]
        (windows, members, window), sorted.
    ends_s : NDArray[np.float64]
        (windows,), when each ends.
    past : OwnPast
        Of the same members.
    window_s : float
        How long a window is.

    Returns
    -------
    NDArray[np.float64]
        (windows, members), in the unit of the samples; NaN where a member is missing or has no past.
    """
    few = _few(samples, past.quantiles.shape[2])
    found = np.full(samples.shape[:2], np.nan)
    for end_s, kept in zip(past.ends_s.tolist(), past.quantiles, strict=True):
        apart = np.abs(ends_s - end_s) >= window_s
        found[apart] = np.fmin(found[apart], np.abs(few[apart] - kept).mean(axis=2))
    return found


def _few(samples: Floats, kept: int) -> Floats:
    """Return the means of so many even parts of the sorted samples along the last axis."""
    starts = np.arange(kept) * samples.shape[-1] // kept
    lengths = np.diff(starts, append=samples.shape[-1])
    return np.asarray(np.add.reduceat(samples, starts, axis=-1) / lengths)
