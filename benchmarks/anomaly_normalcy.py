"""Normalcy: series categorised and bounded per second, and scores by NAB's rule beside simple detectors."""

from __future__ import annotations

import argparse
import csv
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from measure import Measurement, print_json, print_table, report
from nab_scorer import (
    REWARD_LOW_FN,
    REWARD_LOW_FP,
    STANDARD,
    Result,
    ScoredFile,
    held_out_score,
    probation,
    score,
)
from numpy.typing import NDArray

from apps.cli.batch import on_cores
from apps.cli.normalcy_batch import Points, fit_many
from controller.anomaly.normalcy.fit import fit
from controller.anomaly.normalcy.rolling import RollingNormalcy
from controller.anomaly.normalcy.score import Scorer
from controller.anomaly.normalcy.series import make_series
from controller.anomaly.normalcy.settings import Settings

Floats = NDArray[np.float64]
INTERVAL_S, DAY_S, START_S = 300.0, 86_400.0, 1.7e9 // 86_400 * 86_400
PROFILES = {"standard": STANDARD, "reward low FP": REWARD_LOW_FP, "reward low FN": REWARD_LOW_FN}


def mixed_series(count: int, days: int, seed: int) -> list[Points]:
    """Return series of every kind in turn: noise, daily, weekly, trends, modes, states, errors, sparse."""
    rng = np.random.default_rng(seed)
    points = int(days * DAY_S / INTERVAL_S)
    at_s = START_S + INTERVAL_S * np.arange(points, dtype=np.float64)
    day = at_s / DAY_S % 1
    weekday = at_s // DAY_S % 7 < 5
    found = []
    for number in range(count):
        noise = rng.normal(size=points)
        kinds: tuple[Callable[[], Floats], ...] = (
            lambda noise=noise: noise,
            lambda noise=noise: np.convolve(noise, 0.95 ** np.arange(200))[:points],
            lambda noise=noise: 50 + 20 * np.sin(2 * np.pi * day) + noise,
            lambda noise=noise: 10 + 30 * weekday * np.exp(-(((day - 0.5) / 0.12) ** 2)) + noise,
            lambda noise=noise: np.arange(points) * 0.01 + 5 * noise,
            lambda noise=noise: np.arange(points) * 0.01 + 15 * np.sin(2 * np.pi * day) + noise,
            lambda noise=noise: 50 * (np.cumsum(rng.random(points) < 0.03) % 2) + noise,
            lambda: rng.choice([1.0, 2.0, 3.0], points, p=[0.6, 0.3, 0.1]),
            lambda: np.where(rng.random(points) < 0.02, rng.integers(1, 5, points), 0).astype(np.float64),
            lambda noise=noise: noise,
        )
        keep = rng.random(points) < 0.3 if number % len(kinds) == len(kinds) - 1 else slice(None)
        found.append((at_s[keep], kinds[number % len(kinds)]()[keep]))
    return found


def slot_sigmas(points: Points) -> tuple[Floats, Floats]:
    """Return mean and deviation per hour of the week: bounds without any categorisation."""
    at_s, values = points
    slots = (at_s // 3600 % 168).astype(np.int64)
    counts = np.maximum(np.bincount(slots, minlength=168), 1)
    means = np.bincount(slots, values, 168) / counts
    return means, np.sqrt(np.maximum(np.bincount(slots, values**2, 168) / counts - means**2, 0))


def throughput(count: int, days: int, jobs: int, repeats: int, seed: int) -> list[Measurement]:
    """Return the seconds for all series, categorised and bounded, and for mean and deviation per slot."""
    series = mixed_series(count, days, seed)
    run = on_cores(jobs)
    fit_many(series[:40], Settings(), run)
    taken: dict[str, list[float]] = {"categorised and bounded": [], "mean and deviation per slot, one process": []}
    for _ in range(repeats):
        start = time.perf_counter()
        fit_many(series, Settings(), run)
        taken["categorised and bounded"].append(time.perf_counter() - start)
        start = time.perf_counter()
        for points in series:
            slot_sigmas(points)
        taken["mean and deviation per slot, one process"].append(time.perf_counter() - start)
    return [Measurement(f"{count} series of {days} days: {name}", "s", values) for name, values in taken.items()]


def new_day(days: int, repeats: int, seed: int) -> list[Measurement]:
    """Return the milliseconds that a day more takes, added and by a fit of everything."""
    at_s, values = mixed_series(4, days + repeats, seed)[3]
    per_day = int(DAY_S / INTERVAL_S)
    rolling = RollingNormalcy(Settings(refit_s=10 * days * DAY_S))
    rolling.add(at_s[: days * per_day], values[: days * per_day])
    taken: dict[str, list[float]] = {"added": [], "by a fit of all days": []}
    for number in range(days, days + repeats):
        day = slice(number * per_day, (number + 1) * per_day)
        start = time.perf_counter()
        rolling.add(at_s[day], values[day])
        taken["added"].append((time.perf_counter() - start) * 1e3)
        start = time.perf_counter()
        fit(make_series(at_s[: day.stop], values[: day.stop]))
        taken["by a fit of all days"].append((time.perf_counter() - start) * 1e3)
    return [Measurement(f"day {days + 1} of a weekly series, {name}", "ms", part) for name, part in taken.items()]


class Labelled(NamedTuple):
    """A file of the benchmark: times, values and the rows of its labelled windows."""

    at_s: Floats
    values: Floats
    windows: list[tuple[int, int]]


def read_nab(folder: Path) -> dict[str, Labelled]:
    """Return every labelled file of a folder of the benchmark, by its name."""
    files = {}
    for name, windows in json.loads((folder / "combined_windows.json").read_text(encoding="utf-8")).items():
        with (folder / name).open(encoding="utf-8", newline="") as file:
            rows = list(csv.reader(file))[1:]
        at_s = np.array([_epoch_s(row[0]) for row in rows])
        places = [
            np.flatnonzero((at_s >= _epoch_s(first)) & (at_s <= _epoch_s(last)))[[0, -1]] for first, last in windows
        ]
        files[name] = Labelled(
            at_s, np.array([float(row[1]) for row in rows]), [(int(first), int(last)) for first, last in places]
        )
    return files


def _epoch_s(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def normalcy_scores(file: Labelled) -> Floats:
    """Our scores with the defaults."""
    return Scorer().extend(file.at_s, file.values)


def gaussian_scores(file: Labelled, window: int = 6400) -> Floats:
    """Return how unlikely each value is for a normal distribution with mean and deviation of the rows before it."""
    sums = np.concatenate(([0.0], np.cumsum(file.values)))
    squares = np.concatenate(([0.0], np.cumsum(file.values**2)))
    rows = np.arange(len(file.values))
    first = np.maximum(0, rows - window)
    counts = np.maximum(rows - first, 1)
    mean = (sums[rows] - sums[first]) / counts
    sigma = np.sqrt(np.maximum((squares[rows] - squares[first]) / counts - mean**2, 1e-12))
    apart = np.abs(file.values - mean) / sigma
    return np.where(rows < 10, 0.0, apart / (1 + apart))


def whisker_scores(file: Labelled, window: int = 2000) -> Floats:
    """Return how far each value is outside the whiskers of the rows before it, updated every 50 rows."""
    found = np.zeros(len(file.values))
    for start in range(20, len(found), 50):
        first, third = np.quantile(file.values[max(0, start - window) : start], (0.25, 0.75))
        reach = max(third - first, 1e-9)
        part = file.values[start : start + 50]
        apart = np.maximum(part - third, first - part) / reach - 1.5
        found[start : start + 50] = np.maximum(apart, 0) / (1 + np.maximum(apart, 0))
    return found


def clock_scores(file: Labelled) -> Floats:
    """Return an alarm every two days whatever the values are: what the hold-off alone is worth."""
    days = (file.at_s - file.at_s[0]) // (2 * DAY_S)
    return np.concatenate(([0.0], (np.diff(days) > 0).astype(np.float64)))


DETECTORS: dict[str, Callable[[Labelled], Floats]] = {
    "normalcy": normalcy_scores,
    "Gaussian of the last 6,400 rows": gaussian_scores,
    "whiskers of the last 2,000 rows": whisker_scores,
    "an alarm every two days": clock_scores,
}


STRETCHES_S = {"an hour": 3600.0, "six hours": 21_600.0, "a day": DAY_S}


class Scores(NamedTuple):
    """What NAB's rule says of a detector: per profile, and with thresholds that a folder has no part in."""

    profiles: dict[str, Result]
    held_out: float


def matrix_profiles(files: Mapping[str, Labelled], python: Path) -> dict[str, dict[str, Floats]]:
    """Return the scores of the peer, by the length of stretches and by file; `python` has stumpy.

    A row is scored where it is further from all before than every row of the half day before it, so that one stretch
    is no row of alarms.
    """
    found = {}
    with TemporaryDirectory() as folder:
        given, made = Path(folder) / "given.npz", Path(folder) / "made.npz"
        for words, length_s in STRETCHES_S.items():
            named = {}
            for name, file in files.items():
                rows = max(8, round(length_s / _interval_s(file)))
                named[f"{name.replace('/', '|')}|{rows}"] = file.values
            np.savez(given, **named)  # type: ignore[arg-type]
            program = Path(__file__).with_name("left_profiles.py")
            subprocess.run([python, "-W", "ignore", program, given, made], check=True)
            scores = np.load(made)
            found[f"matrix profile, {words}"] = {
                name: _first_of(scores[key], round(DAY_S / 2 / _interval_s(files[name])))
                for name, key in zip(files, named, strict=True)
            }
    return found


def _interval_s(file: Labelled) -> float:
    return float(np.median(np.diff(file.at_s)))


def _first_of(scores: Floats, rows: int) -> Floats:
    """Return scores that are above all of so many rows before them, 0 for others."""
    before = np.concatenate((np.zeros(rows), scores))
    most = np.lib.stride_tricks.sliding_window_view(before, rows)[: len(scores)].max(axis=1)
    return np.where(scores > most, scores, 0.0)


def nab(folder: Path, jobs: int, stumpy: Path | None = None) -> tuple[dict[str, Scores], dict[str, Result]]:
    """Return each detector's scores over all files, and ours per file at the threshold of all."""
    files = read_nab(folder)
    found: dict[str, Scores] = {}
    ours: dict[str, Result] = {}
    profiles_of = {} if stumpy is None else matrix_profiles(files, stumpy)
    with ProcessPoolExecutor(jobs) as pool:
        for name in (*DETECTORS, *profiles_of):
            detector = DETECTORS.get(name)
            made = profiles_of[name].values() if detector is None else pool.map(detector, files.values())
            rows = zip(files, made, strict=True)
            scored = {file: ScoredFile(scores, files[file].windows) for file, scores in rows}
            folders: dict[str, list[ScoredFile]] = {}
            for file, one in scored.items():
                folders.setdefault(file.partition("/")[0], []).append(one)
            profiles = {key: score(list(scored.values()), profile) for key, profile in PROFILES.items()}
            found[name] = Scores(profiles, held_out_score(list(folders.values())))
            if name == "normalcy":
                threshold = profiles["standard"].threshold
                ours = {
                    file: score([one], STANDARD, threshold) if one.windows else _false_alarms(one, threshold)
                    for file, one in scored.items()
                }
    return found, ours


def _false_alarms(file: ScoredFile, threshold: float) -> Result:
    late = file.scores[probation(len(file.scores)) :]
    return Result(float("nan"), threshold, 0, 0, int((late >= threshold).sum()))


def print_nab(found: Mapping[str, Scores], ours: Mapping[str, Result]) -> None:
    """Print the detectors' scores, and ours file by file."""
    print_table(
        ("detector", *PROFILES, "held out", "windows found", "false alarms", "threshold"),
        [
            (
                name,
                *(f"{scores.profiles[key].score:.1f}" for key in PROFILES),
                f"{scores.held_out:.1f}",
                f"{scores.profiles['standard'].found} of {scores.profiles['standard'].windows}",
                scores.profiles["standard"].false_positives,
                f"{scores.profiles['standard'].threshold:.3f}",
            )
            for name, scores in found.items()
        ],
    )
    print()
    print_table(
        ("file", "score", "windows found", "false alarms"),
        [
            (name, f"{one.score:.1f}", f"{one.found} of {one.windows}", one.false_positives)
            for name, one in ours.items()
        ],
    )


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="what", required=True)
    fitting = commands.add_parser("fit", help="series categorised and bounded")
    fitting.add_argument("--series", type=int, default=1000)
    fitting.add_argument("--days", type=int, default=30)
    fitting.add_argument("--repeats", type=int, default=3)
    fitting.add_argument("--seed", type=int, default=1)
    scoring = commands.add_parser("nab", help="scores by NAB's rule")
    scoring.add_argument("--data", type=Path, required=True, help="folder with combined_windows.json")
    scoring.add_argument("--stumpy", type=Path, metavar="PYTHON", help="a Python that has stumpy, for its peers")
    for command in (fitting, scoring):
        command.add_argument("--json", action="store_true", help="print JSON in place of tables")
        command.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    arguments = parser.parse_args()
    if arguments.what == "fit":
        measured = throughput(arguments.series, arguments.days, arguments.jobs, arguments.repeats, arguments.seed)
        measured += new_day(arguments.days, 7, arguments.seed)
        report(measured, as_json=arguments.json, source="anomaly_normalcy fit")
        return 0
    found, ours = nab(arguments.data, arguments.jobs, arguments.stumpy)
    if arguments.json:
        detectors = {
            name: {key: one._asdict() for key, one in scores.profiles.items()} | {"held_out": scores.held_out}
            for name, scores in found.items()
        }
        print_json({"benchmark": "anomaly_normalcy nab", "detectors": detectors})
    else:
        print_nab(found, ours)
    return 0


if __name__ == "__main__":
    sys.exit(main())
