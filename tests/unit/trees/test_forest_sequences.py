"""Any sequence of joins, leaves, rates, failures and returns: the invariants hold after each step."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from controller.trees.algorithms import ALGORITHMS
from controller.trees.fabric import LayeredFabric
from controller.trees.forest import Forest
from controller.trees.network import Network
from controller.trees.tree import Form, TreeRole
from topology.graph import NodeKind
from topology.loads import LinkLoads

picks = st.integers(0, 1000)
roles = st.sampled_from([TreeRole.RECEIVER, TreeRole.SENDER, TreeRole.RECEIVER | TreeRole.SENDER])


class Sequences(RuleBasedStateMachine):
    """A forest beside plain sets of who has which role."""

    lab = None
    algorithm = "vsrt"

    @initialize(
        name=st.sampled_from(["fattree4", "avalanche24", "leaf-spine", "tree", "hub-and-ring", "petersen"]),
        groups=st.lists(st.lists(st.tuples(picks, roles), min_size=2, max_size=6), min_size=2, max_size=4),
    )
    def start(self, name, groups):
        self.graph = self.lab.FABRICS[name]()
        self.nodes = self.graph.nodes()
        self.edges = self.graph.nodes(NodeKind.TOR) or self.nodes
        self.kinds = {node: self.graph.kind(node) for node in self.nodes}
        self.links = list(self.graph.links())
        self.forest = Forest(self.graph, self.algorithm)
        self.model = {}
        self.cut = {}
        self.shadow = {}
        for key, members in enumerate(groups):
            for pick, role in members:
                self.join(key, pick, role)

    def tracked(self, changes):
        for change in changes:
            assert not change.empty
            self.check_change(change)

    def check_change(self, change):
        before = self.shadow.get(change.key, set())
        added = set(map(frozenset, change.added))
        removed = set(map(frozenset, change.removed))
        assert len(added) == len(change.added)
        assert len(removed) == len(change.removed)
        assert not added & before
        assert removed <= before
        tree = self.forest.tree(change.key)
        now = set(map(frozenset, tree.links())) if tree else set()
        assert now == (before | added) - removed
        self.shadow[change.key] = now
        cut = self.cut.get(change.key, set())
        cut = (cut | set(change.detached)) - set(change.attached)
        self.cut[change.key] = cut & set(tree.terminals) if tree else set()
        assert self.cut[change.key] == (tree.detached if tree else set())

    @rule(key=st.integers(0, 3), members=st.lists(st.tuples(picks, roles), min_size=1, max_size=4))
    def join_some(self, key, members):
        for pick, role in members:
            self.join(key, pick, role)

    def join(self, key, pick, role):
        node = self.edges[pick % len(self.edges)]
        self.check_change(self.forest.join(key, node, role))
        group = self.model.setdefault(key, {})
        group[node] = group.get(node, TreeRole(0)) | role

    @rule(key=st.integers(0, 3), pick=picks, role=roles)
    def leave(self, key, pick, role):
        group = self.model.get(key, {})
        node = sorted(group, key=str)[pick % len(group)] if group else self.edges[0]
        self.check_change(self.forest.leave(key, node, role))
        if node in group:
            group[node] &= ~role
            if not group[node]:
                del group[node]

    @rule(key=st.integers(0, 3), pick=picks, rate=st.integers(0, 9_000_000))
    def measure(self, key, pick, rate):
        self.forest.set_rate(key, self.edges[pick % len(self.edges)], rate)

    @rule(failures=st.lists(st.tuples(st.booleans(), picks), min_size=1, max_size=3))
    def fail(self, failures):
        for whole, pick in failures:
            links = [link for tree in self.forest for link in tree.links()] or [x[:2] for x in self.graph.links()]
            node = self.nodes[pick % len(self.nodes)]
            if whole and node in self.graph:
                self.tracked(self.forest.remove_node(node))
            elif links:
                self.tracked(self.forest.remove_link(*links[pick % len(links)]))
            self.sound()

    @rule(returns=st.lists(picks, min_size=1, max_size=4))
    def restore_some(self, returns):
        for pick in returns:
            gone = [a for a in self.links if not self.graph.has_link(a.u, a.v)]
            if gone:
                link = gone[pick % len(gone)]
                for node in (link.u, link.v):
                    self.tracked(self.forest.add_node(node, self.kinds[node]))
                self.tracked(self.forest.add_link(*link))
                self.sound()

    @rule()
    def restore_all(self):
        for node in self.nodes:
            self.tracked(self.forest.add_node(node, self.kinds[node]))
        for link in self.links:
            if not self.graph.has_link(link.u, link.v):
                self.tracked(self.forest.add_link(*link))
        self.whole()

    @rule(steady=st.booleans())
    def rebuild(self, steady):
        for key in list(self.model):
            if self.forest.tree(key):
                self.check_change(self.forest.rebuild(key, steady))
        before = self.costs()
        changes = self.forest.rebalance()
        self.tracked(changes)
        after = self.costs()
        if changes:
            assert all(now <= then * (1 + 1e-9) for now, then in zip(after, before, strict=True))
            assert any(now <= then * 0.95 for now, then in zip(after, before, strict=True) if then)
        else:
            assert after == before

    def costs(self):
        """The load beyond capacity, how uneven loads are, and the busiest link."""
        loads = list(zip(self.forest.loads.bps, self.forest.loads.capacity_bps, strict=True))
        return (
            sum(max(0.0, bps - capacity_bps) for bps, capacity_bps in loads),
            sum((bps / capacity_bps) ** 2 for bps, capacity_bps in loads if bps),
            self.forest.loads.max_utilisation(),
        )

    def whole(self):
        """With every link alive, nobody is cut off and the default is optimal again where that is known."""
        fresh = Network(self.graph, LinkLoads(self.graph.links()), 0)
        for tree in self.forest:
            assert not tree.detached
            if self.algorithm == "vsrt" and isinstance(fresh.shape, LayeredFabric):
                assert tree.size == fresh.shape.optimum(tree.terminals)

    @invariant()
    def sound(self):
        self.lab.check_forest(self.forest)
        for key, group in self.model.items():
            tree = self.forest.tree(key)
            assert (dict(tree.terminals) if tree else {}) == group
        for tree in self.forest:
            shape = self.forest.algorithm.network.shape
            if self.algorithm == "vsrt" and tree.form is Form.DESIGNATED and isinstance(shape, LayeredFabric):
                assert tree.size == shape.optimum(n for n in tree.terminals if n in tree.adjacent)

    def teardown(self):
        if not hasattr(self, "model"):
            return
        for key, group in self.model.items():
            for node, role in list(group.items()):
                self.forest.leave(key, node, role)
        if self.model:
            assert len(self.forest) == 0
            self.lab.check_forest(self.forest)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_sequences(lab, algorithm):
    case = type("Case", (Sequences,), {"lab": lab, "algorithm": algorithm}).TestCase
    examples = 80 if algorithm == "vsrt" else 15
    case.settings = settings(max_examples=examples, stateful_step_count=25, deadline=None)
    case().runTest()
