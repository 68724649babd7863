"""The algorithm as section 4.1 of the article words it, for comparison.

The first two members are joined by a shortest path. Each later one looks at its adjacent nodes, then at their
neighbours; if one is on the tree it attaches there, else it moves to a random adjacent node one level up and
looks again; at the top level without a hit it falls back to a breadth-first search. It starts at the member's
ToR, whose look includes what the member itself would see.
"""

from __future__ import annotations

from collections.abc import Container, Sequence

from controller.kernel.hashing import stable_hash
from controller.trees.algorithm import Algorithm, graft
from controller.trees.general import member_orders, nearest
from controller.trees.tree import Adjacency, Route, Tree, TreePlan
from topology.graph import NodeId


class LiteralVsrt(Algorithm):
    """Section 4.1 word for word, with its random choices drawn by seed, group, member and step."""

    def path(self, tree: Tree, node: NodeId) -> Route | None:
        """Return the way that the article's walk takes from `node` to the tree."""
        if tree.root is None:
            return (node,)
        components = self.network.components()
        if components[node] != components[tree.root]:
            return None
        path, fell_back = self._walk(tree.salt, node, tree, tree.root, not tree.parent)
        tree.fallbacks += fell_back
        return tuple(path)

    def build(self, tree: Tree, terminals: Sequence[NodeId], old: Adjacency, steady_state: bool = False) -> TreePlan:
        """Return the tree that comes of `terminals` joining in their order (the smallest over several orders)."""
        orders = member_orders(tree, terminals, self.network) if steady_state else [list(terminals)]
        plans = [self._join_all(tree.salt, order) for order in orders]
        return min(plans, key=lambda plan: self.network.cost(plan.parent))

    def _join_all(self, salt: int, terminals: Sequence[NodeId]) -> TreePlan:
        root = terminals[0]
        parent: dict[NodeId, NodeId] = {}
        on_tree = {root}
        fallbacks = 0
        for node in terminals[1:]:
            if node not in on_tree:
                path, fell_back = self._walk(salt, node, on_tree, root, not parent)
                fallbacks += fell_back
                graft(parent, path)
                on_tree.update(path)
        return TreePlan(root, parent, fallbacks=fallbacks)

    def _walk(
        self, salt: int, node: NodeId, on_tree: Container[NodeId], root: NodeId, is_second: bool
    ) -> tuple[list[NodeId], bool]:
        graph = self.network.graph
        state = stable_hash(salt, node)

        def draw(count: int) -> int:
            nonlocal state
            state = stable_hash(state, count)
            return (state >> 1) % count

        if is_second:
            path = [node]
            while path[-1] != root:
                closer = self.network.closer(path[-1], root)
                path.append(closer[draw(len(closer))])
            return path, False
        path = [node]
        while True:
            here = path[-1]
            adjacent = graph.neighbours(here)
            hits = [[n] for n in adjacent if n in on_tree]
            if not hits:
                hits = [[n, beyond] for n in adjacent for beyond in graph.neighbours(n) if beyond in on_tree]
            if hits:
                return path + hits[draw(len(hits))], False
            level = graph.level(here)
            above = [n for n in adjacent if graph.level(n) == level + 1]
            if not above:
                break
            path.append(above[draw(len(above))])
        found = nearest(self.network, salt, (path[-1],), on_tree)
        if found is None:
            raise ValueError(f"no path from {node!r} to the tree")
        return _without_loops(path[:-1] + found), True


def _without_loops(walk: Sequence[NodeId]) -> list[NodeId]:
    path: list[NodeId] = []
    for node in walk:
        if node in path:
            del path[path.index(node) + 1 :]
        else:
            path.append(node)
    return path


ALGORITHMS = {"vsrt-literal": LiteralVsrt}
