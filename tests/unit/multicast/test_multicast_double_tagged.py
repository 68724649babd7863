"""Frames to groups with a second tag behind that of a VLAN: flooded in the VLAN where the policy has them pass."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from controller.config.vlans import PortVlans
from controller.multicast.events import PolicyLoaded
from controller.rules.evaluate import Fields

from .vlan_world import VlanWorld, vlans_of

ACCESS_10, ACCESS_20 = PortVlans(10, frozenset()), PortVlans(20, frozenset())
TRUNK = PortVlans(None, frozenset((10, 20)))
PORTS = {"h1": TRUNK, "h2": ACCESS_10, "h5": ACCESS_20, "h6": TRUNK, "h16": ACCESS_10}
BROADCAST, IGMP_V3_ROUTERS, GROUP = b"\xff" * 6, b"\x01\0\x5e\0\0\x16", b"\x01\0\x5e\x01\x01\x01"
ALL_NODES, BRIDGES = b"\x33\x33\0\0\0\x01", b"\x01\x80\xc2\0\0\x0e"
INNER_TYPES = (0x8100, 0x88A8)
"""What a switch that looks behind one tag has for the EtherType of a frame with two."""


def heard(world, name, eth_dst, outer=10, inner_type=0x8100):
    """Have a host send a frame with two tags; return who gets it, and with which outer tag."""
    host, at = world.hosts[name], world.at()
    delivery = world.fabric.deliver(*host.place, Fields(eth_dst, host.mac, inner_type, vlan_ids=(outer,)), 64)
    assert not delivery.punts, "the controller got a frame with two tags to a group"
    got = Counter()
    for copy, count in delivery.hosts.items():
        got[at[copy.dpid, copy.port_no], copy.vlan_ids] += count
    return got


@pytest.mark.parametrize("inner_type", INNER_TYPES)
@pytest.mark.parametrize("eth_dst", [BROADCAST, IGMP_V3_ROUTERS, GROUP, ALL_NODES])
def test_all_of_the_outer_vlan_get_them_once_and_nobody_else(eth_dst, inner_type):
    world = VlanWorld(PORTS, passes_double_tagged=True)
    assert heard(world, "h1", eth_dst, 10, inner_type) == {("h2", ()): 1, ("h6", (10,)): 1, ("h16", ()): 1}
    assert heard(world, "h1", eth_dst, 20, inner_type) == {("h5", ()): 1, ("h6", (20,)): 1}
    assert heard(world, "h1", eth_dst, 30, inner_type) == {}
    assert heard(world, "h2", eth_dst, 10, inner_type) == {}, "an access port lets in frames without a tag alone"


def test_what_is_for_bridges_goes_no_further():
    world = VlanWorld(PORTS, passes_double_tagged=True)
    assert heard(world, "h1", BRIDGES) == {}


@pytest.mark.parametrize("eth_dst", [BROADCAST, GROUP])
def test_none_passes_where_the_policy_does_not_say_so(eth_dst):
    assert heard(VlanWorld(PORTS), "h1", eth_dst) == {}


def test_they_follow_a_link_that_fails():
    world = VlanWorld(PORTS, passes_double_tagged=True)
    before = heard(world, "h1", BROADCAST)
    at = world.hosts["h1"].dpid
    world.cut(*next(name for name in sorted(world.links) if at in name))
    world.settle()
    assert heard(world, "h1", BROADCAST) == before


def test_an_old_switch_drops_them_and_it_is_said_once():
    world = VlanWorld(PORTS, version=1)
    for passes in (True, False, True):
        world.feed(
            PolicyLoaded(
                replace(world.policy, vlans=replace(vlans_of(world.port_vlans), passes_double_tagged=passes))
            )
        )
        world.advance(2.0)
        told = [notice for notice in world.notices if notice.kind == "double-tagged-unsupported"]
        assert len(told) == (len(world.switches) if passes else 0)
        assert heard(world, "h1", BROADCAST) == {}
        world.notices.clear()
