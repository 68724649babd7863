"""Which process runs which module: half of them have live modules, which wait, while the others compute."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any

from xdist.scheduler import LoadFileScheduling

LIVE_FOLDER = "tests/emulation/"
LONGEST = tuple(
    f"{LIVE_FOLDER}test_{name}_live.py"
    for name in ("vlans", "how_to", "routers", "installation", "check", "return", "allocator", "repair", "guard")
)
"""Live modules that take a minute or more: they begin first, so that none is left over when all else has ended."""

WAITING, COMPUTING = 5, 10
"""The niceness of live tests that hold no packets against the clock, and of those that are not live.

Processors are for live tests first, which leave most of them free.
"""

_NICENESS = os.getpriority(os.PRIO_PROCESS, 0)


class Lanes(LoadFileScheduling):  # type: ignore[misc]
    """Hands out modules in the order of their tests, but the longest first, live ones to half of the processes."""

    def _assign_work_unit(self, node: Any) -> None:
        running = sum(self._runs_live(other) for other in self.nodes if other is not node)
        live = running < self.numnodes // 2
        waiting = [name for name in self.workqueue if _is_live(name) is live]
        module = next((name for name in LONGEST if name in waiting), waiting[0] if waiting else None)
        if module is not None:
            self.workqueue.move_to_end(module, last=False)
        super()._assign_work_unit(node)

    def _reschedule(self, node: Any) -> None:
        # A process begins a test once it has the one after it: its next module comes with the last test of one.
        if not self.workqueue or self._pending_of(self.assigned_work[node]) <= 1:
            super()._reschedule(node)

    def _runs_live(self, node: Any) -> bool:
        modules = self.assigned_work[node].items()
        return any(_is_live(name) and not all(tests.values()) for name, tests in modules)


def _is_live(module: str) -> bool:
    return module.startswith(LIVE_FOLDER)


def give_way(niceness: int) -> None:
    """Let this process, and those it starts from here on, give way to those of less niceness.

    Without root's rights what once gave way goes on to do so.
    """
    with suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, 0, max(niceness, _NICENESS))
