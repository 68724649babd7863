"""The allocator app: `ryu-manager apps/monitor.py apps/allocator.py`, or `vsrt run monitor allocator`."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar

from apps.alarm_reports import STATE_LOST
from apps.allocation_state import AllocationState
from apps.openflow.bus import AlarmReported, LinksMeasured, PathsWeighed, PortsMeasured
from apps.openflow.declared import DeclaredApp
from apps.openflow.fabric_app import FabricApp
from apps.openflow.framework import set_ev_cls
from apps.registry import required_modules
from apps.saved_state import SavedState
from apps.state_dir import own_state_dir
from apps.status_server import QuestionRefused
from controller.allocation.book import PortStateError
from controller.allocation.fields import RequestError
from controller.allocation.live import AllocatorCore, PortStateChanges
from controller.allocation.live_sections import AllocatorSections
from controller.allocation.live_view import ACTIONS, ALLOCATE, AllocatorConsole
from controller.multicast.events import LoadsMeasured
from controller.unicast.weights import PortsWeighed

_REQUIRED_APP = required_modules("allocator")

SAVED_AT_ONCE = 2000
"""Ports written in one tick, so that the loop is soon free again."""

EXPIRY_INTERVAL_S = 600.0


class AllocatorApp(DeclaredApp, FabricApp):
    """Feeds the allocator's core with what the monitor measures, keeps its state and answers on the socket.

    It proposes ports and changes nothing; where the policy says so it tells the metrics of links to those who place
    load on them.
    """

    _EVENTS: ClassVar[list[type]] = [AlarmReported, LinksMeasured, PathsWeighed]

    core: AllocatorCore

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._perform.update(
            {
                LoadsMeasured: lambda effect: self.send_event_to_observers(LinksMeasured(effect)),
                PortsWeighed: lambda effect: self.send_event_to_observers(PathsWeighed(effect)),
            }
        )
        self.state = AllocationState(own_state_dir() / "allocation.sqlite", self.logger)
        self.saved = SavedState(self.state, self._changes, self.core.all_changed, self._tell_of_state, SAVED_AT_ONCE)
        self._expired_s = time.monotonic()
        self.console = AllocatorConsole(self.core, _now_ms, lambda: {"state": self.state.document()})
        self.sections = AllocatorSections(self.core)
        self.offer(
            actions={name: partial(self._answer, name, action) for name, action in ACTIONS.items()},
            sections=self.sections.by_name(),
            refresh=lambda: self.sections.refresh(_now_ms()),
        )

    def begin(self) -> None:
        """Take what an earlier run measured."""
        state = self.state.read()
        if state is not None:
            try:
                self.core.restore(state)
                self.logger.info(
                    "The metrics of %d ports were restored from %s.", len(self.core.book), self.state.path
                )
            except PortStateError as error:
                self.state.reject(str(error))

    @set_ev_cls(PortsMeasured)
    def _ports_measured(self, event: Any) -> None:
        self.feed(event.rated)

    def ticked(self) -> None:
        """Look after files, and end reservations that are over."""
        super().ticked()
        if time.monotonic() - self._expired_s > EXPIRY_INTERVAL_S:
            self._expired_s = time.monotonic()
            self.core.expire(_now_ms())

    def _changes(self, port_count: int) -> tuple[PortStateChanges, bool]:
        changes = self.core.changes(port_count)
        return changes, len(changes.state["ports"]) == port_count

    def _tell_of_state(self, trouble: str | None) -> None:
        text = trouble and f"{trouble}: a restart will not know what was measured since."
        self._reports.look_at(STATE_LOST, "allocation", text)

    def _answer(
        self, name: str, action: Callable[[AllocatorConsole, Mapping[str, Any]], Any], asked: Mapping[str, Any]
    ) -> Any:
        try:
            answer = action(self.console, asked)
        except RequestError as error:
            field = str(error).removeprefix("request.").partition(":")[0].partition(".")[0].partition("[")[0]
            raise QuestionRefused(str(error), field if field in asked else None) from None
        if name == ALLOCATE:
            self.sections.decided(asked, answer, time.time())
        return answer


def _now_ms() -> int:
    return round(time.time() * 1000)
