"""Every learner and rule by its name, with the parameters that it is compared with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from controller.scaling.heuristics import ScalingHeuristics
from controller.scaling.model import Chance, Learner
from controller.scaling.rules import ProportionalUsage, SameAsYesterday, ThresholdVotes
from controller.scaling.seasonal import SeasonalQ
from controller.scaling.vscale import VScale

DEFAULT_LEARNER = "yesterday"


class LearnerParameters(NamedTuple):
    """What the article's learner and its heuristics are set by; others know nothing of it."""

    alpha: float = 0.5
    beta: float = 0.5
    gamma: float = 0.8
    window: int = 32


DEFAULT_PARAMETERS = LearnerParameters()

LEARNERS: Mapping[str, Callable[[Chance, LearnerParameters], Learner]] = MappingProxyType(
    {
        "yesterday": lambda chance, given: SameAsYesterday(),
        "yesterday-75": lambda chance, given: SameAsYesterday(0.75),
        "seasonal-q": lambda chance, given: SeasonalQ(chance),
        "vscale": lambda chance, given: VScale(chance, *given),
        "vscale-literal": lambda chance, given: VScale(chance, *given, literal=True),
        "vscale-no-heuristics": lambda chance, given: VScale(chance, *given, has_heuristics=False),
        "heuristics": lambda chance, given: ScalingHeuristics(given.gamma, given.window),
        "threshold": lambda chance, given: ThresholdVotes(),
        "threshold-60-30": lambda chance, given: ThresholdVotes(0.6, 0.3),
        "proportional": lambda chance, given: ProportionalUsage(),
        "proportional-80": lambda chance, given: ProportionalUsage(0.8),
    }
)


def make_learner(name: str, chance: Chance, parameters: LearnerParameters = DEFAULT_PARAMETERS) -> Learner:
    """Return a learner that has learnt nothing; KeyError where there is none of that name."""
    return LEARNERS[name](chance, parameters)
