"""Fabrics that no link joins: each group is served in each of them, and joining or parting them disturbs nobody."""

from __future__ import annotations

import itertools
import random

import pytest

from topology.events import PortRole, PortRoleChanged
from topology.generators.draft import Draft
from topology.graph import Graph, NodeKind

from .conftest import GROUP, World


def chain_of(switches=4, hosts=2) -> Graph:
    """Return switches in a row, each with hosts: any link that is cut makes two fabrics of it."""
    draft = Draft(1e9)
    names = [draft.switch(NodeKind.TOR) for _ in range(switches)]
    for name in names:
        draft.hosts(name, hosts)
    for name, following in itertools.pairwise(names):
        draft.link(name, following)
    return draft.graph


@pytest.fixture
def world():
    """Four switches in a row, of two hosts each: h1, h2 at the first, h3, h4 at the second, and so on."""
    return World(chain_of())


def settled(world, *names):
    """Have hosts send, and return what the next packet of each reaches."""
    for name in names:
        world.send(name)
        world.settle()
    return {name: dict(world.send(name)) for name in names}


def test_a_group_is_served_on_both_sides_of_a_cut(world):
    for name in ("h2", "h3", "h5", "h8"):
        world.join(name)
    world.settle()
    everyone = {"h2": 1, "h3": 1, "h5": 1, "h8": 1}
    assert settled(world, "h1", "h7") == {"h1": everyone, "h7": everyone}
    world.cut(2, 3)
    world.settle()
    assert settled(world, "h1", "h7") == {"h1": {"h2": 1, "h3": 1}, "h7": {"h5": 1, "h8": 1}}
    (document,) = world.core.group_view.groups()
    assert (document["links"], document["detached"]) == ([[1, 2], [3, 4]], [])


def test_a_host_that_joins_in_another_fabric_is_served_there(world):
    world.cut(2, 3)
    world.settle()
    world.join("h2")
    world.join("h6")
    world.settle()
    assert settled(world, "h1", "h8") == {"h1": {"h2": 1}, "h8": {"h6": 1}}
    world.join("h7")
    world.leave("h2")
    world.advance(5.0)
    assert settled(world, "h1", "h8") == {"h1": {}, "h8": {"h6": 1, "h7": 1}}


def test_a_switch_that_is_alone_serves_its_own_hosts(world):
    for name in ("h2", "h7"):
        world.join(name)
    world.settle()
    settled(world, "h1", "h8")
    world.cut(3, 4)
    world.settle()
    assert settled(world, "h1", "h8") == {"h1": {"h2": 1}, "h8": {"h7": 1}}


def test_fabrics_that_are_joined_are_one(world):
    world.cut(2, 3)
    world.settle()
    for name in ("h2", "h3", "h5", "h8"):
        world.join(name)
    world.settle()
    settled(world, "h1", "h7")
    world.mend(2, 3)
    world.settle()
    everyone = {"h2": 1, "h3": 1, "h5": 1, "h8": 1}
    assert settled(world, "h1", "h7") == {"h1": everyone, "h7": everyone}
    assert len(world.core.forest) == 1


def test_others_do_not_notice_that_fabrics_are_joined(world):
    """Every packet that is sent between two edits reaches those of its fabric, and nobody twice."""
    world.cut(2, 3)
    world.settle()
    for name in ("h2", "h3", "h5", "h8"):
        world.join(name)
    world.settle()
    settled(world, "h1", "h7")
    world.mend(2, 3)
    for _ in world.steps():
        for name, own in (("h1", {"h2", "h3"}), ("h7", {"h5", "h8"})):
            got = world.send(name)
            assert own <= set(got)
            assert set(got.values()) == {1}


def test_a_restarted_controller_serves_each_fabric(world):
    world.cut(2, 3)
    world.settle()
    for name in ("h2", "h3", "h5", "h8"):
        world.join(name)
    world.settle()
    before = settled(world, "h1", "h7")
    world.restart()
    for dpid in world.switches:
        world.connect(dpid)
    for pair, ends in world.links.items():
        if pair not in world.down_links:
            world.link_up(*ends)
    for host in world.hosts.values():
        world.feed(PortRoleChanged(host.dpid, host.port_no, PortRole.EDGE))
        world.learn(host)
    world.settle()
    assert {name: dict(world.send(name)) for name in ("h1", "h7")} == before
    world.advance(70.0)
    assert {name: dict(world.send(name)) for name in ("h1", "h7")} == before


@pytest.mark.parametrize("seed", range(6))
def test_each_member_gets_each_packet_of_its_fabric_once(seed):
    chosen = random.Random(seed)
    world = World(chain_of(5), seed=seed)
    names = [f"h{n}" for n in range(1, 11)]
    members: set[str] = set()
    down: set[tuple[int, int]] = set()
    for _ in range(40):
        draw = chosen.random()
        if draw < 0.35:
            name = chosen.choice(names)
            world.join(name)
            members.add(name)
        elif draw < 0.5 and members:
            name = chosen.choice(sorted(members))
            world.leave(name)
            members.discard(name)
        else:
            link = (at := chosen.randint(1, 4), at + 1)
            if link in down:
                down.discard(link)
                world.mend(*link)
            else:
                down.add(link)
                world.cut(*link)
        if chosen.random() < 0.5:
            world.settle()
    world.advance(10.0)
    fabric = {}
    for dpid in range(1, 6):
        fabric[dpid] = fabric[dpid - 1] if dpid > 1 and (dpid - 1, dpid) not in down else dpid
    at = {name: fabric[world.hosts[name].dpid] for name in names}
    for name, got in settled(world, *names).items():
        assert got == {other: 1 for other in members if other != name and at[other] == at[name]}, name
    assert sorted(world.core.plane.groups) == ([GROUP] if world.core.plane.groups else [])
