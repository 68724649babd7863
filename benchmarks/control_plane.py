"""New joins and refreshing reports per second through a live controller process, from a simulated switch.

Joins per second of the controller's own processor time are told too: what else runs disturbs these less.

    python benchmarks/control_plane.py [--joins 10000] [--refreshes 40000] [--repeats 5] [--json]

A join is an IGMPv3 report for a group new to its port, done when its flow entry has been sent. igmplib
(ryu.app.simple_switch_igmp_13) is measured in the same run, turn by turn, with IGMPv2 reports, which alone it snoops;
of the two entries that it sends per join the second counts.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import NamedTuple

from controllers import CONTROLLERS, controller
from fabric_simulator.process import cpu_s
from measure import Measurement, names_of, report, touch_memory

from apps.simulated_fabric.lone import LoneSwitch, punted
from apps.simulated_fabric.messages import FLOW_MOD
from controller.wire.encode import encode
from controller.wire.packets import GroupRecord, Query, RecordType, Report

PORTS = 48
ENTRIES_PER_JOIN = {"igmplib": 2}
WINDOW_BYTES = 1 << 16


class Speed(NamedTuple):
    """Joins per second that passed, and per second of the controller's processor time."""

    per_s: float
    per_processor_s: float


def _address(number: int) -> bytes:
    return bytes((10, 0, number >> 8, number & 0xFF))


def _mac(number: int) -> bytes:
    return bytes((0, 0, 0, 0, number >> 8, number & 0xFF))


def _group(number: int) -> bytes:
    return bytes((239, 1 + (number >> 16), (number >> 8) & 0xFF, number & 0xFF))


def report_frames(count: int, version: int, ports: int = PORTS) -> list[bytes]:
    """Build one packet-in per join: group i at port i modulo the number of ports but the first."""
    frames = []
    for number in range(count):
        port_no = 2 + number % (ports - 1)
        record = GroupRecord(
            RecordType.CHANGE_TO_EXCLUDE if version == 3 else RecordType.MODE_IS_EXCLUDE, _group(number)
        )
        frame = encode(Report(4, version, _mac(port_no), _address(port_no), (record,)))
        frames.append(punted(port_no, frame))
    return frames


def _prepare(name: str, address: tuple[str, int]) -> LoneSwitch:
    switch = LoneSwitch(1, PORTS, address)
    switch.run_for(2.0)
    before = -1
    while before != switch.received[FLOW_MOD]:  # the ports open for hosts one after the other
        before = switch.received[FLOW_MOD]
        switch.run_for(1.0)
    if name == "igmplib":
        query = Query(4, 2, _mac(1), _address(1), None, (), 10.0, False, None, None)
        switch.say([punted(1, encode(query))])
        switch.run_for(1.0)
    touch_memory()
    return switch


def _feed(switch: LoneSwitch, frames: list[bytes], done) -> float:
    """Send all frames, keeping the controller's input full but bounded, and return the seconds until `done`."""
    start = time.perf_counter()
    next_frame = 0
    while not done():
        while next_frame < len(frames) and switch.unsent_bytes < WINDOW_BYTES:
            switch.say(frames[next_frame : next_frame + 64])
            next_frame += 64
        more = next_frame < len(frames) and switch.unsent_bytes < WINDOW_BYTES
        switch.turn(0.0 if more else 0.01)
        if time.perf_counter() - start > 120:
            raise TimeoutError(f"not done after 120 s: {dict(switch.received)}")
    return time.perf_counter() - start


def joins_per_s(name: str, count: int) -> Speed:
    with controller(name) as process:
        switch = _prepare(name, ("127.0.0.1", process.port))
        before = switch.received[FLOW_MOD]
        frames = report_frames(count, 2 if name == "igmplib" else 3)
        entries = count * ENTRIES_PER_JOIN.get(name, 1)
        processor_s = -cpu_s(process.pid)
        seconds = _feed(switch, frames, lambda: switch.received[FLOW_MOD] - before >= entries)
        processor_s += cpu_s(process.pid)
        switch.run_for(0.5)
        sent = switch.received[FLOW_MOD] - before
        switch.close()
    if sent != entries:
        raise RuntimeError(f"{name} sent {sent} flow entries for {count} joins, not {entries}")
    return Speed(count / seconds, count / processor_s)


def refreshes_per_s(name: str, count: int) -> float:
    """Reports that change nothing; a marker (a join for one more group) tells when all have been read."""
    groups = 100
    with controller(name) as process:
        switch = _prepare(name, ("127.0.0.1", process.port))
        version = 2 if name == "igmplib" else 3
        frames = report_frames(groups + 1, version)
        marker = frames.pop()
        before = switch.received[FLOW_MOD]
        entries = groups * ENTRIES_PER_JOIN.get(name, 1)
        _feed(switch, frames, lambda: switch.received[FLOW_MOD] - before >= entries)
        switch.run_for(0.5)
        before = switch.received[FLOW_MOD]
        load = [frames[number % groups] for number in range(count)]
        seconds = _feed(switch, [*load, marker], lambda: switch.received[FLOW_MOD] > before)
        switch.close()
    return count / seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--joins", type=int, default=10000)
    parser.add_argument("--refreshes", type=int, default=40000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--controllers", type=names_of(CONTROLLERS), default=["vsrt", "igmplib", "vsrt-os-ken"])
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    joins: dict[str, list[Speed]] = {name: [] for name in args.controllers}
    refreshes: dict[str, list[float]] = {name: [] for name in joins if name != "igmplib"}
    for _ in range(args.repeats):
        for name, speeds in joins.items():
            speeds.append(joins_per_s(name, args.joins))
        for name, rates in refreshes.items():
            rates.append(refreshes_per_s(name, args.refreshes))
    results = [
        Measurement(f"new joins, {name}", "1/s", [speed.per_s for speed in speeds]) for name, speeds in joins.items()
    ]
    results += [
        Measurement(f"new joins, {name}, processor time", "1/s", [speed.per_processor_s for speed in speeds])
        for name, speeds in joins.items()
    ]
    results += [Measurement(f"refreshing reports, {name}", "1/s", rates) for name, rates in refreshes.items()]
    if "igmplib" in joins:
        for name in refreshes:
            turns = list(zip(joins[name], joins["igmplib"], strict=True))
            ratios = [ours.per_s / theirs.per_s for ours, theirs in turns]
            results.append(Measurement(f"new joins, {name} to igmplib", "times", ratios))
            ratios = [ours.per_processor_s / theirs.per_processor_s for ours, theirs in turns]
            results.append(Measurement(f"new joins, {name} to igmplib, processor time", "times", ratios))
    report(results, as_json=args.json, source=Path(__file__).name)


if __name__ == "__main__":
    main()
