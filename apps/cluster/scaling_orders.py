"""What is done about the number of monitors: drained, or with their part again; the program run; polls made rarer."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence, Set

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

    def chosen(self, advised: Advised, spare: Set[str]) -> list[str]:
        """Return which monitors are to be drained, never the one that divides, or to have their part again.

        `spare` are those that were drained since fewer were advised: others an operator drained, and are left alone.
        """
        states, change = self._monitors(), (advised.wanted or advised.monitors) - advised.monitors
        if change > 0:
            return sorted(name for name, state in states.items() if state.drained and name in spare)[:change]
        able = [name for name, state in states.items() if not state.drained and not state.divides]
        return sorted(able, reverse=True)[:-change] if change else []

    def carry_out(self, advised: Advised, chosen: Sequence[str]) -> list[str]:
        """Do what is advised with the monitors that were chosen; return what went wrong, as sentences."""
        count, wanted = advised.monitors, advised.wanted or advised.monitors
        if wanted > count:
            problems = [problem for name in chosen if (problem := self._ordered(undraining, name))]
            enough = len(chosen) == wanted - count and not problems
            return [] if enough else [*problems, *self._run(wanted, ())]
        return self._shrink(wanted, chosen) if wanted < count else []

    def _shrink(self, wanted: int, chosen: Sequence[str]) -> list[str]:
        """Drain monitors; the program ends them when they have no switch."""
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
