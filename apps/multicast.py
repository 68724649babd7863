"""The multicast app: `ryu-manager apps/multicast.py`, or `vsrt run multicast`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from apps.actions import answer_of, logged
from apps.alarm_reports import OUTPUT_FAILED, STATE_LOST
from apps.candidates.search import CandidateSearch
from apps.environment import environment_path
from apps.exporters.exposition import Metric
from apps.exporters.figures import core_figures, counted_figures, staged_figures
from apps.findings_search import FindingsSearch
from apps.former_journal import FORMER_NAME, FormerJournal
from apps.log_database import LOG_NAME, LogDatabase, read_values
from apps.log_keeper import LogKeeper
from apps.openflow.app import TableKeeper
from apps.openflow.bus import (
    AlarmReported,
    DrainsChanged,
    ErrorsCounted,
    LinksMeasured,
    PoolShared,
    SwitchForgotten,
    TableSuspected,
)
from apps.openflow.declared import DeclaredApp
from apps.openflow.fabric_app import FabricApp
from apps.openflow.framework import DATAPATHS, NAME, SOUTHBOUND, Event, hub, run_aside, running_apps, set_ev_cls
from apps.openflow.questions import BEGIN_S, Deferred
from apps.policy_file import PolicyReading, shares_fabric
from apps.registry import required_modules
from apps.staged_policy import StagedPolicy
from apps.state_dir import ActionLog, AuditLog, own_state_dir, socket_path
from apps.state_faults import unreadable_files
from apps.status_server import ENGINE_UNCONFIRMED, ENGINE_UNREACHABLE, QuestionRefused, refusal
from controller.alarms.actions import FORGET_SWITCH
from controller.alarms.events import TreesRepaired
from controller.effects import ActionRefused, ActionTaken, Notice
from controller.events import DeadlineReached, JournalLost, SwitchDescription, SwitchesDrained
from controller.log import LogPart, WriteLog
from controller.maintenance.model import DAY_S
from controller.multicast.actions import ACTIONS, ActionInvalid, read_action
from controller.multicast.core import MulticastCore
from controller.multicast.effects import Audit
from controller.multicast.events import JournalRead, LeadTaken, LogFollowed, LogRead, MaintenanceLooked
from controller.multicast.present import present_decisions
from controller.multicast.view import VIEWS
from controller.service_classes.pool import AliasesUsed, FlowsUsed
from controller.snapshot.events import Severity
from controller.snapshot.log import Document, DocumentLog
from controller.snapshot.names import Names
from topology.events import LinkDown, TopologyEvent

if TYPE_CHECKING:
    from apps.cluster.lead import Followed, Lead

_REQUIRED_APP = required_modules("multicast")

POLICY_RELOAD = "policy-reload"


class MulticastApp(DeclaredApp, FabricApp, TableKeeper):
    """Feeds the multicast core and performs its effects; keeps its journal, logs and status socket."""

    _EVENTS: ClassVar[list[type]] = [TableSuspected, AlarmReported, DrainsChanged, PoolShared]
    core: MulticastCore
    takes_packets_together = True
    actions: ActionLog

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        directory = own_state_dir()
        self._is_shared = shares_fabric(self.policy_file.reading.policy)
        database = None if self._is_shared else LogDatabase(directory / LOG_NAME, self.logger)
        self.log = LogKeeper(self, database, lambda: self.core.sections.events)
        self._when_restored: Callable[[], None] = SOUTHBOUND.open
        self._former_journal = FormerJournal(directory / FORMER_NAME, self.logger)
        self.audit = AuditLog(Path(environment_path("VSRT_AUDIT_LOG") or directory / "audit.jsonl"), self.logger)
        self.log_actions()
        self.staged = StagedPolicy(self.logger, hub.spawn, self.later, self._present)
        self.candidates = CandidateSearch(
            self.logger, directory, socket_path(), lambda work: hub.spawn(run_aside, work), self.later
        )
        self._perform[Audit] = self._decided
        self._perform[WriteLog] = self._write_log
        self._perform[AliasesUsed] = lambda effect: self.send_event_to_observers(PoolShared(effect))
        self._perform[SwitchesDrained] = lambda effect: self.send_event_to_observers(DrainsChanged(effect))
        views = {name: partial(view, self.core) for name, view in VIEWS.items()}
        sections = self.core.sections
        sections.events.offset_s = time.time() - time.monotonic()
        self._started_s = time.time()
        self._has_let_in = Event()
        self._behind_since_s = 0.0
        self._policy: DocumentLog[str] = DocumentLog(lambda: ("policy",), lambda _key: self._policy_document())
        self._policy_shown = -1
        self._outcomes: list[ActionTaken | ActionRefused] = []
        self.offer(
            views,
            {name: partial(self._act, name) for name in (*ACTIONS, POLICY_RELOAD) if name != FORGET_SWITCH}
            | {name: partial(self._decide, name, decide) for name, decide in self.candidates.actions().items()}
            | self.table_checks.actions()
            | FindingsSearch(self, self._begin_search).actions(),
            {
                **sections.by_name(),
                "policy": self._policy,
                "staged": self.staged.documents,
                "candidates": self.candidates.documents,
                "maintenance": self.core.campaigns.section,
                "pools": self.core.addresses.pools_section,
                "addresses": self.core.addresses.section,
            },
            self._refresh,
        )
        self._perform[ActionTaken] = self._perform[ActionRefused] = self._outcomes.append

    def names_of_core(self) -> Names:
        """Return the names that the core's documents have."""
        return self.core.sections.names

    def start(self) -> Any:
        """Run, and keep the journal."""
        if not self._is_shared:
            SOUTHBOUND.hold()
        thread = super().start()
        self.log.start()
        return thread

    def begin(self) -> None:
        """Read the log, or what a version before has left instead; switches are let in when all of it is put back.

        Where several controllers share a fabric there is nothing to read before this one is to lead.
        """
        if self._is_shared:
            self._has_let_in.set()
            return
        entries, former = self.log.read(), self._former_journal.take()
        self.feed(LogRead(entries) if former is None else JournalRead(former))
        if not self.core.restart.is_under_way:
            self._let_in()

    def due(self) -> None:
        """Do what is due; switches connect from the moment on at which nothing of an earlier run is missing."""
        super().due()
        if not self._has_let_in.is_set() and not self.core.restart.is_under_way:
            self._let_in()

    def take_lead(self, lead: Lead, then: Callable[[], None]) -> None:
        """Lead on with what was followed, from where on the log is kept in the store."""
        self._has_let_in.clear()
        self._when_restored = then
        self.log.use(lead.journal.log, lead.journal.revision)
        self.feed(LeadTaken())
        if not self.core.restart.is_under_way:
            self._let_in()

    def follow_logs(self, followed: Followed) -> None:
        """Have the core as the one of the controller that leads."""
        if followed.journal:
            if not self._is_behind:
                self._behind_since_s = time.monotonic()
            self.feed(LogFollowed(followed.journal))

    def write_log_anew(self) -> None:
        """Write the whole log once more."""
        self.feed(JournalLost())

    @property
    def _is_behind(self) -> bool:
        """Whether the core has not taken in yet all that it was told of another's log."""
        return self.core.restart.follows and self.core.next_deadline() is not None

    def log_lag_s(self, now: float) -> float:
        """Return for how long something has waited for the log in the store, or for this core."""
        if self.core.restart.follows:
            return now - self._behind_since_s if self._is_behind else 0.0
        return self.log.lag_s(now)

    def renew_lead(self, lead: Lead) -> None:
        """Write all anew, for the store has lost it."""
        self.log.renew(lead.journal.log)

    def _let_in(self) -> None:
        self._has_let_in.set()
        self._when_restored()

    def ask(self, answer: Callable[[], Any], begin_s: float | None = None) -> Any:
        """Have a question answered on the loop, from when on nothing of an earlier run is missing in the answer."""
        self._has_let_in.wait(BEGIN_S if begin_s is None else begin_s)
        return super().ask(answer, begin_s)

    def end(self) -> None:
        """Leave everything on disk."""
        if not self._has_let_in.is_set():
            self._let_in()
        self.candidates.stop()
        self.log.close()
        super().end()
        self.audit.close()

    def ticked(self) -> None:
        """Look after files."""
        super().ticked()
        self.audit.flush()
        self.staged.look()
        self.candidates.use(self.policy_file.reading.policy.policy_discovery)
        self.candidates.look()
        self.log.watch()
        self._look_at_troubles()
        self._look_at_campaign()

    def _look_at_campaign(self) -> None:
        """Have a campaign of maintenance go on."""
        if self.core.campaigns.is_under_way and not self.core.restart.is_under_way:
            local = time.localtime()
            second_of_day = 3600 * local.tm_hour + 60 * local.tm_min + local.tm_sec
            self.feed(MaintenanceLooked(second_of_day % DAY_S, DATAPATHS.core.unsettled()))

    def _present(self) -> Iterator[Audit]:
        return present_decisions(self.core.gate, self.core.memberships, self.core.plane)

    def _decided(self, audit: Audit) -> None:
        self.audit.add(audit)
        if self.staged.is_used:
            self.staged.add(audit)

    @set_ev_cls(LinksMeasured)
    def _links_measured(self, event: Any) -> None:
        self.feed(event.loads)

    @set_ev_cls(ErrorsCounted)
    def _errors_counted(self, event: Any) -> None:
        self.feed(event.errors)

    @set_ev_cls(PoolShared)
    def _pool_shared(self, event: Any) -> None:
        if isinstance(event.used, FlowsUsed):
            self.feed(event.used)

    def described(self, dpid: int, description: SwitchDescription) -> None:
        """Show what the switch says of itself, and call it so where the policy has no name for it."""
        self.core.sections.described(dpid, description)

    @set_ev_cls(SwitchForgotten)
    def _switch_forgotten(self, event: Any) -> None:
        """Show a switch no longer that is gone for good; whether it may be forgotten was looked at before."""
        self.feed(read_action(FORGET_SWITCH, {"dpid": event.dpid}))
        self._outcomes.clear()

    def follow(self, change: TopologyEvent) -> None:
        """Follow one change of the fabric, and report how many trees a lost link cost."""
        before = self.core.topology.repaired_count
        super().follow(change)
        tree_count = self.core.topology.repaired_count - before
        if tree_count and isinstance(change, LinkDown):
            self.report(TreesRepaired(*change, tree_count))

    def figures(self) -> list[Metric]:
        """Return what Prometheus is told: groups, trees, joins and switches."""
        counted = counted_figures("multicast", self.core.status_view.counted())
        return [*super().figures(), *core_figures(self.core), *staged_figures(self.staged.counts()), *counted]

    # Operators

    def _act(self, name: str, asked: Mapping[str, Any]) -> Document | Deferred:
        return logged(self.actions, name, asked, lambda fields, _by: self._do(name, fields))

    def _decide(
        self, name: str, decide: Callable[[Mapping[str, Any], str | None], Deferred], asked: Mapping[str, Any]
    ) -> Deferred:
        return logged(self.actions, name, asked, decide)

    def _do(self, name: str, fields: Mapping[str, Any]) -> Document | Deferred:
        if name == POLICY_RELOAD:
            return self._reload()
        refused = None if SOUTHBOUND.gate is None else SOUTHBOUND.gate.refusal()
        if refused is not None:
            raise refused
        if self._is_shared and self.log.trouble is not None:
            raise QuestionRefused(f"Nothing was done: {self.log.trouble}", reason=ENGINE_UNREACHABLE)
        try:
            self.feed(read_action(name, fields))
        except ActionInvalid as error:
            raise QuestionRefused(str(error), error.field) from None
        document = answer_of(self._outcomes.pop())
        self.feed(DeadlineReached())  # what operators set is due at once
        answer = Deferred()
        self.log.acknowledge(lambda kept: answer.settle(document if kept else self._unkept(document)))
        return answer

    def _unkept(self, document: Document) -> Document:
        """Return what is answered where nobody knows whether a restart, or another controller, will know of it."""
        if not self._is_shared:
            return {**document, "kept": False}
        text = f"It is done here, but whether another controller would know of it is not certain: {self.log.trouble}"
        return refusal(QuestionRefused(text, reason=ENGINE_UNCONFIRMED))

    def _begin_search(self) -> tuple[Callable[[], Any], Callable[[Any], Iterator[Document | None]]]:
        check, directory = self.core.journal_check(self.log.keys_waiting()), own_state_dir()

        def search(read: tuple[list[tuple[str, str]], dict[str, Document]]) -> Iterator[Document | None]:
            faults, values = read
            yield from ({"kind": "file-unreadable", "text": f"{name} cannot be read: {why}."} for name, why in faults)
            yield from check.search(values, time.monotonic())
            yield from self.core.findings.search()

        return lambda: (list(unreadable_files(directory)), read_values(directory / LOG_NAME)), search

    def _reload(self) -> Document | Deferred:
        reading = self.policy_file.reload()
        self.policy_file.take(self.policy_was_read)
        if reading.errors:
            raise QuestionRefused("; ".join(reading.errors), "policy")
        path, rules = str(self.policy_file.path), len(reading.policy.rules)
        document = {"path": path, "rules": rules, "loaded_s": reading.loaded_s}
        if not self._is_shared:
            return document
        answer = Deferred()
        hub.spawn(self._share_policy, answer, document)
        return answer

    def _share_policy(self, answer: Deferred, document: Document) -> None:
        """Answer when the other controllers would know the policy, or cannot; on a thread."""
        why = self.policy_file.reader.pass_on()

        def settle() -> None:
            self.policy_file.take(self.policy_was_read)
            text = f"The policy of before stays in force: {why}."
            answer.settle(document if why is None else refusal(QuestionRefused(text, reason=ENGINE_UNREACHABLE)))

        self.later(settle)

    def policy_was_read(self, reading: PolicyReading) -> None:
        """Go by another policy, and make an event of it, or of its faults."""
        kind, severity = "policy-loaded", Severity.INFO
        rules = len(reading.policy.rules)
        text = f"The policy file {self.policy_file.path} was read: {rules} rules are in force."
        if reading.errors:
            kind, severity = "policy-faulty", Severity.CRITICAL
            text = f"The policy file is faulty, and the policy of before stays in force: {reading.errors[0]}"
        self.core.sections.events.add(time.monotonic(), kind, text, severity=severity)
        if not reading.errors:
            self.staged.judge_anew()
        super().policy_was_read(reading)

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
        self._reports.look_at(STATE_LOST, "journal", self.log.trouble)
        self._reports.look_at(OUTPUT_FAILED, "audit", self.audit.fault)

    def _refresh(self) -> None:
        sections = self.core.sections
        sections.environment = {"framework": NAME, "started_s": self._started_s, "apps": running_apps()}
        sections.refresh(time.monotonic())
        if self._policy_shown != self.policy_file.reading.number:
            self._policy_shown = self.policy_file.reading.number
            self._policy.touch("policy")

    def _policy_document(self) -> Document:
        reading, path = self.policy_file.reading, self.policy_file.path
        where = str(path) if path is not None else None
        return {"path": where, "text": reading.text, "loaded_s": reading.loaded_s, "errors": list(reading.errors)}

    def _write_log(self, effect: WriteLog) -> None:
        self.log.write(effect)
        if effect.part is LogPart.END:
            self.log.acknowledge(self._all_is_kept)

    def _all_is_kept(self, kept: bool) -> None:
        """Put the journal of a version before aside, where there was one, since the log has all of it."""
        aside = self._former_journal.put_aside() if kept else None
        if aside is not None:
            text = f"The journal of a version before is taken over into {LOG_NAME}, and is now {aside}."
            self.notice(Notice("journal-taken-over", text))
