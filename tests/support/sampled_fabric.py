"""A leaf-spine fabric whose ports are sampled: what discovery and the monitor would tell the live comparison."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from controller.anomaly.live_events import MemberKey, PortsSampled
from controller.events import DeadlineReached
from topology.events import HostLearnt, LinkUp, PortRole, PortRoleChanged, SwitchUp, TopologyEvent

START_S = 1_700_000_000.0
SPINES_FROM = 101
EDGE_PORT = 50


class SampledFabric:
    """`leaves` leaf switches, each with a cable to each of `spines` spine switches and one host.

    Every cable carries `pps` packets per second in both directions; switches are polled every `poll_s`, each at its
    own time. `lossy` has the share of packets that a port's cable loses, `extra_pps` what a port sends besides.
    While a switch is `late` it is not polled, and its next sample is over all of that time.
    """

    def __init__(self, leaves: int = 4, spines: int = 2, poll_s: float = 1.0, pps: float = 1000.0, seed: int = 1):
        self.leaves = list(range(1, leaves + 1))
        self.spines = list(range(SPINES_FROM, SPINES_FROM + spines))
        self.poll_s = poll_s
        self.pps = pps
        self.lossy: dict[MemberKey, float] = {}
        self.extra_pps: dict[MemberKey, float] = {}
        self.errors_per_s: dict[MemberKey, float] = {}
        self.cpu_pct: dict[int, float] = {}
        self.silent: set[int] = set()
        self.late: set[int] = set()
        self.now_s = START_S
        self._rng = np.random.default_rng(seed)
        self._far: dict[MemberKey, MemberKey] = {}
        self._seconds: dict[tuple[MemberKey, int], tuple[int, int]] = {}
        self._late_s: dict[int, float] = {}
        for number, leaf in enumerate(self.leaves, 1):
            for index, spine in enumerate(self.spines, 1):
                self._far[leaf, index] = (spine, number)
                self._far[spine, number] = (leaf, index)

    def events(self) -> Iterator[TopologyEvent]:
        """What discovery finds."""
        for dpid in (*self.leaves, *self.spines):
            yield SwitchUp(dpid, 4)
        for (dpid, port_no), (far, far_port) in self._far.items():
            yield PortRoleChanged(dpid, port_no, PortRole.TRUNK)
            if dpid < far:
                yield LinkUp(dpid, port_no, far, far_port, 1e9)
        for leaf in self.leaves:
            yield PortRoleChanged(leaf, EDGE_PORT, PortRole.EDGE)
            yield HostLearnt(bytes((2, 0, 0, 0, 0, leaf)), leaf, EDGE_PORT, ())

    def ports(self, dpid: int) -> list[MemberKey]:
        """The ports of a switch."""
        trunks = [key for key in self._far if key[0] == dpid]
        return [*trunks, (dpid, EDGE_PORT)] if dpid in self.leaves else trunks

    def samples(self, duration_s: float) -> Iterator[PortsSampled]:
        """Poll for a while."""
        switches = [*self.leaves, *self.spines]
        for poll in range(round(duration_s / self.poll_s)):
            for number, dpid in enumerate(switches):
                if dpid in self.late:
                    self._late_s[dpid] = self._late_s.get(dpid, 0.0) + self.poll_s
                elif dpid not in self.silent:
                    phase_s = self.poll_s * (number * 0.618 % 1.0)
                    yield self._sample(dpid, self.now_s + poll * self.poll_s + phase_s)
        self.now_s += duration_s

    def feed(self, core: Any, duration_s: float) -> list[Any]:
        """Have a core judge what is sampled for a while, and return its effects."""
        found: list[Any] = []
        for sample in self.samples(duration_s):
            found += core.handle(sample, 0.0)
            while core.next_deadline() is not None:
                found += core.handle(DeadlineReached(), 0.0)
        return found

    def _sample(self, dpid: int, at_s: float) -> PortsSampled:
        ports = self.ports(dpid)
        per_s = np.zeros((len(ports), 12))
        interval_s = self.poll_s + self._late_s.pop(dpid, 0.0)
        for row, key in enumerate(ports):
            far = self._far.get(key)
            received = self.pps if far is None else self._counted(far, at_s, interval_s)[1]
            per_s[row, :2] = received, self._counted(key, at_s, interval_s)[0]
            per_s[row, 6] = self.errors_per_s.get(key, 0.0)
        per_s[:, 2:4] = per_s[:, :2] * 500
        count = len(ports)
        utilisation_pct = per_s[:, 2:4] * 8 / 1e7
        cpu = {dpid: self.cpu_pct[dpid]} if dpid in self.cpu_pct else {}
        return PortsSampled(
            tuple(ports), np.full(count, at_s), np.full(count, interval_s), per_s, utilisation_pct, cpu
        )

    def _counted(self, key: MemberKey, at_s: float, interval_s: float) -> tuple[float, float]:
        """Packets per second that a port sent since the poll before, and of them those that arrived."""
        sent = arrived = 0.0
        start_s = at_s - interval_s
        for second in range(int(start_s), int(at_s) + 1):
            share = max(0.0, min(at_s, second + 1) - max(start_s, second))
            if (key, second) not in self._seconds:
                packets = int(self._rng.poisson(self.pps + self.extra_pps.get(key, 0.0)))
                through = int(self._rng.binomial(packets, 1 - self.lossy.get(key, 0.0)))
                self._seconds[key, second] = (packets, through)
            packets, through = self._seconds[key, second]
            sent, arrived = sent + share * packets, arrived + share * through
        return sent / interval_s, arrived / interval_s
