"""Parallel cables: each is a link with its own load, and a tree takes one of those that join two switches."""

from __future__ import annotations

from collections import Counter
from itertools import count

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from controller.trees.algorithms import ALGORITHMS
from controller.trees.fabric import recognise
from controller.trees.forest import Forest
from controller.trees.tree import TreeRole
from topology.graph import Graph, NodeKind, cable_order

MBPS = 1_000_000

picks = st.integers(0, 1000)
roles = st.sampled_from([TreeRole.RECEIVER, TreeRole.SENDER, TreeRole.RECEIVER | TreeRole.SENDER])


def with_ports(plain, doubled=lambda link: 1):
    """Return a graph with numbered ports, with as many cables in place of each link as `doubled` says."""
    graph, ports = Graph(), {node: count(1) for node in plain.nodes()}
    for node in plain.nodes():
        graph.add_node(node, plain.kind(node))
    for link in plain.links():
        for _ in range(doubled(link)):
            graph.add_link(link.u, link.v, next(ports[link.u]), next(ports[link.v]), link.capacity_bps)
    return graph


def two_tors(cable_count=2):
    """Return two ToRs with parallel cables: ports 1, 2, ... of either."""
    graph = Graph()
    for node in ("t0", "t1"):
        graph.add_node(node, NodeKind.TOR)
    for port_no in range(1, cable_count + 1):
        graph.add_link("t0", "t1", port_no, port_no, 10 * MBPS)
    return graph


def ports_of(forest, key):
    """Return the port of t0 by which a group goes to t1."""
    loads, tree = forest.loads, forest.tree(key)
    number = (tree.cables or loads.index)["t0"]["t1"]
    return loads.links[number].u_port


def join_all(forest, keys):
    for key in keys:
        for node in ("t0", "t1"):
            forest.join(key, node, TreeRole.RECEIVER)


def test_groups_spread_over_parallel_cables_and_each_has_its_own_load():
    forest = Forest(two_tors())
    join_all(forest, range(6))
    assert Counter(ports_of(forest, key) for key in range(6)) == {1: 3, 2: 3}
    assert sorted(forest.loads.directions()) == [("t0", "t1", 3 * MBPS)] * 2 + [("t1", "t0", 3 * MBPS)] * 2


def test_a_cable_that_fails_costs_the_trees_on_it_alone():
    forest = Forest(two_tors(3))
    join_all(forest, range(9))
    before = {key: ports_of(forest, key) for key in range(9)}
    changes = forest.remove_link("t0", "t1", 2)
    assert sorted(change.key for change in changes) == [key for key in range(9) if before[key] == 2]
    for change in changes:
        assert not change.added and not change.removed
        assert [link.ports for link in change.left] == [(2, 2)]
    assert Counter(ports_of(forest, key) for key in range(9)) in ({1: 5, 3: 4}, {1: 4, 3: 5})
    assert all(ports_of(forest, key) == before[key] for key in range(9) if before[key] != 2)


def test_a_cable_that_is_added_moves_no_tree_and_takes_the_next_ones():
    forest = Forest(two_tors(1))
    join_all(forest, range(3))
    assert forest.add_link("t0", "t1", 2, 2, 10 * MBPS) == []
    assert {ports_of(forest, key) for key in range(3)} == {1}
    join_all(forest, range(3, 6))
    assert {ports_of(forest, key) for key in range(3, 6)} == {2}


def test_rebalancing_spreads_trees_of_any_form_over_a_cable_that_is_back():
    forest = Forest(two_tors(1))
    join_all(forest, range(6))
    forest.add_link("t0", "t1", 2, 2, 10 * MBPS)
    changes = forest.rebalance()
    assert Counter(ports_of(forest, key) for key in range(6)) == {1: 3, 2: 3}
    assert all([link.ports for link in change.left] == [(1, 1)] for change in changes)
    assert forest.rebalance() == []


def test_a_tree_grows_on_when_the_cable_beside_its_own_is_gone():
    graph = two_tors()
    graph.add_node("t2", NodeKind.TOR)
    graph.add_link("t1", "t2", 9, 1, 10 * MBPS)
    forest = Forest(graph)
    join_all(forest, ["g"])
    assert ports_of(forest, "g") == 1
    assert forest.remove_link("t0", "t1", 2) == []
    assert forest.join("g", "t2", TreeRole.RECEIVER).added
    assert forest.groups_on("t1", "t2") == {"g"}
    for node in ("t2", "t1"):
        forest.leave("g", node, TreeRole.RECEIVER)
    assert [bps for *_, bps in forest.loads.directions()] == [0, 0, 0, 0]


def test_the_last_cable_of_a_bundle_takes_the_link_with_it():
    forest = Forest(two_tors())
    join_all(forest, range(2))
    forest.remove_link("t0", "t1", 1)
    (first, second) = forest.remove_link("t0", "t1", 2)
    assert first.detached == second.detached == ("t1",)
    assert not forest.graph.has_link("t0", "t1")
    with pytest.raises(KeyError):
        forest.lose_link("t0", "t1", 2)


def test_faster_cables_carry_more():
    graph = two_tors(1)
    graph.add_link("t0", "t1", 2, 2, 30 * MBPS)
    forest = Forest(graph)
    join_all(forest, range(8))
    assert Counter(ports_of(forest, key) for key in range(8)) == {1: 2, 2: 6}


def test_background_load_of_a_cable_sends_groups_to_the_other():
    forest = Forest(two_tors())
    forest.loads.measured([("t0", 1, "t1", 8.0 * MBPS)])
    join_all(forest, range(3))
    assert {ports_of(forest, key) for key in range(3)} == {2}


def test_a_tree_is_adopted_with_the_cables_that_switches_hold():
    forest = Forest(two_tors())
    forest.join("g", "t0", TreeRole.RECEIVER)
    forest.join("g", "t1", TreeRole.RECEIVER)
    assert ports_of(forest, "g") == 1
    forest.adopt("g", [("t0", "t1")], {("t0", "t1"): (2, 2)})
    assert ports_of(forest, "g") == 2
    forest.adopt("g", [("t0", "t1")], {("t0", "t1"): (7, 7)})
    assert ports_of(forest, "g") == 2, "a cable that is not there is none to take"


def test_a_cable_taken_and_given_back_within_one_join_is_none_that_the_tree_left(lab):
    forest = Forest(with_ports(lab.FABRICS["hub-and-ring"](), lambda link: 2))
    nodes = forest.graph.nodes()
    for number in (1, 7, 3):
        before = {frozenset(link) for link in forest.tree("g").links()} if "g" in forest else set()
        change = forest.join("g", nodes[number], TreeRole.RECEIVER)
        assert {frozenset((cable.u, cable.v)) for cable in change.left} <= before
    assert change.removed, "the tree is built anew at the last join"


class Bundles(RuleBasedStateMachine):
    """A forest over a fabric with parallel cables, beside sums from the definition."""

    lab = None
    algorithm = "vsrt"

    @initialize(
        name=st.sampled_from(["fattree4", "avalanche24", "leaf-spine", "tree", "hub-and-ring", "petersen"]),
        cables=st.lists(st.sampled_from([1, 1, 1, 2, 3]), min_size=1, max_size=12),
        groups=st.lists(st.lists(st.tuples(picks, roles), min_size=2, max_size=6), min_size=2, max_size=4),
    )
    def start(self, name, cables, groups):
        number = count()
        self.graph = with_ports(self.lab.FABRICS[name](), lambda _link: cables[next(number) % len(cables)])
        self.kinds = {node: self.graph.kind(node) for node in self.graph.nodes()}
        self.edges = self.graph.nodes(NodeKind.TOR) or self.graph.nodes()
        self.links = list(self.graph.links())
        self.forest = Forest(self.graph, self.algorithm)
        self.last = {}
        for key, members in enumerate(groups):
            for pick, role in members:
                self.join(key, pick, role)

    @rule(key=st.integers(0, 3), pick=picks, role=roles)
    def join(self, key, pick, role):
        self.follow([self.forest.join(key, self.edges[pick % len(self.edges)], role)])

    @rule(key=st.integers(0, 3), pick=picks, role=roles)
    def leave(self, key, pick, role):
        self.follow([self.forest.leave(key, self.edges[pick % len(self.edges)], role)])

    @rule(key=st.integers(0, 3), pick=picks, rate=st.integers(0, 9 * MBPS))
    def measure(self, key, pick, rate):
        self.forest.set_rate(key, self.edges[pick % len(self.edges)], rate)
        self.forest.set_group_rate(key, rate // 2)

    @rule(pick=picks, bps=st.integers(0, 9 * MBPS))
    def see(self, pick, bps):
        link = self.links[pick % len(self.links)]
        self.forest.loads.measured([(link.u, link.u_port, link.v, float(bps))])

    @rule(cuts=st.lists(picks, min_size=1, max_size=4))
    def fail(self, cuts):
        for pick in cuts:
            alive = list(self.graph.links())
            if alive:
                link = alive[pick % len(alive)]
                on_it = self.users(link)
                changes = self.forest.remove_link(link.u, link.v, link.u_port)
                if self.graph.has_link(link.u, link.v):
                    assert {change.key for change in changes} == on_it
                self.follow(changes)

    @rule(pick=picks)
    def lose_switch(self, pick):
        nodes = self.graph.nodes()
        if len(nodes) > 3:
            self.follow(self.forest.remove_node(nodes[pick % len(nodes)]))

    @rule(returns=st.lists(picks, min_size=1, max_size=6))
    def restore(self, returns):
        for pick in returns:
            gone = [link for link in self.links if self.graph.cable(link.u, link.v, link.u_port) is None]
            if gone:
                link = gone[pick % len(gone)]
                for node in (link.u, link.v):
                    self.follow(self.forest.add_node(node, self.kinds[node]))
                is_beside = self.graph.has_link(link.u, link.v)
                changes = self.forest.add_link(*link)
                assert not (is_beside and changes)
                self.follow(changes)

    @rule()
    def rebalance(self):
        before = self.forest.loads.max_utilisation()
        self.follow(self.forest.rebalance())
        assert self.forest.loads.max_utilisation() <= before * (1 + 1e-9)

    def users(self, link):
        number = self.forest.loads.number(link.u, link.v, *link.ports)
        return {key for key, links in self.last.items() if {number, number ^ 1} & set(links.values())}

    def follow(self, changes):
        """Changes tell every cable beside others that a tree left."""
        for change in changes:
            links = {} if change.key not in self.forest else self.numbers(self.forest.tree(change.key))
            before = self.last.get(change.key, {})
            assert {frozenset(link) for link in change.added} == {
                frozenset(link) for link in links.keys() - before.keys()
            }
            assert {frozenset(link) for link in change.removed} == {
                frozenset(link) for link in before.keys() - links.keys()
            }
            moved = {link for link in links.keys() & before.keys() if links[link] != before[link]}
            told = {frozenset((cable.u, cable.v)) for cable in change.left}
            assert len(told) == len(change.left), "a link is left by one cable: that which it had before"
            assert {frozenset(link) for link in moved} <= told
            assert told <= {frozenset(link) for link in moved | (before.keys() - links.keys())}
            self.last[change.key] = links

    def numbers(self, tree):
        index = self.forest.loads.index if tree.cables is None else tree.cables
        return {(u, v): index[u][v] for u, near in tree.adjacent.items() for v in near}

    @invariant()
    def loads_are_those_of_the_definition(self):
        if not hasattr(self, "forest"):
            return
        loads = self.forest.loads
        expected = [0] * len(loads.bps)
        for tree in self.forest:
            self.lab.check_tree(self.graph, tree)
            numbers = self.numbers(tree)
            for (u, v), bps in self.lab.expected_loads([tree], tree.idle_bps).items():
                expected[numbers[u, v]] += bps
        background = loads.background_bps
        assert [bps - background[number] for number, bps in enumerate(loads.bps)] == expected

    @invariant()
    def trees_use_cables_that_are_there(self):
        if not hasattr(self, "forest"):
            return
        loads = self.forest.loads
        for tree in self.forest:
            numbers = self.numbers(tree)
            assert numbers == self.last.get(tree.key, {})
            for (u, v), number in numbers.items():
                assert number in loads.cables(u, v)
                assert numbers[v, u] == number ^ 1
        for link in self.graph.links():
            number = loads.number(link.u, link.v, *link.ports)
            assert loads.links[number] == link and loads.links[number ^ 1] == link.reversed()
            assert {t.key for t in self.forest if number in self.numbers(t).values()} == self.users(link)

    @invariant()
    def the_least_busy_cable_is_named(self):
        if not hasattr(self, "forest"):
            return
        loads = self.forest.loads

        def busyness(number):
            there, back = loads.bps[number], loads.bps[number ^ 1]
            return max(there, back) / loads.capacity_bps[number], there + back, cable_order(loads.links[number])

        for link in self.graph.links():
            named = loads.index[link.u][link.v]
            assert named == min(loads.cables(link.u, link.v), key=busyness)
            assert loads.index[link.v][link.u] == named ^ 1

    @invariant()
    def the_fabric_is_recognised_as_from_nothing(self):
        if hasattr(self, "forest"):
            network = self.forest.algorithm.network
            assert type(network.shape) is type(recognise(self.graph))
            assert set(network.components()) == set(self.graph.nodes())


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_sequences_with_bundles(lab, algorithm):
    case = type("Case", (Bundles,), {"lab": lab, "algorithm": algorithm}).TestCase
    examples = 50 if algorithm == "vsrt" else 8
    case.settings = settings(max_examples=examples, stateful_step_count=20, deadline=None)
    case().runTest()
