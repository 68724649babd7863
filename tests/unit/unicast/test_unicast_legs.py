"""Unicast with hosts behind link aggregation groups: one copy of what all hear, and all legs are the host."""

from __future__ import annotations

import pytest

from controller.config.policy import LinkAggregation
from controller.config.terms import SwitchPort
from controller.unicast.settings import UnicastChanged, UnicastSettings
from controller.wire.addresses import BROADCAST_MAC
from controller.wire.arp import REQUEST, encode_arp
from controller.wire.frame import decode
from controller.wire.packets import Arp
from controller.wire.udp import encode_udp
from topology.events import HostLearnt, PortRole, PortRoleChanged

LEGS = ((1, 5), (3, 5))
OTHERS = ((1, 6), (2, 6), (3, 6))
CABLES = [(1, 1, 2, 1), (2, 2, 3, 1)]
UNKNOWN = bytes((10, 0, 9, 9))


def settings(*legs) -> UnicastSettings:
    ports = tuple(SwitchPort(*leg) for leg in legs)
    return UnicastSettings(link_aggregations=(LinkAggregation("bond", "static", ports),) if legs else ())


@pytest.fixture
def bench(make_bench):
    bench = make_bench(settings(*LEGS))
    bench.build(CABLES, [*LEGS, *OTHERS])
    return bench


@pytest.fixture
def bonded(bench, make_host):
    found = make_host(1, *LEGS[0])
    bench.feed(found)
    bench.run(0.1)
    return found


def ends(packets):
    return sorted((packet.dpid, port_no) for packet in packets for port_no in packet.ports)


def question(asker: HostLearnt, target: bytes) -> bytes:
    return encode_arp(Arp(asker.mac, BROADCAST_MAC, REQUEST, asker.mac, asker.addresses[0], bytes(6), target))


def test_a_question_to_all_goes_by_one_leg(bench, bonded, make_host):
    asker = make_host(2, 2, 6)
    bench.feed(asker)
    bench.run(0.1)
    asked = ends(bench.frame((2, 6), question(asker, UNKNOWN)))
    assert [end for end in asked if end not in LEGS] == [(1, 6), (3, 6)]
    assert len([end for end in asked if end in LEGS]) == 1
    (leg,) = [end for end in asked if end in LEGS]
    bench.feed(PortRoleChanged(*leg, PortRole.DOWN))
    (other,) = set(LEGS) - {leg}
    assert other in ends(bench.frame((2, 6), question(asker, bytes((10, 0, 9, 8)))))


@pytest.mark.parametrize("leg", LEGS)
def test_a_question_by_any_leg_counts_and_does_not_go_to_another(bench, bonded, leg):
    assert ends(bench.frame(leg, question(bonded, UNKNOWN))) == sorted(OTHERS)
    assert not bench.notices


@pytest.mark.parametrize("leg", LEGS)
def test_who_asks_by_any_leg_is_answered_and_sends_by_both(bench, bonded, make_host, leg):
    other = make_host(2, 2, 6)
    bench.feed(other)
    bench.run(0.1)
    (answer,) = bench.frame(leg, question(bonded, other.addresses[0]))
    assert (answer.dpid, *answer.ports) in LEGS
    assert decode(answer.data).sender_mac == other.mac
    bench.run(0.1)
    for start in LEGS:
        assert bench.trace(start, other.mac)[-1] == (2, 6)


@pytest.mark.parametrize("leg", LEGS)
def test_a_packet_by_any_leg_is_delivered_and_no_false_one(bench, bonded, make_host, leg):
    other = make_host(2, 2, 6)
    bench.feed(other)
    bench.run(0.1)
    data = encode_udp(bonded.mac, bonded.addresses[0], other.addresses[0], b"x", eth_dst=other.mac)
    assert ends(bench.frame(leg, data)) == [(2, 6)]
    assert not bench.core.counters["unicast-spoofed"]
    assert ends(bench.frame((3, 6), data)) == []
    assert bench.core.counters["unicast-spoofed"] == 1


def test_what_comes_back_by_another_leg_is_not_sent_there_again(bench, bonded):
    data = encode_udp(b"\2\0\0\0\0\x63", bytes((10, 9, 9, 9)), bonded.addresses[0], b"x", eth_dst=bonded.mac)
    assert ends(bench.frame(LEGS[1], data)) == []


def test_packets_follow_a_host_to_its_other_leg(bench, bonded, make_host):
    other = make_host(2, 2, 6)
    bench.feed(other)
    bench.meet([bonded, other])
    assert bench.trace((2, 6), bonded.mac)[-1] == LEGS[0]
    bench.feed(PortRoleChanged(*LEGS[0], PortRole.DOWN))
    bench.feed(bonded._replace(dpid=LEGS[1][0], port_no=LEGS[1][1]))
    bench.run(0.01)
    assert bench.trace((2, 6), bonded.mac)[-1] == LEGS[1]


def test_another_policy_ends_a_group(bench, bonded, make_host):
    bench.feed(UnicastChanged(settings()))
    assert LEGS[1] in ends(bench.frame(LEGS[0], question(bonded, UNKNOWN)))
    bench.frame(LEGS[1], question(bonded, UNKNOWN))
    assert bench.core.counters["resolution-spoofed"] == 1
