"""Joins across a fat tree in one process: what the cores take for each, without connections.

    PYTHONPATH=. python benchmarks/fabric_joins.py [--k 8] [--groups 200] [--members 10] [--rounds 5] [--json]
    PYTHONPATH=. python benchmarks/fabric_joins.py --count [--by function]

Multicast and unicast share each switch as they do in a controller; hosts and fabric are known, each group has a
sender. Reports come in bursts of 16, each a turn of the loop: what follows is sent at its end, and switches confirm
what they were sent before a burst when it is over. Edits are encoded. Times are processor time; the leaves of all
members follow each round of joins; what Python's cyclic collector took of either is told too. `--profile FILE`
keeps what cProfile finds of the joins, or of what `--profile-of` says. `--count` tells how many functions of the
cores a join of the first round calls and how many bytecodes they execute, the same whatever else the machine does,
and which modules or functions have the most of them.
"""

from __future__ import annotations

import argparse
import cProfile
import gc
import random
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from measure import Measurement, Tally, print_table, report

from apps.openflow.collector import COLLECTOR_THRESHOLDS
from controller.admission.audit import AuditLines
from controller.config.multicast_settings import Querier
from controller.config.policy import Policy
from controller.config.settings import Limits, Multicast
from controller.datapath.core import DatapathCore, OwnerTold
from controller.effects import ApplyEdits, RequestFlows
from controller.events import (
    BarrierReplied,
    DeadlineReached,
    FlowStatsReceived,
    PacketReceived,
    Port,
    SwitchConnected,
    TableChanged,
)
from controller.kernel.ports import End
from controller.multicast.core import MulticastCore
from controller.multicast.effects import Audit
from controller.rules.lowering import LOWERINGS
from controller.rules.pipeline import DATAPATH_XID_TAG
from controller.unicast.core import UnicastCore
from controller.unicast.settings import UnicastSettings
from controller.wire.encode import encode
from controller.wire.packets import GroupRecord, RecordType, Report
from controller.wire.udp import encode_udp
from topology.events import HostLearnt, LinkUp, PortRole, PortRoleChanged, SwitchUp

EDGE, AGGREGATION, CORE = 10_000, 20_000, 30_000
VERSION = 4
LOWERING = LOWERINGS[VERSION]
POLICY = Policy(
    default_allow=True,
    limits=Limits(groups_per_port=65536, reports_per_second_per_port=1e6, groups=1048576, memberships=10000000),
    multicast=Multicast(fast_leave=True, querier=Querier(enabled=False)),
)
BURST = 16
SETTLE_S = 90.0
COUNTED_PARTS = 41


class Fabric:
    """The cores of a controller over a fat tree; `hosts_at` names the hosts of a port by number, one without it."""

    def __init__(
        self,
        k: int,
        seed: int = 1,
        policy: Policy = POLICY,
        hosts_at: Callable[[int, End], list[HostLearnt]] | None = None,
    ) -> None:
        self.random = random.Random(seed)
        self.now = 0.0
        self.datapaths = DatapathCore(DATAPATH_XID_TAG, gathers=True)
        self.multicast = MulticastCore(policy, self.now, self.datapaths)
        self.unicast = UnicastCore(UnicastSettings(check_interval_s=0.0), self.datapaths)
        self.owners = {core.xid_tag: core for core in (self.multicast, self.unicast)}
        self.replies: deque[BarrierReplied] = deque()
        self.audits: list[Audit] = []
        self.profile: cProfile.Profile | None = None
        self.edit_count = self.batch_count = 0
        half = k // 2
        links = []
        for pod in range(k):
            for i in range(half):
                for j in range(half):
                    upper, edge = AGGREGATION + pod * half, EDGE + pod * half
                    links.append(LinkUp(edge + i, half + 1 + j, upper + j, 1 + i, 1e9))
                    links.append(LinkUp(upper + i, half + 1 + j, CORE + i * half + j, 1 + pod, 1e9))
        for dpid in sorted({link.dpid_a for link in links} | {link.dpid_b for link in links}):
            ports = tuple(Port(port_no, "", bytes(6), True, 1e9) for port_no in range(1, k + 1))
            self.feed_all(SwitchConnected(dpid, VERSION, ports), SwitchUp(dpid, VERSION))
        edges = [(EDGE + number, port_no) for number in range(k * half) for port_no in range(1, half + 1)]
        for link in links:
            trunks = ((link.dpid_a, link.port_a), (link.dpid_b, link.port_b))
            self.feed_all(*(PortRoleChanged(*end, PortRole.TRUNK) for end in trunks), link)
        self.feed_all(*(PortRoleChanged(*end, PortRole.EDGE) for end in edges))
        self.links, self.edges = links, edges
        named = hosts_at or (lambda number, end: [host_at(number, end)])
        self.hosts = [host for number, end in enumerate(edges) for host in named(number, end)]
        self.feed_all(*self.hosts)
        self.advance(SETTLE_S)

    def feed_all(self, *events: object) -> None:
        """Have both apps take events, and switches confirm what follows."""
        for event in events:
            for core in self.owners.values():
                self.feed(core, event)
            self.end_turn()
            self.confirm(len(self.replies))

    def feed(self, core: MulticastCore | UnicastCore, event: object) -> None:
        """Have an app take an event."""
        self._perform(core.handle(event, self.now))

    def confirm(self, count: int) -> None:
        """Have switches confirm so many batches."""
        for _ in range(count):
            self._answered(self.replies.popleft())

    def end_turn(self) -> None:
        """Do what the loop does at the end of a turn: what is due of each core."""
        for core in (self.datapaths, *self.owners.values()):
            due_s = core.next_deadline()
            if due_s is not None and due_s <= self.now:
                self._due(core)

    def _due(self, core: DatapathCore | MulticastCore | UnicastCore) -> None:
        if isinstance(core, DatapathCore):
            self._answered(DeadlineReached())
        else:
            self.feed(core, DeadlineReached())

    def _answered(self, event: BarrierReplied | FlowStatsReceived | DeadlineReached) -> None:
        self._perform(self.datapaths.handle(event, self.now))

    def _perform(self, effects: Iterable[Any]) -> None:
        for effect in effects:
            kind = type(effect)
            if kind is ApplyEdits:
                LOWERING.encode_batch(effect)
                self.replies.append(BarrierReplied(effect[0], effect[1] + len(effect[2])))
                self.edit_count += len(effect[2])
                self.batch_count += 1
            elif kind is Audit:
                self.audits.append(effect)
            elif kind is RequestFlows:
                reply = LOWERING.encode_flow_stats_reply(effect.xid, False, b"")
                answer = FlowStatsReceived(effect.dpid, VERSION, effect.xid, reply)
                if effect.xid >> 24 == DATAPATH_XID_TAG:
                    self._answered(answer)
                else:
                    self.feed(self.owners[effect.xid >> 24], answer)
            elif kind is OwnerTold:
                self._perform(effect.effects)
                self.feed(self.owners[effect.xid_tag], TableChanged(effect.dpid, effect.was_read))

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        end_s = self.now + seconds
        while True:
            cores = (self.datapaths, *self.owners.values())
            due = [(at, number) for number, core in enumerate(cores) if (at := core.next_deadline()) is not None]
            if not due or min(due)[0] > end_s:
                break
            at, number = min(due)
            self.now = max(self.now, at)
            self._due(cores[number])
            self.confirm(len(self.replies))
        self.now = end_s

    def send(self, group: bytes) -> None:
        """Have a host send to a group."""
        host = self.random.choice(self.hosts)
        frame = encode_udp(host.mac, host.addresses[0], group, b"x")
        self.feed_all(PacketReceived(host.dpid, host.port_no, frame))

    def hear(self, events: Sequence[PacketReceived]) -> None:
        """Take reports of hosts, in bursts: frames to IPv4 groups are for multicast alone, as in a controller."""
        if self.profile is not None:
            self.profile.enable()
        for first in range(0, len(events), BURST):
            sent = len(self.replies)
            for event in events[first : first + BURST]:
                self.feed(self.multicast, event)
            self.confirm(sent)
            self.end_turn()
        while self.replies:
            self.confirm(len(self.replies))
            self.end_turn()
        if self.profile is not None:
            self.profile.disable()

    def write(self) -> float:
        """Do what is left for later, the log's entries and the audit's lines, and return what that took."""
        began_s = time.process_time()
        self.advance(1.0)
        lines = AuditLines()
        for audit in self.audits:
            lines.line(*audit[:4], 1.7e9, audit[4])
        self.audits.clear()
        return time.process_time() - began_s


class Collector:
    """What Python's cyclic collector took since `watch`, in seconds of processor time."""

    def __init__(self) -> None:
        self.spent_s = self._began_s = 0.0

    def watch(self) -> None:
        """Begin to look at collections."""
        gc.callbacks.append(self._look)

    def _look(self, phase: str, _info: dict[str, int]) -> None:
        if phase == "start":
            self._began_s = time.process_time()
        else:
            self.spent_s += time.process_time() - self._began_s


def host_at(number: int, end: End) -> HostLearnt:
    """Return the host of a number, at a port."""
    return HostLearnt(b"\x02\0" + number.to_bytes(4, "big"), *end, (b"\x0a" + number.to_bytes(3, "big"),))


def group_address(number: int) -> bytes:
    """Return the address of a group."""
    return bytes((239, 1, number >> 8, number & 255))


def frames(reports: list[tuple[HostLearnt, bytes]], kind: RecordType) -> list[PacketReceived]:
    """Return what hosts send that report groups."""
    events = []
    for host, group in reports:
        frame = encode(Report(4, 3, host.mac, host.addresses[0], (GroupRecord(kind, group),)))
        events.append(PacketReceived(host.dpid, host.port_no, frame))
    return events


def rounds(fabric: Fabric, arguments: argparse.Namespace, profile: cProfile.Profile | None) -> list[Measurement]:
    """Have all groups grow and shrink, and return what each join and leave took."""
    samples: dict[tuple[str, str], list[float]] = {}
    collector = Collector()
    collector.watch()
    groups = [group_address(number) for number in range(arguments.groups)]
    for group in groups:
        fabric.send(group)
    for number in range(arguments.rounds):
        members = {group: fabric.random.sample(fabric.hosts, arguments.members) for group in groups}
        reports = [(members[group][place], group) for place in range(arguments.members) for group in groups]
        for what, kind in (("join", RecordType.CHANGE_TO_EXCLUDE), ("leave", RecordType.CHANGE_TO_INCLUDE)):
            fabric.edit_count = fabric.batch_count = 0
            fabric.profile = profile if number and what == arguments.profile_of else None
            said = frames(reports, kind)
            began_s, collector.spent_s = time.process_time(), 0.0
            fabric.hear(said)
            handled_s, collected_s = time.process_time() - began_s, collector.spent_s
            parts = {"until all is confirmed": handled_s, "of that, collections": collected_s}
            for part, spent_s in (parts | {"log and audit": fabric.write()}).items():
                samples.setdefault((f"{what}: {part}", "us"), []).append(1e6 * spent_s / len(reports))
            samples.setdefault((f"{what}: flow-mods", ""), []).append(fabric.edit_count / len(reports))
            samples.setdefault((f"{what}: barriers", ""), []).append(fabric.batch_count / len(reports))
    return [Measurement(name, unit, values) for (name, unit), values in samples.items()]


def count(fabric: Fabric, arguments: argparse.Namespace) -> None:
    """Tell what a join takes, counted: in all, and by module or function where it is the most."""
    groups = [group_address(number) for number in range(arguments.groups)]
    for group in groups:
        fabric.send(group)
    members = {group: fabric.random.sample(fabric.hosts, arguments.members) for group in groups}
    tally, joins = Tally(), len(groups) * arguments.members
    for member in range(arguments.members):
        said = frames([(members[group][member], group) for group in groups], RecordType.CHANGE_TO_EXCLUDE)
        sys.settrace(tally.trace)
        fabric.hear(said)
        sys.settrace(None)
        fabric.write()
    parts: dict[str, list[float]] = {}
    for code, bytecodes in tally.bytecodes.items():
        path, root = Path(code.co_filename), Path(__file__).parents[1]
        if path.is_relative_to(root / "benchmarks"):
            continue
        place = str(path.relative_to(root)) if path.is_relative_to(root) else path.name
        for name in ("all", f"{place} {code.co_name}" if arguments.by == "function" else place):
            part = parts.setdefault(name, [0.0, 0.0])
            part[0] += bytecodes / joins
            part[1] += tally.calls[code] / joins
    most = sorted(parts.items(), key=lambda part: -part[1][0])[:COUNTED_PARTS]
    print_table(("a join", "bytecodes", "calls"), [(name, f"{n:.0f}", f"{calls:.1f}") for name, (n, calls) in most])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--k", type=int, default=8)
    parser.add_argument("--groups", type=int, default=200)
    parser.add_argument("--members", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--profile", type=Path, metavar="FILE")
    parser.add_argument("--profile-of", choices=("join", "leave"), default="join")
    parser.add_argument("--count", action="store_true", help="count bytecodes and calls, and measure no time")
    parser.add_argument("--by", choices=("module", "function"), default="module")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    gc.set_threshold(*COLLECTOR_THRESHOLDS)
    fabric = Fabric(arguments.k)
    gc.freeze()
    if arguments.count:
        count(fabric, arguments)
        return
    profile = None if arguments.profile is None else cProfile.Profile()
    measurements = rounds(fabric, arguments, profile)
    if profile is not None:
        profile.dump_stats(arguments.profile)
    report(measurements, as_json=arguments.json, source=Path(__file__).name)


if __name__ == "__main__":
    main()
