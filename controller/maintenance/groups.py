"""Which switches stand in for each other: redundancy groups, by tier and pod, of the highest tier by plane."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from topology.graph import Graph, NodeId, NodeKind, order_key, tier_of


class RedundancyGroup(NamedTuple):
    """Switches of which some may be done without. Groups sort in the order in which they are maintained.

    Attributes
    ----------
    rank
        0 for the tier that is first, the highest.
    tier
        What the tier is called, by its level.
    number
        Which of the groups of that name it is, from 1.
    """

    rank: int
    tier: str
    number: int

    @property
    def name(self) -> str:
        """The group in one word, such as ``core-1``."""
        return f"{self.tier}-{self.number}"


def redundancy_groups(graph: Graph) -> dict[NodeId, RedundancyGroup]:
    """Return the group of each switch; switches of kind ``TOR`` are those with hosts.

    A group is a tier of a pod, that is of what hangs together without the highest tier. Switches of the highest tier
    are a group where they have the same neighbours, a plane. Where one would be in a group alone the whole tier is
    one group instead: who has nobody to stand in cannot be done without.
    """
    switches = graph.switches()
    level = {node: graph.level(node) for node in switches}
    highest, lowest = max(level.values(), default=0), min(level.values(), default=0)
    pods = _components(graph, {node for node in switches if level[node] < highest})
    groups: dict[NodeId, RedundancyGroup] = {}
    has_tors, numbers = bool(graph.nodes(NodeKind.TOR)), Counter[str]()
    for each in range(highest, lowest - 1, -1):
        members = [node for node in switches if level[node] == each]
        if each == highest and highest > lowest:
            parts = _by_key({node: tuple(map(order_key, graph.neighbours(node))) for node in members})
        else:
            parts = _by_key({node: pods.get(node) for node in members})
        if any(len(part) == 1 for part in parts):
            parts = [members]
        tier = tier_of(each, has_tors).value
        for part in parts:
            numbers[tier] += 1
            groups.update(dict.fromkeys(part, RedundancyGroup(highest - each, tier, numbers[tier])))
    return groups


def _by_key(keys: Mapping[NodeId, object]) -> list[list[NodeId]]:
    """Return the switches that have a key in common, in the order of the first of each."""
    parts: dict[object, list[NodeId]] = {}
    for node, key in keys.items():
        parts.setdefault(key, []).append(node)
    return list(parts.values())


class FabricReach:
    """Which switches reach each other in a fabric as it is, and whether they still do without some.

    `homes` are those that are to reach each other; those that do not as it is are no matter.
    """

    def __init__(self, graph: Graph, homes: Iterable[NodeId]) -> None:
        self._graph = graph
        self._homes = sorted(homes, key=order_key)
        self._before = _components(graph, set(graph.switches()))

    def cut_without(self, out: Collection[NodeId]) -> NodeId | None:
        """Return a switch that others do not reach any more without the switches `out`, None for none.

        Who is out is not asked for.
        """
        after = _components(self._graph, self._before.keys() - set(out))
        part_of: dict[int, int] = {}
        for node in self._homes:
            if node in after and part_of.setdefault(self._before[node], after[node]) != after[node]:
                return node
        return None


def _components(graph: Graph, nodes: set[NodeId]) -> dict[NodeId, int]:
    """Return the number of the part that each of some switches is in."""
    part: dict[NodeId, int] = {}
    for number, start in enumerate(sorted(nodes, key=order_key)):
        if start in part:
            continue
        part[start], found = number, [start]
        while found:
            for other in graph.neighbours(found.pop()):
                if other in nodes and other not in part:
                    part[other] = number
                    found.append(other)
    return part
