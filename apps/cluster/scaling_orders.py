"""What is done about the number of monitors: drained, or with their part again; the program run; polls made rarer."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from apps.cluster.monitor_orders import Order
from apps.cluster.scaling_command import run_scaling_command
from apps.system import system_threading
from controller.cluster.draining import draining, undraining
from controller.cluster.monitor_states import MonitorState
from controller.scaling.advised import Advised
from controller.scaling.advisor import TIER
from controller.snapshot.log import Document

COMMAND_LIMIT_S = 60.0
"""How long the program may take."""

DRAIN_LIMIT_S = 60.0
"""How long monitors may take to hand their switches over before the program is run."""

LOOK_S = 0.1


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
    """

    def __init__(
        self,
        order: Callable[[Order, str], Document],
        monitors: Callable[[], Mapping[str, MonitorState]],
        command: Sequence[str],
    ) -> None:
        self._order = order
        self._monitors = monitors
        self._command = tuple(command)
        self._pause = system_threading.Event()

    def carry_out(self, advised: Advised) -> list[str]:
        """Do what is advised about the number of monitors; return what went wrong, as sentences."""
        wanted = advised.wanted or advised.monitors
        if wanted > advised.monitors:
            return self._grow(advised.monitors, wanted)
        if wanted < advised.monitors:
            return self._shrink(advised.monitors, wanted)
        return []

    def _grow(self, count: int, wanted: int) -> list[str]:
        spare = sorted(name for name, state in self._monitors().items() if state.drained)[: wanted - count]
        problems = [problem for name in spare if (problem := self._ordered(undraining, name))]
        if len(spare) == wanted - count and not problems:
            return []
        return [*problems, *self._run(wanted, ())]

    def _shrink(self, count: int, wanted: int) -> list[str]:
        """Drain monitors, but not the one that divides; the program ends them when they have no switch."""
        states = self._monitors()
        able = [name for name, state in states.items() if not state.drained and not state.divides]
        chosen = sorted(able, reverse=True)[: count - wanted]
        problems = [problem for name in chosen if (problem := self._ordered(draining, name))]
        if problems or not chosen:
            return problems
        deadline_s = time.monotonic() + DRAIN_LIMIT_S
        while busy := [name for name in chosen if self._polls(name)]:
            if time.monotonic() > deadline_s:
                return [f"{', '.join(busy)} still has switches {DRAIN_LIMIT_S:g} s after it was drained."]
            self._pause.wait(LOOK_S)
        return self._run(wanted, chosen)

    def _polls(self, name: str) -> bool:
        """Tell whether a monitor has ports to poll; a switch that nobody is connected to stays whose it was."""
        state = self._monitors().get(name)
        return state is not None and (state.ports > 0 or state.leaving > 0 or not state.drained)

    def _ordered(self, order: Order, name: str) -> str:
        return str(self._order(order, name).get("error", ""))

    def _run(self, wanted: int, drained: Sequence[str]) -> list[str]:
        if not self._command:
            return [] if drained else ["No program is named that starts monitors (scaling.command)."]
        problem = run_scaling_command((*self._command, TIER, str(wanted)), drained, COMMAND_LIMIT_S)
        return [f"{problem}."] if problem else []
