"""What a tree algorithm is to the forest."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from controller.trees.network import Network
from controller.trees.tree import Adjacency, Route, Tree, TreePlan
from topology.graph import NodeId


class Algorithm(ABC):
    """Decides how trees grow and what they are built anew as; the forest does the rest.

    `follows_routing` says that every tree follows the unicast routes, so that a new link concerns all of them,
    `settles_small_trees` that every tree that is not of form `Form.GENERAL` is `settled` whatever members it has.
    """

    follows_routing = False
    settles_small_trees = False

    def __init__(self, network: Network) -> None:
        self.network = network

    @abstractmethod
    def path(self, tree: Tree, node: NodeId) -> Route | None:
        """Return the way from the new terminal `node` to the tree, its last node alone on the tree.

        For an empty tree that is ``(node,)``. None asks for the tree to be built anew with what it can keep of its
        links, an empty route without regard to them.
        """

    @abstractmethod
    def build(self, tree: Tree, terminals: Sequence[NodeId], old: Adjacency, steady_state: bool = False) -> TreePlan:
        """Return a tree over `terminals`, which are connected with each other.

        `tree` has its terminals, roles and rates but no load at this time. `old` holds the links that the tree
        used, some of them dead perhaps, to be preferred; `steady_state` allows a search over member orders.
        """

    def settled(self, tree: Tree, thorough: bool = False) -> bool:
        """Tell whether the tree may stay as it is after a change of its members (`thorough`: of the fabric)."""
        return True


def graft(parent: dict[NodeId, NodeId], path: Sequence[NodeId]) -> None:
    """Hang `path`, which ends on the tree, into a rooted tree."""
    above = path[-1]
    for node in path[-2::-1]:
        parent[node] = above
        above = node
