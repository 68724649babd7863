"""Settings of rolling maintenance."""

from __future__ import annotations

from dataclasses import dataclass

from controller.config.declarations import integer, number


@dataclass(frozen=True, slots=True)
class Maintenance:
    """How many switches are taken out at a time, and how long each step may last."""

    min_ready_pct: float = number(
        75, 0, 100, "%", "Switches of a redundancy group that stay in use, rounded down to whole switches."
    )
    max_concurrent: int = integer(4, 1, 1024, "switches", "Switches in work at a time, in the whole fabric.")
    max_utilisation_pct: float = number(
        80, 1, 1000, "%", "How busy a link may become when a switch is drained; it waits while one would be busier."
    )
    failures: int = integer(1, 1, 1024, "switches", "Failed switches after which no other one is begun.")
    quiet_bps: float = number(
        100000, 0, 1e12, "bit/s", "A drained switch is quiet when no link to another switch carries more."
    )
    quiet_s: float = number(2, 0.5, 3600, "s", "Time for which a switch has to be quiet, and later to be back.")
    preflight_limit_s: float = number(
        600, 1, 604800, "s", "Time after which a switch that cannot be begun has failed."
    )
    quiet_limit_s: float = number(120, 1, 86400, "s", "Time in which a drained switch has to be quiet.")
    back_limit_s: float = number(600, 1, 86400, "s", "Time in which an upgraded switch has to be back.")
    errors_per_s: float = number(
        0.1,
        0,
        1e9,
        "1/s",
        "How many more errors than before a port of an upgraded switch, or the other end, may have.",
    )
    soak_s: float = number(30, 0, 604800, "s", "Time for which a switch is watched before it counts as done.")
