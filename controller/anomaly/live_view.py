"""What people see of the live comparison: open anomalies, scores of ports, events, and how far it has learnt."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from controller.anomaly.live import AnomalyCore
from controller.anomaly.live_events import WHOLE_SWITCH, AnomalyTurned, MemberKey, OpenAnomaly
from controller.anomaly.live_faults import in_order
from controller.anomaly.live_members import NO_ROW, member_name, titled
from controller.snapshot.events import EventRing, Severity, State
from controller.snapshot.log import Document, DocumentLog

NOTICEABLE = 0.05
"""A score that differs by less, and by less of itself, is not told again."""
_SEVERITIES = {"component fault": Severity.WARNING}


class AnomalySections:
    """The sections of the comparison, and the document of `{"show": "anomalies"}`; `spoken` puts names into texts."""

    def __init__(self, core: AnomalyCore, spoken: Callable[[str], str] = str) -> None:
        self._core = core
        self._spoken = spoken
        self.events = EventRing("anomaly", spoken)
        self.anomalies: DocumentLog[MemberKey] = DocumentLog(
            lambda: sorted(core.faults.told), self._anomaly, member_name
        )
        self.ports: DocumentLog[MemberKey] = DocumentLog(self._port_keys, self._port, member_name)
        self._ranks: dict[MemberKey, int] = {}
        self._told: dict[MemberKey, tuple[float | None, str, str | None]] = {}

    def by_name(self) -> dict[str, DocumentLog[Any]]:
        """Return the sections by the names under which they are offered."""
        return {"anomalies": self.anomalies, "ports": self.ports, "events": self.events.section}

    def turned(self, effects: Iterable[AnomalyTurned]) -> None:
        """Tell of what was raised and cleared."""
        for state, anomaly, at_s in effects:
            dpid, port_no = anomaly.key
            self.events.add(
                at_s,
                "anomaly",
                sentence(state, anomaly),
                severity=severity_of(anomaly.verdict),
                state=state,
                dpid=dpid,
                port_no=None if port_no == WHOLE_SWITCH else port_no,
            )
            self.anomalies.touch(anomaly.key)

    def refresh(self) -> None:
        """Find which scores changed; to be called before sections are read."""
        self._rank()
        for key in self._core.faults.told:
            self.anomalies.touch(key)
        before, self._told = self._told, {}
        for key in self._port_keys():
            self._told[key] = now = self._state(key)
            if now != before.get(key):
                self.ports.touch(key)
        for key in before.keys() - self._told.keys():
            self.ports.touch(key)

    def document(self) -> Document:
        """Return what there is to tell at once."""
        core = self._core
        self._rank()
        groups: dict[str, list[int]] = {}
        for row, key in enumerate(core.members.keys):
            if key is not None and core.members.groups[row] is not None:
                groups.setdefault(core.group_of(row), []).append(row)
        windows = core.learning.groups
        return {
            "anomalies": [self._anomaly(key) for key in self._ranks],
            "persistent": [
                {
                    "hour_s": hour_s,
                    "ranking": [dict(zip(("value", "peer_group", "member"), each, strict=True)) for each in ranking],
                }
                for hour_s, ranking in core.persistent
            ],
            "peer_groups": [
                {
                    "peer_group": group,
                    "members": len(rows),
                    "windows_learnt": int(np.median(_ages(core, rows))),
                    "learning": bool((_ages(core, rows) < windows.of(group).learning_windows).any()),
                    "window_s": core.cells.interval_s * windows.of(group).window_samples,
                }
                for group, rows in sorted(groups.items())
            ],
            "interval_s": core.cells.interval_s,
            "window_s": core.cells.interval_s * core.settings.window_samples,
            "tally": dict(sorted(core.tally.items())),
        }

    # Documents.

    def _rank(self) -> None:
        """Number what is told, from 1 on, by what to look at first."""
        self._ranks = {key: rank for rank, key in enumerate(in_order(self._core.faults.told), 1)}

    def _anomaly(self, key: MemberKey) -> Document | None:
        found = self._core.faults.told.get(key)
        if found is None:
            return None
        dpid, port_no = key
        return {
            "member": found.member,
            "dpid": dpid,
            "port_no": None if port_no == WHOLE_SWITCH else port_no,
            "peer_group": found.peer_group,
            "metric": found.metric,
            "since_s": found.since_s,
            "score": found.score,
            "verdict": found.verdict,
            "rank": self._ranks.get(key),
            "other_end": found.other_end or None,
            "text": self._spoken(_whole_text(found)),
        }

    def _port_keys(self) -> list[MemberKey]:
        members = self._core.members
        return sorted(
            key
            for row, key in enumerate(members.keys)
            if key is not None and key[1] != WHOLE_SWITCH and members.groups[row] is not None
        )

    def _port(self, key: MemberKey) -> Document | None:
        if self._core.members.row(key) == NO_ROW:
            return None
        score, group, verdict = self._state(key)
        return {"score": score, "peer_group": group or None, "verdict": verdict}

    def _state(self, key: MemberKey) -> tuple[float | None, str, str | None]:
        core = self._core
        row = core.members.row(key)
        score = float(core.members.score[row])
        rounded = None if np.isnan(score) else round(score / NOTICEABLE) * NOTICEABLE
        return None if rounded is None else round(rounded, 2), core.group_of(row), core.verdict_of(row)


def _ages(core: AnomalyCore, rows: list[int]) -> NDArray[np.int32]:
    return core.learning.age(np.array(rows, np.intp))


def severity_of(verdict: str) -> Severity:
    """Return how much an anomaly with a verdict matters."""
    return _SEVERITIES.get(verdict, Severity.INFO)


def sentence(state: State, anomaly: OpenAnomaly) -> str:
    """Return what is told of an anomaly that was raised or cleared."""
    if state is State.CLEARED:
        return f"{titled(anomaly.member)} is like its peers again ({anomaly.peer_group}, {anomaly.metric})."
    return f"{_whole_text(anomaly)} Verdict: {anomaly.verdict}. Peer group: {anomaly.peer_group}."


def _whole_text(anomaly: OpenAnomaly) -> str:
    if not anomaly.other_end:
        return anomaly.text
    return f"{anomaly.text} The other end of its cable, {anomaly.other_end}, is unlike its peers too."
