"""A receiver by registration at the very port of a sender: it has its copy back, with its own tag."""

from __future__ import annotations

from dataclasses import replace

import pytest

from controller.config.registrations import Registration, Registrations
from controller.config.terms import parse_prefix
from controller.config.vlans import PortVlans
from controller.wire.packets import RecordType

from .conftest import GROUP, OPEN
from .vlan_world import VlanWorld, started

SOURCE, HOME, SHOP = 100, 20, 30
LINE = Registration(SOURCE, (parse_prefix("239.0.0.0/8"),), frozenset({0, HOME, SHOP}))
PORTS = {
    "h1": PortVlans(SOURCE, frozenset((HOME, SHOP))),
    "h2": PortVlans(None, frozenset((SOURCE, HOME, SHOP))),
    "h3": PortVlans(HOME, frozenset((SOURCE,))),
    "h4": PortVlans(0, frozenset((SOURCE, SHOP))),
    "h5": PortVlans(HOME, frozenset()),
}


@pytest.mark.parametrize("version", [4, 1])
@pytest.mark.parametrize("sender", ["h1", "h2", "h3", "h4"])
def test_each_vlan_of_the_senders_port_has_a_copy_and_its_own_has_none(sender, version):
    policy = replace(OPEN, registrations=Registrations((LINE,)))
    world = VlanWorld(PORTS, version=version, policy=policy)
    for name, port in PORTS.items():
        for vlan_id in port.vlans():
            world.joins(name, GROUP, vlan_id)
    expected = {
        (name, () if vlan_id == port.untagged else (vlan_id,)): 1
        for name, port in PORTS.items()
        for vlan_id in port.vlans()
        if (name, vlan_id) != (sender, SOURCE)
    }
    assert world.sends(sender, GROUP, SOURCE) == expected, "before there are entries"
    assert started(world, sender, GROUP, SOURCE) == expected
    gone = min(PORTS[sender].vlans() - {SOURCE})
    world.tell(sender, RecordType.CHANGE_TO_INCLUDE, GROUP, gone)
    world.advance(5.0)
    del expected[sender, () if gone == PORTS[sender].untagged else (gone,)]
    assert world.sends(sender, GROUP, SOURCE) == expected
    assert not world.refused_edits()
