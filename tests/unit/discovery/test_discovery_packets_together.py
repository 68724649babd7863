"""Packet-ins that came together are taken as they would be one after the other."""

from __future__ import annotations

import random

import pytest

from controller.config.vlans import PortVlans, Vlans
from controller.discovery.settings import DiscoverySettings
from controller.events import PacketReceived
from controller.wire.arp import encode_arp
from controller.wire.packets import Arp
from controller.wire.udp import encode_udp

PORTS = range(1, 5)
ACCESS = DiscoverySettings(vlans=Vlans(default=PortVlans(10, frozenset())))


def mac(number):
    return bytes((2, 0, 0, 0, 0, number))


def address(number):
    return bytes((10, 0, 0, number))


def packet(rng):
    """Draw a frame of one of six hosts at any port: data, ARP, or something broken; some match no flow entry."""
    host, port_no = rng.randrange(1, 7), rng.choice(PORTS)
    if rng.random() < 0.6:
        frame = encode_udp(mac(host), address(host), bytes((239, 1, 1, 1)), b"data")
    else:
        frame = encode_arp(Arp(mac(host), b"\xff" * 6, 1, mac(host), address(host), bytes(6), address(host)))
    if rng.random() < 0.1:
        frame = frame[: rng.randrange(len(frame))]
    return PacketReceived(rng.randrange(1, 3), port_no, frame, rng.random() < 0.05)


@pytest.mark.parametrize("settings", [DiscoverySettings(), ACCESS], ids=["no VLANs", "VLANs"])
@pytest.mark.parametrize("seed", range(4))
def test_they_have_the_effects_of_one_after_the_other(make_world, settings, seed):
    one_by_one, together = make_world(settings), make_world(settings)
    for world in (one_by_one, together):
        for dpid in (1, 2):
            world.connect(dpid, PORTS)
        world.run(10.0)
    rng = random.Random(seed)
    learnt = 0
    for _ in range(40):
        events = [packet(rng) for _ in range(rng.randrange(1, 17))]
        expected = [effect for event in events for effect in one_by_one.core.handle(event, one_by_one.now)]
        effects = []
        together.core.packets_received(iter(events), together.now, effects)
        assert effects == expected
        learnt += len(effects)
        for world in (one_by_one, together):
            world.perform(expected)
            world.run(0.5)
    assert learnt > 20
    assert one_by_one.core.snapshot() == together.core.snapshot()
