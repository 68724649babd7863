"""Queriers and routers behind link aggregation groups, which get the groups that they ask for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from controller.config.settings import Multicast, Querier, RouterPorts
from controller.events import PacketReceived
from controller.multicast.events import PolicyLoaded
from controller.wire.addresses import parse_ip
from controller.wire.encode import encode
from controller.wire.frame import decode
from controller.wire.packets import Query, Report
from controller.wire.udp import encode_udp

from .conftest import GROUP, OPEN, Place, World
from .test_multicast_legs import ONE_SWITCH, THREE_LEGS, TWO_SWITCHES, Bonded, with_legs

PROXIED = Multicast(
    fast_leave=True, querier=Querier(accept_others=True), router_ports=RouterPorts(learn=True, on_request=True)
)


@pytest.fixture(params=[ONE_SWITCH, TWO_SWITCHES, THREE_LEGS], ids=["one-switch", "two-switches", "three-legs"])
def routed(make_world: Callable[..., World], request: pytest.FixtureRequest) -> Bonded:
    """The bonded host is a router that gets what it asks for, and the querier; it has asked by its last leg."""
    bonded = Bonded(make_world, request.param)
    bonded.world.feed(PolicyLoaded(with_legs(*bonded.legs, policy=replace(OPEN, multicast=PROXIED))))
    asked_by(bonded, bonded.legs[-1])
    bonded.world.settle()
    return bonded


def asked_by(bonded: Bonded, leg: Place, group: bytes | None = None) -> list[Place]:
    """Have the bonded host ask by a leg; return where its query is passed on."""
    world, host = bonded.world, bonded.host
    frame = encode(Query(4, 3, host.mac, host.v4, group, (), 10.0, False, 2, 125.0))
    first = len(world.packet_outs)
    world.feed(PacketReceived(*leg, frame))
    return sorted(place for place, sent in world.packet_outs[first:] if sent == frame)


def test_a_querier_behind_legs_is_one_by_whichever_it_asks(routed: Bonded):
    world = routed.world
    others = sorted(host.place for name, host in world.hosts.items() if name != "h1")
    for leg in routed.legs:
        assert asked_by(routed, leg) == others, "once each, and not back by another leg"
    querier = world.core.membership.querier(4)
    assert (querier.is_ours, querier.address) == (False, routed.host.v4)
    first = len(world.packet_outs)
    world.advance(150.0)
    assert not [query for _, query in world.queries(first) if query.family == 4], "it asks, nobody else does"


def test_a_router_behind_legs_is_told_of_members_by_one_leg(routed: Bonded):
    world = routed.world
    first = len(world.packet_outs)
    world.join("h5")
    told = [place for place, frame in world.packet_outs[first:] if isinstance(decode(frame), Report)]
    assert len(told) == 1 and told[0] in routed.legs
    routed.down(told[0])
    world.settle()
    first = len(world.packet_outs)
    world.join("h6")
    again = [place for place, frame in world.packet_outs[first:] if isinstance(decode(frame), Report)]
    assert len(again) == 1 and again[0] in set(routed.legs) - set(told)


def test_a_router_behind_legs_gets_what_it_asks_for_and_sends_for_others(routed: Bonded):
    world = routed.world
    routed.speak_by(routed.legs[0])
    assert routed.copies(world.send("h5")).total() == 0
    world.join("h1")
    world.join("h6")
    world.settle()
    for _ in range(2):
        got = world.send("h5")
        assert (routed.copies(got).total(), got["h6"]) == (1, 1)
        world.settle()
    for leg in routed.legs:
        routed.speak_by(leg)
        for _ in range(2):
            frame = encode_udp(routed.host.mac, parse_ip("192.0.2.7"), GROUP, b"from elsewhere")
            got = world.inject(leg, frame)
            assert (routed.copies(got).total(), got["h6"]) == (0, 1)
            world.settle()
    assert not world.core.counters["spoofed-sender"]
