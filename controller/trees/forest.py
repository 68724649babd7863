"""All groups' trees over one fabric: members come and go, links fail and return, loads stay exact."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import inf, isfinite

from controller.trees import degraded, flows
from controller.trees.algorithms import ALGORITHMS, DEFAULT_ALGORITHM
from controller.trees.link_users import LinkUsers
from controller.trees.network import Network
from controller.trees.rebalance import rebalanced
from controller.trees.tree import (
    RECEIVES,
    ROLES,
    SENDS,
    Adjacency,
    Change,
    Form,
    Key,
    Links,
    Plan,
    Role,
    Tree,
    placing_order,
    rooted,
    terminals_served,
)
from controller.trees.vsrt import Vsrt
from topology.graph import DEFAULT_CAPACITY_BPS, Graph, Kind, NodeId
from topology.loads import LinkLoads

NOTHING: Links = ()

_new = tuple.__new__  # what a named tuple's own constructor does, for a third of its time


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
        self.loads = LinkLoads(graph.links())
        self.seed = seed
        self._default_bps = _rate(default_rate_bps)
        self._network = Network(graph, self.loads, seed)
        self.algorithm = ALGORITHMS[algorithm](self._network)
        self._trees: dict[Key, Tree] = {}
        self._idle_bps: dict[Key, int] = {}
        self._users = LinkUsers(self.loads)
        self._homes: dict[NodeId, set[Key]] = {}
        self._cut: set[Key] = set()
        self._general: set[Key] = set()
        self._worsened: set[Key] = set()
        self._broken: dict[Key, float] = {}
        self._steps_left = degraded.MAX_STEPS

    def __len__(self) -> int:
        return len(self._trees)

    def __contains__(self, key: Key) -> bool:
        return key in self._trees

    def __iter__(self) -> Iterator[Tree]:
        return iter(self._trees.values())

    def tree(self, key: Key) -> Tree | None:
        """Return the tree of a group, None where it has no terminal."""
        return self._trees.get(key)

    def groups_on(self, u: NodeId, v: NodeId) -> frozenset[Key]:
        """Return the groups whose trees use a link."""
        return self._users.of(u, v)

    # Members.

    def join(self, key: Key, node: NodeId, role: Role) -> Change:
        """Give the terminal `node` a role (more) in a group; a role that it has already changes nothing."""
        bits = int(role)
        if not 0 < bits < len(ROLES):
            raise ValueError(f"no role: {role!r}")
        tree = self._trees.get(key)
        if tree is None:
            idle_bps = self._idle_bps.get(key, self._default_bps)
            tree = self._trees[key] = Tree(key, self.seed, idle_bps)
        elif self._broken and key in self._broken:
            return self.mend(key).then(self.join(key, node, role))
        have = int(tree.terminals.get(node, 0))
        new = bits & ~have
        if not new:
            return Change(key)
        if have:
            return self._take_role(tree, node, have, new)
        tree.terminals[node] = ROLES[bits]
        homes = self._homes.get(node)
        if homes is None:
            homes = self._homes[node] = set()
        homes.add(key)
        on_tree = node in tree.adjacent
        if not on_tree:
            path = None
            if node in self.graph and not tree.detached:
                # The algorithm may look at the new terminal's rate before it is accounted.
                if new & SENDS:
                    tree.rates[node] = self._default_bps
                    tree.rate_bps += self._default_bps
                path = self.algorithm.path(tree, node)
                if new & SENDS:
                    del tree.rates[node]
                    tree.rate_bps -= self._default_bps
            if not path:
                if new & SENDS:
                    self._know_sender(tree, node)
                return self._rebuild(tree, keep=path is None)
            added = tree.attach(path)
            self._users.add(key, added, tree.idle_bps if tree.rate_below is None else 0)
        else:
            added = NOTHING
        self._begin_roles(tree, node, new)
        if self.algorithm.settled(tree):
            return _new(Change, (key, added, NOTHING, (), ()))
        return Change(key, added).then(self._rebuild(tree, keep=True))

    def leave(self, key: Key, node: NodeId, role: Role) -> Change:
        """Take a role from the terminal `node`; with its last role it leaves the tree, the last terminal ends it."""
        tree = self._trees.get(key)
        have = 0 if tree is None else int(tree.terminals.get(node, 0))
        lost = have & int(role)
        if tree is None or not lost:
            return Change(key)
        if key in self._broken:
            return self.mend(key).then(self.leave(key, node, role))
        self._end_roles(tree, node, lost)
        if have != lost:
            tree.terminals[node] = ROLES[have & ~lost]
            return Change(key) if self._stays(tree) else self._rebuild(tree, keep=True)
        del tree.terminals[node]
        homes = self._homes[node]
        homes.discard(key)
        if not homes:
            del self._homes[node]
        tree.detached.discard(node)
        if not tree.terminals:
            return self._fell(tree)
        removed = NOTHING
        if node in tree.adjacent:
            silent = tree.rate_below is None
            removed = tree.prune(node)
            self._users.discard(key, removed, tree.idle_bps if silent else 0)
        if self._stays(tree):
            return _new(Change, (key, NOTHING, removed, (), ()))
        return Change(key, NOTHING, removed).then(self._rebuild(tree, keep=True))

    def set_rate(self, key: Key, node: NodeId, rate_bps: float) -> None:
        """Account the measured rate of the senders at `node`; nothing where `node` sends nothing to the group.

        Raises ValueError for a rate that is negative or no number.
        """
        rate = _rate(rate_bps)
        tree = self._trees.get(key)
        if tree is None or node not in tree.rates:
            return
        by = rate - tree.rates[node]
        tree.rates[node] = rate
        tree.rate_bps += by
        if by and node in tree.adjacent and key not in self._broken:
            flows.rate_moved(tree, self.loads, node, by)

    def set_group_rate(self, key: Key, rate_bps: float) -> None:
        """Account a group, from now on, with this rate instead of the default while no sender of it is known.

        Raises ValueError for a rate that is negative or no number.
        """
        rate = self._idle_bps[key] = _rate(rate_bps)
        tree = self._trees.get(key)
        if tree is not None:
            if tree.rate_below is None and key not in self._broken:
                flows.charge_links(self.loads, tuple(tree.links()), rate - tree.idle_bps)
            tree.idle_bps = rate

    def _take_role(self, tree: Tree, node: NodeId, have: int, new: int) -> Change:
        tree.terminals[node] = ROLES[have | new]
        self._begin_roles(tree, node, new)
        return Change(tree.key) if self._stays(tree) else self._rebuild(tree, keep=True)

    def _stays(self, tree: Tree) -> bool:
        return not tree.detached and self.algorithm.settled(tree)

    def _know_sender(self, tree: Tree, node: NodeId) -> None:
        """Note a sender; the load is the caller's."""
        if tree.root is not None:
            flows.discharge(tree, self.loads)
        tree.rates[node] = self._default_bps
        tree.rate_bps += self._default_bps
        flows.charge(tree, self.loads)

    def _begin_roles(self, tree: Tree, node: NodeId, new: int) -> None:
        if new & RECEIVES and tree.rate_below is not None and node in tree.adjacent:
            flows.receiver_moved(tree, self.loads, node, 1)
        if new & SENDS:
            if tree.rate_below is not None and node in tree.adjacent:
                tree.rates[node] = 0
                self.set_rate(tree.key, node, self._default_bps)
            else:
                self._know_sender(tree, node)

    def _end_roles(self, tree: Tree, node: NodeId, lost: int) -> None:
        on_tree = node in tree.adjacent
        if lost & RECEIVES and tree.rate_below is not None and on_tree:
            flows.receiver_moved(tree, self.loads, node, -1)
        if lost & SENDS:
            if on_tree and sum(n in tree.adjacent for n in tree.rates) > 1:
                self.set_rate(tree.key, node, 0)
                del tree.rates[node]
                return
            role = int(tree.terminals[node])
            if on_tree:
                flows.discharge(tree, self.loads)
            tree.rate_bps -= tree.rates.pop(node)
            if on_tree:
                tree.terminals[node] = ROLES[role & ~lost]
                flows.charge(tree, self.loads)

    def _fell(self, tree: Tree) -> Change:
        removed = tuple(tree.parent.items())[::-1]
        flows.discharge(tree, self.loads)
        self._users.discard(tree.key, removed)
        for keys in (self._cut, self._general, self._worsened):
            keys.discard(tree.key)
        del self._trees[tree.key]
        tree.parent, tree.adjacent, tree.root = {}, {}, None
        return Change(tree.key, NOTHING, removed)

    # The fabric.

    def add_node(self, node: NodeId, kind: Kind = Kind.SWITCH) -> list[Change]:
        """Add a switch, or learn what kind it is; terminals that were waiting for it join their trees."""
        repaired = self.repair()
        shape, version = self._network.shape if self._trees else None, self.graph.version
        self.graph.add_node(node, kind)
        self._network.node_added(node)
        if self.graph.version == version or not self._trees:
            return repaired
        return repaired + self._look_again(shape, self._homes.get(node, ()))

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
        """Add a link between known switches (see `Graph.add_link`), or change the one that joins them already.

        Terminals that were cut off are attached again, and trees that had to be larger than necessary shrink.
        A tree that is optimal as it is stays.
        """
        repaired = self.repair()
        shape = self._network.shape if self._trees else None
        pods = {} if shape is None else getattr(shape, "pod", {})
        halves = [n for n in (u, v) if n in pods]
        link = self.graph.add_link(u, v, u_port, v_port, capacity_bps, weight)
        self._network.link_added(u, v)
        self.loads.add_link(link)
        if not self._trees:
            return repaired
        concerned: set[Key] = set()
        merged = getattr(self._network.shape, "pod", {})
        if halves and merged:
            pod = merged.get(halves[0])
            once = {pods[node] for node, number in merged.items() if number == pod and node in pods}
            if len(once) > 1:
                # Two parts of a pod are one again, and trees over both may do without the core.
                for node, number in merged.items():
                    if number == pod:
                        concerned |= self._homes.get(node, set())
        return repaired + self._look_again(shape, concerned)

    def remove_link(self, u: NodeId, v: NodeId) -> list[Change]:
        """Take a link away (KeyError where there is none) and repair the trees that used it."""
        self.lose_link(u, v)
        return self.repair()

    @property
    def is_broken(self) -> bool:
        """Whether there is a tree that `repair` has not come to."""
        return bool(self._broken)

    def lose_link(self, u: NodeId, v: NodeId) -> int:
        """Take a link away (KeyError where there is none); return how many trees used it.

        These stand as they were, without a load, until `repair` comes to them, or their group changes.
        """
        self.graph.link(u, v)
        return self._lose([(u, v)], None)

    def lose_node(self, node: NodeId) -> int:
        """Take a switch and its links away (KeyError where absent); return how many trees used it, as above."""
        return self._lose([(node, other) for other in self.graph.neighbours(node)], node)

    def _lose(self, links: list[tuple[NodeId, NodeId]], node: NodeId | None) -> int:
        known = self._broken
        keys: set[Key] = set() if node is None else set(self._homes.get(node, ()))
        for u, v in links:
            keys |= self._users.take(u, v)
        broken = self._in_order(keys)
        for tree in broken:
            if tree.key not in known:
                flows.discharge(tree, self.loads)
        for u, v in links:
            if node is None:
                self.graph.remove_link(u, v)
                self._network.link_lost(u, v)
            self.loads.remove_link(u, v)
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
            terminal_count -= len(self._trees[key].terminals)
            changes.append(self.mend(key))
        return [change for change in changes if not change.empty]

    def mend(self, key: Key) -> Change:
        """Build one tree around what it lost; it changes nothing where that was done."""
        before = self._broken.pop(key, None)
        if before is None:
            return Change(key)
        tree = self._trees[key]
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
            keys = set(self._trees)
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
        return sorted((self._trees[key] for key in keys), key=placing_order)

    # Building.

    def rebuild(self, key: Key, steady_state: bool = False) -> Change:
        """Build a tree anew; `steady_state` takes the smallest over several member orders (KeyError: no tree).

        A tree that is as small as the one it would become stays.
        """
        tree, mended = self._trees[key], self.mend(key)
        return mended.then(self._rebuild(tree, keep=False, only_if_smaller=True, steady_state=steady_state))

    def rebalance(self, improvement: float = 0.05) -> list[Change]:
        """Spread the trees anew where that is better by at least the fraction `improvement`.

        Only trees of optimal size on a recognised fabric move, to others of the same size. What is better, and which
        trees can stay where they are, `controller.trees.rebalance` says.
        """
        changes = self.repair()
        if not isinstance(self.algorithm, Vsrt):
            return changes
        movable = sorted((t for t in self if t.form is Form.DESIGNATED and t.parent), key=placing_order)
        for tree, plan in rebalanced(self.algorithm, movable, improvement):
            flows.discharge(tree, self.loads)
            changes.append(self._become(tree, plan, set(tree.detached)))
        return changes

    def adopt(self, key: Key, links: Iterable[tuple[NodeId, NodeId]]) -> Change:
        """Give a group the tree made of `links`, which its switches hold already, as far as that is still right.

        The default algorithm takes it where it is optimal, else the optimal tree that keeps most of it; any other
        takes it where it spans the group's terminals.
        """
        tree = self._trees.get(key)
        if tree is None:
            return Change(key)
        mended = self.mend(key)
        old: dict[NodeId, set[NodeId]] = {}
        for u, v in links:
            if self.graph.has_link(u, v):
                old.setdefault(u, set()).add(v)
                old.setdefault(v, set()).add(u)
        if isinstance(self.algorithm, Vsrt):
            flows.discharge(tree, self.loads)
            return mended.then(self._replace(tree, old))
        root = next((node for node in tree.terminals if node in old), None)
        parent = {} if root is None else rooted(root, old)
        spans = all(node == root or node in parent for node in tree.terminals)
        if not spans or len(parent) != sum(map(len, old.values())) // 2:
            return mended
        flows.discharge(tree, self.loads)
        return mended.then(self._become(tree, Plan(root, parent), set()))

    def _rebuild(self, tree: Tree, keep: bool, only_if_smaller: bool = False, steady_state: bool = False) -> Change:
        flows.discharge(tree, self.loads)
        return self._replace(tree, tree.adjacent if keep else {}, only_if_smaller, steady_state)

    def _replace(
        self, tree: Tree, old: Adjacency, only_if_smaller: bool = False, steady_state: bool = False
    ) -> Change:
        """Build a tree whose load is not accounted now."""
        reached = terminals_served(tree, self._network.components())
        detached = {node for node in tree.terminals if node not in reached}
        plan = Plan(None, {})
        if reached:
            plan = self.algorithm.build(tree, reached, old, steady_state)
        if only_if_smaller and detached == tree.detached:
            if self._network.cost(plan.parent) >= self._network.cost(tree.parent):
                flows.charge(tree, self.loads)
                return Change(tree.key)
            self._worsened.discard(tree.key)
        return self._become(tree, plan, detached)

    def _become(self, tree: Tree, plan: Plan, detached: set[NodeId]) -> Change:
        key, before = tree.key, tree.detached
        added, removed = tree.install(plan)
        tree.detached, tree.version = detached, self._network.version
        self._users.discard(key, removed)
        self._users.add(key, added)
        flows.charge(tree, self.loads)
        _mark(self._cut, key, bool(detached))
        _mark(self._general, key, plan.form is Form.GENERAL)
        order = tree.terminals
        cut_off = tuple(node for node in order if node in detached and node not in before)
        back = tuple(node for node in order if node in before and node not in detached)
        return Change(key, added, removed, cut_off, back)


def _mark(keys: set[Key], key: Key, belongs: bool) -> None:
    if belongs:
        keys.add(key)
    else:
        keys.discard(key)


def _rate(rate_bps: float) -> int:
    if not (isfinite(rate_bps) and rate_bps >= 0):
        raise ValueError(f"rate_bps {rate_bps} is negative or no number")
    return round(rate_bps)
