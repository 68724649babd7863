"""Settings of the live comparison of ports and switches with their peers."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import NamedTuple

from controller.config.declarations import SettingType, integer, number, optional_integer, other, section

PEER_GROUPS = (
    *(
        f"{tier} {members}"
        for tier in ("tor", "aggregation", "core")
        for members in ("uplinks", "downlinks", "trunks", "edge ports", "switches")
    ),
    *("switch trunks", "switch edge ports", "switches"),
)
"""The peer groups that there may be; where ports have their peers in the pod, each pod has those of its own."""


@dataclass(frozen=True, slots=True)
class Watched:
    """Which metrics are compared."""

    lost: bool = other(SettingType.BOOLEAN, True, "Packets that a port sends and the other end of its cable misses.")
    errors: bool = other(SettingType.BOOLEAN, True, "Receive and transmit errors of ports.")
    drops: bool = other(SettingType.BOOLEAN, True, "Packets that ports drop.")
    load: bool = other(SettingType.BOOLEAN, True, "Utilisation of ports, packets through switches.")
    silence: bool = other(
        SettingType.BOOLEAN, True, "Ports to other switches that carry less than a tenth of what they used to."
    )
    cpu: bool = other(SettingType.BOOLEAN, True, "CPU of switches (`monitor.ovsdb`).")
    forwarding: bool = other(
        SettingType.BOOLEAN,
        False,
        "Packets that a switch receives and does not send on; senders to groups without receivers look the same.",
    )


@dataclass(frozen=True, slots=True)
class Least:
    """Differences that are too small to be told apart: the smallest bins."""

    lost_pct: float = number(0.5, 1e-6, 100, "%", "Of the share of packets lost on a cable.")
    errors_per_s: float = number(0.01, 1e-9, 1e9, "1/s", "Of errors.")
    dropped_per_s: float = number(0.1, 1e-9, 1e9, "1/s", "Of dropped packets.")
    utilisation_pct: float = number(1, 1e-6, 100, "%", "Of utilisation.")
    silent_pct: float = number(10, 1e-6, 100, "%", "Of the share of a port's usual packets that is missing.")
    cpu_pct: float = number(2, 1e-6, 100, "%", "Of CPU.")
    unforwarded_pct: float = number(0.5, 1e-6, 100, "%", "Of the share of packets that a switch does not send on.")
    packets_per_s: float = number(100, 1e-6, 1e12, "1/s", "Of packets through a switch.")


@dataclass(frozen=True, slots=True)
class Negligible:
    """Distances from the bounds of what is normal that are none."""

    bytes_per_s: float = number(10000, 1e-6, 1e12, "B/s", "Of bytes received or sent.")
    packets_per_s: float = number(20, 1e-6, 1e12, "1/s", "Of packets received or sent.")
    errors_per_s: float = number(0.01, 1e-9, 1e9, "1/s", "Of errors.")
    dropped_per_s: float = number(0.1, 1e-9, 1e9, "1/s", "Of dropped packets.")


@dataclass(frozen=True, slots=True)
class Normalcy:
    """What is normal for each port by the hour of the day and of the week, and when a port is told to be outside."""

    enabled: bool = other(SettingType.BOOLEAN, False, "Whether bounds are learnt of each port, and events raised.")
    day_s: float = number(86400, 24, 86400, "s", "Length of a day of 24 slots; shorter ones are for trials.")
    least_days: int = integer(7, 1, 200, "days", "Days on which a slot was seen before it has bounds.")
    least_weeks: int = integer(3, 1, 200, "weeks", "Weeks in which a slot was seen before weekly bounds are taken.")
    margin: float = number(0.25, 0, 100, "", "Bounds are wider than what was seen by so much of its width.")
    raise_score: float = number(0.2, 0.001, 0.999, "", "Points with this score or a higher one are anomalous.")
    confirm_points: int = integer(5, 1, 1440, "points", "So many anomalous points in a row raise an event.")
    hold_off_points: int = integer(30, 1, 1440, "points", "So many points in a row without an anomaly clear it.")
    relearn_days: int = integer(3, 1, 200, "days", "After so many days outside in a row a slot's bounds begin anew.")
    ports: int = integer(16384, 1, 1048576, "ports", "Ports that bounds are learnt of at one time; 11 KB each.")
    forget_s: float = number(604800, 60, 1e9, "s", "Time after which a port that is gone is forgotten.")
    negligible: Negligible = section(Negligible)  # noqa: RUF009 - it makes a field

    @property
    def point_s(self) -> int:
        """Time that a point is over: a minute, or a second where days are too short for that."""
        return 60 if self.day_s >= 14400 else 1


@dataclass(frozen=True, slots=True)
class PeerWindows:
    """The windows of a peer group; what is absent is as for the other groups."""

    smoothing_samples: int | None = optional_integer(1, 240, "samples", "Width of the moving average.")
    window_samples: int | None = optional_integer(4, 960, "samples", "Samples of a window.")
    shift_samples: int | None = optional_integer(1, 960, "samples", "Samples from one window to the next.")
    confirm_windows: int | None = optional_integer(1, 16, "windows", "k of the past 2k - 1 windows.")
    hold_off_windows: int | None = optional_integer(
        1, 1000, "windows", "Windows in a row without an anomaly after which it is cleared."
    )
    least_windows: int | None = optional_integer(2, 100000, "windows", "Windows before which a member has no score.")
    learning_windows: int | None = optional_integer(2, 100000, "windows", "Windows that thresholds are learnt from.")
    least_own_windows: int | None = optional_integer(
        2, 100000, "windows", "Windows of its own past from which on a member must be unlike it as well."
    )


class GroupWindows(NamedTuple):
    """The windows of the peer group of a name."""

    peer_group: str
    windows: PeerWindows


@dataclass(frozen=True, slots=True)
class Anomaly:
    """How ports and switches are compared with their peers while the controller runs."""

    interval_s: float = number(15, 1, 3600, "s", "Time that samples are made means of; no less than between polls.")
    smoothing_samples: int = integer(15, 1, 240, "samples", "Width of the moving average.")
    window_samples: int = integer(60, 4, 960, "samples", "Samples of a window.")
    shift_samples: int = integer(30, 1, 960, "samples", "Samples from one window to the next.")
    bins_max: int = integer(1000, 1, 1000000, "bins", "Most bins of a distribution.")
    confirm_windows: int = integer(3, 1, 16, "windows", "k: faulty where k of the past 2k - 1 windows are anomalous.")
    scope: str = other(
        SettingType.CHOICE,
        "member",
        "Whether each member has a threshold of its own, or those of a peer group or of all groups share one.",
        ("member", "group", "pooled"),
    )
    form: str = other(
        SettingType.CHOICE,
        "pairs",
        "How distributions are compared: pairwise, pairwise in bins, or with the median of the peers.",
        ("pairs", "binned", "median"),
    )
    pairs_at_most: int = integer(
        256, 2, 4096, "members", "Members from which on a group is compared with its median whatever `form` says."
    )
    offsets: str = other(
        SettingType.CHOICE, "keep", "Whether standing differences between peers count.", ("keep", "remove")
    )
    leave_one_out: bool = other(
        SettingType.BOOLEAN, True, "In groups of two to four, bins are as small as without any one member."
    )
    own_history: bool = other(
        SettingType.BOOLEAN, True, "Whether the past of a member itself is a second witness beside its peers."
    )
    least_own_windows: int = integer(
        48,
        2,
        100000,
        "windows",
        "Windows of its own past from which on a member's load, drops and CPU must be unlike it as well.",
    )
    margin: float = number(1, 0.01, 1000, "", "Thresholds are multiplied by it.")
    load_margin: float = number(
        1.25, 0.01, 1000, "", "Thresholds of loads are multiplied by it besides: traffic wanders, components do not."
    )
    combined_share: float = number(
        0.05, 0.001, 1, "", "Share of the metrics, those furthest out, that a score is the mean of; at least one."
    )
    ratio_max: float = number(30, 1, 1e6, "", "How far beyond its threshold one metric counts among several.")
    learning_windows: int = integer(191, 2, 100000, "windows", "Windows that thresholds are learnt from.")
    least_windows: int = integer(6, 2, 100000, "windows", "Windows before which a member has no score.")
    newcomer_windows: int = integer(
        48, 0, 100000, "windows", "Windows for which members that came later are compared among themselves."
    )
    hold_off_windows: int = integer(
        5, 1, 1000, "windows", "Windows in a row without an anomaly after which it is cleared."
    )
    peers: str = other(
        SettingType.CHOICE, "tier", "Whether ports have their peers in the tier or in the pod.", ("tier", "pod")
    )
    ranking: int = integer(4, 1, 100, "members", "Members that an hour of the list of the persistent names.")
    members: int = integer(65536, 1, 4194304, "members", "Ports and switches that are compared at one time.")
    forget_s: float = number(86400, 60, 1e9, "s", "Time after which a port or switch that is gone is forgotten.")
    groups: tuple[GroupWindows, ...] = other(
        SettingType.PEER_WINDOWS, (), "Windows of some peer groups, by their names; other groups have those above."
    )
    watch: Watched = section(Watched)  # noqa: RUF009 - it makes a field
    least: Least = section(Least)  # noqa: RUF009 - it makes a field
    normalcy: Normalcy = section(Normalcy)  # noqa: RUF009 - it makes a field

    def with_windows(self, windows: PeerWindows) -> Anomaly:
        """Return the settings of a peer group that has windows of its own."""
        given = {each.name: getattr(windows, each.name) for each in fields(windows)}
        return replace(self, groups=(), **{name: value for name, value in given.items() if value is not None})
