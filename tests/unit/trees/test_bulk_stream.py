"""A stream of joins and leaves in bulk against the forest, which follows the same joins and leaves."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.trees.bulk import BulkFabric, Stream, place
from controller.trees.bulk.groups import Groups
from controller.trees.forest import Forest
from controller.trees.network import switch_graph
from controller.trees.tree import Tree, TreeRole
from topology.generators import make
from topology.graph import NodeKind

GROUPS = 6
UNLIKE = [3_333_333, 10**6, 7, 999_999, 10**7, 1]
CROWDING = [300_000_000, 200_000_000, 310_000_000, 100_000_000, 250_000_001, 0]


def wide(lab):
    """Return a fabric in which every pod has three aggregations and every core is over all of them."""
    return lab.pods_and_cores(4, 3, 3, 4, lambda j: range(4))


def headless(lab):
    """Return a fat tree in which an aggregation has lost its cores."""
    graph = lab.fat_tree(6)
    for core in [node for node in graph.neighbours("a0.0") if graph.kind(node) is NodeKind.CORE]:
        graph.remove_link("a0.0", core)
    return graph


FABRICS = {
    "headless": headless,
    "fattree": lambda lab: lab.fat_tree(6),
    "wide": wide,
    "avalanche24": lambda lab: lab.avalanche24(),
    "leaf-spine": lambda lab: lab.leaf_spine(9, 3),
    "tree": lambda lab: lab.k_ary_tree(),
}


def links(fabric, stream, group):
    return {frozenset(fabric.links[i]) for i in stream.links_of(group)}


def connects(cables, tors):
    reached, todo = set(tors[:1]), list(tors[:1])
    while todo:
        node = todo.pop()
        for cable in cables:
            if node in cable and not cable <= reached:
                reached |= cable
                todo += cable
    return reached.issuperset(tors) and len(cables) == max(0, len(reached) - 1)


@pytest.mark.parametrize("name", FABRICS)
@settings(max_examples=25, deadline=None)
@given(
    steps=st.lists(st.tuples(st.integers(0, GROUPS - 1), st.integers(0, 99), st.integers(0, 2)), max_size=150),
    rates_bps=st.sampled_from(
        [[1000] * GROUPS, [1, 2, 3, 4, 5, 6], [3_333_333, 10**6, 7, 999_999, 10**7, 1], CROWDING]
    ),
)
def test_the_trees_are_those_of_the_forest_after_every_join_and_leave(lab, name, steps, rates_bps):
    fabric = BulkFabric.of(FABRICS[name](lab))
    forest = Forest(fabric.graph.copy(), seed=3)
    salts = np.array([Tree(group, 3).salt for group in range(GROUPS)], dtype=np.uint64)
    stream = Stream(fabric, rates_bps, salts=salts)
    members = {}
    for group, rate in enumerate(rates_bps):
        forest.set_group_rate(group, rate)
    for group, number, kind in steps:
        tor = number % len(fabric.tors)
        have = members.get((group, tor), 0)
        if kind:
            stream.join(group, tor)
            forest.join(group, fabric.tors[tor], TreeRole.RECEIVER)
            members[group, tor] = have + 1
        elif have:
            stream.leave(group, tor)
            if have == 1:
                forest.leave(group, fabric.tors[tor], TreeRole.RECEIVER)
            members[group, tor] = have - 1
        tree = forest.tree(group)
        assert links(fabric, stream, group) == ({frozenset(link) for link in tree.links()} if tree else set())
    assert stream.load_bps.tolist() == forest.loads.bps[::2]
    sizes = [0 if forest.tree(group) is None else forest.tree(group).size for group in range(GROUPS)]
    assert stream.tree_links.tolist() == sizes


def test_a_group_that_sends_nothing_is_placed_without_regard_to_loads_as_the_forest_places_it(lab):
    fabric = BulkFabric.of(wide(lab))
    forest = Forest(fabric.graph.copy(), seed=3)
    salts = np.array([Tree(group, 3).salt for group in range(2)], dtype=np.uint64)
    stream = Stream(fabric, [300_000_000, 0], salts=salts)
    forest.set_group_rate(0, 300_000_000)
    forest.set_group_rate(1, 0)
    for group, tor in ((0, 0), (0, 1), (1, 0), (1, len(fabric.tors) - 1)):
        stream.join(group, tor)
        forest.join(group, fabric.tors[tor], TreeRole.RECEIVER)
        assert links(fabric, stream, group) == {frozenset(link) for link in forest.tree(group).links()}


@pytest.mark.parametrize("name", ["fattree", "wide"])
@pytest.mark.parametrize("rates_bps", [(1000,), (1, 2, 3), (9_000_000, 30_000_000)])
def test_with_many_groups_too_and_where_many_links_are_equals(lab, name, rates_bps):
    fabric = BulkFabric.of(FABRICS[name](lab))
    generator = np.random.default_rng(5)
    count, joins = 300, 2000
    groups, tors = generator.integers(0, count, joins), generator.integers(0, len(fabric.tors), joins)
    salts = np.array([Tree(group, 3).salt for group in range(count)], dtype=np.uint64)
    rates = generator.choice(rates_bps, count)
    forest, stream = Forest(fabric.graph.copy(), seed=3), Stream(fabric, rates, salts=salts)
    for group in range(count):
        forest.set_group_rate(group, int(rates[group]))
    for group, tor in zip(groups.tolist(), tors.tolist(), strict=True):
        forest.join(group, fabric.tors[tor], TreeRole.RECEIVER)
    stream.apply(groups, tors, np.ones(joins, dtype=bool))
    assert stream.load_bps.tolist() == forest.loads.bps[::2]


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 999),
    steps=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 7), st.booleans()), max_size=80),
)
def test_with_dead_links_every_tree_connects_and_is_optimal_where_one_is_alive(lab, seed, steps):
    generator = np.random.default_rng(seed)
    graph = lab.fat_tree()
    for link in list(graph.links()):
        if generator.random() < 0.2:
            graph.remove_link(link.u, link.v)
    fabric = BulkFabric.of(graph)
    if fabric is None or fabric.wiring is None:
        return
    stream = Stream(fabric, [5, 6, 7], seed=seed)
    for group, number, comes in steps:
        tor = number % len(fabric.tors)
        present = stream.tors_of(group)
        if comes:
            stream.join(group, tor)
        elif tor in present:
            stream.leave(group, tor)
        tors = stream.tors_of(group)
        placement = place(fabric, Groups.of([0, len(tors)], np.array(tors, dtype=int), [1], len(fabric.tors)))
        if not placement.detached:
            assert connects(links(fabric, stream, group), [fabric.tors[t] for t in tors])
        if not placement.searched:
            assert len(stream.links_of(group)) == placement.tree_links[0]
        cables = [stream.links_of(g) for g in range(3)]
        expected = sum(
            np.bincount(c, minlength=len(fabric.links)) * r for c, r in zip(cables, (5, 6, 7), strict=True)
        )
        assert stream.load_bps.tolist() == list(expected)
        assert stream.tree_links.tolist() == [len(c) for c in cables]
    for group in range(3):
        for tor in stream.tors_of(group):
            while tor in stream.tors_of(group):
                stream.leave(group, tor)
    assert not stream.load_bps.any()


@pytest.mark.parametrize("preset", ["portland-p6", "portland-p12"])
def test_on_a_preset_every_tree_stays_optimal_and_the_loads_return_to_zero(preset):
    fabric = BulkFabric.of(switch_graph(make(preset)))
    generator = np.random.default_rng(4)
    count, changes = 60, 6000
    stream = Stream(fabric, generator.uniform(1e5, 1e7, count))
    present: list[tuple[int, int]] = []
    for step in range(changes):
        if present and generator.random() < 0.45:
            group, tor = present.pop(generator.integers(len(present)))
            stream.leave(group, tor)
        else:
            group, tor = int(generator.integers(count)), int(generator.integers(len(fabric.tors)))
            stream.join(group, tor)
            present.append((group, tor))
        if step % 10 == 0:
            assert len(stream.links_of(group)) == fabric.shape.optimum(fabric.tors[t] for t in stream.tors_of(group))
    optimum = [fabric.shape.optimum(fabric.tors[t] for t in stream.tors_of(group)) for group in range(count)]
    assert stream.tree_links.tolist() == optimum
    groups, tors = np.array(present).T
    stream.apply(groups, tors, np.zeros(len(present), dtype=bool))
    assert not stream.load_bps.any()
    assert not stream.tree_links.any()


def test_members_on_one_switch_leave_one_after_the_other(lab):
    fabric = BulkFabric.of(lab.leaf_spine())
    stream = Stream(fabric, [10])
    stream.apply(np.zeros(3, dtype=int), np.array([0, 1, 1]), np.ones(3, dtype=bool))
    stream.leave(0, 1)
    assert stream.load_bps.sum() == 20
    stream.leave(0, 1)
    assert stream.load_bps.sum() == 0
    with pytest.raises(ValueError, match="group 0 has no member on switch 1"):
        stream.leave(0, 1)


def test_what_is_not_known_is_refused(lab):
    fabric = BulkFabric.of(lab.leaf_spine())
    stream = Stream(fabric, [10])
    for group, tor in ((1, 0), (-1, 0), (0, 4), (0, -1)):
        with pytest.raises(IndexError):
            stream.join(group, tor)
    with pytest.raises(ValueError, match="group 1: rate_bps -1"):
        Stream(fabric, [1, -1])
    apart = lab.k_ary_tree()
    apart.remove_link("r0", "r")
    with pytest.raises(ValueError, match="falls apart"):
        Stream(BulkFabric.of(apart), [1])
