"""What it takes to look at 10,000 groups over 320 switches, and to decide who gets a further tree.

It is a part of `benchmarks/service_classes.py`, by the name `aliases`.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import replace
from time import process_time
from typing import Any

from apps.openflow.collector import collect_seldom
from controller.admission.host import Host
from controller.config.policy import Policy
from controller.config.service_class_settings import Aliases
from controller.config.service_classes import ServiceClass
from controller.membership.events import ANY_SOURCE
from controller.multicast.alias_control import FIRST_SEEN_PER_LOOK, AliasControl
from controller.multicast.aliases import AliasTrees
from controller.multicast.group import Group, Sender, SenderKey
from controller.service_classes.goals import Goal, GoalKind
from controller.service_classes.measures import LinkUse, group_queue, group_utilisation
from controller.snapshot.log import ChangeLog
from controller.trees import flows
from controller.trees.forest import Forest
from controller.trees.islands import Islands
from controller.trees.network import switch_graph
from controller.trees.tree import TreeRole
from topology.generators import make
from topology.graph import Graph, NodeKind

GROUPS, MEMBERS, SENDERS = 10_000, 8, 3
"""Groups with senders, and switches with members of each; every tenth has so many senders, the others one."""

LEAST_BPS, SHAPE = 2e5, 1.3
"""Of the Pareto distribution of the senders' rates."""


class Everywhere:
    """What aliases ask of entries and versions: each switch forwards each group, and versions are free."""

    def serves_everywhere(self, address: bytes) -> bool:
        return True

    def free_version(self, group: Group) -> int:
        return 1


class Groups:
    """Groups over a fat tree of 320 switches, as the control of aliases sees them."""

    def __init__(self, seed: int) -> None:
        self.generator = random.Random(seed)
        self.forest = Forest(numbered(switch_graph(make("fattree", {"k": 16}))), seed=seed)
        self.islands = Islands(self.forest)
        self.rules = self.transitions = Everywhere()
        self.groups: dict[bytes, Group] = {}
        self.log: ChangeLog[bytes] = ChangeLog()
        self.tors: Sequence[Any] = self.forest.graph.nodes(NodeKind.TOR)
        for number in range(GROUPS):
            address = (0xEF010000 + number).to_bytes(4, "big")
            group = self.groups[address] = Group(address, 1, 0, False)
            places: list[Any] = self.generator.sample(self.tors, MEMBERS + SENDERS)
            for dpid in places[SENDERS:]:
                self.forest.join(address, dpid, TreeRole.RECEIVER)
                group.set_interest(dpid, 1, ANY_SOURCE)
            for dpid in places[: 1 if number % 10 else SENDERS]:
                self.forest.join(address, dpid, TreeRole.SENDER)
                group.senders[SenderKey(dpid, 1, bytes(6), number.to_bytes(4, "big"))] = Sender(True, "", 0.0)
        self.send(self.groups)

    def send(self, addresses: Iterable[bytes]) -> None:
        """Have the senders of groups send at other rates."""
        for address in addresses:
            self.log.touch(address)
            for key, sender in self.groups[address].senders.items():
                sender.rate_bps = sender.placed_bps = min(1e8, LEAST_BPS * self.generator.paretovariate(SHAPE))
                self.forest.set_rate(address, key.dpid, sender.rate_bps)

    def move(self, addresses: Iterable[bytes]) -> None:
        """Have a member of each group leave, and another come."""
        for address in addresses:
            self.log.touch(address)
            tree = self.forest.tree(address)
            assert tree is not None
            receivers: Iterable[Any] = tree.receivers
            self.forest.leave(address, self.generator.choice(sorted(receivers)), TreeRole.RECEIVER)
            self.forest.join(address, self.generator.choice(self.tors), TreeRole.RECEIVER)

    def host(self, key: SenderKey) -> Host:
        return Host(key.mac, key.address, key.dpid, key.port_no)


def numbered(graph: Graph) -> Graph:
    """Return a graph whose nodes are numbers from 1."""
    numbers = {node: number for number, node in enumerate(graph.nodes(), 1)}
    found = Graph()
    for node, number in numbers.items():
        found.add_node(number, graph.kind(node))
    for link in graph.links():
        found.add_link(numbers[link.u], numbers[link.v], capacity_bps=link.capacity_bps)
    return found


def anew(fabric: Groups, samples: dict[bytes, deque[tuple[float, float]]]) -> None:
    """Look at every link of every tree, and at the mean queues of all groups."""
    loads = fabric.forest.loads
    for address in fabric.groups:
        tree = fabric.forest.tree(address)
        assert tree is not None
        index, uses = flows.index_of(tree, loads), []
        for node, above in tree.parent.items():
            number = index[node][above]
            for way, own_bps in zip((number, number ^ 1), flows.link_load(tree, node), strict=True):
                if own_bps > 0:
                    uses.append(LinkUse(own_bps, loads.bps[way], loads.capacity_bps[way]))
        samples[address].append((group_queue(uses), group_utilisation(uses)))
    sorted(fabric.groups, key=lambda address: -sum(queue for queue, _ in samples[address]) / len(samples[address]))


def alias_decisions(seeds: Sequence[int]) -> dict[str, list[float]]:
    """Processor time, in ms, of looks at all groups with the decision after each, by what changed before."""
    found: dict[str, list[float]] = {}
    goal = ServiceClass("all", 1, any_host=True, goal=Goal(GoalKind.DELAY, 1000.0))
    for seed in seeds:
        fabric = Groups(seed)
        collect_seldom()  # as a controller does when it has begun
        plane: Any = fabric
        installer: Any = None
        every, now = list(fabric.groups), 0.0
        samples = {address: deque[tuple[float, float]](maxlen=7) for address in every}
        for kind, classes in (("no goals", ()), ("all groups in a class with a goal", (goal,))):
            control = AliasControl(AliasTrees(plane, installer, fabric.forest.graph), plane, fabric, fabric.log)
            control.use(replace(Policy(), aliases=Aliases(mode="dynamic", pool=0), classes=classes), now)
            looks: dict[str, list[tuple[float, float]]] = {}
            firsts = ["the fullest of the first looks"] * -(-GROUPS // FIRST_SEEN_PER_LOOK)
            for what in (*firsts, "nothing", "all rates", "a tenth of the trees", "all trees"):
                if what == "all rates":
                    fabric.send(every)
                elif what.endswith("trees"):
                    fabric.move(every if what == "all trees" else every[::10])
                now += 70.0
                took_ms: list[float] = []
                while (due_s := control.next_deadline()) is not None and due_s <= now:
                    began_s = process_time()
                    control.on_deadline(now)
                    took_ms.append(1000 * (process_time() - began_s))
                looks.setdefault(what, []).append((sum(took_ms), max(took_ms)))
            for what, each in looks.items():
                for name, values in zip(("all groups", "longest turn"), zip(*each, strict=True), strict=True):
                    found.setdefault(f"{kind}, {what}: {name}, ms", []).append(max(values))
        began_s = process_time()
        anew(fabric, samples)
        found.setdefault("every link of every tree: all groups, ms", []).append(1000 * (process_time() - began_s))
        loads = sorted(b / c for b, c in zip(fabric.forest.loads.bps, fabric.forest.loads.capacity_bps, strict=True))
        found.setdefault("median link, %", []).append(100 * loads[len(loads) // 2])
        found.setdefault("fullest link, %", []).append(100 * loads[-1])
    return found
