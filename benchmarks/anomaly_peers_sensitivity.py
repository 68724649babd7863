"""How what `vsrt diagnose` finds on servers depends on its constants, one at a time, the others as they are."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from anomaly_peers import asd_series, flagged_windows
from generated_members import INTERVAL_S, generated_members
from measure import print_table
from numpy.typing import NDArray

from controller.anomaly.peers import distances, past, scoring
from controller.anomaly.peers.diagnosis import TimeSpan, diagnose
from controller.anomaly.peers.settings import PeerSettings, fitted
from controller.anomaly.series import RawSeries

SETTINGS: dict[str, tuple[float, ...]] = {
    "window_samples": (24, 40, 60, 90, 120),
    "combined_share": (1e-9, 0.05, 0.1, 0.2, 0.4),
    "ratio_max": (3, 10, 30, 100),
}
"""Settings of the chain; a window is shifted by half of itself."""
CONSTANTS: dict[str, tuple[object, tuple[float, ...]]] = {
    "KEPT_WINDOWS": (past, (32, 64, 128, 256)),
    "KEPT_QUANTILES": (past, (4, 12, 24)),
    "BIN_FLOOR": (scoring, (0.01, 0.03, 0.1, 0.3, 1)),
    "THRESHOLD_FLOOR": (scoring, (0, 0.1, 0.25, 0.5, 1)),
    "SMALLEST_THRESHOLD_BINS": (scoring, (0.3, 1, 3)),
    "LEVEL_RESOLUTION": (distances, (1e-4, 1e-3, 1e-2)),
}
"""Constants of modules, and which module has them."""
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
    if name not in CONSTANTS:
        whole = isinstance(getattr(PeerSettings(), name), int)
        given: dict[str, object] = {name: int(value) if whole else value}
        if name == "window_samples":
            given["shift_samples"] = int(value) // 2
        yield given
        return
    module, _ = CONSTANTS[name]
    before = getattr(module, name)
    setattr(module, name, type(before)(value))
    try:
        yield {}
    finally:
        setattr(module, name, before)


def _runs(collection: str) -> Iterator[tuple[list[RawSeries], dict[str, NDArray[np.bool_]], float]]:
    if not collection.startswith("seeds "):
        yield asd_series(Path(collection))
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


def main() -> int:
    """Print a row for each constant and value."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, nargs="+", default=[1], help="each of these and the following are judged")
    parser.add_argument("--runs", type=int, default=4, help="groups of servers from each seed on")
    parser.add_argument("--data", type=Path, metavar="DIR", help="folder of ASD, judged beside")
    ranges = {**SETTINGS, **{name: values for name, (_, values) in CONSTANTS.items()}}
    parser.add_argument("--only", nargs="+", metavar="CONSTANT", choices=ranges, help="these alone")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    arguments = parser.parse_args()
    collections = [f"seeds {seed}-{seed + arguments.runs - 1}" for seed in arguments.seed]
    collections += [str(arguments.data)] if arguments.data is not None else []
    todo = [(name, value) for name in arguments.only or ranges for value in ranges[name]]
    with ProcessPoolExecutor(arguments.jobs) as pool:
        found = [[pool.submit(counted, one, *each) for one in collections] for each in todo]
        rows = []
        for (name, value), of_row in zip(todo, found, strict=True):
            module, _ = CONSTANTS.get(name, (PeerSettings(), ()))
            is_default = getattr(module, name) == value
            cells = [cell(each.result()) for each in of_row]
            rows.append((name, f"{value:g}" + (" (default)" if is_default else ""), *cells))
    names = [one if one.startswith("seeds ") else "ASD" for one in collections]
    print_table(("constant", "value", *names), rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
