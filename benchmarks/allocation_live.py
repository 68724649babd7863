"""The live allocator at size: a poll taken in, requests between two polls, its state on disk, memory per port.

Peer in the same process: the same request with all its ports as a document (`request.json`), read each time.
Run: PYTHONPATH=. python benchmarks/allocation_live.py [--json]
"""

from __future__ import annotations

import argparse
import gc
import logging
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from measure import Measurement, report

from apps.allocation_state import AllocationState
from controller.allocation.events import PortsRated, ports_rated
from controller.allocation.live import AllocatorCore, port_name
from controller.allocation.live_view import AllocatorConsole
from controller.allocation.request import answer, read_request
from controller.allocation.selection import select
from controller.config.settings import Allocation, PortParameters
from controller.events import Port, SwitchConnected
from controller.performance.batch import Samples
from controller.performance.counters import COUNTER_COUNT, Counter
from controller.performance.ports import PortRows
from controller.performance.rates import RateTable
from topology.events import HostLearnt, LinkUp, SwitchUp

PORTS_OF_SWITCH, SPINES, UPLINKS = 48, 48, 4
POLL_S, POLLS = 10, 8
SLICE = 2000
SETTINGS = Allocation(openflow=PortParameters(days_to_average_utilization=10001))


class Fabric:
    """Leaves with four uplinks each and a host, under spines."""

    def __init__(self, switches: int) -> None:
        self.core = AllocatorCore(SETTINGS)
        self.now_s = 1.7e9
        self.console = AllocatorConsole(self.core, lambda: round(self.now_s * 1000), dict)
        numbers = range(1, PORTS_OF_SWITCH + 1)
        for dpid in range(1, switches + 1):
            ports = tuple(Port(number, f"eth1/{number}", bytes(6), True, 1e10) for number in numbers)
            self.tell(SwitchUp(dpid, 4), SwitchConnected(dpid, 4, ports))
        for leaf in range(SPINES + 1, switches + 1):
            self.tell(HostLearnt(leaf.to_bytes(6, "big"), leaf, PORTS_OF_SWITCH, ()))
            for uplink in range(1, UPLINKS + 1):
                spine = 1 + (leaf * UPLINKS + uplink) % SPINES
                self.tell(LinkUp(leaf, uplink, spine, 1 + leaf % PORTS_OF_SWITCH, 1e10))
        self.keys = tuple((dpid, number) for dpid in range(1, switches + 1) for number in numbers)

    def tell(self, *events: Any) -> None:
        for event in events:
            self.core.handle(event, 0.0)

    def poll(self, generator: np.random.Generator) -> None:
        self.now_s += POLL_S
        busy = generator.uniform(0, 60, len(self.keys))
        self.tell(PortsRated(self.keys, np.full(len(self.keys), self.now_s), busy, {}))


def timed(function: Callable[[], Any]) -> float:
    gc.collect()
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def event_of_rates(keys: tuple[tuple[int, int], ...], repeats: int) -> list[float]:
    """Make the monitor's word of the rates of all ports."""
    table = PortRows(len(keys))
    for dpid, number in keys:
        table.add(dpid, number, "", 1e10)
    rates_of, rows, found = RateTable(table), np.arange(len(keys), dtype=np.int32), []
    for poll in range(repeats + 1):
        counters = np.zeros((len(keys), COUNTER_COUNT), np.uint64)
        counters[:, Counter.TX_BYTES.column] = 10**9 * poll
        at_s = np.full(len(keys), 1.7e9 + POLL_S * poll)
        rates = rates_of.update(Samples(rows, at_s, at_s, counters))
        found.append(timed(lambda: ports_rated(rates, table, {})))  # noqa: B023
    return found[1:]


def answered(document: Any) -> dict[str, Any]:
    """Answer a request that brings all its ports."""
    request = read_request(document)
    return answer(request.candidates, select(*request))


def measure(switches: int, count: int, repeats: int) -> list[Measurement]:
    generator = np.random.default_rng(0)
    tracemalloc.start()
    fabric = Fabric(switches)
    fabric.poll(generator)
    n = len(fabric.keys)
    memory = tracemalloc.get_traced_memory()[0] / n
    tracemalloc.stop()
    polls = [timed(lambda: fabric.poll(generator)) for _ in range(max(POLLS, repeats))]
    asked = {"count": count, "reserve": False}
    first, later, peer = [], [], []
    chosen = fabric.console.allocate(asked)["ports"]
    watched = {each["id"]: each for each in fabric.console.watch({"count": n})["ports"]}
    known = [watched[port_name(key)] for key in fabric.keys]
    ports = [{name: each[name] for name in ("id", "usage", "components")} for each in known]
    document = {"levels": ["plane", "pod", "switch", "line_card", "neighbour"], "ports": ports, "count": count}
    for _ in range(repeats):
        fabric.tell(SwitchUp(1, 4))
        first.append(timed(lambda: fabric.console.allocate(asked)))
        later.append(timed(lambda: fabric.console.allocate(asked)))
        peer.append(timed(lambda: answered(document)))
    if answered(document)["ports"] != chosen:
        raise SystemExit("the peer chose other ports")
    with tempfile.TemporaryDirectory() as directory:
        state = AllocationState(Path(directory) / "allocation.sqlite", logging.getLogger())
        slices = []
        for _ in range(min(repeats, n // SLICE)):
            slices.append(timed(lambda: state.write(fabric.core.changes(SLICE))))
        while fabric.core.changes(SLICE).state["ports"]:
            pass
        fabric.core.all_changed()
        state.write(fabric.core.changes(n))
        restored = AllocatorCore(SETTINGS)
        restart = [timed(lambda: restored.restore(state.read() or {})) for _ in range(min(3, repeats))]
        state.close()
    what = f"{n:,} ports"
    return [
        Measurement(
            f"{what}: the monitor's word of a poll, where an allocator listens",
            "s",
            event_of_rates(fabric.keys, repeats),
        ),
        Measurement(f"{what}: a poll taken in", "s", polls),
        Measurement(f"{what}: {count} chosen, first request after the fabric changed", "s", first),
        Measurement(f"{what}: {count} chosen, the next ones", "s", later),
        Measurement(f"{what}: {count} chosen, peer with a document of all ports", "s", peer),
        *([Measurement(f"{SLICE:,} ports written to the database", "s", slices)] if slices else []),
        Measurement(f"{what}: state read and restored", "s", restart),
        Measurement("memory per port", "bytes", [memory]),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--switches", type=int, default=2048, help="48 ports each, at most 2,083")
    parser.add_argument("--count", type=int, default=64)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    report(measure(args.switches, args.count, args.repeats), as_json=args.json, source="allocation_live")


if __name__ == "__main__":
    main()
