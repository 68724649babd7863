"""Cost of the multicast core per report: from the frame to the encoded edits, and the barrier's reply.

    python benchmarks/multicast_core.py [--rounds 40] [--per-round 250] [--json]

A round is a number of new reports timed together; the minimum over the rounds tells most on a busy machine. The
log's and the audit log's share is told apart, since the controller does that work at other moments.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from measure import Measurement, report

from controller.admission.audit import AuditLines
from controller.config.multicast_settings import Querier
from controller.config.policy import Policy
from controller.config.settings import Limits, Multicast
from controller.datapath.core import DatapathCore
from controller.effects import ApplyEdits, RequestFlows
from controller.events import (
    BarrierReplied,
    DeadlineReached,
    FlowStatsReceived,
    PacketReceived,
    Port,
    SwitchConnected,
)
from controller.log import WriteLog
from controller.multicast.core import MulticastCore, Output
from controller.multicast.effects import Audit
from controller.rules.confirmation import ConfirmationClock
from controller.rules.installer import Installer
from controller.rules.lowering import LOWERINGS
from controller.rules.model import FlowKey, Match
from controller.rules.pipeline import MULTICAST_TAG
from controller.rules.switch_state import OwnerBatch, OwnerState
from controller.wire.encode import encode
from controller.wire.packets import GroupRecord, RecordType, Report
from topology.events import HostLearnt, LinkUp, PortRole, PortRoleChanged, SwitchUp

VERSION = 4
LOWERING = LOWERINGS[VERSION]
POLICY = Policy(
    default_allow=True,
    limits=Limits(groups_per_port=65536, reports_per_second_per_port=1e6, groups=1048576, memberships=10000000),
    multicast=Multicast(fast_leave=True, querier=Querier(enabled=False)),
)
EDGES = 3


class Bench:
    """One core over a leaf-spine fabric whose switches confirm at once."""

    def __init__(self, policy: Policy = POLICY) -> None:
        self.now = 0.0
        self.core = MulticastCore(policy, self.now)
        self.audits: list[Audit] = []
        for dpid in range(1, EDGES + 3):
            ports = tuple(Port(n, "", bytes(6), True, 1e9) for n in range(1, 9))
            self.feed(SwitchConnected(dpid, VERSION, ports))
            self.feed(SwitchUp(dpid, VERSION))
        for edge in range(1, EDGES + 1):
            for spine in (1, 2):
                self.feed(LinkUp(edge, 4 + spine, EDGES + spine, edge, 1e9))
            for port_no in range(1, 5):
                self.feed(PortRoleChanged(edge, port_no, PortRole.EDGE))
        for host, place in ((1, (1, 1)), (2, (1, 2)), (3, (2, 1))):
            self.feed(HostLearnt(mac(host), *place, (address(host),)))
        self.advance(30.0)

    def feed(self, event: object) -> None:
        effects = self.core.handle(event, self.now)
        if effects:
            self.perform(effects)
        self.core.next_deadline()

    def perform(self, effects: Iterable[Output]) -> None:
        for effect in effects:
            if isinstance(effect, ApplyEdits):
                LOWERING.encode_batch(effect)
                self.feed(BarrierReplied(effect.dpid, effect.first_xid + len(effect.edits)))
            elif isinstance(effect, Audit):
                self.audits.append(effect)
            elif isinstance(effect, RequestFlows):
                reply = LOWERING.encode_flow_stats_reply(effect.xid, False, b"")
                self.feed(FlowStatsReceived(effect.dpid, VERSION, effect.xid, reply))

    def advance(self, seconds: float) -> None:
        end_s = self.now + seconds
        while True:
            due_s = self.core.next_deadline()
            if due_s is None or due_s > end_s:
                break
            self.now = max(self.now, due_s)
            self.feed(DeadlineReached())
        self.now = end_s


def mac(host: int) -> bytes:
    return bytes((2, 0, 0, 0, 0, host))


def address(host: int) -> bytes:
    return bytes((10, 0, 0, host))


def frames(first: int, count: int, host: int, kind: RecordType) -> list[bytes]:
    groups = (bytes((239, n >> 16 & 255, n >> 8 & 255, n & 255)) for n in range(first, first + count))
    return [encode(Report(4, 3, mac(host), address(host), (GroupRecord(kind, group),))) for group in groups]


def timed(act: Callable[[], object], count: int) -> float:
    start = time.perf_counter()
    act()
    return (time.perf_counter() - start) / count * 1e6


def time_joins(count: int) -> None:
    """Do for so many joins what measuring their latency adds: one entry each, confirmed by a batch of its own."""
    clock, installer = ConfirmationClock(), Installer(MULTICAST_TAG)
    state = OwnerState(1, DatapathCore(0).datapath(1), installer, connected=True)
    key = FlowKey(0, 1, Match(in_port=1))
    for number in range(count):
        clock.begin(float(number))
        clock.add(state, key)
        batch = OwnerBatch(1, {key: None}, None, state.take_timed((key,)), True, {})
        clock.end()
        clock.settled(batch.timed, number + 0.002)


def figures(core: MulticastCore) -> None:
    """Make what a scrape is told of the core."""
    core.figures.all()
    list(core.figures.by_switch())


def rounds(bench: Bench, count: int, per_round: int) -> list[Measurement]:
    samples: dict[str, list[float]] = {}

    def take(name: str, dpid: int, port_no: int, work: Sequence[bytes]) -> None:
        events = [PacketReceived(dpid, port_no, frame) for frame in work]
        feed = bench.feed
        samples.setdefault(name, []).append(timed(lambda: [feed(event) for event in events], len(events)))

    joins, refreshes, leaves = RecordType.CHANGE_TO_EXCLUDE, RecordType.MODE_IS_EXCLUDE, RecordType.CHANGE_TO_INCLUDE
    for number in range(count):
        first = 65536 + number * per_round
        take("join: first member", 1, 1, frames(first, per_round, 1, joins))
        take("refresh", 1, 1, frames(first, per_round, 1, refreshes))
        take("join: same switch", 1, 2, frames(first, per_round, 2, joins))
        take("join: another switch", 2, 1, frames(first, per_round, 3, joins))
        take("leave: last of a switch", 2, 1, frames(first, per_round, 3, leaves))
        bench.now += 0.2
        effects = [e for e in bench.core.handle(DeadlineReached(), bench.now) if type(e) is WriteLog]
        values = [entry.value for effect in effects for entry in effect.entries]
        if values:
            writing = timed(lambda: [json.dumps(value) for value in values], len(values))  # noqa: B023
            samples.setdefault("log: an entry as text", []).append(writing)
        lines = AuditLines()
        audits, bench.audits = bench.audits, []
        writing = timed(lambda: [lines.line(*audit[:4], 1.7e9, audit[4]) for audit in audits], len(audits))  # noqa: B023
        samples.setdefault("audit: a line", []).append(writing)
        samples.setdefault("join: its timing alone", []).append(timed(partial(time_joins, per_round), per_round))
        samples.setdefault("figures for a scrape", []).append(timed(partial(figures, bench.core), 1))
    return [Measurement(name, "us", values) for name, values in samples.items()]


def main() -> None:
    parser = argparse.ArgumentParser(description="Cost of the multicast core per report.")
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--per-round", type=int, default=250)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    measurements = rounds(Bench(), arguments.rounds, arguments.per_round)
    report(measurements, as_json=arguments.json, source="multicast_core")


if __name__ == "__main__":
    main()
