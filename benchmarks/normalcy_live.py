"""Live normalcy: `PYTHONPATH=. python benchmarks/normalcy_live.py cost|quality|sensitivity`.

`cost` has the share of a core that series take at a point a minute each, and their memory, beside what it would take
to fit each anew by the batch method once a day. `quality` finds faults put into generated series of minutes, beside
static thresholds at the extremes of the first week. `sensitivity` has what is found over a range of every constant.
"""

from __future__ import annotations

import argparse
import os
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from generated_series import DAY_S, KINDS, START_S
from measure import Measurement, print_table, report

from controller.anomaly.live_normalcy import SlotBounds
from controller.anomaly.live_normalcy_core import METRIC_COUNT, NormalcyCore, PortsRolledUp
from controller.anomaly.normalcy.fit import fit
from controller.anomaly.normalcy.series import make_series
from controller.anomaly.normalcy.settings import Settings
from controller.config.anomaly_settings import Normalcy

POINT_S, DAY_POINTS = 60.0, 1440
LIVE_KINDS = tuple(kind for kind in KINDS if kind not in ("mentions", "volumes", "roads"))
"""Those that the constants of the live bounds were chosen on."""
FIRST_FAULT_DAYS = 14
LEAST_DAYS = FIRST_FAULT_DAYS + 3
FOUND_WITHIN_POINTS = DAY_POINTS
CALM_DAYS = 4
"""Alarms so long after a fault began are its own: another level is normal after some days."""
RANGES: dict[str, tuple[float, ...]] = {
    "margin": (0.0, 0.1, 0.25, 0.5, 1.0),
    "raise_score": (0.1, 0.15, 0.2, 0.25, 0.33, 0.5),
    "confirm_points": (1, 3, 5, 10, 20),
    "hold_off_points": (5, 15, 30, 60),
    "relearn_days": (1, 2, 3, 5, 7),
    "least_days": (3, 5, 7, 10),
    "least_weeks": (2, 3, 4),
}
"""Each constant is set to these, the others staying as they are."""


def cost(series: int, minutes: int) -> list[Measurement]:
    """Time of the core for a minute of all series, with an hour's end in it, and that of one fit of thirty days."""
    ports = series // METRIC_COUNT
    core = NormalcyCore(Normalcy(enabled=True, ports=ports, least_days=1))
    keys = tuple((1 + port // 64, 1 + port % 64) for port in range(ports))
    rng = np.random.default_rng(1)
    spent_ms = []
    for minute in range(DAY_POINTS + minutes):
        if 120 <= minute < DAY_POINTS:
            continue  # two hours of the first day are enough for bounds at the same hours of the next
        at_s = np.full(ports, START_S + POINT_S * minute)
        told = PortsRolledUp(keys, at_s, rng.normal(1e6, 1e5, (ports, METRIC_COUNT)))
        start = time.process_time()
        core.handle(told)
        spent_ms.append(1000 * (time.process_time() - start))
    spent_ms = spent_ms[-minutes:]
    at_s = START_S + 300 * np.arange(30 * 288)
    day = make_series(at_s, 50 + 40 * np.sin(2 * np.pi * at_s / DAY_S) + rng.normal(size=len(at_s)))
    start = time.process_time()
    fit(day, Settings())
    fitted_s = time.process_time() - start
    count = ports * METRIC_COUNT
    return [
        Measurement(f"a minute of {count} series", "ms", spent_ms),
        Measurement("share of a core", "%", [100 * sum(spent_ms) / 1000 / (minutes * POINT_S)]),
        Measurement("memory of a series", "bytes", [core.bounds.bytes_per_row]),
        Measurement("share of a core, batch method fitted daily", "%", [100 * fitted_s * count / DAY_S]),
    ]


def made(kind: str, seed: int, days: int) -> tuple[np.ndarray, np.ndarray, list[int], list[str]]:
    """Return values by the minute, which of them are known, and the faults behind the first two weeks."""
    rng = np.random.default_rng([sum(kind.encode()), seed])
    rows = days * DAY_POINTS
    normal, faults = KINDS[kind]
    values = normal(rng, START_S + POINT_S * np.arange(rows, dtype=np.float64))
    extent = float(np.subtract(*np.quantile(values, (0.995, 0.005)))) or 1.0
    left = (days - FIRST_FAULT_DAYS) / 3
    onsets = [int((FIRST_FAULT_DAYS + left * (place + rng.uniform(0.05, 0.3))) * DAY_POINTS) for place in range(3)]
    names = []
    for row in onsets:
        fault = faults[int(rng.integers(len(faults)))]
        fault(rng, values, row, extent, float(DAY_POINTS))
        names.append(fault.__name__)
    known = np.ones(rows, np.bool_)
    if kind == "gaps":
        for start in rng.integers(rows, size=6).tolist():
            known[start : start + int(rng.integers(10, 600))] = False
    return values, known, onsets, names


def static_alarms(values: np.ndarray, confirm: int, hold_off: int) -> list[int]:
    """Return when thresholds a quarter of the range around the first week would be passed for long enough."""
    week = values[: 7 * DAY_POINTS]
    margin = 0.25 * float(week.max() - week.min())
    out = (values > week.max() + margin) | (values < week.min() - margin)
    rises, run, calm, is_open = [], 0, hold_off, False
    for row, is_out in enumerate(out.tolist()):
        run, calm = (run + 1, 0) if is_out else (0, calm + 1)
        if not is_open and run >= confirm:
            is_open = True
            rises.append(row)
        elif is_open and calm >= hold_off:
            is_open = False
    return rises


class LiveSeries(NamedTuple):
    """A series of minutes: its kind, its values, which of them are known, where faults begin and what they are."""

    kind: str
    values: np.ndarray
    known: np.ndarray
    onsets: list[int]
    faults: list[str]


def live_series(count: int, days: int, seed: int) -> list[LiveSeries]:
    """Return so many series of each kind, each with a seed of its own that follows from `seed`."""
    return [LiveSeries(kind, *made(kind, seed + number, days)) for kind in LIVE_KINDS for number in range(count)]


def live_alarms(settings: Normalcy, series: list[LiveSeries]) -> list[list[int]]:
    """Return the minutes at which the live bounds raise an alarm, of each series."""
    values, known = np.array([each.values for each in series]), np.array([each.known for each in series])
    bounds = SlotBounds(settings)
    bounds.fit(len(series))
    bounds.begin(np.arange(len(series)), np.full(len(series), 0.01))
    rises: list[list[int]] = [[] for _ in series]
    is_open = np.zeros(len(series), np.bool_)
    for minute in range(values.shape[1]):
        rows = np.flatnonzero(known[:, minute])
        judged = bounds.take(rows, np.full(len(rows), START_S + POINT_S * (minute + 1)), values[rows, minute])
        for row in judged.rows[judged.confirmed & ~is_open[judged.rows]].tolist():
            rises[row].append(minute)
        is_open[judged.rows] = (is_open[judged.rows] | judged.confirmed) & ~judged.calm
    return rises


def found_and_false(series: LiveSeries, told: list[int]) -> tuple[list[bool], float]:
    """Return which faults were told within a day, and how many alarms a day belong to none."""
    hits = [any(row <= each < row + FOUND_WITHIN_POINTS for each in told) for row in series.onsets]
    of_none = [each for each in told if not any(0 <= each - row < CALM_DAYS * DAY_POINTS for row in series.onsets)]
    return hits, len(of_none) / (len(series.values) / DAY_POINTS)


def quality(settings: Normalcy, count: int, days: int, seed: int) -> None:
    """Print by kind the share of faults that are told within a day, and false alarms a day."""
    series = live_series(count, days, seed)
    rises = live_alarms(settings, series)
    static = [static_alarms(each.values, settings.confirm_points, settings.hold_off_points) for each in series]
    print(f"{'kind':10} {'found':>6} {'false/day':>10} {'static: found':>14} {'false/day':>10}")
    by_fault: dict[str, list[bool]] = {}
    totals: list[list[float]] = [[], [], [], []]
    for kind in LIVE_KINDS:
        mine: list[list[float]] = [[], [], [], []]
        for one, live, fixed in zip(series, rises, static, strict=True):
            if one.kind != kind:
                continue
            for place, told in ((0, live), (2, fixed)):
                hits, false = found_and_false(one, told)
                mine[place] += [float(hit) for hit in hits]
                mine[place + 1].append(false)
                if told is live:
                    for fault, hit in zip(one.faults, hits, strict=True):
                        by_fault.setdefault(fault, []).append(hit)
        print(f"{kind:10} {_line(mine)}")
        for total, part in zip(totals, mine, strict=True):
            total += part
    print(f"{'all':10} {_line(totals)}")
    print("found by fault:", ", ".join(f"{name} {np.mean(hits):.2f}" for name, hits in sorted(by_fault.items())))


def sensitivity(collections: dict[str, list[LiveSeries]], names: list[str], jobs: int) -> None:
    """Print what is found, and false alarms a day, over a range of every constant, the others as they are."""
    todo = [(name, value) for name in names for value in RANGES[name]]
    rows = []
    with ProcessPoolExecutor(jobs) as pool:
        found = [[pool.submit(_found_with, *each, series) for series in collections.values()] for each in todo]
        for (name, value), of_row in zip(todo, found, strict=True):
            is_default = getattr(Normalcy(), name) == value
            rows.append(
                (name, f"{value:g}" + (" (default)" if is_default else ""), *(each.result() for each in of_row))
            )
    print_table(("constant", "value", *collections), rows)


def _found_with(name: str, value: float, series: list[LiveSeries]) -> str:
    whole = isinstance(getattr(Normalcy(), name), int)
    settings = replace(Normalcy(enabled=True), **{name: int(value) if whole else value})  # type: ignore[arg-type]
    judged = [found_and_false(*each) for each in zip(series, live_alarms(settings, series), strict=True)]
    hits = [hit for of_series, _ in judged for hit in of_series]
    return f"{np.mean(hits):.3f} at {np.mean([false for _, false in judged]):.3f}"


def _line(columns: list[list[float]]) -> str:
    found, false, static_found, static_false = (float(np.mean(column)) for column in columns)
    return f"{found:6.2f} {false:10.3f} {static_found:14.2f} {static_false:10.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("cost", "quality", "sensitivity"))
    parser.add_argument("--series", type=int, default=100_000, help="of `cost`")
    parser.add_argument("--minutes", type=int, default=120, help="of `cost`, an hour or longer")
    parser.add_argument("--count", type=int, default=8, help="series of each kind, of `quality` and `sensitivity`")
    parser.add_argument("--days", type=int, default=35, help=f"at least {LEAST_DAYS} (default: %(default)s)")
    parser.add_argument("--seed", type=int, nargs="+", default=[1], help="of `sensitivity` several")
    parser.add_argument(
        "--only", nargs="+", default=list(RANGES), choices=RANGES, metavar="CONSTANT", help="of `sensitivity`"
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes of `sensitivity`")
    parser.add_argument("--margin", type=float, default=Normalcy().margin)
    parser.add_argument("--raise-score", type=float, default=Normalcy().raise_score)
    parser.add_argument("--confirm-points", type=int, default=Normalcy().confirm_points)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    if arguments.days < LEAST_DAYS:
        parser.error(f"--days: faults begin after {FIRST_FAULT_DAYS} days, so at least {LEAST_DAYS} are needed")
    if arguments.what == "cost":
        found = cost(arguments.series, max(60, arguments.minutes))
        report(found, as_json=arguments.json, source="normalcy_live")
        return
    if arguments.what == "sensitivity":
        sets = {f"seed {seed}": live_series(arguments.count, arguments.days, seed) for seed in arguments.seed}
        sensitivity(sets, arguments.only, arguments.jobs)
        return
    settings = Normalcy(
        enabled=True,
        margin=arguments.margin,
        raise_score=arguments.raise_score,
        confirm_points=arguments.confirm_points,
    )
    quality(settings, arguments.count, arguments.days, arguments.seed[0])


if __name__ == "__main__":
    main()
