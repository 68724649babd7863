"""The discovery app: finds switches, links and hosts for the other apps, which load it themselves."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from apps.alarm_reports import STATE_LOST, TLS_FAULTY
from apps.exporters.exposition import Metric
from apps.exporters.figures import counted_figures, discovery_figures, entry_figures
from apps.findings_search import BOUND, DISCOVERY_FINDINGS
from apps.journal_keeper import JournalKeeper
from apps.log_keeper import LogKeeper
from apps.openflow.bus import AlarmReported, TableSuspected, TopologyChanged
from apps.openflow.framework import switch_tls, watch_connections
from apps.openflow.notice_app import NoticeApp
from apps.policy_file import shares_fabric, wants_cluster
from apps.registry import APPS
from apps.state_dir import JournalFile, own_state_dir
from apps.switch_names import SwitchNamesFile
from controller.discovery.core import SEGMENT_LOOPED, SEGMENT_RELEASED, DiscoveryCore
from controller.discovery.detection import DETECTION_IN_TIME, DETECTION_LATE
from controller.discovery.journal import HostsFollowed, HostsRead
from controller.discovery.legs import AGGREGATION_DEGRADED, AGGREGATION_WHOLE
from controller.discovery.settings import SecretGiven
from controller.effects import Notice, WriteJournal
from controller.events import JournalLost, SwitchDescription
from controller.snapshot.events import Severity
from topology.events import TOPOLOGY_EVENTS

if TYPE_CHECKING:
    from apps.cluster.host_log import HostLog
    from apps.cluster.lead import Followed, Lead

_REQUIRED_APP = [APPS["cluster"].module_name] if wants_cluster() else []


class DiscoveryApp(NoticeApp):
    """Feeds the discovery core and tells the other apps what changed in the fabric."""

    _EVENTS: ClassVar[list[type]] = [TopologyChanged, TableSuspected, AlarmReported]
    takes_lldp = True
    takes_packets_together = True
    core: DiscoveryCore

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        watch_connections()
        self._names_file = SwitchNamesFile(own_state_dir(), self.logger)
        self._keeper: JournalKeeper | HostLog
        self._hosts_read: Callable[[], tuple[dict[str, Any], ...]] | None = None
        if shares_fabric(self.policy_file.reading.policy):
            self._share_hosts()
        else:
            journal = JournalFile(own_state_dir() / "hosts.jsonl", self.logger)
            self._keeper, self._hosts_read = JournalKeeper(self, journal, lambda: self.told_events), journal.read
            self._leave_hosts: Callable[[], None] = journal.sync
            self._perform[WriteJournal] = lambda effect: journal.write(effect.records, effect.part)

    def _share_hosts(self) -> None:
        """Keep hosts where the other controllers of the fabric find them."""
        from apps.cluster.host_log import HostLog

        self._keeper = log = HostLog(self, None, lambda: self.told_events)
        self._leave_hosts = log.close
        self._perform[WriteJournal] = log.take

    def own_actions(self) -> Mapping[str, Callable[[Mapping[str, Any]], Any]]:
        """Answer what does not fit together: bonds that the policy does not declare."""
        return {DISCOVERY_FINDINGS: lambda _asked: self._findings()}

    def _findings(self) -> dict[str, Any]:
        found = self.core.lacp_legs.undeclared.findings(time.monotonic())
        told = [{**finding, "text": self.names.spoken(finding["text"])} for finding in found[:BOUND]]
        return {"done": True, "count": len(found), "findings": told}

    def begin(self) -> None:
        """Read which hosts an earlier run knew before the first switch connects."""
        if self._hosts_read is not None:
            self.feed(HostsRead(self._hosts_read()))

    def take_lead(self, lead: Lead, then: Callable[[], None]) -> None:
        """Take over the hosts that were followed, and know LLDP frames of the leader before."""
        from apps.cluster.host_log import HostLog

        assert isinstance(self._keeper, HostLog)
        self._keeper.use(lead.hosts.log, lead.hosts.revision)
        self.feed(SecretGiven(lead.secret))
        self.feed(HostsRead(()))
        for notice in self._keeper.foreign_told():
            self.notice(notice)
        then()

    def follow_logs(self, followed: Followed) -> None:
        """Know the hosts of the controller that leads."""
        from apps.cluster.host_log import HostLog

        assert isinstance(self._keeper, HostLog)
        if followed.hosts:
            self.feed(HostsFollowed(self._keeper.follow(followed.hosts)))

    def write_log_anew(self) -> None:
        """Write all hosts once more."""
        self.feed(JournalLost())

    def log_lag_s(self, now: float) -> float:
        """Return for how long something has waited for the log in the store."""
        return self._keeper.lag_s(now) if isinstance(self._keeper, LogKeeper) else 0.0

    def renew_lead(self, lead: Lead) -> None:
        """Write the hosts anew, for the store has lost them."""
        from apps.cluster.host_log import HostLog

        assert isinstance(self._keeper, HostLog)
        self._keeper.renew(lead.hosts.log)

    def start(self) -> Any:
        """Run, and keep the journal."""
        thread = super().start()
        self._keeper.start()
        return thread

    def end(self) -> None:
        """Leave everything on disk."""
        super().end()
        self._leave_hosts()
        self._names_file.flush()

    def described(self, dpid: int, description: SwitchDescription) -> None:
        """Call the switch what it calls itself, after a restart too."""
        super().described(dpid, description)
        self._names_file.keep(dpid, self.names.description(dpid))

    def figures(self) -> list[Metric]:
        """Return what Prometheus is told: flow entries, frames, and how soon silent failures are found."""
        return [
            *super().figures(),
            *entry_figures("discovery", self.core.entries),
            *counted_figures("discovery", self.core.counters),
            *discovery_figures(self.core.pace),
        ]

    def notice(self, notice: Notice) -> None:
        """Count and log a notice, make an event of it, and report a loop, or that failures are found late."""
        super().notice(notice)
        if notice.kind in (SEGMENT_LOOPED, SEGMENT_RELEASED):
            self._segment_changed(notice)
        elif notice.kind in (AGGREGATION_DEGRADED, AGGREGATION_WHOLE):
            self._aggregation_changed(notice)
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

    def _aggregation_changed(self, notice: Notice) -> None:
        """Report a link aggregation group of which not all legs work, or that they do again."""
        dpid, port_no = (int(str(value)) for _, value in notice.fields)
        kind, subject = AGGREGATION_DEGRADED, f"{dpid}:{port_no}"
        if notice.kind == AGGREGATION_DEGRADED:
            self._reports.holds(kind, subject, Severity.WARNING, notice.text, dpid, port_no)
        else:
            self._reports.over(kind, subject)

    def ticked(self) -> None:
        """Look after files."""
        super().ticked()
        self._keeper.watch()
        self._reports.look_at(STATE_LOST, "hosts", self._keeper.trouble)
        self._names_file.flush()
        self._reports.look_at(STATE_LOST, "names", self._names_file.fault)
        self._look_at_tls()

    def _look_at_tls(self) -> None:
        """Report files that are no good for TLS to switches, which goes on by what was read before."""
        tls = switch_tls()
        if tls is None:
            return
        tls.look()
        text = f"The TLS files for switches cannot be used: {tls.fault}. What was read of them before stays in use."
        self._reports.look_at(TLS_FAULTY, "switches", text if tls.fault else None)

    def perform(self, effects: Any) -> None:
        """Carry out effects; topology events among them go to the other apps, in order."""
        changes = tuple(effect for effect in effects if isinstance(effect, TOPOLOGY_EVENTS))
        if not changes:
            super().perform(effects)
            return
        super().perform([effect for effect in effects if not isinstance(effect, TOPOLOGY_EVENTS)])
        self.send_event_to_observers(TopologyChanged(changes))
