"""An IP address has one holder in each fabric: hosts that no link joins are not in each other's way."""

from __future__ import annotations

import pytest

from topology.events import HostLearnt

A, B, C = (b"\x02\0\0\0\0" + bytes((n,)) for n in (0xA, 0xB, 0xC))
IP, OTHER_IP = b"\x0a\0\0\x0a", b"\x0a\0\0\x0b"
PLACES = {A: (1, 2), B: (2, 2), C: (2, 3)}


@pytest.fixture
def world(make_world):
    """Two switches without a link; A is at the first, B and C would be at the second."""
    world = make_world()
    world.connect(1)
    world.connect(2)
    world.run(1.0)
    for mac, place in PLACES.items():
        world.host(mac, place, IP)
    world.say(A, IP)
    world.notices.clear()
    return world


def holders(world):
    """Return at which ports the address is held."""
    return [(host.dpid, host.port_no) for host in world.fabric.hosts() if IP in host.addresses]


def test_hosts_of_two_fabrics_have_one_address_and_nobody_is_asked(world):
    assert world.say(B, IP) == [HostLearnt(B, 2, 2, (IP,))]
    world.run(5.0)
    assert holders(world) == [(1, 2), (2, 2)]
    assert not world.core.binding_conflict(A, IP, 1, 2) and not world.core.binding_conflict(B, IP, 2, 2)
    assert not world.notices


def test_within_a_fabric_the_address_is_its_holders_still(world):
    world.say(B, IP)
    world.say(C, IP)
    world.run(2.0)
    assert holders(world) == [(1, 2), (2, 2)]
    assert world.core.binding_conflict(C, IP, 2, 3)
    assert {notice.kind for notice in world.notices} == {"spoof-suspected"}


def test_who_had_it_first_keeps_it_when_a_link_joins_the_fabrics(world):
    world.say(B, IP)
    world.cable((1, 1), (2, 1))
    world.run(3.0)
    assert holders(world) == [(1, 2)]
    assert "address-in-both-fabrics" in {notice.kind for notice in world.notices}
    world.say(B, IP)
    world.run(2.0)
    assert holders(world) == [(1, 2)], "it answers"
    assert world.core.binding_conflict(B, IP, 2, 2)


def test_who_is_silent_gives_it_up_after_the_join(world):
    world.say(B, IP)
    world.cable((1, 1), (2, 1))
    world.run(3.0)
    world.hosts.pop(A)
    world.say(B, IP)
    world.run(3.0)
    assert holders(world) == [(2, 2)]


def test_a_host_that_goes_does_not_give_its_address_to_a_claimant_in_another_fabric(world):
    world.say(B, IP)
    world.say(C, IP)
    world.run(0.05)
    world.port((1, 2), False)
    world.run(0.05)
    assert holders(world) == [(2, 2)], "what C claims is B's, who was not asked long enough"
    world.run(2.0)
    assert holders(world) == [(2, 2)]


def test_addresses_that_gave_way_are_remembered_of_one_host_in_each_fabric(world):
    """Each host may have sixteen; a later one of one host is no other's that gave its way in another fabric."""
    for n in range(20):
        world.say(A, bytes((10, 1, 0, n)))
        world.run(1.0)
        world.say(B, bytes((10, 1, 0, n)))
        world.run(1.0)
    for mac in (A, B):
        assert len(world.fabric.host(mac).addresses) == 16
    world.port(PLACES[A], False)
    world.port(PLACES[B], False)
    world.run(1.0)
    assert world.fabric.hosts() == ()
