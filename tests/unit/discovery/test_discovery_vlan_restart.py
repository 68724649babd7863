"""Ports in VLANs let them in over a restart, though it is not known at first what they lead to."""

from __future__ import annotations

import pytest

from controller.config.policy import LinkAggregation
from controller.config.terms import SwitchPort
from controller.config.vlans import UNTAGGED_ONLY, PortVlans, VlanEntry, Vlans
from controller.discovery.journal import HostsRead
from controller.discovery.settings import DiscoverySettings
from controller.discovery.timers import RESTART_GRACE_S
from controller.discovery.vlan_rules import edge_rules, link_rules

ACCESS, TRUNK = PortVlans(10, frozenset()), PortVlans(None, frozenset((10, 20)))
AT = {(1, 3): ACCESS, (1, 4): TRUNK}
SETTLED_S = 10.0


def settings_of(ports):
    entries = tuple(VlanEntry(port, ports=(SwitchPort(*end),)) for end, port in ports.items())
    return DiscoverySettings(vlans=Vlans(entries=entries))


@pytest.fixture
def world(make_world):
    """Two switches with a cable, hosts in VLANs at ports 3 and 4 of the first."""
    world = make_world(settings_of(AT))
    world.cable((1, 2), (2, 1))
    world.connect(1)
    world.connect(2)
    world.run(SETTLED_S)
    assert held(world) >= keys(link_rules(2)) | keys(edge_rules(3, ACCESS)) | keys(edge_rules(4, TRUNK))
    return world


def keys(rules):
    return {rule.key for rule in rules}


def held(world):
    return set(world.rules[1])


def restart(make_world, world, ports=AT, remembers=False):
    new = make_world(settings_of(ports))
    new.cables, new.rules, new.now = world.cables, world.rules, world.now
    if remembers:
        new.feed(HostsRead(tuple(world.journal)))
    return new


@pytest.mark.parametrize("remembers", [False, True])
def test_nothing_of_a_port_is_taken_away_at_a_restart(make_world, world, remembers):
    """Where the journal says which switch a port led to, it is a trunk before anything else is known of it."""
    entries = held(world)
    new = restart(make_world, world, remembers=remembers)
    new.connect(1)
    new.connect(2)
    for _ in range(int(10 * RESTART_GRACE_S) + 50):
        new.run(0.1)
        assert held(new) >= entries
    assert held(new) == entries


def test_a_port_that_the_policy_has_moved_meanwhile_is_in_its_own_vlan_as_soon_as_it_is_known(make_world, world):
    own, moved = {(1, 4): TRUNK}, PortVlans(20, frozenset())
    new = restart(make_world, world, {**own, (2, 3): moved})
    new.connect(1)
    new.connect(2)
    new.run(SETTLED_S)
    assert held(new) & keys(edge_rules(3, ACCESS)) == keys(edge_rules(3, UNTAGGED_ONLY))
    assert held(new) >= keys(edge_rules(4, TRUNK)) | keys(link_rules(2))


def test_a_vlan_that_a_port_has_no_more_ends_with_the_time_of_grace(make_world, world):
    new = restart(make_world, world, {**AT, (1, 4): PortVlans(None, frozenset((10,)))})
    new.connect(1)
    new.connect(2)
    new.run(RESTART_GRACE_S + 1.0)
    (gone,) = keys(edge_rules(4, TRUNK)) - held(new)
    assert gone.match.vlan_id == 20


def test_without_vlans_nothing_is_left_of_them(make_world, world):
    new = restart(make_world, world, {})
    new.connect(1)
    new.connect(2)
    new.run(1.0)
    assert not held(new) & (keys(link_rules(2)) | keys(edge_rules(3, ACCESS)) | keys(edge_rules(4, TRUNK)))


@pytest.mark.parametrize("access", [ACCESS, TRUNK])
def test_the_legs_of_a_static_group_are_in_their_vlans_from_the_start(make_world, access):
    legs = (SwitchPort(1, 3), SwitchPort(1, 4))
    own = settings_of(dict.fromkeys(legs, access))
    world = make_world(own._replace(link_aggregations=(LinkAggregation("bond", "static", legs),)))
    world.connect(1)
    assert held(world) >= keys(edge_rules(3, access)) | keys(edge_rules(4, access))
