"""Which process of a test run runs which module.

Half of them have live modules that count packets, and wait, while the others compute; one of these begins with live
modules that count none.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from enum import Enum, auto
from typing import Any

from xdist.scheduler import LoadFileScheduling

LIVE_FOLDER = "tests/emulation/"


def _live(*names: str) -> tuple[str, ...]:
    return tuple(f"{LIVE_FOLDER}test_{name}_live.py" for name in names)


LONGEST = _live(
    *("how_to", "scaling", "cluster_faults", "cluster", "installation", "maintenance", "routers", "paths_by_metric"),
    *("shares", "vlans", "anomaly", "check", "return", "operator_records", "cluster_store", "allocator"),
    *("registered", "guard", "repair", "large_flows", "queues", "aliases", "shared_entries", "cluster_upgrade"),
)
"""Live modules that take most of a minute or more: they begin first, so that none is left over when all else ends."""

UNHURRIED = frozenset(
    _live(
        *("how_to", "installation", "allocator", "full_disk", "mn", "tls"),
        *("dashboard", "alarms", "events", "recording", "paths_by_metric", "large_flows", "template"),
        *("operator_records", "monitor", "prometheus", "normalcy"),
    )
)
"""Live modules all of whose tests are marked as unhurried.

They count no packets, and hold nothing else against the clock.
"""

WAITING, COMPUTING = 5, 10
"""The niceness of live tests that hold no packets against the clock, and of those that are not live.

Processors are for live tests first, which leave most of them free.
"""

_NICENESS = os.getpriority(os.PRIO_PROCESS, 0)


class Kind(Enum):
    """What the tests of a module do with the processors."""

    COUNTS_PACKETS = auto()
    WAITS = auto()
    COMPUTES = auto()


class Lanes(LoadFileScheduling):  # type: ignore[misc]
    """Hands out modules in the order of their tests, but the longest first, live ones to half of the processes.

    Of five processes and more another one has live modules too: those that count no packets, while there are any.
    """

    def _assign_work_unit(self, node: Any) -> None:
        wanted = self._wanted_by(node)
        waiting = [name for kind in wanted for name in self.workqueue if kind_of(name) is kind]
        module = next((name for name in LONGEST if name in waiting), waiting[0] if waiting else None)
        if module is not None:
            self.workqueue.move_to_end(module, last=False)
        super()._assign_work_unit(node)

    def _wanted_by(self, node: Any) -> tuple[Kind, ...]:
        """Return the kinds of modules that a process is there for; it has others where there is none of these."""
        running = Counter(kind for other in self.nodes if other is not node for kind in self._kinds_run_by(other))
        lanes, beside = self.numnodes // 2, self.numnodes // 5
        if not beside:
            live = (Kind.COUNTS_PACKETS, Kind.WAITS)
            return live if running[Kind.COUNTS_PACKETS] + running[Kind.WAITS] < lanes else (Kind.COMPUTES,)
        if running[Kind.COUNTS_PACKETS] < lanes:
            return (Kind.COUNTS_PACKETS,)
        return (Kind.WAITS,) if running[Kind.WAITS] < beside else (Kind.COMPUTES,)

    def _reschedule(self, node: Any) -> None:
        # A process begins a test once it has the one after it: its next module comes with the last test of one.
        if not self.workqueue or self._pending_of(self.assigned_work[node]) <= 1:
            super()._reschedule(node)

    def _kinds_run_by(self, node: Any) -> Iterator[Kind]:
        return (kind_of(name) for name, tests in self.assigned_work[node].items() if not all(tests.values()))


def kind_of(module: str) -> Kind:
    """Tell what a module does, by its path."""
    if not module.startswith(LIVE_FOLDER):
        return Kind.COMPUTES
    return Kind.WAITS if module in UNHURRIED else Kind.COUNTS_PACKETS


def give_way(niceness: int) -> None:
    """Let this process, and those it starts from here on, give way to those of less niceness.

    Without root's rights what once gave way goes on to do so.
    """
    with suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, 0, max(niceness, _NICENESS))
