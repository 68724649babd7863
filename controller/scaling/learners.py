"""Every learner and rule by its name, with the parameters that it is compared with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from controller.scaling.heuristics import ScalingHeuristics
from controller.scaling.model import Chance, Learner
from controller.scaling.rules import ProportionalUsage, SameAsYesterday, ThresholdVotes
from controller.scaling.seasonal import SeasonalQ
from controller.scaling.vscale import VScale

DEFAULT_LEARNER = "yesterday"

LEARNERS: Mapping[str, Callable[[Chance], Learner]] = MappingProxyType(
    {
        "yesterday": lambda chance: SameAsYesterday(),
        "yesterday-75": lambda chance: SameAsYesterday(0.75),
        "seasonal-q": SeasonalQ,
        "vscale": VScale,
        "vscale-literal": lambda chance: VScale(chance, literal=True),
        "vscale-no-heuristics": lambda chance: VScale(chance, has_heuristics=False),
        "heuristics": lambda chance: ScalingHeuristics(),
        "threshold": lambda chance: ThresholdVotes(),
        "threshold-60-30": lambda chance: ThresholdVotes(0.6, 0.3),
        "proportional": lambda chance: ProportionalUsage(),
        "proportional-80": lambda chance: ProportionalUsage(0.8),
    }
)
