"""Joins that hosts report once, while the leader ends: how many are served by the next one.

    python benchmarks/cluster_one_report.py [--runs 5] [--ending kill|stop|end] [--reports 500] [--over-s 2]
        [--members 3] [--framework os-ken|ryu] [--protocols OpenFlow13|OpenFlow10] [--json]

Three switches in a ring under Open vSwitch, one etcd, all on this machine, in a network of their own (as root). A
host reports groups, each once and by a frame of its own, evenly over `--over-s`, in the middle of which the leader
ends. It answers no query, so that a report that neither controller has taken in is a join that is lost. Another host
sends to these groups, and to some that nobody joins: a join is lost where the first one has no packet of its group
after `ROUNDS` of them, the next leader having all switches in sync. What ends takes part again before the next run,
which has groups of its own.
"""

from __future__ import annotations

import argparse
import os
import signal
import socket
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from cluster_take_over import ring
from controllers import OPEN_POLICY
from measure import Measurement, report

from apps.emulation import traffic
from apps.emulation.cluster import EmulatedCluster
from apps.emulation.controller import FRAMEWORKS
from apps.emulation.namespace import network_of
from apps.emulation.network import CONTROLLER_PORT, EmulatedFabric
from apps.emulation.take_over import Ending, TakeOverBench
from controller.wire.encode import encode
from controller.wire.packets import GroupRecord, RecordType, Report
from controller.wire.udp import encode_udp

STREAM_GROUP, RATE_BPS = "239.1.1.1", 4e6
SENDER, LISTENER = "h1", "h4"
UNASKED = 100
"""Groups that nobody joins, in a run."""

ROUNDS = 10
PACKET_S = 0.001
SYNC_S = 120.0
"""A machine with much other work needs as long to have some thousand entries read back."""


class Wire:
    """Where a host of the fabric puts frames of its own on the wire."""

    def __init__(self, fabric: EmulatedFabric, host: str) -> None:
        self.mac = bytes.fromhex(str(fabric.node(host).MAC()).replace(":", ""))
        self.ip = socket.inet_aton(fabric.address(host))
        with network_of(fabric.pid(host)):
            self._socket = traffic.open_wire(fabric.interface(host))
        self._socket.setblocking(True)

    def close(self) -> None:
        """Put no more there."""
        self._socket.close()

    def report(self, group: bytes) -> None:
        """Report a group once, by IGMPv3."""
        record = GroupRecord(RecordType.CHANGE_TO_EXCLUDE, group)
        self._socket.send(encode(Report(4, 3, self.mac, self.ip, (record,))))

    def send(self, groups: Sequence[bytes]) -> None:
        """Send one packet that a tap counts to each group."""
        for group in groups:
            payload = traffic.HEADER.pack(traffic.MAGIC, 2, 0, 0, 0, time.monotonic_ns())
            self._socket.send(encode_udp(self.mac, self.ip, group, payload))
            time.sleep(PACKET_S)


class Lost(NamedTuple):
    """What came of a run: joins between the end of one leader and the election of the next, joins that are lost, and
    groups that nobody joined of which a packet came."""

    in_gap: int
    lost: int
    unasked: int


class OneReportBench:
    """A host that reports groups once each, and another one that sends to them."""

    def __init__(self, cluster: EmulatedCluster, fabric: EmulatedFabric, sender: Wire, listener: Wire) -> None:
        self._cluster = cluster
        self._fabric = fabric
        self._sender = sender
        self._listener = listener
        self._bench = TakeOverBench(cluster, fabric, STREAM_GROUP, ("h1", "h3", "h5"), RATE_BPS)
        self._bench.begin()
        fabric.tap(LISTENER)
        self._reported_s: list[float] = []

    def run(self, number: int, ending: Ending, count: int, over_s: float) -> Lost:
        """Have the leader end in the middle of the reports of so many groups."""
        groups = [bytes((239, 10 + number, at >> 8, at & 255)) for at in range(count + UNASKED)]
        joined, others = groups[:count], groups[count:]
        self._sender.send(groups)
        former = self._cluster.wait_leader()
        controller = self._cluster.members[former.member]
        self._reported_s.clear()
        reports = threading.Thread(target=self._report, args=(joined, over_s / count))
        reports.start()
        time.sleep(over_s / 2)
        pid, ended_s = controller.pid, time.monotonic()
        if ending is Ending.KILL:
            controller.kill()
        else:
            os.kill(pid, signal.SIGSTOP if ending is Ending.STOP else signal.SIGTERM)
        leader = self._cluster.wait_leader(former.epoch)
        elected_s = time.monotonic()
        if ending is Ending.STOP:
            os.kill(pid, signal.SIGCONT)
        reports.join()
        switches = len(self._fabric.graph.switches())
        self._cluster.members[leader.member].wait_until(
            "status", lambda status: status["in_sync"] and status["switches"] == switches, SYNC_S
        )
        rounds = 0
        while not (there := self._there()) >= set(joined) and rounds < ROUNDS:
            self._sender.send(groups)
            rounds += 1
        self._bench.recover(former.member)
        in_gap = sum(ended_s <= at_s < elected_s for at_s in self._reported_s)
        return Lost(in_gap, len(set(joined) - there), len(set(others) & there))

    def _report(self, groups: Sequence[bytes], apart_s: float) -> None:
        began_s = time.monotonic()
        for number, group in enumerate(groups):
            time.sleep(max(0.0, began_s + number * apart_s - time.monotonic()))
            self._listener.report(group)
            self._reported_s.append(time.monotonic())

    def _there(self) -> set[bytes]:
        """Return the groups of which a packet has come to the host that reports."""
        return {socket.inet_aton(group) for group in self._fabric.received()[f"tap {LISTENER}"]["groups"]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--ending", type=Ending, choices=list(Ending), default=Ending.KILL)
    parser.add_argument("--reports", type=int, default=500, help="in a run")
    parser.add_argument("--over-s", type=float, default=2.0)
    parser.add_argument("--members", type=int, default=3)
    parser.add_argument("--framework", choices=FRAMEWORKS, default="os-ken")
    parser.add_argument("--protocols", choices=("OpenFlow13", "OpenFlow10"), default="OpenFlow13")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        cluster = EmulatedCluster(
            Path(directory), CONTROLLER_PORT, args.members, policy=OPEN_POLICY, framework=args.framework
        )
        ports = cluster.ports[1:]
        with (
            EmulatedFabric(
                ring(), controller=cluster, more_controller_ports=ports, protocols=args.protocols
            ) as fabric,
            closing(Wire(fabric, SENDER)) as sender,
            closing(Wire(fabric, LISTENER)) as listener,
        ):
            bench = OneReportBench(cluster, fabric, sender, listener)
            found = [bench.run(number, args.ending, args.reports, args.over_s) for number in range(args.runs)]
    measurements = [
        Measurement("joins of one report in a run", "", [args.reports]),
        Measurement(f"leader {args.ending}: joins until another one led", "", [each.in_gap for each in found]),
        Measurement("joins lost", "", [each.lost for each in found]),
        Measurement("groups that nobody joined, of which a packet came", "", [each.unasked for each in found]),
    ]
    report(measurements, as_json=args.json, source="cluster_one_report")


if __name__ == "__main__":
    main()
