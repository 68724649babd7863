"""Distances between the distributions of a window's members: exact, binned and against the peers' median."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from controller.anomaly.peers.kernel import fill_pair_distances

Floats = NDArray[np.float64]

SMALL_GROUP = 3
"""One member of so few has more than the quarter of the samples that quartiles withstand."""
CACHED_VALUES = 1 << 16
"""Differences worked on at a time, so that they stay in the processor's cache."""
WORTH_COMPILING = 1 << 24
"""Differences of samples in a call from which on the compiled kernel gains more than loading it takes."""
LEVEL_RESOLUTION = 1e-3
"""Bins are not finer than this share of the members' level: less is noise of idle or constant series."""
SMALLEST_BIN = 1e-9
"""The same where the level is zero, as a share of the largest value that is known of the metric."""


def sorted_windows(values: Floats, window: int, shift: int, first: int = 0, last: int | None = None) -> Floats:
    """Return the sorted samples of each member in each window.

    Parameters
    ----------
    values : NDArray[np.float64]
        (members, samples), NaN where missing.
    window, shift : int
        Samples per window and between the starts of two.
    first, last : int
        Which windows, half-open.

    Returns
    -------
    NDArray[np.float64]
        (windows, members, window): empirical quantiles at (i + 1/2) / window. Where samples are missing the quantiles
        of the others; NaN throughout where fewer than half are there.
    """
    if values.shape[1] < window:
        return np.empty((0, values.shape[0], window))
    views = np.lib.stride_tricks.sliding_window_view(values, window, axis=1)[:, ::shift]
    found = np.sort(views[:, first:last].swapaxes(0, 1), axis=-1)
    counts = window - np.isnan(found).sum(axis=-1)
    wanted = (np.arange(window) + 0.5) / window
    for place in zip(*np.nonzero((counts < window) & (counts * 2 >= window)), strict=True):
        count = counts[place]
        found[place] = np.interp(wanted, (np.arange(count) + 0.5) / count, found[place][:count])
    found[counts * 2 < window] = np.nan
    return found


def bin_sizes(
    samples: Floats,
    bins_max: int,
    *,
    small_group: int = 0,
    least: float = SMALLEST_BIN,
    offsets: Floats | None = None,
) -> Floats:
    """Return the Freedman-Diaconis bin size of each window over the samples of all members.

    2 IQR(x) WinSize^(-1/3), and large enough for `bins_max` bins over the range of x; at least one thousandth of the
    median of x, so that constant series have a size.

    Parameters
    ----------
    samples : NDArray[np.float64]
        (windows, members, window), NaN where missing.
    bins_max : int
        Kasick et al. cap it at 1000.
    small_group : int
        Take the smallest size that any one member less gives, in groups of two to so many: there one that is far off
        widens the IQR so much that it hides itself.
    least : float
        What no size is below, so that idle series have one.
    offsets : NDArray[np.float64], optional
        (members,), what was taken off the samples: the level, of which no size is below a thousandth, has it.

    Returns
    -------
    NDArray[np.float64]
        (windows,), positive; NaN where no member has samples.
    """
    windows, members, window = samples.shape
    spread = _spread(samples.reshape(windows, -1))
    by_rule = spread.iqr
    if 1 < members <= small_group:
        kept = [np.delete(samples, member, axis=1).reshape(windows, -1) for member in range(members)]
        by_rule = np.fmin.reduce([_spread(others).iqr for others in kept])
    sizes = np.maximum(2 * by_rule * window ** (-1 / 3), spread.range / bins_max)
    level = spread.median
    if offsets is not None:
        level = _spread((samples + offsets[:, None]).reshape(windows, -1)).median
    return np.asarray(np.maximum(sizes, np.maximum(np.abs(level) * LEVEL_RESOLUTION, least)))


class _Spread(NamedTuple):
    """Of each row, (rows,); NaN where a row holds nothing."""

    iqr: Floats
    median: Floats
    range: Floats


def _spread(rows: Floats) -> _Spread:
    """Return order statistics of each row's known values."""
    found = np.full((len(rows), 5), np.nan)
    counts = (~np.isnan(rows)).sum(axis=1)
    for count in np.unique(counts[counts > 0]).tolist():
        places = [count // 4, count // 2, (3 * count) // 4, 0, count - 1]
        chosen = counts == count
        found[chosen] = np.partition(rows[chosen], sorted(set(places)), axis=1)[:, places]
    lower, middle, upper, low, high = found.T
    return _Spread(upper - lower, middle, high - low)


def pair_distances(samples: Floats, compiled: bool | None = None) -> Floats:
    """Return the area between the distribution functions of every two members of each window.

    That is the 1-Wasserstein distance; for equal counts the mean of abs(sorted x - sorted y). Divided by BinSize
    it is the distance of the cumulative histograms of Kasick et al., without the error of binning.

    Parameters
    ----------
    samples : NDArray[np.float64]
        (windows, members, window), sorted.
    compiled : bool, optional
        Whether to use the kernel that numba compiles; where numba is installed and there is enough to do, if not
        given. The distances are the same to the bit.

    Returns
    -------
    NDArray[np.float64]
        (windows, members, members), in the unit of the samples; NaN on the diagonal and where a member is missing.

    Raises
    ------
    ImportError
        For ``compiled=True`` without numba.
    """
    windows, members, window = samples.shape
    distances = np.full((windows, members, members), np.nan)
    at_once = max(1, CACHED_VALUES // max(1, members * window))
    if compiled is None:
        work = windows * members * (members - 1) // 2 * window
        compiled = work >= WORTH_COMPILING and find_spec("numba") is not None
    if compiled and members > 1:
        _compiled()(np.ascontiguousarray(samples), distances, np.empty((window, members)), np.empty(members))
        alone = range(windows) if at_once == 1 else range(windows - (windows % at_once == 1), windows)
        _take_last_pair(samples, distances, alone)
        return distances
    for start in range(0, windows, at_once):
        block = np.ascontiguousarray(np.moveaxis(samples[start : start + at_once], 2, 0))
        scratch = np.empty_like(block)
        for member in range(members - 1):
            others = scratch[:, :, member + 1 :]
            np.subtract(block[:, :, member + 1 :], block[:, :, member : member + 1], out=others)
            np.abs(others, out=others)
            mean = others.sum(axis=0) / window
            distances[start : start + at_once, member, member + 1 :] = mean
            distances[start : start + at_once, member + 1 :, member] = mean
    return distances


@cache
def _compiled() -> Callable[..., None]:
    """Return the kernel as numba compiles it, from its cache on disk where one can be kept."""
    import numba

    try:
        function: Any = numba.njit(cache=True)(fill_pair_distances)
    except RuntimeError:
        function = numba.njit(fill_pair_distances)
    return function  # type: ignore[no-any-return]


def _take_last_pair(samples: Floats, distances: Floats, windows: range) -> None:
    """Sum the distance of the last two members as numpy does where it has one row alone: pairwise, not in order."""
    for number in windows:
        mean = np.abs(samples[number, -1] - samples[number, -2]).sum() / samples.shape[2]
        distances[number, -2, -1] = distances[number, -1, -2] = mean


def binned_distances(samples: Floats, sizes: Floats) -> Floats:
    """Return the sum over bins of abs(P(i) - Q(i)) of every two members' cumulative histograms, the reference form.

    Parameters
    ----------
    samples : NDArray[np.float64]
        (windows, members, window).
    sizes : NDArray[np.float64]
        (windows,), as `bin_sizes` gives them.

    Returns
    -------
    NDArray[np.float64]
        (windows, members, members), in bins; within two bins of `pair_distances` / size.
    """
    windows, members, window = samples.shape
    distances = np.full((windows, members, members), np.nan)
    for number in range(windows):
        there = np.flatnonzero(~np.isnan(samples[number, :, 0]))
        if not len(there):
            continue
        found = samples[number, there]
        low, size = found.min(), sizes[number]
        bins = max(1, int(np.ceil((found.max() - low) / size)))
        places = np.minimum(((found - low) / size).astype(np.int64), bins - 1)
        histograms = np.zeros((len(there), bins))
        np.add.at(histograms, (np.arange(len(there))[:, None], places), 1 / window)
        cumulative = histograms.cumsum(axis=1)
        for row, member in enumerate(there):
            distances[number, member, there] = np.abs(cumulative - cumulative[row]).sum(axis=1)
            distances[number, member, member] = np.nan
    return distances


def majority_distance(distances: Floats) -> Floats:
    """Return the largest threshold that more than half of a member's distances pass.

    More than half of n - 1 distances pass a threshold if the (floor((n - 1) / 2) + 1)-th largest passes it.

    Parameters
    ----------
    distances : NDArray[np.float64]
        (windows, members, members), NaN where there is none.

    Returns
    -------
    NDArray[np.float64]
        (windows, members); NaN for a member that is missing or alone.
    """
    windows, members, _ = distances.shape
    counts = (~np.isnan(distances)).sum(axis=2)
    found = np.full((windows, members), np.nan)
    lowest = np.where(np.isnan(distances), -np.inf, distances)
    for count in np.unique(counts[counts > 0]):
        place = members - (int(count) // 2 + 1)
        chosen = counts == count
        found[chosen] = np.partition(lowest[chosen], place, axis=-1)[:, place]
    return found


def median_distance(samples: Floats) -> Floats:
    """Return each member's distance to the median of its group's distributions, in time linear in the members.

    Parameters
    ----------
    samples : NDArray[np.float64]
        (windows, members, window), sorted.

    Returns
    -------
    NDArray[np.float64]
        (windows, members), in the unit of the samples; NaN for a member that is missing or alone.
    """
    there = ~np.isnan(samples[:, :, 0])
    enough = there.sum(axis=1) > 1
    found = np.full(there.shape, np.nan)
    if enough.any():
        middle = _median(samples[enough])
        found[enough] = np.abs(samples[enough] - middle[:, None]).mean(axis=2)
    return found


def _median(samples: Floats) -> Floats:
    return np.asarray(np.nanmedian(samples, axis=1) if np.isnan(samples).any() else np.median(samples, axis=1))


def reference_distance(samples: Floats, reference: Floats) -> Floats:
    """Return the distance of each window of a member to that member's own reference, (windows, members).

    Parameters
    ----------
    samples : NDArray[np.float64]
        (windows, members, window), sorted.
    reference : NDArray[np.float64]
        (members, window): quantiles of the time in which the member was well; NaN where there was none.
    """
    return np.asarray(np.abs(samples - reference).mean(axis=2))
