"""The discovery app: finds switches, links and hosts for the other apps, which load it themselves."""

from __future__ import annotations

import os
import time
from typing import Any, ClassVar

from apps.alarm_reports import AlarmReports
from apps.exporters.exposition import Metric
from apps.exporters.figures import discovery_figures, entry_figures
from apps.journal_keeper import JournalKeeper
from apps.notice_events import NoticeEvents
from apps.openflow.app import TableKeeper
from apps.openflow.bus import AlarmReported, TableSuspected, TopologyChanged
from apps.openflow.framework import watch_connections
from apps.policy_file import PolicyFile
from apps.state_dir import JournalFile, own_state_dir
from controller.config.policy import Policy
from controller.discovery.core import SEGMENT_LOOPED, SEGMENT_RELEASED, DiscoveryCore
from controller.discovery.detection import DETECTION_IN_TIME, DETECTION_LATE
from controller.discovery.journal import HostsRead
from controller.discovery.settings import DiscoveryChanged, DiscoverySettings
from controller.effects import Notice, WriteJournal
from controller.snapshot.events import Severity
from topology.events import TOPOLOGY_EVENTS

SECRET_BYTES = 32


class Discovery(TableKeeper):
    """Feeds the discovery core and tells the other apps what changed in the fabric."""

    _EVENTS: ClassVar[list[type]] = [TopologyChanged, TableSuspected, AlarmReported]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        watch_connections()
        self.policy_file = PolicyFile(self.logger)
        settings = _settings(self.policy_file.load())
        secret = os.urandom(SECRET_BYTES)
        self.core: DiscoveryCore = DiscoveryCore(settings, secret)
        self.record(time.monotonic(), settings=settings, secret=secret)
        self.journal = JournalFile(own_state_dir() / "hosts.jsonl", self.logger)
        self._reports = AlarmReports("discovery", self.report)
        self._events = NoticeEvents(self, "discovery")
        self._keeper = JournalKeeper(self, self.journal, lambda: self._events.log)
        self._perform[WriteJournal] = lambda effect: self.journal.write(effect.records, effect.part)

    def begin(self) -> None:
        """Read which hosts an earlier run knew before the first switch connects."""
        self.feed(HostsRead(self.journal.read()))

    def start(self) -> Any:
        """Offer events, then run."""
        self._events.server.start()
        thread = super().start()
        self._keeper.start()
        return thread

    def end(self) -> None:
        """Leave everything on disk."""
        self.journal.sync()

    def stop(self) -> None:
        """Offer events no more, and end."""
        self._events.server.stop()
        super().stop()

    def figures(self) -> list[Metric]:
        """Return what Prometheus is told: flow entries, frames, and how soon silent failures are found."""
        return [
            *super().figures(),
            *entry_figures("discovery", self.core.entries),
            *discovery_figures(self.core.pace),
        ]

    def notice(self, notice: Notice) -> None:
        """Count and log a notice, make an event of it, and report a loop, or that failures are found late."""
        super().notice(notice)
        self._events.add(notice)
        if notice.kind in (SEGMENT_LOOPED, SEGMENT_RELEASED):
            self._segment_changed(notice)
        elif notice.kind == DETECTION_LATE:
            self._reports.holds(DETECTION_LATE, "fabric", Severity.WARNING, notice.text)
        elif notice.kind == DETECTION_IN_TIME:
            self._reports.over(DETECTION_LATE, "fabric")

    def _segment_changed(self, notice: Notice) -> None:
        """Report a loop that a port is held for, or its end."""
        dpid, port_no = (int(str(value)) for _, value in notice.fields)
        if notice.kind == SEGMENT_LOOPED:
            self._reports.holds(SEGMENT_LOOPED, f"{dpid}:{port_no}", Severity.WARNING, notice.text, dpid, port_no)
        else:
            self._reports.over(SEGMENT_LOOPED, f"{dpid}:{port_no}")

    def ticked(self) -> None:
        """Follow the policy file, and keep the journal."""
        self._keeper.watch()
        policy = self.policy_file.poll()
        if policy is not None:
            self.feed(DiscoveryChanged(_settings(policy)))

    def perform(self, effects: Any) -> None:
        """Carry out effects; topology events among them go to the other apps, in order."""
        changes = tuple(effect for effect in effects if isinstance(effect, TOPOLOGY_EVENTS))
        if not changes:
            super().perform(effects)
            return
        super().perform([effect for effect in effects if not isinstance(effect, TOPOLOGY_EVENTS)])
        self.send_event_to_observers(TopologyChanged(changes))


def _settings(policy: Policy) -> DiscoverySettings:
    return DiscoverySettings(
        lldp_interval_s=policy.discovery.lldp_interval_s,
        missed_count=policy.discovery.missed_count,
        frames_per_s=policy.discovery.frames_per_s,
        idle_frames_per_s=policy.discovery.idle_frames_per_s,
        switch_grace_s=policy.discovery.switch_grace_s,
        link_capacity_bps=policy.discovery.link_capacity_bps,
        host_timeout_s=policy.unicast.host_timeout_s,
        hosts_per_port=policy.limits.hosts_per_port,
        addresses_per_host=policy.limits.addresses_per_host,
        check_interval_s=policy.check.interval_s,
        edits=policy.edits,
    )
