"""A host with more addresses than are kept: the one unused longest gives way, and nobody else's does."""

from __future__ import annotations

import pytest

from controller.discovery.settings import DiscoverySettings
from controller.wire.packets import Data, GroupRecord, RecordType, Report
from topology.events import HostLearnt

A, B = b"\x02\0\0\0\0\x0a", b"\x02\0\0\0\0\x0b"
HERE, THERE = (1, 2), (1, 3)
IPV4, LINK_LOCAL = b"\x0a\0\0\x0a", b"\xfe\x80" + bytes(13) + b"\x0a"
IPV4_B = b"\x0a\0\0\x0b"
BOUND = DiscoverySettings().addresses_per_host
HOUR_S = 3600.0


def temporary(n: int) -> bytes:
    """An IPv6 address that is used for a while (RFC 8981)."""
    return b"\xfd" + bytes(13) + n.to_bytes(2, "big")


@pytest.fixture
def world(make_world):
    world = make_world()
    world.connect(1)
    world.run(1.0)
    return world


def speak(world, mac, address, end=HERE):
    world.perform(
        world.core.packet_received(
            *end, Data(4 if len(address) == 4 else 6, mac, address, b"\xef\1\1\1", 9), world.now
        )
    )


def addresses(world, mac=A):
    return set(world.fabric.host(mac).addresses)


def test_a_day_of_temporary_addresses(make_world):
    """40 addresses a day, all answered for until the end, as hosts do for those that they use no more.

    Ports are probed every 20 s: what LLDP frames find is no matter of addresses, and a day has many.
    """
    world = make_world(DiscoverySettings(lldp_interval_s=20.0))
    world.connect(1)
    world.run(1.0)
    world.host(A, HERE, IPV4, LINK_LOCAL, *map(temporary, range(40)))
    world.host(B, THERE, IPV4_B)
    world.say(B, IPV4_B)
    record = GroupRecord(RecordType.MODE_IS_EXCLUDE, b"\xff\x0e" + bytes(13) + b"\1")
    for n in range(40):
        for minute in range(36):
            speak(world, A, temporary(n))
            if minute % 2:
                speak(world, A, IPV4)
                world.perform(world.core.packet_received(*HERE, Report(6, 2, A, LINK_LOCAL, (record,)), world.now))
            assert temporary(n) in addresses(world)
            assert not world.core.binding_conflict(A, temporary(n), *HERE)
            world.run(60.0)
        assert len(addresses(world)) <= BOUND
    assert addresses(world) == {IPV4, LINK_LOCAL, *map(temporary, range(40 - BOUND + 2, 40))}
    assert addresses(world, B) == {IPV4_B}
    assert world.core.counters["address-limit"] == 40 + 2 - BOUND
    assert world.core.counters["address-turnover"] == 0
    assert world.fabric.host_by_ip(temporary(0)) is None


def test_an_answer_to_a_question_of_ours_is_no_use_of_an_address(world):
    world.host(A, HERE, *map(temporary, range(BOUND)))
    for n in range(BOUND):
        world.say(A, temporary(n))
        world.now += 1.0
    world.run(0.9 * world.settings.host_timeout_s)
    for n in range(1, BOUND):
        speak(world, A, temporary(n))
    world.run(0.5 * world.settings.host_timeout_s)  # 0 was asked for, and answered, after the others had spoken
    world.say(A, temporary(99))
    assert temporary(0) not in addresses(world)
    assert len(addresses(world)) == BOUND


def test_temporary_addresses_do_not_cost_a_host_its_quiet_ipv4_address(world):
    world.host(A, HERE, IPV4, *map(temporary, range(2 * BOUND)))
    world.say(A, IPV4)
    for n in range(2 * BOUND):
        world.run(5.0)
        world.say(A, temporary(n))
    assert addresses(world) == {IPV4, *map(temporary, range(BOUND + 1, 2 * BOUND))}
    world.host(B, THERE)
    world.say(B, IPV4, THERE)
    world.run(10.0)
    assert world.fabric.host_by_ip(IPV4).mac == A


def test_what_others_claim_does_not_give_way(world):
    """Who claims an address of a host does not get it by the host's taking another one."""
    world.host(A, HERE, *map(temporary, range(BOUND + 1)))
    world.host(B, THERE, IPV4_B)
    world.say(B, IPV4_B)
    for n in range(BOUND):
        world.say(A, temporary(n))
        world.now += 1.0
    world.hosts.pop(A)  # the answer to the question takes its time
    speak(world, B, temporary(0), THERE)
    speak(world, A, temporary(BOUND))
    assert world.fabric.host_by_ip(temporary(0)).mac == A
    assert world.core.binding_conflict(B, temporary(0), *THERE)
    assert temporary(BOUND) in addresses(world)
    assert temporary(1) not in addresses(world)


def test_an_attacker_displaces_only_addresses_of_its_own(world):
    world.host(A, HERE, *map(temporary, range(BOUND)))
    for n in range(BOUND):
        world.say(A, temporary(n))
    before = addresses(world)
    for n in range(1000, 1400):
        speak(world, B, temporary(n), THERE)  # by its own MAC address
        speak(world, A, temporary(n + 1000), THERE)  # by that of the other host
        world.run(0.02)
    assert addresses(world) == before
    assert len(addresses(world, B)) == BOUND


def test_addresses_that_change_all_the_time_are_not_followed_all_the_time(world):
    told = []
    for n in range(4000):
        speak(world, A, temporary(n))
        told += world.run(0.01)
    learnt = [event for event in world.events if isinstance(event, HostLearnt)]
    assert BOUND + 32 < len(learnt) <= BOUND + 32 + 2 * 40 + 1
    assert world.core.counters["address-turnover"] > 3500
    world.run(1.0)
    speak(world, A, temporary(9999))
    assert temporary(9999) in addresses(world)
    assert not world.core.binding_conflict(A, temporary(9998), *HERE)


def test_a_host_that_moves_keeps_its_newest_addresses(world):
    world.host(A, HERE)
    for n in range(BOUND):
        world.say(A, temporary(n), HERE)
    world.hosts[A] = THERE
    speak(world, A, temporary(BOUND), THERE)
    world.run(2.0)
    host = world.fabric.host(A)
    assert (host.dpid, host.port_no) == THERE
    assert temporary(BOUND) in host.addresses
    assert len(host.addresses) == BOUND


def ipv4(n: int) -> bytes:
    return b"\x0a\1" + n.to_bytes(2, "big")


def displaced(world, count=1):
    """Have A use so many IPv4 addresses more than are kept; the first ones give way."""
    world.host(A, HERE, *map(ipv4, range(BOUND + count)))
    for n in range(BOUND + count):
        world.say(A, ipv4(n))
        world.now += 1.0
    assert not addresses(world) & {ipv4(n) for n in range(count)}
    world.host(B, THERE, IPV4_B)
    world.say(B, IPV4_B)


def test_an_address_that_gave_way_is_not_taken_from_a_host_that_answers_for_it(world):
    displaced(world)
    world.say(B, ipv4(0), THERE)
    world.run(2.0)
    assert world.fabric.host_by_ip(ipv4(0)).mac == A
    assert world.core.binding_conflict(B, ipv4(0), *THERE)
    assert (world.core.counters["spoof-suspected"], len(addresses(world))) == (1, BOUND)


def test_an_address_that_gave_way_goes_to_another_host_where_nobody_answers_for_it(world):
    displaced(world)
    world.addresses[A] = tuple(map(ipv4, range(1, BOUND + 1)))
    world.say(B, ipv4(0), THERE)
    world.run(2.0)
    assert world.fabric.host_by_ip(ipv4(0)).mac == B
    assert len(addresses(world)) == BOUND


def test_an_address_that_gives_way_while_it_is_claimed_is_asked_for_still(world):
    displaced(world, 0)
    world.hosts.pop(A)
    for n in range(BOUND):
        speak(world, B, ipv4(n), THERE)
    speak(world, A, ipv4(BOUND))
    assert not addresses(world, B) & set(map(ipv4, range(BOUND)))
    world.hosts[A] = HERE
    world.run(2.0)
    assert not addresses(world, B) & set(map(ipv4, range(BOUND)))
    assert len(addresses(world)) == BOUND


def test_an_address_that_gave_way_is_free_when_its_user_is_gone(world):
    displaced(world)
    world.hosts.pop(A)
    world.say(B, ipv4(0), THERE)
    assert world.fabric.host_by_ip(ipv4(0)) is None
    world.port(HERE, up=False)
    assert world.fabric.host_by_ip(ipv4(0)).mac == B
    world.port(HERE, up=True)
    world.run(5.0)
    world.host(A, HERE, *map(ipv4, range(BOUND + 1)))
    world.say(A, ipv4(0))
    assert world.fabric.host_by_ip(ipv4(0)).mac == A, "it spoke at its old port again"


def test_the_addresses_that_gave_way_are_as_many_as_those_that_are_kept(world):
    displaced(world, 2 * BOUND)
    world.hosts.pop(A)
    for n in range(2 * BOUND):
        speak(world, B, ipv4(n), THERE)
    assert addresses(world, B) <= {IPV4_B, *map(ipv4, range(BOUND))}
    assert ipv4(BOUND - 1) in addresses(world, B), "those that gave way first are nobody's any more"
    assert not any(world.fabric.host_by_ip(ipv4(n)) for n in range(BOUND, 2 * BOUND))
