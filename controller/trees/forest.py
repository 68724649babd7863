"""All groups' trees over one fabric: members come and go, links fail and return, loads stay exact."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from math import inf, isfinite
from types import MappingProxyType
from typing import Final

from controller.trees import cables, degraded, flows
from controller.trees.algorithms import ALGORITHMS, DEFAULT_ALGORITHM
from controller.trees.builders.vsrt import Vsrt
from controller.trees.fabric import merged_pod
from controller.trees.network import Network
from controller.trees.rebalance import rebalanced, respread
from controller.trees.switch_users import SwitchUsers
from controller.trees.tree import (
    RECEIVES,
    ROLES,
    SENDS,
    Adjacency,
    Change,
    Form,
    Index,
    Key,
    Links,
    Route,
    Tree,
    TreePlan,
    TreeRole,
    adjacency,
    placing_order,
    spanning,
    terminals_served,
)
from topology.graph import DEFAULT_CAPACITY_BPS, Graph, Link, NodeId, NodeKind
from topology.loads import LinkLoads

NOTHING: Final[Links] = ()
NO_CABLES: Final[tuple[Link, ...]] = ()
ALL_ROLES: Final[int] = RECEIVES | SENDS
_NO_PORTS: Mapping[tuple[NodeId, NodeId], tuple[int, int]] = MappingProxyType({})

_RECEIVER: Final = TreeRole.RECEIVER
_new: Final = tuple.__new__  # what a named tuple's own constructor does, for a third of its time


class Forest:
    """The trees of all groups by one algorithm.

    Parameters
    ----------
    graph
        The switches; a switch with edge ports should be of kind ``TOR``, since the tiers count from there. From here
        on it is changed through the forest only.
    algorithm
        A name in `ALGORITHMS`.
    seed
        Decides every tie; the same seed and the same operations give the same trees.
    default_rate_bps
        Rate of a sender that was not measured, and of a group without a known sender (but see `set_group_rate`).

    Raises
    ------
    KeyError
        For an unknown algorithm.
    ValueError
        For a graph with hosts (`switch_graph` takes them out), or a rate that is negative or no number.
    """

    def __init__(
        self,
        graph: Graph,
        algorithm: str = DEFAULT_ALGORITHM,
        seed: int = 0,
        default_rate_bps: float = 1e6,
    ) -> None:
        if graph.hosts():
            raise ValueError("trees span switches: the graph must hold no hosts")
        self.graph = graph
        self._nodes = graph.node_view()
        self.loads = LinkLoads(graph.links())
        self.seed = seed
        self._default_bps = _rate(default_rate_bps)
        self._network = Network(graph, self.loads, seed)
        self.algorithm = ALGORITHMS[algorithm](self._network)
        self.trees: dict[Key, Tree] = {}
        """By group; changed here alone."""
        self._idle_bps: dict[Key, int] = {}
        self._users = SwitchUsers(self.trees, self.loads)
        self._cut: set[Key] = set()
        self._general: set[Key] = set()
        self._worsened: set[Key] = set()
        self._broken: dict[Key, float] = {}
        self._steps_left = degraded.MAX_STEPS

    def __len__(self) -> int:
        return len(self.trees)

    def __contains__(self, key: Key) -> bool:
        return key in self.trees

    def __iter__(self) -> Iterator[Tree]:
        return iter(self.trees.values())

    def tree(self, key: Key) -> Tree | None:
        """Return the tree of a group, None where it has no terminal."""
        return self.trees.get(key)

    def components(self) -> dict[NodeId, int]:
        """Return the number of the part of the fabric that each switch is in; not to be changed."""
        return self._network.components()

    def groups_on(self, u: NodeId, v: NodeId) -> frozenset[Key]:
        """Return the groups whose trees use a cable between two switches."""
        return self._users.of(u, v)

    # Members.

    def join(self, key: Key, node: NodeId, role: TreeRole) -> Change:
        """Give the terminal `node` a role (more) in a group; a role that it has already changes nothing."""
        bits = RECEIVES
        if role is not _RECEIVER:
            bits = role._value_
            if not 0 < bits <= ALL_ROLES:
                raise ValueError(f"no role: {role!r}")
        tree, algorithm, sends = self.trees.get(key), self.algorithm, bits & SENDS
        if tree is None:
            tree = self.trees[key] = Tree(key, self.seed, self._idle_bps.get(key, self._default_bps))
            if not sends and algorithm.settles_small_trees and node in self._nodes:
                self._users.plant(tree, node)
                return _new(Change, (key, (), (), (), (), ()))
        elif self._broken and key in self._broken:
            return self._both(self.mend(key), self.join(key, node, role))
        if node in (terminals := tree.terminals):
            have = int(terminals[node])
            return self._take_role(tree, node, have, bits & ~have) if bits & ~have else Change(key)
        terminals[node] = ROLES[bits]
        if node in tree.parent or node == tree.root:
            added = NOTHING
        else:
            path: Route | None = None
            if tree.detached or node not in self._nodes:
                pass
            elif sends:
                path = flows.path_of_sender(tree, node, self._default_bps, algorithm.path)
            else:
                path = algorithm.path(tree, node)
            if not path:
                self._users.add(key, (node,))
                if sends:
                    flows.sender_known(tree, self.loads, node, self._default_bps)
                return self._rebuild(tree, keep=path is None)
            added = self._users.attach(tree, path)
            if tree.cables is not None or self.loads.bundles:
                cables.took(tree, added, self.loads)
                flows.point(tree, self.loads)
        if sends or tree.rate_below is not None:
            flows.begin_roles(tree, self.loads, node, bits, self._default_bps)
        if (algorithm.settles_small_trees and tree.form is not Form.GENERAL) or algorithm.settled(tree):
            return _new(Change, (key, added, NOTHING, (), (), ()))
        return self._both(Change(key, added), self._rebuild(tree, keep=True))

    def leave(self, key: Key, node: NodeId, role: TreeRole) -> Change:
        """Take a role from the terminal `node`; with its last role it leaves the tree, the last terminal ends it."""
        tree = self.trees.get(key)
        have = 0 if tree is None else int(tree.terminals.get(node, 0))
        lost: int = have & role._value_
        if tree is None or not lost:
            return Change(key)
        if key in self._broken:
            return self._both(self.mend(key), self.leave(key, node, role))
        if lost & SENDS or tree.rate_below is not None:
            flows.end_roles(tree, self.loads, node, lost)
        if have != lost:
            tree.terminals[node] = ROLES[have & ~lost]
            return Change(key) if self._stays(tree) else self._rebuild(tree, keep=True)
        del tree.terminals[node]
        if tree.detached:
            tree.detached -= {node}
        if not tree.terminals:
            return self._fell(tree, node)
        removed, left = NOTHING, NO_CABLES
        if node in tree.parent or node == tree.root:
            removed = self._users.prune(tree, node)
            if tree.cables is not None:
                left = cables.gave(tree, removed, self.loads)
        else:
            self._users.discard(tree, (node,))
        if self._stays(tree):
            return _new(Change, (key, NOTHING, removed, (), (), left))
        return self._both(Change(key, NOTHING, removed, left=left), self._rebuild(tree, keep=True))

    def set_rate(self, key: Key, node: NodeId, rate_bps: float) -> None:
        """Account the measured rate of senders at `node`, if there are any; ValueError for one below 0 or NaN."""
        rate = _rate(rate_bps)
        tree = self.trees.get(key)
        if tree is not None and node in tree.rates:
            flows.set_rate(tree, self.loads, node, rate, is_accounted=key not in self._broken)

    def set_group_rate(self, key: Key, rate_bps: float) -> None:
        """Account a group, from now on, with this rate instead of the default while no sender of it is known.

        Raises ValueError for a rate that is negative or no number.
        """
        rate = self._idle_bps[key] = _rate(rate_bps)
        tree = self.trees.get(key)
        if tree is not None:
            if tree.rate_below is None and key not in self._broken:
                flows.charge_links(tree, self.loads, rate - tree.idle_bps)
            tree.idle_bps = rate

    def _take_role(self, tree: Tree, node: NodeId, have: int, new: int) -> Change:
        tree.terminals[node] = ROLES[have | new]
        flows.begin_roles(tree, self.loads, node, new, self._default_bps)
        return Change(tree.key) if self._stays(tree) else self._rebuild(tree, keep=True)

    def _stays(self, tree: Tree) -> bool:
        algorithm, is_small = self.algorithm, tree.form is not Form.GENERAL
        return not tree.detached and ((algorithm.settles_small_trees and is_small) or algorithm.settled(tree))

    def _fell(self, tree: Tree, last: NodeId) -> Change:
        removed, nodes = tuple(tree.parent.items())[::-1], {last, *tree.nodes()}
        flows.discharge(tree, self.loads)
        left = NO_CABLES if tree.cables is None else cables.gave(tree, removed, self.loads)
        for keys in (self._cut, self._general, self._worsened):
            keys.discard(tree.key)
        del self.trees[tree.key]
        tree.parent, tree.children, tree.root = {}, {}, None
        self._users.discard(tree, nodes)
        return Change(tree.key, NOTHING, removed, left=left)

    # The fabric.

    def add_node(self, node: NodeId, kind: NodeKind = NodeKind.SWITCH) -> list[Change]:
        """Add a switch, or learn what kind it is; terminals that were waiting for it join their trees."""
        repaired = self.repair()
        shape, version = self._network.shape if self.trees else None, self.graph.version
        self.graph.add_node(node, kind)
        self._network.node_added(node)
        if self.graph.version == version or not self.trees:
            return repaired
        return repaired + self._look_again(shape, self._users.homed(node))

    def remove_node(self, node: NodeId) -> list[Change]:
        """Take a switch and its links away (KeyError where absent); its terminals wait until it is back."""
        self.lose_node(node)
        return self.repair()

    def add_link(
        self,
        u: NodeId,
        v: NodeId,
        u_port: int | None = None,
        v_port: int | None = None,
        capacity_bps: float = DEFAULT_CAPACITY_BPS,
        weight: float = 1.0,
    ) -> list[Change]:
        """Add a cable between known switches (see `Graph.add_link`), or change the one at the same ports.

        Terminals that were cut off are attached again, and trees that had to be larger than necessary shrink.
        A tree that is optimal as it is stays. So do all where another cable joins the same switches.
        """
        repaired = self.repair()
        shape = self._network.shape if self.trees else None
        is_beside = self.graph.has_link(u, v) and self.loads.number(u, v, u_port, v_port) is None
        if is_beside:
            for key in self._users.of(u, v):
                cables.note(self.trees[key], self.loads)
        link = self.graph.add_link(u, v, u_port, v_port, capacity_bps, weight)
        if is_beside:
            self._network.cables_changed()
        else:
            self._network.link_added(u, v)
        self.loads.add_link(link)
        if is_beside or not self.trees:
            return repaired
        concerned: set[Key] = set()
        for node in merged_pod(shape, self._network.shape, u, v):
            # Trees over parts of a pod that are one again may do without the core.
            concerned |= self._users.homed(node)
        return repaired + self._look_again(shape, concerned)

    def remove_link(self, u: NodeId, v: NodeId, u_port: int | None = None) -> list[Change]:
        """Take a cable away, as `lose_link` does, and repair the trees that used it."""
        self.lose_link(u, v, u_port)
        return self.repair()

    @property
    def is_broken(self) -> bool:
        """Whether there is a tree that `repair` has not come to."""
        return bool(self._broken)

    def lose_link(self, u: NodeId, v: NodeId, u_port: int | None = None) -> int:
        """Take the cable at a port of `u` away, or all to `v` where none is named; return how many trees used it.

        These stand as they were, without a load, until `repair` comes to them, or their group changes. KeyError is
        raised where there is no such cable.
        """
        if self.graph.cable(u, v, u_port) is None and (u_port is not None or not self.graph.has_link(u, v)):
            raise KeyError((u, v, u_port))
        return self._lose([(u, v)], None, u_port)

    def lose_node(self, node: NodeId) -> int:
        """Take a switch and its links away (KeyError where absent); return how many trees used it, as above."""
        return self._lose([(node, other) for other in self.graph.neighbours(node)], node)

    def _lose(self, links: list[tuple[NodeId, NodeId]], node: NodeId | None, u_port: int | None = None) -> int:
        known = self._broken
        broken = self._in_order(self._users.of(*links[0], u_port) if node is None else self._users.at(node))
        for tree in broken:
            if tree.key not in known:
                flows.discharge(tree, self.loads)
        for u, v in links:
            if node is None:
                self.graph.remove_link(u, v, u_port)
                if self.graph.has_link(u, v):
                    self._network.cables_changed()
                else:
                    self._network.link_lost(u, v)
            self.loads.remove_link(u, v, u_port)
        if node is not None:
            self.graph.remove_node(node)
            self._network.node_lost(node)
        for tree in broken:
            cost = self._network.cost(tree.parent) if node is None and not self._network.weighted else 0.0
            known[tree.key] = min(cost, known.get(tree.key, cost))
        self._steps_left = degraded.MAX_STEPS
        return len(broken)

    def repair(self, terminal_count: float = inf) -> list[Change]:
        """Build trees around what they lost, one after the other, until they had so many terminals together."""
        changes = []
        while self._broken and terminal_count > 0:
            key = next(iter(self._broken))
            terminal_count -= len(self.trees[key].terminals)
            changes.append(self.mend(key))
        return [change for change in changes if not change.empty]

    def mend(self, key: Key) -> Change:
        """Build one tree around what it lost; it changes nothing where that was done."""
        if (before := self._broken.pop(key, None)) is None:
            return Change(key)
        tree = self.trees[key]
        with self._network.searching(self._steps_left):
            change = self._replace(tree, tree.adjacent)
            self._steps_left = self._network.steps_left or 0
        if self._network.cost(tree.parent) > before and tree.form is not Form.DESIGNATED:
            self._worsened.add(tree.key)
        return change

    def _look_again(self, shape: object, concerned: Iterable[Key]) -> list[Change]:
        """Improve what the present graph allows to, after it grew from one recognised as `shape`."""
        now = self._network.shape
        if self.algorithm.follows_routing or type(now) is not type(shape):
            keys = set(self.trees)
        else:
            keys = self._cut | self._worsened | set(concerned)
            if now is not None:
                keys |= self._general
        changes = []
        with self._network.searching(degraded.MAX_STEPS):
            for tree in self._in_order(keys):
                if tree.detached or self.algorithm.follows_routing or not self.algorithm.settled(tree, thorough=True):
                    changes.append(self._rebuild(tree, keep=True))
                elif tree.key in self._worsened:
                    changes.append(self._rebuild(tree, keep=False, only_if_smaller=True))
        return [change for change in changes if not change.empty]

    def _in_order(self, keys: Iterable[Key]) -> list[Tree]:
        """Largest rate first, as it is hardest to place; ties by seeded hash."""
        return sorted((self.trees[key] for key in keys), key=placing_order)

    # Building.

    def rebuild(self, key: Key, steady_state: bool = False) -> Change:
        """Build a tree anew; `steady_state` takes the smallest over several member orders (KeyError: no tree).

        A tree that is as small as the one it would become stays.
        """
        tree, mended = self.trees[key], self.mend(key)
        return self._both(mended, self._rebuild(tree, False, only_if_smaller=True, steady_state=steady_state))

    def rebalance(self, improvement: float = 0.05) -> list[Change]:
        """Spread the trees anew where that is better by at least the fraction `improvement`.

        Only trees of optimal size on a recognised fabric move, to others of the same size; any may move to other
        cables of the links that it has. What is better, and which trees can stay where they are,
        `controller.trees.rebalance` says.
        """
        changes = self.repair()
        if isinstance(self.algorithm, Vsrt):
            movable = sorted((t for t in self if t.form is Form.DESIGNATED and t.parent), key=placing_order)
            for tree, plan in rebalanced(self.algorithm, movable, improvement):
                flows.discharge(tree, self.loads)
                changes.append(self._become(tree, plan, set(tree.detached)))
        if self.loads.bundles:
            moved = {change.key for change in changes}
            others = [tree for tree in self if tree.cables is not None and tree.key not in moved]
            for tree in sorted(others, key=placing_order):
                named = respread(tree, self.loads, improvement)
                if named is not None:
                    flows.discharge(tree, self.loads)
                    changes.append(self._become(tree, tree.plan()._replace(cables=named), set(tree.detached)))
        return changes

    def adopt(
        self,
        key: Key,
        links: Iterable[tuple[NodeId, NodeId]],
        ports: Mapping[tuple[NodeId, NodeId], tuple[int, int]] = _NO_PORTS,
    ) -> Change:
        """Give a group the tree made of `links`, which its switches hold already, as far as that is still right.

        The default algorithm takes it where it is optimal, else the optimal tree that keeps most of it; any other
        takes it where it spans the group's terminals. `ports` are those of the cables of links that had several.
        """
        tree = self.trees.get(key)
        if tree is None:
            return Change(key)
        mended, named = self.mend(key), cables.named(ports, self.loads)
        old = adjacency(link for link in links if self.graph.has_link(*link))
        if isinstance(self.algorithm, Vsrt):
            flows.discharge(tree, self.loads)
            return self._both(mended, self._replace(tree, old, named=named))
        root, parent = spanning(old, tree.terminals)
        if parent is None:
            return mended
        flows.discharge(tree, self.loads)
        return self._both(mended, self._become(tree, TreePlan(root, parent, cables=named), set()))

    def _rebuild(self, tree: Tree, keep: bool, only_if_smaller: bool = False, steady_state: bool = False) -> Change:
        flows.discharge(tree, self.loads)
        return self._replace(tree, tree.adjacent if keep else {}, only_if_smaller, steady_state)

    def _replace(
        self,
        tree: Tree,
        old: Adjacency,
        only_if_smaller: bool = False,
        steady_state: bool = False,
        named: Index | None = None,
    ) -> Change:
        """Build a tree whose load is not accounted now."""
        reached = terminals_served(tree, self._network.components())
        detached = {node for node in tree.terminals if node not in reached}
        plan = self.algorithm.build(tree, reached, old, steady_state) if reached else TreePlan(None, {})
        if only_if_smaller and detached == tree.detached:
            if self._network.cost(plan.parent) >= self._network.cost(tree.parent):
                flows.charge(tree, self.loads)
                return Change(tree.key)
            self._worsened.discard(tree.key)
        return self._become(tree, plan if named is None else plan._replace(cables=named), detached)

    def _become(self, tree: Tree, plan: TreePlan, detached: set[NodeId]) -> Change:
        key, before, roots = tree.key, tree.detached, [tree.root, plan.root]
        added, removed = tree.install(plan)
        tree.detached, tree.version = detached, self._network.version
        left = NO_CABLES
        if tree.cables is not None or self.loads.bundles:
            left = cables.chosen(tree, added, removed, plan.cables, self.loads)
        ends = [node for node in chain(roots, *removed, *added) if node is not None]
        self._users.discard(tree, ends)
        self._users.add(key, [node for node in ends if node in tree])
        flows.charge(tree, self.loads)
        _mark(self._cut, key, bool(detached))
        _mark(self._general, key, plan.form is Form.GENERAL)
        order = tree.terminals
        cut_off = tuple(node for node in order if node in detached and node not in before)
        back = tuple(node for node in order if node in before and node not in detached)
        return Change(key, added, removed, cut_off, back, left)

    def _both(self, first: Change, second: Change) -> Change:
        """Return what two changes of a tree that is as they made it amount to."""
        change, tree = first.then(second), self.trees.get(first.key)
        if tree is None or not change.left:
            return change
        return change._replace(left=cables.gone(tree, change.left, self.loads))


def _mark(keys: set[Key], key: Key, belongs: bool) -> None:
    if belongs:
        keys.add(key)
    else:
        keys.discard(key)


def _rate(rate_bps: float) -> int:
    if not (isfinite(rate_bps) and rate_bps >= 0):
        raise ValueError(f"rate_bps {rate_bps} is negative or no number")
    return round(rate_bps)
