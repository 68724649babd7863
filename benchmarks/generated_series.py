"""Series whose anomalies are known because they were put in: kinds of normal behaviour, faults, windows as NAB's.

Every series is made new by its seed. Nothing in it is taken from a recorded series; ranges are wide on purpose, and
what is normal in one kind (bursts, spikes, drift) would be a fault in another.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

Floats = NDArray[np.float64]
DAY_S, START_S = 86_400.0, 1.7e9 // 86_400 * 86_400
PROBATION = 0.15
WINDOW_SHARE = 0.1
"""Share of a series' rows that lies in its windows, as in NAB."""


class Generated(NamedTuple):
    """A series, its kind, the rows at which faults start, what they are, and a window around each, in order."""

    kind: str
    at_s: Floats
    values: Floats
    onsets: list[int]
    faults: list[str]
    windows: list[tuple[int, int]]


def correlated(rng: Generator, rows: int, memory: float) -> Floats:
    """Return normal noise of deviation 1 with a correlation of `memory` from row to row."""
    steps = rng.normal(size=rows) * np.sqrt(1 - memory**2)
    steps[0] = rng.normal()
    noise = np.empty(rows)
    before = 0.0
    for row, step in enumerate(steps):
        before = memory * before + step
        noise[row] = before
    return noise


def daily_shape(rng: Generator, at_s: Floats) -> Floats:
    """Return a wave of three harmonics over the day, from 0 to 1, lower at weekends in half of the cases."""
    day = at_s / DAY_S % 1
    grid = np.linspace(0, 1, 289)
    parts = [(weight / order, rng.random()) for order, weight in enumerate(rng.random(3) + np.array([1, 0, 0]), 1)]

    def wave(at: Floats) -> Floats:
        return np.sum(
            [height * np.sin(2 * np.pi * (order * at + phase)) for order, (height, phase) in enumerate(parts, 1)], 0
        )

    low, high = wave(grid).min(), wave(grid).max()
    shape = (wave(day) - low) / (high - low)
    weekend = at_s // DAY_S % 7 >= 5
    return shape * np.where(weekend, rng.choice([1.0, rng.uniform(0.4, 0.9)]), 1.0)


def level(rng: Generator, at_s: Floats) -> Floats:
    """Noise around one level."""
    return rng.uniform(10, 100) + rng.uniform(0.5, 5) * correlated(rng, len(at_s), rng.choice([0.0, 0.5, 0.9]))


def season(rng: Generator, at_s: Floats) -> Floats:
    """A wave over the day with noise."""
    noise = correlated(rng, len(at_s), rng.choice([0.0, 0.7]))
    return rng.uniform(0, 50) + rng.uniform(10, 50) * (daily_shape(rng, at_s) + rng.uniform(0.02, 0.15) * noise)


def trend(rng: Generator, at_s: Floats) -> Floats:
    """A line, with a wave over the day in half of the cases, and noise."""
    noise = correlated(rng, len(at_s), rng.choice([0.0, 0.7]))
    line = rng.choice([-1, 1]) * rng.uniform(5, 20) * np.linspace(0, 1, len(at_s))
    return 50 + line + rng.choice([0.0, 5.0]) * daily_shape(rng, at_s) + noise


def tails(rng: Generator, at_s: Floats) -> Floats:
    """Counts with a daily rate and bursts whose sizes have a power law: mentions, requests per minute."""
    rows = len(at_s)
    rate = rng.uniform(1, 40) * (0.3 + daily_shape(rng, at_s))
    bursts = np.zeros(rows)
    per_day = rng.uniform(0.5, 12)
    starts = np.flatnonzero(rng.random(rows) < per_day * np.median(np.diff(at_s)) / DAY_S)
    exponent = rng.uniform(1.2, 2.5)
    for start in starts:
        size = float(rate[start]) * float(rng.random()) ** (-1 / exponent)
        decay = np.exp(-np.arange(24) / rng.uniform(0.5, 4))[: rows - start]
        bursts[start : start + len(decay)] += size * decay
    spread = rng.lognormal(0, rng.uniform(0.1, 0.4), rows)
    return rng.poisson((rate + bursts) * spread).astype(np.float64)


def drift(rng: Generator, at_s: Floats) -> Floats:
    """A level that wanders over days, with noise: temperatures, queues."""
    memory = np.exp(-np.median(np.diff(at_s)) / (rng.uniform(1, 5) * DAY_S))
    noise = correlated(rng, len(at_s), 0.5)
    return 70 + rng.uniform(2, 6) * correlated(rng, len(at_s), float(memory)) + rng.uniform(0.3, 1) * noise


def spikes(rng: Generator, at_s: Floats) -> Floats:
    """A low level with spikes of similar heights, at random or by the hour."""
    rows = len(at_s)
    height = rng.uniform(20, 60)
    if rng.random() < 0.5:
        there = rng.random(rows) < rng.uniform(0.01, 0.08)
    else:
        there = np.arange(rows) % int(rng.integers(6, 49)) == 0
    return rng.uniform(1, 10) + 0.5 * rng.normal(size=rows) + there * height * rng.uniform(0.8, 1.2, rows)


def states(rng: Generator, at_s: Floats) -> Floats:
    """A load that goes between two levels for hours, never over 100."""
    rows = len(at_s)
    changes = rng.random(rows) < np.median(np.diff(at_s)) / (rng.uniform(2, 12) * 3600)
    high = np.cumsum(changes) % 2 == 1
    low_at = rng.uniform(5, 30)
    return np.clip(np.where(high, low_at + rng.uniform(15, 50), low_at) + rng.normal(size=rows), 0, 100)


def idle(rng: Generator, at_s: Floats) -> Floats:
    """Nearly always the same small value, some rows a little above."""
    rows = len(at_s)
    low = rng.choice([0.0, rng.uniform(0, 2)])
    return low + (rng.random(rows) < rng.uniform(0.02, 0.3)) * rng.choice([0.05, 0.5, 1.0]) * rng.integers(1, 4, rows)


def volumes(rng: Generator, at_s: Floats) -> Floats:
    """Bytes per interval: a wide spread, nothing at all in a share of the rows, jobs by the hour."""
    rows = len(at_s)
    body = np.exp(rng.uniform(0.2, 0.8) * correlated(rng, rows, rng.choice([0.0, 0.6, 0.95])))
    body *= rng.random(rows) >= rng.choice([0.0, rng.uniform(0.2, 0.9)])
    jobs = np.arange(rows) % int(rng.integers(6, 289)) < int(rng.integers(1, 4))
    return rng.lognormal(10, 3) * (body + jobs * rng.choice([0.0, rng.uniform(3, 10)]) * rng.uniform(0.8, 1.2, rows))


def roads(rng: Generator, at_s: Floats) -> Floats:
    """Occupancy, speed or travel time of a road: two rushes on workdays, a spread that grows with them, jams."""
    rows, day = len(at_s), at_s / DAY_S % 1
    rush = np.zeros(rows)
    for hour, width in ((rng.uniform(7, 9), rng.uniform(0.8, 2)), (rng.uniform(16, 18), rng.uniform(1, 3))):
        rush += rng.uniform(0.3, 1) * np.exp(-0.5 * ((24 * day - hour) / width) ** 2)
    rush *= np.where(at_s // DAY_S % 7 >= 5, rng.uniform(0.1, 0.6), 1.0)
    jams = np.zeros(rows)
    for start in np.flatnonzero(rng.random(rows) < rng.uniform(0.1, 0.6) * np.median(np.diff(at_s)) / DAY_S):
        length = int(rng.integers(3, 20))
        jams[start : start + length] += rng.exponential(0.4) * np.hanning(length + 2)[1:-1][: rows - start]
    spread = (0.05 + rng.uniform(0.05, 0.3) * rush) * correlated(rng, rows, rng.choice([0.0, 0.6]))
    load = np.maximum(0.1 + rush + jams + spread, 0.0)
    return (
        np.rint(rng.choice([rng.uniform(10, 20), 300.0]) * load)
        if rng.random() < 0.6
        else np.rint(80 - 40 * np.tanh(load))
    )


def spike(rng: Generator, values: Floats, row: int, extent: float, steps_a_day: float) -> None:
    """One to three rows far out."""
    values[row : row + int(rng.integers(1, 4))] += rng.uniform(0.8, 3) * extent


def step(rng: Generator, values: Floats, row: int, extent: float, steps_a_day: float) -> None:
    """Another level from here on."""
    values[row:] += rng.choice([-1, 1]) * rng.uniform(0.5, 2) * extent


def burst(rng: Generator, values: Floats, row: int, extent: float, steps_a_day: float) -> None:
    """Some hours at a higher level, rising and falling."""
    length = max(3, int(steps_a_day * rng.uniform(0.1, 0.5)))
    values[row : row + length] += rng.uniform(0.6, 2) * extent * np.hanning(length)[: len(values) - row] ** 0.5


def flat(rng: Generator, values: Floats, row: int, extent: float, steps_a_day: float) -> None:
    """A value that stands still for a third of a day or longer."""
    length = int(steps_a_day * rng.uniform(0.35, 1))
    values[row : row + length] = values[row]


def drop(rng: Generator, values: Floats, row: int, extent: float, steps_a_day: float) -> None:
    """Some hours far below."""
    length = max(3, int(steps_a_day * rng.uniform(0.05, 0.4)))
    values[row : row + length] -= rng.uniform(0.6, 1.5) * extent


def restless(rng: Generator, values: Floats, row: int, extent: float, steps_a_day: float) -> None:
    """Some hours that vary three to six times as much."""
    length = max(12, int(steps_a_day * rng.uniform(0.2, 0.6)))
    part = values[row : row + length]
    around = np.convolve(np.pad(part, 6, mode="edge"), np.ones(13) / 13, mode="valid")
    values[row : row + length] = around + (part - around) * rng.uniform(3, 6)


def rate(rng: Generator, values: Floats, row: int, extent: float, steps_a_day: float) -> None:
    """Spikes of the usual height, but five to ten times as many, for some hours."""
    length = max(24, int(steps_a_day * rng.uniform(0.3, 0.8)))
    part = values[row : row + length]
    usual = float(np.mean(values[:row] > np.median(values) + extent / 2))
    there = rng.random(len(part)) < min(0.7, max(0.15, rng.uniform(5, 10) * usual))
    values[row : row + length] = np.where(there, np.median(values) + extent * rng.uniform(0.8, 1.1, len(part)), part)


def shuffled(rng: Generator, values: Floats, row: int, extent: float, steps_a_day: float) -> None:
    """The rows of a day in no order: what followed the hour no longer does."""
    rng.shuffle(values[row : row + int(steps_a_day)])


Fault = Callable[[Generator, Floats, int, float, float], None]
KINDS: dict[str, tuple[Callable[[Generator, Floats], Floats], tuple[Fault, ...]]] = {
    "level": (level, (spike, step, burst, drop, flat, restless)),
    "season": (season, (spike, step, burst, drop, flat)),
    "trend": (trend, (spike, step, burst, drop)),
    "tails": (tails, (spike, burst)),
    "drift": (drift, (spike, step, drop, restless)),
    "spikes": (spikes, (spike, rate, step)),
    "states": (states, (spike, step, drop)),
    "idle": (idle, (spike, burst, step)),
    "gaps": (season, (spike, step, burst, drop)),
    "mentions": (tails, (spike, burst, burst)),
    "volumes": (volumes, (spike, step, burst, drop, rate, restless)),
    "roads": (roads, (spike, burst, drop, flat, shuffled)),
}
LONG_KINDS, COUNTED_KINDS, UNEVEN_KINDS = ("mentions",), ("tails", "mentions"), ("gaps", "roads")
INTERVALS_S = (300.0, 300.0, 300.0, 1800.0, 3600.0)


def generated(kind: str, seed: int) -> Generated:
    """Return a series of a kind with up to three faults behind the first 15 % of its rows, made by a seed.

    Faults of tails are as high as the highest of the rows before them or higher; elsewhere their unit is the range
    (0.5 % to 99.5 %) of the series. KeyError for an unknown kind.
    """
    rng = np.random.default_rng([sum(kind.encode()), seed])
    interval_s = float(rng.choice(INTERVALS_S))
    rows = int(rng.integers(3000, 5000)) if interval_s == 300 else int(rng.integers(1300, 2500))
    if kind in LONG_KINDS:
        interval_s, rows = 300.0, int(rng.integers(10_000, 16_000))
    at_s = START_S + interval_s * np.arange(rows, dtype=np.float64)
    normal, faults = KINDS[kind]
    values = normal(rng, at_s)
    extent = float(np.ptp(np.quantile(values, (0.005, 0.995)))) or 1.0
    if kind in COUNTED_KINDS:
        extent = float(values.max())
    if kind in UNEVEN_KINDS:
        keep = np.ones(rows, np.bool_)
        for start in rng.integers(0, rows, int(rng.integers(1, 6))):
            keep[start : start + int(rng.integers(5, 200))] = False
        keep &= rng.random(rows) > rng.uniform(0, 0.3)
        at_s, values = at_s[keep], values[keep]
        rows = len(at_s)
    count = int(rng.integers(0, 4))
    width = int(WINDOW_SHARE * rows / count) if count else 0
    first = int(PROBATION * rows) + width
    room = (rows - width - first) // max(1, count)
    onsets = [first + number * room + int(rng.integers(0, max(1, room - width))) for number in range(count)]
    chosen = [faults[int(rng.integers(len(faults)))] for _ in onsets]
    for onset, fault in zip(onsets, chosen, strict=True):
        fault(rng, values, onset, extent, DAY_S / interval_s)
    if kind in (*COUNTED_KINDS, "idle", "states", "volumes", "roads"):
        values = np.maximum(values, 0.0)
    if kind in COUNTED_KINDS:
        values = np.rint(values)
    windows = [(onset - width // 2, onset + width // 2) for onset in onsets]
    return Generated(kind, at_s, values, onsets, [fault.__name__ for fault in chosen], windows)


def collection(seed: int, per_kind: int) -> list[Generated]:
    """Return `per_kind` series of every kind, each with a seed of its own that follows from `seed`."""
    return [generated(kind, seed * 1000 + number) for kind in KINDS for number in range(per_kind)]
