"""Parallel cables: groups spread over them, and one that fails or returns concerns the groups on it alone."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from controller.config.policy import Policy
from controller.config.settings import Limits, Multicast
from controller.multicast.events import LoadsMeasured
from controller.trees.cables import told_apart
from restored_log import read_entries
from topology.events import LinkUp
from topology.generators.draft import Draft
from topology.graph import Graph, NodeKind

POLICY = Policy(
    default_allow=True,
    limits=Limits(reports_per_second_per_port=1e6, unknown_packets_per_second_per_port=1e6),
    multicast=Multicast(fast_leave=True),
)
GROUPS = [bytes((239, 1, 1, number)) for number in range(1, 9)]
FIRST, SECOND = (1, 2), (-1, 1, 2)
"""The cables between both ToRs as `World.links` names them."""


def two_tors() -> Graph:
    """Return two ToRs with two hosts each, ports 1 and 2, and two cables, ports 3 and 4 of both."""
    draft = Draft(1e9)
    tors = [draft.switch(NodeKind.TOR) for _ in range(2)]
    for tor in tors:
        draft.hosts(tor, 2)
    for _ in range(2):
        draft.link(*tors)
    return draft.graph


def used(world, group):
    """Return the ports of both ToRs by which a group goes."""
    forest = world.core.forest
    (cable,) = told_apart(forest.tree(group), forest.loads).values()
    return cable.ports


def all_served(world):
    return all(world.send("h1", group) == {"h3": 1, "h4": 1} for group in GROUPS)


@pytest.fixture
def spread(make_world, version):
    world = make_world(two_tors(), POLICY, version)
    for group in GROUPS:
        for name in ("h3", "h4"):
            world.join(name, group)
        world.send("h1", group)
        world.settle()
    return world


def test_groups_spread_over_both_cables(spread):
    assert Counter(used(spread, group) for group in GROUPS) == {(3, 3): 4, (4, 4): 4}
    assert all_served(spread)
    assert (
        sorted(link[2:] for group in GROUPS for link in spread.core.group_view.tree_links(group))
        == [[3, 3]] * 4 + [[4, 4]] * 4
    )


def test_a_cable_that_fails_costs_the_groups_on_it_alone(spread):
    world = spread
    before = {group: used(world, group) for group in GROUPS}
    rules = {group: dict(world.core.plane.groups[group].rules) for group in GROUPS}
    world.cut(*SECOND)
    world.settle()
    assert world.core.topology.repaired_count == 4
    assert all_served(world)
    for group in GROUPS:
        same = world.core.plane.groups[group].rules == rules[group]
        assert same == (before[group] == (3, 3))


def test_a_cable_that_returns_moves_nobody_and_takes_the_next_groups(spread):
    world = spread
    world.cut(*SECOND)
    world.settle()
    rules = {group: dict(world.core.plane.groups[group].rules) for group in GROUPS}
    world.mend(*SECOND)
    world.settle()
    assert {group: world.core.plane.groups[group].rules for group in GROUPS} == rules
    group = bytes((239, 2, 2, 2))
    world.join("h3", group)
    world.send("h1", group)
    world.settle()
    assert used(world, group) == (4, 4)
    assert world.send("h1", group) == {"h3": 1}


@pytest.mark.parametrize("name", [FIRST, SECOND])
def test_the_log_says_which_cable_a_group_has_whatever_is_beside_it(spread, name):
    world = spread
    for change in (world.cut, world.mend, world.cut, world.mend):
        change(*name)
        world.settle()
        world.advance(1.0)
        values = {entry.key: entry.value for entry in world.log.read()}
        assert not any(world.core.journal_check().search(values, world.now))
        assert sum(len(value["links"]) for key, value in values.items() if key.startswith("tree/")) == len(GROUPS)


def test_every_step_on_the_way_to_another_cable_delivers_each_packet_once_or_not_at_all(spread):
    world = spread
    for _ in range(6):
        name = sorted(world.random.choice([FIRST, SECOND]))
        for change in (world.cut, world.mend):
            change(*name)
            for _ in world.steps():
                for group in GROUPS:
                    assert set(world.send("h1", group).values()) <= {1}
            assert all_served(world)


def test_rebalancing_moves_groups_to_a_cable_that_is_back_without_loss(make_world, version):
    policy = replace(POLICY, multicast=replace(POLICY.multicast, rebalance_interval_s=1.0))
    world = make_world(two_tors(), policy, version)
    world.cut(*SECOND)
    for group in GROUPS:
        for name in ("h3", "h4"):
            world.join(name, group)
        world.send("h1", group)
    world.settle()
    world.mend(*SECOND)
    world.settle()
    assert {used(world, group) for group in GROUPS} == {(3, 3)}
    world.feed(LoadsMeasured(((1, 3, 2, 5e7),)))
    for _ in world.steps(2.0):
        assert all_served(world)
    assert Counter(used(world, group) for group in GROUPS)[4, 4] >= 4


def test_a_drained_switch_keeps_one_cable(make_world):
    world = make_world("bundles", POLICY)
    world.join("h1")
    world.join("h5")
    world.send("h3")
    world.settle()
    world.do("switch-drain", dpid=4)
    world.settle()
    kept = [link for link in world.core.forest.graph.links() if 4 in (link.u, link.v)]
    assert len(kept) == 1
    assert world.send("h3") == {"h1": 1, "h5": 1}


def test_the_log_names_the_cable_of_each_tree(spread):
    world = spread
    world.settle()
    restored = read_entries(world.log.read())
    assert {group.address: group.links[0][2:] for group in restored.groups} == {
        group: used(world, group) for group in GROUPS
    }


def test_after_a_restart_each_group_goes_on_by_its_cable(spread):
    """By their loads alone the groups would come out otherwise: those on the first cable have left, but for one."""
    world = spread
    for group in GROUPS:
        if used(world, group) == (3, 3) and group != GROUPS[0]:
            for name in ("h3", "h4"):
                world.leave(name, group)
    world.advance(1.0)
    by = {group: used(world, group) for group in GROUPS if world.core.forest.tree(group).parent}
    before = world.rules()
    world.restart()
    world.connect_all()
    world.settle()
    assert world.applied == 0
    assert {group: used(world, group) for group in by} == by
    assert world.rules() == before


def test_a_cable_replaces_what_was_at_its_ends_before(spread):
    """Nothing told that both cables were pulled before one of them was plugged in across."""
    world = spread
    world.fabric.cut((1, 3))
    world.fabric.cut((1, 4))
    world.fabric.connect((1, 4), (2, 3))
    world.feed(LinkUp(1, 4, 2, 3, 1e9))
    world.settle()
    assert [link.ports for link in world.core.forest.graph.cables(1, 2)] == [(4, 3)]
    assert all_served(world)
