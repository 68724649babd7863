"""The multicast app: `ryu-manager apps/multicast.py`, or `vsrt run multicast`."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from apps.actions import answer_of, logged
from apps.alarm_reports import AlarmReports
from apps.environment import environment_path
from apps.exporters.exposition import Metric
from apps.exporters.figures import core_figures
from apps.journal_keeper import JournalKeeper
from apps.openflow.app import FabricApp, TableKeeper
from apps.openflow.bus import AlarmReported, LinksMeasured, SwitchForgotten, TableSuspected, TopologyChanged
from apps.openflow.framework import NAME, running_apps, set_ev_cls
from apps.policy_file import PolicyFile
from apps.state_dir import ActionLog, AuditLog, JournalFile, own_state_dir, socket_path
from apps.status_server import Refused, StatusServer
from controller.alarms.actions import FORGET_SWITCH
from controller.alarms.events import TreesRepaired
from controller.config.policy import Policy
from controller.effects import ActionRefused, ActionTaken, Notice, WriteJournal
from controller.events import DeadlineReached
from controller.multicast.actions import ACTIONS, ActionInvalid, read_action
from controller.multicast.core import MulticastCore
from controller.multicast.effects import Audit
from controller.multicast.events import JournalRead, PolicyLoaded
from controller.multicast.view import VIEWS
from controller.snapshot.events import Severity
from controller.snapshot.log import Document, Section
from topology.events import LinkDown

_REQUIRED_APP = ["apps.discovery", "apps.alarms"]

POLICY_RELOAD = "policy-reload"


class Multicast(FabricApp, TableKeeper):
    """Feeds the multicast core and performs its effects; keeps its journal, logs and status socket."""

    _EVENTS: ClassVar[list[type]] = [TableSuspected, AlarmReported]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.policy_file = PolicyFile(self.logger)
        now, policy = time.monotonic(), self.policy_file.load()
        self.core: MulticastCore = MulticastCore(policy, now)
        self.record(now, policy=policy)
        self.policy_file.watch_signal()
        directory = own_state_dir()
        self.journal = JournalFile(directory / "journal.jsonl", self.logger)
        self._keeper = JournalKeeper(self, self.journal, lambda: self.core.sections.events)
        self.audit = AuditLog(Path(environment_path("VSRT_AUDIT_LOG") or directory / "audit.jsonl"), self.logger)
        self.actions = ActionLog(directory / "actions.jsonl", self.logger)
        self._perform[Audit] = self.audit.add
        self._perform[WriteJournal] = self._write_journal
        views = {name: partial(view, self.core) for name, view in VIEWS.items()}
        sections = self.core.sections
        sections.events.offset_s = time.time() - now
        self._started_s = time.time()
        self._policy: Section[str] = Section(lambda: ("policy",), lambda _key: self._policy_document())
        self._policy_read_count = 0
        self._outcomes: list[ActionTaken | ActionRefused] = []
        self._reports = AlarmReports("multicast", self.report)
        self.server = StatusServer(
            socket_path(),
            views,
            self.ask,
            self.logger,
            {name: partial(self._act, name) for name in (*ACTIONS, POLICY_RELOAD) if name != FORGET_SWITCH},
            app="multicast",
            sections={**sections.by_name(), "policy": self._policy},
            refresh=self._refresh,
        )
        self._perform[ActionTaken] = self._perform[ActionRefused] = self._outcomes.append

    def start(self) -> Any:
        """Serve the status socket, then run."""
        self.server.start()
        thread = super().start()
        self._keeper.start()
        return thread

    def begin(self) -> None:
        """Read the journal before the first switch connects."""
        self.feed(JournalRead(self.journal.read()))

    def end(self) -> None:
        """Leave everything on disk."""
        self.audit.close()
        self.journal.sync()

    def stop(self) -> None:
        """Answer no more, then end."""
        self.server.stop()
        super().stop()

    def ticked(self) -> None:
        """Follow the policy file, and keep the audit log."""
        self.audit.flush()
        self.actions.flush()
        self._keeper.watch()
        self._look_at_troubles()
        before = self.policy_file.read_count
        policy = self.policy_file.poll()
        if self.policy_file.read_count > before:
            self._policy_read(policy)

    @set_ev_cls(LinksMeasured)
    def _links_measured(self, event: Any) -> None:
        self.feed(event.loads)

    def described(self, dpid: int, description: str) -> None:
        """Call the switch what it calls itself, where the policy has no name for it."""
        self.core.sections.described(dpid, description)

    @set_ev_cls(SwitchForgotten)
    def _switch_forgotten(self, event: Any) -> None:
        """Show a switch no longer that is gone for good; whether it may be forgotten was looked at before."""
        self.feed(read_action(FORGET_SWITCH, {"dpid": event.dpid}))
        self._outcomes.clear()

    @set_ev_cls(TopologyChanged)
    def _topology_changed(self, event: Any) -> None:
        for change in event.changes:
            before = self.core.topology.repaired_count
            self.feed(change)
            tree_count = self.core.topology.repaired_count - before
            if tree_count and isinstance(change, LinkDown):
                self.report(TreesRepaired(*change, tree_count))

    def figures(self) -> list[Metric]:
        """Return what Prometheus is told: groups, trees, joins and switches."""
        return [*super().figures(), *core_figures(self.core)]

    # Operators

    def _act(self, name: str, asked: Mapping[str, Any]) -> Document:
        return logged(self.actions, name, asked, lambda fields, _by: self._do(name, fields))

    def _do(self, name: str, fields: Mapping[str, Any]) -> Document:
        if name == POLICY_RELOAD:
            return self._reload()
        try:
            self.feed(read_action(name, fields))
        except ActionInvalid as error:
            raise Refused(str(error), error.field) from None
        document = answer_of(self._outcomes.pop())
        self.feed(DeadlineReached())  # the journal of what operators set is due at once
        self.journal.sync()
        return document if self.journal.fault is None else {**document, "kept": False}

    def _reload(self) -> Document:
        policy = self.policy_file.reload()
        self._policy_read(policy)
        if policy is None:
            raise Refused("; ".join(self.policy_file.errors), "policy")
        return {"path": str(self.policy_file.path), "rules": len(policy.rules), "loaded_s": self.policy_file.loaded_s}

    def _policy_read(self, policy: Policy | None) -> None:
        events, now, file = self.core.sections.events, time.monotonic(), self.policy_file
        if policy is None:
            text = f"The policy file is faulty, and the policy of before stays in force: {file.errors[0]}"
            events.add(now, "policy-faulty", text, severity=Severity.CRITICAL)
        else:
            events.add(
                now, "policy-loaded", f"The policy file {file.path} was read: {len(policy.rules)} rules are in force."
            )
            self.feed(PolicyLoaded(policy))

    def notice(self, notice: Notice) -> None:
        """Count and log a notice, and make an event of it."""
        super().notice(notice)
        self._reports.noticed(notice)
        self.core.sections.noticed(notice, time.monotonic())

    def _look_at_troubles(self) -> None:
        core = self.core
        self._reports.look_at_tables(
            lambda dpid: core.installer.in_sync(dpid) or core.fabric.ofp_version(dpid) is None
        )
        fault = self.journal.fault
        if fault is None:
            self._reports.over("state-lost", "journal")
        else:
            text = (
                f"The journal {self.journal.path} cannot be written ({fault}): a restart will not know what changed."
            )
            self._reports.holds("state-lost", "journal", Severity.WARNING, text)

    def _refresh(self) -> None:
        sections = self.core.sections
        sections.environment = {"framework": NAME, "started_s": self._started_s, "apps": running_apps()}
        sections.refresh(time.monotonic())
        if self._policy_read_count != self.policy_file.read_count:
            self._policy_read_count = self.policy_file.read_count
            self._policy.touch("policy")

    def _policy_document(self) -> Document:
        file = self.policy_file
        path = str(file.path) if file.path is not None else None
        return {"path": path, "text": file.text, "loaded_s": file.loaded_s, "errors": list(file.errors)}

    def _write_journal(self, effect: WriteJournal) -> None:
        self.journal.write(effect.records, effect.part)
