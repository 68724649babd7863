"""What a join costs where groups may be out of the flow tables and there is room for all, beside where none may be.

    python benchmarks/overcommit_joins.py [--rounds 40] [--per-round 250] [--mode swap] [--count] [--json]

Cores with the same fabric, two of them without the mode, take the same reports about groups that somebody sends to,
in turn; and of other groups the reports of two members, then the first packet. Each ratio is of rounds that followed
each other, and that of the two without the mode says what such a ratio is worth. With `--count` bytecodes and calls
are told and no time: other work does not move them.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from measure import Measurement, report, tallied
from multicast_core import POLICY, Bench, address, frames, mac, timed

from controller.config.overcommit_settings import Capacities, Overcommit
from controller.events import PacketReceived
from controller.wire.packets import RecordType
from controller.wire.udp import encode_udp

ROOM = 1 << 20
SWAP = Overcommit(mode="swap", capacity=Capacities(default=ROOM))
LIMITS = replace(POLICY.limits, unknown_packets_per_second_per_port=1e6, senders_per_port=65536)
JOINS = {"first member": (1, 1, 1), "same switch": (1, 2, 2), "another switch": (2, 1, 3)}
SENDER, SENDER_PLACE = 4, (3, 1)
SILENT = 1 << 20
"""How far the numbers of groups to which nobody sends at first are above those of the others."""


def storm(bench: Bench, events: list[PacketReceived]) -> None:
    """Have reports come one a millisecond, and do what comes due meanwhile."""
    for event in events:
        bench.feed(event)
        bench.advance(0.001)


def packets(first: int, count: int) -> list[PacketReceived]:
    """Return a packet to each of so many groups."""
    groups = (bytes((239, n >> 16 & 255, n >> 8 & 255, n & 255)) for n in range(first, first + count))
    return [PacketReceived(*SENDER_PLACE, encode_udp(mac(SENDER), address(SENDER), each, b"data")) for each in groups]


def reports(first: int, count: int, place: tuple[int, int, int]) -> list[PacketReceived]:
    """Return a report of a host at its port about each of so many groups."""
    dpid, port_no, host = place
    return [
        PacketReceived(dpid, port_no, frame) for frame in frames(first, count, host, RecordType.CHANGE_TO_EXCLUDE)
    ]


def costs_us(does: Callable[[], None], count: int) -> dict[str, float]:
    """Return how long something takes for each of so many reports."""
    return {"us": timed(does, count)}


def costs_counted(does: Callable[[], None], count: int) -> dict[str, float]:
    """Return how many bytecodes and calls something takes for each of so many reports."""
    bytecodes, calls = tallied(does)
    return {"bytecodes": bytecodes / count, "calls": calls / count}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--per-round", type=int, default=250)
    parser.add_argument("--count", action="store_true", help="count bytecodes and calls, and measure no time")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--mode", choices=("swap", "cover"), default="swap")
    arguments = parser.parse_args()
    mode = arguments.mode
    off, on = replace(SWAP, mode="off"), replace(SWAP, mode=mode)
    benches = {
        name: Bench(replace(POLICY, limits=LIMITS, overcommit=overcommit))
        for name, overcommit in (("off", off), ("off again", off), (mode, on))
    }
    samples: dict[tuple[str, str], list[float]] = {}
    for number in range(arguments.rounds):
        first, count = 65536 + number * arguments.per_round, arguments.per_round
        for bench in benches.values():
            for packet in packets(first, count):
                bench.feed(packet)
            bench.advance(1.0)
        turn = number % len(benches)
        order = [*list(benches)[turn:], *list(benches)[:turn]]
        silent = first + SILENT
        work = {name: reports(first, count, place) for name, place in JOINS.items()}
        work["member, nobody sends"] = reports(silent, count, JOINS["first member"])
        work["another, nobody sends"] = reports(silent, count, JOINS["another switch"])
        work["first packet after these"] = packets(silent, count)
        work["all three"] = [*reports(silent + SILENT, count, JOINS["first member"])]
        work["all three"] += [
            *reports(silent + SILENT, count, JOINS["another switch"]),
            *packets(silent + SILENT, count),
        ]
        for name, events in work.items():
            costs = costs_counted if arguments.count else costs_us
            took = {each: costs(partial(storm, benches[each], events), count) for each in order}
            for unit in took["off"]:
                for each in benches:
                    samples.setdefault((f"{name}, {each}", unit), []).append(took[each][unit])
                for each in ("off again", mode):
                    ratio = took[each][unit] / took["off"][unit]
                    samples.setdefault((f"{name}, {unit}: {each} over off", ""), []).append(ratio)
        for bench in benches.values():
            bench.advance(1.0)
    measurements = [Measurement(name, unit, values) for (name, unit), values in samples.items()]
    report(measurements, as_json=arguments.json, source="overcommit_joins")


if __name__ == "__main__":
    main()
