"""The anomaly app: `ryu-manager apps/monitor.py apps/anomaly.py`, or `vsrt run monitor anomaly`."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, ClassVar

from apps.actions import logged
from apps.alarm_reports import STATE_LOST
from apps.anomaly_state import AnomalyDatabase
from apps.live_normalcy import LiveNormalcy
from apps.openflow.bus import AlarmReported, CountersMeasured, RollUpsMeasured
from apps.openflow.declared import DeclaredApp
from apps.openflow.fabric_app import FabricApp
from apps.openflow.framework import set_ev_cls
from apps.policy_file import PolicyReading
from apps.registry import required_modules
from apps.saved_state import SavedState
from apps.state_dir import ActionLog, own_state_dir
from apps.status_server import QuestionRefused
from controller.anomaly.live import AnomalyCore
from controller.anomaly.live_events import AnomalyTurned, OpenAnomaly, RetrainAsked
from controller.anomaly.live_members import member_name
from controller.anomaly.live_state import AnomalyState, AnomalyStateError, all_changed, changes, restore
from controller.anomaly.live_view import AnomalySections, sentence, severity_of
from controller.snapshot.events import State

_REQUIRED_APP = required_modules("anomaly")

SAVED_AT_ONCE = 1000
"""Members written in one tick, so that the loop is soon free again."""


class AnomalyApp(DeclaredApp, FabricApp):
    """Feeds the comparison's core with what the monitor measures, keeps its state and answers on the socket.

    It tells and changes nothing.
    """

    _EVENTS: ClassVar[list[type]] = [AlarmReported]

    core: AnomalyCore
    actions: ActionLog

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.state = AnomalyDatabase(own_state_dir() / "anomaly.sqlite", self.logger)
        self.saved = SavedState(
            self.state, self._changes, partial(all_changed, self.core), self._tell_of_state, SAVED_AT_ONCE
        )
        self.sections = AnomalySections(self.core, self.names.spoken)
        settings = self.policy_file.reading.policy.anomaly.normalcy
        self.normalcy = LiveNormalcy(
            settings, own_state_dir(), self.logger, self.sections.events, self._reports, self.names.spoken
        )
        self._perform[AnomalyTurned] = self._turned
        self.log_actions()
        self.offer(
            {"anomalies": lambda: {**self.sections.document(), "state": self.state.document()}},
            {
                "anomaly-retrain": lambda asked: logged(self.actions, "anomaly-retrain", asked, self._retrain),
                "normalcy": self.normalcy.answer,
                "normalcy-bounds": self.normalcy.bounds,
            },
            {**self.sections.by_name(), "normalcy": self.normalcy.sections.series},
            self._refresh,
        )

    def begin(self) -> None:
        """Take what an earlier run learnt."""
        state = self.state.read()
        if state is not None:
            try:
                count = restore(self.core, state)
                self.logger.info(
                    "%d members and %d open anomalies were restored from %s.",
                    count,
                    len(self.core.open),
                    self.state.path,
                )
                if state.chain != self.core.chain:
                    self.logger.warning(
                        "The thresholds in %s are of other settings: they are learnt anew.", self.state.path
                    )
            except AnomalyStateError as error:
                self.state.reject(str(error))
        for anomaly in self.core.faults.told.values():
            self._report(State.RAISED, anomaly)
        self.normalcy.begin()

    def ticked(self) -> None:
        """Keep what was learnt."""
        super().ticked()
        self.normalcy.look(time.monotonic())

    def end(self) -> None:
        """Leave everything on disk."""
        super().end()
        self.normalcy.close()

    def policy_was_read(self, reading: PolicyReading) -> None:
        """Go by another policy, unless the file is faulty."""
        super().policy_was_read(reading)
        if not reading.errors:
            self.normalcy.follow(reading.policy.anomaly.normalcy)

    def _refresh(self) -> None:
        self.sections.refresh()
        self.normalcy.sections.refresh()

    def _turned(self, effect: AnomalyTurned) -> None:
        self.sections.turned((effect,))
        self._report(effect.state, effect.anomaly)
        raised = effect.state is State.RAISED
        anomaly = effect.anomaly
        log = self.logger.warning if raised else self.logger.info
        log("%s", self.names.spoken(sentence(effect.state, anomaly)))

    def _report(self, state: State, anomaly: OpenAnomaly) -> None:
        subject, port_no = member_name(anomaly.key).replace(" ", "-"), anomaly.key[1] or None
        if state is State.RAISED:
            severity = severity_of(anomaly.verdict)
            self._reports.holds("anomaly", subject, severity, sentence(state, anomaly), anomaly.key[0], port_no)
        else:
            self._reports.over("anomaly", subject)

    @set_ev_cls(CountersMeasured)
    def _counters_measured(self, event: Any) -> None:
        self.feed(event.sampled)

    @set_ev_cls(RollUpsMeasured)
    def _roll_ups_measured(self, event: Any) -> None:
        if event.step_s == self.normalcy.core.settings.point_s:
            self.normalcy.take(event.rolled_up)

    def _changes(self, member_count: int) -> tuple[AnomalyState, bool]:
        return changes(self.core, member_count), bool(self.core.dirty)

    def _tell_of_state(self, trouble: str | None) -> None:
        text = trouble and f"{trouble}: a restart will not know what was learnt since."
        self._reports.look_at(STATE_LOST, "anomaly", text)

    def _retrain(self, asked: Mapping[str, Any], _by: str | None) -> Any:
        group = asked.get("peer_group")
        known = sorted({name for name in self.core.members.groups if name is not None})
        if group is not None and group not in known:
            raise QuestionRefused(f"no such peer group; there are {_listed(known)}", "peer_group")
        self.feed(RetrainAsked(group))
        all_changed(self.core)
        return {"learnt_anew": [group] if group is not None else known}


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names) or "none yet"
