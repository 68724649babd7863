"""What the live comparison knows of each member: thresholds and own past as learnt so far, and persistence."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from controller.anomaly.live_metrics import METRICS_AT_MOST, Metric, MetricSubject, silent_pct
from controller.anomaly.live_windows import GroupSettings
from controller.anomaly.peers.combination import combined
from controller.anomaly.peers.distances import bin_sizes, reference_distance, sorted_windows
from controller.anomaly.peers.moves import Moves, moved
from controller.anomaly.peers.scoring import (
    BIN_FLOOR,
    DISTANCE_FORMS,
    SMALLEST_THRESHOLD_BINS,
    THRESHOLD_FLOOR,
    TRAINED_WINDOWS,
    Distances,
    Thresholds,
    held_to_own_past,
    scored,
)
from controller.anomaly.peers.settings import Form, Offsets, PeerSettings, Scope
from controller.config.anomaly_settings import Anomaly

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]

OVERALL = METRICS_AT_MOST
"""The column, behind those of the metrics, of what holds for all of them together."""

_ARRAYS = ("windows", "largest", "largest_own", "reference", "recent", "quiet", "accumulator", "is_switch", "usual")

_ONE_SIDED = {MetricSubject.IMPAIRMENT, MetricSubject.SILENCE}
"""What nobody has too little of. A member's own past is no excuse for it either."""
SMALL_GROUP = 4
"""Of so few, one member is left out of the size of bins: of four it has a quarter of the samples, so that a quartile
is one of its own. Whether it is at fault or the three others are, the bins do not tell; each one's own past does."""
LOAD_RESOLUTION = 0.05
"""Loads are not told apart by less than this share of the group's."""
STANDING_AT_MOST = 3.0
"""No threshold of an impairment is above so many times the median of the group's: no port loses packets by nature."""


class Judgement(NamedTuple):
    """One window of members of a group that were compared with one another."""

    by_metric: Floats
    """(members, `METRICS_AT_MOST`): 1.0 is the threshold; NaN where nothing is known, or not yet."""
    overall: Floats
    """(members,)."""


class Learning:
    """Arrays with a row for each member, and the usual bin of each metric of each group.

    Attributes
    ----------
    windows
        int32[rows, metrics], windows learnt from.
    largest, largest_own
        float32[rows, metrics], the largest distance seen, in bins, to the peers and to the own past.
    reference
        float32[rows, metrics, window], mean of the sorted samples of the windows learnt from: the quantiles of the
        own past. Means of quantiles can be carried on with each window, and nothing of the past is kept.
    recent
        int64[rows, metrics + 1], whether the latest windows were anomalous, a bit each, the newest lowest.
    quiet, accumulator
        int32[rows]: windows in a row without an anomaly; the persistence of Kasick et al., 4.3.
    is_switch
        bool[rows], whether the member is a switch: its metrics are others than those of ports.
    usual
        float32[rows], packets per second that a port to another switch carries, the mean of the windows learnt from;
        0 where not known.
    """

    def __init__(self, settings: Anomaly) -> None:
        self._take(settings)
        self._bins: dict[tuple[str, str], list[float]] = {}
        self.windows = np.zeros((0, METRICS_AT_MOST), np.int32)
        self.largest = np.zeros((0, METRICS_AT_MOST), np.float32)
        self.largest_own = np.zeros((0, METRICS_AT_MOST), np.float32)
        self.reference = np.zeros((0, METRICS_AT_MOST, self.groups.longest), np.float32)
        self.recent = np.zeros((0, METRICS_AT_MOST + 1), np.int64)
        self.quiet = np.zeros(0, np.int32)
        self.accumulator = np.zeros(0, np.int32)
        self.is_switch = np.zeros(0, np.bool_)
        self.usual = np.zeros(0, np.float32)

    def configure(self, settings: Anomaly) -> None:
        """Go on with other settings; what is known of groups that have other windows now is to be forgotten."""
        self._take(settings)
        more = self.groups.longest - self.reference.shape[2]
        kept = self.reference[:, :, : self.groups.longest]
        self.reference = np.pad(kept, [(0, 0), (0, 0), (0, max(0, more))])

    def _take(self, settings: Anomaly) -> None:
        self.groups = GroupSettings(settings)
        self._peers = peer_settings(settings)
        self._peers_of_loads = replace(self._peers, margin=settings.margin * settings.load_margin)

    @property
    def bytes_per_row(self) -> int:
        """Memory that a row takes."""
        return METRICS_AT_MOST * (12 + 4 * self.groups.longest + 8) + 20

    def fit(self, capacity: int) -> None:
        """Make room for rows."""
        former = len(self.quiet)
        if former < capacity:
            for name in _ARRAYS:
                array = getattr(self, name)
                setattr(self, name, np.pad(array, [(0, capacity - former), *[(0, 0)] * (array.ndim - 1)]))

    def forget(self, rows: Rows) -> None:
        """Let what is known of members begin anew."""
        for array in (self.windows, self.largest, self.largest_own, self.reference, self.usual):
            array[rows] = 0
        self.recent[rows] = 0
        self.quiet[rows] = self.accumulator[rows] = 0

    def forget_bins(self, group: str) -> None:
        """Let the usual bins of a group be learnt anew."""
        for key in [key for key in self._bins if key[0] == group]:
            del self._bins[key]

    def bins(self, group: str) -> dict[str, list[float]]:
        """Return the bins learnt of a group, by metric."""
        return {metric: sizes for (name, metric), sizes in self._bins.items() if name == group}

    def restore_bins(self, group: str, metric: str, sizes: list[float]) -> None:
        """Take the bins that an earlier run learnt."""
        self._bins[group, metric] = sizes

    def age(self, rows: Rows) -> NDArray[np.int32]:
        """Return how many windows members have been learnt from."""
        return np.asarray(self.windows[rows].max(axis=1))

    def judge(
        self, group: str, metrics: tuple[Metric, ...], rows: Rows, values: Floats
    ) -> Generator[None, None, Judgement]:
        """Compare members that are peers in one window, learn from it, and take note of who is anomalous.

        It stops after each metric, so that others may have the processor, and returns at the end.

        Parameters
        ----------
        group : str
            Name of the peer group.
        metrics : tuple of Metric
            The m metrics of such members.
        rows : NDArray[np.intp]
            (n,) members.
        values : NDArray[np.float64]
            (m, n, window), NaN where not known.
        """
        settings = self.groups.of(group)
        scores = np.full((len(rows), METRICS_AT_MOST), np.nan)
        distances: list[tuple[int, Floats, Distances]] = []
        for column, metric in enumerate(metrics):
            if not getattr(settings.watch, metric.watch) or np.isnan(values[column]).all():
                continue
            of_metric = values[column]
            if metric.kind is MetricSubject.SILENCE:
                of_metric = silent_pct(of_metric, self.usual[rows].astype(np.float64), settings)
            samples = sorted_windows(of_metric, settings.window_samples, settings.window_samples)
            measured = self._measure(group, column, metric, rows, samples)
            distances.append((column, samples, measured))
            limits = self._limits(settings, column, metric, rows)
            is_load = metric.kind is MetricSubject.LOAD
            peers = self._peers_of_loads if is_load else self._peers
            own = self._own_past(settings, column, rows, measured, limits, peers.margin)
            if is_load:
                measured = measured._replace(moves=self._moves(settings, column, rows, samples, own))
            score = scored(measured, peers, limits, is_throughput=is_load).peers[0]
            if metric.kind in _ONE_SIDED:
                score = _of_the_worse(score, samples[0])
            elif settings.own_history:
                score = held_to_own_past(score, own)
            score[self.windows[rows, column] < _least_windows(settings, metric)] = np.nan
            scores[:, column] = score
            yield
        known = ~np.isnan(scores).all(axis=1)
        overall = np.full(len(rows), np.nan)
        if known.any():
            columns = [scores[None, known, column] for column in range(len(metrics))]
            overall[known] = combined(columns, settings.combined_share, settings.ratio_max)[0]
        for column, samples, measured in distances:
            if metrics[column].kind is MetricSubject.SILENCE:
                self._learn_usual(settings, column, rows, values[column], scores[:, column])
            self._learn(settings, column, rows, samples[0], measured, scores[:, column])
        self._persist(settings.confirm_windows, rows[known], scores[known], overall[known])
        return Judgement(scores, overall)

    def anomalous(self, rows: Rows, k: int) -> NDArray[np.bool_]:
        """Return, (rows, metrics + 1), where k of the past 2k - 1 windows were anomalous."""
        bits = self.recent[rows, :, None] >> np.arange(2 * k - 1) & 1
        return np.asarray(bits.sum(axis=2) >= k)

    def anomalous_for(self, row: int) -> int:
        """Return how many windows ago, counting the newest, the first anomalous one of the past 2k - 1 was."""
        return int(self.recent[row, OVERALL]).bit_length()

    # One metric of one window.

    def _moves(self, settings: Anomaly, column: int, rows: Rows, samples: Floats, own: Floats) -> Moves:
        """Return what moved between members, (1, members), of which those are concerned that did what they never did.

        That is further from their own past than its threshold, for the quantiles kept are means of those of windows.
        """
        reference = self.reference[rows, column, : settings.window_samples].astype(np.float64)
        reference[~(own > 1)] = np.nan
        return moved(samples.mean(axis=2), reference)

    def _measure(self, group: str, column: int, metric: Metric, rows: Rows, samples: Floats) -> Distances:
        """Return distances, (1, members)."""
        settings = self.groups.of(group)
        reference = self.reference[rows, column, : settings.window_samples].astype(np.float64)
        reference[self.windows[rows, column] == 0] = np.nan
        least = getattr(settings.least, metric.least)
        if metric.kind is MetricSubject.LOAD and not np.isnan(samples).all():
            least = max(least, LOAD_RESOLUTION * abs(float(np.nanmedian(samples))))
        offsets = None
        if settings.offsets == "remove":
            offsets = np.nan_to_num(reference[:, settings.window_samples // 2])
            samples, reference = samples - offsets[:, None], reference - offsets[:, None]
        small_group = SMALL_GROUP if settings.leave_one_out else 0
        size = bin_sizes(samples, settings.bins_max, small_group=small_group, offsets=offsets)
        learnt = self._bins.setdefault((group, metric.name), [])
        if len(learnt) < settings.learning_windows and not np.isnan(size[0]):
            learnt.append(max(float(size[0]), least))
        usual = float(np.median(learnt)) if learnt else least
        size = np.fmax(size, max(least, BIN_FLOOR * usual))
        form: Form = "median" if len(rows) > settings.pairs_at_most else self._peers.form
        own = reference_distance(samples, reference) / usual
        return Distances(DISTANCE_FORMS[form](samples, size), own)

    def _limits(self, settings: Anomaly, column: int, metric: Metric, rows: Rows) -> Thresholds:
        """Return thresholds, (members,): the largest distances so far, carried on where few windows were seen.

        The largest of few windows is carried on, for an exponential tail, to that of the windows of a day.
        """
        windows = np.clip(self.windows[rows, column], 2, TRAINED_WINDOWS)
        beyond = np.log(TRAINED_WINDOWS) / np.log(windows)
        learnt = self.windows[rows, column] >= settings.least_windows
        found = np.where(learnt, self.largest[rows, column] * beyond, np.nan)
        middle = float(np.median(found[learnt])) if learnt.any() else 0.0
        if settings.scope != "member" and learnt.any():
            found[:] = np.nanmax(found)
        if settings.scope == "pooled":
            alike = self.largest[self.is_switch == self.is_switch[rows[0]], column]
            found[:] = np.fmax(found, float(alike.max(initial=0.0)))
        least = max(SMALLEST_THRESHOLD_BINS, THRESHOLD_FLOOR * middle)
        peers = np.fmax(np.where(np.isnan(found), middle, found), least)
        if metric.kind is MetricSubject.IMPAIRMENT:
            peers = np.minimum(peers, max(least, STANDING_AT_MOST * middle))
        own = np.fmax(self.largest_own[rows, column] * beyond, SMALLEST_THRESHOLD_BINS)
        return Thresholds(peers, own)

    def _own_past(
        self, settings: Anomaly, column: int, rows: Rows, measured: Distances, limits: Thresholds, margin: float
    ) -> Floats:
        """Return how far members are from their own past, (members,); NaN where that is too short to be a witness."""
        found = measured.own[0] / (limits.own * margin)
        return np.where(self.windows[rows, column] < settings.least_own_windows, np.nan, found)

    def _learn(
        self, settings: Anomaly, column: int, rows: Rows, samples: Floats, measured: Distances, score: Floats
    ) -> None:
        """Learn from a window, where it is not anomalous and there is something left to learn."""
        windows = self.windows[rows, column]
        learning = (windows < settings.learning_windows) & ~(score > 1) & ~np.isnan(samples[:, 0])
        chosen = rows[learning]
        for largest, distance in ((self.largest, measured.peers), (self.largest_own, measured.own)):
            largest[chosen, column] = np.fmax(largest[chosen, column], distance[0, learning])
        count = windows[learning, None] + 1
        width = settings.window_samples
        reference = self.reference[chosen, column, :width]
        self.reference[chosen, column, :width] = reference + (samples[learning] - reference) / count
        self.windows[chosen, column] += 1

    def _learn_usual(self, settings: Anomaly, column: int, rows: Rows, packets_per_s: Floats, score: Floats) -> None:
        """Learn what ports carry, from windows as `_learn`."""
        windows = self.windows[rows, column]
        known = ~np.isnan(packets_per_s).all(axis=1)
        learning = (windows < settings.learning_windows) & ~(score > 1) & known
        usual = self.usual[rows[learning]]
        count = windows[learning] + 1 + (usual > 0)
        self.usual[rows[learning]] = usual + (np.nanmean(packets_per_s[learning], axis=1) - usual) / count

    def _persist(self, k: int, rows: Rows, scores: Floats, overall: Floats) -> None:
        flags = np.concatenate([scores, overall[:, None]], axis=1) > 1
        self.recent[rows] = (self.recent[rows] << 1 | flags) & ((1 << (2 * k - 1)) - 1)
        out = flags[:, OVERALL]
        self.quiet[rows] = np.where(out, 0, self.quiet[rows] + 1)
        self.accumulator[rows] = np.maximum(0, self.accumulator[rows] + np.where(out, 1, -1))


def _least_windows(settings: Anomaly, metric: Metric) -> int:
    """Return the windows that come before a score: for silence the own past is what tells of it."""
    if metric.kind is not MetricSubject.SILENCE:
        return settings.least_windows
    return max(settings.least_windows, min(settings.least_own_windows, settings.learning_windows))


def _of_the_worse(score: Floats, samples: Floats) -> Floats:
    """Return the scores of those that have more of what is bad than half of their peers, 0 for others.

    Parameters
    ----------
    score : NDArray[np.float64]
        (members,)
    samples : NDArray[np.float64]
        (members, window), NaN where not known.
    """
    known = ~np.isnan(samples[:, 0])
    if known.sum() < 2:
        return score
    means = samples.mean(axis=1)
    return np.where(means <= np.median(means[known]), np.minimum(score, 0.0), score)


def peer_settings(settings: Anomaly) -> PeerSettings:
    """Return the settings as the comparison of files takes them."""
    scopes: dict[str, Scope] = {"member": "member", "group": "group", "pooled": "pooled"}
    forms: dict[str, Form] = {"pairs": "pairs", "binned": "binned", "median": "median"}
    offsets: dict[str, Offsets] = {"keep": "keep", "remove": "remove"}
    return PeerSettings(
        interval_s=settings.interval_s,
        smoothing_samples=settings.smoothing_samples,
        window_samples=settings.window_samples,
        shift_samples=settings.shift_samples,
        bins_max=settings.bins_max,
        confirm_windows=settings.confirm_windows,
        scope=scopes[settings.scope],
        form=forms[settings.form],
        offsets=offsets[settings.offsets],
        leave_one_out=settings.leave_one_out,
        own_history=settings.own_history,
        margin=settings.margin,
        combined_share=settings.combined_share,
        ratio_max=settings.ratio_max,
    )
