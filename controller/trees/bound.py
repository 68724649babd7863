"""How low the utilisation of the busiest link can be, whatever the trees."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from controller.trees.bulk.groups import Groups
from topology.graph import Graph, NodeId


class Bound(NamedTuple):
    """A lower bound on the utilisation of the busiest cable, and the cut that gives it.

    Attributes
    ----------
    utilisation
        Rate over capacity, 1.0 = all cables of the cut are full. `percent` is a hundred times that.
    side
        The switches on one side of the cut.
    rate_bps
        Sum of the rates of the groups with members on both sides.
    capacity_bps
        Sum of the capacities of the cables across.
    """

    utilisation: float
    side: frozenset[NodeId]
    rate_bps: int
    capacity_bps: float

    @property
    def percent(self) -> float:
        """The bound in percent of capacity."""
        return 100 * self.utilisation


def lower_bound(graph: Graph, nodes: Sequence[NodeId], groups: Groups) -> Bound:
    """Return a lower bound on the maximum utilisation of the trees of `groups`, each cable counted once.

    Parameters
    ----------
    graph
        The switches, living links only.
    nodes
        The switch of every number in ``groups.tors`` (`BulkFabric.tors` for a recognised fabric).
    """
    raise NotImplementedError
