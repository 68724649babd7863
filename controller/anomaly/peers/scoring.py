"""One metric of one group: distances in each window, thresholds from training, scores as multiples of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from controller.anomaly.peers.distances import (
    SMALL_GROUP,
    SMALLEST_BIN,
    bin_sizes,
    binned_distances,
    majority_distance,
    median_distance,
    pair_distances,
    reference_distance,
    sorted_windows,
)
from controller.anomaly.peers.moves import Moves, blamed_by_way, moved
from controller.anomaly.peers.past import OwnPast, least_difference, levelled, nearest_distance, own_past, usual_sizes
from controller.anomaly.peers.resample import moving_average
from controller.anomaly.peers.settings import Form, PeerSettings, Scope

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

DISTANCES_AT_ONCE = 1 << 21
"""Bounds the memory of a group: windows are taken so many pair distances at a time."""
BIN_FLOOR = 0.1
"""Bins are no smaller than this share of the usual size in training."""
USUAL_PCT = 10
"""Without a training period what is usual for a member is its lowest tenth: a fault may last for most of the rest."""
THRESHOLD_FLOOR = 0.25
"""A threshold is no smaller than this share of the median of its group's, ..."""
SMALLEST_THRESHOLD_BINS = 1.0
"""... nor than one bin: less is not told apart."""
FENCE_SPREADS = 1.5
"""See `fences`."""
TRAINED_WINDOWS = 191
"""Windows in the day that Kasick et al. train on; fewer have hardly seen the largest deviation."""

DISTANCE_FORMS: dict[Form, Callable[[Floats, Floats], Floats]] = {
    "pairs": lambda samples, sizes: majority_distance(pair_distances(samples)) / sizes[:, None],
    "binned": lambda samples, sizes: majority_distance(binned_distances(samples, sizes)),
    "median": lambda samples, sizes: median_distance(samples) / sizes[:, None],
}
"""From sorted samples and bin sizes to one distance in bins per window and member."""


class Learnt(NamedTuple):
    """What a time without faults tells of one metric of one group."""

    reference: Floats
    """Quantiles of each member's samples, (members, window_samples); NaN where it had none."""
    usual_bin: float
    """The median of the bin sizes; NaN without any."""
    past: OwnPast
    """Windows of each member, where there were enough."""
    levelled_past: OwnPast
    """The same windows beside the level of the day before, see `levelled`."""


class Distances(NamedTuple):
    """How far each member is from its peers and from its own past, in bins, (windows, members); NaN where unknown.

    From its own past is from the nearest window of it; where that was seen in too few, from all of it taken together.
    `levelled` is from the nearest where both are seen beside the level of the day before, in least differences.
    """

    peers: Floats
    """The largest threshold that more than half of the pairwise distances pass; without a training period what of it
    is beyond the usual, see `beyond_usual`."""
    own: Floats
    learnt: Learnt | None = None
    """What the distances were taken with."""
    levelled: Floats | None = None
    moves: Moves | None = None
    """What moved between members; it counts where the metric is taken for throughput, see `scored`."""


class Thresholds(NamedTuple):
    """From which distances on a member is anomalous, (members,): to its peers, and both ways to its own past."""

    peers: Floats
    own: Floats
    levelled: Floats | None = None


class Witnesses(NamedTuple):
    """What speaks against each member, (windows, members), 1.0 where a threshold is reached; NaN where unknown."""

    peers: Floats
    """How unlike its peers it is, and blamed where most of them changed, see `with_second_witness`."""
    own: Floats
    """How unlike anything that it ever did, beyond what its peers share, as it is and beside the level of the day
    before: the lower counts, so that a level that drifts is no fault. NaN without a past of windows."""

    @property
    def together(self) -> Floats:
        """Return the mean of both, the first alone where there is no past of windows."""
        return np.where(np.isnan(self.own), self.peers, (self.peers + self.own) / 2)

    @property
    def either(self) -> Floats:
        """Return the one that speaks more against a member."""
        return np.asarray(np.fmax(self.peers, self.own))


def window_count(cells: int, settings: PeerSettings) -> int:
    """Return how many whole windows fit into a number of cells."""
    return max(0, (cells - settings.window_samples) // settings.shift_samples + 1)


def window_ends(ends_s: Floats, settings: PeerSettings) -> Floats:
    """Return the end of each window, from the ends of the grid's cells."""
    return ends_s[settings.window_samples - 1 :: settings.shift_samples]


def measure(
    values: Floats,
    settings: PeerSettings,
    training: Flags | None = None,
    learnt: Learnt | None = None,
    resolution: float = 0.0,
    first_s: float = 0.0,
) -> Distances:
    """Return the distances of one metric of one group: moving average, windows, bin sizes, distributions compared.

    Parameters
    ----------
    values : NDArray[np.float64]
        (members, cells) as `resample` gives them, NaN where unknown.
    settings : PeerSettings
        The chain's parameters.
    training : NDArray[np.bool_], optional
        (windows,): those without a fault; all are taken for it where it is not given.
    learnt : Learnt, optional
        What an earlier time told of these members, in place of `training`.
    resolution : float
        What values of this metric are not told apart by less than, in its unit; no bin is smaller.
    first_s : float
        When the first cell begins.

    Returns
    -------
    Distances
        NaN for windows in which a member has fewer than half of its samples; to the peers also where it is alone.

    Notes
    -----
    Source: Kasick et al., 4.2 "CDF Distances".
    """
    smoothed = moving_average(values, settings.smoothing_samples)
    windows = window_count(values.shape[1], settings)
    is_untrained = training is None and learnt is None
    fault_free = np.ones(windows, np.bool_) if training is None else training
    shift_s = settings.shift_samples * settings.interval_s
    ends_s: Floats = np.asarray(first_s + settings.window_s + np.arange(windows) * shift_s, np.float64)
    if learnt is None:
        known = _reference(smoothed, fault_free, settings)
        of_training = np.zeros(windows, np.bool_) if training is None else training
        past = own_past(smoothed, of_training, ends_s, settings)
    else:
        known, past = learnt.reference, learnt.past
    reference, compared = known, past
    largest = float(np.abs(smoothed[~np.isnan(smoothed)]).max(initial=0.0)) or 1.0
    unshifted = smoothed
    offset = np.zeros(len(known))
    if settings.offsets == "remove":
        middle = known[:, known.shape[1] // 2]
        offset = np.where(np.isnan(middle), 0.0, middle)
        smoothed, reference = smoothed - offset[:, None], known - offset[:, None]
        compared = past._replace(quantiles=past.quantiles - offset[:, None])
    sizes = _bin_sizes(smoothed, windows, settings, max(resolution, SMALLEST_BIN * largest), offset)
    usual = sizes[fault_free & ~np.isnan(sizes)]
    usual_bin = learnt.usual_bin if learnt is not None else float(np.median(usual)) if len(usual) else float("nan")
    much = usual_sizes(known, usual_bin)
    beside = levelled(unshifted, known, much, settings) if past.is_known.any() else None
    if learnt is None:
        levelled_past = past if beside is None else own_past(beside, of_training, ends_s, settings)
        learnt = Learnt(known, usual_bin, past, levelled_past)
    peers, own, near, far, level = np.full((5, windows, smoothed.shape[0]), np.nan)
    sizes = np.fmax(sizes, BIN_FLOOR * learnt.usual_bin)
    for block, samples in _blocks(smoothed, windows, settings):
        peers[block] = DISTANCE_FORMS[settings.form](samples, sizes[block])
        own[block] = reference_distance(samples, reference) / learnt.usual_bin
        level[block] = samples.mean(axis=-1) + offset
        near[block] = nearest_distance(samples, ends_s[block], compared, settings.window_s) / learnt.usual_bin
    if is_untrained:
        peers = beyond_usual(peers)
    if beside is not None:
        least = least_difference(much, resolution)
        for block, samples in _blocks(beside, windows, settings):
            far[block] = nearest_distance(samples, ends_s[block], learnt.levelled_past, settings.window_s) / least
    return Distances(peers, np.where(past.is_known, near, own), learnt, far, moved(level, known))


def threshold_of(
    distances: Distances, settings: PeerSettings, training: Flags | None = None, pooled: float | None = None
) -> Thresholds:
    """Return the thresholds of each member; `pooled` is that of all members where several groups share one."""
    if pooled is None:
        peers = thresholds(distances.peers, training, settings.scope)
    else:
        peers = np.full(distances.peers.shape[1], pooled)
    beside = None if distances.levelled is None else thresholds(distances.levelled, training, "member")
    return Thresholds(peers, thresholds(distances.own, training, "member"), beside)


def rated(
    distances: Distances, settings: PeerSettings, training: Flags | None = None, pooled: float | None = None
) -> Floats:
    """Return the scores of one metric by both witnesses, with the thresholds of these very distances."""
    return scored(distances, settings, threshold_of(distances, settings, training, pooled)).together


def scored(
    distances: Distances, settings: PeerSettings, limits: Thresholds, *, is_throughput: bool = False
) -> Witnesses:
    """Return distances as multiples of their thresholds.

    Dividing keeps the decision of Kasick et al.: above 1 where more than half of the pairwise distances pass the
    threshold. Of throughput it counts which way members changed, see `moved`.
    """
    peers = np.asarray(distances.peers / (limits.peers * settings.margin))
    if not settings.own_history:
        return Witnesses(peers, np.full_like(peers, np.nan))
    own = distances.own / (limits.own * settings.margin)
    known = np.zeros(own.shape[1], np.bool_) if distances.learnt is None else distances.learnt.past.is_known
    unlike, alone = beyond_shared(own), own
    if distances.levelled is not None and limits.levelled is not None:
        levelled_own = distances.levelled / (limits.levelled * settings.margin)
        unlike, alone = np.fmin(unlike, beyond_shared(levelled_own)), np.fmin(own, levelled_own)
    blamed = with_second_witness(peers, own)
    if is_throughput and distances.moves is not None:
        way = distances.moves
        blamed, unlike = blamed_by_way(blamed, own, way), blamed_by_way(unlike, alone, way)
    return Witnesses(blamed, np.where(known & ~np.isnan(own), unlike, np.nan))


def _reference(smoothed: Floats, fault_free: Flags, settings: PeerSettings) -> Floats:
    """Return quantiles of each member's fault-free samples, (members, window)."""
    members, cells = smoothed.shape
    chosen = np.zeros(cells, np.bool_)
    for number in np.flatnonzero(fault_free):
        start = int(number) * settings.shift_samples
        chosen[start : start + settings.window_samples] = True
    wanted = (np.arange(settings.window_samples) + 0.5) / settings.window_samples
    found = np.full((members, settings.window_samples), np.nan)
    for member in range(members):
        known = smoothed[member, chosen]
        known = known[~np.isnan(known)]
        if len(known):
            found[member] = np.quantile(known, wanted)
    return found


def _blocks(smoothed: Floats, windows: int, settings: PeerSettings) -> Iterator[tuple[slice, Floats]]:
    """Yield sorted samples, (some windows, members, window), and which windows they are of."""
    members = smoothed.shape[0]
    at_once = max(1, DISTANCES_AT_ONCE // max(members * members, members * settings.window_samples))
    for start in range(0, windows, at_once):
        stop = min(start + at_once, windows)
        yield (
            slice(start, stop),
            sorted_windows(smoothed, settings.window_samples, settings.shift_samples, start, stop),
        )


def _bin_sizes(smoothed: Floats, windows: int, settings: PeerSettings, least: float, offset: Floats) -> Floats:
    sizes = np.full(windows, np.nan)
    small_group = SMALL_GROUP if settings.leave_one_out else 0
    offsets = offset if offset.any() else None
    for block, samples in _blocks(smoothed, windows, settings):
        sizes[block] = bin_sizes(samples, settings.bins_max, small_group=small_group, least=least, offsets=offsets)
    return sizes


def thresholds(distance: Floats, training: Flags | None, scope: Scope) -> Floats:
    """Return the threshold of each member, (members,), from distances in bins, (windows, members).

    With training it is the largest distance in it; the largest of few windows is carried on, for an exponential tail,
    to that of the windows in a day. Without, see `fences`. `member`: each its own; `group` and `pooled`: one, the
    largest of a member. A member that was not there in training gets the median of its group's.
    """
    if training is None:
        found = fences(distance)
    else:
        windows = int(np.count_nonzero(training))
        beyond = math.log(TRAINED_WINDOWS) / math.log(min(TRAINED_WINDOWS, max(2, windows)))
        found = (
            np.where(np.isnan(distance[training]), -np.inf, distance[training]).max(axis=0, initial=-np.inf) * beyond
        )
        found[np.isneginf(found)] = np.nan
    known = found[~np.isnan(found)]
    middle = float(np.median(known)) if len(known) else 0.0
    if scope != "member" and len(known):
        found[:] = known.max()
    found[np.isnan(found)] = middle
    return np.asarray(np.maximum(found, max(SMALLEST_THRESHOLD_BINS, THRESHOLD_FLOOR * middle)))


def beyond_usual(distance: Floats) -> Floats:
    """Return how much further members are from their peers than they usually are, (windows, members).

    Members that always differ are at their own fence at all times where nothing but their windows tells what is
    usual. The mean over metrics would then be close to 1 already, and one metric that is out decide for hundreds.
    """
    usual = np.full(distance.shape[1], np.nan)
    there = ~np.isnan(distance).all(axis=0)
    usual[there] = np.nanpercentile(distance[:, there], USUAL_PCT, axis=0)
    return np.asarray(np.maximum(distance - usual, 0.0))


def fences(distance: Floats) -> Floats:
    """Return what the distances of each member, (windows, members), pass only when something is wrong: (members,).

    That is the outer fence q3 + 3 IQR of the member's windows. A fault that lasts for much of them lifts it; so it is
    no further from the member's lowest tenth than 1.5 times what nine members in ten have, where there are more than
    ten.
    """
    members = distance.shape[1]
    low, fence = np.full(members, np.nan), np.full(members, np.nan)
    for member in range(members):
        known = distance[:, member]
        known = known[~np.isnan(known)]
        if len(known):
            low[member], lower, upper = np.percentile(known, (USUAL_PCT, 25, 75))
            fence[member] = min(known.max(), upper + 3 * (upper - lower))
    spreads = (fence - low)[~np.isnan(fence)]
    if not len(spreads):
        return fence
    return np.asarray(np.minimum(fence, low + FENCE_SPREADS * float(np.quantile(spreads, 0.9, method="higher"))))


def with_second_witness(peers: Floats, own: Floats) -> Floats:
    """Return scores in which half of a group that changed is blamed, not those that stayed as they were.

    Where half of the members that are there, or more, behave unlike their own past, and a member that is unlike its
    peers behaves as in its past, those that changed are at fault: they get the higher score of both witnesses, the
    others that of their own history. Between two halves the distance cannot say which one is at fault. A member
    without peers has its own history alone.

    Parameters
    ----------
    peers, own : NDArray[np.float64]
        (windows, members), multiples of the threshold; NaN where unknown.

    Returns
    -------
    NDArray[np.float64]
        (windows, members).
    """
    there = ~np.isnan(own)
    changed = own > 1
    members, of_them = there.sum(axis=1), changed.sum(axis=1)
    changed_enough = (of_them * 2 >= members) & (of_them > 0)
    accused_unchanged = ((peers > 1) & ~changed & there).any(axis=1)
    use_own = (changed_enough & accused_unchanged)[:, None] & there
    blamed = np.where(changed, np.fmax(peers, own), own)
    return np.where(np.isnan(peers), own, np.where(use_own, blamed, peers))


def beyond_shared(own: Floats) -> Floats:
    """Return how unlike their own past members are, in units of what half of the group or more are.

    A change that most members share is no fault of any of them. A member alone has nothing to share.

    Parameters
    ----------
    own : NDArray[np.float64]
        (windows, members), multiples of the threshold; NaN where unknown.
    """
    count = (~np.isnan(own)).sum(axis=1)
    place = np.maximum(count - 1, 0) // 2
    middle = np.take_along_axis(np.sort(own, axis=1), place[:, None], axis=1)
    return np.where(count[:, None] > 1, own / np.fmax(1.0, middle), own)


def held_to_own_past(scores: Floats, own: Floats) -> Floats:
    """Return scores of members that are suspected only where they are unlike their own past as well.

    A member that has always differed stands out where its peers come closer together, and nothing is wrong with it:
    the lower of both witnesses counts. Where the own past is not known the score stays.

    Parameters
    ----------
    scores, own : NDArray[np.float64]
        Alike in shape, multiples of the threshold, NaN where unknown: what `with_second_witness` returns, and the
        distances to the own past.

    Returns
    -------
    NDArray[np.float64]
        In the same shape; NaN where the score is unknown.
    """
    return np.where(np.isnan(own), scores, np.minimum(scores, own))
