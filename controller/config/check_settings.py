"""Settings of the background check of switches."""

from __future__ import annotations

from dataclasses import dataclass

from controller.config.declarations import number


@dataclass(frozen=True, slots=True)
class Check:
    """How often what switches hold is compared with what they had confirmed."""

    interval_s: float = number(
        60, 0, 86400, "s", "Time in which every switch's entries are read once and repaired; 0 reads none."
    )
