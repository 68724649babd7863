"""The source VLAN of a registration whose ports are put elsewhere while its groups are received."""

from __future__ import annotations

import pytest

from controller.config.vlans import PortVlans
from controller.kernel.domains import in_domain

from .registered_world import EVERYBODY, GROUP, HOME, OTHER, PORTS, SOURCE, RegisteredWorld, access, join_all
from .vlan_world import started


@pytest.mark.parametrize("version", [4, 1])
def test_a_source_vlan_that_no_port_has_any_more_ends_its_streams_alone_and_comes_back(version):
    world = RegisteredWorld(version=version)
    join_all(world)
    world.joins("h3", OTHER)
    world.settle()
    assert started(world, "h1", GROUP) == EVERYBODY
    assert started(world, "h9", OTHER) == {("h3", ()): 1}
    ports = {
        world.hosts[name].place: PortVlans(None if port.untagged == SOURCE else port.untagged, port.tagged - {SOURCE})
        for name, port in PORTS.items()
    }
    closed = {place: port if port.vlans() else access(HOME) for place, port in ports.items()}
    whole = world.port_vlans
    world.moved(closed)
    members = world.core.memberships.members_of
    assert {world.at()[member.host.dpid, member.host.port_no] for member in members(in_domain(GROUP, HOME))} >= {"h3"}
    assert started(world, "h1", GROUP) == {}, "it sends in a VLAN that gets the group from elsewhere"
    assert world.sends("h9", OTHER) == {("h3", ()): 1}
    assert not world.refused_edits()
    assert not list(filter(None, world.core.findings.search()))
    world.advance(2.0)
    world.moved(whole)
    for name, vlan_id in (("h2", SOURCE), ("h7", SOURCE), ("h10", SOURCE)):
        world.joins(name, GROUP, vlan_id)
    world.settle()
    assert started(world, "h1", GROUP) == EVERYBODY
    world.crossed.clear()
    world.sends("h1", GROUP)
    assert set(world.crossed.values()) == {1}
    assert not list(filter(None, world.core.findings.search()))
