"""The live system on an emulated fabric, as root: what a receiver sees of joins, churn, failures and restarts.

    python benchmarks/live.py first-packet   report on the wire to first data packet, across avalanche24
    python benchmarks/live.py steady         packets lost and repeated at steady receivers while others come and go
    python benchmarks/live.py repair         gap at a receiver when a link of its tree fails
    python benchmarks/live.py repair-mesh    the same on avalanche24 instead of a FatTree
    python benchmarks/live.py silent         the same when a link or switch fails while every port keeps its carrier
    python benchmarks/live.py restart        gap at a receiver when the controller restarts
    python benchmarks/live.py scale          memory and join latency with 10 groups and with 10,000

Each takes [--framework ryu|os-ken] [--json]; streams are 1,000 packets/s of 125 bytes.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import select
import socket
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from measure import Measurement, report

from apps.emulation.controller import FRAMEWORKS, ControllerProcess, Framework
from apps.emulation.namespace import network_of
from apps.emulation.network import CONTROLLER_PORT, EmulatedFabric
from controller.wire.addresses import parse_ip, parse_mac
from controller.wire.encode import encode
from controller.wire.packets import GroupRecord, RecordType, Report
from topology.generators import make
from topology.graph import Graph, NodeKind

PACKETS_PER_S = 1000
FRAME_BYTES = 125
RATE_BPS = PACKETS_PER_S * FRAME_BYTES * 8
GROUP = "239.1.1.1"
POLICY = """version: 1
default: allow
limits: {reports_per_second_per_port: 100000, records_per_second_per_port: 1000000, groups_per_port: 65536,
         memberships: 1000000}
multicast: {fast_leave: true}
"""


@contextlib.contextmanager
def live(graph: Graph, framework: Framework) -> Iterator[tuple[EmulatedFabric, ControllerProcess]]:
    """Bring a fabric up under a controller that knows all of it, on links with a carrier."""
    with tempfile.TemporaryDirectory(prefix="vsrt-bench-") as directory:
        policy = Path(directory, "policy.yaml")
        policy.write_text(POLICY)
        controller = ControllerProcess(CONTROLLER_PORT, framework=framework, policy=policy)
        with EmulatedFabric(graph, controller=controller) as fabric:
            controller.wait_discovered(fabric)
            fabric.announce()
            yield fabric, controller


def stream(fabric: EmulatedFabric, host: str, group: str = GROUP, number: int = 1) -> None:
    fabric.open_stream(number, host, group, RATE_BPS, pattern="constant", frame_bytes=FRAME_BYTES)


def await_members(controller: ControllerProcess, count: int, group: str = GROUP) -> None:
    def reached(groups: list[dict[str, Any]]) -> bool:
        return any(entry["group"] == group and len(entry["members"]) == count for entry in groups)

    controller.wait_until("groups", reached)


def first_packet(framework: Framework, rounds: int) -> list[Measurement]:
    graph = make("avalanche24")
    samples = []
    with live(graph, framework) as (fabric, _):
        stream(fabric, "h1")
        fabric.send()
        time.sleep(0.5)
        for _ in range(rounds):
            for host in graph.hosts():
                if host != "h1":
                    samples.append(_report_to_packet_ms(fabric, str(host)))
                    time.sleep(0.05)
    return [Measurement(f"report to first packet, {framework}", "ms", samples)]


def _report_to_packet_ms(fabric: EmulatedFabric, host: str) -> float:
    """Send a report from a raw socket of the host, wait for the group's next packet there, and leave again."""
    mac, address = parse_mac(str(fabric.node(host).MAC())), parse_ip(fabric.address(host))
    join, leave = (
        encode(Report(4, 3, mac, address, (GroupRecord(kind, parse_ip(GROUP)),)))
        for kind in (RecordType.CHANGE_TO_EXCLUDE, RecordType.CHANGE_TO_INCLUDE)
    )
    with network_of(fabric.pid(host)):
        raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0800))
        raw.bind((fabric.interface(host), 0))
    with raw:
        start = time.perf_counter()
        raw.send(join)
        try:
            while True:
                if not select.select([raw], [], [], 5.0)[0]:
                    raise TimeoutError(f"{host}: no packet of {GROUP} within 5 s of the report")
                frame = raw.recv(2048)
                if frame[30:34] == parse_ip(GROUP) and frame[23] == 17:
                    return 1000 * (time.perf_counter() - start)
        finally:
            raw.send(leave)
            time.sleep(0.002)


def steady(framework: Framework, rounds: int) -> list[Measurement]:
    graph = make("fattree", {"k": 4})
    receivers = ("h2", "h5", "h16")
    others = ("h3", "h4", "h6", "h7", "h8", "h9", "h10", "h11", "h12", "h13", "h14", "h15")
    with live(graph, framework) as (fabric, controller):
        for host in receivers:
            fabric.join(host, GROUP)
        await_members(controller, len(receivers))
        stream(fabric, "h1")
        fabric.send(0)
        time.sleep(1.0)
        fabric.send(1)
        for number in range(rounds):
            for host in others:
                fabric.join(host, GROUP, name=f"{host} {number}")
                time.sleep(0.02)
            for host in others:
                fabric.leave(host, GROUP, name=f"{host} {number}")
                time.sleep(0.02)
        time.sleep(0.5)
        fabric.send(2, 0.2)
        fabric.wait_sent(10)
        received, sent = fabric.settled(), fabric.sent()["1"]["phases"]["1"]["sent"]
        tallies = [received[f"{host} {GROUP}"]["streams"]["1:1"] for host in receivers]
    changes = 2 * rounds * len(others)
    return [
        Measurement(f"packets lost of {sent} during {changes} joins and leaves, {framework}", "1",
                    [sent - tally["received"] for tally in tallies]),
        Measurement(f"packets repeated, {framework}", "1", [tally["duplicates"] for tally in tallies]),
    ]  # fmt: skip


def repair(framework: Framework, failures: int) -> list[Measurement]:
    return _repair(make("fattree", {"k": 4}), ("h5", "h9", "h16"), framework, failures)


def repair_mesh(framework: Framework, failures: int) -> list[Measurement]:
    return _repair(make("avalanche24"), ("h2", "h9", "h16"), framework, failures)


def _repair(graph: Graph, receivers: tuple[str, ...], framework: Framework, failures: int) -> list[Measurement]:
    """Fail a random link of the tree on the way to a random receiver; links come back before the next failure."""
    dice = random.Random(1)
    gaps_ms, duplicates = [], 0
    with live(graph, framework) as (fabric, controller):
        switches = {fabric.dpid(switch): switch for switch in graph.switches()}
        for host in receivers:
            fabric.join(host, GROUP)
        await_members(controller, len(receivers))
        stream(fabric, "h1")
        fabric.send(0)
        time.sleep(1.0)
        for phase in range(1, failures + 1):
            fabric.send(phase)
            time.sleep(0.3)
            (entry,) = (group for group in controller.show("groups") if group["group"] == GROUP)
            u, v = (switches[dpid] for dpid in dice.choice(entry["links"]))
            fabric.link_down(u, v)
            time.sleep(1.0)
            fabric.link_up(u, v)
            time.sleep(1.0)
        fabric.send(failures + 1, 0.2)
        fabric.wait_sent(10)
        received = fabric.settled()
        for phase in range(1, failures + 1):
            tallies = [received[f"{host} {GROUP}"]["streams"][f"1:{phase}"] for host in receivers]
            gaps_ms.append(1000 * max(tally["max_gap_s"] for tally in tallies))
            duplicates += sum(tally["duplicates"] for tally in tallies)
    return [
        Measurement(f"longest gap of a link failure, {framework}", "ms", gaps_ms),
        Measurement(f"packets repeated in all, {framework}", "1", [duplicates]),
    ]


def silent(framework: Framework, failures: int) -> list[Measurement]:
    """Kill what a tree goes through; nothing is told but what ends with a dead switch's connection."""
    graph = make("fattree", {"k": 4})
    dice = random.Random(1)
    kinds = ("switch", "link, both directions", "link, one direction")
    gaps_ms: dict[str, list[float]] = {kind: [] for kind in kinds}
    with live(graph, framework) as (fabric, controller):
        switches = {fabric.dpid(switch): switch for switch in graph.switches()}
        cores = set(graph.nodes(NodeKind.CORE))
        fabric.join("h16", GROUP)
        await_members(controller, 1)
        stream(fabric, "h1")
        fabric.send(0)
        phase = 0
        for _ in range(failures):
            for kind in kinds:
                phase += 1
                fabric.send(phase)
                time.sleep(2.0 + 2.0 * dice.random())
                (entry,) = (group for group in controller.show("groups") if group["group"] == GROUP)
                ends = [(switches[u], switches[v]) for u, v in entry["links"]]
                core, neighbour = next((u, v) if u in cores else (v, u) for u, v in ends if {u, v} & cores)
                if kind == "switch":
                    fabric.kill_switch(core)
                else:
                    fabric.deafen(core, neighbour)
                if kind == "link, both directions":
                    fabric.deafen(neighbour, core)
                time.sleep(5.0)
                fabric.mend()
                controller.wait_discovered(fabric)
        fabric.send(phase + 1, 0.2)
        fabric.wait_sent(10)
        streams = fabric.settled()[f"h16 {GROUP}"]["streams"]
    for number in range(phase):
        gaps_ms[kinds[number % len(kinds)]].append(1000 * streams[f"1:{number + 1}"]["max_gap_s"])
    return [Measurement(f"longest gap, {kind}, {framework}", "ms", gaps_ms[kind]) for kind in kinds]


def restart(framework: Framework, restarts: int) -> list[Measurement]:
    graph = make("fattree", {"k": 4})
    receivers = ("h2", "h9", "h16")
    with live(graph, framework) as (fabric, controller):
        for host in receivers:
            fabric.join(host, GROUP)
        await_members(controller, len(receivers))
        stream(fabric, "h1")
        fabric.send(0)
        time.sleep(2.0)
        for phase in range(1, restarts + 1):
            fabric.send(phase)
            time.sleep(0.3)
            controller.kill()
            controller.start()
            controller.wait_discovered(fabric)
            time.sleep(15.0)
        fabric.send(restarts + 1, 0.2)
        fabric.wait_sent(10)
        received, sent = fabric.settled(), fabric.sent()["1"]["phases"]
        lost, gaps_ms = [], []
        for phase in range(1, restarts + 1):
            tallies = [received[f"{host} {GROUP}"]["streams"][f"1:{phase}"] for host in receivers]
            lost.append(max(sent[str(phase)]["sent"] - tally["received"] for tally in tallies))
            gaps_ms.append(1000 * max(tally["max_gap_s"] for tally in tallies))
    return [
        Measurement(f"packets lost over a kill and restart, {framework}", "1", lost),
        Measurement(f"longest gap meanwhile, {framework}", "ms", gaps_ms),
    ]


def scale(framework: Framework, groups: int) -> list[Measurement]:
    """Join latency (report to first packet) at ten groups and at many, each of three members on other switches."""
    graph = make("fattree", {"k": 4})
    hosts = [str(host) for host in graph.hosts()]
    few = 10
    with live(graph, framework) as (fabric, controller):
        stream(fabric, "h1")
        fabric.send()
        time.sleep(0.5)
        samples: dict[int, list[float]] = {}
        memory: dict[int, list[float]] = {}
        joined = 0
        for count in (few, groups):
            _join_groups(fabric, hosts, joined, count)
            joined = count
            controller.wait_until("status", lambda status, n=count: status["groups"] >= n and status["ready"], 120.0)
            time.sleep(2.0)
            samples[count] = []
            for _ in range(6):
                for host in hosts[1:]:
                    samples[count].append(_report_to_packet_ms(fabric, host))
                    time.sleep(0.05)
            memory[count] = [_resident_mib(controller.pid)]
    return [
        entry
        for count in (few, groups)
        for entry in (
            Measurement(f"report to first packet, {count} groups, {framework}", "ms", samples[count]),
            Measurement(f"resident memory, {count} groups, {framework}", "MiB", memory[count]),
        )
    ]


def _join_groups(fabric: EmulatedFabric, hosts: list[str], first: int, end: int) -> None:
    """Let three hosts of different pods join each group, by reports of fifty records."""
    for index, host in enumerate(hosts):
        mac, address = parse_mac(str(fabric.node(host).MAC())), parse_ip(fabric.address(host))
        numbers = [n for n in range(first, end) if index in {(n + 5 * member) % len(hosts) for member in range(3)}]
        with network_of(fabric.pid(host)):
            raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
            raw.bind((fabric.interface(host), 0))
        with raw:
            for start in range(0, len(numbers), 50):
                records = tuple(
                    GroupRecord(RecordType.CHANGE_TO_EXCLUDE, bytes((239, 10 + (n >> 16), n >> 8 & 0xFF, n & 0xFF)))
                    for n in numbers[start : start + 50]
                )
                raw.send(encode(Report(4, 3, mac, address, records)))
                time.sleep(0.05)


def _resident_mib(pid: int) -> float:
    (line,) = (line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


BENCHMARKS = {
    "first-packet": (first_packet, 8),
    "steady": (steady, 6),
    "repair": (repair, 20),
    "repair-mesh": (repair_mesh, 20),
    "silent": (silent, 10),
    "restart": (restart, 3),
    "scale": (scale, 10000),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=BENCHMARKS)
    parser.add_argument("--framework", choices=FRAMEWORKS, default="ryu")
    parser.add_argument("--count", type=int, help="rounds, failures, restarts or groups")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    measure, count = BENCHMARKS[args.what]
    report(
        measure(args.framework, args.count or count), as_json=args.json, source=f"{Path(__file__).name} {args.what}"
    )


if __name__ == "__main__":
    main()
