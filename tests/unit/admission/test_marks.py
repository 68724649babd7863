"""Which code point senders get: that of the first class that is about them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from controller.admission.host import Host
from controller.admission.marks import Marks
from controller.config.marking import marking_of
from controller.config.policy import LinkAggregation, Policy, Tenant
from controller.config.service_class_settings import QueuePolicy
from controller.config.service_classes import ServiceClass
from controller.config.terms import SwitchPort, parse_prefix
from controller.wire.addresses import parse_ip

MARKET, OTHER = parse_ip("239.1.0.7"), parse_ip("239.2.0.7")
MAC = bytes.fromhex("020000000001")
CLASSES = (
    ServiceClass("market", 1, (parse_prefix("239.1.0.0/16"),), dscp=46),
    ServiceClass("backup", 6, tenants=("store",), dscp=8),
    ServiceClass("plain", 3, hosts=(SwitchPort(2, 7),)),
)
POLICY = Policy(
    default_allow=True,
    tenants=(Tenant("store", (parse_prefix("10.0.0.0/24"),)),),
    classes=CLASSES,
    queues=QueuePolicy(mode="mark"),
)


def host(address="10.9.0.1", dpid=1, port_no=1, known=()):
    return Host(MAC, parse_ip(address), dpid, port_no, tuple(map(parse_ip, known)))


@pytest.mark.parametrize(
    ("sender", "group", "dscp"),
    [
        (host(), MARKET, 46),
        (host("10.0.0.3"), MARKET, 46),
        (host("10.0.0.3"), OTHER, 8),
        (host(known=["10.0.0.3"]), OTHER, 8),
        (host(), OTHER, 0),
        (host(dpid=2, port_no=7), OTHER, 0),
    ],
)
def test_the_first_class_about_a_sender_counts_and_none_is_best_effort(sender, group, dscp):
    assert Marks(marking_of(POLICY)).of(sender, group).dscp == dscp


def test_nothing_is_marked_where_queues_are_off():
    marks = Marks(marking_of(replace(POLICY, queues=QueuePolicy())))
    assert not marks.are_used
    assert marks.of(host(), MARKET).dscp is None


@pytest.mark.parametrize("mode", ["mark", "static", "goal"])
def test_ports_that_are_trusted_keep_their_code_points(mode):
    trust = frozenset({SwitchPort(1, 1)})
    marks = Marks(marking_of(replace(POLICY, queues=QueuePolicy(mode=mode, trust=trust))))
    assert marks.of(host(), MARKET).dscp is None
    assert marks.of(host(port_no=2), MARKET).dscp == 46


def test_any_leg_of_a_trusted_bond_stands_for_all():
    bond = LinkAggregation("bond", "lacp", (SwitchPort(1, 1), SwitchPort(2, 1)))
    queues = QueuePolicy(mode="mark", trust=frozenset({SwitchPort(2, 1)}))
    assert (
        Marks(marking_of(replace(POLICY, queues=queues, link_aggregations=(bond,)))).of(host(), MARKET).dscp is None
    )


def test_a_policy_that_says_the_same_of_code_points_changes_nothing():
    marks = Marks(marking_of(POLICY))
    assert not marks.replace(marking_of(replace(POLICY, default_allow=False)))
    assert marks.replace(marking_of(replace(POLICY, classes=CLASSES[1:])))
    assert marks.of(host(), MARKET).dscp == 0
    assert marks.replace(marking_of(replace(POLICY, queues=QueuePolicy())))
    assert not marks.replace(marking_of(replace(POLICY, queues=QueuePolicy(), classes=())))


@pytest.mark.parametrize(
    ("sender", "dscp"),
    [
        (host(), 0),
        (host("10.0.0.3"), 8),
        (host(known=["10.0.0.3"]), 8),
        (host("10.0.0.3", 2, 7), 8),
        (host("::1"), 0),
    ],
)
def test_what_goes_to_one_host_is_of_the_first_class_that_names_no_groups(sender, dscp):
    assert Marks(marking_of(POLICY)).of_unicast(sender).dscp == dscp


def test_what_goes_to_one_host_is_left_alone_where_nothing_is_marked():
    assert Marks(marking_of(replace(POLICY, queues=QueuePolicy()))).of_unicast(host("10.0.0.3")).dscp is None
    queues = QueuePolicy(mode="mark", trust=frozenset({SwitchPort(1, 1)}))
    assert Marks(marking_of(replace(POLICY, queues=queues))).of_unicast(host("10.0.0.3")).dscp is None
