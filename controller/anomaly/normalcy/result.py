"""What the normalcy determination returns for one series."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from controller.anomaly.normalcy.bounds import Bounds
from controller.anomaly.normalcy.cyclochart import Cycle
from controller.anomaly.normalcy.series import NOTHING_LEFT_OUT, Floats, InputCounts

CORRUPTED = "corrupted"


@dataclass(frozen=True, slots=True)
class SeriesNormalcy:
    """Category, period and bounds of a series, and why.

    `bounds` is None where the series is corrupted. `since_s` is where the selected portion starts; `longest_gap_s`
    the longest normal silence where silence is part of the data; `kind` tells more of the category (of a trend:
    linear).
    """

    category: str
    reason: str
    bounds: Bounds | None = None
    period_s: float = 0.0
    kind: str = ""
    start_up: bool = False
    since_s: float | None = None
    longest_gap_s: float | None = None
    cycle: Cycle | None = field(default=None, compare=False)
    counts: InputCounts = NOTHING_LEFT_OUT

    @property
    def periodic(self) -> bool:
        """Whether a period was found."""
        return self.period_s > 0

    def project(self, start_s: float, end_s: float) -> tuple[Floats, Floats, Floats]:
        """Return times, lower and upper bounds of the slots that start in [start_s, end_s), float64[n] each."""
        if self.bounds is None:
            empty = np.empty(0)
            return empty, empty, empty
        slot_s, origin_s = self.bounds.slot_s, self.bounds.origin_s
        first, last = np.ceil((start_s - origin_s) / slot_s), np.ceil((end_s - origin_s) / slot_s)
        at_s: Floats = np.arange(first, last, dtype=np.float64) * slot_s + origin_s
        lower, upper = self.bounds.at(at_s)
        if self.bounds.trend is not None:
            later_lower, later_upper = self.bounds.at(at_s + slot_s * (1 - 1e-9))
            same = self.bounds.slots(at_s) == self.bounds.slots(at_s + slot_s * (1 - 1e-9))
            lower = np.where(same, np.minimum(lower, later_lower), lower)
            upper = np.where(same, np.maximum(upper, later_upper), upper)
        return at_s, lower, upper
