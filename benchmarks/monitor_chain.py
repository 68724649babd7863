"""The monitor against simulated switches over loopback: throughput, CPU share, joins beside it, and its peers.

    python benchmarks/monitor_chain.py [--parts chain,sweep,peers,joins] [--gauge PATH] [--repeats 3] [--json]

`chain` asks few switches with many ports every second; `sweep` polls 100,000 ports every 10 s; `peers` gives the CPU
time per port sample beside ryu.app.simple_monitor_13 and, where `--gauge` names the command, Faucet's gauge; `joins`
compares the latency of joins with 10,000 polled ports and with none. CPU time is that of the whole process.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from control_plane import _address, _group, _mac
from controllers import OPEN_POLICY
from fabric_simulator.process import cpu_s
from measure import Measurement, names_of, report
from serve_fabric import served_switches

from apps.emulation.controller import ControllerProcess, listening
from apps.emulation.free_ports import free_port
from apps.simulated_fabric.lone import LoneSwitch, punted
from apps.simulated_fabric.messages import FLOW_MOD
from apps.status_client import query
from controller.wire.encode import encode
from controller.wire.packets import GroupRecord, RecordType, Report

SIMPLE_MONITOR = "ryu.app.simple_monitor_13"
SWEEP_S = 10
CHAIN = (300, 500)
SWEEP = (2084, 48)
PEERS = (208, 48)
PEER_WINDOW_S = 40.0
CONNECT_S = 60.0


@contextmanager
def monitored(interval_s: int, apps: tuple[str, ...] = ("monitor",), rest: str = "version: 1\n") -> Iterator:
    """Run our controller under Ryu with everything on: files, Prometheus endpoint, events."""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write(f"{rest}monitor: {{interval_s: {interval_s}, prometheus: {{port: 0}}}}\n")
        file.flush()
        with ControllerProcess(free_port(), policy=Path(file.name), apps=apps) as process:
            yield process


def samples(process: ControllerProcess) -> int:
    """Return how many samples were judged so far; a monitor that is busy with handshakes is asked again."""
    while True:
        try:
            answer = query(process.socket, {"show": "perf"}, timeout_s=CONNECT_S)
        except TimeoutError:
            continue
        if "counters" in answer:
            return int(answer["counters"].get("samples", 0))


def wait_polled(process: ControllerProcess, ports: int) -> None:
    """Wait until every port has been sampled twice."""
    deadline = time.monotonic() + CONNECT_S + 3 * SWEEP_S
    while samples(process) < 2 * ports:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{samples(process)} samples of {ports} ports")
        time.sleep(0.5)


def over_windows(process: ControllerProcess, window_s: float, repeats: int) -> list[tuple[float, float, float]]:
    """Return (samples per second, CPU share, samples per second of CPU time) of each window."""
    found = []
    for _ in range(repeats):
        count, busy_s, start = samples(process), cpu_s(process.pid), time.monotonic()
        time.sleep(window_s)
        count, busy_s, past_s = samples(process) - count, cpu_s(process.pid) - busy_s, time.monotonic() - start
        found.append((count / past_s, 100 * busy_s / past_s, count / busy_s))
    return found


def chain(repeats: int) -> list[Measurement]:
    switches, ports = CHAIN
    with monitored(1) as process, served_switches(switches, ports, process.port):
        wait_polled(process, switches * ports)
        found = over_windows(process, 10.0, repeats)
    return [
        Measurement(f"chain, {switches} x {ports} ports every second", "samples/s", [row[0] for row in found]),
        Measurement("chain, CPU share", "% of a core", [row[1] for row in found]),
        Measurement("chain, per second of CPU time", "samples/s", [row[2] for row in found]),
    ]


def sweep(repeats: int) -> list[Measurement]:
    switches, ports = SWEEP
    with monitored(SWEEP_S) as process, served_switches(switches, ports, process.port):
        wait_polled(process, switches * ports)
        found = over_windows(process, 2.0 * SWEEP_S, repeats)
    return [
        Measurement(f"sweep, {switches * ports} ports in {SWEEP_S} s", "samples/s", [row[0] for row in found]),
        Measurement("sweep, CPU share", "% of a core", [row[1] for row in found]),
    ]


def peers(repeats: int, gauge: Path | None) -> list[Measurement]:
    """CPU time per port sample: all poll the same fabric every 10 s."""
    switches, ports = PEERS
    per_window = switches * ports * PEER_WINDOW_S / SWEEP_S
    results = []
    with monitored(SWEEP_S) as process, served_switches(switches, ports, process.port):
        wait_polled(process, switches * ports)
        ours = _cpu_per_sample(process.pid, per_window, repeats)
    results.append(Measurement("CPU time per sample, this monitor", "us", ours))
    with (
        ControllerProcess(free_port(), apps=(SIMPLE_MONITOR,)) as process,
        served_switches(switches, ports, process.port),
    ):
        time.sleep(2.5 * SWEEP_S)
        theirs = _cpu_per_sample(process.pid, per_window, repeats)
    results.append(Measurement("CPU time per sample, simple_monitor_13", "us", theirs))
    if gauge is not None:
        with (
            tempfile.TemporaryDirectory() as directory,
            _gauge(gauge, Path(directory)) as (pid, port),
            served_switches(switches, ports, port),
        ):
            time.sleep(4 * SWEEP_S)
            theirs = _cpu_per_sample(pid, per_window, repeats)
        results.append(Measurement("CPU time per sample, gauge", "us", theirs))
    return results


def _cpu_per_sample(pid: int, per_window: float, repeats: int) -> list[float]:
    found = []
    for _ in range(repeats):
        busy_s = cpu_s(pid)
        time.sleep(PEER_WINDOW_S)
        found.append(1e6 * (cpu_s(pid) - busy_s) / per_window)
    return found


@contextmanager
def _gauge(command: Path, directory: Path) -> Iterator[tuple[int, int]]:
    """Run Faucet's gauge with port statistics to its Prometheus endpoint."""
    switches, ports = PEERS
    lines = ["vlans: {office: {vid: 100}}", "dps:"]
    for dpid in range(1, switches + 1):
        lines += [f"  sw{dpid}:", f"    dp_id: {dpid}", "    hardware: 'Open vSwitch'", "    interfaces:"]
        lines += [f"      {port}: {{native_vlan: office}}" for port in range(1, ports + 1)]
    (directory / "faucet.yaml").write_text("\n".join(lines) + "\n")
    (directory / "gauge.yaml").write_text(
        f"faucet_configs: ['{directory}/faucet.yaml']\n"
        "watchers:\n"
        f"  stats: {{all_dps: true, type: port_stats, interval: {SWEEP_S}, db: prometheus}}\n"
        f"dbs:\n  prometheus: {{type: prometheus, prometheus_addr: 127.0.0.1, prometheus_port: {free_port()}}}\n"
    )
    port = free_port()
    environment = {
        **os.environ,
        "PATH": f"{command.parent}:{os.environ['PATH']}",
        "GAUGE_CONFIG": f"{directory}/gauge.yaml",
        "GAUGE_LOG": f"{directory}/gauge.log",
        "GAUGE_EXCEPTION_LOG": f"{directory}/exception.log",
    }
    environment.pop("PYTHONPATH", None)
    words = [str(command), "--ryu-ofp-tcp-listen-port", str(port), "--ryu-ofp-listen-host", "127.0.0.1"]
    with (directory / "out.log").open("w") as log:
        process = subprocess.Popen(words, env=environment, stdout=log, stderr=subprocess.STDOUT)
        try:
            deadline = time.monotonic() + CONNECT_S
            while not listening(port):
                if process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(f"gauge does not listen:\n{(directory / 'out.log').read_text()[-2000:]}")
                time.sleep(0.2)
            yield process.pid, port
        finally:
            process.terminate()
            process.wait()


def joins(repeats: int, count: int = 200) -> list[Measurement]:
    """Report to flow entry with 10,000 polled ports, and with the same switches connected and not polled."""
    policy = OPEN_POLICY + "discovery: {lldp_interval_s: 60}\n"
    results: dict[str, list[float]] = {}
    for _ in range(repeats):
        for name, apps in (("without", ("multicast",)), ("with", ("multicast", "monitor"))):
            with (
                monitored(SWEEP_S, apps, policy) as process,
                served_switches(PEERS[0], PEERS[1], process.port),
            ):
                time.sleep(3 * SWEEP_S)
                results.setdefault(name, []).extend(_latencies_ms(process.port, count))
    return [Measurement(f"join latency {name} 10,000 polled ports", "ms", found) for name, found in results.items()]


def _latencies_ms(port: int, count: int) -> list[float]:
    switch = LoneSwitch(100_000, 48, ("127.0.0.1", port))
    switch.run_for(3.0)
    found = []
    for number in range(count):
        record = GroupRecord(RecordType.CHANGE_TO_EXCLUDE, _group(number))
        frame = encode(Report(4, 3, _mac(2), _address(2), (record,)))
        before, start = switch.received[FLOW_MOD], time.monotonic()
        switch.say([punted(2, frame)])
        if not switch.run_until(lambda before=before: switch.received[FLOW_MOD] > before, 10.0):
            raise TimeoutError(f"join {number}: no flow entry")
        found.append(1000 * (switch.watch.last_edit_s() - start))
        switch.run_for(0.03)
    switch.close()
    return found


PARTS = ("chain", "sweep", "peers", "joins")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parts", type=names_of(PARTS), default=PARTS)
    parser.add_argument("--gauge", type=Path, help="the gauge command of a Faucet installation")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    parts = {
        "chain": lambda: chain(args.repeats),
        "sweep": lambda: sweep(args.repeats),
        "peers": lambda: peers(args.repeats, args.gauge),
        "joins": lambda: joins(args.repeats),
    }
    results = []
    for name in args.parts:
        print(f"{name} ...", file=sys.stderr)
        results += parts[name]()
    report(results, as_json=args.json, source=Path(__file__).name)


if __name__ == "__main__":
    main()
