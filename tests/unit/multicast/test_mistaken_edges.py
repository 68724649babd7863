"""A port that was taken to lead to hosts and turns out to lead to a switch."""

from __future__ import annotations

import pytest

from controller.config.policy import Policy
from topology.events import PortRole, PortRoleChanged
from topology.graph import NodeKind

POLICY = Policy(default_allow=True)
SPARE = 40


def cores(world):
    edges = {host.dpid for host in world.hosts.values()}
    forest = world.core.forest.graph
    return [dpid for dpid in forest.nodes() if dpid not in edges and not edges & set(forest.neighbours(dpid))]


@pytest.mark.parametrize("between", [(), (PortRole.DOWN,), (PortRole.UNKNOWN,)])
def test_its_switch_is_no_tor_any_more(make_world, between):
    world = make_world("fattree", POLICY)
    core = cores(world)[-1]
    for name in ("h2", "h6", "h9"):
        world.join(name)
    shape = world.core.forest.algorithm.network.shape
    world.feed(PortRoleChanged(core, SPARE, PortRole.EDGE))
    assert world.core.forest.graph.kind(core) is NodeKind.TOR
    for role in (*between, PortRole.TRUNK):
        world.feed(PortRoleChanged(core, SPARE, role))
    assert world.core.forest.graph.kind(core) is NodeKind.SWITCH
    assert world.core.forest.algorithm.network.shape == shape
    world.join("h16")
    assert world.send("h1") == dict.fromkeys(("h2", "h6", "h9", "h16"), 1)


def test_one_that_has_hosts_elsewhere_stays_one(make_world):
    world = make_world("fattree", POLICY)
    tor = world.hosts["h1"].dpid
    world.feed(PortRoleChanged(tor, SPARE, PortRole.EDGE))
    world.feed(PortRoleChanged(tor, SPARE, PortRole.TRUNK))
    assert world.core.forest.graph.kind(tor) is NodeKind.TOR


def test_one_whose_hosts_are_down_stays_one(make_world):
    world = make_world("fattree", POLICY)
    tor = world.hosts["h1"].dpid
    for host in world.hosts.values():
        if host.dpid == tor:
            world.feed(PortRoleChanged(tor, host.port_no, PortRole.DOWN))
    assert world.core.forest.graph.kind(tor) is NodeKind.TOR
