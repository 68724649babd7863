"""Changed copies of the telemetry of a fabric, made by a seed: who is named first where windows lie elsewhere."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from anomaly_peers import Event, at_the_time_of, fabric_events, fabric_series, is_first, judge_fabric, peaks_in
from measure import print_table
from numpy.typing import NDArray

from controller.anomaly.peers.diagnosis import TimeSpan, diagnose, usual_interval
from controller.anomaly.peers.settings import fitted
from controller.anomaly.series import RawSeries, ordered


class ChangedRun(NamedTuple):
    """A run with something changed."""

    series: list[RawSeries]
    events: list[Event]


class JudgedCopy(NamedTuple):
    """What is found in a copy: first are, by how many nodes are faulty at a time, events named first and all."""

    name: str
    found: int
    first: dict[int, tuple[int, int]]
    flagged: int


def chosen(series: RawSeries, keep: NDArray[np.bool_]) -> RawSeries:
    """Return some of the samples of a series."""
    return RawSeries(series.name, series.at_s[keep], series.values[keep])


def cut(run: ChangedRun, rng: np.random.Generator) -> ChangedRun:
    """Leave out up to 150 s of the beginning, so that cells lie elsewhere."""
    from_s = min(one.at_s[0] for one in run.series) + rng.uniform(1, 150)
    return ChangedRun([chosen(one, one.at_s >= from_s) for one in run.series], run.events)


def stretched(run: ChangedRun, rng: np.random.Generator) -> ChangedRun:
    """Let time run at half to twice its pace."""
    zero_s, pace = min(one.at_s[0] for one in run.series), 2 ** rng.uniform(-1, 1)
    series = [RawSeries(one.name, zero_s + (one.at_s - zero_s) * pace, one.values) for one in run.series]
    events = [
        (node, zero_s + (start - zero_s) * pace, zero_s + (end - zero_s) * pace) for node, start, end in run.events
    ]
    return ChangedRun(series, events)


def fewer_metrics(run: ChangedRun, rng: np.random.Generator) -> ChangedRun:
    """Leave out half of the metrics, of all nodes."""
    names = sorted({one.name.metric for one in run.series})
    kept = {name for name, draw in zip(names, rng.random(len(names)), strict=True) if draw > 0.5}
    return ChangedRun([one for one in run.series if one.name.metric in kept], run.events)


def one_with_fewer(run: ChangedRun, rng: np.random.Generator) -> ChangedRun:
    """Leave out seven in ten of the metrics of one node."""
    node = rng.choice(sorted({one.name.member for one in run.series}))
    return ChangedRun([one for one in run.series if one.name.member != node or rng.random() > 0.7], run.events)


def fewer_nodes(run: ChangedRun, rng: np.random.Generator) -> ChangedRun:
    """Leave out one to three of the nodes of the largest group."""
    groups: dict[str, set[str]] = {}
    for one in run.series:
        groups.setdefault(one.name.peer_group, set()).add(one.name.member)
    largest = sorted(max(groups.items(), key=lambda group: len(group[1]))[1])
    gone = set(rng.choice(largest, rng.integers(1, 4), replace=False).tolist())
    series = [one for one in run.series if one.name.member not in gone]
    return ChangedRun(series, [event for event in run.events if event[0] not in gone])


def fewer_samples(run: ChangedRun, rng: np.random.Generator) -> ChangedRun:
    """Leave out three in ten of the samples, each node's own ones."""
    kept: dict[str, NDArray[np.bool_]] = {}
    for one in run.series:
        kept.setdefault(one.name.member, rng.random(len(one.at_s)) > 0.3)
    return ChangedRun([chosen(one, kept[one.name.member]) for one in run.series], run.events)


def clocks_apart(run: ChangedRun, rng: np.random.Generator) -> ChangedRun:
    """Have the clock of each node up to 3 s off."""
    off_s = {name: rng.uniform(-3, 3) for name in sorted({one.name.member for one in run.series})}
    series = [RawSeries(one.name, one.at_s + off_s[one.name.member], one.values) for one in run.series]
    return ChangedRun(series, run.events)


def other_units(run: ChangedRun, rng: np.random.Generator) -> ChangedRun:
    """Give each metric in another unit, a power of ten."""
    names = sorted({one.name.metric for one in run.series})
    units = dict(zip(names, (10.0 ** rng.integers(-6, 7, len(names))).tolist(), strict=True))
    return ChangedRun([one._replace(values=one.values * units[one.name.metric]) for one in run.series], run.events)


CHANGES: Sequence[Callable[[ChangedRun, np.random.Generator], ChangedRun]] = (
    cut,
    stretched,
    fewer_metrics,
    one_with_fewer,
    fewer_nodes,
    fewer_samples,
    clocks_apart,
    other_units,
)


def judged(data: Path, change: Callable[[ChangedRun, np.random.Generator], ChangedRun], seed: int) -> JudgedCopy:
    """Return what is found in one copy, trained on what lies before its first event."""
    run = change(ChangedRun(fabric_series(data), fabric_events(data)), np.random.default_rng(seed))
    first_s = min(one.at_s[0] for one in run.series)
    last_s = max(one.at_s[-1] for one in run.series)
    training = TimeSpan(first_s - 10, min(start for _, start, _ in run.events))
    usual_s = usual_interval([ordered(one) for one in run.series])
    found = diagnose(run.series, fitted({}, usual_s, last_s - first_s, training.end_s - first_s), training)
    first: dict[int, tuple[int, int]] = {}
    for event in run.events:
        nodes = 1 + len(at_the_time_of(event, run.events))
        named, of = first.get(nodes, (0, 0))
        first[nodes] = (named + is_first(peaks_in(found, event), event, run.events), of + 1)
    all_of_it = judge_fabric(found, run.events)
    name = change.__name__.replace("_", " ")
    return JudgedCopy(name, int(all_of_it["found"]), first, int(all_of_it["of them flagged"]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, metavar="DIR", help="see docs/benchmarks.md")
    parser.add_argument("--seed", type=int, default=1, help="of the first copy of each kind; each has the next one")
    parser.add_argument("--copies", type=int, default=3, help="of each kind")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    args = parser.parse_args()
    with ProcessPoolExecutor(args.jobs) as pool:
        seeds = range(args.seed, args.seed + args.copies)
        futures = [pool.submit(judged, args.data, change, seed) for change in CHANGES for seed in seeds]
        copies = [future.result() for future in futures]
    names = [*dict.fromkeys(one.name for one in copies), "all"]
    rows = [_row(name, [one for one in copies if name in (one.name, "all")]) for name in names]
    print_table(("changed", "found", "first of one", "of two", "of three", "calm windows flagged"), rows)


def _row(name: str, copies: Sequence[JudgedCopy]) -> tuple[str, ...]:
    events = sum(of for one in copies for _, of in one.first.values())
    totals = {
        nodes: [sum(part) for part in zip(*(one.first.get(nodes, (0, 0)) for one in copies), strict=True)]
        for nodes in (1, 2, 3)
    }
    first = (f"{named} of {of}" for named, of in totals.values())
    return name, f"{sum(one.found for one in copies)} of {events}", *first, str(sum(one.flagged for one in copies))


if __name__ == "__main__":
    main()
