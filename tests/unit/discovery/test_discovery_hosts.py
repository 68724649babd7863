"""Hosts: learning, ageing, moves, spoofing and bounds."""

from __future__ import annotations

import pytest

from controller.discovery.settings import DiscoverySettings
from controller.effects import SendPacket
from controller.wire.arp import encode_arp
from controller.wire.frame import decode
from controller.wire.nd import encode_neighbour
from controller.wire.packets import Arp, Data, GroupRecord, Neighbour, RecordType, Report, UnicastPacket
from topology.events import HostGone, HostLearnt, PortRole

A, B, C = (b"\x02\0\0\0\0" + bytes((n,)) for n in (0xA, 0xB, 0xC))
IP_A, IP_B = b"\x0a\0\0\x0a", b"\x0a\0\0\x0b"
IP6_A = b"\xfe\x80" + bytes(13) + b"\x0a"
QUIET = b"\x0a\0\0\x63"


@pytest.fixture
def world(make_world):
    world = make_world()
    world.cable((1, 1), (2, 1))
    world.connect(1)
    world.connect(2)
    world.run(1.0)
    del world.events[:], world.notices[:], world.sent[:]
    return world


def kinds(world):
    return {notice.kind for notice in world.notices}


def test_arp_nd_reports_data_and_unicast_teach_a_host_with_its_addresses(world):
    world.host(A, (1, 2), IP_A)
    assert world.say(A, IP_A) == [HostLearnt(A, 1, 2, (IP_A,))]
    assert world.say(A, IP6_A) == [HostLearnt(A, 1, 2, tuple(sorted((IP_A, IP6_A))))]
    assert world.say(A, IP_A) == []
    group = b"\xef\x01\x01\x01"
    record = GroupRecord(RecordType.MODE_IS_EXCLUDE, group)
    for number, packet in enumerate(
        (
            Report(4, 3, B, IP_B, (record,)),
            Data(4, B, b"\x0a\0\0\x0c", group, 100),
            UnicastPacket(4, B, A, b"\x0a\0\0\x0d", IP_A),
        )
    ):
        events = world.core.packet_received(2, 2, packet, world.now)
        events = [event for event in events if not isinstance(event, SendPacket)]
        assert [type(event) for event in events] == [HostLearnt]
        assert len(events[0].addresses) == number + 1
        assert world.core.packet_received(2, 2, packet, world.now) == ()


def test_trunk_ports_teach_nothing(world):
    assert world.say(A, IP_A, (1, 1)) == []
    assert world.core.packet_received(2, 1, Data(4, A, IP_A, b"\xef\0\0\1", 99), world.now) == ()


@pytest.mark.parametrize("address", [bytes(4), b"\x00\0\0\1"])
def test_addresses_that_no_host_can_own_are_not_bound(world, address):
    packet = Arp(A, b"\xff" * 6, 1, A, address, bytes(6), IP_B)
    world.frame((1, 2), encode_arp(packet))
    assert world.fabric.host(A) == HostLearnt(A, 1, 2, ())


def test_duplicate_address_detection_binds_nothing(world):
    target = IP6_A
    frame = encode_neighbour(
        Neighbour(
            A, b"\x33\x33\xff\0\0\x0a", bytes(16), b"\xff\x02" + bytes(9) + b"\1\xff\0\0\x0a", True, target, None
        )
    )
    world.frame((1, 2), frame)
    assert world.fabric.host(A) == HostLearnt(A, 1, 2, ())


def test_packets_that_name_another_mac_teach_nothing(world):
    world.frame((1, 2), encode_arp(Arp(A, b"\xff" * 6, 1, B, IP_B, bytes(6), IP_A)))
    assert world.fabric.hosts() == ()
    assert "resolution-mac-mismatch" in kinds(world)


def test_what_a_port_shows_before_it_is_known_counts_once_it_is_edge(make_world):
    world = make_world()
    world.connect(1)
    assert world.fabric.role(1, 2) is PortRole.UNKNOWN
    assert world.say(A, IP_A, (1, 2)) == []
    world.run(0.5)
    assert world.fabric.host(A) == HostLearnt(A, 1, 2, (IP_A,))


def test_a_quiet_host_is_asked_and_stays_if_it_answers(world):
    world.host(A, (1, 2), IP_A, IP6_A)
    world.say(A, IP_A)
    world.say(A, IP6_A)
    assert world.run(2000.0) == []
    asked = [decode(packet.data) for packet in world.sent]
    asked = [packet for packet in asked if isinstance(packet, Arp | Neighbour)]
    assert {packet.eth_dst for packet in asked} == {A}, "only the host itself is asked"
    assert {type(packet) for packet in asked} == {Arp, Neighbour}
    assert len(asked) < 30


def test_a_host_that_answers_no_more_ages_out_address_by_address(world):
    world.host(A, (1, 2), IP_A)
    world.say(A, IP_A)
    world.say(A, QUIET)
    timeout = world.settings.host_timeout_s
    assert world.run(0.8 * timeout) == []
    assert world.run(0.3 * timeout) == [HostLearnt(A, 1, 2, (IP_A,))]
    del world.hosts[A]
    assert world.run(1.2 * timeout) == [HostGone(A, 1, 2)]
    assert world.core.next_deadline() is not None


def test_traffic_keeps_a_host_without_questions(world):
    world.host(A, (1, 2), IP_A)
    world.say(A, IP_A)
    del world.hosts[A]
    for _ in range(50):
        world.run(20.0)
        world.core.packet_received(1, 2, Data(4, A, IP_A, b"\xef\0\0\1", 99), world.now)
    assert world.fabric.host(A) == HostLearnt(A, 1, 2, (IP_A,))


def test_port_down_forgets_its_hosts(world):
    world.host(A, (1, 2), IP_A)
    world.say(A, IP_A)
    assert HostGone(A, 1, 2) in world.port((1, 2), up=False)
    assert world.fabric.hosts() == ()


def test_a_host_that_moves_after_its_port_went_down_is_learnt_at_once(world):
    world.host(A, (1, 2), IP_A)
    world.say(A, IP_A)
    world.port((1, 2), up=False)
    world.hosts[A] = (2, 3)
    assert world.say(A, IP_A) == [HostLearnt(A, 2, 3, (IP_A,))]


def test_a_host_that_moves_is_believed_when_its_old_place_is_silent(world):
    world.host(A, (1, 2), IP_A)
    world.say(A, IP_A)
    world.hosts[A] = (2, 3)
    assert world.say(A, IP_A) == []
    assert world.core.binding_conflict(A, IP_A, 2, 3)
    assert world.run(0.9) == []
    assert world.run(0.2) == [HostGone(A, 1, 2), HostLearnt(A, 2, 3, (IP_A,))]
    assert not world.core.binding_conflict(A, IP_A, 2, 3)
    world.run(1000.0)
    assert world.fabric.host(A) == HostLearnt(A, 2, 3, (IP_A,))


def test_the_old_port_going_down_ends_the_wait(world):
    world.host(A, (1, 2), IP_A)
    world.say(A, IP_A)
    world.hosts[A] = (2, 3)
    world.say(A, IP_A)
    events = world.port((1, 2), up=False)
    assert {HostGone(A, 1, 2), HostLearnt(A, 2, 3, (IP_A,))} <= set(events)


def test_a_mac_that_lives_elsewhere_cannot_be_taken(world):
    world.host(A, (1, 2), IP_A)
    world.say(A, IP_A)
    for _ in range(300):
        assert world.say(A, IP_A, (2, 3)) == []
        assert world.run(0.2) == []
    assert world.fabric.host(A) == HostLearnt(A, 1, 2, (IP_A,))
    assert "spoof-suspected" in kinds(world)
    probes = [packet for packet in world.sent if packet.dpid == 1 and isinstance(decode(packet.data), Arp)]
    assert len(probes) <= 18, "an impostor does not make the controller ask without end"


def test_an_ip_address_that_another_host_holds_cannot_be_taken(world):
    world.host(A, (1, 2), IP_A)
    world.host(B, (2, 3), IP_B)
    world.say(A, IP_A)
    world.say(B, IP_B)
    assert world.say(B, IP_A) == []
    assert world.run(5.0) == []
    assert world.core.binding_conflict(B, IP_A, 2, 3)
    assert "spoof-suspected" in kinds(world)
    assert world.fabric.host_by_ip(IP_A).mac == A


def test_an_ip_address_whose_holder_is_silent_changes_hands(world):
    world.host(A, (1, 2))
    world.host(B, (2, 3), IP_B, IP_A)
    world.say(A, IP_A)
    world.say(B, IP_B)
    world.say(B, IP_A)
    assert world.run(1.1) == [HostLearnt(A, 1, 2, ()), HostLearnt(B, 2, 3, tuple(sorted((IP_A, IP_B))))]
    assert not world.core.binding_conflict(B, IP_A, 2, 3)


def test_a_steady_host_in_mid_move_is_no_impostor(world):
    """A packet of the old place that was still on its way does not refute the move."""
    world.host(A, (1, 2), IP_A)
    world.say(A, IP_A)
    world.hosts[A] = (2, 3)
    world.say(A, IP_A)
    world.now += 0.01
    world.core.packet_received(1, 2, Data(4, A, IP_A, b"\xef\0\0\1", 99), world.now)
    assert HostLearnt(A, 2, 3, (IP_A,)) in world.run(1.1)


def test_tables_are_bounded(make_world):
    world = make_world(DiscoverySettings(hosts_per_port=8, addresses_per_host=4, challenges_per_port=3))
    world.connect(1)
    world.run(1.0)
    for n in range(1000):
        mac = b"\x02\0\0\1" + n.to_bytes(2, "big")
        world.core.packet_received(1, 2, Data(4, mac, b"\x0a\1" + n.to_bytes(2, "big"), b"\xef\0\0\1", 9), world.now)
        world.core.packet_received(1, 3, Data(4, A, b"\x0a\2" + n.to_bytes(2, "big"), b"\xef\0\0\1", 9), world.now)
    world.perform(())
    fabric = world.core.fabric
    assert len(fabric.hosts_at(1, 2)) == 8
    assert len(fabric.host(A).addresses) == 4
    assert world.core.counters["host-limit"] == 992
    assert world.core.counters["address-limit"] >= 995
    for n in range(8):
        mac = b"\x02\0\0\1" + n.to_bytes(2, "big")
        world.core.packet_received(1, 4, Data(4, mac, b"\x0a\3" + n.to_bytes(2, "big"), b"\xef\0\0\1", 9), world.now)
    assert world.core.counters["challenge-limit"] == 5


def test_a_port_takes_no_more_hosts_back_than_it_may_have(make_world):
    world = make_world(DiscoverySettings(hosts_per_port=3))
    hosts = [HostLearnt(b"\x02\0\0\2\0" + bytes((n,)), 1, 2, (b"\x0a\2\0" + bytes((n,)),)) for n in range(1, 6)]
    for host in hosts:
        world.host(host.mac, (1, 2), *host.addresses)
    world.perform(world.core.restore(hosts, world.now))
    world.connect(1)
    world.run(2.0)
    assert len(world.fabric.hosts_at(1, 2)) == 3


def test_a_host_that_moves_to_a_port_without_room_is_told_of_and_known_nowhere(make_world):
    world = make_world(DiscoverySettings(hosts_per_port=1))
    world.connect(1)
    world.run(1.0)
    world.host(A, (1, 2), IP_A)
    world.say(A, IP_A)
    world.say(B, IP_B, (1, 3))
    world.say(B, IP_B, (1, 2))
    world.run(10.0)
    assert [(host.mac, host.port_no) for host in world.fabric.hosts()] == [(A, 2)]
    assert world.core.counters["host-limit"] == 1
    world.say(B, IP_B, (1, 3))
    assert {(host.mac, host.port_no) for host in world.fabric.hosts()} == {(A, 2), (B, 3)}


def test_hosts_of_a_switch_that_returns_are_taken_back_and_asked(world):
    world.host(A, (2, 2), IP_A)
    world.host(B, (2, 3), IP_B)
    world.say(A, IP_A)
    world.say(B, IP_B)
    world.disconnect(2)
    world.run(world.settings.switch_grace_s)
    assert world.fabric.hosts() == ()
    del world.hosts[B]
    world.connect(2)
    world.run(0.6)
    assert {host.mac for host in world.fabric.hosts()} == {A, B}
    world.run(6.0)
    assert {host.mac for host in world.fabric.hosts()} == {A}


def test_hosts_of_a_lost_switch_neither_age_nor_lose_what_others_claim(make_world):
    world = make_world(DiscoverySettings(switch_grace_s=1000.0))
    world.connect(1)
    world.connect(2)
    world.cable((1, 1), (2, 1))
    world.run(1.0)
    world.host(A, (2, 2), IP_A)
    world.say(A, IP_A)
    world.disconnect(2)
    world.run(600.0)
    world.say(A, IP_A, (1, 2))
    world.run(60.0)
    assert world.fabric.host(A) == HostLearnt(A, 2, 2, (IP_A,))
    assert world.core.binding_conflict(A, IP_A, 1, 2)
    world.connect(2)
    world.run(10.0)
    assert world.fabric.host(A) == HostLearnt(A, 2, 2, (IP_A,)), "the holder was asked, and answered"
    assert world.core.counters["spoof-suspected"] == 1


def test_a_host_of_a_lost_switch_that_spoke_elsewhere_has_moved_when_the_switch_is_given_up(make_world):
    world = make_world()
    world.connect(1)
    world.connect(2)
    world.cable((1, 1), (2, 1))
    world.run(1.0)
    world.host(A, (2, 2), IP_A)
    world.say(A, IP_A)
    world.disconnect(2)
    world.host(A, (1, 2), IP_A)
    world.say(A, IP_A)
    world.run(world.settings.switch_grace_s)
    assert world.fabric.host(A) == HostLearnt(A, 1, 2, (IP_A,))


def test_hosts_known_before_a_restart_are_restored(make_world):
    world = make_world()
    world.host(A, (1, 2), IP_A)
    world.perform(world.core.restore([HostLearnt(A, 1, 2, (IP_A,)), HostLearnt(B, 1, 3, (IP_B,))], world.now))
    world.connect(1)
    world.run(0.6)
    assert {host.mac for host in world.fabric.hosts()} == {A, B}
    world.run(6.0)
    assert world.fabric.hosts() == (HostLearnt(A, 1, 2, (IP_A,)),)


def test_a_storm_is_kept_from_the_controller_for_a_while(world):
    base = set(world.rules[1])
    for n in range(2000):
        world.say(A, b"\x0a\5" + n.to_bytes(2, "big"), (1, 2))
    guards = set(world.rules[1]) - base
    assert guards and {key.match.in_port for key in guards} == {2}
    assert all(world.rules[1][key].actions == () for key in guards)
    world.run(2.0)
    assert set(world.rules[1]) == base
    assert "port-guarded" in kinds(world)
    assert world.links() == {(1, 2)}


def test_own_frames_that_return_teach_nothing(world):
    assert world.say(world.settings.controller_mac, IP_A, (1, 2)) == []


def test_snapshot_tells_all(world):
    world.host(A, (1, 2), IP_A)
    world.say(A, IP_A)
    world.port((2, 4), up=False)
    fabric = type(world.fabric)()
    for event in world.core.snapshot():
        fabric.apply(event)
    assert fabric.snapshot() == world.fabric.snapshot() == world.core.snapshot()


def test_a_storm_of_what_cannot_be_read_is_kept_from_the_controller_too(world):
    frame = bytearray(encode_arp(Arp(A, b"\xff" * 6, 1, A, IP_A, bytes(6), IP_B)))
    frame[6] |= 1  # a group for a source, which no decoder takes
    for _ in range(400):
        world.frame((1, 2), bytes(frame))
    assert world.core.counters["port-guarded"] == 1
