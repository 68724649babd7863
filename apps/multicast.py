"""The multicast app: `ryu-manager apps/multicast.py`, or `vsrt run multicast`."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from apps.openflow.app import FabricApp, environment_path
from apps.openflow.bus import LinksMeasured
from apps.openflow.framework import NAME, running_apps, set_ev_cls
from apps.policy_file import PolicyFile
from apps.state_dir import AuditLog, JournalFile, socket_path, state_dir
from apps.status_server import Refused, StatusServer
from controller.config.policy import Policy
from controller.effects import Notice
from controller.multicast.actions import ACTIONS, ActionInvalid, read_action
from controller.multicast.core import MulticastCore
from controller.multicast.effects import ActionRefused, ActionTaken, Audit, WriteJournal
from controller.multicast.events import JournalRead, PolicyLoaded
from controller.multicast.view import VIEWS
from controller.snapshot.events import Severity
from controller.snapshot.log import Document, Section

_REQUIRED_APP = ["apps.discovery"]

POLICY_RELOAD = "policy-reload"
BY_LENGTH = 100
"""How much of the name of who asked is kept."""


class Multicast(FabricApp):
    """Feeds the multicast core and performs its effects; keeps its journal, audit log and status socket."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.policy_file = PolicyFile(self.logger)
        now, policy = time.monotonic(), self.policy_file.load()
        self.core: MulticastCore = MulticastCore(policy, now)
        self.record(now, policy=policy)
        self.policy_file.watch_signal()
        directory = state_dir()
        self.journal = JournalFile(directory / "journal.jsonl", self.logger)
        self.audit = AuditLog(Path(environment_path("VSRT_AUDIT_LOG") or directory / "audit.jsonl"), self.logger)
        self._perform[Audit] = self.audit.add
        self._perform[WriteJournal] = self._write_journal
        views = {name: partial(view, self.core) for name, view in VIEWS.items()}
        sections = self.core.sections
        sections.events.offset_s = time.time() - now
        self._started_s = time.time()
        self._policy: Section[str] = Section(lambda: ("policy",), lambda _key: self._policy_document())
        self._policy_read_count = 0
        self._outcomes: list[ActionTaken | ActionRefused] = []
        self.server = StatusServer(
            socket_path(),
            views,
            self.ask,
            self.logger,
            {name: partial(self._act, name) for name in (*ACTIONS, POLICY_RELOAD)},
            app="multicast",
            sections={**sections.by_name(), "policy": self._policy},
            refresh=self._refresh,
        )
        self._perform[ActionTaken] = self._perform[ActionRefused] = self._outcomes.append

    def start(self) -> Any:
        """Read the journal before the first switch connects, then serve."""
        self.feed(JournalRead(self.journal.read()))
        self.server.start()
        return super().start()

    def stop(self) -> None:
        """Leave everything on disk."""
        self.server.stop()
        self.audit.flush()
        super().stop()

    def ticked(self) -> None:
        """Follow the policy file, and keep the audit log."""
        self.audit.flush()
        before = self.policy_file.read_count
        policy = self.policy_file.poll()
        if self.policy_file.read_count > before:
            self._policy_read(policy)

    @set_ev_cls(LinksMeasured)
    def _links_measured(self, event: Any) -> None:
        self.feed(event.loads)

    # Operators

    def _act(self, name: str, asked: Mapping[str, Any]) -> Document:
        """Do what an operator asks for; `by` says on whose behalf. Done or refused, it is in the audit log."""
        fields = {field: value for field, value in asked.items() if field != "by"}
        by = str(asked["by"])[:BY_LENGTH] if "by" in asked else None
        try:
            document = self._reload() if name == POLICY_RELOAD else self._settle(name, fields)
        except Refused as refusal:
            self.audit.add_action(name, fields, by, str(refusal))
            raise
        self.audit.add_action(name, fields, by, None)
        return document

    def _settle(self, name: str, fields: Mapping[str, Any]) -> Document:
        try:
            self.feed(read_action(name, fields))
        except ActionInvalid as error:
            raise Refused(str(error), error.field) from None
        outcome = self._outcomes.pop()
        if isinstance(outcome, ActionRefused):
            raise Refused(outcome.text, outcome.field)
        return outcome.document

    def _reload(self) -> Document:
        policy = self.policy_file.reload()
        self._policy_read(policy)
        if policy is None:
            raise Refused("; ".join(self.policy_file.errors), "policy")
        return {"path": str(self.policy_file.path), "rules": len(policy.rules), "loaded_s": self.policy_file.loaded_s}

    def _policy_read(self, policy: Policy | None) -> None:
        events, now, file = self.core.sections.events, time.monotonic(), self.policy_file
        if policy is None:
            text = f"{file.errors[0]}; the running policy stays"
            events.add(now, "policy-faulty", text, severity=Severity.CRITICAL)
        else:
            events.add(now, "policy-loaded", f"{file.path} read: {len(policy.rules)} rules")
            self.feed(PolicyLoaded(policy))

    def notice(self, notice: Notice) -> None:
        """Count and log a notice, and make an event of it."""
        super().notice(notice)
        self.core.sections.noticed(notice, time.monotonic())

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
