"""The whole comparison: from series of many members and metrics to scores, faulty members and the hourly list."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from controller.anomaly.peers.combination import combined, kind_of, verdict
from controller.anomaly.peers.incidents import SILENT_SHARE, Faulty, PeerMember, told_once
from controller.anomaly.peers.persistence import accumulators, faults, hourly
from controller.anomaly.peers.resample import Grid, grid_over, is_counter, known_before_s, rates, resample, resolution
from controller.anomaly.peers.scoring import (
    Distances,
    Learnt,
    Witnesses,
    measure,
    scored,
    threshold_of,
    thresholds,
    window_count,
    window_ends,
)
from controller.anomaly.peers.settings import PeerSettings
from controller.anomaly.peers.trained import Trained, Training, check_known, known_members
from controller.anomaly.series import OrderedSeries, RawSeries, SeriesName, ordered, usual_interval_s

Floats = NDArray[np.float64]

VALUES_AT_MOST = 1 << 27
"""Values of a metric in one group: one wrong time among the samples could ask for any number."""
DAY_S = 86_400
NEWCOMERS = "new in "
"""In front of the name of a group, the group of those that came after training."""
SMALL_GROUP = 10
"""Members of a group up to which nothing but a member's own windows tells what is usual (see `fences`)."""
FIGURE_COLUMNS = 4
"""Members per hour in Figure 5 of Kasick et al."""


class GroupDiagnosis(NamedTuple):
    """What was found in one peer group."""

    peer_group: str
    members: list[str]
    scores: Floats
    """(windows, members): 1.0 is the threshold; NaN where nothing is known."""
    by_metric: dict[str, Floats]
    """The same of each metric alone, by the witness that says more."""
    accumulators: NDArray[np.int64]


class Diagnosis(NamedTuple):
    """What was found in all groups, over the same windows."""

    settings: PeerSettings
    ends_s: Floats
    """(windows,)."""
    groups: list[GroupDiagnosis]
    faulty: list[Faulty]
    persistent: list[tuple[float, list[tuple[int, PeerMember]]]]
    notes: list[str]
    trained: Training = MappingProxyType({})
    """What the training period told; empty without one."""


class GroupMetric(NamedTuple):
    """One metric of one group, to be measured by itself: the unit of work that cores and machines share."""

    metric: str
    members: Sequence[str]
    series: dict[str, OrderedSeries]
    grid: Grid
    settings: PeerSettings
    fault_free: NDArray[np.bool_] | None
    counters: bool
    trained: Trained | None


class Measured(NamedTuple):
    """What came of it."""

    distances: Distances
    is_counter: bool


Run = Callable[[Callable[[GroupMetric], Measured], Sequence[GroupMetric]], Iterable[Measured]]
"""Returns the results of a function for each argument, in their order, as `map` does."""


class TimeSpan(NamedTuple):
    """A time, half-open, in epoch seconds."""

    start_s: float
    end_s: float


def usual_interval(series: Iterable[OrderedSeries]) -> float:
    """Return the usual seconds between samples; NaN where no series has two."""
    each = [usual_interval_s(one.at_s) for one in series if len(one.at_s) > 1]
    return float(np.median(each)) if each else float("nan")


def diagnose(
    series: Sequence[RawSeries],
    settings: PeerSettings,
    training: TimeSpan | None = None,
    *,
    judged: frozenset[str] | None = None,
    counters: bool = True,
    columns: int = FIGURE_COLUMNS,
    trained: Training | None = None,
    far: Mapping[str, str] = MappingProxyType({}),
    run: Run = map,
) -> Diagnosis:
    """Compare the members of each peer group with one another, metric by metric and over all metrics.

    Parameters
    ----------
    series : sequence of RawSeries
        Any number, of any groups; in any order and with gaps, as they were written.
    settings : PeerSettings
        The chain's parameters.
    training : TimeSpan, optional
        A time without faults; thresholds come from windows that lie within.
    judged : frozenset of str, optional
        The metrics that scores are made of; the others only tell the kind of a fault. All, if not given.
    counters : bool
        Whether metrics that never fall are taken as counts and turned into rates.
    columns : int
        Members per hour in the list of the persistent.
    trained : Training, optional
        What an earlier diagnosis learnt, with the same settings, in place of a training period.
    far : mapping
        The other end of the cable of each member that has one, both ways.
    run : callable
        What measures many metrics of many groups, `map` or something that has more cores.

    Returns
    -------
    Diagnosis
        Without windows where no series has values; `notes` say what was missing, infinite, repeated, out of order or
        alone.

    Raises
    ------
    ValueError
        The training period holds no whole window, the time that the samples span needs too much memory, or what was
        learnt does not know a group or metric (`MismatchError`).
    """
    tidy = {one.name: ordered(one) for one in series}
    notes = _notes(tidy)
    with_values = {name: one for name, one in tidy.items() if len(one.at_s)}
    if not with_values:
        return Diagnosis(settings, np.empty(0), [], [], [], [*notes, "no series holds a value"])
    groups, new = _by_group(tidy, training, trained, notes)
    members = {group: _members(metrics) for group, metrics in groups.items()}
    grid = _grid(list(with_values.values()), max(map(len, members.values())), settings)
    ends_s = window_ends(grid.ends_s, settings)
    fault_free = None
    if training is not None:
        fault_free = (ends_s - settings.window_s >= training.start_s) & (ends_s <= training.end_s)
        if not fault_free.any():
            raise ValueError(f"the training period holds no whole window of {settings.window_s:g} s")
    if not len(ends_s):
        notes.append(f"the series span less than one window of {settings.window_s:g} s")
    seen_in = {group: None if group in new else fault_free for group in groups}
    work = {
        (group, metric): GroupMetric(
            metric,
            members[group],
            of_metric,
            grid,
            settings,
            seen_in[group],
            counters,
            None if trained is None or group in new else check_known(group, metric, trained).of(members[group]),
        )
        for group, metrics in groups.items()
        for metric, of_metric in metrics.items()
    }
    largest_first = sorted(work, key=lambda key: -len(work[key].series))
    measured = dict(zip(largest_first, run(_measure, [work[key] for key in largest_first]), strict=True))
    pooled = _pooled(measured, work) if settings.scope == "pooled" else {}
    found = []
    learnt: dict[tuple[str, str], Trained] = {}
    for group, metrics in groups.items():
        witnesses = {}
        for metric in metrics:
            distances, counted = measured[group, metric]
            before = work[group, metric].trained
            limits = (
                threshold_of(distances, settings, seen_in[group], pooled.get(metric))
                if before is None
                else before.limits
            )
            of_traffic = kind_of(metric) == "throughput"
            witnesses[metric] = scored(distances, settings, limits, is_throughput=of_traffic)
            if fault_free is not None and group not in new and distances.learnt is not None:
                learnt[group, metric] = Trained(tuple(members[group]), counted, distances.learnt, limits)
        found.append(_group(group, members[group], witnesses, settings, judged, len(ends_s)))
        if len(found[-1].members) == 1:
            notes.append(f"{group}: {found[-1].members[0]} has no peer; it is compared with its own past alone")
    untrained = [group for group in found if trained is None and seen_in[group.peer_group] is None]
    notes += _limits_of_sight(len(group.members) for group in untrained)
    return Diagnosis(
        settings,
        ends_s,
        found,
        told_once(_faulty(found, ends_s, settings.confirm_windows, Levels(groups, measured)), far),
        _persistent(found, ends_s, columns),
        notes,
        learnt,
    )


def _limits_of_sight(sizes: Iterable[int]) -> list[str]:
    """Say which faults cannot be seen in groups, of these sizes, whose thresholds come from the samples judged."""
    small = [size <= SMALL_GROUP for size in sizes]
    limits = (
        (sum(small), f"at most {SMALL_GROUP} members", "a fifth"),
        (len(small) - sum(small), f"more than {SMALL_GROUP} members", "half"),
    )
    return [
        f"{count} {'group' if count == 1 else 'groups'} of {members} had no training period: thresholds come from "
        f"the samples that are judged, and a fault that lasts for more than {share} of them is not seen"
        for count, members, share in limits
        if count
    ]


def _grid(with_values: Sequence[OrderedSeries], members: int, settings: PeerSettings) -> Grid:
    """Return the grid over all samples; ValueError where values of so many members on it are too much at once."""
    first_s = min(one.at_s[0] - known_before_s(one, settings.interval_s) for one in with_values)
    last_s = max(one.at_s[-1] for one in with_values)
    grid = grid_over(first_s, last_s, settings.interval_s)
    if grid.cells * members > VALUES_AT_MOST:
        days = (last_s - first_s) / DAY_S
        raise ValueError(f"{days:.0f} days of {members} members at {settings.interval_s:g} s are too much at once")
    return grid


def _by_group(
    tidy: dict[SeriesName, OrderedSeries], training: TimeSpan | None, trained: Training | None, notes: list[str]
) -> tuple[dict[str, dict[str, dict[str, OrderedSeries]]], set[str]]:
    """Return the series by group, metric and member, and the groups made of members that came after training."""
    groups: dict[str, dict[str, dict[str, OrderedSeries]]] = {}
    late = _late(tidy, training, trained)
    new = set()
    for name, one in tidy.items():
        group = name.peer_group
        if (group, name.member) in late:
            group = NEWCOMERS + group
            new.add(group)
        groups.setdefault(group, {}).setdefault(name.metric, {})[name.member] = one
    for group, newcomer in sorted(late):
        notes.append(f"{group}: {newcomer} came after the training period; it is a peer of other newcomers alone")
    return groups, new


def _late(
    tidy: dict[SeriesName, OrderedSeries], training: TimeSpan | None, trained: Training | None
) -> set[tuple[str, str]]:
    """Return group and name of the members that were not there in training."""
    if trained is not None:
        known = known_members(trained)
        named = {(name.peer_group, name.member) for name in tidy}
        return {(group, member) for group, member in named if group in known and member not in known[group]}
    first_s: dict[tuple[str, str], float] = {}
    for name, one in tidy.items():
        if len(one.at_s):
            member = (name.peer_group, name.member)
            first_s[member] = min(float(one.at_s[0]), first_s.get(member, float("inf")))
    return {member for member, at_s in first_s.items() if training is not None and at_s >= training.end_s}


def _members(metrics: dict[str, dict[str, OrderedSeries]]) -> list[str]:
    return list(dict.fromkeys(member for of_metric in metrics.values() for member in of_metric))


def _notes(tidy: dict[SeriesName, OrderedSeries]) -> list[str]:
    notes = []
    irregular = [one.irregularities for one in tidy.values()]
    for kind, text in (
        ("missing", "samples without a value are left out"),
        ("infinite", "infinite values, or beyond 1e100, are taken as missing"),
        ("duplicated", "samples repeat a time; the last one written counts"),
        ("unordered", "samples are earlier than the one before them; they are put in order"),
    ):
        counts = [getattr(one, kind) for one in irregular]
        if any(counts):
            notes.append(f"{sum(counts)} {text} ({sum(count > 0 for count in counts)} series)")
    empty = [name for name, one in tidy.items() if not len(one.at_s)]
    if empty:
        named = ", ".join("/".join(name) for name in empty[:3]) + (", ..." if len(empty) > 3 else "")
        notes.append(f"{len(empty)} series without any value: {named}")
    return notes


def _measure(work: GroupMetric) -> Measured:
    settings, grid, of_metric = work.settings, work.grid, work.series
    series = list(of_metric.values())
    known_counter = is_counter(work.metric, series) if work.trained is None else work.trained.is_counter
    counted = work.counters and known_counter
    if counted:
        of_metric = {member: rates(one) for member, one in of_metric.items() if len(one.at_s) > 1}
    values = np.full((len(work.members), grid.cells), np.nan)
    for row, member in enumerate(work.members):
        if member in of_metric:
            values[row] = resample(of_metric[member], grid)
    learnt: Learnt | None = None if work.trained is None else work.trained.learnt
    if window_count(grid.cells, settings) == 0:
        nothing = np.empty((0, len(work.members)))
        return Measured(Distances(nothing, nothing), counted)
    is_rounded = not counted and kind_of(work.metric) != "other"
    step = resolution(of_metric.values()) if is_rounded else 0.0
    first_s = float(grid.ends_s[0]) - settings.interval_s
    return Measured(measure(values, settings, work.fault_free, learnt, step, first_s), counted)


def _pooled(measured: dict[tuple[str, str], Measured], work: dict[tuple[str, str], GroupMetric]) -> dict[str, float]:
    """Return for each metric the largest threshold of any group."""
    found: dict[str, float] = {}
    for (group, metric), (distances, _) in measured.items():
        part = work[group, metric]
        if part.trained is None:
            limits = thresholds(distances.peers, part.fault_free, "group")
        else:
            limits = part.trained.limits.peers
        found[metric] = max(found.get(metric, 0.0), float(limits.max(initial=0.0)))
    return found


def _group(
    group: str,
    members: list[str],
    by_metric: dict[str, Witnesses],
    settings: PeerSettings,
    judged: frozenset[str] | None,
    windows: int,
) -> GroupDiagnosis:
    """Return what was found in a group: each witness is heard on the metrics that say most to it."""
    chosen = [each for metric, each in by_metric.items() if judged is None or metric in judged]
    if chosen:
        share, most = settings.combined_share, settings.ratio_max
        peers = combined([each.peers for each in chosen], share, most)
        scores = Witnesses(peers, combined([each.own for each in chosen], share, most)).together
    else:
        scores = np.full((windows, len(members)), np.nan)
    either = {metric: each.either for metric, each in by_metric.items()}
    return GroupDiagnosis(group, members, scores, either, accumulators(scores > 1))


class Levels:
    """How much members carried in a time: rates of what was counted, values of what was not."""

    def __init__(
        self, groups: dict[str, dict[str, dict[str, OrderedSeries]]], measured: dict[tuple[str, str], Measured]
    ) -> None:
        self._groups = groups
        self._measured = measured

    def is_silent(self, member: PeerMember, metrics: Iterable[str], period: TimeSpan) -> bool:
        """Say whether a member carried less than `SILENT_SHARE` of its peers' median in a time, of any metric."""
        for metric in metrics:
            levels = self._levels(member.peer_group, metric, period) if kind_of(metric) == "throughput" else {}
            own = levels.pop(member.name, None)
            if own is not None and levels and own < SILENT_SHARE * float(np.median(list(levels.values()))):
                return True
        return False

    def _levels(self, group: str, metric: str, period: TimeSpan) -> dict[str, float]:
        found = {}
        for member, series in self._groups[group][metric].items():
            one = rates(series) if self._measured[group, metric].is_counter and len(series.at_s) > 1 else series
            inside = one.values[(one.at_s > period.start_s) & (one.at_s <= period.end_s)]
            if len(inside):
                found[member] = float(np.median(inside))
        return found


def _faulty(groups: Sequence[GroupDiagnosis], ends_s: Floats, k: int, levels: Levels) -> list[Faulty]:
    found = []
    for group in groups:
        for fault in faults(group.scores > 1, ends_s, k):
            inside = (ends_s >= fault.first_s) & (ends_s <= fault.last_s)
            scores = {
                metric: np.sort(np.nan_to_num(of_metric[inside, fault.member]))[::-1]
                for metric, of_metric in group.by_metric.items()
            }
            peaks = sorted(((metric, float(one[0])) for metric, one in scores.items()), key=lambda item: -item[1])
            kind = verdict({metric: float(one[k - 1]) for metric, one in scores.items()})
            member = PeerMember(group.members[fault.member], group.peer_group)
            out = {metric: peak for metric, peak in peaks if peak > 1}
            score = float(np.nanmax(group.scores[inside, fault.member]))
            is_silent = levels.is_silent(member, out, TimeSpan(fault.first_s, fault.last_s))
            found.append(Faulty(member, fault.first_s, fault.last_s, kind, out, score, is_silent))
    return found


def _persistent(
    groups: Sequence[GroupDiagnosis], ends_s: Floats, columns: int
) -> list[tuple[float, list[tuple[int, PeerMember]]]]:
    if not groups or not len(ends_s):
        return []
    members = [PeerMember(name, group.peer_group) for group in groups for name in group.members]
    values = np.concatenate([group.accumulators for group in groups], axis=1)
    return [
        (hour.hour_s, [(value, members[member]) for value, member in hour.ranking])
        for hour in hourly(values, ends_s, columns)
    ]
