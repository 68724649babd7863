"""Entries of unicast and the time that the core takes for a change, in fat trees with hosts at all edge switches.

    PYTHONPATH=. python benchmarks/unicast_scale.py [--k 8 12 16] [--hosts 1024] [--old-share 0] [--partners 0]

Switches confirm at once; what the core sends them is encoded. A turn is one event with the edits that follow from it.
Times are processor time, without the 2 ms for which changes are gathered. `--partners` has each host send a packet
to so many others, `--old-share` has this share of the switches speak OpenFlow 1.0. The command runs on any version of
the controller whose unicast core has these events, which is how figures before a change are found.
"""

from __future__ import annotations

import argparse
import gc
import random
import time
from collections import Counter, deque
from collections.abc import Sequence

from measure import percentile, print_json, print_table, summarise

from apps.openflow.collector import COLLECTOR_THRESHOLDS
from controller.effects import ApplyEdits, Put, Remove, RequestFlows
from controller.events import (
    BarrierReplied,
    DeadlineReached,
    FlowStatsReceived,
    PacketReceived,
    SwitchConnected,
)
from controller.rules.lowering import LOWERINGS
from controller.rules.model import FlowKey
from controller.unicast.core import UnicastCore
from controller.unicast.settings import UnicastSettings
from controller.wire.udp import encode_udp
from topology.events import HostGone, HostLearnt, LinkDown, LinkUp, PortRole, PortRoleChanged, SwitchUp

EDGE, AGGREGATION, CORE = 10_000, 20_000, 30_000


class Fabric:
    """One core and the entries of its switches; `turns_ms` are those since `start_anew`."""

    def __init__(self, k: int, host_count: int, old_share: float, seed: int = 1) -> None:
        self.random = random.Random(seed)
        self.core = UnicastCore(UnicastSettings(check_interval_s=0.0))
        self.now = 1.0
        self.tables: dict[int, set[FlowKey]] = {}
        self.queue: deque[object] = deque()
        self.start_anew()
        half = k // 2
        self.edges = [EDGE + pod * half + i for pod in range(k) for i in range(half)]
        self.core_links: list[LinkUp] = []
        links: list[LinkUp] = []
        for pod in range(k):
            for i in range(half):
                for j in range(half):
                    upper, edge = AGGREGATION + pod * half, EDGE + pod * half
                    links.append(LinkUp(edge + i, half + 1 + j, upper + j, 1 + i, 1e9))
                    self.core_links.append(LinkUp(upper + i, half + 1 + j, CORE + i * half + j, 1 + pod, 1e9))
        links += self.core_links
        switches = sorted({link.dpid_a for link in links} | {link.dpid_b for link in links})
        old = set(self.random.sample(switches, round(old_share * len(switches))))
        self.versions = {dpid: 1 if dpid in old else 4 for dpid in switches}
        for dpid in switches:
            self.tables[dpid] = set()
            self.feed(SwitchConnected(dpid, self.versions[dpid], ()), SwitchUp(dpid, self.versions[dpid]))
        for link in links:
            trunks = ((link.dpid_a, link.port_a), (link.dpid_b, link.port_b))
            self.feed(*(PortRoleChanged(*end, PortRole.TRUNK) for end in trunks), link)
            self.run(0.001)
        self.hosts = [self.host(number) for number in range(host_count)]
        for host in self.hosts:
            self.feed(PortRoleChanged(host.dpid, host.port_no, PortRole.EDGE), host)
            self.run(0.001)
        self.run(1.0)

    def host(self, number: int) -> HostLearnt:
        """Return a host: consecutive numbers are at consecutive edge switches."""
        tail = number.to_bytes(4, "big")
        edge, port_no = self.edges[number % len(self.edges)], 1 + number // len(self.edges)
        return HostLearnt(b"\x02\0" + tail, edge, 1000 + port_no, (b"\x0a" + tail[1:],))

    def start_anew(self) -> None:
        """Forget what was measured."""
        self.turns_ms: list[float] = []
        self.first_ms = self.last_ms = self.spent_ms = 0.0
        self.edits = 0

    def feed(self, *events: object) -> None:
        """Have the core take events and all replies to what it sends."""
        self.queue.extend(events)
        while self.queue:
            self._turn(self.queue.popleft())

    def _turn(self, event: object) -> None:
        began_s = time.process_time()
        effects = self.core.handle(event, self.now)
        batches = [effect for effect in effects if isinstance(effect, ApplyEdits)]
        for batch in batches:
            LOWERINGS[self.versions[batch.dpid]].encode_batch(batch)
        took_ms = 1000 * (time.process_time() - began_s)
        self.turns_ms.append(took_ms)
        self.spent_ms += took_ms
        for batch in batches:
            self.edits += len(batch.edits)
            self.last_ms = self.spent_ms
            self.first_ms = self.first_ms or self.spent_ms
            table = self.tables[batch.dpid]
            for edit in batch.edits:
                if isinstance(edit, Put):
                    table.add(edit.rule.key)
                elif isinstance(edit, Remove):
                    table.discard(edit.key)
            self.queue.append(BarrierReplied(batch.dpid, batch.first_xid + len(batch.edits)))
        for effect in effects:
            if isinstance(effect, RequestFlows):
                version = self.versions[effect.dpid]
                reply = LOWERINGS[version].encode_flow_stats_reply(effect.xid, False, b"")
                self.queue.append(FlowStatsReceived(effect.dpid, version, effect.xid, reply))

    def run(self, seconds: float) -> None:
        """Let time pass."""
        until = self.now + seconds
        while (deadline := self.core.next_deadline()) is not None and deadline <= until:
            self.now = max(self.now, deadline)
            self.feed(DeadlineReached())
        self.now = until

    def talk(self, partners: int) -> None:
        """Have each host send a packet to so many others."""
        for host in self.hosts:
            for other in self.random.sample(self.hosts, partners):
                frame = encode_udp(host.mac, host.addresses[0], other.addresses[0], b"x", eth_dst=other.mac)
                self.feed(PacketReceived(host.dpid, host.port_no, frame))
                self.run(0.02)
        self.run(1.0)


def measure(k: int, arguments: argparse.Namespace) -> dict[str, list[float]]:
    """Return samples by quantity."""
    found: dict[str, list[float]] = {}
    fabric = Fabric(k, arguments.hosts, arguments.old_share)
    found["start: processor time, ms"] = [fabric.spent_ms]
    found["start: longest turn, ms"] = [max(fabric.turns_ms)]
    if arguments.partners:
        fabric.talk(arguments.partners)
    sizes = Counter({dpid: len(table) for dpid, table in fabric.tables.items()})
    found["entries in all"] = [sizes.total()]
    found["entries of the fullest switch"] = [max(sizes.values())]
    found["entries of the fullest switch without hosts"] = [
        max(size for dpid, size in sizes.items() if dpid not in fabric.edges)
    ]
    for number in range(arguments.repeats):
        host = fabric.host(arguments.hosts + number)
        links = fabric.random.sample(fabric.core_links, 1)
        changes: tuple[tuple[str, object], ...] = (
            ("a host is found", host),
            ("a host is gone", HostGone(*host[:3])),
            ("a core link fails", LinkDown(*links[0][:4])),
            ("a core link is back", links[0]),
        )
        for name, event in changes:
            fabric.start_anew()
            if event is host:
                fabric.feed(PortRoleChanged(host.dpid, host.port_no, PortRole.EDGE))
            fabric.feed(event)
            fabric.run(0.5)
            found.setdefault(f"{name}: edits", []).append(fabric.edits)
            found.setdefault(f"{name}: first edit, ms", []).append(fabric.first_ms)
            found.setdefault(f"{name}: last edit, ms", []).append(fabric.last_ms)
            found.setdefault(f"{name}: longest turn, ms", []).append(max(fabric.turns_ms))
    return found


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--k", type=int, nargs="+", default=[8, 12, 16], help="switch ports (default: %(default)s)")
    parser.add_argument("--hosts", type=int, default=1024, help="hosts in all (default: %(default)s)")
    parser.add_argument("--old-share", type=float, default=0.0, help="of switches of OpenFlow 1.0 (default: 0)")
    parser.add_argument("--partners", type=int, default=0, help="hosts that each host talks to (default: 0)")
    parser.add_argument("--repeats", type=int, default=10, help="changes of each kind (default: %(default)s)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args(argv)
    gc.set_threshold(*COLLECTOR_THRESHOLDS)
    gc.freeze()
    results = {k: measure(k, arguments) for k in arguments.k}
    if arguments.json:
        print_json({k: {name: summarise(samples) for name, samples in found.items()} for k, found in results.items()})
        return
    rows = [
        (k, name, s.median, s.first_quartile, s.third_quartile, percentile(samples, 100), s.sample_count)
        for k, found in results.items()
        for name, samples in found.items()
        for s in (summarise(samples),)
    ]
    print_table(("k", "quantity", "median", "1st quartile", "3rd quartile", "max", "samples"), rows)


if __name__ == "__main__":
    main()
