"""Settings of what is advised about the number of monitors."""

from __future__ import annotations

from dataclasses import dataclass

from controller.config.declarations import SettingType, integer, number, other
from controller.scaling.learners import DEFAULT_LEARNER, LEARNERS

OFF, ADVISE, APPLY = "off", "advise", "apply"

MOST_MONITORS = 256
"""Monitors that a pool may be said to have at most."""


@dataclass(frozen=True, slots=True)
class ScalingSettings:
    """How many monitors should share the switches: whether that is advised, or done too, and by what."""

    mode: str = other(
        SettingType.CHOICE,
        OFF,
        "Whether the monitor that divides the switches advises how many there should be, or sees to it too.",
        (OFF, ADVISE, APPLY),
    )
    learner: str = other(SettingType.CHOICE, DEFAULT_LEARNER, "The learner, or rule, that advises.", tuple(LEARNERS))
    slo_lateness: float = number(
        0.25, 0.001, 8, "intervals", "How late 99 of 100 polls may be, in terms of the time between two polls."
    )
    limit: int = integer(16, 1, MOST_MONITORS, "monitors", "Most monitors; beyond them polls become rarer.")
    least: int = integer(2, 1, MOST_MONITORS, "monitors", "Fewest monitors.")
    interval_s: int = integer(300, 5, 86400, "s", "Time between two advices, over which load is measured.")
    alpha: float = number(0.5, 0, 0.99, "", "Weight of what a learner knew beside what it sees.")
    beta: float = number(0.5, 0, 0.99, "", "Weight of what follows an action beside what it brings at once.")
    gamma: float = number(0.8, 0.51, 0.99, "", "Part of `slo_lateness` above which the heuristics ask for more.")
    window: int = integer(32, 2, 1024, "intervals", "Intervals over which the heuristics look for what rises most.")
    command: tuple[str, ...] = other(
        SettingType.WORDS,
        (),
        "Program, and its first arguments, that starts or ends monitors; `monitors` and how many there shall be "
        "follow. Without one no monitor is started.",
    )
    seed: int = integer(1, 0, (1 << 63) - 1, "", "Decides what a learner draws.")
