"""Baselines that follow unicast routes: three forms of PIM-SM's shared tree (RFC 7761), and the source tree.

The article compares with a PIM-SM of its own making and does not say how it picks rendezvous points and next
hops; these three forms span what that can mean. The tree is the union of the members' routes to the rendezvous
point, which stays on the tree as in PIM-SM.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence

from controller.kernel.hashing import stable_hash
from controller.trees.algorithm import Algorithm, graft
from controller.trees.tree import SENDS, Adjacency, Route, Tree, TreePlan, adjacency_of
from topology.graph import NodeId, order_key


class RoutedTree(Algorithm):
    """Union of the routes from the members to one root."""

    follows_routing = True

    @abstractmethod
    def roots(self, component: int) -> tuple[NodeId, ...]:
        """Return the nodes of a component of which the group's hash draws the root."""

    @abstractmethod
    def hops(self, node: NodeId, root: NodeId) -> tuple[NodeId, ...]:
        """Return the neighbours of which the group's hash draws the one towards `root`."""

    def choose_root(self, tree: Tree, terminals: Iterable[NodeId]) -> NodeId:
        """Return the root of a tree over `terminals`, in their component."""
        return self.network.draw(tree.salt, self.roots(self.network.components()[next(iter(terminals))]))

    def next_hop(self, tree: Tree, node: NodeId, root: NodeId) -> NodeId:
        """Return the neighbour to which `node` routes what goes to `root`."""
        hops = self.hops(node, root)
        return hops[0] if len(hops) == 1 else self.network.draw(tree.salt, hops)

    def path(self, tree: Tree, node: NodeId) -> Route | None:
        """Return the route of `node` towards the root, up to the tree."""
        root = tree.pinned
        if root is None or node not in self.network.distances(root):
            return None
        path = [node]
        while node not in tree:
            node = self.next_hop(tree, node, root)
            path.append(node)
        return tuple(path)

    def build(self, tree: Tree, terminals: Sequence[NodeId], old: Adjacency, steady_state: bool = False) -> TreePlan:
        """Return the union of the routes of `terminals`."""
        root = self.choose_root(tree, terminals)
        return TreePlan(root, self.routes(tree, terminals, root), pinned=root)

    def routes(self, tree: Tree, terminals: Iterable[NodeId], root: NodeId) -> dict[NodeId, NodeId]:
        """Return the routes of `terminals` to `root`, as a tree rooted there."""
        parent: dict[NodeId, NodeId] = {}
        for terminal in terminals:
            path = [terminal]
            while path[-1] != root and path[-1] not in parent:
                path.append(self.next_hop(tree, path[-1], root))
            graft(parent, path)
        return parent

    def pruned(self, tree: Tree, terminals: Sequence[NodeId]) -> tuple[NodeId, dict[NodeId, NodeId]]:
        """Return root and links of the tree without the stub that only leads to the rendezvous point."""
        root = self.choose_root(tree, terminals)
        parent = self.routes(tree, terminals, root)
        adjacent = adjacency_of(root, parent)
        ends = set(terminals)
        while root not in ends and len(adjacent[root]) == 1:
            (beyond,) = adjacent[root]
            del parent[beyond]
            adjacent[beyond] -= {root}
            root = beyond
        return root, parent


class FixedCoreTree(RoutedTree):
    """One rendezvous point for all groups, the core with the lowest id; of equal next hops the lowest."""

    def roots(self, component: int) -> tuple[NodeId, ...]:
        """Return the lowest core."""
        return self.network.tops(component)[:1]

    def hops(self, node: NodeId, root: NodeId) -> tuple[NodeId, ...]:
        """Return the lowest of the neighbours closer to the root."""
        return self.network.closer(node, root)[:1]


class RandomCoreTree(RoutedTree):
    """Rendezvous point and next hops by hash of the group, so that all switches agree: the strong baseline."""

    def roots(self, component: int) -> tuple[NodeId, ...]:
        """Return the cores."""
        return self.network.tops(component)

    def hops(self, node: NodeId, root: NodeId) -> tuple[NodeId, ...]:
        """Return the neighbours closer to the root."""
        return self.network.closer(node, root)


class StaticUplinkTree(RoutedTree):
    """Rendezvous point a ToR by hash of the group; each switch has one uplink for everything that goes up."""

    def roots(self, component: int) -> tuple[NodeId, ...]:
        """Return the ToRs."""
        return self.network.edges(component)

    def hops(self, node: NodeId, root: NodeId) -> tuple[NodeId, ...]:
        """Return the switch's own draw of the closer neighbours above it, the lowest one where none is above."""
        network = self.network
        closer = network.closer(node, root)
        level = network.graph.level(node)
        above = tuple(n for n in closer if network.graph.level(n) > level)
        if not above:
            return (min(closer, key=order_key),)
        return (network.draw(stable_hash(network.seed, "uplink", node), above),)


class SourceTree(RoutedTree):
    """Shortest paths from the first sender, or from the first member while none sends."""

    def roots(self, component: int) -> tuple[NodeId, ...]:
        """Return nothing: the root is one of the members."""
        return ()

    def hops(self, node: NodeId, root: NodeId) -> tuple[NodeId, ...]:
        """Return the neighbours closer to the root."""
        return self.network.closer(node, root)

    def choose_root(self, tree: Tree, terminals: Iterable[NodeId]) -> NodeId:
        """Return the terminal that sends and joined first, or the first."""
        nodes = list(terminals)
        return next((node for node in nodes if int(tree.terminals[node]) & SENDS), nodes[0])

    def settled(self, tree: Tree, thorough: bool = False) -> bool:
        """Tell whether the root is still the right one."""
        on_tree = [node for node in tree.terminals if node in tree]
        return not on_tree or self.choose_root(tree, on_tree) == tree.pinned


ALGORITHMS = {
    "pim-sm-fixed-core": FixedCoreTree,
    "pim-sm-random-core": RandomCoreTree,
    "pim-sm-static-uplink": StaticUplinkTree,
    "source-tree": SourceTree,
}
