"""The allocator app: `ryu-manager apps/monitor.py apps/allocator.py`, or `vsrt run monitor allocator`."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from apps.allocation_state import AllocationState
from apps.openflow.app import FabricApp
from apps.openflow.bus import PortsMeasured
from apps.openflow.framework import set_ev_cls
from apps.policy_file import PolicyFile
from apps.state_dir import own_state_dir, socket_path
from apps.status_server import Refused, StatusServer
from controller.allocation.book import StateError
from controller.allocation.events import AllocationChanged
from controller.allocation.fields import RequestError
from controller.allocation.live import AllocatorCore
from controller.allocation.live_sections import AllocatorSections
from controller.allocation.live_view import ACTIONS, ALLOCATE, AllocatorConsole

_REQUIRED_APP = ["apps.discovery"]

SAVED_AT_ONCE = 2000
"""Ports written in one tick, so that the loop is soon free again."""

EXPIRY_INTERVAL_S = 600.0
RETRY_S = 10.0


class Allocator(FabricApp):
    """Feeds the allocator's core with what the monitor measures, keeps its state and answers on the socket.

    It proposes ports and changes nothing.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.policy_file = PolicyFile(self.logger)
        self.core: AllocatorCore = AllocatorCore(self.policy_file.load().allocation)
        directory = own_state_dir()
        self.state = AllocationState(directory / "allocation.sqlite", self.logger)
        self._expired_s = time.monotonic()
        self._save_from_s = 0.0
        self.console = AllocatorConsole(self.core, _now_ms, lambda: {"state": self.state.document()})
        self.sections = AllocatorSections(self.core)
        self.server = StatusServer(
            socket_path(),
            {},
            self.ask,
            self.logger,
            {name: partial(self._answer, name, action) for name, action in ACTIONS.items()},
            app="allocator",
            sections=self.sections.by_name(),
            refresh=lambda: self.sections.refresh(_now_ms()),
        )

    def start(self) -> Any:
        """Serve the status socket, then run."""
        self.server.start()
        return super().start()

    def begin(self) -> None:
        """Take what an earlier run measured."""
        state = self.state.read()
        if state is not None:
            try:
                self.core.restore(state)
                self.logger.info(
                    "The metrics of %d ports were restored from %s.", len(self.core.book), self.state.path
                )
            except StateError as error:
                self.state.reject(str(error))

    def end(self) -> None:
        """Leave everything on disk."""
        while self._save():
            pass
        self.state.close()

    def stop(self) -> None:
        """Answer no more, then end."""
        self.server.stop()
        super().stop()

    def _packet_received(self, _event: Any) -> None:
        """Packets are of no concern here: without its handler the framework does not bring them."""

    @set_ev_cls(PortsMeasured)
    def _ports_measured(self, event: Any) -> None:
        self.feed(event.rated)

    def ticked(self) -> None:
        """Follow the policy file, and keep the state."""
        policy = self.policy_file.poll()
        if policy is not None:
            self.feed(AllocationChanged(policy.allocation))
        if time.monotonic() - self._expired_s > EXPIRY_INTERVAL_S:
            self._expired_s = time.monotonic()
            self.core.expire(_now_ms())
        if time.monotonic() >= self._save_from_s:
            self._save()

    def _save(self) -> bool:
        """Keep some of what changed; return whether more is left that can be kept."""
        changes = self.core.changes(SAVED_AT_ONCE)
        if not self.state.write(changes):
            self.core.all_changed()
            self._save_from_s = time.monotonic() + RETRY_S
            return False
        return len(changes.state["ports"]) == SAVED_AT_ONCE

    def _answer(
        self, name: str, action: Callable[[AllocatorConsole, Mapping[str, Any]], Any], asked: Mapping[str, Any]
    ) -> Any:
        try:
            answer = action(self.console, asked)
        except RequestError as error:
            field = str(error).removeprefix("request.").partition(":")[0].partition(".")[0].partition("[")[0]
            raise Refused(str(error), field if field in asked else None) from None
        if name == ALLOCATE:
            self.sections.decided(asked, answer, time.time())
        return answer


def _now_ms() -> int:
    return round(time.time() * 1000)
