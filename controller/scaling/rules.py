"""Rules that learn nothing: votes by thresholds, the usage in proportion, and the same need as one period ago."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from controller.scaling.model import PoolReading, ScalingAdvice, members_for

MAJORITY = 0.51
"""The part of a tier's members whose votes decide."""

CALM_INTERVALS = 3
"""Intervals that a tier is left alone after it changed."""

RESIZED_BY = 2
"""Members that come, or go, where a vote decides."""

TOLERANCE = 0.1
"""How far usage may be from its target, as a part of it, before members come or go."""


class ThresholdVotes:
    """Each member votes to grow above one usage and to shrink below another: RightScale's alert-based scaling.

    Parameters
    ----------
    up, down
        The usages; `down` is below `up`.
    """

    def __init__(self, up: float = 0.7, down: float = 0.4) -> None:
        if not 0 < down < up:
            raise ValueError(f"down {down} must be above 0 and below up {up}")
        self._up = up
        self._down = down
        self._calm_until: dict[int, int] = {}

    def advise(self, reading: PoolReading) -> ScalingAdvice | None:
        """Return what the votes decide about the tier with the clearest one."""
        best: tuple[float, ScalingAdvice] | None = None
        for number, tier in enumerate(reading.tiers):
            if self._calm_until.get(number, 0) > reading.number:
                continue
            over = sum(usage > self._up for usage in tier.usages) / tier.members
            under = sum(usage < self._down for usage in tier.usages) / tier.members
            if over >= MAJORITY:
                said = f"{over:.0%} of its members are above {self._up:.0%}"
                advice = ScalingAdvice(number, RESIZED_BY, said)
            elif under >= MAJORITY:
                said = f"{under:.0%} of its members are below {self._down:.0%}"
                advice = ScalingAdvice(number, -min(RESIZED_BY, tier.members - 1), said)
            else:
                continue
            if advice.change and (best is None or (over, under) > (best[0], 0)):
                best = (over, advice)
        if best is None:
            return None
        self._calm_until[best[1].tier] = reading.number + 1 + CALM_INTERVALS
        return best[1]


class ProportionalUsage:
    """Has as many members as bring usage to its target: Kubernetes' horizontal pod autoscaler.

    Parameters
    ----------
    target
        The usage, above 0.
    """

    def __init__(self, target: float = 0.7) -> None:
        if not target > 0:
            raise ValueError(f"target {target} must be above 0")
        self._target = target

    def advise(self, reading: PoolReading) -> ScalingAdvice | None:
        """Return the change of the tier whose usage is farthest from the target."""
        ratios = [tier.usage / self._target for tier in reading.tiers]
        for number in sorted(range(len(ratios)), key=lambda at: (-ratios[at] if ratios[at] > 1 else 0, ratios[at])):
            if abs(ratios[number] - 1) <= TOLERANCE:
                continue
            tier = reading.tiers[number]
            change = max(1, ceil(tier.members * ratios[number] - 1e-9)) - tier.members
            if change:
                said = f"usage is {tier.usage:.0%}, and is to be {self._target:.0%}"
                return ScalingAdvice(number, change, said)
        return None


class SameAsYesterday:
    """Has members for the larger of the loads now and one period before the next interval, with a fixed head-room.

    Parameters
    ----------
    fill
        The part of the time that a member is to be busy, above 0 and at most 1.
    """

    def __init__(self, fill: float = 0.85) -> None:
        if not 0 < fill <= 1:
            raise ValueError(f"fill {fill} must be above 0 and at most 1")
        self._fill = fill

    def advise(self, reading: PoolReading) -> ScalingAdvice | None:
        """Return the change of the tier that lacks most, or has most to spare where none lacks any."""
        wanted = tuple(members_for(load, self._fill) for load in needed_loads(reading))
        return farthest(reading, wanted, f"the load now, or one period before the next interval, at {self._fill:.0%}")


def needed_loads(reading: PoolReading) -> tuple[float, ...]:
    """Return of each tier the larger of its loads now and one period before the next interval."""
    later = reading.load_next or (0.0,) * len(reading.tiers)
    return tuple(max(tier.load, next_) for tier, next_ in zip(reading.tiers, later, strict=True))


def farthest(reading: PoolReading, wanted: Sequence[int], why: str) -> ScalingAdvice | None:
    """Return what brings the tier that lacks most to what is wanted, or has most to spare where none lacks any."""
    changes = [want - tier.members for tier, want in zip(reading.tiers, wanted, strict=True)]
    tier = max(range(len(changes)), key=lambda at: (changes[at] > 0, abs(changes[at]), -at))
    return ScalingAdvice(tier, changes[tier], f"{why} takes {wanted[tier]}") if changes[tier] else None
