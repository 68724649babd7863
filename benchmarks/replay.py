"""A capture replayed on an emulated fabric: ours beside tcpreplay, counts and gaps at a receiver. As root.

    python benchmarks/replay.py [--packets 10000] [--rate-pps 1000] [--rounds 3] [--framework os-ken] [--json]

The capture has Poisson arrivals of a host's packets of four sizes. Each round tcpreplay (Debian: tcpreplay) sends the
file's frames from that host, then ours does; tcpdump at a receiver in another pod has the times. A gap's error is its
difference from the captured gap in front of the same packet.
"""

from __future__ import annotations

import argparse
import random
import shutil
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from statistics import quantiles
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))

from measure import Measurement, report

from apps.emulation import traffic
from apps.emulation.agents import Agent
from apps.emulation.controller import FRAMEWORKS, ControllerProcess
from apps.emulation.namespace import network_of
from apps.emulation.network import CONTROLLER_PORT, EmulatedFabric
from apps.emulation.replayer import RECORD
from capture_files import pcap
from controller.captures.capture_file import CaptureReader
from controller.wire.addresses import parse_ip, parse_mac
from controller.wire.udp import encode_udp
from topology.generators import make

GROUP, STREAM, SENDER, RECEIVER = "239.1.1.1", 1, "h1", "h16"
SIZES_BYTES = (60, 242, 642, 1442)
WARM, FIRST_PHASE = 0, 1
SETTLE_S = 1.0

Planned = list[tuple[int, int]]
"""Nanoseconds from the first packet, and bytes of its frame."""


def draw(packets: int, rate_pps: float, seed: int) -> Planned:
    chance = random.Random(seed)
    at_ns, planned = 0, []
    for _ in range(packets):
        planned.append((at_ns, chance.choice(SIZES_BYTES)))
        at_ns += round(chance.expovariate(rate_pps) * 1e9)
    return planned


def write_capture(path: Path, fabric: EmulatedFabric, planned: Planned, phase: int) -> None:
    mac, source = parse_mac(str(fabric.node(SENDER).MAC())), parse_ip(fabric.address(SENDER))
    frames = []
    for sequence, (at_ns, size_bytes) in enumerate(planned):
        header = traffic.HEADER.pack(traffic.MAGIC, STREAM, phase, 0, sequence)
        payload = header.ljust(size_bytes - traffic.FRAME_OVERHEAD_BYTES[traffic.family_of(GROUP)], b"\0")
        frames.append((at_ns, encode_udp(mac, source, parse_ip(GROUP), payload)))
    path.write_bytes(pcap(frames, nanoseconds=True))


def by_tcpreplay(fabric: EmulatedFabric, folder: Path, planned: Planned, phase: int) -> None:
    capture = folder / "feed.pcap"
    write_capture(capture, fabric, planned, phase)
    longest_s = 10 * planned[-1][0] / 1e9 + 60
    fabric.run_on(SENDER, "tcpreplay", "-q", "-i", fabric.interface(SENDER), str(capture), timeout_s=longest_s)


def by_ours(fabric: EmulatedFabric, folder: Path, planned: Planned, phase: int) -> None:
    records = folder / "records"
    records.write_bytes(b"".join(RECORD.pack(at_ns, STREAM, size_bytes) for at_ns, size_bytes in planned))
    with Agent("replayer") as agent:
        interface, pid = fabric.interface(SENDER), fabric.pid(SENDER)
        agent.ask("open", stream=STREAM, group=GROUP, pid=pid, interface=interface)
        agent.ask("replay", file=str(records), speed=1.0, phase=phase)
        agent.ask("wait", timeout_s=10 * planned[-1][0] / 1e9 + 60)


WAYS = {"tcpreplay": by_tcpreplay, "vsrt emulate --replay": by_ours}


def arrivals_ns(path: Path, phase: int) -> dict[int, int]:
    """Return when each packet, by its sequence number, was on the receiver's wire."""
    found = {}
    with path.open("rb") as file:
        for frame in CaptureReader(file.read).frames():
            at = traffic.FRAME_OVERHEAD_BYTES[traffic.family_of(GROUP)]
            _, _, of_phase, _, sequence = traffic.HEADER.unpack_from(frame.data, at)
            if of_phase == phase:
                found[sequence] = frame.at_ns
    return found


def gaps_ms(times_ns: list[int]) -> list[float]:
    return [(later - sooner) / 1e6 for sooner, later in pairwise(times_ns)]


def measure(fabric: EmulatedFabric, name: str, planned: Planned, phase: int, folder: Path) -> dict[str, Any]:
    wire = folder / "wire.pcap"
    command = ("tcpdump", "-i", fabric.interface(RECEIVER), "-n", "-B", "16384", "-U", "-w", str(wire))
    with network_of(fabric.pid(RECEIVER)):
        watch = subprocess.Popen(
            [*command, "--time-stamp-precision=nano", f"udp and dst {GROUP}"], stderr=subprocess.PIPE, text=True
        )
    try:
        assert watch.stderr is not None
        while "listening on" not in watch.stderr.readline():
            pass
        WAYS[name](fabric, folder, planned, phase)
        received = fabric.settled()[f"{RECEIVER} {GROUP}"]["streams"][f"{STREAM}:{phase}"]
        time.sleep(SETTLE_S)
    finally:
        watch.terminate()
        watch.wait()
    arrived = arrivals_ns(wire, phase)
    wanted = gaps_ms([at_ns for at_ns, _ in planned])
    found = gaps_ms([arrived[sequence] for sequence in sorted(arrived)])
    whole = len(arrived) == len(planned)
    errors = [abs(one - other) for one, other in zip(found, wanted, strict=True)] if whole else [float("inf")] * 2
    at_99 = lambda values: quantiles(values, n=100)[98]  # noqa: E731
    return {
        "packets": received["received"],
        "twice": received["duplicates"],
        "payload bytes": received["payload_bytes"],
        "gap p99, ms": at_99(found),
        "captured gap p99, ms": at_99(wanted),
        "gap error p99, ms": at_99(errors),
        "gap error most, ms": max(errors),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--packets", type=int, default=10_000)
    parser.add_argument("--rate-pps", type=float, default=1000.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--framework", choices=FRAMEWORKS, default="os-ken")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    if shutil.which("tcpreplay") is None:
        parser.error("tcpreplay is missing (Debian: tcpreplay)")
    planned = draw(given.packets, given.rate_pps, given.seed)
    results: dict[str, list[dict[str, Any]]] = {name: [] for name in WAYS}
    with tempfile.TemporaryDirectory(prefix="vsrt-replay-") as name:
        folder = Path(name)
        policy = folder / "policy.yaml"
        policy.write_text("version: 1\ndefault: allow\n")
        controller = ControllerProcess(CONTROLLER_PORT, framework=given.framework, policy=policy)
        with EmulatedFabric(make("fattree", {"k": 4}), controller=controller, patch_links=True) as fabric:
            controller.wait_discovered(fabric)
            fabric.announce()
            fabric.join(RECEIVER, GROUP)
            fabric.open_stream(STREAM, SENDER, GROUP, 1e6)
            fabric.send(WARM, 2.0)
            fabric.wait_sent(20.0)
            phase = FIRST_PHASE
            for _ in range(given.rounds):
                for way in WAYS:
                    results[way].append(measure(fabric, way, planned, phase, folder))
                    phase += 1
    measurements = [
        Measurement(f"{way}: {what}", what.partition(", ")[2] or "count", tuple(one[what] for one in found))
        for way, found in results.items()
        for what in found[0]
    ]
    report(measurements, as_json=given.json, source=Path(__file__).name)


if __name__ == "__main__":
    main()
