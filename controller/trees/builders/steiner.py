"""Yardstick of tree quality: Mehlhorn's approximation as networkx implements it, built anew for every change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from controller.trees.algorithm import Algorithm
from controller.trees.network import Network
from controller.trees.tree import Adjacency, Route, Tree, TreePlan, prune_leaves, rooted
from topology.graph import NodeId, order_key


class SteinerTree(Algorithm):
    """Steiner tree by `networkx.algorithms.approximation.steiner_tree`, method "mehlhorn".

    The library's function raises KeyError on some disconnected graphs (networkx issue 8839), so it is
    given the component of the terminals alone.

    References
    ----------
    K. Mehlhorn, "A faster approximation algorithm for the Steiner problem in graphs", Information Processing
    Letters 27(3), 1988, doi 10.1016/0020-0190(88)90066-X.
    """

    follows_routing = True

    def __init__(self, network: Network) -> None:
        super().__init__(network)
        self._version = -1
        self._components: dict[int, Any] = {}

    def path(self, tree: Tree, node: NodeId) -> Route | None:
        """Return the first member; every further one takes a new tree."""
        return (node,) if tree.root is None else None

    def build(self, tree: Tree, terminals: Sequence[NodeId], old: Adjacency, steady_state: bool = False) -> TreePlan:
        """Return the library's tree without superfluous leaves."""
        if len(terminals) == 1:
            return TreePlan(terminals[0], {})
        import networkx as nx  # a slow import that only this algorithm needs

        ends = sorted(terminals, key=order_key)
        component = self._component(self.network.components()[ends[0]])
        found = nx.algorithms.approximation.steiner_tree(component, ends, weight="weight", method="mehlhorn")
        adjacent = {node: set(found[node]) for node in found}
        prune_leaves(adjacent, set(ends))
        return TreePlan(ends[0], rooted(ends[0], adjacent))

    def settled(self, tree: Tree, thorough: bool = False) -> bool:
        """Tell whether nothing is left to build: a tree depends on its members alone, so always build."""
        return not tree.parent

    def _component(self, number: int) -> Any:
        graph = self.network.graph
        if self._version != graph.version:
            self._version, self._components = graph.version, {}
        found = self._components.get(number)
        if found is None:
            import networkx as nx

            found = self._components[number] = nx.Graph()
            found.add_nodes_from(n for n in graph.nodes() if self.network.components()[n] == number)
            found.add_weighted_edges_from((a.u, a.v, a.weight) for a in graph.links() if a.u in found)
        return found


ALGORITHMS = {"steiner": SteinerTree}
