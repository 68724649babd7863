"""Open vSwitch whose tables hold a quarter of the groups, live, as root: what is lost, and how soon a group is in.

    python benchmarks/overcommit_live.py [--framework ryu|os-ken] [--rounds 3] [--json]

A host joins 256 groups, of which 40 send at a time, others every 2.5 s, over switches whose tables of groups refuse
more than 64 entries each (`flow_limit`). Anchors are: without overcommit, and so with Open vSwitch's own eviction,
which has the entry that would time out first make room (`overflow_policy=evict`). Then one group after the other
that is out is sent 1,000 packets a second: as many as the controller hands on is the time to its entries, in ms.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
from pathlib import Path
from typing import Any

from apps.emulation import processes
from apps.emulation.controller import FRAMEWORKS, ControllerProcess, Framework
from apps.emulation.network import CONTROLLER_PORT, EmulatedFabric
from topology.generators.draft import Draft
from topology.graph import Graph, NodeKind

TABLE, GROUPS, ACTIVE, PHASE_S = 64, 256, 40, 2.5
LIMITED_TABLES = (1, 2)
RATE_BPS, FRAME_BYTES = 16_000, 200
FAULTS, FAULT_BPS, FAULT_S = 40, 1.6e6, 0.2
SENDERS, MEMBER = ("h1", "h2", "h3", "h4"), "h7"
MODES = {"off": "off", "evict": "off", "swap": "swap"}
"""What is compared by `overcommit.mode`: full tables refuse, the switch makes room, and the controller swaps."""
POLICY = """version: 1
default: allow
limits: {{groups_per_port: 1024, senders_per_port: 1024, reports_per_second_per_port: 10000}}
overcommit:
  {{mode: {mode}, carried_packets_per_second: 2000, faults_per_second: 5000, capacity: {{default: {table}}}}}
"""


def fabric_graph() -> Graph:
    """Return four leaves of two hosts under two spines."""
    draft = Draft(1e9)
    leaves = [draft.switch(NodeKind.TOR) for _ in range(4)]
    spines = [draft.switch(NodeKind.AGGREGATION) for _ in range(2)]
    for leaf in leaves:
        draft.hosts(leaf, 2)
        for spine in spines:
            draft.link(leaf, spine)
    return draft.graph


def group_of(number: int) -> str:
    return f"239.64.{number >> 8}.{number & 255}"


def limit_tables(fabric: EmulatedFabric, overflow: str) -> None:
    for switch in fabric.graph.switches():
        for table in LIMITED_TABLES:
            made = ("--", "--id=@table", "create", "Flow_Table", f"flow_limit={TABLE}", f"overflow_policy={overflow}")
            bridge = fabric.node(switch).name
            processes.run("ovs-vsctl", *made, "--", "set", "Bridge", bridge, f"flow_tables:{table}=@table")


def run(framework: Framework, mode: str, rounds: int) -> dict[str, Any]:
    """Return what was sent, lost and doubled, how often a table was full, and the times to entries in ms."""
    with tempfile.TemporaryDirectory(prefix="vsrt-bench-") as directory:
        policy = Path(directory, "policy.yaml")
        policy.write_text(POLICY.format(mode=MODES[mode], table=TABLE))
        controller = ControllerProcess(CONTROLLER_PORT, framework=framework, policy=policy)
        with EmulatedFabric(fabric_graph(), controller=controller) as fabric:
            controller.wait_discovered(fabric)
            fabric.announce()
            controller.wait_until("status", lambda status: status["hosts"] >= len(fabric.graph.hosts()))
            limit_tables(fabric, "evict" if mode == "evict" else "refuse")
            for number in range(GROUPS):
                fabric.join(MEMBER, group_of(number))
                sender = SENDERS[number % len(SENDERS)]
                fabric.open_stream(number, sender, group_of(number), RATE_BPS, frame_bytes=FRAME_BYTES)
            controller.wait_until("groups", lambda found: sum(1 for each in found if each["members"]) >= GROUPS)
            waves = [range(first, first + ACTIVE) for first in range(0, GROUPS - ACTIVE + 1, ACTIVE)] * rounds
            for phase, wave in enumerate(waves, 1):
                fabric.send(phase, PHASE_S, wave)
                fabric.wait_sent(PHASE_S + 15)
            sent, seen = fabric.sent(), fabric.settled()
            found = {"sent": 0, "lost": 0, "doubled": 0}
            for phase, wave in enumerate(waves, 1):
                for number in wave:
                    tally = seen[f"{MEMBER} {group_of(number)}"]["streams"].get(f"{number}:{phase}", {})
                    count = sent[str(number)]["phases"][str(phase)]["sent"]
                    found["sent"] += count
                    found["lost"] += count - tally.get("received", 0)
                    found["doubled"] += tally.get("duplicates", 0)
            counters = controller.show("status")["counters"]
            found |= {name: counters.get(name, 0) for name in ("table-full", "swaps-in", "swaps-out", "faults")}
            return {**found, "to_entries_ms": times(fabric, controller) if MODES[mode] != "off" else []}


def times(fabric: EmulatedFabric, controller: ControllerProcess) -> list[float]:
    """Return how many packets, one a millisecond, of each of some groups that are out the controller handed on."""
    found = []
    known = {group_of(number): number for number in range(GROUPS)}
    out = [each["group"] for each in controller.show("groups") if each["out"] and each["senders"]]
    for place, group in enumerate(out[:FAULTS]):
        stream = GROUPS + place
        sender = SENDERS[known[group] % len(SENDERS)]
        fabric.open_stream(stream, sender, group, FAULT_BPS, frame_bytes=FRAME_BYTES, pattern="constant")
        before = controller.show("status")["counters"].get("faults", 0)
        fabric.send(1, FAULT_S, [stream])
        fabric.wait_sent(10)
        found.append(float(controller.show("status")["counters"].get("faults", 0) - before))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--framework", choices=FRAMEWORKS, default=FRAMEWORKS[0])
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    results = {mode: run(args.framework, mode, args.rounds) for mode in MODES}
    if args.json:
        print(json.dumps(results))
        return
    for mode, found in results.items():
        ms = sorted(found.pop("to_entries_ms"))
        print(mode, "  ".join(f"{name} {count}" for name, count in found.items()))
        if ms:
            spread = f"least {ms[0]:g}, most {ms[-1]:g}, {len(ms)} groups"
            print(f"to entries, ms: median {statistics.median(ms):g}, {spread}")


if __name__ == "__main__":
    main()
