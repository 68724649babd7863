"""What passes of a group with none, one and three aliases, live, as root: IBM's table 5 with spines for devices.

    python benchmarks/aliases_live.py [--rounds 5] [--framework ryu|os-ken] [--json]

Eight hosts of a leaf send 5.5 Mbit/s each to one host of another leaf, by four spines that pass 10 Mbit/s each
(meters where traffic enters a switch; Open vSwitch in user space). The policy gives the group its aliases while the
controller runs; each count is measured for five seconds in each round, one after the other. What passes without any
is the anchor.
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
RATE_BPS, FRAME_BYTES, PHASE_S = 5.5e6, 1250, 5.0
POLICY = """version: 1
default: allow
discovery: {{link_capacity_bps: 10000000}}
aliases: {{mode: {mode}, static: {{{group}: {count}}}}}
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


def policy_of(count: int) -> str:
    return POLICY.format(mode="static" if count else "off", group=GROUP, count=max(count, 1))


def run(framework: Framework, rounds: int) -> tuple[dict[int, list[float]], int]:
    """Return bit/s received by count of aliases and round, and how many packets came twice."""
    received: dict[int, list[float]] = {count: [] for count in COUNTS}
    twice = phase = 0
    name = f"h{SENDERS + 1} {GROUP}"
    with tempfile.TemporaryDirectory(prefix="vsrt-bench-") as directory:
        policy = Path(directory, "policy.yaml")
        policy.write_text(policy_of(0))
        controller = ControllerProcess(CONTROLLER_PORT, framework=framework, policy=policy)
        with EmulatedFabric(fabric_graph(), controller=controller, capacities=True) as fabric:
            controller.wait_discovered(fabric)
            fabric.announce()
            fabric.join(f"h{SENDERS + 1}", GROUP)
            controller.wait_until("groups", lambda groups: any(entry["members"] for entry in groups))
            for number in range(1, SENDERS + 1):
                fabric.open_stream(number, f"h{number}", GROUP, RATE_BPS, frame_bytes=FRAME_BYTES)
            fabric.send(0, 1.0)
            fabric.wait_sent(20)
            for _ in range(rounds):
                for count in COUNTS:
                    policy.write_text(policy_of(count))
                    controller.wait_until("groups", lambda groups, count=count: has_aliases(groups, count))
                    controller.wait_until("status", lambda status: status["in_sync"])
                    fabric.wait_flows()
                    phase += 1
                    fabric.send(phase, PHASE_S)
                    fabric.wait_sent(PHASE_S + 15)
                    streams = fabric.settled()[name]["streams"]
                    tallies = [streams.get(f"{number}:{phase}", {}) for number in range(1, SENDERS + 1)]
                    packets = sum(tally.get("received", 0) for tally in tallies)
                    received[count].append(packets * FRAME_BYTES * 8 / PHASE_S)
                    twice += sum(tally.get("duplicates", 0) for tally in tallies)
    return received, twice


def has_aliases(groups: list[dict[str, Any]], count: int) -> bool:
    aliases = next((entry["aliases"] for entry in groups if entry["group"] == GROUP), [])
    return len(aliases) == count and all(alias["state"] == "bound" for alias in aliases)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--framework", choices=FRAMEWORKS, default=FRAMEWORKS[0])
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    received, twice = run(args.framework, args.rounds)
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
