"""What a first member at a switch changes, or the last one, is told from its own way, and is what the tree says."""

from __future__ import annotations

import random

import pytest

from controller.multicast.duties import group_duties
from controller.multicast.graft import grafted_duties, pruned_duties
from controller.trees.tree import Change, Role
from controller.wire.addresses import parse_ip

from .conftest import GRAPHS, World

GROUPS = [parse_ip("239.1.2.3"), parse_ip("239.1.2.4")]


def whole(world: World, group: bytes) -> dict:
    """Return what each switch does for a group, by its whole tree."""
    plane = world.core.plane
    return group_duties(plane.groups[group], plane.forest.tree(group), plane.forest.graph.port, {})


@pytest.mark.parametrize("graph", sorted(GRAPHS))
@pytest.mark.parametrize("seed", range(6))
def test_switches_do_what_the_whole_tree_says_after_every_join_and_leave(graph, seed):
    dice = random.Random(seed)
    world = World(GRAPHS[graph](), version={1: 1} if seed % 2 else 4, seed=seed)
    names = sorted(world.hosts)
    member: set[tuple[str, bytes]] = set()
    grafted = 0
    for _ in range(60):
        name, group = dice.choice(names), dice.choice(GROUPS)
        if dice.random() < 0.15:
            world.send(name, group)
        elif (name, group) in member:
            world.leave(name, group)
            member.discard((name, group))
        else:
            world.join(name, group)
            member.add((name, group))
            grafted += 1
        if dice.random() < 0.5:
            world.settle(dice.choice((0.6, 3.0)))
        for address, known in world.core.plane.groups.items():
            assert known.duties == whole(world, address)
    world.settle(3.0)
    for address, known in world.core.plane.groups.items():
        assert known.duties == whole(world, address)
        wanted = {(dpid, key): rule for dpid, rules in known.rules.items() for key, rule in rules.items()}
        held = {(dpid, key): rule for dpid, rules in world.rules().items() for key, rule in rules.items()}
        assert wanted.items() <= held.items()
    assert grafted > 10


def test_where_all_receivers_were_on_one_side_links_get_outputs_back():
    """A sender's tree leads to one receiver only; the next receiver, at the sender, is reached from the first too."""
    world = World(GRAPHS["tree"]())
    far, near = sorted(world.hosts)[0], sorted(world.hosts)[-1]
    world.join(far)
    world.send(near)
    world.settle()
    (group,) = world.core.plane.groups.values()
    before = dict(group.duties)
    world.join(near)
    world.settle()
    changed = [dpid for dpid, duty in group.duties.items() if before.get(dpid) != duty]
    assert len(changed) == len(world.core.forest.tree(group.address).adjacent)
    assert world.send(far) == {near: 1}
    assert world.send(near) == {far: 1}


def test_a_join_asks_for_the_ports_of_its_own_way_alone():
    world = World(GRAPHS["fattree"]())
    for name in sorted(world.hosts)[:-1]:
        world.join(name)
    world.settle()
    (group,) = world.core.plane.groups.values()
    forest, last = world.core.forest, world.hosts[sorted(world.hosts)[-1]]
    for host in world.hosts.values():
        if host.dpid == last.dpid and host != last:
            world.leave(host.name)
    world.advance(20.0)
    change = forest.join(group.address, last.dpid, Role.RECEIVER)
    assert last.dpid not in group.interests
    group.set_interest(last.dpid, last.port_no, next(iter(next(iter(group.interests.values())).values())))
    asked = []

    def port(u, v):
        asked.append((u, v))
        return forest.graph.port(u, v)

    tree = forest.tree(group.address)
    duties = grafted_duties(group, tree, change, last.dpid, port)
    assert duties is not None
    assert {**group.duties, **duties} == whole(world, group.address)
    assert len(asked) <= 2 * len(change.added) < len(tree.adjacent)


@pytest.mark.parametrize("staying", [1, 2, 5])
def test_a_leave_asks_for_the_ports_of_its_own_way_alone(staying):
    world = World(GRAPHS["fattree"]())
    names = sorted(world.hosts)
    last = world.hosts[names[-1]]
    for name in names[:staying]:
        world.join(name)
    world.join(last.name)
    world.settle()
    world.advance(20.0)
    (group,) = world.core.plane.groups.values()
    forest = world.core.forest
    change = forest.leave(group.address, last.dpid, Role.RECEIVER)
    group.set_interest(last.dpid, last.port_no, None)
    asked = []

    def port(u, v):
        asked.append((u, v))
        return forest.graph.port(u, v)

    duties = pruned_duties(group, forest.tree(group.address), change, last.dpid, port)
    assert duties is not None
    after = {dpid: duty for dpid, duty in {**group.duties, **duties}.items() if duty is not None}
    assert after == whole(world, group.address)
    assert {dpid for link in change.removed for dpid in link} <= duties.keys()
    if staying == 5:
        assert len(asked) <= 1


def test_the_last_receiver_beside_a_sender_is_no_matter_of_its_own_way():
    """Nobody is left to serve, so that all switches of the sender's tree stop sending."""
    world = World(GRAPHS["fattree"]())
    names = sorted(world.hosts)
    world.join(names[-1])
    world.send(names[0])
    world.settle()
    (group,) = world.core.plane.groups.values()
    world.leave(names[-1])
    world.advance(5.0)
    assert group.duties == whole(world, group.address)
    assert [duty.channels for duty in group.duties.values()] == [()]


def test_a_tree_that_changed_otherwise_is_looked_at_as_a_whole():
    world = World(GRAPHS["fattree"]())
    first, second = sorted(world.hosts)[0], sorted(world.hosts)[-1]
    world.join(first)
    world.join(second)
    world.settle()
    (group,) = world.core.plane.groups.values()
    tree, port = world.core.forest.tree(group.address), world.core.forest.graph.port
    dpid = world.hosts[second].dpid
    link = next(iter(tree.links()))
    assert grafted_duties(group, tree, Change(group.address), dpid, port) is not None
    assert grafted_duties(group, tree, Change(group.address, (), (link,)), dpid, port) is None
    assert grafted_duties(group, tree, Change(group.address, (link, link)), dpid, port) is None
    assert grafted_duties(group, tree, Change(group.address, (), (), (dpid,)), dpid, port) is None
    assert grafted_duties(group, tree, Change(group.address, (), (), (), (dpid,)), dpid, port) is None
    for change in (
        Change(group.address, (link,)),
        Change(group.address, (), (("somewhere", "else"),)),
        Change(group.address, (), (), (dpid,)),
        Change(group.address, (), (), (), (dpid,)),
    ):
        assert pruned_duties(group, tree, change, dpid, port) is None
