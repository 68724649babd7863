"""Hosts in fabrics that no link joins hear nothing of each other, and may have the same IP addresses."""

from __future__ import annotations

import pytest

from controller.wire.addresses import BROADCAST_MAC
from controller.wire.arp import encode_arp
from controller.wire.frame import decode
from controller.wire.packets import Arp
from controller.wire.udp import encode_udp
from topology.events import HostGone
from topology.host_names import numbered

CABLES = [(1, 1, 2, 1), (3, 1, 4, 1)]
BETWEEN = (2, 2, 3, 2)
ENDS = [(dpid, 5) for dpid in (1, 2, 3, 4)]
UNKNOWN = bytes((10, 7, 7, 7))


@pytest.fixture
def hosts(make_host):
    return [make_host(n, *end) for n, end in enumerate(ENDS, 1)]


@pytest.fixture
def bench(make_bench, hosts):
    bench = make_bench()
    bench.build(CABLES, ENDS)
    for host in hosts:
        bench.feed(host)
    bench.run(0.1)
    return bench


def end(host):
    return (host.dpid, host.port_no)


def asks(host, target_ip, sender_ip=None, eth_dst=BROADCAST_MAC):
    sender_ip = host.addresses[0] if sender_ip is None else sender_ip
    return encode_arp(Arp(host.mac, eth_dst, 1, host.mac, sender_ip, bytes(6), target_ip))


def answers(host, asker):
    return encode_arp(Arp(host.mac, asker.mac, 2, host.mac, host.addresses[0], asker.mac, asker.addresses[0]))


def reached(sent):
    return {(packet.dpid, port_no) for packet in sent for port_no in packet.ports}


def sent_for(bench, place, frame):
    """Return where a frame has the controller send something within the time that a question is kept."""
    before = len(bench.sent)
    bench.frame(place, frame)
    bench.run(5.0)
    return reached(bench.sent[before:])


def test_a_question_about_a_host_of_another_fabric_stays_in_its_own(bench, hosts):
    assert sent_for(bench, end(hosts[0]), asks(hosts[0], hosts[2].addresses[0])) == {end(hosts[1])}
    assert sent_for(bench, end(hosts[0]), asks(hosts[0], UNKNOWN)) == {end(hosts[1])}


def test_checks_and_answers_by_unicast_do_not_pass(bench, hosts):
    one, other = hosts[0], hosts[2]
    assert sent_for(bench, end(one), asks(one, other.addresses[0], eth_dst=other.mac)) == set()
    assert sent_for(bench, end(one), answers(one, other)) == set()


def test_broadcasts_and_announcements_stay(bench, hosts):
    dhcp = encode_udp(hosts[0].mac, bytes(4), b"\xff" * 4, b"x", eth_dst=BROADCAST_MAC)
    assert sent_for(bench, end(hosts[0]), dhcp) == {end(hosts[1])}
    assert sent_for(bench, end(hosts[3]), asks(hosts[3], hosts[3].addresses[0])) == {end(hosts[2])}


def test_a_packet_to_a_host_of_another_fabric_is_not_delivered(bench, hosts):
    one, other = hosts[0], hosts[2]
    data = encode_udp(one.mac, one.addresses[0], other.addresses[0], b"x", eth_dst=other.mac)
    assert sent_for(bench, end(one), data) == set()
    assert bench.core.counters["unicast-other-fabric"] == 1


def test_a_cable_brings_them_together_and_its_loss_parts_them(bench, hosts):
    bench.link(BETWEEN)
    bench.run(0.1)
    (answer,) = bench.frame(end(hosts[0]), asks(hosts[0], hosts[2].addresses[0]))
    assert decode(answer.data).sender_mac == hosts[2].mac
    bench.link(BETWEEN, up=False)
    bench.run(0.1)
    assert sent_for(bench, end(hosts[0]), asks(hosts[0], hosts[2].addresses[0])) == {end(hosts[1])}


def test_a_question_that_is_open_when_a_cable_joins_them_is_answered(bench, hosts):
    bench.frame(end(hosts[0]), asks(hosts[0], hosts[2].addresses[0]))
    bench.run(1.0)
    before = len(bench.sent)
    bench.link(BETWEEN)
    bench.run(0.5)
    (answer,) = bench.sent[before:]
    assert (answer.dpid, answer.ports) == (1, (5,)) and decode(answer.data).sender_mac == hosts[2].mac


def test_of_two_hosts_with_one_ip_address_each_fabric_has_its_own(bench, hosts):
    twin = hosts[3]._replace(addresses=(hosts[1].addresses[0],))
    bench.feed(twin)
    bench.run(0.1)
    for asker, holder in ((hosts[0], hosts[1]), (hosts[2], twin)):
        (answer,) = bench.frame(end(asker), asks(asker, twin.addresses[0]))
        assert decode(answer.data).sender_mac == holder.mac
    assert not bench.core.counters["resolution-spoofed"], "each may have it"


# One MAC address in two fabrics


@pytest.fixture(params=[4, 1, 0])
def shared(request, make_bench, hosts):
    """The bench with a host at switch 4 that has the MAC and IP addresses of the one at switch 2."""
    bench = make_bench(version=request.param)
    bench.build(CABLES, ENDS)
    hosts[3] = hosts[1]._replace(mac=numbered(hosts[1].mac, 2), dpid=4)
    for host in hosts:
        bench.feed(host)
    bench.run(0.1)
    return bench


def arrives(bench, sender, mac):
    """Return where a packet of a host to a MAC address leaves the switches."""
    bench.frame(end(sender), encode_udp(sender.mac, sender.addresses[0], UNKNOWN, b"x", eth_dst=mac))
    bench.run(0.1)
    (place,) = bench.trace(end(sender), mac)
    return place


def test_each_fabric_sends_to_its_own_of_two_hosts_with_one_mac_address(shared, hosts):
    mac = hosts[1].mac
    assert arrives(shared, hosts[0], mac) == (2, 5) and arrives(shared, hosts[2], mac) == (4, 5)
    for asker in (hosts[0], hosts[2]):
        (answer,) = shared.frame(end(asker), asks(asker, hosts[1].addresses[0]))
        assert (answer.dpid, answer.ports) == (asker.dpid, (5,)) and decode(answer.data).sender_mac == mac
    dhcp = encode_udp(mac, bytes(4), b"\xff" * 4, b"x", eth_dst=BROADCAST_MAC)
    assert sent_for(shared, end(hosts[1]), dhcp) == {end(hosts[0])}
    assert sent_for(shared, end(hosts[3]), dhcp) == {end(hosts[2])}
    assert not {"relay-returned", "resolution-spoofed", "unicast-spoofed"} & shared.core.counters.keys()


def test_when_one_of_two_hosts_with_a_mac_address_goes_the_other_is_reached_still(shared, hosts):
    mac = hosts[1].mac
    arrives(shared, hosts[0], mac)
    arrives(shared, hosts[2], mac)
    shared.feed(HostGone(*hosts[1][:3]))
    shared.run(0.1)
    assert arrives(shared, hosts[2], mac) == (4, 5)
    shared.feed(hosts[1])
    shared.feed(HostGone(*hosts[3][:3]))
    shared.run(0.1)
    assert arrives(shared, hosts[0], mac) == (2, 5)


def test_after_a_join_the_host_that_stays_is_reached_from_everywhere(shared, hosts):
    mac = hosts[1].mac
    arrives(shared, hosts[0], mac)
    arrives(shared, hosts[2], mac)
    shared.link(BETWEEN)
    shared.feed(HostGone(*hosts[3][:3]))
    shared.run(0.2)
    for asker in (hosts[0], hosts[2]):
        assert arrives(shared, asker, mac) == (2, 5)
    shared.link(BETWEEN, up=False)
    shared.feed(hosts[3])
    shared.run(0.2)
    assert arrives(shared, hosts[0], mac) == (2, 5) and arrives(shared, hosts[2], mac) == (4, 5)
