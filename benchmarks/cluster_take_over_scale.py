"""A leader of a large fabric that is killed: how soon the next one has every switch in sync, and what it edits.

    python benchmarks/cluster_take_over_scale.py [--k 16] [--groups 1000] [--members 3] [--runs 3]
        [--late 0] [--late-s 1.0] [--json]

Two controllers and one etcd, on this machine in a network of their own (as root); switches are simulated. They have
one connection each: when the leader ends they connect to the other controller, so that what is told contains the
handshakes of all switches, which real ones have had before. A leader is killed when the other controller has taken in
all that the log says. Meanwhile each group's sender sends a packet every `PACKET_S`, which each member is to get
once, and hosts answer the new leader's queries. So many switches as `--late` says, spread over all, connect to the
new leader `--late-s` after the others.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from controllers import OPEN_POLICY
from fabric_simulator.process import cpu_s, resident_bytes
from fabric_simulator.run import LiveRun, PolicyText
from measure import Measurement, report

from apps.emulation.cluster import EmulatedCluster
from apps.emulation.namespace import private_network
from apps.emulation.network import CONTROLLER_PORT
from apps.simulated_fabric.fabric import SimulatedFabric
from apps.simulated_fabric.hosts import SimulatedHosts
from apps.simulated_fabric.watch import APPS
from topology.generators import make

TIMEOUT_S = 300.0
RECONNECT_S = 0.01
HEAR_S = 15.0
"""So long after a take-over edits and packets are counted: hosts have answered by then."""

PACKET_S = 1.0
TICK_S = 0.02
TOLD_ALIKE = ("switches", "links", "edge_ports", "groups")
"""Of a controller's status what one that follows has too."""


class Streams:
    """A sender of each group, which sends a packet every `PACKET_S`, some groups at a time."""

    def __init__(self, fabric: SimulatedFabric, run: LiveRun) -> None:
        self._fabric = fabric
        self._hosts = run.hosts
        self._senders = run.senders
        self._members = run.members
        self._groups = list(run.senders)
        self._sent: Counter[bytes] = Counter()
        self._turn = 0
        self._flows = False

    def begin(self) -> None:
        """Have all groups' senders send from now on."""
        self._sent.clear()
        self._hosts.delivered.clear()
        self._flows = True
        self._send(self._fabric.now())

    def end(self) -> None:
        """Have them stop."""
        self._flows = False

    def _send(self, now: float) -> None:
        if not self._flows:
            return
        ticks = round(PACKET_S / TICK_S)
        for group in self._groups[self._turn % ticks :: ticks]:
            self._hosts.send(self._senders[group], group)
            self._sent[group] += 1
        self._turn += 1
        self._fabric.at(now + TICK_S, self._send)

    def counted(self) -> tuple[int, int, int]:
        """Return how many packets members were to get, how many they did not, and how many more they did."""
        wanted = Counter(
            {
                (host.end, group): count
                for group, count in self._sent.items()
                for host in self._members[group]
                if host is not self._senders[group]
            }
        )
        got = self._hosts.delivered
        return wanted.total(), (wanted - got).total(), (got - wanted).total()


class Bench:
    """Members of a cluster with a simulated fabric, which is connected to the one that leads."""

    def __init__(self, cluster: EmulatedCluster, fabric: SimulatedFabric, directory: Path) -> None:
        self.cluster = cluster
        self.fabric = fabric
        self._policy = PolicyText(directory / "unused.yaml", "")
        hosts = SimulatedHosts(fabric)
        self._runs = {
            name: LiveRun(member, fabric, self._policy, 0, TIMEOUT_S, 1) for name, member in cluster.members.items()
        }
        fabric.reached_host = hosts.reached
        for run in self._runs.values():
            run.hosts = hosts
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
        self._streams = Streams(self.fabric, run)
        ends_s = time.monotonic() + TIMEOUT_S
        while not self._all_get_all():  # a switch punts so many packets of unknown senders alone in a second
            if time.monotonic() > ends_s:
                raise TimeoutError(f"of the streams members get {self._streams.counted()}")
        self._settle(run)

    def _all_get_all(self) -> bool:
        """Have all groups' senders send for a while, and tell whether each member got each packet once."""
        self._streams.begin()
        self.fabric.run_for(2 * PACKET_S)
        self._streams.end()
        self.fabric.run_for(2 * TICK_S)
        wanted, *amiss = self._streams.counted()
        return wanted > 0 and not any(amiss)

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
        self._wait_followed(self._runs[former.member], run)
        before = {dpid: dict(switch.table.held) for dpid, switch in fabric.switches.items()}
        edits = Counter({app: fabric.watch.edits[tag].count for app, tag in APPS.items()})
        spent_s = cpu_s(run.process.pid)
        fabric.address = ("127.0.0.1", run.process.port)
        self._streams.begin()
        fabric.run_for(PACKET_S)
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
        self._streams.end()
        for what, count in zip(("", " lost", " doubled"), self._streams.counted(), strict=True):
            self._note(f"packets of streams{what}", "", count)
        self._note("entries removed or altered", "", sum(self._changed(dpid, held) for dpid, held in before.items()))
        for app, tag in APPS.items():
            self._note(f"edits of {app}", "", fabric.watch.edits[tag].count - edits[app])
        self._note("resident memory of the new leader", "MB", resident_bytes(run.process.pid) / 1e6)
        self.cluster.members[former.member].start()

    def _wait_followed(self, leader: LiveRun, follower: LiveRun) -> None:
        """Go on until one controller knows what the other one does, and is not behind the log."""
        wanted = leader.status()
        ends_s = time.monotonic() + TIMEOUT_S
        while True:
            status, page = follower.status(), follower.answer(follower.questions.ask({"changes": {"cluster": 0}}))
            told = page["sections"]["cluster"].get("cluster", {}).get("put", {})
            lags_s = [each["log_lag_s"] for each in told.values() if each["answers"]]
            if lags_s == [0] and all(status.get(name) == wanted[name] for name in TOLD_ALIKE):
                return
            if time.monotonic() > ends_s:
                raise TimeoutError(
                    f"what follows knows {status}, is behind for {lags_s} s; the leader knows {wanted}"
                )
            self.fabric.run_for(0.2)

    def _changed(self, dpid: int, before: Mapping[tuple[int, int, bytes], object]) -> int:
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
    parser.add_argument("--late", type=int, default=0)
    parser.add_argument("--late-s", type=float, default=1.0)
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
            dpids = sorted(fabric.switches)
            fabric.late_s = {dpids[at * len(dpids) // args.late]: args.late_s for at in range(args.late)}
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
