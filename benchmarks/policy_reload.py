"""What a reload of the policy costs while many memberships stand, and what it does to joins meanwhile.

    python benchmarks/policy_reload.py [--groups 12000] [--joins-per-s 500] [--json]

A core over a leaf-spine fabric of 8 leaves, whose switches confirm at once, has a member of every group at each leaf
and senders of every eighth group. Policies are loaded one after the other while reports of new members come at their
own times; between them the core has its turns, as the loop of an app gives it: what has come first, then what is due.
Turns are told in processor time, so that other work on the machine does not count; a join's time is from its arrival
to the end of its turn. Reading the file is told apart, for the core does not do it.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections import deque
from typing import NamedTuple

from measure import percentile, print_json, print_table

from controller.config.load import load_policy
from controller.config.policy import Policy
from controller.effects import ApplyEdits, RequestFlows
from controller.events import (
    BarrierReplied,
    DeadlineReached,
    FlowStatsReceived,
    PacketReceived,
    Port,
    SwitchConnected,
)
from controller.multicast.core import MulticastCore
from controller.multicast.effects import Audit
from controller.multicast.events import PolicyLoaded
from controller.rules.lowering import LOWERINGS
from controller.wire.encode import encode
from controller.wire.packets import GroupRecord, RecordType, Report
from controller.wire.udp import encode_udp
from topology.events import LinkUp, PortRole, PortRoleChanged, SwitchUp

COLLECTOR_THRESHOLDS = (50_000, 5, 100)
"""As apps set them."""

VERSION = 4
LOWERING = LOWERINGS[VERSION]
LEAVES, SPINES, PORTS = 8, 2, 16
WATCHED_S = 0.3
"""How long joins come at least from the moment at which a policy is loaded."""

TEXT = """
version: 1
tenants:
  studio: [10.0.0.0/8]
rules:
  - {{name: barred, groups: [{barred}], role: receiver, hosts: [10.3.0.0/16], action: deny}}
  - {{name: {named}, groups: [239.0.0.0/8], role: any, hosts: [studio], action: allow}}
default: deny
limits: {{groups: 1048576, memberships: 10000000, groups_per_port: 65536, reports_per_second_per_port: 1000000,
  records_per_second_per_port: 1000000, unknown_packets_per_second_per_port: 1000000, senders_per_port: 65536}}
check: {{interval_s: {interval}}}
multicast: {{fast_leave: true, sender_timeout_s: 3600, querier: {{enabled: false}}}}
"""


class Measured(NamedTuple):
    """What one reload cost: the first three in milliseconds of processor time, the others in milliseconds."""

    policy: str
    loaded_ms: float
    longest_ms: float
    busy_ms: float
    done_ms: float
    turns: int
    audits: int
    joins: int
    join_p99_ms: float


def text(barred: str = "239.255.0.0/16", named: str = "studio", interval: int = 0, comment: str = "") -> str:
    """Return a policy file."""
    return comment + TEXT.format(barred=barred, named=named, interval=interval)


class Bench:
    """A core and its loop."""

    def __init__(self, policy: Policy) -> None:
        self.origin_s = time.perf_counter()
        self.core = MulticastCore(policy, 0.0)
        self.audits = 0
        for dpid in range(1, LEAVES + SPINES + 1):
            ports = tuple(Port(n, "", bytes(6), True, 1e9) for n in range(1, PORTS + SPINES + 1))
            self.feed(SwitchConnected(dpid, VERSION, ports))
            self.feed(SwitchUp(dpid, VERSION))
        for leaf in range(1, LEAVES + 1):
            for spine in range(1, SPINES + 1):
                self.feed(LinkUp(leaf, PORTS + spine, LEAVES + spine, leaf, 1e9))
            for port_no in range(1, PORTS + 1):
                self.feed(PortRoleChanged(leaf, port_no, PortRole.EDGE))

    def now(self) -> float:
        return time.perf_counter() - self.origin_s

    def feed(self, event: object) -> float:
        """Give the core an event and do what it asks for; returns the seconds of processor time that took."""
        began_s = time.thread_time()
        waiting: deque[object] = deque((event,))
        while waiting:
            for effect in self.core.handle(waiting.popleft(), self.now()):
                if isinstance(effect, ApplyEdits):
                    LOWERING.encode_batch(effect)
                    waiting.append(BarrierReplied(effect.dpid, effect.first_xid + len(effect.edits)))
                elif isinstance(effect, Audit):
                    self.audits += 1
                elif isinstance(effect, RequestFlows):
                    reply = LOWERING.encode_flow_stats_reply(effect.xid, False, b"")
                    waiting.append(FlowStatsReceived(effect.dpid, VERSION, effect.xid, reply))
        self.core.next_deadline()
        return time.thread_time() - began_s

    def due(self) -> bool:
        deadline = self.core.next_deadline()
        return deadline is not None and deadline <= self.now()

    def rest(self) -> None:
        """Let the core do all that is due."""
        while self.due():
            self.feed(DeadlineReached())

    def reload(self, name: str, policy: Policy, joins: deque[PacketReceived], per_s: float) -> Measured:
        """Load a policy while reports come, until the core is at rest with it."""
        self.rest()
        self.audits = 0
        began_s = self.now()
        loaded_s = self.feed(PolicyLoaded(policy))
        turns, waits_s = [loaded_s], []
        audits, done_s, next_s = self.audits, self.now(), began_s
        while joins and (not waits_s or self.now() < began_s + WATCHED_S or self.core.reconsideration.is_under_way):
            while joins and next_s <= self.now():
                before = self.audits
                self.feed(joins.popleft())
                self.audits = before
                waits_s.append(self.now() - next_s)
                next_s += 1 / per_s
            if self.due():
                turns.append(self.feed(DeadlineReached()))
                audits = self.audits
                done_s = self.now()
        longest_s, busy_s = max(turns), sum(turns)
        return Measured(
            name,
            loaded_s * 1e3,
            longest_s * 1e3,
            busy_s * 1e3,
            (done_s - began_s) * 1e3,
            len(turns),
            audits,
            len(waits_s),
            percentile(waits_s, 99) * 1e3,
        )


def mac(leaf: int, port_no: int) -> bytes:
    return bytes((2, 0, 0, 0, leaf, port_no))


def address(leaf: int, port_no: int) -> bytes:
    return bytes((10, leaf, 0, port_no))


def group_of(number: int) -> bytes:
    return bytes((239, number >> 16 & 255, number >> 8 & 255, number & 255))


def join(leaf: int, port_no: int, group: bytes) -> PacketReceived:
    record = GroupRecord(RecordType.CHANGE_TO_EXCLUDE, group)
    frame = encode(Report(4, 3, mac(leaf, port_no), address(leaf, port_no), (record,)))
    return PacketReceived(leaf, port_no, frame)


def fill(bench: Bench, groups: int) -> None:
    """Have a member of each group at every leaf, and a sender of every eighth group."""
    for number in range(groups):
        port_no = 1 + number % PORTS
        for leaf in range(1, LEAVES + 1):
            bench.feed(join(leaf, port_no, group_of(number)))
        if number % 8 == 0:
            frame = encode_udp(mac(1, port_no), address(1, port_no), group_of(number), b"data")
            bench.feed(PacketReceived(1, port_no, frame))
    bench.rest()


def policies() -> list[tuple[str, str]]:
    """Return what is loaded one after the other."""
    return [
        ("the same", text()),
        ("a comment more, so that all lines move", text(comment="# on the first line\n")),
        ("another interval of the check", text(interval=3600)),
        ("a rule for 256 groups bars 256 members", text(barred="239.0.1.0/24")),
        ("that rule taken back", text()),
        ("the rule for all groups has another name", text(named="others")),
        ("a rule for all groups bars an eighth of the members", text(barred="239.0.0.0/8", named="others")),
        ("the default", text(barred="239.0.0.0/8", named="others").replace("default: deny", "default: allow")),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description="What a reload of the policy costs.")
    parser.add_argument("--groups", type=int, default=12_000)
    parser.add_argument("--joins-per-s", type=float, default=500.0)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    gc.set_threshold(*COLLECTOR_THRESHOLDS)
    bench = Bench(load_policy(text()))
    fill(bench, arguments.groups)
    gc.collect()
    gc.disable()
    rows: list[Measured] = []
    joined = 1 << 20
    reading: list[float] = []
    for name, written in policies():
        began_s = time.perf_counter()
        policy = load_policy(written)
        reading.append((time.perf_counter() - began_s) * 1e3)
        joins = deque(join(1 + n % LEAVES, 1 + n % PORTS, group_of(joined + n)) for n in range(20_000))
        joined += 20_000
        rows.append(bench.reload(name, policy, joins, arguments.joins_per_s))
    if arguments.json:
        print_json({"memberships": arguments.groups * LEAVES, "reloads": [row._asdict() for row in rows]})
        return
    print(f"{arguments.groups * LEAVES} memberships; the file is read in {max(reading):.1f} ms at most")
    heading = ("policy", "its turn, ms", "longest turn, ms", "loop, ms", "done after, ms", "turns", "audit lines")
    print_table((*heading, "joins", "their p99, ms"), rows)


if __name__ == "__main__":
    main()
