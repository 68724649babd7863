"""Who wants another host's address while that one cannot answer gets it for no longer than that."""

from __future__ import annotations

import pytest

from controller.discovery.journal import HostsRead
from controller.events import PacketReceived
from controller.wire.arp import encode_arp
from controller.wire.packets import Arp

VICTIM, THIEF = (b"\x02\0\0\0\0" + bytes((n,)) for n in (0xA, 0x66))
IP, IP_THIEF = b"\x0a\0\0\x0a", b"\x0a\0\0\x66"
AT_VICTIM, AT_THIEF = (2, 2), (1, 1)


@pytest.fixture
def world(make_world):
    """Two switches; the victim at the second one, at the first a thief who answers for the victim's address too."""
    world = make_world()
    world.cable((1, 4), (2, 4))
    world.connect(1)
    world.connect(2)
    world.run(3.0)
    world.host(VICTIM, AT_VICTIM, IP)
    world.host(THIEF, AT_THIEF, IP_THIEF, IP)
    world.say(VICTIM, IP)
    world.say(THIEF, IP_THIEF)
    world.run(2.0)
    return world


def holder(world):
    host = world.fabric.host_by_ip(IP)
    return host.mac, (host.dpid, host.port_no)


def steal(world, kind):
    if kind == "ip":
        world.say(THIEF, IP)
    else:
        world.say(VICTIM, IP, AT_THIEF)
    world.run(2.0)


def returns(world):
    world.run(2.0)
    world.say(VICTIM, IP)
    assert holder(world) == (VICTIM, AT_VICTIM)
    assert world.core.binding_conflict(THIEF, IP, *AT_THIEF)
    assert world.core.binding_conflict(VICTIM, IP, *AT_THIEF)
    world.say(THIEF, IP)
    world.say(VICTIM, IP, AT_THIEF)
    world.run(5.0)
    assert holder(world) == (VICTIM, AT_VICTIM)
    assert world.core.counters["address-reclaimed"]


@pytest.mark.parametrize("kind", ["ip", "mac"])
def test_an_address_taken_while_its_port_was_down_is_the_hosts_again(world, kind):
    world.port(AT_VICTIM, up=False)
    steal(world, kind)
    assert holder(world)[1] == AT_THIEF
    world.port(AT_VICTIM, up=True)
    returns(world)


@pytest.mark.parametrize("kind", ["ip", "mac"])
def test_an_address_taken_while_its_switch_was_away_is_the_hosts_again(world, kind):
    world.disconnect(2)
    world.run(12.0)
    steal(world, kind)
    assert holder(world)[1] == AT_THIEF
    world.connect(2)
    returns(world)


@pytest.mark.parametrize("kind", ["ip", "mac"])
def test_an_address_taken_while_the_controller_started_is_the_hosts_again(make_world, world, kind):
    new = make_world()
    new.cables, new.hosts, new.addresses = world.cables, world.hosts, world.addresses
    new.feed(HostsRead(tuple(world.journal)))
    new.connect(1)
    new.run(3.0)
    steal(new, kind)
    assert holder(new)[1] == AT_THIEF
    new.connect(2)
    returns(new)


def test_a_host_that_was_only_asked_again_need_not_speak_by_itself(world):
    world.disconnect(2)
    world.run(12.0)
    steal(world, "ip")
    world.connect(2)
    world.run(3.0)
    assert holder(world) == (VICTIM, AT_VICTIM)


def test_a_host_that_moved_from_a_dead_switch_keeps_its_new_place(world):
    world.disconnect(2)
    world.run(12.0)
    world.hosts[VICTIM] = (1, 2)
    world.say(VICTIM, IP)
    assert holder(world) == (VICTIM, (1, 2))
    before = len(world.events)
    world.connect(2)
    world.run(400.0)
    assert holder(world) == (VICTIM, (1, 2))
    assert not [event for event in world.events[before:] if getattr(event, "mac", None) == VICTIM]


def test_a_former_place_counts_once_and_not_for_long(world):
    world.port(AT_VICTIM, up=False)
    world.hosts[VICTIM] = (1, 2)
    world.say(VICTIM, IP)
    world.port(AT_VICTIM, up=True)
    world.run(world.settings.host_timeout_s + 1.0)
    world.say(VICTIM, IP, AT_VICTIM)
    world.run(3.0)
    assert holder(world) == (VICTIM, (1, 2)), "it is asked like any other"


def test_answers_that_the_guard_of_a_port_dropped_are_no_silence(world):
    """Somebody asks a host so often that its answers are too many, and claims its address while they are dropped."""
    answer = encode_arp(Arp(VICTIM, THIEF, 2, VICTIM, IP, THIEF, IP_THIEF))

    for _ in range(400):
        world.feed(PacketReceived(*AT_VICTIM, answer))
    assert world.core.counters["port-guarded"]
    del world.hosts[VICTIM]  # its switch drops what it says
    world.say(THIEF, IP)
    world.run(1.5)
    assert holder(world) == (VICTIM, AT_VICTIM)
    world.hosts[VICTIM] = AT_VICTIM
    world.run(2.0)
    assert holder(world) == (VICTIM, AT_VICTIM)
    assert world.core.counters["spoof-suspected"]
