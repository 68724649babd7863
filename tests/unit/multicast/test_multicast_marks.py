"""Packets of senders get the code point of their service class at the port where they enter."""

from __future__ import annotations

from dataclasses import replace

import pytest

from controller.config.service_class_settings import QueuePolicy
from controller.config.service_classes import ServiceClass
from controller.config.terms import SwitchPort, parse_prefix
from controller.config.vlans import PortVlans
from controller.multicast.events import PolicyLoaded
from controller.wire.addresses import parse_ip
from controller.wire.ethernet import with_tag
from controller.wire.udp import encode_udp
from wire_frames import fields_of

from .conftest import GROUP, GROUP_V6, OPEN
from .vlan_world import VlanWorld, started

OTHER = parse_ip("239.9.9.9")
FEED = ServiceClass("feed", 1, (parse_prefix("239.1.0.0/16"), parse_prefix("ff0e::/16")), dscp=46)
BACKUP = ServiceClass("backup", 6, hosts=(parse_prefix("10.0.0.2/32"),), dscp=8)
MARKED = replace(OPEN, classes=(FEED, BACKUP), queues=QueuePolicy(mode="mark"))
OWN = 5
"""The code point that hosts give their packets themselves."""


def received(world, name, group=GROUP):
    """Send a packet of a host once its entries are there; return by host which code points copies of it have."""
    world.send(name, group)
    world.settle()
    fields = fields_of(world.data(name, group))._replace(dscp=OWN)
    delivery = world.fabric.deliver(*world.hosts[name].place, fields)
    assert not delivery.punts
    at = {host.place: host.name for host in world.hosts.values()}
    return {at[copy.dpid, copy.port_no]: copy.dscp for copy in delivery.hosts}


@pytest.fixture
def world(make_world, version):
    world = make_world("fattree", MARKED, version)
    for name in ("h2", "h9", "h16"):
        for group in (GROUP, OTHER):
            world.join(name, group)
    world.settle()
    return world


def test_every_receiver_gets_the_code_point_of_the_class_whatever_the_sender_chose(world):
    assert received(world, "h1") == {"h2": 46, "h9": 46, "h16": 46}
    assert received(world, "h2") == {"h9": 46, "h16": 46}
    assert received(world, "h1", OTHER) == {"h2": 0, "h9": 0, "h16": 0}
    assert received(world, "h2", OTHER) == {"h9": 8, "h16": 8}


def test_packets_that_come_before_their_entries_are_marked_too(world):
    first = len(world.packet_outs)
    world.send("h1")
    relayed = [frame for _, frame in world.packet_outs[first:]]
    assert len(relayed) == 3
    assert {frame[15] >> 2 for frame in relayed} == {46}


def test_ipv6_packets_are_marked(make_world):
    world = make_world("fattree", MARKED, 4)
    world.join("h9", GROUP_V6)
    world.settle()
    assert received(world, "h1", GROUP_V6) == {"h9": 46}


def test_a_trusted_port_keeps_what_its_host_chose(make_world, version):
    world = make_world("fattree", MARKED, version)
    trust = frozenset({SwitchPort(*world.hosts["h1"].place)})
    world.feed(PolicyLoaded(replace(MARKED, queues=QueuePolicy(mode="mark", trust=trust))))
    world.join("h9")
    world.settle()
    assert received(world, "h1") == {"h9": OWN}
    assert received(world, "h3") == {"h9": 46}


def test_another_policy_marks_senders_otherwise_and_no_packet_is_lost(world):
    received(world, "h1")
    received(world, "h2", OTHER)
    afresh = replace(FEED, dscp=34)
    world.feed(PolicyLoaded(replace(MARKED, classes=(afresh, BACKUP))))
    for _ in world.steps():
        assert world.send("h1") == {"h2": 1, "h9": 1, "h16": 1}
    assert received(world, "h1") == {"h2": 34, "h9": 34, "h16": 34}
    world.feed(PolicyLoaded(OPEN))
    world.settle()
    assert received(world, "h1") == {"h2": OWN, "h9": OWN, "h16": OWN}
    assert received(world, "h2", OTHER) == {"h9": OWN, "h16": OWN}


def test_a_policy_that_says_the_same_of_classes_sends_nothing(world):
    received(world, "h1")
    applied = world.applied
    world.feed(PolicyLoaded(replace(MARKED, multicast=replace(MARKED.multicast, sender_timeout_s=100.0))))
    world.settle()
    assert world.applied == applied


def test_where_queues_are_off_not_one_entry_differs(make_world, version):
    plain, classed = (make_world("fattree", replace(OPEN, classes=classes), version) for classes in ((), (FEED,)))
    for world in (plain, classed):
        world.join("h9")
        world.settle()
        received(world, "h1")
    assert plain.rules() == classed.rules()


def test_a_restart_finds_its_marks(world):
    received(world, "h1")
    before = world.rules()
    world.restart()
    world.connect_all()
    applied = world.applied
    world.settle()
    assert world.rules() == before
    assert world.applied == applied
    assert received(world, "h1") == {"h2": 46, "h9": 46, "h16": 46}


def test_the_code_point_of_a_sender_is_shown(world):
    received(world, "h1")
    (sender,) = world.core.group_view.group(GROUP)["senders"]
    assert sender["dscp"] == 46


def test_packets_of_vlans_are_marked_whether_their_sender_tags_them_or_not(version):
    untagged, tagged = PortVlans(10, frozenset()), PortVlans(None, frozenset({10}))
    world = VlanWorld({"h1": untagged, "h3": tagged, "h9": untagged, "h10": tagged}, version=version, policy=MARKED)
    world.joins("h9")
    world.joins("h10")
    world.settle()
    for name in ("h1", "h3"):
        started(world, name)
        host = world.hosts[name]
        frame = encode_udp(host.mac, host.v4, GROUP, b"data")
        fields = fields_of(frame if name == "h1" else with_tag(frame, 10))._replace(dscp=OWN)
        copies = world.fabric.deliver(*host.place, fields).hosts
        assert {(world.at()[copy.dpid, copy.port_no], copy.vlan_ids, copy.dscp) for copy in copies} == {
            ("h9", (), 46),
            ("h10", (10,), 46),
        }
