"""The anomaly app: `ryu-manager apps/monitor.py apps/anomaly.py`, or `vsrt run monitor anomaly`."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from apps.alarm_reports import AlarmReports
from apps.anomaly_state import AnomalyDatabase
from apps.openflow.app import FabricApp
from apps.openflow.bus import AlarmReported, CountersMeasured
from apps.openflow.framework import set_ev_cls
from apps.policy_file import PolicyFile
from apps.state_dir import own_state_dir, socket_path
from apps.status_server import Refused, StatusServer
from controller.anomaly.live import AnomalyCore
from controller.anomaly.live_events import AnomalyChanged, AnomalyTurned, OpenAnomaly, RetrainAsked
from controller.anomaly.live_members import member_name
from controller.anomaly.live_state import StateError, all_changed, changes, restore
from controller.anomaly.live_view import AnomalySections, sentence, severity_of
from controller.config.policy import Policy
from controller.snapshot.events import State

_REQUIRED_APP = ["apps.discovery"]

SAVED_AT_ONCE = 1000
"""Members written in one tick, so that the loop is soon free again."""

RETRY_S = 10.0


class Anomaly(FabricApp):
    """Feeds the comparison's core with what the monitor measures, keeps its state and answers on the socket.

    It tells and changes nothing.
    """

    _EVENTS: ClassVar[list[type]] = [AlarmReported]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.policy_file = PolicyFile(self.logger)
        policy = self.policy_file.load()
        self.core: AnomalyCore = AnomalyCore(policy.anomaly, poll_s(policy))
        directory = own_state_dir()
        self.state = AnomalyDatabase(directory / "anomaly.sqlite", self.logger)
        self._save_from_s = 0.0
        self._reports = AlarmReports("anomaly", self.report)
        self.sections = AnomalySections(self.core)
        self._perform[AnomalyTurned] = self._turned
        self.server = StatusServer(
            socket_path(),
            {"anomalies": lambda: {**self.sections.document(), "state": self.state.document()}},
            self.ask,
            self.logger,
            {"anomaly-retrain": self._retrain},
            app="anomaly",
            sections=self.sections.by_name(),
            refresh=self.sections.refresh,
        )

    def start(self) -> Any:
        """Serve the status socket, then run."""
        self.server.start()
        return super().start()

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
            except StateError as error:
                self.state.reject(str(error))
        for anomaly in self.core.open.values():
            self._report(State.RAISED, anomaly)

    def end(self) -> None:
        """Leave everything on disk."""
        while self._save():
            pass
        self.state.close()

    def stop(self) -> None:
        """Answer no more, then end."""
        self.server.stop()
        super().stop()

    def _turned(self, effect: AnomalyTurned) -> None:
        self.sections.turned((effect,))
        self._report(effect.state, effect.anomaly)
        raised = effect.state is State.RAISED
        anomaly = effect.anomaly
        log = self.logger.warning if raised else self.logger.info
        log("%s", sentence(effect.state, anomaly))

    def _report(self, state: State, anomaly: OpenAnomaly) -> None:
        subject, port_no = member_name(anomaly.key).replace(" ", "-"), anomaly.key[1] or None
        if state is State.RAISED:
            severity = severity_of(anomaly.verdict)
            self._reports.holds("anomaly", subject, severity, sentence(state, anomaly), anomaly.key[0], port_no)
        else:
            self._reports.over("anomaly", subject)

    def _packet_received(self, _event: Any) -> None:
        """Packets are of no concern here: without its handler the framework does not bring them."""

    @set_ev_cls(CountersMeasured)
    def _counters_measured(self, event: Any) -> None:
        self.feed(event.sampled)

    def ticked(self) -> None:
        """Follow the policy file, and keep the state."""
        policy = self.policy_file.poll()
        if policy is not None:
            self.feed(AnomalyChanged(policy.anomaly, poll_s(policy)))
        if time.monotonic() >= self._save_from_s:
            self._save()

    def _save(self) -> bool:
        """Keep some of what changed; return whether more is left that can be kept."""
        state = changes(self.core, SAVED_AT_ONCE)
        if not self.state.write(state):
            all_changed(self.core)
            self._save_from_s = time.monotonic() + RETRY_S
            return False
        return bool(self.core.dirty)

    def _retrain(self, asked: Mapping[str, Any]) -> Any:
        group = asked.get("peer_group")
        known = sorted({name for name in self.core.members.groups if name is not None})
        if group is not None and group not in known:
            raise Refused(f"no such peer group; there are {_listed(known)}", "peer_group")
        self.feed(RetrainAsked(group))
        all_changed(self.core)
        return {"learnt_anew": [group] if group is not None else known}


def poll_s(policy: Policy) -> float:
    """Return the longest time between two polls of a switch."""
    monitor = policy.monitor
    of_class = (
        monitor.intervals.tor,
        monitor.intervals.aggregation,
        monitor.intervals.core,
        monitor.intervals.switch,
    )
    return float(max(monitor.interval_s, *(interval_s or 0 for interval_s in of_class)))


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names) or "none yet"
