"""Settings of probes: what scripts that look at a running controller may take."""

from __future__ import annotations

from dataclasses import dataclass

from controller.config.declarations import SettingType, integer, number, other


@dataclass(frozen=True, slots=True)
class Probes:
    """Scripts that look at a running controller, and what they may take of it."""

    enabled: bool = other(SettingType.BOOLEAN, True, "Whether scripts may look at this controller.")
    budget_pct: float = number(
        5, 0.01, 50, "%", "Time of each loop that all scripts together may take; what comes beyond is counted."
    )
    keys: int = integer(4096, 1, 65536, "keys", "Keys of a bag or an aggregate of a script.")
    scripts: int = integer(8, 1, 64, "scripts", "Scripts that may run at one time.")
