"""Settings of policy discovery: whether a running controller looks for rules that its configuration follows."""

from __future__ import annotations

from dataclasses import dataclass

from controller.config.declarations import SettingType, number, other
from controller.durations import DAY_S


@dataclass(frozen=True, slots=True)
class PolicyDiscovery:
    """Rules that the settings of switches and ports follow, found as they change."""

    enabled: bool = other(
        SettingType.BOOLEAN, False, "Whether changes of settings are recorded, and rules are looked for in them."
    )
    window_s: float = number(30 * DAY_S, 60, 3650 * DAY_S, "s", "How far back changes count, from the newest on.")
    interval_s: float = number(3600, 1, 7 * DAY_S, "s", "How often rules are looked for.")
