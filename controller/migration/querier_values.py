"""Timers of a querier that stand per interface or bridge in other programs, and once in a policy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from controller.migration.draft import PolicyDraft
from controller.migration.report import ImportReport, Place

BOUNDS = {
    "multicast.querier.robustness": (1, 7),
    "multicast.querier.query_interval_s": (1, 31744),
    "multicast.querier.response_interval_s": (0.1, 3174.4),
    "multicast.querier.last_member_interval_s": (0.1, 3174.4),
    "multicast.querier.last_member_count": (1, 255),
    "multicast.querier.startup_interval_s": (0.1, 3174.4),
    "multicast.querier.startup_count": (1, 255),
    "multicast.querier.igmp_version": (1, 3),
    "multicast.querier.mld_version": (1, 2),
    "multicast.router_ports.pim_join_interval_s": (1, 600),
    "limits.groups_per_port": (1, 65536),
    "limits.groups": (1, 1048576),
    "unicast.host_timeout_s": (10, 86400),
}
"""Least and greatest value of each setting."""

_LEAST = ("query_interval_s", "igmp_version", "mld_version")
"""Of several values of these the least is written: it is heard, or understood, by all. Of others the greatest."""

_RESPONSE = "multicast.querier.response_interval_s"
_INTERVAL = "multicast.querier.query_interval_s"
_DEFAULT_INTERVAL_S, _DEFAULT_RESPONSE_S = 125.0, 10.0


class AskedValue(NamedTuple):
    """A value that some line asks of a setting; `field` says where in the line, `how` what is to be said of it."""

    path: str
    value: float
    place: Place
    field: str = ""
    how: str = ""


def write_values(draft: PolicyDraft, report: ImportReport, asked: Sequence[AskedValue]) -> None:
    """Write one value of each setting, and report each line that asked for one."""
    chosen: dict[str, AskedValue] = {}
    for one in asked:
        known = chosen.get(one.path)
        is_least = one.path.endswith(_LEAST)
        if known is None or (one.value < known.value if is_least else one.value > known.value):
            chosen[one.path] = one
    values = {path: min(max(one.value, BOUNDS[path][0]), BOUNDS[path][1]) for path, one in chosen.items()}
    interval = values.get(_INTERVAL, _DEFAULT_INTERVAL_S)
    if values.get(_RESPONSE, _DEFAULT_RESPONSE_S) >= interval:
        values[_RESPONSE] = max(0.1, interval / 2)
    for path, value in values.items():
        origin = str(chosen[path].place) if path in chosen else f"below {_INTERVAL.rpartition('.')[2]}"
        draft.settings[path] = (int(value) if value == int(value) else value), origin
    for one in asked:
        written = values[one.path]
        what = f"`{one.path}: {written:g}`" + (f", {one.how}" if one.how else "")
        if written == one.value and not one.how:
            report.taken(one.place, what, one.field)
        else:
            reason = (
                "" if written == one.value else f", not {one.value:g}: it is one for the whole fabric, within bounds"
            )
            report.changed(one.place, f"{what}{reason}", one.field)
