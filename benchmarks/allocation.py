"""Port metrics and allocation at size: ranking and choosing, averaging samples, memory per port.

Peers in the same process: the same choice with Python sets and dicts, filter after filter, as one would write it from
the article; the averages of one sample after another, in plain Python. Run:
PYTHONPATH=. python benchmarks/allocation.py [--json]
"""

from __future__ import annotations

import argparse
import gc
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
from measure import Measurement, report

from controller.allocation.book import PortBook
from controller.allocation.candidates import Candidates
from controller.allocation.selection import Wish, select
from controller.allocation.whatif import POLICIES, attached_day, replay, skewed_day
from controller.config.settings import Allocation, PortParameters

LEVELS = ("plane", "pod", "switch", "line_card", "neighbour")
MINUTE_MS = 60_000
AVERAGED_PORTS, LEAST_POLLS = 10_000, 2


def timed(function: Callable[[], Any]) -> tuple[float, Any]:
    gc.collect()
    start = time.perf_counter()
    found = function()
    return time.perf_counter() - start, found


class Fabric:
    """Ports with their usage and entities, as a request has them."""

    def __init__(self, ports: int, seed: int) -> None:
        generator = np.random.default_rng(seed)
        self.ids = [f"p{index}" for index in range(ports)]
        self.usage_pct = generator.uniform(0, 60, ports)
        sizes = (2, max(1, ports // 2048), max(1, ports // 48), max(1, ports // 12), 4)
        place = np.arange(ports)
        self.levels = {
            level: [
                f"{level}{entity}" for entity in (place * size // ports if level != "neighbour" else place % size)
            ]
            for level, size in zip(LEVELS, sizes, strict=True)
        }

    def candidates(self) -> Candidates:
        n = len(self.ids)
        return Candidates(self.ids, self.usage_pct, np.zeros(n), np.ones(n, np.bool_), self.levels)

    def with_sets(self, count: int) -> list[str]:
        """Choose as the article describes it, with sets."""
        usage = dict(zip(self.ids, self.usage_pct.tolist(), strict=True))
        entity_of = {level: dict(zip(self.ids, entities, strict=True)) for level, entities in self.levels.items()}
        left = dict.fromkeys(self.ids)
        used: dict[str, set[str]] = {level: set() for level in self.levels}
        last: dict[str, str] = {}
        chosen: list[str] = []
        for _ in range(count):
            ports = list(left)
            for level in self.levels:
                entity = entity_of[level]
                avoided = used[level]
                if {entity[port] for port in left} <= avoided:
                    used[level] = set()
                    avoided = {last[level]}
                ports = [port for port in ports if entity[port] not in avoided] or ports
            best = min(ports, key=usage.__getitem__)
            chosen.append(best)
            del left[best]
            for level in self.levels:
                used[level].add(entity_of[level][best])
                last[level] = entity_of[level][best]
        return chosen


def choosing(ports: int, count: int, repeats: int) -> list[Measurement]:
    ours, ready, sets = [], [], []
    for seed in range(repeats):
        fabric = Fabric(ports, seed)
        seconds, found = timed(lambda: select(fabric.candidates(), Wish(count)))  # noqa: B023
        ours.append(seconds)
        candidates = fabric.candidates()
        ready.append(timed(lambda: select(candidates, Wish(count)))[0])  # noqa: B023
        if seed < 2:
            seconds, other = timed(lambda: fabric.with_sets(count))  # noqa: B023
            sets.append(seconds)
            if list(found.ports) != other:
                raise SystemExit("the peer chose other ports")
    what = f"{ports:,} ports ranked, {count} chosen"
    return [
        Measurement(f"{what}, columns built too", "s", ours),
        Measurement(f"{what}, columns there", "s", ready),
        Measurement(f"{what}, peer with sets", "s", sets),
    ]


def averaging(samples: int, ports: int, repeats: int) -> list[Measurement]:
    """Cumulative kilobytes of all ports at each poll, to percent, running average and EMA."""
    polls = samples // ports
    ours, plain = [], []
    generator = np.random.default_rng(0)
    moved = generator.integers(0, 131_072 * 60, (polls, ports))
    counters = np.cumsum(moved, axis=0)
    for _ in range(repeats):
        book = PortBook(Allocation())
        for index in range(ports):
            book.add(f"p{index}", "hds")
        rows, speed = np.arange(ports), np.full(ports, 8.0)
        times = [np.full(ports, poll * MINUTE_MS, np.int64) for poll in range(polls)]

        def feed() -> None:
            for at, kbytes in zip(times, counters, strict=True):  # noqa: B023
                book.ports.observe_kbytes(rows, at, kbytes, speed)  # noqa: B023

        seconds, _ = timed(feed)
        ours.append(polls * ports / seconds)
    few = counters[:, : max(1, ports // 100)].T.tolist()
    for _ in range(repeats):
        seconds, averages = timed(lambda: [one_by_one(each) for each in few])
        plain.append(len(few) * polls / seconds)
    if not np.allclose(book.ports.average_pct[: len(few)], averages):
        raise SystemExit("the peer's averages differ")
    return [
        Measurement("samples averaged", "1/s", ours),
        Measurement("samples averaged, 10 million", "s", [1e7 / rate for rate in ours]),
        Measurement("samples averaged, peer in plain Python", "1/s", plain),
    ]


def one_by_one(counters: list[int]) -> float:
    """Return the running average of a port, sample after sample; the EMA at the end of each day is kept too."""
    average, history, count, start, last = 0.0, None, 0, 0, None
    for poll, kbytes in enumerate(counters):
        at = poll * MINUTE_MS
        if last is not None and kbytes >= last:
            percent = min(100.0, (kbytes - last) * 100.0 / 60.0 / (8 * 131_072))
            average = average * count / (count + 1) + percent / (count + 1) if count else percent
            count += 1
        if at - start > 86_400_000 and count:
            history = average if history is None else 0.6 * average + 0.4 * history
            count, start = 0, start + 86_400_000
        last = kbytes
    return average


def memory(ports: int) -> list[Measurement]:
    gc.collect()
    tracemalloc.start()
    book = PortBook(Allocation())
    for index in range(ports):
        book.add(f"00000000000000{index % 4096:02x}:{index}", "vmax", f"cpu{index // 4}")
    used = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return [Measurement(f"memory per port, {ports:,} ports with a CPU for four", "bytes", [used / len(book)])]


def what_if(seeds: int) -> list[Measurement]:
    parameters = PortParameters(days_to_average_utilization=10060)
    found = []
    for title, make in (("what-if", skewed_day), ("what-if, load by attachments", attached_day)):
        p99: dict[str, list[float]] = {policy: [] for policy in POLICIES}
        for seed in range(1, seeds + 1):
            day = make(seed=seed)
            for policy in POLICIES:
                p99[policy].append(replay(day, policy, parameters, seed=seed).p99_pct)
        below = [100 * (1 - ours / count) for ours, count in zip(p99["metric"], p99["count"], strict=True)]
        found += [Measurement(f"{title}, p99 port utilisation by {policy}", "%", p99[policy]) for policy in POLICIES]
        found.append(Measurement(f"{title}, metric below count", "%", below))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ports", type=int, default=100_000)
    parser.add_argument("--count", type=int, default=64)
    parser.add_argument("--samples", type=int, default=10_000_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seeds", type=int, default=10, help="days of the what-if")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    if args.samples < LEAST_POLLS * AVERAGED_PORTS:
        parser.error(f"--samples: at least {LEAST_POLLS} polls of {AVERAGED_PORTS} ports are averaged")
    found = choosing(args.ports, args.count, args.repeats)
    found += averaging(args.samples, AVERAGED_PORTS, min(3, args.repeats))
    found += memory(args.ports)
    found += what_if(args.seeds)
    report(found, as_json=args.json, source="allocation")


if __name__ == "__main__":
    main()
