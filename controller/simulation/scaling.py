"""A pool whose load comes and goes, interval by interval, under a learner: how often the SLO is met, and by how many.

A tier is a queue of work that its members take off together. An interval has `STEPS` steps, between which the load
varies; what a step leaves undone the next one has beside its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, pi, sin
from typing import NamedTuple

import numpy as np

from controller.scaling.model import DEFAULT_BOUNDS, Learner, PoolBounds, PoolReading, ScalingAdvice, TierReading

STEPS = 5
"""Steps of an interval."""

STEP_VARIATION = 0.04
"""Standard deviation of the load of a step, as a part of the interval's."""

MEMBER_VARIATION = 0.04
"""Standard deviation of what members get of the load, as a part of an even share."""

IDLE_LATENESS = 0.0092
"""Lateness of 99 of 100 results of a member that has nothing else to do, in intervals between polls."""

POLLS_PER_STEP = 6.0
"""Intervals between polls in a step: a minute has six of ten seconds."""

MOST_USAGE = 0.99
"""Up to here lateness grows as one over what is left; beyond it work is left undone."""

GIVEN_UP = 1.0
"""Lateness in intervals between polls, above which a poll is skipped."""


class LoadTrace(NamedTuple):
    """Work that comes in each interval, in members that it keeps busy, and after how many intervals it repeats."""

    loads: tuple[float, ...]
    period: int


class ScalingRun(NamedTuple):
    """What became of a pool, interval by interval: whether the SLO was met, and how many members there were."""

    met: tuple[bool, ...]
    members: tuple[int, ...]
    advices: tuple[ScalingAdvice | None, ...]

    def met_pct(self, start: int = 0, end: int | None = None) -> float:
        """Return in how many of 100 intervals from `start` to before `end` the SLO was met."""
        part = self.met[start:end]
        return 100.0 * sum(part) / len(part)

    def mean_members(self, start: int = 0, end: int | None = None) -> float:
        """Return the mean number of members from `start` to before `end`."""
        part = self.members[start:end]
        return sum(part) / len(part)


def diurnal(seed: int, days: int = 12, intervals: int = 288, mean_load: float = 7.0) -> LoadTrace:
    """Return days that follow the sun, each with a storm in the morning, when everybody begins.

    `intervals` is how many a day has; its height, and when the storm comes, differ a little from day to day.
    """
    generator = np.random.default_rng(seed)
    loads: list[float] = []
    for _ in range(days):
        height, late = generator.normal(1.0, 0.04), generator.normal(0.0, 0.004)
        for at in range(intervals):
            day = at / intervals
            sun = max(0.0, sin(pi * (day - 0.25) / 0.6)) if 0.25 <= day < 0.85 else 0.0
            since = day - 0.34 - late
            storm = 0.7 * exp(-since / 0.03) if since >= 0 else 0.0
            loads.append(mean_load * height * (0.35 + 1.2 * sun + storm) * float(generator.normal(1.0, 0.02)))
    return LoadTrace(tuple(loads), intervals)


def tournament(seed: int, repetitions: int = 4, mean_load: float = 4.5) -> LoadTrace:
    """Return a load of the shape of the 1998 World Cup's: 92 days, an interval each, quiet, then matches, then over.

    The days of matches and their heights are drawn once and repeat; each repetition varies by a few hundredths.
    """
    generator = np.random.default_rng(seed)
    shape: list[float] = []
    for day in range(92):
        if day < 45:
            level = 0.25 + 0.35 * day / 45
        elif day < 78:
            level = 1.2 + 0.8 * sin(pi * (day - 45) / 33)
        else:
            level = 0.9 * exp(-(day - 78) / 6) + 0.2
        if 45 <= day < 78 and generator.random() < 0.4:
            level *= float(generator.uniform(1.2, 1.8))
        shape.append(level)
    loads = [mean_load * level * float(generator.normal(1.0, 0.03)) for _ in range(repetitions) for level in shape]
    return LoadTrace(tuple(loads), len(shape))


def run_scaling(
    trace: LoadTrace,
    learner: Learner,
    seed: int = 0,
    slo: float = 0.25,
    bounds: PoolBounds = DEFAULT_BOUNDS,
    weights: Sequence[float] = (1.0,),
) -> ScalingRun:
    """Run a pool under a learner; what it advises after an interval holds from the next one on.

    Parameters
    ----------
    weights
        What each tier makes of the load; one tier by default.
    """
    generator = np.random.default_rng([seed, 1])
    tiers = [SimulatedTier(max(bounds.least, 1 + int(trace.loads[0] * weight)), weight) for weight in weights]
    met: list[bool] = []
    members: list[int] = []
    advices: list[ScalingAdvice | None] = []
    for number, load in enumerate(trace.loads):
        readings = tuple(tier.interval(load, generator) for tier in tiers)
        before = number + 1 - trace.period
        load_next = tuple(trace.loads[before] * weight for weight in weights) if before >= 0 else None
        reading = PoolReading(number, readings, slo, load_next)
        met.append(reading.is_met)
        members.append(sum(tier.members for tier in tiers))
        advice = bounds.held(reading, learner.advise(reading))
        advices.append(advice)
        if advice is not None:
            tiers[advice.tier].members += advice.change
    return ScalingRun(tuple(met), tuple(members), tuple(advices))


class SimulatedTier:
    """Members that take work off one queue, and what the queue holds, in steps of a member's work."""

    def __init__(self, members: int, weight: float) -> None:
        self.members = members
        self._weight = weight
        self._queued = 0.0

    def interval(self, load: float, generator: np.random.Generator) -> TierReading:
        """Go through an interval of this load, and return how it went."""
        late = errors = 0.0
        for variation in generator.normal(1.0, STEP_VARIATION, STEPS).tolist():
            work = self._queued + max(0.0, load * self._weight * variation)
            usage = work / self.members
            self._queued = max(0.0, work - self.members)
            waits = self._queued / self.members * POLLS_PER_STEP
            lateness = IDLE_LATENESS / (1 - min(usage, MOST_USAGE)) + waits
            self._queued = min(self._queued, self.members * GIVEN_UP / POLLS_PER_STEP)
            late = max(late, lateness)
            errors += lateness > GIVEN_UP
        shares = generator.normal(1.0, MEMBER_VARIATION, self.members)
        each = load * self._weight / self.members
        return TierReading(self.members, load * self._weight, tuple((each * shares).tolist()), late, errors)
