"""The fabric that a simulation runs on: numbered switches and cables, and the switch behind every host."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from controller.trees.fabric import LayeredFabric
from controller.trees.network import Network, switch_graph
from topology.graph import Graph, NodeId
from topology.loads import LinkLoads

Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]


class DataCentre:
    """A fabric with its nodes and cables numbered.

    Parameters
    ----------
    graph
        Switches, and hosts where VMs are to be placed.
    capacity_bps
        Capacity of every cable between switches; None leaves the graph's own.

    Attributes
    ----------
    graph
        The switches alone.
    switches, number
        The switches in a fixed order, and the place of each in it.
    cables, capacity_bps
        Ends and capacity of every link between switches, in the order in which `LinkLoads` numbers them.
    hosts, home
        The hosts, and the number of the switch of each: the lowest one where it has several, -1 where it has none.
    """

    def __init__(self, graph: Graph, capacity_bps: float | None = None) -> None:
        self.graph = switch_graph(graph)
        if capacity_bps is not None:
            for link in list(self.graph.links()):
                self.graph.add_link(*link._replace(capacity_bps=capacity_bps))
        self.switches = tuple(self.graph.nodes())
        self.number = {node: i for i, node in enumerate(self.switches)}
        links = list(self.graph.links())
        self.cables = tuple((link.u, link.v) for link in links)
        self.capacity_bps: Floats = np.array([link.capacity_bps for link in links], dtype=np.float64)
        self.hosts = tuple(graph.hosts())
        self.home: Ints = np.array([self._home(graph, host) for host in self.hosts], dtype=np.int64)

    def _home(self, graph: Graph, host: NodeId) -> int:
        return next((self.number[node] for node in graph.neighbours(host) if node in self.number), -1)

    def isolated_hosts(self) -> list[NodeId]:
        """Return the hosts that have no link to a switch."""
        return [self.hosts[i] for i in np.flatnonzero(self.home < 0)]

    def network(self, seed: int) -> Network:
        """Return a view of the idle fabric for tree algorithms."""
        return Network(self.graph, LinkLoads(self.graph.links()), seed)

    def pods(self) -> Ints:
        """Return a pod number for every switch: by its ``pod``, else by the fabric's shape, else 0 for all."""
        named: list[object] = [self.graph.attributes(node).get("pod") for node in self.switches]
        if all(pod is None for pod in named):
            shape = self.network(0).shape
            if isinstance(shape, LayeredFabric):
                named = [shape.pod.get(node) for node in self.switches]
        numbers: dict[object, int] = {}
        return np.array([numbers.setdefault(pod, len(numbers)) for pod in named], dtype=np.int64)
