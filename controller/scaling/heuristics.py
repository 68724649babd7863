"""The article's heuristics: when to scale, and which tier, from how the last intervals went."""

from __future__ import annotations

from collections import deque

from controller.scaling.model import PoolReading, ScalingAdvice

MUCH_TOO_LATE = 2.0
"""In terms of the SLO: from here on two members come at a time."""

BIG_STEP = 2


class ScalingHeuristics:
    """Scales up above `gamma` of the SLO, down below 1 - `gamma` of it, and leaves the pool as it is between them.

    The article has no change "below gamma or above 1 - gamma", which always holds for a gamma above one half, as its
    two other rules need it; *and* is meant.

    Parameters
    ----------
    gamma
        Above 0.5 and below 1.
    window
        Intervals that tiers are compared over, from 2 on; the article has 32 actions.
    """

    def __init__(self, gamma: float = 0.8, window: int = 32) -> None:
        if not 0.5 < gamma < 1:
            raise ValueError(f"gamma {gamma} must be above 0.5 and below 1")
        self.gamma = gamma
        self._readings: deque[PoolReading] = deque(maxlen=window)

    def note(self, reading: PoolReading) -> None:
        """Take in how an interval went."""
        if self._readings and self._readings[-1].number + 1 != reading.number:
            self._readings.clear()
        self._readings.append(reading)

    def advise(self, reading: PoolReading) -> ScalingAdvice | None:
        """Take in how an interval went and return what should change."""
        self.note(reading)
        return self.suggestion()

    def suggestion(self) -> ScalingAdvice | None:
        """Return what should change after the interval that was noted last, None where nothing should."""
        reading = self._readings[-1]
        pressure, gamma = reading.pressure, self.gamma
        if pressure > gamma or any(tier.errors for tier in reading.tiers):
            tier, why = self.bottleneck()
            change = BIG_STEP if pressure > MUCH_TOO_LATE else 1
            return ScalingAdvice(tier, change, f"{pressure:.2f} of the SLO is above {gamma:g}; {why}")
        if pressure < 1 - gamma:
            tier, why = self.idlest()
            return ScalingAdvice(tier, -1, f"{pressure:.2f} of the SLO is below {1 - gamma:g}; {why}")
        return None

    def bottleneck(self) -> tuple[int, str]:
        """Return the tier to scale up, and why: by errors that rise, by lateness that rises, by lateness."""
        latest, tiers = self._readings[-1].tiers, range(len(self._readings[-1].tiers))
        errors = [latest[tier].errors - min(each.tiers[tier].errors for each in self._readings) for tier in tiers]
        if max(errors) > 0:
            return errors.index(max(errors)), "its errors rise most"
        rises = [latest[tier].lateness - min(each.tiers[tier].lateness for each in self._readings) for tier in tiers]
        if max(rises) > 0:
            return rises.index(max(rises)), "its lateness rises most"
        late = [tier.lateness for tier in latest]
        return late.index(max(late)), "its results are the latest"

    def idlest(self) -> tuple[int, str]:
        """Return the tier to scale down, and why: by lateness that falls, by lateness; one with a member stays."""
        latest = self._readings[-1].tiers
        able = [tier for tier in range(len(latest)) if latest[tier].members > 1] or [0]
        falls = {
            tier: max(each.tiers[tier].lateness for each in self._readings) - latest[tier].lateness for tier in able
        }
        most = max(able, key=lambda tier: (falls[tier], -tier))
        if falls[most] > 0:
            return most, "its lateness falls most"
        return min(able, key=lambda tier: (latest[tier].lateness, tier)), "its results are the earliest"
