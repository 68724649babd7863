"""Which entries a switch with many to get is sent first: those of its own hosts, and what somebody waits for.

The switches speak OpenFlow 1.0, in which each has an entry for each host.
"""

from __future__ import annotations

import pytest

from controller.wire.addresses import BROADCAST_MAC
from controller.wire.arp import encode_arp
from controller.wire.frame import decode
from controller.wire.packets import Arp

CABLES = [(1, 1, 2, 1), (2, 2, 3, 1)]
ENDS = [(1, 5), (2, 5), (3, 5)]


@pytest.fixture
def bench(make_bench, make_host):
    """Three switches in a row: the one in the middle learns of 300 hosts at the first, and confirms nothing yet."""
    bench = make_bench(version=1)
    bench.build(CABLES, ENDS)
    bench.feed(make_host(1000, 2, 5))
    bench.feed(make_host(1001, 3, 5))
    bench.run(0.1)
    bench.hold = []
    for number in range(1, 301):
        bench.feed(make_host(number, 1, 5))
    bench.run(0.1)
    return bench


def confirm_one(bench, dpid):
    """Let a switch confirm the batch that is under way: it is sent the next one."""
    reply = next(reply for reply in bench.hold if reply.dpid == dpid)
    bench.hold.remove(reply)
    bench.feed(reply)


def holds(bench, dpid, host):
    addresses = (host.mac, bench.core.location_address(host.mac))
    return any(key.match.eth_dst in addresses for key in bench.rules[dpid])


def test_a_host_of_its_own_comes_before_far_ones(bench, make_host):
    near, far = make_host(2000, 2, 6), make_host(300, 1, 5)
    bench.feed(near)
    bench.run(0.01)
    assert not holds(bench, 2, near)
    confirm_one(bench, 2)
    assert holds(bench, 2, near) and not holds(bench, 2, far)


@pytest.mark.parametrize("asker", [1000, 1001])
def test_the_entries_between_two_hosts_are_hurried_when_one_asks_for_the_other(bench, make_host, asker):
    asks, asked = make_host(asker, asker - 998, 5), make_host(300, 1, 5)
    question = Arp(asks.mac, BROADCAST_MAC, 1, asks.mac, asks.addresses[0], bytes(6), asked.addresses[0])
    bench.frame((asks.dpid, asks.port_no), encode_arp(question))
    beyond = range(2, asks.dpid + 1)
    assert not any(holds(bench, dpid, asked) for dpid in beyond)
    for dpid in beyond:
        confirm_one(bench, dpid)
    assert all(holds(bench, dpid, asked) and len(bench.rules[dpid]) < 100 for dpid in beyond)
    while not holds(bench, 1, asked):
        confirm_one(bench, 1)
    for dpid in (1, *beyond):
        confirm_one(bench, dpid)
    answers = [decode(packet.data) for packet in bench.sent if packet.dpid == asks.dpid]
    assert [answer.sender_mac for answer in answers if isinstance(answer, Arp)] == [asked.mac]


def test_a_link_that_fails_comes_before_hosts_that_are_new(make_bench, make_host):
    bench = make_bench(version=1)
    bench.build([*CABLES, (1, 2, 3, 2)], ENDS)
    first = make_host(1000, 1, 5)
    bench.feed(first)
    bench.run(0.1)
    bench.call((3,), [first])
    bench.hold = []
    for number in range(1, 301):
        bench.feed(make_host(number, 2, 5))
    bench.run(0.1)
    bench.link((1, 2, 3, 2), up=False)
    bench.run(0.01)
    confirm_one(bench, 3)
    assert bench.trace((3, 99), first.mac) == [(1, 5)]
    assert len(bench.rules[3]) < 100
