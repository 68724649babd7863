"""What passes of a group with none, one and three aliases, live, as root: IBM's table 5 with spines for devices.

    python benchmarks/aliases_live.py [--rounds 5] [--flows N [--split sender|flow]] [--framework ryu|os-ken] [--json]

Eight hosts of a leaf send 5.5 Mbit/s each to one host of another leaf, by four spines that pass 10 Mbit/s each
(meters where traffic enters a switch; Open vSwitch in user space). The policy gives the group its aliases while the
controller runs; each count is measured for five seconds in each round, one after the other. What passes without any
is the anchor. With --flows one host sends as much, in so many flows of equal rate from a port each.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
from pathlib import Path
from typing import Any

from apps.emulation.controller import FRAMEWORKS, ControllerProcess, Framework
from apps.emulation.network import CONTROLLER_PORT, EmulatedFabric
from topology.generators.draft import Draft
from topology.graph import Graph, NodeKind

GROUP = "239.1.1.1"
COUNTS = (0, 1, 3)
PUBLISHED = {0: 1.0, 1: 2.0, 3: 3.9}
SENDERS = 8
FIRST_PORT = 4000
RATE_BPS, FRAME_BYTES, PHASE_S = 5.5e6, 1250, 5.0
POLICY = """version: 1
default: allow
discovery: {{link_capacity_bps: 10000000}}
aliases: {{mode: {mode}, split: {split}, static: {{{group}: {count}}}}}
"""


def fabric_graph() -> Graph:
    """Return two leaves under four spines: eight hosts at one, the receiver at the other."""
    draft = Draft(100e6)
    leaves = [draft.switch(NodeKind.TOR) for _ in range(2)]
    spines = [draft.switch(NodeKind.AGGREGATION) for _ in range(4)]
    draft.hosts(leaves[0], SENDERS)
    draft.hosts(leaves[1], 1)
    for leaf in leaves:
        for spine in spines:
            draft.link(leaf, spine, 0.1)
    return draft.graph


def policy_of(count: int, split: str) -> str:
    return POLICY.format(mode="static" if count else "off", split=split, group=GROUP, count=max(count, 1))


def open_streams(fabric: EmulatedFabric, flows: int | None) -> int:
    """Prepare one stream of each sender, or `flows` of the first one; return how many there are."""
    if flows is None:
        for number in range(1, SENDERS + 1):
            fabric.open_stream(number, f"h{number}", GROUP, RATE_BPS, frame_bytes=FRAME_BYTES)
        return SENDERS
    rate_bps = SENDERS * RATE_BPS / flows
    for number in range(1, flows + 1):
        fabric.open_stream(number, "h1", GROUP, rate_bps, frame_bytes=FRAME_BYTES, source_port=FIRST_PORT + number)
    return flows


def run(framework: Framework, rounds: int, flows: int | None, split: str) -> tuple[dict[int, list[float]], int]:
    """Return bit/s received by count of aliases and round, and how many packets came twice."""
    received: dict[int, list[float]] = {count: [] for count in COUNTS}
    twice = phase = 0
    name = f"h{SENDERS + 1} {GROUP}"
    with tempfile.TemporaryDirectory(prefix="vsrt-bench-") as directory:
        policy = Path(directory, "policy.yaml")
        policy.write_text(policy_of(0, split))
        controller = ControllerProcess(CONTROLLER_PORT, framework=framework, policy=policy)
        with EmulatedFabric(fabric_graph(), controller=controller, capacities=True) as fabric:
            controller.wait_discovered(fabric)
            fabric.announce()
            fabric.join(f"h{SENDERS + 1}", GROUP)
            controller.wait_until("groups", lambda groups: any(entry["members"] for entry in groups))
            stream_count = open_streams(fabric, flows)
            fabric.send(0, 1.0)
            fabric.wait_sent(20)
            for _ in range(rounds):
                for count in COUNTS:
                    policy.write_text(policy_of(count, split))
                    controller.wait_until("groups", lambda groups, count=count: has_aliases(groups, count, split))
                    controller.wait_until("status", lambda status: status["in_sync"])
                    fabric.wait_flows()
                    phase += 1
                    fabric.send(phase, PHASE_S)
                    fabric.wait_sent(PHASE_S + 15)
                    streams = fabric.settled()[name]["streams"]
                    tallies = [streams.get(f"{number}:{phase}", {}) for number in range(1, stream_count + 1)]
                    packets = sum(tally.get("received", 0) for tally in tallies)
                    received[count].append(packets * FRAME_BYTES * 8 / PHASE_S)
                    twice += sum(tally.get("duplicates", 0) for tally in tallies)
    return received, twice


def has_aliases(groups: list[dict[str, Any]], count: int, split: str) -> bool:
    """Tell whether the group has so many aliases, and its flows are divided where they shall be."""
    group = next((entry for entry in groups if entry["group"] == GROUP), {"aliases": [], "senders": []})
    is_divided = split == "flow" and count > 0
    return len(group["aliases"]) == count and (
        all(alias["state"] == "bound" and bool(alias["flow_parts"]) is is_divided for alias in group["aliases"])
        and all(sender["divided"] is is_divided for sender in group["senders"])
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--flows", type=int, metavar="N", help="one host sends all, in so many flows")
    parser.add_argument("--split", choices=("sender", "flow"), default="sender")
    parser.add_argument("--framework", choices=FRAMEWORKS, default=FRAMEWORKS[0])
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    received, twice = run(args.framework, args.rounds, args.flows, args.split)
    rows = []
    for count in COUNTS:
        ratios = [one / base for one, base in zip(received[count], received[0], strict=True)]
        rows.append(
            {
                "aliases": count,
                "mbit_per_s": round(statistics.median(received[count]) / 1e6, 2),
                "times_none": round(statistics.median(ratios), 2),
                "least": round(min(ratios), 2),
                "most": round(max(ratios), 2),
                "published": PUBLISHED[count],
            }
        )
    if args.json:
        print(json.dumps({"rows": rows, "duplicates": twice, "rounds": args.rounds}))
        return
    for row in rows:
        print("  ".join(f"{key} {value}" for key, value in row.items()))
    print(f"packets that came twice: {twice}")


if __name__ == "__main__":
    main()
