"""Trees placed in bulk against those that the live controller's algorithm chooses, group by group."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.trees import flows
from controller.trees.builders.vsrt import Vsrt
from controller.trees.bulk import BulkFabric, Groups, place
from controller.trees.network import Network, switch_graph
from controller.trees.tree import Tree, TreeRole
from topology.generators import make
from topology.graph import Graph, NodeKind
from topology.loads import LinkLoads


def crossed():
    """Return a fabric in which the cores of the aggregations differ from pod to pod, and two share a pod."""
    graph = Graph()
    for core in range(3):
        graph.add_node(f"c{core}", NodeKind.CORE)
    for pod in range(3):
        for j in range(2):
            graph.add_node(f"a{pod}.{j}", NodeKind.AGGREGATION)
            for core in {(pod + j) % 3, (pod + 2 * j) % 3}:
                graph.add_link(f"a{pod}.{j}", f"c{core}", capacity_bps=2e7)
        for t in range(3):
            graph.add_node(f"t{pod}.{t}", NodeKind.TOR)
            for j in range(2):
                graph.add_link(f"t{pod}.{t}", f"a{pod}.{j}", capacity_bps=1e7)
    return graph


def uneven(lab):
    """Return a fat tree whose links differ in capacity within a tier."""
    graph = lab.fat_tree(6)
    for number, link in enumerate(list(graph.links())):
        graph.add_link(link.u, link.v, capacity_bps=1e7 * (1 + number % 3))
    return graph


def headless(lab):
    """Return a fat tree in which two aggregations have lost their cores."""
    graph = lab.fat_tree(6)
    for aggregation in ("a0.0", "a1.2"):
        for core in [node for node in graph.neighbours(aggregation) if graph.kind(node) is NodeKind.CORE]:
            graph.remove_link(aggregation, core)
    return graph


FABRICS = {
    "fattree": lambda lab: lab.fat_tree(6),
    "avalanche24": lambda lab: lab.avalanche24(),
    "leaf-spine": lambda lab: lab.leaf_spine(9, 3),
    "crossed": lambda lab: crossed(),
    "uneven": uneven,
    "headless": headless,
}


def draw(generator, tor_count, count, rates_bps):
    sizes = generator.integers(1, 9, count)
    members = generator.integers(0, tor_count, sizes.sum())
    return Groups.of(np.append(0, np.cumsum(sizes)), members, generator.choice(rates_bps, count), tor_count)


def one_by_one(fabric, groups, order):
    """Return each group's tree as `Vsrt.choose` gives it, None where it gives none, and the salts of the trees."""
    network = Network(fabric.graph, LinkLoads(fabric.graph.links()), 7)
    algorithm = Vsrt(network)
    trees = [Tree(g, 7, rate) for g, rate in enumerate(groups.rates_bps.tolist())]
    for g in order:
        tree, tors = trees[g], groups.tors[groups.offsets[g] : groups.offsets[g + 1]]
        for tor in tors:
            tree.terminals[fabric.tors[tor]] = TreeRole.RECEIVER
        plan = algorithm.choose(tree, list(tree.terminals), {}) if len(tors) else None
        if plan is None:
            tree.root = None
            continue
        tree.install(plan)
        flows.charge(tree, network.loads)
    return trees, np.array([tree.salt for tree in trees], dtype=np.uint64), network.loads


def links(fabric, placement, group):
    return {frozenset(fabric.links[i]) for i in placement.links_of(group)}


@pytest.mark.parametrize("name", FABRICS)
@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 999),
    rates_bps=st.sampled_from([[1000], [1, 2, 3], [10**5, 3 * 10**6, 9_999_999]]),
    dead=st.integers(0, 5),
    by_rate=st.booleans(),
)
def test_the_trees_are_those_of_the_live_algorithm(lab, name, seed, rates_bps, dead, by_rate):
    generator = np.random.default_rng(seed)
    graph = FABRICS[name](lab)
    for link in list(graph.links()):
        if generator.random() < dead / 40:
            graph.remove_link(link.u, link.v)
    fabric = BulkFabric.of(graph)
    if fabric is None or fabric.wiring is None:
        return
    groups = draw(generator, len(fabric.tors), 40, rates_bps)
    order = np.argsort(-groups.rates_bps, kind="stable") if by_rate else np.arange(groups.count)
    trees, salts, loads = one_by_one(fabric, groups, order)
    placement = place(fabric, groups, order="rate" if by_rate else "arrival", salts=salts)
    placed = [g for g in range(groups.count) if g not in placement.searched]
    for g in placed:
        assert links(fabric, placement, g) == {frozenset(link) for link in trees[g].links()}
        assert placement.tree_links[g] == trees[g].size
    assert all(trees[g].root is None for g in placement.searched)
    expected = np.array(loads.bps[::2])
    for g, cables in placement.searched.items():
        expected[cables] += groups.rates_bps[g]
    assert placement.load_bps.tolist() == expected.tolist()


@pytest.mark.parametrize("name", FABRICS)
def test_the_compiled_kernel_gives_the_same_trees(lab, name):
    pytest.importorskip("numba")
    graph = FABRICS[name](lab)
    graph.remove_link(*next(graph.links())[:2])
    fabric = BulkFabric.of(graph)
    groups = draw(np.random.default_rng(3), len(fabric.tors), 500, [10, 20, 30, 1_234_567])
    plain, compiled = (place(fabric, groups, seed=5, compiled=choice) for choice in (False, True))
    assert plain.core.tolist() == compiled.core.tolist()
    assert plain.picks.tolist() == compiled.picks.tolist()
    assert plain.load_bps.tolist() == compiled.load_bps.tolist()
    assert plain.tree_links.tolist() == compiled.tree_links.tolist()


@pytest.mark.parametrize("preset", ["portland-p6", "portland-p12"])
def test_every_tree_on_a_preset_is_optimal_and_the_loads_are_the_sums_of_the_rates(preset):
    fabric = BulkFabric.of(switch_graph(make(preset)))
    generator = np.random.default_rng(1)
    groups = draw(generator, len(fabric.tors), 400, np.arange(10**5, 10**7, 9973))
    placement = place(fabric, groups)
    loads = np.zeros(len(fabric.links), dtype=np.int64)
    for g in range(groups.count):
        tors = [fabric.tors[t] for t in groups.tors[groups.offsets[g] : groups.offsets[g + 1]]]
        cables = placement.links_of(g)
        assert len(cables) == placement.tree_links[g] == fabric.shape.optimum(tors)
        loads[cables] += groups.rates_bps[g]
        assert connected({frozenset(fabric.links[i]) for i in cables}, tors)
    assert placement.load_bps.tolist() == loads.tolist()
    trees, salts, _ = one_by_one(fabric, groups, np.argsort(-groups.rates_bps, kind="stable"))
    again = place(fabric, groups, salts=salts)
    assert all(links(fabric, again, g) == set(map(frozenset, trees[g].links())) for g in range(groups.count))


def connected(cables, tors):
    reached, todo = {tors[0]}, [tors[0]]
    while todo:
        node = todo.pop()
        for cable in cables:
            if node in cable:
                (other,) = cable - {node}
                if other not in reached:
                    reached.add(other)
                    todo.append(other)
    return reached.issuperset(tors) and len(cables) == len(reached) - 1


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 999))
def test_sizes_are_exact(lab, seed):
    generator = np.random.default_rng(seed)
    fabric = BulkFabric.of((lab.avalanche24, lab.fat_tree, lab.k_ary_tree)[seed % 3]())
    groups = Groups.of([0, 5], generator.integers(0, len(fabric.tors), 5), [1], len(fabric.tors))
    tors = [fabric.tors[t] for t in groups.tors]
    placement = place(fabric, groups)
    assert placement.tree_links.tolist() == [lab.dreyfus_wagner(fabric.graph, tors)]
    assert connected(links(fabric, placement, 0), tors)


def test_in_a_graph_without_a_cycle_every_tree_is_the_union_of_its_paths(lab):
    graph = lab.k_ary_tree()
    fabric = BulkFabric.of(graph)
    groups = draw(np.random.default_rng(2), len(fabric.tors), 60, [5, 7])
    placement = place(fabric, groups)
    loads = np.zeros(len(fabric.links), dtype=np.int64)
    for g in range(groups.count):
        tors = [fabric.tors[t] for t in groups.tors[groups.offsets[g] : groups.offsets[g + 1]]]
        _, tree = lab.joined(graph, tors)
        assert links(fabric, placement, g) == {frozenset(link) for link in tree.links()}
        assert placement.tree_links[g] == tree.size
        loads[placement.links_of(g)] += groups.rates_bps[g]
    assert placement.load_bps.tolist() == loads.tolist()


def test_what_no_optimal_tree_reaches_is_searched_and_who_is_cut_off_is_named(lab):
    graph = lab.fat_tree()
    # Pod 0: ToR 0 keeps aggregation 0 only, ToR 1 aggregation 1 only; ToR 1 of pod 1 keeps nothing.
    for u, v in (("t0.0", "a0.1"), ("t0.1", "a0.0"), ("t1.1", "a1.0"), ("t1.1", "a1.1")):
        graph.remove_link(u, v)
    fabric = BulkFabric.of(graph)
    number = {tor: i for i, tor in enumerate(fabric.tors)}
    members = [number[tor] for tor in ("t0.0", "t0.1", "t2.0", "t1.0", "t1.1", "t2.0", "t3.0")]
    placement = place(fabric, Groups.of([0, 3, 6, 7], members, [5, 6, 7], len(fabric.tors)))
    assert connected(links(fabric, placement, 0), ["t0.0", "t0.1", "t2.0"])
    assert placement.detached == {1: ("t1.1",)}
    assert connected(links(fabric, placement, 1), ["t1.0", "t2.0"])
    assert placement.tree_links.tolist() == [len(placement.links_of(g)) for g in range(3)]
    assert placement.load_bps.sum() == 5 * placement.tree_links[0] + 6 * placement.tree_links[1]


def test_a_graph_that_takes_searches_is_no_bulk_fabric(lab):
    assert BulkFabric.of(lab.petersen()) is None
    weighted = lab.fat_tree()
    link = next(weighted.links())
    weighted.add_link(link.u, link.v, weight=2.0)
    assert BulkFabric.of(weighted) is None
    with pytest.raises(ValueError, match="hosts"):
        BulkFabric.of(make("avalanche24"))


def test_the_bulk_form_takes_at_most_64_bytes_per_group():
    fabric = BulkFabric.of(switch_graph(make("portland-p6")))
    generator = np.random.default_rng(0)
    sizes = generator.integers(3, 21, 3000)
    members = generator.integers(0, len(fabric.tors), sizes.sum())
    groups = Groups.of(np.append(0, np.cumsum(sizes)), members, generator.uniform(1e5, 1e7, 3000), len(fabric.tors))
    assert place(fabric, groups).bytes_per_group <= 64


@pytest.mark.parametrize(
    ("offsets", "tors", "rates_bps", "says"),
    [
        ([0, 1, 2], [0, 9], [1, 1], "group 1: switch 9 is not in 0..3"),
        ([0, 1, 2], [0, -1], [1, 1], "group 1: switch -1"),
        ([0, 1], [0], [-1], "group 0: rate_bps -1"),
        ([0, 1, 1], [0], [1, float("nan")], "group 1: rate_bps nan"),
        ([0, 1], [0.5], [1], "integers"),
        ([0, 1, 1], [0], [1, 1e19], "group 1: rate_bps 1e.19 is too large"),
        ([0, 1], [0], [1, 2], "2 rates for 1 groups"),
        ([0, 2], [0], [1], "offsets"),
        ([0, 2, 1], [0], [1, 1], "offsets"),
    ],
)
def test_groups_that_are_wrong_are_refused_by_number(offsets, tors, rates_bps, says):
    with pytest.raises(ValueError, match=says):
        Groups.of(offsets, tors, rates_bps, 4)


def test_there_may_be_no_groups_and_groups_without_members(lab):
    fabric = BulkFabric.of(lab.avalanche24())
    for offsets, rates_bps in (([0], []), ([0, 0, 0], [1, 2])):
        placement = place(fabric, Groups.of(offsets, [], rates_bps, len(fabric.tors)))
        assert not placement.load_bps.any()
        assert len(placement.uses()[0]) == placement.tree_links.sum() == 0


def test_members_on_one_switch_count_once_and_groups_may_be_empty(lab):
    groups = Groups.of([0, 4, 4, 5], [3, 1, 3, 1, 2], [1.4, 2, 3], 4)
    assert groups.offsets.tolist() == [0, 2, 2, 3]
    assert groups.tors.tolist() == [1, 3, 2]
    placement = place(BulkFabric.of(lab.leaf_spine()), groups)
    assert placement.tree_links.tolist() == [2, 0, 0]
    assert placement.load_bps.sum() == 2
    with pytest.raises(ValueError, match="'size'"):
        place(BulkFabric.of(lab.leaf_spine()), groups, order="size")
