"""What a join costs where groups may be out of the flow tables and there is room for all, beside where none may be.

    python benchmarks/overcommit_joins.py [--rounds 40] [--per-round 250] [--json]

Two cores with the same fabric take the same reports about groups that somebody sends to, in turn; each ratio is of
two rounds that followed each other.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

from measure import Measurement, report
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


def storm(bench: Bench, events: list[PacketReceived]) -> None:
    """Have reports come one a millisecond, and do what comes due meanwhile."""
    for event in events:
        bench.feed(event)
        bench.advance(0.001)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--per-round", type=int, default=250)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    benches = {
        mode: Bench(replace(POLICY, limits=LIMITS, overcommit=overcommit))
        for mode, overcommit in (("off", replace(SWAP, mode="off")), ("swap", SWAP))
    }
    samples: dict[str, list[float]] = {}
    for number in range(arguments.rounds):
        first, count = 65536 + number * arguments.per_round, arguments.per_round
        for bench in benches.values():
            for one in range(first, first + count):
                group = bytes((239, one >> 16 & 255, one >> 8 & 255, one & 255))
                frame = encode_udp(mac(SENDER), address(SENDER), group, b"data")
                bench.feed(PacketReceived(*SENDER_PLACE, frame))
            bench.advance(1.0)
        for name, (dpid, port_no, host) in JOINS.items():
            work = frames(first, count, host, RecordType.CHANGE_TO_EXCLUDE)
            events = [PacketReceived(dpid, port_no, frame) for frame in work]
            took: dict[str, float] = {}
            order = list(benches) if number % 2 else list(benches)[::-1]
            for mode in order:
                bench = benches[mode]
                took[mode] = timed(lambda bench=bench, events=events: storm(bench, events), count)
                samples.setdefault(f"{name}, {mode}, us", []).append(took[mode])
            samples.setdefault(f"{name}, swap over off", []).append(took["swap"] / took["off"])
        for bench in benches.values():
            bench.advance(1.0)
    measurements = [
        Measurement(name, "us" if name.endswith("us") else "", values) for name, values in samples.items()
    ]
    report(measurements, as_json=arguments.json, source="overcommit_joins")


if __name__ == "__main__":
    main()
