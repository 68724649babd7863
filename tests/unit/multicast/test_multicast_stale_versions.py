"""A switch that does not know a tree of a group drops its packets, counts them and is read again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from controller.config.check_settings import Check
from controller.config.service_class_settings import Aliases, StaticTrees
from controller.config.terms import parse_prefix
from controller.multicast.events import PolicyLoaded
from controller.rules.compile import tree_version_of
from controller.rules.cookies import STALE_VERSION_COOKIE
from controller.wire.addresses import parse_ip

from .conftest import OPEN, leaf_spine

GROUP = parse_ip("239.1.2.3")
SENDERS = [f"h{n}" for n in range(1, 9)]
MEMBERS = ["h9", "h10", "h11", "h12"]
UNCHECKED = replace(OPEN, check=Check(interval_s=3600))
STATIC = Aliases(mode="static", static=(StaticTrees(parse_prefix("239.1.0.0/16"), 3),))
ALIASED = replace(UNCHECKED, aliases=STATIC)


@pytest.fixture
def graph():
    return leaf_spine(leaves=6, spines=4, hosts=2)


def started(world):
    for name in MEMBERS:
        world.join(name, GROUP)
    world.settle()
    for name in SENDERS:
        world.send(name, GROUP)
        world.settle()
    return world


def counting(world):
    """Return how many entries for packets of unknown trees each switch has."""
    found = {
        dpid: sum(rule.cookie == STALE_VERSION_COOKIE for rule in switch.rules.values())
        for dpid, switch in world.switches.items()
    }
    return set(found.values())


def lose(world, tree_version):
    """Have the spine of one tree lose its entries unseen."""
    leaves = {host.dpid for host in world.hosts.values()}
    for dpid, switch in world.switches.items():
        for key in list(switch.rules) if dpid not in leaves else ():
            is_of_group = key.match.ip_dst == GROUP and key.match.eth_dst is not None
            if is_of_group and tree_version_of(key.match) == tree_version:
                switch.tables.remove(key)


def kinds(world):
    return [notice.kind for notice in world.notices]


def test_a_switch_without_a_tree_counts_its_packets_and_gets_it_back(make_world, graph):
    world = started(make_world(graph, ALIASED, 4))
    full = world.rules()
    lose(world, 2)
    lost = [name for name in SENDERS if len(world.send(name, GROUP)) < len(MEMBERS)]
    assert len(lost) == 2
    world.advance(61.0)
    assert world.core.counters["stale-version"] == 2
    assert kinds(world).count("stale-version") == 1
    text = next(notice.text for notice in world.notices if notice.kind == "stale-version")
    assert text.endswith("packets on trees of groups that it does not know; it is read again.")
    world.advance(5.0)
    assert world.rules() == full
    for name in SENDERS:
        assert world.send(name, GROUP) == dict.fromkeys(MEMBERS, 1)
    world.advance(120.0)
    assert world.core.counters["stale-version"] == 2


def test_hosts_cannot_have_it_counted(make_world, graph):
    world = started(make_world(graph, ALIASED, 4))
    world.send("h1", parse_ip("239.9.9.9"), eth_dst=bytes.fromhex("03005e090909"))
    world.advance(61.0)
    assert world.core.counters["stale-version"] == 0


def test_only_where_groups_may_have_aliases_and_openflow_1_3_is_spoken(make_world, graph):
    world = started(make_world(graph, UNCHECKED, 4))
    assert counting(world) == {0}
    world.feed(PolicyLoaded(ALIASED))
    world.advance(10.0)
    assert counting(world) == {2}
    world.feed(PolicyLoaded(UNCHECKED))
    world.advance(10.0)
    assert counting(world) == {0}
    assert counting(started(make_world(graph, ALIASED, 1))) == {0}
