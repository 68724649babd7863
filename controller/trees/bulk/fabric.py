"""A recognised fabric in arrays, and how a link, an aggregation and a core are numbered in them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from controller.trees.fabric import Fabric, Hierarchy, recognise
from topology.graph import Graph, NodeId

NONE = -1
"""No such link, switch or choice."""


@dataclass(frozen=True, slots=True)
class BulkFabric:
    """A fabric as `controller.trees.fabric` recognises it; links, ToRs, pods and cores are numbered from 0.

    Attributes
    ----------
    links
        Ends of every cable, ``links[i] = (u, v)``, in the order of `Graph.links`.
    capacity_bps
        float64[L].
    tors
        Switches that members may be attached to: the ToRs, pod by pod; every switch of a graph without a cycle.
    cores
        Core switches, none in a leaf-spine fabric and in a graph without a cycle.
    """

    graph: Graph
    links: list[tuple[NodeId, NodeId]]
    capacity_bps: npt.NDArray[np.float64]
    tors: list[NodeId]
    cores: list[NodeId]
    shape: Fabric | Hierarchy

    @classmethod
    def of(cls, graph: Graph) -> BulkFabric | None:
        """Return the fabric of switches `graph`, None where it is none (its trees take a search: use `Forest`).

        Raises ValueError for a graph with hosts (`controller.trees.network.switch_graph` takes them out).
        """
        if graph.hosts():
            raise ValueError("trees span switches: the graph must hold no hosts")
        shape = recognise(graph) if all(link.weight == 1 for link in graph.links()) else None
        if shape is None:
            return None
        links = [(link.u, link.v) for link in graph.links()]
        capacity_bps = np.array([link.capacity_bps for link in graph.links()])
        tors = sorted(shape.pod, key=lambda tor: shape.pod[tor]) if isinstance(shape, Fabric) else graph.nodes()
        cores = list(shape.down) if isinstance(shape, Fabric) else []
        return cls(graph, links, capacity_bps, tors, cores, shape)
