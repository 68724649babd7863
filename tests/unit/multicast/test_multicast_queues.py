"""Packets to groups wait in the queue of their class at every port that they leave by."""

from __future__ import annotations

from dataclasses import replace

import pytest

from controller.config.service_class_settings import QueuePolicy
from controller.config.service_classes import ServiceClass
from controller.config.terms import SwitchPort, parse_prefix
from controller.config.vlans import PortVlans
from controller.multicast.events import PolicyLoaded
from controller.rules.model import OFPP_CONTROLLER, Output, SetQueue
from controller.wire.addresses import parse_ip
from controller.wire.udp import encode_udp
from topology.events import PortRole, PortRoleChanged
from wire_frames import fields_of

from .conftest import GROUP, GROUP_V6, OPEN
from .vlan_world import VlanWorld, started

OTHER = parse_ip("239.9.9.9")
FEED = ServiceClass("feed", 1, (parse_prefix("239.1.0.0/16"), parse_prefix("ff0e::/16")), dscp=46)
DESK = ServiceClass("desk", 3, hosts=(parse_prefix("10.0.0.2/32"),))
QUEUED = replace(OPEN, classes=(FEED, DESK), queues=QueuePolicy(mode="static"))


def queues_of(rule):
    """Return the queues that an entry sends to hosts and switches by."""
    queue_id, found = None, set()
    for action in rule.actions:
        if isinstance(action, SetQueue):
            queue_id = action.queue_id
        elif isinstance(action, Output) and action.port_no != OFPP_CONTROLLER:
            found.add(queue_id)
    return found


def queues(world, group):
    """Return the queues in which packets of a group wait, at all switches."""
    return {
        queue_id
        for rules in world.rules().values()
        for key, rule in rules.items()
        if key.match.ip_dst == group
        for queue_id in queues_of(rule)
    }


@pytest.fixture
def world(make_world, version):
    world = make_world("fattree", QUEUED, version)
    for name in ("h2", "h9", "h16"):
        for group in (GROUP, OTHER):
            world.join(name, group)
    world.settle()
    return world


def received(world, name, group=GROUP):
    """Send a packet of a host once its entries are there; return the queues in which its copies left the fabric."""
    world.send(name, group)
    world.settle()
    delivery = world.fabric.deliver(*world.hosts[name].place, fields_of(world.data(name, group)))
    assert delivery.hosts and not delivery.punts
    return {copy.queue_id for copy in delivery.hosts}


def test_a_group_waits_in_the_queue_of_its_class_before_and_after_somebody_sends(world):
    assert queues(world, GROUP) == {6}
    assert queues(world, OTHER) == {1}
    assert received(world, "h1") == {6}
    assert received(world, "h1", OTHER) == {1}
    assert queues(world, GROUP) == {6}


def test_the_most_important_sender_decides_about_the_queue_of_a_group_while_it_sends(world):
    received(world, "h1", OTHER)
    assert received(world, "h2", OTHER) == {4}
    assert received(world, "h1", OTHER) == {4}
    assert queues(world, OTHER) == {4}
    world.feed(PortRoleChanged(*world.hosts["h2"].place, PortRole.DOWN))
    world.settle()
    assert received(world, "h1", OTHER) == {1}
    assert queues(world, OTHER) == {1}


def test_another_policy_puts_groups_into_other_queues_without_loss_and_off_into_none(world):
    received(world, "h1")
    world.feed(PolicyLoaded(replace(QUEUED, classes=(replace(FEED, importance=2), DESK))))
    for _ in world.steps():
        assert world.send("h1") == {"h2": 1, "h9": 1, "h16": 1}
    assert received(world, "h1") == {5}
    world.feed(PolicyLoaded(OPEN))
    world.settle()
    assert received(world, "h1") == {None}
    assert queues(world, GROUP) == queues(world, OTHER) == {None}


def test_with_marks_alone_no_entry_names_a_queue(make_world, version):
    marked = replace(QUEUED, queues=QueuePolicy(mode="mark"))
    world = make_world("fattree", marked, version)
    world.join("h9")
    world.settle()
    assert received(world, "h1") == {None}


def test_where_queues_are_off_not_one_entry_differs(make_world, version):
    plain, classed = (make_world("fattree", replace(OPEN, classes=classes), version) for classes in ((), (FEED,)))
    for world in (plain, classed):
        world.join("h9")
        world.settle()
        received(world, "h1")
    assert plain.rules() == classed.rules()


def test_what_a_policy_came_to_is_what_it_would_have_been_from_the_start(make_world, version):
    """Switches hold the same whether the policy has had queues from the start, or since it was loaded."""
    worlds = [make_world("fattree", policy, version) for policy in (QUEUED, OPEN)]
    for world in worlds:
        world.join("h9")
        world.join("h2", OTHER)
        world.settle()
        received(world, "h1")
    worlds[1].feed(PolicyLoaded(QUEUED))
    worlds[1].settle()
    assert worlds[0].rules() == worlds[1].rules()


def test_a_restart_finds_its_queues(world):
    received(world, "h1")
    before = world.rules()
    world.restart()
    world.connect_all()
    applied = world.applied
    world.settle()
    assert world.rules() == before
    assert world.applied == applied


def test_a_trusted_port_keeps_its_code_points_and_has_queues(make_world, version):
    world = make_world("fattree", QUEUED, version)
    trust = frozenset({SwitchPort(*world.hosts["h1"].place)})
    world.feed(PolicyLoaded(replace(QUEUED, queues=QueuePolicy(mode="static", trust=trust))))
    world.join("h9")
    world.settle()
    assert received(world, "h1") == {6}


def test_ipv6_groups_have_queues(make_world):
    world = make_world("fattree", QUEUED, 4)
    world.join("h9", GROUP_V6)
    world.settle()
    assert received(world, "h1", GROUP_V6) == {6}


def test_groups_of_vlans_have_queues(version):
    untagged, tagged = PortVlans(10, frozenset()), PortVlans(None, frozenset({10}))
    world = VlanWorld({"h1": untagged, "h9": untagged, "h10": tagged}, version=version, policy=QUEUED)
    world.joins("h9")
    world.joins("h10")
    world.settle()
    started(world, "h1")
    host = world.hosts["h1"]
    copies = world.fabric.deliver(*host.place, fields_of(encode_udp(host.mac, host.v4, GROUP, b"data"))).hosts
    assert {(world.at()[copy.dpid, copy.port_no], copy.queue_id) for copy in copies} == {("h9", 6), ("h10", 6)}
