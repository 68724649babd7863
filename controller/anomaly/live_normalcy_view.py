"""What people see of live normalcy: bounds, newest value and score of every series, and events."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from controller.anomaly.live_events import MemberKey
from controller.anomaly.live_members import member_name
from controller.anomaly.live_normalcy import SLOTS_A_DAY
from controller.anomaly.live_normalcy_core import (
    METRIC_COUNT,
    METRICS,
    NO_PORT,
    NormalcyCore,
    NormalcyTurned,
    OpenExcess,
)
from controller.snapshot.events import EventRing, Severity, State
from controller.snapshot.log import Document, DocumentLog

SERIES_AT_ONCE = 100_000
"""Series that one answer holds at most."""

SeriesKey: TypeAlias = tuple[MemberKey, int]
"""A port, and the number of a metric."""


class NormalcySections:
    """The section of series, and the documents that questions are answered with; events go to a log given."""

    def __init__(self, core: NormalcyCore, events: EventRing) -> None:
        self._core = core
        self._events = events
        self.series: DocumentLog[SeriesKey] = DocumentLog(self._keys, self.document, series_name)
        self._told = np.zeros((0, 3), np.float32)

    def turned(self, effect: NormalcyTurned) -> None:
        """Tell of what was raised or cleared."""
        dpid, port_no = effect.excess.key
        self._events.add(
            effect.at_s,
            "normalcy",
            sentence(effect.state, effect.excess),
            severity=Severity.INFO,
            state=effect.state,
            dpid=dpid,
            port_no=port_no,
        )

    def refresh(self) -> None:
        """Find which series have another score, bound or state; to be called before the section is read."""
        bounds = self._core.bounds
        told, self._told = self._told, np.stack([np.round(bounds.score, 2), bounds.lower, bounds.upper], axis=1)
        changed = np.ones(len(self._told), np.bool_)
        now = self._told[: len(told)]
        changed[: len(told)] = ~((now == told) | (np.isnan(told) & np.isnan(now))).all(axis=1)
        for row in np.flatnonzero(changed).tolist():
            port = self._core.port_of(row)
            if port is not None:
                self.series.touch((port, row % METRIC_COUNT))

    def answer(self, key: MemberKey | None) -> Document:
        """Return the series of a port, or of all, those furthest outside first."""
        core = self._core
        ports = core.ports if key is None else [key] if core.row(key) != NO_PORT else []
        series = [self.document((port, metric)) for port in ports for metric in range(METRIC_COUNT)]
        known = [each for each in series if each is not None]
        known.sort(
            key=lambda each: (-(-1.0 if each["score"] is None else each["score"]), each["dpid"], each["port_no"])
        )
        return {
            "series": known[:SERIES_AT_ONCE],
            "ports": len(core.ports),
            "bytes_per_series": core.bounds.bytes_per_row,
            "tally": {**dict(sorted(core.tally.items())), "late": core.bounds.late, "clock-steps": core.bounds.steps},
        }

    def _keys(self) -> list[SeriesKey]:
        return [(key, metric) for key in self._core.ports for metric in range(METRIC_COUNT)]

    def document(self, key: SeriesKey) -> Document | None:
        """Return what there is to tell of a series, None where its port is not known."""
        port, metric = key
        core = self._core
        if core.row(port) == NO_PORT:
            return None
        row, bounds = core.row(port) + metric, core.bounds
        name = METRICS[metric].name
        excess = core.open.get((port, name))
        hours = bounds.days[:, row] >= core.settings.least_days
        return {
            "dpid": port[0],
            "port_no": port[1],
            "metric": name,
            "time_s": _number(bounds.newest_s[row]),
            "value": _number(bounds.value[row]),
            "lower": _number(bounds.lower[row]),
            "upper": _number(bounds.upper[row]),
            "score": _number(bounds.score[row], 3),
            "since_s": None if excess is None else excess.since_s,
            "learnt_pct": round(100 * int(hours.sum()) / SLOTS_A_DAY, 1),
        }


def series_name(key: SeriesKey) -> str:
    """Return the id of a series in the section."""
    return f"{member_name(key[0])}:{METRICS[key[1]].name}"


def sentence(state: State, excess: OpenExcess) -> str:
    """Return what is told of a metric that left its bounds or is inside again."""
    where = f"Port {member_name(excess.key)}"
    if state is State.CLEARED:
        return f"{where} is within its normal bounds again ({excess.metric})."
    words = next(metric.words for metric in METRICS if metric.name == excess.metric).format(f"{excess.value:.4g}")
    normal = f"{max(excess.lower, 0.0):.4g} to {excess.upper:.4g}"
    return f"{where} {words}; at this hour {normal} is normal for it."


def _number(value: Any, digits: int | None = None) -> float | None:
    """Return a number of an array for JSON, None where it is not known."""
    found = float(value)
    if not np.isfinite(found):
        return None
    return found if digits is None else round(found, digits)
