"""Checks of flow tables that operators ask for: one app's switches are read, told about, and repaired if asked."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from apps.actions import logged
from apps.state_dir import ActionLog, own_state_dir
from apps.status_server import QuestionRefused
from controller.effects import TableSurveyed
from controller.events import CheckRequested, SurveyOrder
from controller.snapshot.log import Document

READ_AT_ONCE = 8
"""Switches that are read at the same time for a check."""

REPORTS_PER_ANSWER = 16

MAX_DPID = (1 << 64) - 1

LISTS_FOREIGN = "discovery"
"""The app whose checks list entries that are nobody's here: it runs wherever another does."""


def check_action(app: str) -> str:
    """Return the name of the action that begins a check of an app's tables."""
    return f"check-{app}"


def report_action(app: str) -> str:
    """Return the name of the question for what an app's check has found."""
    return f"check-{app}-report"


class Surveyed(Protocol):
    """An app whose core keeps flow entries on switches."""

    name: str
    logger: logging.Logger

    def connected_switches(self) -> list[int]:
        """Return the switches that are connected; on the loop."""

    def later(self, work: Callable[[], None]) -> None:
        """Have work done on the loop when what goes on there has ended."""

    def feed(self, event: Any) -> None:
        """Give the core one event."""


class TableChecks:
    """The check under way of one app, or its last one."""

    def __init__(self, app: Surveyed) -> None:
        self._app = app
        self._name = app.name.lower()
        self._order = SurveyOrder(0)
        self._waiting: deque[int] = deque()
        self._under_way: set[int] = set()
        self._reports: list[Document] = []
        self._switch_count = 0

    def actions(self) -> dict[str, Callable[[Mapping[str, Any]], Document]]:
        """Return what the app answers on the status socket."""
        name, log = check_action(self._name), ActionLog(own_state_dir() / "actions.jsonl", self._app.logger)
        return {
            name: lambda asked: logged(log, name, asked, lambda fields, _by: self._begin(fields)),
            report_action(self._name): self._report,
        }

    def surveyed(self, effect: TableSurveyed) -> None:
        """Take what a switch was found to hold, and go on with the next one."""
        if effect.number != self._order.number or effect.dpid not in self._under_way:
            return
        self._under_way.remove(effect.dpid)
        self._reports.append({"app": self._name, **effect.document})
        self._app.later(self._read_next)

    def _begin(self, fields: Mapping[str, Any]) -> Document:
        for field in fields:
            if field not in ("dpid", "repair", "force"):
                raise QuestionRefused(f"{field}: a check has no such field", field)
        dpid, repair, force = fields.get("dpid"), fields.get("repair", False), fields.get("force", False)
        for field, value in (("repair", repair), ("force", force)):
            if type(value) is not bool:
                raise QuestionRefused(f"{field}: {value!r} is neither true nor false", field)
        if dpid is not None and (type(dpid) is not int or not 0 <= dpid <= MAX_DPID):
            raise QuestionRefused(f"dpid: {dpid!r} is no whole number from 0 to {MAX_DPID}", "dpid")
        if self._waiting or self._under_way:
            raise QuestionRefused("another check of these tables is under way: it ends within seconds")
        self._order = SurveyOrder(self._order.number + 1, repair, force, self._name == LISTS_FOREIGN)
        dpids = self._app.connected_switches() if dpid is None else [dpid]
        self._waiting, self._reports, self._switch_count = deque(dpids), [], len(dpids)
        self._app.later(self._read_next)
        return {"number": self._order.number, "switches": self._switch_count}

    def _read_next(self) -> None:
        while self._waiting and len(self._under_way) < READ_AT_ONCE:
            dpid = self._waiting.popleft()
            self._under_way.add(dpid)
            self._app.feed(CheckRequested(dpid, self._order))

    def _report(self, asked: Mapping[str, Any]) -> Document:
        number, after = asked.get("number"), asked.get("after", 0)
        if number != self._order.number:
            raise QuestionRefused(f"number: there is no check {number!r}, or another one came after it", "number")
        if type(after) is not int or after < 0:
            raise QuestionRefused(f"after: {after!r} is no whole number", "after")
        reports = self._reports[after : after + REPORTS_PER_ANSWER]
        return {
            "number": number,
            "switches": self._switch_count,
            "done": after + len(reports) == self._switch_count,
            "reports": reports,
        }
