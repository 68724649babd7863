"""What a switch's first member or sender changes, or its last, is told from its way, and is what the tree says."""

from __future__ import annotations

import copy
import random

import pytest

from controller.multicast import groups
from controller.multicast.duties import group_duties
from controller.multicast.graft import grafted_duties, pruned_duties, sender_duties
from controller.multicast.tree_links import port_of
from controller.trees.tree import Change, TreeRole
from controller.wire.addresses import parse_ip

from .conftest import GRAPHS, World

GROUPS = [parse_ip("239.1.2.3"), parse_ip("239.1.2.4")]

watched = pytest.mark.skipif(
    not groups.__file__.endswith(".py"), reason="methods of what is compiled cannot be replaced, to see their calls"
)


def forget_sender(world: World, name: str) -> None:
    """Have the core forget what a host sends."""
    host = world.hosts[name]
    for effect in world.core.senders.port_gone(host.dpid, host.port_no, world.now, host.mac):
        world.perform(effect)


def whole(world: World, group: bytes) -> dict:
    """Return what each switch does for a group, by its whole tree."""
    plane = world.core.plane
    forest, trees = plane.forest, list(plane.islands.trees(group))
    return group_duties(plane.groups[group], trees, port_of(trees, None, forest.graph, forest.loads), {})


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
        chance = dice.random()
        if chance < 0.2:
            world.send(name, group)
        elif chance < 0.25:
            forget_sender(world, name)
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
        wanted = {(dpid, rule.key): rule for dpid, rules in known.rules.items() for rule in rules}
        held = {(dpid, key): rule for dpid, rules in world.rules().items() for key, rule in rules.items()}
        assert wanted.items() <= held.items()
    assert grafted > 10


@watched
@pytest.mark.parametrize("graph", sorted(GRAPHS))
@pytest.mark.parametrize("seed", range(4))
def test_what_is_known_of_links_that_were_left_chooses_the_same_way_as_looking_at_all_of_them(graph, seed):
    """Members come and go without a pause for switches to confirm, links fail and return."""
    dice = random.Random(seed)
    world = World(GRAPHS[graph](), seed=seed)
    transitions, known_count = world.core.plane.transitions, 0
    choose = transitions.choose

    def chosen(group, tree, changes, loads, now):
        nonlocal known_count
        again = copy.copy(group)
        for name in ("left_links", "unconfirmed", "old_versions"):
            setattr(again, name, copy.copy(getattr(group, name)))
        again.left_is_within = False
        known_count += group.left_is_within
        way = choose(group, tree, changes, loads, now)
        assert choose(again, tree, changes, loads, now) is way
        assert (again.left_links, again.tree_version) == (group.left_links, group.tree_version)
        return way

    transitions.choose = chosen
    names, links = sorted(world.hosts), sorted(sorted(name) for name in world.links)
    member: set[str] = set()
    for _ in range(80):
        name, chance = dice.choice(names), dice.random()
        if chance < 0.1:
            world.send(name)
        elif chance < 0.16:
            link = dice.choice(links)
            world.cut(*link)
            if dice.random() < 0.5:
                world.settle()
            world.mend(*link)
        elif name in member:
            world.leave(name)
            member.discard(name)
        else:
            world.join(name)
            member.add(name)
        if dice.random() < 0.15:
            world.settle()
    assert known_count


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
    change = forest.join(group.address, last.dpid, TreeRole.RECEIVER)
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
    change = forest.leave(group.address, last.dpid, TreeRole.RECEIVER)
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


@watched
def test_the_first_receiver_has_all_senders_switches_send_to_it_and_the_last_one_has_them_stop():
    world = World(GRAPHS["fattree"]())
    names = sorted(world.hosts)
    world.send(names[0])
    world.send(names[5])
    world.settle()
    (group,) = world.core.plane.groups.values()
    looked = looks(world)
    world.join(names[-1])
    assert looked == [grafted_duties]
    assert group.duties == whole(world, group.address)
    world.settle(3.0)
    assert world.send(names[0]) == world.send(names[5]) == {names[-1]: 1}
    world.leave(names[-1])
    world.advance(5.0)
    assert looked == [grafted_duties, pruned_duties]
    assert group.duties == whole(world, group.address)
    assert [duty.channels for duty in group.duties.values()] == [(), ()]


@watched
def test_a_join_after_a_leave_is_told_from_its_own_way_too():
    world = World(GRAPHS["fattree"]())
    names = sorted(world.hosts)
    for name in (names[0], names[5], names[-1]):
        world.join(name)
    world.settle()
    world.leave(names[-1])
    world.advance(5.0)
    (group,) = world.core.plane.groups.values()
    assert group.unconfirmed is not None, "what was left is looked at with the next change"
    looked = looks(world)
    world.join(names[-1])
    assert looked == [grafted_duties]
    assert group.unconfirmed is None
    assert group.duties == whole(world, group.address)


def test_what_a_leave_left_is_forgotten_by_the_next_join_when_switches_have_confirmed():
    world = World(GRAPHS["fattree"]())
    names = sorted(world.hosts)
    for name in (names[0], names[5], names[-1]):
        world.join(name)
    world.settle()
    world.leave(names[-1])
    world.advance(5.0)
    (group,) = world.core.plane.groups.values()
    assert group.unconfirmed is not None
    world.join(names[-1])
    assert group.unconfirmed is None
    assert group.duties == whole(world, group.address)


@watched
@pytest.mark.parametrize("receivers", [0, 1, 3])
def test_a_sender_asks_for_the_ports_of_its_own_way_alone_when_it_comes_and_when_it_goes(receivers):
    world = World(GRAPHS["fattree"]())
    names = sorted(world.hosts)
    for name in names[:receivers]:
        world.join(name)
    world.send(names[0])
    world.settle()
    (group,) = world.core.plane.groups.values()
    looked = looks(world)
    world.send(names[-1])
    world.settle()
    assert looked == [sender_duties]
    assert group.duties == whole(world, group.address)
    assert world.send(names[-1]) == dict.fromkeys(names[:receivers], 1)
    forget_sender(world, names[-1])
    world.settle()
    assert looked == [sender_duties] * 2
    assert group.duties == whole(world, group.address)


def looks(world: World) -> list:
    """Return a list that is told, as it happens, by which function a change was found from one way alone."""
    plane, looked = world.core.plane, []
    locally = plane._locally

    def noted(group, change, look, dpid):
        found = locally(group, change, look, dpid)
        looked.append(look if found is not None else None)
        return found

    plane._locally = noted
    return looked


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
