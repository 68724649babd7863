"""The multicast app: `ryu-manager apps/multicast.py`, or `vsrt run multicast`."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import Any

from apps.openflow.app import App, environment_path
from apps.openflow.bus import LinksMeasured, Ticked, TopologyChanged
from apps.openflow.framework import NAME, hub, running_apps, set_ev_cls
from apps.policy_file import CHECK_INTERVAL_S, PolicyFile
from apps.state_dir import AuditLog, JournalFile, state_dir
from apps.status_server import StatusServer
from controller.effects import Notice
from controller.multicast.core import MulticastCore
from controller.multicast.effects import Audit, WriteJournal
from controller.multicast.events import JournalRead, PolicyLoaded
from controller.multicast.view import VIEWS
from controller.snapshot.log import Document, Section

_REQUIRED_APP = ["apps.discovery"]


class Multicast(App):
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
        socket_path = Path(environment_path("VSRT_SOCKET") or directory / "vsrt.sock")
        sections = self.core.sections
        sections.events.offset_s = time.time() - now
        self._started_s = time.time()
        self._policy: Section[str] = Section(lambda: ("policy",), lambda _key: self._policy_document())
        self._policy_read_count = 0
        self.server = StatusServer(
            socket_path,
            views,
            self.ask,
            self.logger,
            app="multicast",
            sections={**sections.by_name(), "policy": self._policy},
            refresh=self._refresh,
        )

    def start(self) -> Any:
        """Read the journal before the first switch connects, then serve."""
        self.feed(JournalRead(self.journal.read()))
        self.server.start()
        thread = super().start()
        self.threads.append(hub.spawn(self._tick))
        return thread

    def stop(self) -> None:
        """Leave everything on disk."""
        self.server.stop()
        self.audit.flush()
        super().stop()

    def _tick(self) -> None:
        while self.is_active:
            hub.sleep(CHECK_INTERVAL_S)
            self.send_event(self.name, Ticked())

    @set_ev_cls(Ticked)
    def _ticked(self, _event: Any) -> None:
        self.audit.flush()
        policy = self.policy_file.poll()
        if policy is not None:
            self.feed(PolicyLoaded(policy))

    @set_ev_cls(TopologyChanged)
    def _topology_changed(self, event: Any) -> None:
        for change in event.changes:
            self.feed(change)

    @set_ev_cls(LinksMeasured)
    def _links_measured(self, event: Any) -> None:
        self.feed(event.loads)

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
