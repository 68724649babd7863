"""Discovery by size of the fabric: the pure core on fat trees in virtual time, with flow entries that switches obey.

    python benchmarks/discovery_scale.py --k 8 12 16 24 32 [--idle-frames-per-s 500] [--json]

Switches connect one after the other, links are found, the fabric rests, then links and switches fail in silence. What
is counted is what the core sends and how often it is woken; processor time is that of the core alone. The background
check of flow entries is off.
"""

from __future__ import annotations

import argparse
import random
import time
from collections import Counter
from heapq import heappop, heappush
from pathlib import Path
from typing import Any

from measure import percentile, print_json, print_table

from controller.discovery.core import DiscoveryCore
from controller.discovery.settings import DiscoverySettings
from controller.effects import ApplyEdits, Put, Remove, RequestFlows, SendPacket
from controller.events import (
    BarrierReplied,
    DeadlineReached,
    FlowStatsReceived,
    PacketReceived,
    Port,
    SwitchConnected,
)
from controller.rules.lowering import LOWERINGS
from controller.rules.model import OFPP_CONTROLLER, OFPP_IN_PORT, Action, FlowKey, Output, SetEthDst
from controller.wire.ethernet import ETHERTYPE_LLDP
from topology.events import LinkDown, LinkUp
from topology.generators import make
from topology.graph import Graph

End = tuple[int, int]
LLDP_TYPE = ETHERTYPE_LLDP.to_bytes(2, "big")
CONNECTIONS_PER_S = 200
LATENCY_S = 0.001
"""Between controller and switch, each way."""

HOP_S = 20e-6
SETTLE_S = 60.0
LONGEST_S = 600.0


class SimulatedFabric:
    """A core, the switches of a graph as far as LLDP meets them, and the time between them."""

    def __init__(self, graph: Graph, settings: DiscoverySettings, version: int) -> None:
        self.core = DiscoveryCore(settings, bytes(32))
        self.version = version
        self.now = 0.0
        dpids = {switch: dpid for dpid, switch in enumerate(graph.switches(), 1)}
        self.far: dict[End, End] = {}
        self.ports: dict[int, set[int]] = {dpid: set() for dpid in dpids.values()}
        for link in graph.links():
            both = ((link.u, link.u_port), (link.v, link.v_port))
            ends = [(dpids[node], port_no) for node, port_no in both if node in dpids and port_no is not None]
            for dpid, port_no in ends:
                self.ports[dpid].add(port_no)
            if len(ends) == 2:
                self.far[ends[0]], self.far[ends[1]] = ends[1], ends[0]
        self.cables = sorted((a, b) for a, b in self.far.items() if a < b)
        self.cut: set[End] = set()
        self.dead: set[int] = set()
        self.links: set[tuple[int, int]] = set()
        self.counts: Counter[str] = Counter()
        self.core_s = 0.0
        self._entries: dict[int, dict[tuple[int | None, bytes | None], tuple[Action, ...]]] = {
            dpid: {} for dpid in self.ports
        }
        self._queue: list[tuple[float, int, object]] = []
        self._number = 0

    def later(self, delay_s: float, event: object) -> None:
        """Have an event reach the core in a while."""
        self._number += 1
        heappush(self._queue, (self.now + delay_s, self._number, event))

    def connect(self) -> None:
        """Have all switches connect, in random order."""
        order = list(self.ports)
        random.Random(1).shuffle(order)
        for number, dpid in enumerate(order):
            ports = tuple(Port(n, f"s{dpid}-eth{n}", bytes(6), True, 1e10) for n in sorted(self.ports[dpid]))
            self.later(number / CONNECTIONS_PER_S, SwitchConnected(dpid, self.version, ports))

    def run(self, until_s: float, condition: Any = None) -> bool:
        """Let time pass until then, or until the condition holds; tell whether it does."""
        deadline = self.core.next_deadline()
        while True:
            if condition is not None and condition():
                return True
            arrival = self._queue[0][0] if self._queue else float("inf")
            wake = float("inf") if deadline is None else max(deadline, self.now)
            at = min(arrival, wake)
            if at > until_s:
                self.now = until_s
                return False
            self.now = at
            if arrival <= wake:
                event = heappop(self._queue)[2]
            else:
                event = DeadlineReached()
                self.counts["wakes"] += 1
            start = time.process_time()
            effects = self.core.handle(event, self.now)
            deadline = self.core.next_deadline()
            self.core_s += time.process_time() - start
            for effect in effects:
                self._perform(effect)

    def _perform(self, effect: object) -> None:
        if type(effect) is SendPacket:
            for port_no in effect.ports:
                if effect.data[12:14] == LLDP_TYPE and effect.dpid not in self.dead:
                    self.counts["frames"] += 1
                    self._walk((effect.dpid, port_no), effect.data)
        elif type(effect) is ApplyEdits:
            entries = self._entries[effect.dpid]
            self.counts["edits"] += len(effect.edits)
            for edit in effect.edits:
                key = edit.rule.key if isinstance(edit, Put) else edit.key if isinstance(edit, Remove) else None
                if isinstance(key, FlowKey) and key.match.eth_type == ETHERTYPE_LLDP:
                    place = (key.match.in_port, key.match.eth_dst)
                    if isinstance(edit, Put):
                        entries[place] = edit.rule.actions
                    else:
                        entries.pop(place, None)
            if effect.dpid not in self.dead:
                self.later(2 * LATENCY_S, BarrierReplied(effect.dpid, effect.first_xid + len(effect.edits)))
        elif type(effect) is RequestFlows:
            message = LOWERINGS[self.version].encode_flow_stats_reply(effect.xid, False, b"")
            self.later(2 * LATENCY_S, FlowStatsReceived(effect.dpid, self.version, effect.xid, message))
        elif type(effect) is LinkUp:
            self.links.add((effect.dpid_a, effect.dpid_b))
        elif type(effect) is LinkDown:
            self.links.discard((effect.dpid_a, effect.dpid_b))

    def _walk(self, out: End, data: bytes) -> None:
        """Follow a frame that leaves a port until it is lost or reaches the controller."""
        eth_dst, delay_s = data[:6], 2 * LATENCY_S
        while True:
            place = self.far.get(out)
            if place is None or out in self.cut or place[0] in self.dead:
                return
            dpid, in_port = place
            entries = self._entries[dpid]
            delay_s += HOP_S
            self.counts["hops"] += 1
            for where in ((in_port, eth_dst), (None, eth_dst), (None, None)):
                actions = entries.get(where)
                if actions is not None:
                    break
            else:
                return
            for action in actions:
                if isinstance(action, SetEthDst):
                    eth_dst = action.mac
                elif isinstance(action, Output):
                    if action.port_no == OFPP_CONTROLLER:
                        self.counts["received"] += 1
                        self.later(delay_s, PacketReceived(dpid, in_port, eth_dst + data[6:]))
                        return
                    out = (dpid, in_port if action.port_no == OFPP_IN_PORT else action.port_no)


def measured(k: int, settings: DiscoverySettings, version: int, failures: int, idle_s: float) -> dict[str, Any]:
    """Return what a fat tree of `k` pods costs and how soon its failures are found."""
    fabric = SimulatedFabric(make("fattree", {"k": k}), settings, version)
    fabric.connect()
    pairs = {(a[0], b[0]) for a, b in fabric.cables}
    document: dict[str, Any] = {
        "k": k,
        "switches": len(fabric.ports),
        "ports": sum(len(ports) for ports in fabric.ports.values()),
        "links": len(fabric.cables),
    }
    found = fabric.run(LONGEST_S, lambda: len(fabric.links) == len(pairs))
    document["all links found after, s"] = fabric.now if found else None
    document["frames until then"] = fabric.counts["frames"]
    document["core's processor time until then, s"] = fabric.core_s
    fabric.run(fabric.now + SETTLE_S)
    fabric.counts.clear()
    fabric.core_s = 0.0
    fabric.run(fabric.now + idle_s)
    document["frames/s at rest"] = fabric.counts["frames"] / idle_s
    document["frames received/s at rest"] = fabric.counts["received"] / idle_s
    document["hops/s at rest"] = fabric.counts["hops"] / idle_s
    document["wakes/s at rest"] = fabric.counts["wakes"] / idle_s
    document["core's processor time at rest, ms/s"] = 1000 * fabric.core_s / idle_s
    dice = random.Random(2)
    for kind in ("both directions", "one direction", "switch, its connection lasting"):
        found_s = [_failure_s(fabric, kind, dice) for _ in range(failures)]
        document[f"{kind}: found after, s, median"] = percentile(found_s, 50)
        document[f"{kind}: found after, s, worst"] = max(found_s)
    document["false alarms"] = fabric.counts["false"]
    return document


def _failure_s(fabric: SimulatedFabric, kind: str, dice: random.Random) -> float:
    """Let something fail in silence; return after how many seconds its last link is down."""
    before = set(fabric.links)
    fabric.run(fabric.now + 2.0 + 2.0 * dice.random())
    fabric.counts["false"] += len(before - fabric.links)
    a, b = dice.choice(fabric.cables)
    began = fabric.now
    if kind.startswith("switch"):
        fabric.dead.add(a[0])
        gone = {pair for pair in fabric.links if a[0] in pair}
    else:
        fabric.cut |= {a, b} if kind == "both directions" else {dice.choice((a, b))}
        gone = {(a[0], b[0])}
    found = fabric.run(began + LONGEST_S, lambda: gone.isdisjoint(fabric.links))
    after_s = fabric.now - began if found else float("inf")
    fabric.counts["false"] += len(before - fabric.links - gone)
    fabric.cut.clear()
    fabric.dead.clear()
    fabric.run(fabric.now + LONGEST_S, lambda: fabric.links == before)
    fabric.run(fabric.now + 5.0)
    return after_s


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--k", type=int, nargs="+", default=[8, 12, 16, 24, 32])
    parser.add_argument("--ofp-version", type=int, choices=LOWERINGS, default=4)
    parser.add_argument("--failures", type=int, default=20, help="of each kind")
    parser.add_argument("--idle-s", type=float, default=30.0, help="simulated seconds at rest")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    settings = DiscoverySettings(check_interval_s=0.0)
    documents = []
    for k in args.k:
        documents.append(measured(k, settings, args.ofp_version, args.failures, args.idle_s))
    if args.json:
        print_json({"source": Path(__file__).name, "fabrics": documents})
    else:
        print_table(
            ["", *(f"k = {k}" for k in args.k)],
            [(name, *(document[name] for document in documents)) for name in documents[0] if name != "k"],
        )


if __name__ == "__main__":
    main()
