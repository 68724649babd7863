"""Reads of the operator's API beside joins: what they do to a join's latency, and how soon a change is shown.

    python benchmarks/dashboard_api.py [--rate 1000] [--seconds 20] [--repeats 3] [--framework ryu] [--json]

One controller (multicast, monitor, dashboard) with a simulated switch. In turn, joins are timed without any reads
and beside `--rate` reads per second over 16 connections, a stream that is followed and a client that never reads.
Under Ryu the same is done with its own `ofctl_rest`, which answers within the controller's process, as a peer.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx
from control_plane import _address, _group, _mac
from controllers import OPEN_POLICY
from fabric_simulator.process import cpu_s
from measure import Measurement, percentile, report

from apps.emulation.controller import ControllerProcess, Framework
from apps.emulation.free_ports import free_port
from apps.simulated_fabric.lone import LoneSwitch, punted
from apps.simulated_fabric.messages import FLOW_MOD
from controller.wire.addresses import format_ip
from controller.wire.encode import encode
from controller.wire.packets import GroupRecord, RecordType, Report

CONNECTIONS = 16
PAUSE_S = 0.03
SETTLE_S = 3.0
SHOWN = 30
WAIT_S = 30.0
UNREAD_REQUESTS = 400
READS = ("status", "groups/239.0.0.1", "ports/1/1", "switches?limit=20", "events?limit=20", "ports?limit=20")
PEER, PEER_URL, PEER_READS = "ryu.app.ofctl_rest", "http://127.0.0.1:8080/stats", ("switches",)


class Bench(NamedTuple):
    """A running controller, its switch and the address of its API."""

    process: ControllerProcess
    switch: LoneSwitch
    url: str
    first_group: Iterator[int]


@contextmanager
def running(framework: Framework, peer: bool = False) -> Iterator[Bench]:
    """Run the controller with its dashboard, or with the peer, and one switch."""
    port = free_port()
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        rest = f"monitor: {{interval_s: 1, prometheus: {{port: 0}}}}\ndashboard: {{port: {port}}}\n"
        file.write(OPEN_POLICY + rest)
        file.flush()
        dashboard = "apps.dashboard.app" if framework == "ryu" else "dashboard"
        apps = ("multicast", "monitor", PEER if peer else dashboard)
        with ControllerProcess(free_port(), framework=framework, policy=Path(file.name), apps=apps) as process:
            switch = LoneSwitch(1, 48, ("127.0.0.1", process.port))
            switch.run_for(SETTLE_S)
            url = PEER_URL if peer else f"http://127.0.0.1:{port}/api/v1"
            deadline = time.monotonic() + WAIT_S
            while not (peer or _is_connected(url)):
                if time.monotonic() > deadline:
                    raise TimeoutError(process.log())
                switch.run_for(0.1)
            yield Bench(process, switch, url, iter(range(1 << 20)))
            switch.close()


def _is_connected(url: str) -> bool:
    try:
        return bool(httpx.get(f"{url}/status").json()["connected"])
    except httpx.TransportError:
        return False


def join(bench: Bench) -> tuple[str, float]:
    """Let a host join a new group; return the group and the milliseconds until its flow entry came."""
    group = _group(next(bench.first_group))
    frame = encode(Report(4, 3, _mac(2), _address(2), (GroupRecord(RecordType.CHANGE_TO_EXCLUDE, group),)))
    switch = bench.switch
    before, start = switch.received[FLOW_MOD], time.monotonic()
    switch.say([punted(2, frame)])
    if not switch.run_until(lambda: switch.received[FLOW_MOD] > before, 10.0):
        raise TimeoutError("no flow entry")
    return format_ip(group), 1000 * (switch.watch.last_edit_s() - start)


def joins_for(bench: Bench, seconds: float) -> list[float]:
    """Return the latencies of joins one after the other, milliseconds."""
    end_s, found = time.monotonic() + seconds, []
    while time.monotonic() < end_s:
        found.append(join(bench)[1])
        bench.switch.run_for(PAUSE_S)
    return found


class Follower:
    """A client of the stream that notes when it is shown a group."""

    def __init__(self, url: str) -> None:
        self.shown: dict[str, float] = {}
        self.news = threading.Event()
        threading.Thread(target=self._follow, args=(f"{url}/stream?sections=groups",), daemon=True).start()
        if not self.news.wait(WAIT_S):
            raise TimeoutError("the stream does not begin")

    def _follow(self, url: str) -> None:
        try:
            with httpx.stream("GET", url, timeout=None) as answer:
                for line in answer.iter_lines():
                    if line.startswith("data: "):
                        self._take(json.loads(line.removeprefix("data: "))["sections"]["groups"])
        except httpx.TransportError:
            return

    def _take(self, groups: Any) -> None:
        now = time.perf_counter()
        for document in groups["put"] if isinstance(groups, dict) else groups:
            self.shown.setdefault(document["id"], now)
        self.news.set()


def shown_ms(bench: Bench, count: int) -> list[float]:
    """Return the milliseconds from a report to the event of the stream that shows it."""
    follower, found = Follower(bench.url), []
    for _ in range(count):
        start = time.perf_counter()
        group, _ = join(bench)
        if not bench.switch.run_until(lambda group=group: group in follower.shown, WAIT_S):
            raise TimeoutError(f"{group} is not shown")
        found.append(1000 * (follower.shown[group] - start))
        bench.switch.run_for(0.07)
    return found


def cut_off_s(url: str) -> float:
    """Ask for much, read nothing, and return the seconds until the server ends the connection."""
    address = httpx.URL(url)
    silent = socket.socket()
    silent.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    silent.connect((address.host, address.port))
    start = time.monotonic()
    request = f"GET /api/v1/groups?limit=10000 HTTP/1.1\r\nHost: {address.host}\r\n\r\n".encode()
    before = _refused(url, "unread")
    silent.sendall(request * UNREAD_REQUESTS)
    while _refused(url, "unread") == before:
        if time.monotonic() - start > WAIT_S:
            raise TimeoutError("a client that never reads is not cut off")
        time.sleep(0.1)
    past_s = time.monotonic() - start
    silent.close()
    return past_s


def _refused(url: str, reason: str) -> int:
    return int(httpx.get(f"{url}/status", timeout=WAIT_S).json()["dashboard"]["refused"].get(reason, 0))


async def read_at(url: str, paths: Sequence[str], rate: float, seconds: float) -> dict[str, float]:
    """Read at a steady rate over several connections; return how many reads there were and how long they took."""
    address = httpx.URL(url)
    took_s: list[float] = []
    start = time.perf_counter()

    async def connection(number: int) -> None:
        reader, writer = await asyncio.open_connection(address.host, address.port)
        requests = [f"GET {address.path}/{path} HTTP/1.1\r\nHost: {address.host}\r\n\r\n".encode() for path in paths]
        step_s, turn = CONNECTIONS / rate, 0
        due_s = start + step_s * number / CONNECTIONS
        while due_s < start + seconds:
            await asyncio.sleep(max(0.0, due_s - time.perf_counter()))
            writer.write(requests[turn % len(requests)])
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
            await reader.readexactly(length)
            took_s.append(time.perf_counter() - due_s)
            turn, due_s = turn + 1, due_s + step_s
        writer.close()

    async def follow() -> None:
        reader, writer = await asyncio.open_connection(address.host, address.port)
        writer.write(f"GET {address.path}/stream HTTP/1.1\r\nHost: {address.host}\r\n\r\n".encode())
        while await reader.read(65536):
            pass

    following = asyncio.create_task(follow())
    await asyncio.gather(*(connection(number) for number in range(CONNECTIONS)))
    following.cancel()
    return {
        "per_s": len(took_s) / (time.perf_counter() - start),
        "median_ms": 1000 * percentile(took_s, 50),
        "p99_ms": 1000 * percentile(took_s, 99),
    }


def measure(framework: Framework, rate: float, seconds: float, repeats: int) -> list[Measurement]:
    idle, busy, ratios, tails, reads, cut, controller, server = ([] for _ in range(8))
    with running(framework) as bench:
        joins_for(bench, 2.0)
        child = int(subprocess.run(["pgrep", "-P", str(bench.process.pid)], capture_output=True, check=True).stdout)
        for number in range(repeats):
            print(f"{number + 1} of {repeats} ...", file=sys.stderr)
            quiet = joins_for(bench, seconds)
            used_s, start_s = (cpu_s(bench.process.pid), cpu_s(child)), time.monotonic()
            with _reads(bench.url, READS, rate, seconds) as process:
                waiting = threading.Thread(target=lambda: cut.append(cut_off_s(bench.url)), daemon=True)
                waiting.start()
                loaded = joins_for(bench, seconds)
                past_s = time.monotonic() - start_s
                told, _ = process.communicate(timeout=WAIT_S)
                waiting.join(WAIT_S)
            controller.append(100 * (cpu_s(bench.process.pid) - used_s[0]) / past_s)
            server.append(100 * (cpu_s(child) - used_s[1]) / past_s)
            reads.append(json.loads(told))
            idle += quiet
            busy += loaded
            ratios.append(percentile(loaded, 50) / percentile(quiet, 50))
            tails.append(percentile(loaded, 99) / percentile(quiet, 99))
        shown = shown_ms(bench, SHOWN)
    return [
        Measurement("join latency, no reads", "ms", idle),
        Measurement(f"join latency beside {rate:g} reads/s", "ms", busy),
        Measurement("ratio of medians", "times", ratios),
        Measurement("ratio of 99th percentiles", "times", tails),
        Measurement("reads", "1/s", [found["per_s"] for found in reads]),
        Measurement("a read, median", "ms", [found["median_ms"] for found in reads]),
        Measurement("a read, 99th percentile", "ms", [found["p99_ms"] for found in reads]),
        Measurement("CPU share of the controller", "% of a core", controller),
        Measurement("CPU share of the server", "% of a core", server),
        Measurement("a client that never reads, until it is cut off", "s", cut),
        Measurement("from report to stream", "ms", shown),
    ]


def measure_peer(rate: float, seconds: float, repeats: int) -> list[Measurement]:
    ratios, tails, reads = [], [], []
    with running("ryu", peer=True) as bench:
        joins_for(bench, 2.0)
        for _ in range(repeats):
            quiet = joins_for(bench, seconds)
            with _reads(bench.url, PEER_READS, rate, seconds) as process:
                loaded = joins_for(bench, seconds)
                reads.append(json.loads(process.communicate(timeout=WAIT_S)[0]))
            ratios.append(percentile(loaded, 50) / percentile(quiet, 50))
            tails.append(percentile(loaded, 99) / percentile(quiet, 99))
    return [
        Measurement("ratio of medians, ofctl_rest", "times", ratios),
        Measurement("ratio of 99th percentiles, ofctl_rest", "times", tails),
        Measurement("reads, ofctl_rest", "1/s", [found["per_s"] for found in reads]),
        Measurement("a read, median, ofctl_rest", "ms", [found["median_ms"] for found in reads]),
    ]


@contextmanager
def _reads(url: str, paths: Sequence[str], rate: float, seconds: float) -> Iterator[subprocess.Popen[str]]:
    options = ["--paths", ",".join(paths), "--rate", str(rate), "--seconds", str(seconds)]
    command = [sys.executable, __file__, "--reads", url, *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rate", type=float, default=1000.0)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--framework", choices=("ryu", "os-ken"), default="ryu")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--reads", metavar="URL", help="only read, and print how that went")
    parser.add_argument("--paths", default=",".join(READS), help="what to read below that")
    args = parser.parse_args()
    if args.reads:
        print(json.dumps(asyncio.run(read_at(args.reads, args.paths.split(","), args.rate, args.seconds))))
        return
    results = measure(args.framework, args.rate, args.seconds, args.repeats)
    if args.framework == "ryu":
        results += measure_peer(args.rate, args.seconds, args.repeats)
    report(results, as_json=args.json, source=Path(__file__).name)


if __name__ == "__main__":
    main()
