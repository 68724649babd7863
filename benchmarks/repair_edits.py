"""What the failure of the busiest link costs the core, where repairs take tree versions of their own and where not.

    python benchmarks/repair_edits.py [--groups 400] [--rounds 9] [--json]

The same groups of five members each, once with a sender known and once without any: the latter are repaired in place
wherever that closes no cycle over living links. Switches confirm at once.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from measure import Measurement, report

from controller.config.vlans import Vlans
from controller.effects import ApplyEdits, Effect, RequestFlows
from controller.events import FlowStatsReceived
from controller.kernel.vlan_ports import VlanPorts
from controller.membership.events import ANY_SOURCE
from controller.multicast.group import Sender, SenderKey
from controller.multicast.groups import GroupPlane
from controller.rules.installer import Installer
from controller.rules.lowering import LOWERINGS
from controller.rules.pipeline import MULTICAST_TAG, OPENFLOW_1_3
from controller.trees.forest import Forest
from topology.generators import make
from topology.graph import Graph, NodeKind
from topology.live import LiveFabric

HOST_PORT = 100
MEMBERS = 5
FABRICS = {"fattree, k = 4": ("fattree", {"k": 4}), "avalanche24": ("avalanche24", {})}


class Bench:
    """All groups over one fabric whose switches confirm edits at once; `edits` counts them."""

    def __init__(self, name: str, options: dict[str, int], groups: int, with_senders: bool) -> None:
        self.edits = 0
        self.now = 0.0
        self.installer = Installer(MULTICAST_TAG)
        self.forest = Forest(_switches(make(name, options)))
        self.cables = _switches(make(name, options))
        vlan_ports = VlanPorts(Vlans(), LiveFabric())
        self.plane = GroupPlane(self.forest, self.installer, self.cables, lambda _group: None, vlan_ports)
        dpids: Iterable[Any] = self.forest.graph.switches()
        for dpid in dpids:
            (request,) = self.installer.switch_connected(dpid, OPENFLOW_1_3, 0.0)
            assert isinstance(request, RequestFlows)
            empty = LOWERINGS[OPENFLOW_1_3].encode_flow_stats_reply(request.xid, False, b"")
            self.installer.handle(FlowStatsReceived(dpid, OPENFLOW_1_3, request.xid, empty), 0.0)
            self.perform(self.plane.switch_version(dpid, OPENFLOW_1_3, 0.0))
        dice = random.Random(1)
        tors: Sequence[Any] = self.forest.graph.nodes(NodeKind.TOR)
        for number in range(groups):
            address = bytes((239, 1, number >> 8, number & 255))
            members = dice.sample(tors, min(MEMBERS, len(tors)))
            for dpid in members:
                self.perform(self.plane.interest_changed(dpid, HOST_PORT, address, ANY_SOURCE, 0.0))
            if with_senders:
                key = SenderKey(members[0], HOST_PORT + 1, b"\x02\0\0\0\0\1", b"\x0a\0\0\1")
                self.perform(self.plane.sender_set(address, key, Sender(True, "", 0.0), 0.0))
        self.perform(self.installer.on_deadline(10.0))
        self.now = 10.0

    def perform(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, ApplyEdits):
                self.edits += len(effect.edits)
                barrier = effect.first_xid + len(effect.edits)
                self.perform(self.installer.barrier_replied(effect.dpid, barrier, self.now))

    def fail(self) -> tuple[float, int, int]:
        """Cut the link of most trees; return the core's time in ms, the edits, and the trees on it."""
        link = max(self.forest.graph.links(), key=lambda link: len(self.forest.groups_on(link.u, link.v)))
        trees = len(self.forest.groups_on(link.u, link.v))
        self.edits = 0
        start = time.perf_counter()
        self.cables.remove_link(link.u, link.v)
        self.perform(self.plane.trees_changed(self.forest.remove_link(link.u, link.v), self.now))
        self.perform(self.installer.on_deadline(self.now + 1.0))
        return 1000 * (time.perf_counter() - start), self.edits, trees


def _switches(graph: Graph) -> Graph:
    """Return the fabric's switches by datapath id."""
    dpid = {name: graph.attributes(name)["dpid"] for name in graph.switches()}
    found = Graph()
    for name, number in dpid.items():
        found.add_node(number, graph.kind(name))
    for link in graph.links():
        if link.u in dpid and link.v in dpid:
            found.add_link(dpid[link.u], dpid[link.v], link.u_port, link.v_port, link.capacity_bps)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--groups", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    found = []
    for name, (generator, options) in FABRICS.items():
        for kind in ("in place", "beside"):
            runs = [Bench(generator, options, args.groups, kind == "beside").fail() for _ in range(args.rounds)]
            what = f"a tree, {name}, {kind}, {runs[0][2]} trees"
            found.append(
                Measurement(f"core's time for {what}", "ms", [time_ms / trees for time_ms, _, trees in runs])
            )
            found.append(Measurement(f"edits for {what}", "1", [edits / trees for _, edits, trees in runs]))
    report(found, as_json=args.json, source=Path(__file__).name)


if __name__ == "__main__":
    main()
