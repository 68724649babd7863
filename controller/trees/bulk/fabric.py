"""A recognised fabric in arrays, and how its links and switches are numbered in them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from controller.kernel.hashing import stable_hash
from controller.trees.fabric import Hierarchy, LayeredFabric, recognise
from topology.graph import Graph, NodeId

NONE = -1
"""No such link, switch or choice."""

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class TierWiring:
    """The links of a fabric of tiers by number; an aggregation is named by its pod and a position there.

    Attributes
    ----------
    aggregations
        Node at each position of each pod, ``aggregations[pod][k]``, None where the pod has none there.
    tor_pod
        int64[T]: pod of each ToR, ascending.
    lower
        int64[T, K]: cable from a ToR to the aggregation at position k of its pod, -1 for none.
    upper
        int64[P, K, C]: cable from an aggregation to a core, -1 for none.
    headless
        bool[P, K]: no core is over the aggregation, though the fabric has cores.
    planes
        int64[C]: the one position under each core, the same in every pod; None where a core leaves a choice.
    aggregation_hash, core_hash
        uint64[P, K] and uint64[C], odd: they decide between equals.
    """

    aggregations: list[list[NodeId | None]]
    tor_pod: Numbers
    lower: Numbers
    upper: Numbers
    headless: npt.NDArray[np.bool_]
    planes: Numbers | None
    aggregation_hash: npt.NDArray[np.uint64]
    core_hash: npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class BulkFabric:
    """A fabric as `controller.trees.fabric` recognises it; links, ToRs, pods and cores are numbered from 0.

    Attributes
    ----------
    graph
        The switches and living links.
    links
        Ends of every cable, ``links[i] = (u, v)``, in the order of `Graph.links`.
    capacity_bps
        float64[L].
    tors
        Switches that members may be attached to: the ToRs, pod by pod; every switch of a graph without a cycle.
    cores
        Core switches, none in a leaf-spine fabric and in a graph without a cycle.
    wiring
        The tiers; None for a graph without a cycle, which has no choice of trees.
    shape
        What `recognise` found.
    """

    graph: Graph
    links: list[tuple[NodeId, NodeId]]
    capacity_bps: npt.NDArray[np.float64]
    tors: list[NodeId]
    cores: list[NodeId]
    wiring: TierWiring | None
    shape: LayeredFabric | Hierarchy

    @classmethod
    def of(cls, graph: Graph) -> BulkFabric | None:
        """Return the fabric of switches `graph`, None where it is none (its trees take a search: use `Forest`).

        Raises ValueError for a graph with hosts (`controller.trees.network.switch_graph` takes them out).
        """
        if graph.hosts():
            raise ValueError("trees span switches: the graph must hold no hosts")
        cables = list(graph.links())
        shape = recognise(graph) if all(cable.weight == 1 for cable in cables) else None
        if shape is None:
            return None
        links = [(cable.u, cable.v) for cable in cables]
        capacity_bps = np.array([cable.capacity_bps for cable in cables], dtype=np.float64)
        if isinstance(shape, Hierarchy):
            return cls(graph, links, capacity_bps, graph.nodes(), [], None, shape)
        tors = list(shape.pod)
        cores = list(shape.down)
        wiring = _wiring(shape, tors, cores, cable_numbers(links))
        return cls(graph, links, capacity_bps, tors, cores, wiring, shape)


def cable_numbers(links: list[tuple[NodeId, NodeId]]) -> dict[tuple[NodeId, NodeId], int]:
    """Return the number of each cable by its ends in either order."""
    numbers = {}
    for number, (u, v) in enumerate(links):
        numbers[u, v] = numbers[v, u] = number
    return numbers


def _wiring(
    fabric: LayeredFabric, tors: list[NodeId], cores: list[NodeId], cable: dict[tuple[NodeId, NodeId], int]
) -> TierWiring:
    pods = {name: number for number, name in enumerate(dict.fromkeys(fabric.pod[tor] for tor in tors))}
    members: list[list[NodeId]] = [[] for _ in pods]
    for aggregation, name in fabric.aggregation_pod.items():
        if name in pods:
            members[pods[name]].append(aggregation)
    plane = _planes(fabric, members, cores)
    if plane is None:
        position = {a: k for nodes in members for k, a in enumerate(nodes)}
    else:
        position = plane
    width = 1 + max((position[a] for nodes in members for a in nodes), default=0)
    aggregations: list[list[NodeId | None]] = [[None] * width for _ in pods]
    lower = np.full((len(tors), width), NONE)
    upper = np.full((len(pods), width, len(cores)), NONE)
    headless = np.zeros((len(pods), width), dtype=bool)
    hashes = np.ones((len(pods), width), dtype=np.uint64)
    column = {core: c for c, core in enumerate(cores)}
    for p, nodes in enumerate(members):
        for a in nodes:
            k = position[a]
            aggregations[p][k] = a
            hashes[p, k] = stable_hash(a)
            headless[p, k] = bool(fabric.cores) and not fabric.up[a]
            for core in fabric.up[a]:
                upper[p, k, column[core]] = cable[a, core]
    for t, tor in enumerate(tors):
        for a in fabric.up[tor]:
            lower[t, position[a]] = cable[tor, a]
    planes = None
    if plane is not None:
        over = {core: plane[a] for nodes in members for a in nodes for core in fabric.up[a]}
        planes = np.array([over.get(core, 0) for core in cores], dtype=np.int64)
    tor_pod = np.array([pods[fabric.pod[tor]] for tor in tors], dtype=np.int64)
    core_hash = np.array([stable_hash(core) for core in cores], dtype=np.uint64)
    return TierWiring(aggregations, tor_pod, lower, upper, headless, planes, hashes, core_hash)


def _planes(fabric: LayeredFabric, members: list[list[NodeId]], cores: list[NodeId]) -> dict[NodeId, int] | None:
    """Number the aggregations so that those under one core have one number; None where two of a pod would."""
    root: dict[NodeId, NodeId] = {}

    def find(node: NodeId) -> NodeId:
        while root.get(node, node) != node:
            node = root[node]
        return node

    for nodes in members:
        for a in nodes:
            for core in fabric.up[a]:
                root[find(a)] = find(core)
    plane: dict[NodeId, int] = {}
    numbers: dict[NodeId, int] = {}
    for core in cores:
        numbers.setdefault(find(core), len(numbers))
    for nodes in members:
        taken = {numbers[find(a)] for a in nodes if fabric.up[a]}
        if len(taken) != sum(bool(fabric.up[a]) for a in nodes):
            return None
        for a in nodes:
            if fabric.up[a]:
                plane[a] = numbers[find(a)]
            else:
                plane[a] = next(k for k in range(len(fabric.up) + 1) if k not in taken)
                taken.add(plane[a])
    return plane
