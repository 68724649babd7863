"""An IP or MAC address has one holder in each fabric: hosts that no link joins are not in each other's way."""

from __future__ import annotations

import pytest

from controller.discovery.journal import HostsRead
from controller.kernel.domains import address_of, domain_of, in_domain
from controller.wire.addresses import format_mac
from topology.events import HostLearnt
from topology.host_names import numbered

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


# One MAC address in two fabrics

TWIN = numbered(A, 2)


@pytest.fixture
def twins(world):
    """A, and a host with its MAC and IP addresses at the other switch, each of which has spoken."""
    world.host(TWIN, (2, 4), IP)
    assert world.say(TWIN, IP) == [HostLearnt(TWIN, 2, 4, (IP,))]
    return world


def test_one_mac_address_in_two_fabrics_is_two_hosts_and_nobody_is_asked(twins):
    sent = len(twins.sent)
    assert twins.fabric.hosts() == (HostLearnt(A, 1, 2, (IP,)), HostLearnt(TWIN, 2, 4, (IP,)))
    for end in ((1, 2), (2, 4)):
        assert not twins.core.binding_conflict(A, IP, *end)
    for end in ((1, 3), (2, 3)):
        assert twins.core.binding_conflict(A, IP, *end), "within a fabric it is one host's"
    assert not [packet for packet in twins.sent[sent:] if packet.ports in ((2,), (4,))]
    assert not twins.notices


def test_each_of_two_hosts_with_a_mac_address_ages_by_itself(twins):
    twins.hosts.pop(A)
    twins.run(twins.settings.host_timeout_s + 60.0)
    assert twins.fabric.hosts() == (HostLearnt(TWIN, 2, 4, (IP,)),)
    assert not twins.core.binding_conflict(A, IP, 1, 3) and twins.core.binding_conflict(A, IP, 2, 3)
    assert twins.say(TWIN, OTHER_IP) == [HostLearnt(TWIN, 2, 4, (IP, OTHER_IP))], "it keeps its name"


def test_within_its_fabric_a_host_with_a_shared_mac_address_is_asked_before_it_has_moved(twins):
    twins.say(A, IP, (2, 3))
    twins.run(3.0)
    assert twins.fabric.host(TWIN).port_no == 4, "it answers"
    assert {notice.kind for notice in twins.notices} == {"spoof-suspected"}
    twins.host(TWIN, (2, 1), IP)
    twins.run(60.0)
    twins.say(TWIN, IP)
    twins.run(3.0)
    assert twins.fabric.host(TWIN) == HostLearnt(TWIN, 2, 1, (IP,))
    assert twins.fabric.host(A) == HostLearnt(A, 1, 2, (IP,))


def test_a_cable_between_hosts_with_one_mac_address_is_told_and_the_first_stays(twins):
    twins.cable((1, 1), (2, 1))
    twins.run(3.0)
    assert twins.fabric.hosts() == (HostLearnt(A, 1, 2, (IP,)),)
    (told,) = [notice for notice in twins.notices if notice.kind == "mac-in-both-fabrics"]
    assert told.text.startswith(
        "Port 2:4 has a host with the MAC address 02:00:00:00:00:0a, which one at port 1:2 has"
    )
    twins.say(TWIN, IP)
    twins.run(3.0)
    assert twins.fabric.hosts() == (HostLearnt(A, 1, 2, (IP,)),)
    twins.hosts.pop(A)
    twins.run(60.0)
    twins.say(TWIN, IP)
    twins.run(3.0)
    assert twins.fabric.hosts() == (HostLearnt(A, 2, 4, (IP,)),), "the first answers no more"


def test_a_restarted_controller_knows_both_hosts_with_a_mac_address(twins, make_world):
    twins.run(2.0)
    again = make_world()
    again.hosts, again.addresses = twins.hosts, twins.addresses
    again.feed(HostsRead(tuple(twins.journal)))
    again.connect(2)
    again.connect(1)
    again.run(8.0)
    assert again.fabric.hosts() == twins.fabric.hosts()
    twins.port((2, 4), False)
    twins.run(2.0)
    assert twins.journal[-1] == {"mac": "02:00:00:00:00:0a", "number": 2, "dpid": None}


@pytest.mark.parametrize("number", [0, -1, 1 << 24, True, "2", None])
def test_a_record_with_a_number_that_is_none_is_a_fault(make_world, number):
    world = make_world()
    record = {"mac": "02:00:00:00:00:0a", "number": number, "dpid": 1, "port_no": 2, "ips": []}
    world.feed(HostsRead((record,)))
    assert [notice.kind for notice in world.notices] == ["host-journal-faulty"]


def test_a_name_in_a_vlan_may_be_shared_too():
    name = numbered(in_domain(A, 20), 3)
    assert format_mac(name) == "02:00:00:00:00:0a@20~3"
    assert (address_of(name), domain_of(name)) == (A, 20)
