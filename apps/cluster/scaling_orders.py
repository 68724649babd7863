"""What is done about the number of monitors: drained, or with their part again; the program run; polls made rarer."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence, Set

from apps.cluster.monitor_orders import Order
from apps.cluster.scaling_command import ScalingProgram
from apps.system import system_threading
from controller.cluster.draining import draining, undraining
from controller.cluster.monitor_states import MonitorState
from controller.scaling.advised import Advised
from controller.scaling.advisor import TIER
from controller.snapshot.log import Document

COMMAND_LIMIT_S = 60.0
"""How long the program may take."""

DRAIN_LIMIT_S = 60.0
"""How long monitors may take to be drained, and to hand their switches over, before the program is run."""

LOOK_S, RETRY_S = 0.1, 1.0
"""How often it is looked whether they have, and how soon a drain that was refused or not confirmed is tried again."""


class ScalingOrders:
    """Sees to what is advised, on a thread that may wait.

    Parameters
    ----------
    order
        Has monitors drained, or not any more, and returns what is answered.
    monitors
        Returns the monitors that are there.
    command
        The program and its first arguments; none where it is empty.
    drain_limit_s, retry_s
        `DRAIN_LIMIT_S` and `RETRY_S`, unless it is a test.

    Attributes
    ----------
    command
        As above; it may be another one from the next run on.
    """

    def __init__(
        self,
        order: Callable[[Order, str], Document],
        monitors: Callable[[], Mapping[str, MonitorState]],
        command: Sequence[str],
        drain_limit_s: float = DRAIN_LIMIT_S,
        retry_s: float = RETRY_S,
    ) -> None:
        self.command = tuple(command)
        self._order = order
        self._monitors = monitors
        self._program = ScalingProgram()
        self._drain_limit_s = drain_limit_s
        self._retry_s = retry_s
        self._pause = system_threading.Event()

    def chosen(self, advised: Advised, spare: Set[str]) -> list[str]:
        """Return which monitors are to be drained, never the one that divides, or to have their part again.

        `spare` are those that were drained since fewer were advised: others an operator drained, and are left alone.
        """
        states, change = self._monitors(), (advised.wanted or advised.monitors) - advised.monitors
        if change > 0:
            return sorted(name for name, state in states.items() if state.drained and name in spare)[:change]
        able = [name for name, state in states.items() if not state.drained and not state.divides]
        return sorted(able, reverse=True)[:-change] if change else []

    def prepare(self, advised: Advised, chosen: Sequence[str]) -> tuple[bool, list[str]]:
        """Drain the monitors that were chosen, or have them take their part again.

        Return whether the program is to be run then, and what went wrong, as sentences.
        """
        count, wanted = advised.monitors, advised.wanted or advised.monitors
        if wanted > count:
            problems = [problem for name in chosen if (problem := self._ordered(undraining, name))]
            lacks = len(chosen) < wanted - count or bool(problems)
            if lacks and not self.command:
                problems.append("No program is named that starts monitors (scaling.command).")
            return lacks and bool(self.command), problems
        if wanted == count or not chosen:
            return False, []
        problems = self._shrink(chosen)
        return not problems and bool(self.command), problems

    def run(self, wanted: int, drained: Sequence[str]) -> str:
        """Run the program and return why it failed, as a sentence; '' where it did not."""
        problem = self._program.run((*self.command, TIER, str(wanted)), drained, COMMAND_LIMIT_S)
        return f"{problem}." if problem else ""

    def left(self, wanted: int, drained: Sequence[str]) -> list[str] | None:
        """Return which of the monitors that were drained may still be ended; None where nothing is left to be done.

        One that polls again, for somebody had it do so, is not to be ended.
        """
        states = self._monitors()
        if drained:
            return [name for name in drained if name in states and not self._polls(name)] or None
        return [] if sum(not state.drained for state in states.values()) < wanted else None

    def _shrink(self, chosen: Sequence[str]) -> list[str]:
        """Drain monitors, and wait until they have no switch.

        What fails is tried again for a while. After that all have their part again: the pool is as it was, and the
        next advice is no other than this one.
        """
        deadline_s = time.monotonic() + self._drain_limit_s
        problems = self._drain(chosen, deadline_s)
        while not problems and (busy := [name for name in chosen if self._polls(name)]):
            if time.monotonic() > deadline_s:
                problems = [f"{', '.join(busy)} still has switches {self._drain_limit_s:g} s after it was drained."]
            self._pause.wait(LOOK_S)
        if not problems:
            return []
        left = {name: problem for name in chosen if (problem := self._ordered(undraining, name))}
        return [*problems, *(f"{name} may be drained still. {problem}" for name, problem in left.items())]

    def _drain(self, names: Sequence[str], deadline_s: float) -> list[str]:
        """Have monitors drained; return what is wrong with those that are not by then."""
        left = list(names)
        while True:
            problems = {name: problem for name in left if (problem := self._ordered(draining, name))}
            left = list(problems)
            if not left or time.monotonic() + self._retry_s > deadline_s:
                return list(problems.values())
            self._pause.wait(self._retry_s)

    def _polls(self, name: str) -> bool:
        """Tell whether a monitor has ports to poll; a switch that nobody is connected to stays whose it was."""
        state = self._monitors().get(name)
        return state is not None and (state.ports > 0 or state.leaving > 0 or not state.drained)

    def _ordered(self, order: Order, name: str) -> str:
        return str(self._order(order, name).get("error", ""))
