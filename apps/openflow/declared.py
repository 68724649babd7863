"""The life of an app with a row in `apps.registry`: from the policy to its core, what it offers and its files."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from apps.alarm_reports import OUTPUT_FAILED
from apps.openflow.app import App, TableKeeper
from apps.openflow.framework import DATAPATHS
from apps.openflow.live_probes import PROBES
from apps.policy_file import FollowedPolicy, PolicyReading, follow_policy
from apps.registry import APPS
from apps.saved_state import SavedState
from apps.state_dir import ActionLog, socket_path, state_dir
from apps.status_server import StatusServer
from controller.snapshot.log import DocumentLog
from controller.snapshot.names import Names


class DeclaredApp(App):
    """An app with a row in the registry, whose name is that of the class in lower case.

    It has its core made, and tells it of other policies; it serves what a subclass offers, keeps what it gives it to
    keep, and leaves all on disk.
    """

    policy_file: FollowedPolicy

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        spec = APPS[self.name.lower()]
        assert spec.core is not None
        self.policy_file = follow_policy(spec.name)
        self._spec = spec.core()
        policy, now = self.policy_file.reading.policy, time.monotonic()
        start = dict(self._spec.start(policy, time.time()))
        if self._spec.secret_bytes:
            start["secret"] = os.urandom(self._spec.secret_bytes)
        self.core = self._spec.make(start, now, DATAPATHS.core_for(self) if isinstance(self, TableKeeper) else None)
        if self._spec.records is not None:
            self.record(now, **start)
        self.server: StatusServer | None = None
        self.saved: SavedState | None = None
        self.actions: ActionLog | None = None
        self.use_names(policy, self.names_of_core())

    def names_of_core(self) -> Names | None:
        """Return the names of switches that the core has itself; None where they are the app's."""
        return None

    def offer(
        self,
        views: Mapping[str, Callable[[], Any]] = MappingProxyType({}),
        actions: Mapping[str, Callable[[Mapping[str, Any]], Any]] = MappingProxyType({}),
        sections: Mapping[str, DocumentLog[Any]] = MappingProxyType({}),
        refresh: Callable[[], None] | None = None,
    ) -> None:
        """Have this served on the status socket while the app runs (`StatusServer`)."""
        self.server = StatusServer(
            socket_path(),
            views,
            self.ask,
            self.logger,
            actions,
            app=self.name.lower(),
            sections=sections,
            refresh=refresh,
        )

    def log_actions(self) -> None:
        """Keep a log of what operators ask for."""
        self.actions = ActionLog(state_dir() / "actions.jsonl", self.logger)

    def start(self) -> Any:
        """Serve, then run."""
        if self.server is not None:
            self.server.start()
        PROBES.join(self)
        self.policy_file.start()
        return super().start()

    def stop(self) -> None:
        """Answer no more, then end."""
        PROBES.leave(self)
        if self.server is not None:
            self.server.stop()
        super().stop()
        self.policy_file.leave()

    def end(self) -> None:
        """Leave everything on disk."""
        if self.saved is not None:
            self.saved.close()
        if self.actions is not None:
            self.actions.flush()

    def ticked(self) -> None:
        """Follow the policy file, and keep the state and the log of actions."""
        self.policy_file.take(self.policy_was_read)
        if self.saved is not None:
            self.saved.look(time.monotonic())
        if self.actions is not None:
            self.actions.flush()
            self._reports.look_at(OUTPUT_FAILED, "actions", self.actions.fault)
        self._reports.look_at(OUTPUT_FAILED, "actions-of-probes", PROBES.log_fault(self))

    def policy_was_read(self, reading: PolicyReading) -> None:
        """Go by another policy, unless the file is faulty."""
        if not reading.errors:
            self.names.configure(reading.policy.switches, reading.policy.labels)
            self.feed(self._spec.changed(reading.policy))
