"""Tree versions: one that a switch may still hold entries of is not taken for a new tree."""

from __future__ import annotations

import pytest

from controller.events import DeadlineReached
from controller.rules.compile import TREE_VERSIONS, tree_version_of
from controller.rules.pipeline import SENDER_COOKIE_BIT
from controller.wire.addresses import parse_ip

GROUP = parse_ip("239.1.2.3")


def versions_held(world):
    """The versions of the group's entries that any switch has in its tables."""
    rules = [rule for table in world.rules().values() for rule in table.values()]
    return {
        tree_version_of(rule.key.match)
        for rule in rules
        if rule.key.match.ip_dst == GROUP
        and rule.key.match.eth_dst is not None
        and not rule.cookie & SENDER_COOKIE_BIT
    }


def carry_out(world, stalled):
    """Let all switches but one do what they were told; no time passes."""
    while busy := [dpid for dpid, queue in world.queues.items() if queue and dpid != stalled]:
        world.step(busy[0])


@pytest.mark.parametrize("stalled_at", ["sender", "member"])
def test_a_version_is_not_taken_while_a_switch_has_not_given_up_its_entries(make_world, version, stalled_at):
    """The tree moves to and fro between spines, and one leaf carries nothing out."""
    world = make_world("leaf-spine", version=version)
    world.join("h5")
    world.send("h1")
    world.settle()
    group = world.core.plane.groups[GROUP]
    leaves = {world.hosts[name].dpid for name in ("h1", "h5")}
    stalled = world.hosts["h1" if stalled_at == "sender" else "h5"].dpid
    taken = []
    for _ in range(3 * TREE_VERSIONS):
        (spine,) = {node for link in world.core.forest.tree(GROUP).links() for node in link} - leaves
        before, held = group.tree_version, versions_held(world)
        world.do("switch-drain", dpid=spine)
        if group.tree_version != before:
            taken.append(group.tree_version)
            assert group.tree_version not in held
        carry_out(world, stalled)
        world.do("switch-undrain", dpid=spine)
        carry_out(world, stalled)
    assert 0 < len(taken) < TREE_VERSIONS, "none is free before the leaf has given up what it holds"
    world.settle()
    assert world.send("h1") == {"h5": 1}
    assert versions_held(world) == {group.tree_version}
    (spine,) = {node for link in world.core.forest.tree(GROUP).links() for node in link} - leaves
    world.do("switch-drain", dpid=spine)
    assert group.tree_version != taken[-1], "now there is one"


def test_a_version_is_not_taken_while_a_switch_that_the_tree_left_holds_entries_of_it(make_world, version):
    """The tree left it in place, and then went on to other versions without it."""
    world = make_world("leaf-spine", version=version)
    world.join("h3")
    world.join("h5")
    world.send("h1")
    world.settle()
    group, left = world.core.plane.groups[GROUP], world.hosts["h3"].dpid
    leaves = {host.dpid for host in world.hosts.values()}
    world.leave("h3")
    while world.core.plane.groups[GROUP].interests.get(left):
        world.now = max(world.now, world.core.next_deadline())
        world.feed(DeadlineReached())
        carry_out(world, left)
    first = group.tree_version
    taken = set()
    for _ in range(TREE_VERSIONS + 2):
        (spine,) = {node for link in world.core.forest.tree(GROUP).links() for node in link} - leaves
        before = group.tree_version
        for action in ("switch-drain", "switch-undrain"):
            world.do(action, dpid=spine)
            for _ in range(3):
                carry_out(world, left)
                world.now += 0.03
                world.feed(DeadlineReached())
        assert group.tree_version != before
        taken.add(group.tree_version)
    assert taken == set(range(TREE_VERSIONS)) - {first}
