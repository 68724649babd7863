"""Counters to rates, beside a loop over ports and a plain difference of arrays; memory for one hour of samples."""

from __future__ import annotations

import argparse
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator

import numpy as np
from measure import Measurement, report
from numpy.typing import NDArray

from controller.events import Port
from controller.performance import inputs
from controller.performance.batch import Samples
from controller.performance.core import PerformanceCore
from controller.performance.counters import COUNTER_COUNT, COUNTERS, Counter
from controller.performance.ports import PortRows
from controller.performance.rates import RateTable

PORTS_PER_SWITCH = 48
INTERVAL_S = 10.0
START_S = 1e9
HOUR_SAMPLES = 360


def sweeps(ports: int, count: int, seed: int) -> Iterator[Samples]:
    """Whole sweeps over a fabric: busy ports, an error at one in a hundred."""
    rng = np.random.default_rng(seed)
    rows = np.arange(ports, dtype=np.int32)
    counters = np.zeros((ports, COUNTER_COUNT), np.uint64)
    for sweep in range(count):
        counters[:, :4] += rng.integers(0, 1 << 30, (ports, 4)).astype(np.uint64)
        counters[:, 10] += rng.random(ports) < 0.01
        at_s = np.full(ports, START_S + INTERVAL_S * sweep)
        yield Samples(rows, at_s, at_s - START_S + 100, counters.copy())


def batches(samples: Samples, size: int) -> list[Samples]:
    """Samples in batches."""
    return [samples.take(slice(start, start + size)) for start in range(0, len(samples), size)]


def rate_table(ports: int) -> RateTable:
    """Our table of last samples."""
    names = PortRows(ports)
    for row in range(ports):
        names.add(1 + row // PORTS_PER_SWITCH, 1 + row % PORTS_PER_SWITCH, "", 1e10)
    return RateTable(names)


def core_of(ports: int) -> PerformanceCore:
    """A core that knows a fabric of switches with 48 ports."""
    core = PerformanceCore()
    for dpid in range(1, -(-ports // PORTS_PER_SWITCH) + 1):
        numbers = range(1, min(PORTS_PER_SWITCH, ports - (dpid - 1) * PORTS_PER_SWITCH) + 1)
        found = tuple(Port(number, f"s{dpid}-eth{number}", bytes(6), True, 1e10) for number in numbers)
        core.handle(inputs.MonitoredSwitchUp(dpid, found), START_S)
    return core


class PortLoop:
    """What monitors in the field do: for each port a dictionary of its last counters, and a division."""

    def __init__(self) -> None:
        self._last: dict[int, tuple[float, list[int]]] = {}

    def update(self, samples: Samples) -> list[dict[Counter, float]]:
        """Return the rates of a sweep, without telling wraps and resets apart."""
        found = []
        for row, at_s, counters in zip(
            samples.rows.tolist(), samples.at_s.tolist(), samples.counters.tolist(), strict=True
        ):
            last = self._last.get(row)
            if last is not None and at_s > last[0]:
                elapsed_s = at_s - last[0]
                found.append(
                    {
                        name: (now - before) / elapsed_s
                        for name, now, before in zip(COUNTERS, counters, last[1], strict=True)
                    }
                )
            self._last[row] = (at_s, counters)
        return found


class PlainDifference:
    """Arrays without any check: the least that rates can cost."""

    def __init__(self, ports: int) -> None:
        self._counters = np.zeros((ports, COUNTER_COUNT), np.uint64)
        self._at_s = np.zeros(ports)

    def update(self, samples: Samples) -> NDArray[np.float64]:
        """Return the rates of a sweep."""
        rows = samples.rows
        elapsed_s = samples.at_s - self._at_s[rows]
        per_s: NDArray[np.float64] = (samples.counters - self._counters[rows]) / elapsed_s[:, None]
        self._counters[rows], self._at_s[rows] = samples.counters, samples.at_s
        return per_s


def per_second(update: Callable[[Samples], object], samples: Samples, size: int) -> float:
    """Return the samples taken in per second of processor time, in batches of a size."""
    parts = batches(samples, size)
    start = time.process_time()
    for part in parts:
        update(part)
    return len(samples) / (time.process_time() - start)


def throughput(ports: int, repeats: int, seed: int) -> list[Measurement]:
    """Return samples per second of every contender, measured in turn, sweep by sweep."""
    core, small = core_of(ports), core_of(ports)

    def through(which: PerformanceCore) -> Callable[[Samples], object]:
        return lambda part: which.handle(inputs.SamplesReceived(part), float(part.at_s[0]))

    contenders: dict[str, tuple[Callable[[Samples], object], int]] = {
        "rates, whole sweep": (rate_table(ports).update, ports),
        "rates, batches of 1000": (rate_table(ports).update, 1000),
        "difference of arrays, whole sweep, no checks": (PlainDifference(ports).update, ports),
        "loop over ports, no checks": (PortLoop().update, ports),
        "core, batches of 1000": (through(core), 1000),
        "core, batches of 48": (through(small), PORTS_PER_SWITCH),
    }
    found: dict[str, list[float]] = {name: [] for name in contenders}
    for sweep, samples in enumerate(sweeps(ports, repeats + 2, seed)):
        for name, (update, size) in contenders.items():
            speed = per_second(update, samples, size)
            if sweep >= 2:
                found[name].append(speed)
    return [Measurement(name, "samples/s", values) for name, values in found.items()]


def memory(ports: int, seed: int) -> list[Measurement]:
    """Return the bytes that each port takes in the core after an hour of samples, and while they come."""
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    core = core_of(ports)
    core.handle(inputs.Tick(), START_S)
    start, _ = tracemalloc.get_traced_memory()
    for samples in sweeps(ports, HOUR_SAMPLES, seed):
        for part in batches(samples, 1000):
            core.handle(inputs.SamplesReceived(part), float(part.at_s[0]))
        del samples, part
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return [
        Measurement("memory before the first sample", "bytes/port", [(start - before) / ports]),
        Measurement("memory after one hour of 10 s samples", "bytes/port", [(after - before) / ports]),
    ]


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON in place of a table")
    parser.add_argument("--ports", type=int, default=100_000, help="ports of the fabric (default 100,000)")
    parser.add_argument("--memory-ports", type=int, default=5_000, help="ports for the memory (default 5,000)")
    parser.add_argument("--repeats", type=int, default=11, help="sweeps measured (default 11)")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    measured = throughput(arguments.ports, arguments.repeats, arguments.seed)
    measured += memory(arguments.memory_ports, arguments.seed)
    report(measured, as_json=arguments.json, source="performance_rates")
    return 0


if __name__ == "__main__":
    sys.exit(main())
