"""What a learner is told of a pool after each interval, and what it advises for the next one.

The terms are those of "Scaling of Cloud Applications Using Machine Learning" (vScale, VMware Technical Journal 2013):
an application has tiers, a tier has members (virtual machines there, monitors here), and the service level objective
(SLO) bounds the latency that 99 of 100 requests see.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from typing import Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

Chance: TypeAlias = Callable[[], float]
"""Draws a number from 0 to below 1, evenly."""


class TierReading(NamedTuple):
    """How one tier fared in an interval.

    Attributes
    ----------
    members
        Members at work in the interval, at least 1.
    load
        Work that came, in members: 2.5 keeps two and a half of them busy. It may exceed `members`.
    usages
        Of each member, how much of its scarcest resource is taken; from 0 on, 1 being all of it.
    lateness
        The 99th percentile of how late results were, in the unit of the SLO.
    errors
        Results that were given up.
    """

    members: int
    load: float
    usages: tuple[float, ...]
    lateness: float
    errors: float = 0.0

    @property
    def usage(self) -> float:
        """The mean usage of the tier's members."""
        return sum(self.usages) / len(self.usages)


class PoolReading(NamedTuple):
    """How a pool fared in an interval.

    Attributes
    ----------
    number
        Of the interval, counted from 0.
    tiers
        Its tiers, in the order of requests; always as many.
    slo
        What the latenesses of all tiers together must not exceed, above 0, in their unit.
    load_next
        What `load` of each tier was in the interval that came one period before the next one; None where the period
        is not known, or no whole one has passed yet.
    """

    number: int
    tiers: tuple[TierReading, ...]
    slo: float
    load_next: tuple[float, ...] | None = None

    @property
    def lateness(self) -> float:
        """The lateness from end to end."""
        return sum(tier.lateness for tier in self.tiers)

    @property
    def pressure(self) -> float:
        """The lateness in terms of the SLO, which is met up to 1."""
        return self.lateness / self.slo

    @property
    def usage(self) -> float:
        """The usage of the most constrained tier."""
        return max(tier.usage for tier in self.tiers)

    @property
    def is_met(self) -> bool:
        """Whether the SLO was met, and nothing given up."""
        return self.pressure <= 1 and not any(tier.errors for tier in self.tiers)


class ScalingAdvice(NamedTuple):
    """What should become of one tier: `change` members more, or fewer where it is negative; and why."""

    tier: int
    change: int
    reason: str


class PoolBounds(NamedTuple):
    """The fewest members of a tier, and the most of all tiers together."""

    least: int = 1
    limit: int = 64

    def held(self, reading: PoolReading, advice: ScalingAdvice | None) -> ScalingAdvice | None:
        """Return the part of an advice that the bounds leave, None where that is nothing."""
        if advice is None:
            return None
        members = reading.tiers[advice.tier].members
        if advice.change > 0:
            change = min(advice.change, max(0, self.limit - sum(tier.members for tier in reading.tiers)))
        else:
            change = max(advice.change, min(0, self.least - members))
        return advice._replace(change=change) if change else None


DEFAULT_BOUNDS = PoolBounds()


class Learner(Protocol):
    """Advises what should become of a pool; some learn from what follows."""

    def advise(self, reading: PoolReading) -> ScalingAdvice | None:
        """Take in how an interval went and return what should change, None where nothing should.

        Whatever the pool has at the next call, it is told by that reading: an advice need not have been followed.
        """


@runtime_checkable
class RememberingLearner(Learner, Protocol):
    """A learner whose knowledge outlasts it."""

    def saved(self) -> list[Any]:
        """Return what was learnt as lists, numbers and texts, what is worth most last.

        Where its text has more than 8 KiB (`table.WHOLE_BYTES`) its last parts alone may be restored.
        """

    def restore(self, saved: Any) -> None:
        """Know what was learnt before, in the place of what is known; ValueError where it makes no sense."""


def members_for(load: float, fill: float = 1.0) -> int:
    """Return how many members take a load where each is to be busy for this part of the time; at least 1."""
    return max(1, ceil(load / fill - 1e-9))


def reward_of(reading: PoolReading, gamma: float) -> float:
    """Return how well an interval went, 1 at best.

    The article has this as a picture: a concave function below the SLO, which falls where much is idle, and another
    one above it. Here it is a parabola around `gamma` of the SLO, or of the most constrained resource, whichever is
    more; and above the SLO -(1 + (pressure - 1)^2), which is bounded at four times the SLO.
    """
    if not reading.is_met:
        return -(1.0 + (min(max(reading.pressure, 1.0), 4.0) - 1.0) ** 2)
    closeness = max(reading.pressure, reading.usage)
    return 1.0 - ((closeness - gamma) / (gamma / 2)) ** 2
