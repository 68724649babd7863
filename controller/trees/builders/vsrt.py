"""The default algorithm: smallest trees, and of these the one that keeps its most loaded link least loaded.

On a recognised fabric (`controller.trees.fabric`) a tree is named by its core and its aggregation in every
pod. The aggregation is designated when a second ToR of the pod joins, the core when a second pod does, and both
stay: every join adds links only, and whatever the order of joins and leaves the tree has the optimal size.
Where a dead link stands in the way, another living choice is taken; where there is none, a tree that is as small as
the living links allow (`controller.trees.degraded`).

On other graphs a member attaches at the nearest node of the tree, and a tree that came out larger than what
one of the PIM-SM baselines needs for the same members gives way to a smaller one.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from math import inf
from typing import Final

from controller.trees import degraded, general
from controller.trees.algorithm import Algorithm, graft
from controller.trees.builders.pim import FixedCoreTree, RandomCoreTree, StaticUplinkTree
from controller.trees.fabric import Hierarchy, LayeredFabric
from controller.trees.network import MASK, Network
from controller.trees.tree import RECEIVES, Adjacency, Form, Route, Tree, TreePlan
from controller.trees.ways import Demand, calmest, ways
from topology.graph import NodeId

FULL: Final = 1.0
"""Utilisation up to which a repair would rather keep links than spread load."""

BUSY: Final = 0.25
"""Utilisation of a link to a core up to which no tree is chosen anew for its sake."""

UNEVEN: Final = 1.05
"""How many times the mean utilisation of its pod's links to cores such a link may have."""

Score = tuple[int, float, float]
"""Links that are not kept, utilisation of the busiest link, sum of utilisations: less is better."""


class Vsrt(Algorithm):
    """Optimal and load-aware on fabrics, nearest attachment elsewhere."""

    settles_small_trees = True

    def __init__(self, network: Network) -> None:
        super().__init__(network)
        self._baselines = (FixedCoreTree(network), RandomCoreTree(network), StaticUplinkTree(network))

    def path(self, tree: Tree, node: NodeId) -> Route | None:
        """Return the links to add for `node`; none where the tree has to be chosen anew (see `Algorithm`)."""
        network = self.network
        fabric = network.fabric
        if tree.version != network.graph.version or fabric is None or tree.form is not Form.DESIGNATED:
            fabric = self._fabric_of(tree)
            if fabric is None:
                return self._path_elsewhere(tree, node)
        pod = network.pod.get(node)
        if pod is None:
            return None
        aggregation = tree.aggregations.get(pod)
        if aggregation is not None and (aggregation in tree.parent or aggregation == tree.root):
            return (node, aggregation) if aggregation in network.up[node] else None
        if not tree.parent:
            return self._second_tor(fabric, tree, node)
        return self._path_of_pod(fabric, tree, node, pod)

    def _fabric_of(self, tree: Tree) -> LayeredFabric | None:
        """Return the fabric on which a tree is designated, or may become so; None where it is not."""
        shape, form = self.network.shape, tree.form
        if tree.root is None or not isinstance(shape, LayeredFabric) or form is Form.GENERAL or form is Form.UNIQUE:
            return None
        if tree.version != self.network.version:
            # Its aggregations by the pod numbers of the present version of the graph.
            numbers = shape.aggregation_pod
            tree.aggregations = {numbers[node]: node for node in tree.nodes() if node in numbers}
            tree.version = self.network.version
        return shape

    def _path_elsewhere(self, tree: Tree, node: NodeId) -> Route | None:
        """Return what `path` does for a tree without links, and where none is designated."""
        if tree.root is None:
            return (node,)
        shape, form = self.network.shape, tree.form
        if form is Form.GENERAL:
            if isinstance(shape, Hierarchy):
                return None
            way = general.nearest(self.network, tree.salt, (node,), tree)
            return None if way is None else tuple(way)
        if isinstance(shape, Hierarchy):
            if form is Form.DESIGNATED:
                return None
            tree.form = Form.UNIQUE
            way = self._unique_path(shape, tree.nodes(), tree, node)
            return None if way is None else tuple(way)
        return None

    def build(self, tree: Tree, terminals: Sequence[NodeId], old: Adjacency, steady_state: bool = False) -> TreePlan:
        """Return the optimal tree where one is known and alive, else the smallest that the searches find."""
        if len(terminals) == 1:
            return TreePlan(terminals[0], {})
        shape = self.network.shape
        if isinstance(shape, Hierarchy):
            return self._unique_tree(shape, terminals)
        if isinstance(shape, LayeredFabric):
            plan = self.choose(tree, terminals, old)
            if plan is not None:
                return plan
        return self._general_tree(tree, terminals, old, steady_state)

    def settled(self, tree: Tree, thorough: bool = False) -> bool:
        """Tell whether the tree is still optimal, or on a general graph still not larger than a baseline's."""
        if not thorough and tree.form is not Form.GENERAL:
            return True
        terminals = [node for node in tree.terminals if node in tree]
        shape = self.network.shape
        if isinstance(shape, Hierarchy):
            return tree.form is Form.UNIQUE or len(terminals) <= 1
        if isinstance(shape, LayeredFabric) and all(node in shape.pod for node in terminals):
            if thorough and tree.form is Form.DESIGNATED and tree.size == shape.optimum(terminals):
                return True
            if self.choose(tree, terminals, {}) is not None:
                return tree.form is Form.NEW
            if self._smaller(tree, terminals, tree.size, {}) is not None:
                return False
        return tree.form is Form.GENERAL and self._within_baselines(tree, terminals)

    # Fabrics.

    def _path_of_pod(self, fabric: LayeredFabric, tree: Tree, node: NodeId, pod: int) -> Route | None:
        """Return the way of the first ToR of a pod to a tree that has links."""
        demand, core = self._demand(tree, node), tree.core
        if core is None or not (core in tree.parent or core == tree.root):
            return self._second_pod(fabric, tree, node, pod, demand)
        below = self.network.down.get(core, {}).get(pod, ())
        chosen = self._best_aggregation(tree, node, below, core, demand)
        if chosen is None:
            return None
        if self._is_crowded(fabric, pod, chosen, core, demand):
            return ()
        tree.aggregations[pod] = chosen
        return (node, chosen, core)

    def _second_tor(self, fabric: LayeredFabric, tree: Tree, node: NodeId) -> Route | None:
        """Designate the aggregations and core between the only ToR of the tree and `node`: `choose` for two ToRs."""
        first = tree.root
        home = fabric.pod.get(first)
        if home is None:
            return None
        there, here = self._demand(tree, first), self._demand(tree, node)
        pod = fabric.pod[node]
        if pod == home:
            return self._second_tor_of_pod(fabric, tree, node, first, there, here)
        found = ways(self.network, fabric, node, pod, here, first, home, there)
        if not found:
            return None
        way = found[0] if len(found) == 1 else calmest(self.network, found, node, here, first, there, tree)
        a, tree.core, b = way
        self._designate(tree, {pod: a, home: b})
        return (node, a, tree.core, b, first)

    def _second_tor_of_pod(
        self, fabric: LayeredFabric, tree: Tree, node: NodeId, first: NodeId, there: Demand, here: Demand
    ) -> Route | None:
        """Designate the aggregation between two ToRs of a pod."""
        up = fabric.up
        least: tuple[float, float] = (inf, inf)
        equals: list[NodeId] = []
        for aggregation in up[node]:
            if aggregation in up[first] and (up[aggregation] or not fabric.cores):
                busiest, total = self._link_score(node, aggregation, here)
                other, more = self._link_score(first, aggregation, there)
                score = (other if other > busiest else busiest, total + more)
                if score < least:
                    least, equals = score, [aggregation]
                elif score == least:
                    equals.append(aggregation)
        if not equals:
            return None
        tree.core, chosen = None, self._drawn(tree, equals)
        self._designate(tree, {fabric.pod[node]: chosen})
        return (node, chosen, first)

    @staticmethod
    def _designate(tree: Tree, aggregations: dict[int, NodeId]) -> None:
        tree.form, tree.aggregations = Form.DESIGNATED, aggregations

    def _second_pod(self, fabric: LayeredFabric, tree: Tree, node: NodeId, pod: int, demand: Demand) -> Route | None:
        """Choose the core over the aggregation that a tree within one pod has (its root has degree two or more)."""
        first = next((a for a in tree.aggregations.values() if a in tree), None)
        if first is None:
            return None
        least: tuple[float, float] = (inf, inf)
        equals: list[NodeId] = []
        under: dict[NodeId, NodeId] = {}
        for core in fabric.up[first]:
            below = fabric.down.get(core, {}).get(pod, ())
            chosen = self._best_aggregation(tree, node, below, core, demand)
            if chosen is not None:
                # What the new member gets comes down from the first pod, and the other way round.
                busiest, total = self._link_score(first, core, (demand[1], demand[0]))
                for u, v in ((node, chosen), (chosen, core)):
                    one, more = self._link_score(u, v, demand)
                    busiest, total = max(busiest, one), total + more
                under[core] = chosen
                if (busiest, total) < least:
                    least, equals = (busiest, total), [core]
                elif (busiest, total) == least:
                    equals.append(core)
        if not equals:
            return None
        tree.core = core = self._drawn(tree, equals)
        tree.aggregations[pod] = aggregation = under[core]
        return (node, aggregation, core, first)

    def _drawn(self, tree: Tree, equals: list[NodeId]) -> NodeId:
        """Return the one of some nodes that the tree's own order has first; most trees never need that order."""
        return equals[0] if len(equals) == 1 else min(equals, key=lambda node: self._tie(tree, node))

    def _best_aggregation(
        self, tree: Tree, node: NodeId, below: tuple[NodeId, ...], core: NodeId, demand: Demand
    ) -> NodeId | None:
        up = self.network.up[node]
        if len(below) == 1:
            return below[0] if below[0] in up else None
        living = [aggregation for aggregation in below if aggregation in up]
        if len(living) <= 1:
            return living[0] if living else None

        def score(aggregation: NodeId) -> tuple[float, float, int]:
            low, low_sum = self._link_score(node, aggregation, demand)
            high, high_sum = self._link_score(aggregation, core, demand)
            return (max(low, high), low_sum + high_sum, self._tie(tree, aggregation))

        return min(living, key=score)

    def _is_crowded(self, fabric: LayeredFabric, pod: int, aggregation: NodeId, core: NodeId, demand: Demand) -> bool:
        """Tell whether a link to a core would be busy under more load while others of its pod are less so."""
        loads = self.network.loads
        number = loads.index[aggregation][core]
        capacity, bps, (up, down) = loads.capacity_bps[number], loads.bps, demand
        there, back = bps[number] + up, bps[number ^ 1] + down
        if (there if there > back else back) / capacity <= BUSY:
            return False
        ways = self.network.pod_uplinks(fabric, pod)
        for use, more, numbers in ((there / capacity, up, ways.up), (back / capacity, down, ways.down)):
            if more and use > BUSY:
                mean = sum(map(bps.__getitem__, numbers)) / ways.capacity_bps
                if use > UNEVEN * (mean + more / capacity):
                    return True
        return False

    def _demand(self, tree: Tree, node: NodeId) -> Demand:
        default = tree.idle_bps
        if not tree.rates:
            return default, default
        own = tree.rates.get(node, 0)
        down = tree.rate_bps - own if int(tree.terminals[node]) & RECEIVES else 0
        return (own, down) if own or down else (default, default)

    def _link_score(self, u: NodeId, v: NodeId, demand: Demand) -> tuple[float, float]:
        there, back = self._uses(u, v, demand)
        return (there, there + back) if there > back else (back, there + back)

    def _uses(self, u: NodeId, v: NodeId, demand: Demand) -> tuple[float, float]:
        """Return the utilisation of both directions of a link with so much more; one without more counts as free."""
        loads = self.network.loads
        number = loads.index[u][v]
        capacity = loads.capacity_bps[number]
        up, down = demand
        there = (loads.bps[number] + up) / capacity if up else 0.0
        return there, (loads.bps[number ^ 1] + down) / capacity if down else 0.0

    def choose(self, tree: Tree, terminals: Sequence[NodeId], old: Adjacency) -> TreePlan | None:
        """Return the best living tree of optimal size over `terminals`, None where there is none.

        Best is the one that overloads links least, where `old` holds something to keep; then the one that needs
        fewest links beside `old`, then least utilisation of its busiest link, then the least sum, then by hash.
        """
        fabric = self.network.shape
        if not isinstance(fabric, LayeredFabric) or not all(node in fabric.pod for node in terminals):
            return None
        pods: dict[int, list[NodeId]] = {}
        for node in sorted(terminals, key=fabric.order.__getitem__):
            pods.setdefault(fabric.pod[node], []).append(node)
        if len(terminals) == 1:
            return TreePlan(terminals[0], {})
        demands = {node: self._demand(tree, node) for node in terminals}
        options = {pod: self._pod_options(fabric, nodes, demands, old, len(pods) == 1) for pod, nodes in pods.items()}
        if not all(options.values()):
            return None
        if len(pods) == 1:
            ((pod, scores),) = options.items()
            chosen = min(scores, key=lambda a: (_excess(scores[a][1], old), *scores[a], self._tie(tree, a)))
            return self._plan(None, {pod: chosen}, pods)
        totals = {pod: self._pod_demand(tree, nodes) for pod, nodes in pods.items()}
        best: tuple[tuple[float, int, float, float, int], NodeId, dict[int, NodeId]] | None = None
        cores = fabric.cores.get(next(iter(pods)), ())
        kept = {core for node in old for core in fabric.up.get(node, ()) if core in old}
        # What may keep all comes first: then little of the rest has to be looked at.
        for core in sorted(cores, key=lambda core: core not in kept) if kept else cores:
            missing, busiest, total = 0, 0.0, 0.0
            aggregations: dict[int, NodeId] = {}
            for pod, scores in options.items():
                found: tuple[tuple[float, int, float, float, int], NodeId] | None = None
                for aggregation in fabric.down[core].get(pod, ()):
                    if aggregation in scores:
                        lost, low, low_sum = scores[aggregation]
                        high, high_sum = self._link_score(aggregation, core, totals[pod])
                        lost += core not in old.get(aggregation, ())
                        both, tie = max(low, high), self._tie(tree, aggregation)
                        score = (_excess(both, old), lost, both, low_sum + high_sum, tie)
                        if found is None or score < found[0]:
                            found = (score, aggregation)
                if found is None:
                    break
                aggregations[pod] = found[1]
                missing, busiest, total = missing + found[0][1], max(busiest, found[0][2]), total + found[0][3]
                if best is not None and (_excess(busiest, old), missing, busiest) > best[0][:3]:
                    break  # further pods make it no better
            else:
                score = (_excess(busiest, old), missing, busiest, total, self._tie(tree, core))
                if best is None or score < best[0]:
                    best = (score, core, aggregations)
        return None if best is None else self._plan(best[1], best[2], pods)

    def _tie(self, tree: Tree, node: NodeId) -> int:
        return tree.salt * self.network.hash_of(node) & MASK

    def _pod_options(
        self,
        fabric: LayeredFabric,
        tors: Sequence[NodeId],
        demands: dict[NodeId, Demand],
        old: Adjacency,
        alone: bool,
    ) -> dict[NodeId, Score]:
        """Score every aggregation of a pod that has living links to all of `tors`."""
        options: dict[NodeId, Score] = {}
        for aggregation in fabric.up[tors[0]]:
            # A tree that may grow to other pods had better not start under an aggregation without a core.
            missing, busiest, total = int(alone and bool(fabric.cores) and not fabric.up[aggregation]), 0.0, 0.0
            for node in tors:
                if aggregation not in fabric.up[node]:
                    break
                one, more = self._link_score(node, aggregation, demands[node])
                busiest, total = max(busiest, one), total + more
                missing += node not in old.get(aggregation, ())
            else:
                options[aggregation] = (missing, busiest, total)
        return options

    def _pod_demand(self, tree: Tree, tors: Sequence[NodeId]) -> Demand:
        if not tree.rates:
            return tree.idle_bps, tree.idle_bps
        up = sum(tree.rates.get(node, 0) for node in tors)
        receives = any(int(tree.terminals[node]) & RECEIVES for node in tors)
        return up, tree.rate_bps - up if receives else 0

    @staticmethod
    def _plan(core: NodeId | None, aggregations: dict[int, NodeId], pods: dict[int, list[NodeId]]) -> TreePlan:
        root = next(iter(aggregations.values())) if core is None else core
        parent = {} if core is None else dict.fromkeys(aggregations.values(), core)
        for pod, nodes in pods.items():
            parent.update(dict.fromkeys(nodes, aggregations[pod]))
        return TreePlan(root, parent, Form.DESIGNATED, core, aggregations)

    # Graphs without a cycle.

    @staticmethod
    def _unique_path(
        shape: Hierarchy, nodes: Iterable[NodeId], on_tree: Container[NodeId], node: NodeId
    ) -> list[NodeId] | None:
        above, depth = shape.above, shape.depth
        up: NodeId | None = node
        path: list[NodeId] = []
        while up is not None:
            path.append(up)
            if up in on_tree:
                return path
            up = above[up]
        # No ancestor is on the tree: leave from its highest node to the first ancestor of the new one.
        place = {n: i for i, n in enumerate(path)}
        top: NodeId | None = min(nodes, key=lambda n: depth[n])
        way: list[NodeId] = []
        while top is not None and top not in place:
            way.append(top)
            top = above[top]
        if top is None:
            return None
        return path[: place[top] + 1] + way[::-1]

    def _unique_tree(self, shape: Hierarchy, terminals: Sequence[NodeId]) -> TreePlan:
        root = terminals[0]
        parent: dict[NodeId, NodeId] = {}
        on_tree = {root: None}
        for node in terminals[1:]:
            if node not in on_tree:
                path = self._unique_path(shape, on_tree, on_tree, node) or (node,)
                graft(parent, path)
                on_tree |= dict.fromkeys(path)
        return TreePlan(root, parent, Form.UNIQUE)

    # Other graphs.

    def _general_tree(self, tree: Tree, terminals: Sequence[NodeId], old: Adjacency, steady_state: bool) -> TreePlan:
        network, salt = self.network, tree.salt
        options: list[tuple[NodeId, dict[NodeId, NodeId]]] = []
        if old:
            kept = general.reconnect(network, salt, terminals, old)
            options.append((_root_of(kept, terminals[0]), kept))
        options.append((terminals[0], general.join_in_order(network, salt, terminals)))
        options.append((terminals[0], self._nearest_first(salt, terminals)))
        if steady_state:
            for order in general.member_orders(tree, terminals, network)[1:]:
                options.append((order[0], general.join_in_order(network, salt, order)))
            for first in terminals[: general.MEMBER_ORDERS]:
                order = [first, *(node for node in terminals if node != first)]
                options.append((first, general.join_nearest_first(network, salt, order)))
            options += [(terminals[0], general.shortened(network, p, terminals)) for _, p in options]
        options += [baseline.pruned(tree, terminals) for baseline in self._baselines]
        root, parent = min(options, key=lambda option: network.cost(option[1]))
        smaller = self._smaller(tree, terminals, len(parent), old)
        if smaller is not None:
            return TreePlan(terminals[0], smaller, Form.GENERAL)
        return TreePlan(root, parent, Form.GENERAL)

    def _smaller(
        self, tree: Tree, terminals: Sequence[NodeId], size: int, old: Adjacency
    ) -> dict[NodeId, NodeId] | None:
        """Return a smallest tree on a fabric for which no optimal one is alive; None where none is below `size`."""
        fabric = self.network.shape
        if not isinstance(fabric, LayeredFabric) or not all(node in fabric.pod for node in terminals):
            return None
        return degraded.smallest(self.network, fabric, terminals, size, tree.salt, old)

    def _nearest_first(self, salt: int, terminals: Sequence[NodeId]) -> dict[NodeId, NodeId]:
        parent = general.join_nearest_first(self.network, salt, terminals)
        return general.shortened(self.network, parent, terminals)

    def _within_baselines(self, tree: Tree, terminals: Sequence[NodeId]) -> bool:
        cost = self.network.cost(tree.parent)
        if self.network.weighted:
            # Weights are for graphs from files, where a small tree matters more than one that grows in place.
            if cost > self.network.cost(self._nearest_first(tree.salt, terminals)):
                return False
        elif tree.size < len(terminals):
            return True
        return all(cost <= self.network.cost(b.pruned(tree, terminals)[1]) for b in self._baselines)


def _excess(utilisation: float, old: Adjacency) -> float:
    return max(0.0, utilisation - FULL) if old else 0.0


def _root_of(parent: dict[NodeId, NodeId], alone: NodeId) -> NodeId:
    return next(iter(parent.values())) if parent else alone


ALGORITHMS = {"vsrt": Vsrt}
