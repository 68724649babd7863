"""A controller that uniform storms of joins are played against by simulated switches, one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from threading import Event

from controllers import OPEN_POLICY, controller

from apps.simulated_fabric.fabric import SimulatedFabric
from apps.simulated_fabric.hosts import SimulatedHosts
from apps.storm.player import StormPlayer
from apps.storm.switches import storm_switches
from controller.storm.attempts import RequestState
from controller.storm.plan import StormOrder, StormShape, plan_storm

SWITCHES, SPINES, PORTS, GROUPS = 4, 2, 24, 200
JOINS_PER_S = 250.0
TIMEOUT_S = 60.0
ATTEMPTS, AGAIN_S = 10, 1.0
"""A host asks so often, with so many seconds between."""

QUICK_LEAVES = "multicast: {fast_leave: true}\n"
"""For the policy where storms follow each other soon: a leave is not held for other members to speak."""


class StormBench:
    """A controller, one of `CONTROLLERS`, and simulated switches; both end with `stack`."""

    def __init__(
        self, stack: ExitStack, name: str, policy: str = OPEN_POLICY, apps: tuple[str, ...] = ("multicast",)
    ) -> None:
        self.process = stack.enter_context(controller(name, policy, apps))
        fabric = SimulatedFabric(storm_switches(SWITCHES + 1, SPINES, PORTS), ("127.0.0.1", self.process.port))
        stack.callback(fabric.close)
        self._fabric = fabric
        self._player = StormPlayer(fabric, SimulatedHosts(fabric), GROUPS, lambda *_told: None)
        *_, (dpid, self._idle_port) = fabric.host_ports
        self._idle_switch = fabric.switches[dpid]

    def settle(self) -> None:
        """Have the controller take the switches in."""
        self._player.settle(TIMEOUT_S)

    def rest(self, duration_s: float) -> None:
        """Have the switches answer what they are asked, for so long: those that never do are given up."""
        self._fabric.run_for(duration_s)

    def set_carrier(self, is_up: bool) -> None:
        """Have the last port of the last leaf, at which nobody joins, come up or go down."""
        self._idle_switch.set_carrier(self._idle_port, is_up)

    def join(self, joins: int, seed: int) -> list[RequestState]:
        """Play a storm, and return what became of each join; SystemExit where a host was not served."""
        order = StormOrder(joins, joins / JOINS_PER_S / 6, StormShape.UNIFORM)
        states = self._player.join(plan_storm(order, SWITCHES * PORTS, GROUPS, seed), ATTEMPTS, AGAIN_S)
        if any(state.done_s is None for state in states):
            raise SystemExit("a host was not served")
        return states

    def leave_all(self) -> None:
        """Have all hosts leave, so that the next storm finds what this one found."""
        self._player.leave_all()


def settle_together(benches: Sequence[StormBench]) -> None:
    """Have several controllers take their switches in at the same time; switches rest as soon as theirs has."""
    settled: list[StormBench] = []
    is_over = Event()

    def settle(bench: StormBench) -> None:
        try:
            bench.settle()
            settled.append(bench)
            while len(settled) < len(benches) and not is_over.is_set():
                bench.rest(0.1)
        except BaseException:
            is_over.set()
            raise

    with ThreadPoolExecutor(len(benches)) as at_once:
        list(at_once.map(settle, benches))
