"""Single operations: spreading by load, repair that keeps what works, rates, rebalancing."""

import pytest

from controller.trees.forest import Forest
from controller.trees.tree import Change, TreeRole
from topology.graph import Graph, NodeKind

BOTH = TreeRole.RECEIVER | TreeRole.SENDER


def test_roles_add_up_and_repeat_without_effect(lab):
    forest = Forest(lab.leaf_spine())
    assert forest.join("g", "t0", TreeRole.SENDER) == Change("g")
    assert forest.join("g", "t0", TreeRole.SENDER).empty
    assert forest.join("g", "t0", TreeRole.RECEIVER).empty
    tree = forest.tree("g")
    assert tree.terminals == {"t0": BOTH}
    assert tree.receivers == tree.senders == {"t0"}
    assert tree.adjacent == {"t0": set()}
    assert forest.leave("g", "t0", TreeRole.SENDER).empty
    assert forest.tree("g").senders == frozenset()
    assert forest.leave("g", "t9", BOTH).empty
    assert forest.leave("none", "t0", BOTH).empty
    assert forest.leave("g", "t0", BOTH).empty
    assert forest.tree("g") is None
    with pytest.raises(ValueError, match="role"):
        forest.join("g", "t0", TreeRole(0))
    assert len(forest) == 0


def test_changes_name_the_links_from_the_leaf_up(lab):
    forest = Forest(lab.leaf_spine(spines=1))
    forest.join("g", "t0", TreeRole.RECEIVER)
    assert forest.join("g", "t1", TreeRole.RECEIVER).added == (("t1", "s0"), ("s0", "t0"))
    assert forest.join("g", "t2", TreeRole.RECEIVER).added == (("t2", "s0"),)
    assert forest.leave("g", "t1", TreeRole.RECEIVER).removed == (("t1", "s0"),)


def test_equal_trees_go_where_the_busiest_link_is_least_busy(lab):
    forest = Forest(lab.leaf_spine(leaves=2, spines=4))
    for group in range(8):
        forest.join(group, "t0", TreeRole.SENDER)
        forest.set_rate(group, "t0", 1e6)
        forest.join(group, "t1", TreeRole.RECEIVER)
    assert [forest.loads.load_bps("t0", f"s{i}") for i in range(4)] == [2_000_000] * 4
    assert [forest.loads.load_bps(f"s{i}", "t1") for i in range(4)] == [2_000_000] * 4
    assert [forest.loads.load_bps(f"s{i}", "t0") for i in range(4)] == [0] * 4


def test_the_direction_counts(lab):
    forest = Forest(lab.leaf_spine(leaves=2, spines=2))
    for group, (sender, receiver) in enumerate([("t0", "t1"), ("t0", "t1"), ("t1", "t0"), ("t1", "t0")]):
        forest.join(group, sender, TreeRole.SENDER)
        forest.join(group, receiver, TreeRole.RECEIVER)
    assert forest.loads.max_utilisation() == 1e6 / 1e9


def test_core_and_aggregation_are_both_chosen_on_avalanche24(lab):
    forest = Forest(lab.avalanche24())
    for group in range(4):
        forest.join(group, "t0.0", TreeRole.SENDER)
        forest.join(group, "t1.0", TreeRole.RECEIVER)
    up = {(a, c): forest.loads.load_bps(a, c) for a in ("a0.0", "a0.1") for c in ("c0", "c1")}
    assert forest.loads.load_bps("t0.0", "a0.0") == forest.loads.load_bps("t0.0", "a0.1") == 2_000_000
    assert max(up.values()) <= 2_000_000
    assert forest.loads.load_bps("a1.0", "t1.0") == forest.loads.load_bps("a1.1", "t1.0") == 2_000_000


@pytest.mark.parametrize(("rate_bps", "moves"), [(2e6, True), (5e5, False)])
def test_a_join_that_would_crowd_a_link_to_the_core_moves_the_tree_where_that_matters(lab, rate_bps, moves):
    forest = Forest(lab.pods_and_cores(4, 1, 1, 2, lambda j: (0, 1)), default_rate_bps=rate_bps)

    def core_of_tree_between(group, *pods):
        for pod in pods:
            forest.join(group, f"t{pod}.0", TreeRole.RECEIVER)
        return forest.tree(group).core

    core = core_of_tree_between("first", 0, 1)
    for group in range(20):  # a group that ties put under the same core as the first one
        if core_of_tree_between(group, 2, 3) == core:
            break
        for pod in (2, 3):
            forest.leave(group, f"t{pod}.0", TreeRole.RECEIVER)
    change = forest.join(group, "t0.0", TreeRole.RECEIVER)
    assert (forest.tree(group).core != core) is bool(change.removed) is moves
    assert forest.tree(group).size == 6
    assert forest.loads.load_bps("a0.0", core) == (1 if moves else 2) * rate_bps


def test_a_link_off_the_tree_concerns_nobody_and_one_on_it_only_its_groups(lab):
    forest = Forest(lab.fat_tree())
    forest.join(1, "t0.0", TreeRole.RECEIVER)
    forest.join(1, "t0.1", TreeRole.RECEIVER)
    forest.join(2, "t1.0", TreeRole.RECEIVER)
    forest.join(2, "t1.1", TreeRole.RECEIVER)
    used = next(iter(forest.tree(1).adjacent["t0.0"]))
    other = next(a for a in ("a0.0", "a0.1") if a != used)
    assert forest.remove_link("t0.0", other) == []
    assert forest.add_link("t0.0", other) == []
    (change,) = forest.remove_link("t0.0", used)
    assert change.key == 1
    assert forest.tree(1).adjacent[other] == {"t0.0", "t0.1"}
    assert forest.add_link("t0.0", used) == []


def test_repair_keeps_the_links_of_receivers_that_are_not_concerned(lab):
    graph = lab.avalanche24()
    forest, tree = lab.joined(graph, ["t0.0", "t1.0", "t1.1", "t2.0", "t2.1"])
    core = tree.core
    used = next(a for a in ("a0.0", "a0.1") if a in tree.adjacent)
    other = "a0.1" if used == "a0.0" else "a0.0"
    (change,) = forest.remove_link(used, core)
    assert set(map(frozenset, change.removed)) == {frozenset((used, core)), frozenset(("t0.0", used))}
    assert set(map(frozenset, change.added)) == {frozenset((other, core)), frozenset(("t0.0", other))}
    assert tree.size == 8


def test_a_tree_that_had_to_be_larger_is_optimal_again_when_the_link_returns(lab):
    graph = lab.leaf_spine(leaves=3, spines=2)
    graph.remove_link("t0", "s1")
    graph.remove_link("t2", "s0")
    forest, tree = lab.joined(graph, ["t0", "t1", "t2"])
    assert tree.size == 4
    assert [c.key for c in forest.add_link("t2", "s0")] == [b"g"]
    assert tree.size == 3


def test_a_tree_that_was_never_optimal_becomes_so_when_a_core_link_appears(lab):
    graph = lab.fat_tree()
    for link in (("a0.0", "c0"), ("a0.0", "c1"), ("a1.1", "c2"), ("a1.1", "c3")):
        graph.remove_link(*link)
    forest, tree = lab.joined(graph, ["t0.0", "t1.0"])
    assert tree.size > 4
    forest.add_link("a0.0", "c0")
    assert tree.size == 4
    lab.check_forest(forest)


def test_two_halves_of_a_pod_that_are_joined_again_do_without_the_core(lab):
    graph = lab.fat_tree()
    graph.remove_link("t0.0", "a0.1")
    graph.remove_link("t0.1", "a0.0")
    forest, tree = lab.joined(graph, ["t0.0", "t0.1"])
    assert tree.size > 2
    forest.add_link("t0.1", "a0.0")
    assert tree.size == 2
    lab.check_forest(forest)


def test_groups_that_joined_before_the_fabric_was_discovered_end_optimal(lab):
    graph = lab.fat_tree()
    links = list(graph.links())
    for link in links:
        graph.remove_link(link.u, link.v)
    forest, tree = lab.joined(graph, ["t0.0", "t0.1", "t1.0", "t3.1"])
    assert len(tree.detached) == 3
    for link in links:
        forest.add_link(*link)
        lab.check_forest(forest)
    assert tree.size == 7
    assert not tree.detached


def test_a_switch_found_to_have_hosts_counts_as_tor_from_then_on(lab):
    graph = lab.leaf_spine()
    plain = Graph()
    for node in graph.nodes():
        plain.add_node(node)
    for link in graph.links():
        plain.add_link(*link)
    forest = Forest(plain)
    for node in graph.nodes(NodeKind.TOR):
        forest.add_node(node, NodeKind.TOR)
        forest.join("g", node, TreeRole.RECEIVER)
    assert forest.tree("g").size == 4


def test_rates_follow_measurement_and_bad_ones_are_refused(lab):
    forest, _ = lab.joined(lab.leaf_spine(spines=1), ["t1"])
    forest.join(b"g", "t0", TreeRole.SENDER)
    assert forest.loads.load_bps("t0", "s0") == 1_000_000
    forest.set_rate(b"g", "t0", 5e6)
    forest.set_rate(b"g", "t1", 9e6)
    forest.set_rate(b"none", "t0", 9e6)
    assert forest.loads.load_bps("s0", "t1") == 5_000_000
    assert forest.loads.load_bps("t1", "s0") == 0
    for bad in (-1.0, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="rate_bps"):
            forest.set_rate(b"g", "t0", bad)
    lab.check_forest(forest)


def test_rebalancing_moves_as_few_trees_as_lower_the_maximum(lab):
    forest = Forest(lab.leaf_spine(leaves=2, spines=2))
    for group in range(4):
        forest.join(group, "t0", TreeRole.SENDER)
        forest.join(group, "t1", TreeRole.RECEIVER)
    together = [g for g in range(4) if "s0" in forest.tree(g).adjacent]
    assert len(together) == 2
    for group in range(4):
        forest.set_rate(group, "t0", 8e6 if group in together else 1e6)
    assert forest.loads.max_utilisation() == 16e6 / 1e9
    assert forest.rebalance(improvement=0.9) == []
    changes = forest.rebalance()
    assert len(changes) == 2
    assert forest.loads.max_utilisation() == 9e6 / 1e9
    assert forest.rebalance() == []
    lab.check_forest(forest)


def test_rebalancing_leaves_other_algorithms_alone(lab):
    forest, _ = lab.joined(lab.leaf_spine(), ["t0", "t1"], "pim-sm-fixed-core")
    assert forest.rebalance() == []


def test_absent_links_and_nodes_are_our_own_misuse(lab):
    forest = Forest(lab.leaf_spine())
    with pytest.raises(KeyError):
        forest.remove_link("t0", "t1")
    with pytest.raises(KeyError):
        forest.remove_node("nobody")
    with pytest.raises(KeyError):
        forest.rebuild("nobody")


def test_a_member_of_an_unknown_switch_waits_for_it(lab):
    graph = lab.leaf_spine()
    links = [graph.link("t3", s) for s in ("s0", "s1")]
    graph.remove_node("t3")
    forest = Forest(graph)
    forest.join("g", "t0", TreeRole.RECEIVER)
    forest.join("g", "t3", BOTH)
    assert forest.tree("g").detached == {"t3"}
    forest.add_node("t3", NodeKind.TOR)
    (change,) = forest.add_link(*links[0])
    assert set(change.attached) | set(change.detached) == {"t3"} or change.attached == ("t0",)
    assert forest.tree("g").detached == set()


def test_a_join_after_pods_were_numbered_anew_keeps_to_the_aggregation_in_use(lab):
    graph = lab.avalanche24()
    forest, tree = lab.joined(graph, ["t1.0", "t1.1"])
    used = next(iter(tree.adjacent["t1.0"]))
    other = "a1.1" if used == "a1.0" else "a1.0"
    # The lowest switch names a pod; without it the pod of this tree has another number.
    for node in ("a0.0", "a0.1", other):
        forest.remove_node(node)
    forest.leave(b"g", "t1.1", TreeRole.RECEIVER)
    forest.join(b"g", "t2.0", TreeRole.RECEIVER)
    forest.add_node("a0.0", NodeKind.AGGREGATION)
    forest.add_node("a0.1", NodeKind.AGGREGATION)
    forest.add_node(other, NodeKind.AGGREGATION)
    forest.add_link(other, "t1.1")
    forest.add_link(other, tree.core)
    change = forest.join(b"g", "t1.1", TreeRole.RECEIVER)
    assert change.added == (("t1.1", used),)
    lab.check_forest(forest)


def test_a_group_without_a_sender_is_accounted_with_its_own_rate(lab):
    forest = Forest(lab.leaf_spine(leaves=3, spines=1))
    forest.set_group_rate("g", 4e6)
    for node in ("t0", "t1"):
        forest.join("g", node, TreeRole.RECEIVER)
        forest.join("other", node, TreeRole.RECEIVER)
    assert forest.loads.load_bps("t0", "s0") == forest.loads.load_bps("s0", "t0") == 5_000_000
    forest.set_group_rate("g", 2e6)
    assert forest.loads.load_bps("t0", "s0") == 3_000_000
    forest.join("g", "t2", TreeRole.SENDER)
    forest.set_group_rate("g", 7e6)
    assert forest.loads.load_bps("t2", "s0") == forest.loads.load_bps("s0", "t0") - 1_000_000 == 1_000_000
    forest.leave("g", "t2", TreeRole.SENDER)
    assert forest.loads.load_bps("s0", "t1") == 8_000_000
    for node in ("t0", "t1"):
        forest.leave("g", node, TreeRole.RECEIVER)
        forest.leave("other", node, TreeRole.RECEIVER)
    assert forest.loads.max_utilisation() == 0.0
    with pytest.raises(ValueError, match="rate_bps"):
        forest.set_group_rate("g", -1.0)


def test_the_larger_of_two_groups_without_senders_is_placed_first(lab):
    forest = Forest(lab.leaf_spine(leaves=2, spines=2))
    for group, rate_bps in (("small", 1e6), ("large", 9e6), ("middle", 5e6)):
        forest.set_group_rate(group, rate_bps)
        forest.join(group, "t0", TreeRole.RECEIVER)
        forest.join(group, "t1", TreeRole.RECEIVER)
    forest.remove_link("t0", "s0")
    forest.add_link("t0", "s0")
    assert forest.loads.load_bps("t0", "s1") == 15_000_000
    forest.rebalance()
    assert sorted(forest.loads.load_bps("t0", s) for s in ("s0", "s1")) == [6_000_000, 9_000_000]


@pytest.mark.parametrize(("rate_bps", "keeps"), [(4e6, True), (6e6, False)])
def test_a_repair_keeps_links_but_not_at_the_price_of_an_overloaded_one(lab, rate_bps, keeps):
    graph = lab.pods_and_cores(2, 1, 2, 4, lambda j: (2 * j, 2 * j + 1))
    for pod in range(2):
        for j in range(2):
            graph.add_link(f"t{pod}.0", f"a{pod}.{j}", capacity_bps=1e9)
    forest = Forest(graph)
    for group in range(4):
        forest.set_group_rate(group, rate_bps)
        for node in ("t0.0", "t1.0"):
            forest.join(group, node, TreeRole.RECEIVER)
    by_core = {forest.tree(group).core: group for group in range(4)}
    assert len(by_core) == 4
    # Core c0 fails for one pod, c1 over the same aggregations is busy, c2 over the others is free.
    for node in ("t0.0", "t1.0"):
        forest.leave(by_core["c2"], node, TreeRole.RECEIVER)
    (change,) = forest.remove_link("a0.0", "c0")
    assert change.key == by_core["c0"]
    assert forest.tree(change.key).core == ("c1" if keeps else "c2")
    lab.check_forest(forest, default_bps=rate_bps)
