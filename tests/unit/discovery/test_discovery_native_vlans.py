"""Two ends that take frames without a tag for those of different VLANs: told, with their places."""

from __future__ import annotations

import pytest

from apps.exporters.controller_metrics import FAMILIES
from apps.exporters.figures import counted_figures
from controller.config.terms import SwitchPort
from controller.config.vlans import PortVlans, VlanEntry, Vlans
from controller.discovery.settings import DiscoverySettings
from controller.wire.arp import encode_arp
from controller.wire.ethernet import ETHERTYPE_LLDP, with_tag
from controller.wire.lldp import NEAREST_BRIDGE_MAC
from controller.wire.packets import Arp
from topology.events import LinkUp, PortRole

KIND = "native-vlan-mismatch"
BRIDGE = bytes.fromhex("0011223344ff")
ACCESS_10, NATIVE_20 = PortVlans(10, frozenset()), PortVlans(20, frozenset((10,)))
TRUNK, OWN = PortVlans(None, frozenset((10, 20))), PortVlans(0, frozenset())


def tlv(kind, value):
    return (kind << 9 | len(value)).to_bytes(2, "big") + value


def bridge_lldp(port_vlan_id=None, port_id=b"\x05Gi1/0/3", size=2):
    """Return what a switch of somebody else says of its port."""
    unit = tlv(1, b"\x04" + BRIDGE) + tlv(2, port_id) + tlv(3, b"\0\x78")
    if port_vlan_id is not None:
        unit += tlv(127, b"\x00\x80\xc2\x01" + port_vlan_id.to_bytes(size, "big"))
    return NEAREST_BRIDGE_MAC + BRIDGE + ETHERTYPE_LLDP.to_bytes(2, "big") + unit + tlv(0, b"")


@pytest.fixture
def make_vlans(make_world):
    def make(ports):
        entries = tuple(VlanEntry(vlans, ports=(SwitchPort(*end),)) for end, vlans in ports.items())
        world = make_world(DiscoverySettings(vlans=Vlans(entries=entries, names=((10, "storage"),))))
        world.connect(1)
        world.connect(2)
        return world

    return make


def told(world):
    return [(dict(notice.fields), notice.text) for notice in world.notices if notice.kind == KIND]


def test_a_neighbour_of_another_native_vlan_is_told_with_both_places_and_hosts_are_served_on(make_vlans):
    world = make_vlans({(1, 1): ACCESS_10})
    world.run(1.0)
    world.frame((1, 1), bridge_lldp(30))
    ((fields, text),) = told(world)
    assert fields == {"dpid": 1, "port_no": 1}
    assert text == (
        "Port 1:1 is in VLAN storage without a tag, and leads to port Gi1/0/3 of 00:11:22:33:44:ff, whose LLDP says "
        "VLAN 30: what one sends without a tag is in the other VLAN there."
    )
    for _ in range(50):
        world.frame((1, 1), bridge_lldp(30))
    assert len(told(world)) == 1, "a neighbour cannot multiply notices"
    assert world.core.counters[KIND] == 51 == world.core.counters["lldp-foreign"]
    ((family, counts),) = counted_figures("discovery", world.core.counters)
    assert family in FAMILIES
    assert ({"app": "discovery", "kind": KIND}, 51) in counts
    world.run(1.0)
    mac, address = b"\2\0\0\0\0\1", b"\x0a\0\0\1"
    world.frame((1, 1), with_tag(encode_arp(Arp(mac, b"\xff" * 6, 1, mac, address, bytes(6), address)), 10))
    assert [host.port_no for host in world.fabric.hosts()] == [1]


@pytest.mark.parametrize(
    ("vlans", "heard"),
    [(ACCESS_10, 10), (ACCESS_10, None), (ACCESS_10, 0), (OWN, 30), (TRUNK, 30), (NATIVE_20, 20)],
    ids=["the same", "not said", "none there", "fabric's own", "none here", "a trunk's native"],
)
def test_nothing_is_told_where_both_ends_agree_or_one_has_no_vlan_without_a_tag(make_vlans, vlans, heard):
    world = make_vlans({(1, 1): vlans, (1, 2): ACCESS_10})
    world.run(1.0)
    world.frame((1, 1), bridge_lldp(heard))
    assert told(world) == []
    assert world.core.counters["lldp-foreign"] == 1


@pytest.mark.parametrize(("vlan_id", "size"), [(4095, 2), (70000, 3), (30, 1)], ids=["reserved", "three", "one byte"])
def test_a_vlan_that_no_port_can_have_is_counted_as_malformed(make_vlans, vlan_id, size):
    world = make_vlans({(1, 1): ACCESS_10})
    world.run(1.0)
    world.frame((1, 1), bridge_lldp(vlan_id, size=size))
    assert (world.core.counters["lldp-vlan"], told(world)) == (1, [])


def test_what_no_text_can_be_made_of_is_left_out_of_the_notice(make_vlans):
    world = make_vlans({(1, 1): ACCESS_10})
    world.run(1.0)
    world.frame((1, 1), bridge_lldp(30, b"\x03" + BRIDGE))
    assert "leads to 00:11:22:33:44:ff, whose LLDP says VLAN 30" in told(world)[0][1]


def test_ports_of_two_vlans_that_a_foreign_switch_joins_are_told_and_one_is_held(make_vlans):
    world = make_vlans({(1, 3): ACCESS_10, (2, 2): NATIVE_20})
    world.segments.append({(1, 3), (2, 2)})
    world.run(10.0)
    assert (world.fabric.role(1, 3), world.fabric.role(2, 2)) == (PortRole.EDGE, PortRole.UNKNOWN)
    ((fields, text),) = told(world)
    assert fields == {"dpid": 2, "port_no": 2}
    assert "is in VLAN 20 without a tag, and leads to one segment behind a foreign switch with port 1:3" in text
    assert "which is in VLAN storage without a tag: it is held discarding" in text


@pytest.mark.parametrize(
    ("low", "high"),
    [(ACCESS_10, ACCESS_10), (TRUNK, ACCESS_10), (ACCESS_10, TRUNK)],
    ids=["one VLAN", "low has none", "high has none"],
)
def test_ports_that_a_foreign_switch_joins_and_that_do_not_differ_are_held_and_no_mismatch(make_vlans, low, high):
    world = make_vlans({(1, 3): low, (2, 2): high})
    world.segments.append({(1, 3), (2, 2)})
    world.run(10.0)
    assert len([notice for notice in world.notices if notice.kind == "segment-looped"]) == 1
    assert world.fabric.role(2, 2) is PortRole.UNKNOWN
    assert told(world) == []


def test_two_switches_cabled_at_ports_of_different_vlans_are_told_and_linked_all_the_same(make_vlans):
    world = make_vlans({(1, 3): ACCESS_10, (2, 2): OWN, (1, 4): ACCESS_10, (2, 4): NATIVE_20})
    world.cable((1, 3), (2, 2))
    world.cable((1, 4), (2, 1))
    world.run(2.0)
    assert len([event for event in world.events if isinstance(event, LinkUp)]) == 2
    ((fields, text),) = told(world)
    assert fields == {"dpid": 1, "port_no": 3}
    assert "is in VLAN storage without a tag by the policy, and is cabled to port 2:2 of the fabric" in text
    assert "which is in the fabric's own domain" in text


@pytest.mark.parametrize("ports", [{(1, 3): ACCESS_10, (2, 2): ACCESS_10}, {(1, 3): ACCESS_10}, {(2, 2): ACCESS_10}])
def test_a_cable_of_whose_ends_the_policy_names_one_vlan_or_only_one_end_is_no_mismatch(make_vlans, ports):
    world = make_vlans({**ports, (1, 4): ACCESS_10})
    world.cable((1, 3), (2, 2))
    world.run(2.0)
    assert len([event for event in world.events if isinstance(event, LinkUp)]) == 1
    assert told(world) == []
