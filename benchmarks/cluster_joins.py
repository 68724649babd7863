"""Joins and memory in a cluster beside those of a controller alone, in the same run.

    python benchmarks/cluster_joins.py [--k 8] [--groups 200] [--members 3] [--joins 50] [--rounds 6] [--json]

A controller alone, and two controllers with one etcd, each side with a simulated fabric of its own, on this machine
in a network of their own (as root). Rounds of joins, one after the other, alternate between the sides; then the
memory of the controller alone, of the leader and of the one that follows is told, and that of the processes beside
these two.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from controllers import OPEN_POLICY
from fabric_simulator.parts import JoinTimes, join, join_measurements
from fabric_simulator.process import resident_bytes
from fabric_simulator.run import LiveRun, PolicyText, group_address
from measure import Measurement, report

from apps.emulation.cluster import EmulatedCluster
from apps.emulation.controller import ControllerProcess
from apps.emulation.namespace import private_network
from apps.simulated_fabric.fabric import SimulatedFabric
from topology.generators import make

ALONE_PORT, CLUSTER_PORT = 6653, 6660
TIMEOUT_S = 120.0
FOLLOWS_S = 5.0


def beside_bytes(pid: int) -> int:
    """Return how much memory of a process's children is in use."""
    held = 0
    for path in Path("/proc").glob("[0-9]*/stat"):
        fields = path.read_text().rpartition(")")[2].split()
        if int(fields[1]) == pid:
            held += resident_bytes(int(path.parent.name))
    return held


def begin(process: ControllerProcess, k: int, groups: int, members: int) -> LiveRun:
    """Return a controller with its fabric, whose hosts are known and in their groups."""
    fabric = SimulatedFabric(make("fattree", {"k": k}), ("127.0.0.1", process.port))
    run = LiveRun(process, fabric, PolicyText(Path("unused"), ""), 0, TIMEOUT_S, 1)
    fabric.connect()
    run.wait_found()
    run.speak(run.hosts.all)
    run.populate(groups, members)
    run.wait_in_sync()
    return run


@contextmanager
def sides(directory: Path, args: argparse.Namespace) -> Iterator[tuple[dict[str, LiveRun], ControllerProcess]]:
    """Run both sides; with the controller that follows."""
    policy = directory / "alone.yaml"
    policy.write_text(f"{OPEN_POLICY}monitor: {{prometheus: {{port: 0}}}}\n")
    runs: dict[str, LiveRun] = {}
    cluster = EmulatedCluster(directory, CLUSTER_PORT, 2, policy=OPEN_POLICY, framework="os-ken")
    try:
        with ControllerProcess(ALONE_PORT, framework="os-ken", policy=policy) as alone:
            cluster.launch()
            cluster.wait_listening()
            leader = cluster.wait_leader().member
            (follower,) = (member for name, member in cluster.members.items() if name != leader)
            of_sides = {"alone": alone, "leader": cluster.members[leader]}
            for name, process in of_sides.items():
                runs[name] = begin(process, args.k, args.groups, args.members)
            for run in runs.values():
                run.fabric.run_for(FOLLOWS_S)
            yield runs, follower
    finally:
        for run in runs.values():
            run.questions.close()
            run.fabric.close()
        cluster.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--k", type=int, default=8)
    parser.add_argument("--groups", type=int, default=200)
    parser.add_argument("--members", type=int, default=3)
    parser.add_argument("--joins", type=int, default=50, help="of each side in a round")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    ratios: list[float] = []
    with (
        private_network(),
        tempfile.TemporaryDirectory() as directory,
        sides(Path(directory), args) as (runs, follower),
    ):
        times: dict[str, list[JoinTimes]] = {name: [] for name in runs}
        for number in range(args.rounds):
            medians_ms = {}
            for name in sorted(runs, reverse=number % 2 == 1):
                found = [
                    join(runs[name], host, group)
                    for group in (group_address((number * args.joins + at) % args.groups) for at in range(args.joins))
                    if (host := runs[name].new_member(group)) is not None
                ]
                times[name] += found
                medians_ms[name] = statistics.median(each.confirmed_ms for each in found)
                for other in runs.values():
                    other.fabric.run_for(0.1)
            ratios.append(medians_ms["leader"] / medians_ms["alone"])
        runs["leader"].fabric.run_for(FOLLOWS_S)
        memory = {name: resident_bytes(run.process.pid) for name, run in runs.items()}
        memory["follower"] = resident_bytes(follower.pid)
        beside = {"leader": beside_bytes(runs["leader"].process.pid), "follower": beside_bytes(follower.pid)}
    measurements = [each for name, taken in times.items() for each in join_measurements(name, taken)]
    measurements.append(Measurement("join: leader to alone, medians of rounds", "", ratios))
    measurements += [Measurement(f"{name}: resident memory", "MB", [held / 1e6]) for name, held in memory.items()]
    for name, held in beside.items():
        measurements.append(Measurement(f"{name}: resident memory of the process beside", "MB", [held / 1e6]))
        measurements.append(Measurement(f"{name}: memory to that of one alone", "", [memory[name] / memory["alone"]]))
        whole = (memory[name] + held) / memory["alone"]
        measurements.append(Measurement(f"{name}: the same with the process beside", "", [whole]))
    report(measurements, as_json=args.json, source="cluster_joins")


if __name__ == "__main__":
    main()
