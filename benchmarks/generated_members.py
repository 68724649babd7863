"""Groups of servers that are unlike each other, made by a seed: what is measured of them, and their faults."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from controller.anomaly.series import RawSeries, SeriesName

Floats = NDArray[np.float64]

INTERVAL_S = 300.0
DAY_SAMPLES = 288
TRAINING_DAYS, JUDGED_DAYS = 20, 12
FAULT_KINDS = ("level", "unrest", "still", "load", "busy", "apart")


class MembersFault(NamedTuple):
    """What is wrong with a member from sample `start` to sample `stop`, counted from the first one."""

    kind: str
    member: int
    start: int
    stop: int


class MembersRun(NamedTuple):
    """Metrics of each member of a group, (members, metrics, samples), and the faults after the training days."""

    values: Floats
    faults: tuple[MembersFault, ...]

    @property
    def judged_from(self) -> int:
        """The first sample that is not for training."""
        return TRAINING_DAYS * DAY_SAMPLES

    def series(self) -> list[RawSeries]:
        """Return the metrics as a metric file would have them; the first sample is at one interval."""
        members, metrics, samples = self.values.shape
        at_s = INTERVAL_S * np.arange(1, samples + 1)
        return [
            RawSeries(
                SeriesName(f"server{member:02d}", "servers", f"metric{metric:02d}"), at_s, self.values[member, metric]
            )
            for member in range(members)
            for metric in range(metrics)
        ]

    def labels(self) -> dict[str, NDArray[np.bool_]]:
        """Return for each member which samples of the days judged a fault touches."""
        members, _, samples = self.values.shape
        found = {f"server{member:02d}": np.zeros(samples - self.judged_from, np.bool_) for member in range(members)}
        for fault in self.faults:
            found[f"server{fault.member:02d}"][fault.start - self.judged_from : fault.stop - self.judged_from] = True
        return found


def generated_members(seed: int, members: int | None = None, faults: int = 14) -> MembersRun:
    """Return a run: days without a fault, then days with some, each of one member alone.

    The seed decides how many members and metrics there are, how each metric follows the member's load, how loads
    follow the day and differ from each other, which metrics have bursts, are counts, stand still or drift, and what
    the faults are and how bad. A member's load changes for days at a time without anything being wrong, and all of
    them share some days that are unlike others.
    """
    rng = np.random.default_rng(seed)
    count = int(rng.integers(5, 15)) if members is None else members
    metrics = int(rng.integers(8, 24))
    days = TRAINING_DAYS + JUDGED_DAYS
    samples = days * DAY_SAMPLES
    hours = np.arange(samples) / DAY_SAMPLES * 2 * np.pi
    shared = 1 + rng.uniform(0.1, 0.6) * np.sin(hours + rng.uniform(0, 2 * np.pi))
    shared = shared * np.repeat(rng.lognormal(0, 0.1, days), DAY_SAMPLES)
    loads = np.empty((count, samples))
    for member in range(count):
        own_swing = 1 + rng.uniform(0, 0.3) * np.sin(hours + rng.uniform(0, 2 * np.pi))
        of_days = np.exp(np.cumsum(rng.normal(0, rng.uniform(0, 0.06), days)))
        loads[member] = rng.lognormal(0, 0.5) * shared * own_swing * np.repeat(of_days, DAY_SAMPLES)
    loads *= _wandering(rng, count, samples, rng.uniform(0.05, 0.3))
    made = _faults(rng, count, samples, faults)
    normal_loads = loads.copy()
    for fault in made:
        if fault.kind in ("load", "busy"):
            loads[fault.member, fault.start : fault.stop] *= (
                rng.uniform(1.8, 4) if fault.kind == "busy" else rng.uniform(0.1, 0.5)
            )
    values = np.empty((count, metrics, samples))
    for metric in range(metrics):
        values[:, metric] = _metric(rng, loads)
    for fault in made:
        _put(fault, rng, values, normal_loads)
    return MembersRun(values, tuple(made))


def _faults(rng: np.random.Generator, members: int, samples: int, count: int) -> list[MembersFault]:
    """Draw faults that do not touch each other, of 40 minutes to ten hours each."""
    first = TRAINING_DAYS * DAY_SAMPLES
    room = (samples - first) // count
    found = []
    for number in range(count):
        length = int(np.exp(rng.uniform(np.log(8), np.log(min(120, room - 60)))))
        start = first + number * room + int(rng.integers(12, room - length - 36))
        found.append(MembersFault(str(rng.choice(FAULT_KINDS)), int(rng.integers(members)), start, start + length))
    return found


def _metric(rng: np.random.Generator, loads: Floats) -> Floats:
    """Return a metric of each member, (members, samples), that follows the loads more or less."""
    members, samples = loads.shape
    kind = str(rng.choice(["load", "load", "curved", "apart", "bursts", "count", "idle", "drift"]))
    offsets = rng.lognormal(0, rng.uniform(0, 0.6), (members, 1))
    noise = _wandering(rng, members, samples, rng.uniform(0.02, 0.3)) * np.exp(
        rng.normal(0, rng.uniform(0.01, 0.2), (members, samples))
    )
    if kind == "load":
        return np.asarray(offsets * loads * noise)
    if kind == "curved":
        return np.asarray(offsets * loads ** rng.uniform(0.3, 2.0) * noise)
    if kind == "apart":
        return np.asarray(offsets * noise)
    if kind == "bursts":
        out = rng.random((members, samples)) < rng.uniform(0.002, 0.03)
        return np.asarray(offsets * noise * (1 + out * rng.pareto(1.5, (members, samples)).clip(0, 50)))
    if kind == "count":
        return rng.poisson(rng.uniform(0.5, 20) * offsets * loads).astype(np.float64)
    if kind == "idle":
        return np.asarray(
            (rng.random((members, samples)) < rng.uniform(0.0005, 0.01)) * rng.lognormal(0, 1, (members, samples))
        )
    steps = rng.normal(0, rng.uniform(0.0005, 0.004), (members, samples))
    return np.asarray(offsets * np.exp(np.cumsum(steps, axis=1)) * np.exp(rng.normal(0, 0.05, (members, samples))))


def _put(fault: MembersFault, rng: np.random.Generator, values: Floats, loads: Floats) -> None:
    """Change what is measured while a fault lasts; a change of load is in all that follows it already."""
    if fault.kind in ("load", "busy"):
        return
    metrics = values.shape[1]
    chosen = rng.choice(metrics, int(rng.integers(1, max(2, metrics // 3) + 1)), replace=False)
    for metric in chosen.tolist():
        before = values[fault.member, metric, : TRAINING_DAYS * DAY_SAMPLES]
        low, middle, high = np.quantile(before, (0.05, 0.5, 0.95))
        width = max(high - low, 0.05 * abs(middle), 1e-3)
        part = values[fault.member, metric, fault.start : fault.stop]
        if fault.kind == "level":
            part += rng.uniform(0.7, 3) * width * rng.choice([-1, 1])
            np.maximum(part, 0, out=part)
        elif fault.kind == "unrest":
            part += rng.normal(0, rng.uniform(0.7, 2) * width, len(part))
            np.maximum(part, 0, out=part)
        elif fault.kind == "still":
            part[:] = part[0]
        else:
            part[:] = middle * loads[fault.member].mean() / loads[fault.member, fault.start : fault.stop]


def _wandering(rng: np.random.Generator, count: int, samples: int, deviation: float) -> Floats:
    """Return positive noise around 1 that stays near itself for an hour or so, (count, samples)."""
    kept = float(np.exp(-1 / rng.uniform(4, 24)))
    steps = rng.normal(0, deviation * np.sqrt(1 - kept**2), (count, samples))
    level = rng.normal(0, deviation, count)
    found = np.empty((count, samples))
    for sample in range(samples):
        level = kept * level + steps[:, sample]
        found[:, sample] = level
    return np.asarray(np.exp(found - deviation**2 / 2))
