"""Two ToRs and two spines before the live allocator's core, with a clock."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from controller.allocation.events import PortsRated
from controller.allocation.live import AllocatorCore
from controller.allocation.live_view import AllocatorConsole
from controller.config.settings import Allocation, PortParameters
from controller.events import Port, SwitchConnected
from topology.events import HostLearnt, LinkUp, PortRole, PortRoleChanged, SwitchUp

START_S = 1_700_000_000
MINUTE = PortParameters(days_to_average_utilization=10001)
TORS, SPINES = (1, 2), (11, 12)
UPLINKS = {"type": "tor", "role": "trunk"}


def port(number: int, up: bool = True, name: str = "") -> Port:
    return Port(number, name or f"eth{number}", bytes(6), up, 1e9)


class Bench:
    """Two ToRs, each with ports 1 and 2 to the spines and 3 and 4 to hosts, and a clock."""

    def __init__(self, settings: Allocation | None = None) -> None:
        self.now_s = float(START_S)
        self.core = AllocatorCore(settings or Allocation(openflow=MINUTE))
        self.console = AllocatorConsole(self.core, lambda: round(self.now_s * 1000), dict)

    def connect(self) -> Bench:
        for dpid in TORS:
            self.tell(SwitchUp(dpid, 4), SwitchConnected(dpid, 4, tuple(map(port, (1, 2, 3, 4)))))
        for dpid in SPINES:
            self.tell(SwitchUp(dpid, 4), SwitchConnected(dpid, 4, tuple(map(port, (1, 2)))))
        for tor in TORS:
            for number, spine in enumerate(SPINES, 1):
                self.tell(LinkUp(tor, number, spine, tor, 1e9))
                self.tell(*(PortRoleChanged(*end, PortRole.TRUNK) for end in ((tor, number), (spine, tor))))
            for number in (3, 4):
                self.tell(PortRoleChanged(tor, number, PortRole.EDGE))
                self.tell(HostLearnt(bytes([2, 0, 0, 0, tor, number]), tor, number, ()))
        return self

    def tell(self, *events: Any) -> None:
        for event in events:
            assert self.core.handle(event, 0.0) == ()

    def rate(self, busy_pct: Mapping[str, float], cpu_pct: Mapping[int, float] | None = None) -> None:
        ports = tuple(tuple(map(int, name.split(":"))) for name in busy_pct)
        at_s = np.full(len(ports), self.now_s)
        self.tell(PortsRated(ports, at_s, np.array(list(busy_pct.values())), cpu_pct or {}))

    def measure(self, busy_pct: Mapping[str, float], cpu_pct: Mapping[int, float] | None = None) -> Bench:
        """Let more than a period pass with a steady load."""
        for _ in range(8):
            self.now_s += 10
            self.rate(busy_pct, cpu_pct)
        return self

    def allocate(self, **asked: Any) -> dict[str, Any]:
        return self.console.allocate(asked)

    def watch(self, **asked: Any) -> dict[str, dict[str, Any]]:
        return {each["id"]: each for each in self.console.watch({"count": 100, **asked})["ports"]}
