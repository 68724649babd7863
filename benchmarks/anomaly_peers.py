"""Peer comparison: pair distances per second, a day of 2,304 members, faults of a real fabric and of servers."""

from __future__ import annotations

import argparse
import csv
import gzip
import resource
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np
from generated_members import INTERVAL_S, generated_members
from measure import Measurement, print_table, report
from numpy.typing import NDArray

from controller.anomaly.peers.diagnosis import Diagnosis, TimeSpan, diagnose, usual_interval
from controller.anomaly.peers.distances import (
    bin_sizes,
    binned_distances,
    majority_distance,
    median_distance,
    pair_distances,
)
from controller.anomaly.peers.scoring import measure, rated
from controller.anomaly.peers.settings import PeerSettings, fitted
from controller.anomaly.series import RawSeries, SeriesName, ordered

ARTICLE_PAIRS_PER_S = 48_000
GROUPS = (768, 768, 384, 384)
DAY_SAMPLES = 5760
ASD_INTERVAL_S = 300.0
DAY_S = 86_400.0

Event = tuple[str, float, float]
"""A node, and when it was faulty from and to, in epoch seconds."""


def pairs_per_s(repeats: int, seed: int) -> list[Measurement]:
    samples = np.sort(np.random.default_rng(seed).gamma(2, 3, (2, 768, 60)), axis=-1)
    sizes = bin_sizes(samples, 1000)
    count = 2 * 768 * 767 // 2
    forms: dict[str, Callable[[], object]] = {
        "exact pair distances": lambda: pair_distances(samples, compiled=False),
        "exact, with the order statistic": lambda: majority_distance(pair_distances(samples, compiled=False)),
        "binned reference, with the order statistic": lambda: majority_distance(binned_distances(samples, sizes)),
        "to the peers' median, in pairs that it replaces": lambda: median_distance(samples),
    }
    if find_spec("numba"):
        forms["compiled, exact"] = lambda: pair_distances(samples, compiled=True)
        forms["compiled, with the order statistic"] = lambda: majority_distance(
            pair_distances(samples, compiled=True)
        )
    for form in forms.values():
        form()
    found = {name: [] for name in forms}
    for _ in range(repeats):
        for name, form in forms.items():
            start = time.process_time()
            form()
            found[name].append(count / (time.process_time() - start))
    return [Measurement(name, "pairs/s", rates) for name, rates in found.items()]


def day(repeats: int, seed: int) -> list[Measurement]:
    rng = np.random.default_rng(seed)
    settings = PeerSettings()
    groups = [rng.gamma(2, 3, (members, DAY_SAMPLES)) for members in GROUPS]
    elapsed_s = []
    for _ in range(repeats):
        start = time.perf_counter()
        for values in groups:
            rated(measure(values, settings), settings)
        elapsed_s.append(time.perf_counter() - start)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return [
        Measurement("a day of 2,304 members, one metric, one core", "s", elapsed_s),
        Measurement("most memory of the process", "MiB", [peak]),
    ]


def fabric_series(data: Path) -> list[RawSeries]:
    """Return every counter of every router; `data` is the folder of the gzipped CSV files of a run `bgpclear`."""
    series = []
    for path in sorted(data.glob("*.csv.gz")):
        node = path.name.partition("bgpclear")[0]
        with gzip.open(path, "rt") as file:
            reader = csv.reader(file)
            header = next(reader)
            rows = np.array([[float(text or "nan") for text in row[1:]] for row in reader])
        at_s = rows[:, 0]
        for column, metric in enumerate(header[2:], 1):
            series.append(RawSeries(SeriesName(node, node.rstrip("0123456789"), metric), at_s, rows[:, column]))
    return series


def fabric_events(data: Path) -> list[Event]:
    with (data / "events.csv").open() as file:
        return [(row["Node"], float(row["Start"]), float(row["End"])) for row in csv.DictReader(file)]


def peaks_in(found: Diagnosis, event: Event) -> dict[str, float]:
    """Return the highest score of each node in the windows that count for an event: see `judge_fabric`."""
    nodes = [member for group in found.groups for member in group.members]
    scores = np.concatenate([group.scores for group in found.groups], axis=1)
    _, start_s, end_s = event
    shift_s = found.settings.shift_samples * found.settings.interval_s
    inside = (found.ends_s > start_s) & (found.ends_s <= end_s + shift_s)
    return dict(zip(nodes, np.nanmax(scores[inside], axis=0).tolist(), strict=True))


def at_the_time_of(event: Event, events: list[Event]) -> set[str]:
    """Return the other nodes that are faulty at the time of an event."""
    node, start_s, end_s = event
    return {name for name, s, e in events if s < end_s and e > start_s and name != node}


def is_first(peaks: dict[str, float], event: Event, events: list[Event]) -> bool:
    """Say whether no node scores higher than that of an event, but those that are faulty at the same time."""
    others = at_the_time_of(event, events)
    return peaks[event[0]] == max(peak for name, peak in peaks.items() if name not in others)


def judge_fabric(found: Diagnosis, events: list[Event]) -> dict[str, float]:
    """Count the events found and named first; a window counts for an event if it ends in it or one shift later."""
    scores = np.concatenate([group.scores for group in found.groups], axis=1)
    settings, ends_s = found.settings, found.ends_s
    detected = first = 0
    touched = np.zeros(len(ends_s), np.bool_)
    for event in events:
        node, start_s, end_s = event
        touched |= (ends_s > start_s) & (ends_s - settings.window_s < end_s)
        peaks = peaks_in(found, event)
        detected += peaks[node] > 1
        first += is_first(peaks, event, events)
    calm = scores[~touched]
    return {
        "events": len(events),
        "found": int(detected),
        "named node first": int(first),
        "windows in calm, of all nodes": calm.size,
        "of them flagged": int(np.count_nonzero(calm > 1)),
    }


def fabric(data: Path, settings: dict[str, object], *, trained: bool = True, cut_s: float = 0.0) -> dict[str, float]:
    """Return what is found of the events, without the first `cut_s` of the run: cells then lie elsewhere."""
    series, events = fabric_series(data), fabric_events(data)
    first_s = min(one.at_s[0] for one in series) + cut_s
    series = [RawSeries(one.name, one.at_s[one.at_s >= first_s], one.values[one.at_s >= first_s]) for one in series]
    first_s = min(one.at_s[0] for one in series)
    last_s = max(one.at_s[-1] for one in series)
    training = TimeSpan(first_s - 10, min(start for _, start, _ in events)) if trained else None
    training_s = None if training is None else training.end_s - first_s
    usual_s = usual_interval([ordered(one) for one in series])
    return judge_fabric(diagnose(series, fitted(settings, usual_s, last_s - first_s, training_s), training), events)


def asd_series(data: Path) -> tuple[list[RawSeries], dict[str, NDArray[np.bool_]], float]:
    """Return the series with the test part behind the training part, the labels, and when the test part starts."""
    file = np.load(data / "asd.npz")
    servers = sorted({name.partition("_")[0] for name in file.files})
    test_from_s = ASD_INTERVAL_S * max(len(file[f"{server}_train"]) for server in servers)
    series = []
    for server in servers:
        values = np.concatenate([file[f"{server}_train"], file[f"{server}_test"]]).astype(np.float64)
        number = np.arange(1, len(values) + 1, dtype=np.float64) - len(file[f"{server}_train"])
        at_s = test_from_s + ASD_INTERVAL_S * number
        for column in range(values.shape[1]):
            series.append(RawSeries(SeriesName(server, "servers", f"metric{column:02d}"), at_s, values[:, column]))
    return series, {server: file[f"{server}_label"] > 0 for server in servers}, test_from_s


class Flagged(NamedTuple):
    """Labelled events, those that a flagged window touches, flagged windows that touch none, and days of servers."""

    events: int
    hits: int
    false: int
    days: float


def flagged_windows(
    found: Diagnosis, labels: dict[str, NDArray[np.bool_]], test_from_s: float, threshold: float = 1.0
) -> Flagged:
    """Count what windows say whose score is above a threshold."""
    (group,) = found.groups
    window, ends_s = found.settings.window_samples, found.ends_s
    ends = np.rint((ends_s - test_from_s) / ASD_INTERVAL_S).astype(int)
    events = hits = false = 0
    days = 0.0
    for column, server in enumerate(group.members):
        label = labels[server]
        edges = np.diff(label.astype(int), prepend=0, append=0)
        flagged = ends[(group.scores[:, column] > threshold) & (ends > 0)]
        for start, stop in zip(np.flatnonzero(edges > 0), np.flatnonzero(edges < 0), strict=True):
            events += 1
            hits += int(np.any((flagged > start) & (flagged - window < stop)))
        false += sum(not label[max(0, end - window) : end].any() for end in flagged.tolist())
        days += len(label) * ASD_INTERVAL_S / DAY_S
    return Flagged(events, hits, false, days)


def judge_asd(found: Diagnosis, labels: dict[str, NDArray[np.bool_]], test_from_s: float) -> dict[str, float]:
    """Return recall of labelled events, and false windows per server and day."""
    events, hits, false, days = flagged_windows(found, labels, test_from_s)
    return {"events": events, "recall": hits / events, "false windows per server and day": false / days}


def asd(data: Path, settings: dict[str, object]) -> dict[str, float]:
    return judge_members(*asd_series(data), settings)


def judge_members(
    series: list[RawSeries], labels: dict[str, NDArray[np.bool_]], test_from_s: float, settings: dict[str, object]
) -> dict[str, float]:
    last_s = max(one.at_s[-1] for one in series)
    chosen = fitted(settings, ASD_INTERVAL_S, last_s, test_from_s)
    found = diagnose(series, chosen, TimeSpan(0.0, test_from_s), counters=False)
    return judge_asd(found, labels, test_from_s)


def servers(seeds: range) -> dict[str, dict[str, float]]:
    """Return what is found of faults in groups of servers made by seeds, over all of them, by variant."""
    judged: dict[str, dict[str, float]] = {}
    for seed in seeds:
        run = generated_members(seed)
        series, labels, from_s = run.series(), run.labels(), run.judged_from * INTERVAL_S
        for name, settings in MARGINS.items():
            one = judge_members(series, labels, from_s, settings)
            total = judged.setdefault(name, dict.fromkeys(one, 0.0))
            total["events"] += one["events"]
            total["recall"] += one["recall"] * one["events"]
            total["false windows per server and day"] += one["false windows per server and day"] / len(seeds)
    for total in judged.values():
        total["recall"] /= total["events"]
    return judged


VARIANTS: dict[str, dict[str, object]] = {
    "defaults": {},
    "peers alone (no own history)": {"own_history": False},
    "offsets removed": {"offsets": "remove"},
    "every metric's maximum": {"combined_share": 1e-9},
    "mean over a tenth of the metrics": {"combined_share": 0.1},
    "mean over all metrics": {"combined_share": 1.0},
    "against the peers' median": {"form": "median"},
    "one threshold per group": {"scope": "group"},
    "pooled threshold": {"scope": "pooled"},
}
MARGINS: dict[str, dict[str, object]] = {
    "defaults": {},
    **{f"margin {margin:g}": {"margin": margin} for margin in (0.8, 0.9, 1.25)},
    "peers alone (no own history)": {"own_history": False},
    **{f"peers alone, margin {each:g}": {"own_history": False, "margin": each} for each in (0.8, 0.9, 1.25)},
}
"""One threshold for all, lower and higher: what is found at which rate of false windows."""
CUTS_S = (5.0, 10.0, 15.0, 20.0)
"""Seconds of a fabric's run that are cut away: the same faults, in cells and windows that lie elsewhere."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("speed", "fabric", "asd", "servers"))
    parser.add_argument("--data", type=Path, metavar="DIR", help="folder of the data set that is judged")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1, help="the first one, of servers")
    parser.add_argument("--runs", type=int, default=20, help="groups of servers")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    if args.what == "speed":
        found = pairs_per_s(5 * args.repeats, args.seed) + day(args.repeats, args.seed)
        report(found, as_json=args.json, source="anomaly_peers")
        if not args.json:
            print(f"\nKasick et al.: {ARTICLE_PAIRS_PER_S:,} pairs/s on one core; 49 min and 6.1 GB for the day")
        return
    if args.what == "servers":
        _print(servers(range(args.seed, args.seed + args.runs)))
        return
    if args.data is None:
        parser.error(f"{args.what} needs --data, the folder of the data set: see docs/benchmarks.md")
    judge = fabric if args.what == "fabric" else asd
    variants = VARIANTS if args.what == "fabric" else {**VARIANTS, **MARGINS}
    judged = {name: judge(args.data, settings) for name, settings in variants.items()}
    if args.what == "fabric":
        judged["no training period"] = fabric(args.data, {}, trained=False)
        for cut_s in CUTS_S:
            judged[f"the first {cut_s:g} s cut away"] = fabric(args.data, {}, cut_s=cut_s)
    _print(judged)


def _print(judged: dict[str, dict[str, float]]) -> None:
    names = list(next(iter(judged.values())))
    print_table(("setting", *names), [(name, *(row[key] for key in names)) for name, row in judged.items()])


if __name__ == "__main__":
    main()
