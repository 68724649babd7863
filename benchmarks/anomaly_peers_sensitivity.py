"""How what `vsrt diagnose` finds on servers depends on its constants, one at a time, the others as they are."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from anomaly_peers import asd_series, fabric, flagged_windows
from generated_members import INTERVAL_S, generated_members
from measure import print_table
from numpy.typing import NDArray

from controller.anomaly.peers import diagnosis, distances, past, scoring
from controller.anomaly.peers.combination import combined
from controller.anomaly.peers.diagnosis import Diagnosis, TimeSpan, diagnose
from controller.anomaly.peers.settings import PeerSettings, fitted
from controller.anomaly.series import RawSeries

Floats = NDArray[np.float64]

HALF = ", half "

SETTINGS: dict[str, tuple[float, ...]] = {
    "window_samples": (24, 40, 60, 90, 120),
    "combined_share": (1e-9, 0.05, 0.1, 0.2, 0.4),
    "ratio_max": (3, 10, 30, 100),
}
"""Settings of the chain; a window is shifted by half of itself."""
ROOTS: dict[str, tuple[float, ...]] = dict.fromkeys(("ROOT", "ROOT_TRAINED"), (0.25, 0.5, 1, 2, 4))
"""In place of `combined_share`: the mean over so many times the square root of how many metrics are known; trained:
it counts in terms of its own largest in training, of the members' median, where training has enough windows."""
CONSTANTS: dict[str, tuple[object, tuple[float, ...]]] = {
    "KEPT_WINDOWS": (past, (32, 64, 128, 256)),
    "KEPT_QUANTILES": (past, (4, 12, 24)),
    "LEVEL_S": (past, (43_200, 86_400, 172_800)),
    "LEVEL_STEPS": (past, (6, 24, 96)),
    "LEVEL_SAMPLES": (past, (24, 96, 288)),
    "BIN_FLOOR": (scoring, (0.01, 0.03, 0.1, 0.3, 1)),
    "THRESHOLD_FLOOR": (scoring, (0, 0.1, 0.25, 0.5, 1)),
    "SMALLEST_THRESHOLD_BINS": (scoring, (0.3, 1, 3)),
    "LEVEL_RESOLUTION": (distances, (1e-4, 1e-3, 1e-2)),
}
"""Constants of modules, and which module has them."""
ENOUGH_WINDOWS = 48
THRESHOLDS = np.concatenate(([1.0], np.geomspace(0.4, 5, 50)))
FALSE_WANTED = 0.45


class Counts(NamedTuple):
    """Over a collection, at each of `THRESHOLDS`: events found, false windows; and how many events and days."""

    hits: NDArray[np.int64]
    false: NDArray[np.int64]
    events: int
    days: float


def counted(collection: str, name: str, value: float) -> Counts:
    """Return what is found of a collection, made by seeds or read from a folder, with one constant at a value."""
    total = Counts(np.zeros(len(THRESHOLDS), np.int64), np.zeros(len(THRESHOLDS), np.int64), 0, 0.0)
    with _set(name, value) as given:
        for series, labels, from_s in _runs(collection):
            last_s = max(one.at_s[-1] for one in series)
            found = diagnose(series, fitted(given, INTERVAL_S, last_s, from_s), TimeSpan(0.0, from_s), counters=False)
            found = _of(_trained(found, from_s) if name == "ROOT_TRAINED" else found, labels)
            at_each = [flagged_windows(found, labels, from_s, threshold) for threshold in THRESHOLDS.tolist()]
            total = Counts(
                total.hits + np.array([each.hits for each in at_each], np.int64),
                total.false + np.array([each.false for each in at_each], np.int64),
                total.events + at_each[0].events,
                total.days + at_each[0].days,
            )
    return total


@contextmanager
def _set(name: str, value: float) -> Iterator[dict[str, object]]:
    """Have a constant of a module at a value meanwhile, or give the settings that are not the default ones."""
    if name in ROOTS:
        with _replaced(diagnosis, "combined", _over_root(value)):
            yield {}
        return
    if name not in CONSTANTS:
        whole = isinstance(getattr(PeerSettings(), name), int)
        given: dict[str, object] = {name: int(value) if whole else value}
        if name == "window_samples":
            given["shift_samples"] = int(value) // 2
        yield given
        return
    module, _ = CONSTANTS[name]
    with _replaced(module, name, type(getattr(module, name))(value)):
        yield {}


@contextmanager
def _replaced(module: object, name: str, value: object) -> Iterator[None]:
    before = getattr(module, name)
    setattr(module, name, value)
    try:
        yield
    finally:
        setattr(module, name, before)


def _over_root(factor: float) -> Callable[[Sequence[Floats], float, float], Floats]:
    """Return what combines metrics over so many times the square root of their number."""

    def over(ratios: Sequence[Floats], _share: float, ratio_max: float) -> Floats:
        known = (~np.isnan(np.stack(ratios))).sum(axis=0).max(initial=1)
        return combined(ratios, min(1.0, factor / float(np.sqrt(known))), ratio_max)

    return over


def _trained(found: Diagnosis, from_s: float) -> Diagnosis:
    """Return scores in terms of their own largest in training, of the members' median."""
    training = found.ends_s <= from_s
    if np.count_nonzero(training) < ENOUGH_WINDOWS:
        return found
    largest = (np.nanmedian(np.nanmax(group.scores[training], axis=0)) for group in found.groups)
    groups = [group._replace(scores=group.scores / most) for group, most in zip(found.groups, largest, strict=True)]
    return found._replace(groups=groups)


def _of(found: Diagnosis, labels: dict[str, NDArray[np.bool_]]) -> Diagnosis:
    """Return what was found of the members that have labels; the others were peers alone."""
    (group,) = found.groups
    columns = [column for column, member in enumerate(group.members) if member in labels]
    members = [group.members[column] for column in columns]
    return found._replace(groups=[group._replace(members=members, scores=group.scores[:, columns])])


def _runs(collection: str) -> Iterator[tuple[list[RawSeries], dict[str, NDArray[np.bool_]], float]]:
    if not collection.startswith("seeds "):
        folder, _, half = collection.partition(HALF)
        series, labels, from_s = asd_series(Path(folder))
        names = sorted(labels)
        part = {"": names, "1": names[: len(names) // 2], "2": names[len(names) // 2 :]}[half]
        yield series, {name: labels[name] for name in part}, from_s
        return
    first, last = map(int, collection.removeprefix("seeds ").split("-"))
    for seed in range(first, last + 1):
        run = generated_members(seed)
        yield run.series(), run.labels(), run.judged_from * INTERVAL_S


def cell(found: Counts) -> str:
    """Return recall and false windows per server and day as they are, and recall at `FALSE_WANTED` of them."""
    allowed = np.flatnonzero(found.false / found.days <= FALSE_WANTED)
    best = max((int(found.hits[place]) for place in allowed.tolist()), default=0)
    recall, false = found.hits[0] / found.events, found.false[0] / found.days
    return f"{best / found.events:.3f} ({recall:.3f} at {false:.2f})"


def of_routers(folder: Path, name: str, value: float) -> str:
    """Return how many events are found, of how many the node is named first, and calm windows that are flagged."""
    with _set(name, value) as given:
        found = fabric(folder, given)
    return "{found:g}, {named node first:g} first, {of them flagged:g} calm".format_map(found)


def main() -> int:
    """Print a row for each constant and value."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, nargs="+", default=[1], help="each of these and the following are judged")
    parser.add_argument("--runs", type=int, default=4, help="groups of servers from each seed on; 0: none")
    parser.add_argument("--data", type=Path, metavar="DIR", help="folder of ASD, judged beside")
    parser.add_argument("--halves", action="store_true", help="judge each half of the servers of ASD by itself too")
    parser.add_argument("--fabric", type=Path, metavar="DIR", help="folder of the routers, judged beside")
    ranges = {**SETTINGS, **ROOTS, **{name: values for name, (_, values) in CONSTANTS.items()}}
    parser.add_argument("--only", nargs="+", metavar="CONSTANT", choices=ranges, help="these alone")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    arguments = parser.parse_args()
    seeds = arguments.seed if arguments.runs else ()
    collections = [f"seeds {seed}-{seed + arguments.runs - 1}" for seed in seeds]
    halves = ("", f"{HALF}1", f"{HALF}2") if arguments.halves else ("",)
    collections += [f"{arguments.data}{half}" for half in halves] if arguments.data is not None else []
    todo = [(name, value) for name in arguments.only or ranges for value in ranges[name]]
    with ProcessPoolExecutor(arguments.jobs) as pool:
        found = [[pool.submit(counted, one, *each) for one in collections] for each in todo]
        rows = []
        for (name, value), of_row in zip(todo, found, strict=True):
            module, _ = CONSTANTS.get(name, (PeerSettings(), ()))
            is_default = name not in ROOTS and getattr(module, name) == value
            cells = [cell(each.result()) for each in of_row]
            routers = [] if arguments.fabric is None else [of_routers(arguments.fabric, name, value)]
            rows.append((name, f"{value:g}" + (" (default)" if is_default else ""), *cells, *routers))
    names = [
        one if one.startswith("seeds ") else f"ASD{one.removeprefix(str(arguments.data))}" for one in collections
    ]
    print_table(("constant", "value", *names, *(["routers"] if arguments.fabric is not None else [])), rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
