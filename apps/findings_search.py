"""The search for what does not fit together apart from flow entries: files, journal, settings, members."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

from apps.openflow.framework import hub, run_aside
from controller.snapshot.log import Document

if TYPE_CHECKING:
    from apps.openflow.app import TableKeeper

ACTION, DISCOVERY_FINDINGS = "check-findings", "check-discovery-findings"
"""What is asked for the findings of multicast, and for those of discovery."""

STEPS = 500
"""Members, groups and settings that are looked at in one go."""

BOUND = 1000
"""Findings that are told; those beyond are counted."""

Steps = Iterator[Document | None]
Begin = Callable[[], tuple[Callable[[], Any], Callable[[Any], Steps]]]


class FindingsSearch:
    """One search at a time: a question begins it unless one is under way, and the answer to the last one ends it.

    `begin` is called on the app's loop and returns what is to be read aside, on a thread, and what makes the steps of
    the search of that, on the loop again.
    """

    def __init__(self, app: TableKeeper, begin: Begin) -> None:
        self._app = app
        self._begin = begin
        self._is_under_way = self._is_done = False
        self._steps: Steps = iter(())
        self._found: list[Document] = []
        self._count = 0

    def actions(self) -> dict[str, Callable[[Mapping[str, Any]], Document]]:
        """Return what the app answers on the status socket."""
        return {ACTION: lambda _asked: self._answer()}

    def _answer(self) -> Document:
        if not self._is_under_way:
            self._is_under_way, self._is_done = True, False
            self._found, self._count = [], 0
            hub.spawn(self._read, *self._begin())
        if not self._is_done:
            return {"done": False, "count": 0, "findings": []}
        self._is_under_way = False
        return {"done": True, "count": self._count, "findings": self._found}

    def _read(self, read: Callable[[], Any], search: Callable[[Any], Steps]) -> None:
        """Read what is on the disk; on a thread."""
        contents: list[Any] = []
        try:
            run_aside(lambda: contents.append(read()))
        except Exception:
            self._app.logger.exception("Files of the controller could not be looked at.")
        self._app.later(lambda: self._search(search(contents[0]) if contents else iter(())))

    def _search(self, steps: Steps) -> None:
        self._steps = steps
        self._go_on()

    def _go_on(self) -> None:
        steps, self._is_done = 0, True  # also where a step fails, which the loop tells
        for finding in islice(self._steps, STEPS):
            steps += 1
            if finding is not None:
                self._count += 1
                if len(self._found) < BOUND:
                    self._found.append(finding)
        self._is_done = steps < STEPS
        if not self._is_done:
            self._app.later(self._go_on)
