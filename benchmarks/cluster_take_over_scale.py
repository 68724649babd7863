"""A leader of a large fabric that is killed: how soon the next one has every switch in sync, and what it edits.

    python benchmarks/cluster_take_over_scale.py [--k 16] [--groups 1000] [--members 3] [--runs 3] [--json]

Two controllers and one etcd, on this machine in a network of their own (as root); switches are simulated. They have
one connection each: when the leader ends they connect to the other controller, so that what is told contains the
handshakes of all switches, which real ones have had before.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import Counter
from pathlib import Path

from controllers import OPEN_POLICY
from fabric_simulator.fabric import SimulatedFabric
from fabric_simulator.process import cpu_s, resident_bytes
from fabric_simulator.run import LiveRun, PolicyText
from fabric_simulator.watch import APPS
from measure import Measurement, report

from apps.emulation.cluster import EmulatedCluster
from apps.emulation.namespace import private_network
from apps.emulation.network import CONTROLLER_PORT
from topology.generators import make

TIMEOUT_S = 300.0
RECONNECT_S = 0.01
HEAR_S = 15.0
"""So long after a take-over edits are counted: hosts have answered by then, and what nobody wants is gone."""


class Bench:
    """Members of a cluster with a simulated fabric, which is connected to the one that leads."""

    def __init__(self, cluster: EmulatedCluster, fabric: SimulatedFabric, directory: Path) -> None:
        self.cluster = cluster
        self.fabric = fabric
        self._policy = PolicyText(directory / "unused.yaml", "")
        self._runs = {
            name: LiveRun(member, fabric, self._policy, 0, TIMEOUT_S, 1) for name, member in cluster.members.items()
        }
        self.found: dict[str, list[float]] = {}

    def begin(self, groups: int, members: int) -> None:
        """Have the leader know all switches, hosts and groups."""
        leader = self.cluster.wait_leader()
        run = self._runs[leader.member]
        self.fabric.address = ("127.0.0.1", run.process.port)
        self.fabric.connect()
        run.wait_found()
        run.speak(run.hosts.all)
        run.populate(groups, members)
        self._settle(run)

    def _settle(self, run: LiveRun) -> None:
        """Go on until no edit was made for a while."""
        before = -1
        while before != self.fabric.watch.edit_count():
            before = self.fabric.watch.edit_count()
            self.fabric.run_for(3.0)
            run.wait_in_sync()

    def take_over(self) -> None:
        """Kill the leader, and measure what the other one does."""
        former = self.cluster.wait_leader()
        name = next(name for name in self.cluster.members if name != former.member)
        run, fabric = self._runs[name], self.fabric
        before = {dpid: dict(switch.table.held) for dpid, switch in fabric.switches.items()}
        edits = Counter({app: fabric.watch.edits[tag].count for app, tag in APPS.items()})
        spent_s = cpu_s(run.process.pid)
        fabric.address = ("127.0.0.1", run.process.port)
        began_s = time.monotonic()
        self.cluster.members[former.member].kill()
        count = len(fabric.switches)
        while (status := run.status()).get("switches") != count or not status.get("in_sync"):
            fabric.run_for(0.02)
            if time.monotonic() > began_s + TIMEOUT_S:
                raise TimeoutError(f"{name}: {status}")
        self._note("until every switch was in sync", "s", time.monotonic() - began_s)
        self._note("processor time of the new leader until then", "s", cpu_s(run.process.pid) - spent_s)
        fabric.run_for(HEAR_S)
        run.wait_in_sync()
        self._note("entries removed or altered", "", sum(self._changed(dpid, held) for dpid, held in before.items()))
        for app, tag in APPS.items():
            self._note(f"edits of {app}", "", fabric.watch.edits[tag].count - edits[app])
        self._note("resident memory of the new leader", "MB", resident_bytes(run.process.pid) / 1e6)
        self.cluster.members[former.member].start()

    def _changed(self, dpid: int, before: dict[tuple[int, int, bytes], object]) -> int:
        held = self.fabric.switches[dpid].table.held
        return sum(held.get(key) != entry for key, entry in before.items())

    def _note(self, what: str, unit: str, value: float) -> None:
        self.found.setdefault(f"{what}|{unit}", []).append(value)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--k", type=int, default=16)
    parser.add_argument("--groups", type=int, default=1000)
    parser.add_argument("--members", type=int, default=3)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    with private_network(), tempfile.TemporaryDirectory() as directory:
        cluster = EmulatedCluster(Path(directory), CONTROLLER_PORT, 2, policy=OPEN_POLICY, framework="os-ken")
        fabric = SimulatedFabric(make("fattree", {"k": args.k}), ("127.0.0.1", CONTROLLER_PORT))
        fabric.reconnect_s = RECONNECT_S
        try:
            cluster.launch()
            cluster.wait_listening()
            bench = Bench(cluster, fabric, Path(directory))
            bench.begin(args.groups, args.members)
            for _ in range(args.runs):
                bench.take_over()
        finally:
            cluster.close()
            fabric.close()
    measurements = [
        Measurement(name.partition("|")[0], name.partition("|")[2], values) for name, values in bench.found.items()
    ]
    report(measurements, as_json=args.json, source="cluster_take_over_scale")


if __name__ == "__main__":
    main()
