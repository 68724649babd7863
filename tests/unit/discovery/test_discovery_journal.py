"""The journal of hosts: those that were known are there again after a restart, before they speak."""

from __future__ import annotations

import pytest

from controller.discovery.journal import HostsFollowed, HostsRead
from controller.wire.addresses import format_mac
from controller.wire.packets import Data
from topology.events import HostLearnt

A, B, C = (b"\x02\0\0\0\0" + bytes((n,)) for n in (10, 11, 12))
IP_A, IP_B, IP_C = (b"\x0a\0\0" + bytes((n,)) for n in (10, 11, 12))
IP6_A = b"\xfd" + bytes(14) + b"\x0a"


@pytest.fixture
def world(make_world):
    world = make_world()
    world.connect(1)
    world.run(1.0)
    world.host(A, (1, 2), IP_A, IP6_A)
    world.host(B, (1, 3), IP_B)
    world.say(A, IP_A)
    world.say(A, IP6_A)
    world.say(B, IP_B)
    return world


def restart(make_world, world, records=None):
    new = make_world()
    new.hosts, new.addresses = world.hosts, world.addresses
    new.feed(HostsRead(tuple(world.journal if records is None else records)))
    new.connect(1)
    return new


def macs(world):
    return {host.mac for host in world.fabric.hosts()}


def test_hosts_are_there_again_with_all_addresses_though_they_do_not_speak(make_world, world):
    world.run(2.0)
    known = world.fabric.hosts()
    new = restart(make_world, world)
    new.run(0.6)
    assert new.fabric.hosts() == known
    new.run(2 * world.settings.host_timeout_s)
    assert new.fabric.hosts() == known


def test_a_link_and_a_host_are_written_within_moments(make_world):
    """A link that a controller does not know of whose frames are late has a port to hosts at each end."""
    world = make_world()
    world.connect(1)
    world.connect(2)
    world.run(5.0)
    world.cable((1, 4), (2, 4))
    world.link((1, 4), True)
    until_s = world.now + 10.0
    while not world.links() and world.now < until_s:
        world.run(0.01)
    world.host(A, (1, 2), IP_A)
    world.say(A, IP_A)
    world.run(0.15)
    assert {(r["dpid"], r["port_no"]) for r in world.journal if r.get("leads_to")} == {(1, 4), (2, 4)}
    assert format_mac(A) in {record.get("mac") for record in world.journal}


def test_who_does_not_answer_after_a_restart_goes_at_once(make_world, world):
    world.run(2.0)
    del world.hosts[B]
    new = restart(make_world, world)
    new.run(0.6)
    assert macs(new) == {A, B}
    new.run(5.0)
    assert macs(new) == {A}


def test_what_a_host_says_before_its_port_is_known_does_not_cost_it_its_other_addresses(make_world, world):
    world.run(2.0)
    new = restart(make_world, world)
    new.say(A, IP6_A)
    new.run(0.6)
    assert set(new.fabric.host(A).addresses) == {IP_A, IP6_A}


def test_a_host_without_addresses_is_kept(make_world, world):
    """It cannot be asked, so silence proves nothing."""
    world.perform(world.core.packet_received(1, 4, Data(4, C, bytes(4), b"\xef\1\1\1", 9), world.now))
    world.run(2.0)
    new = restart(make_world, world)
    new.run(30.0)
    assert C in macs(new)
    new.run(world.settings.host_timeout_s)
    assert C not in macs(new)


def test_a_host_that_moved_while_nobody_looked_is_found_at_its_new_port(make_world, world):
    world.run(2.0)
    world.hosts[A] = (1, 4)
    new = restart(make_world, world)
    new.run(0.6)
    new.say(A, IP_A)
    new.run(3.0)
    assert (new.fabric.host(A).dpid, new.fabric.host(A).port_no) == (1, 4)


def test_hosts_that_are_gone_are_not_restored(make_world, world):
    world.run(2.0)
    world.port((1, 3), up=False)
    world.run(2.0)
    new = restart(make_world, world)
    new.run(0.6)
    assert macs(new) == {A}


def test_records_that_make_no_sense_are_left_out(make_world, world):
    world.run(2.0)
    good = list(world.journal)
    bad = [
        {},
        {"mac": "nothing", "dpid": 1, "port_no": 2, "ips": []},
        {"mac": "01:00:00:00:00:01", "dpid": 1, "port_no": 2, "ips": []},
        {"mac": "02:00:00:00:00:20", "dpid": 1, "port_no": "x", "ips": []},
        {"mac": "02:00:00:00:00:20", "dpid": -1, "port_no": 2, "ips": []},
        {"mac": "02:00:00:00:00:20", "dpid": 1e400, "port_no": 2, "ips": []},
        {"mac": "02:00:00:00:00:20", "dpid": 1, "port_no": 2, "ips": ["224.0.0.1"]},
        {"mac": "02:00:00:00:00:20", "dpid": 1, "port_no": 2, "ips": 5},
        {"mac": None, "dpid": None},
    ]
    new = restart(make_world, world, [*bad, *good])
    new.run(0.6)
    assert macs(new) == {A, B}
    assert [notice.text for notice in new.notices if notice.kind == "host-journal-faulty"] == [
        f"{len(bad)} records of the journal cannot be read: these hosts are found when they send."
    ]


def test_the_journal_is_bounded_by_the_hosts_there_are(make_world, world):
    longest = 0
    for n in range(6000):
        world.say(A, b"\xfd\1" + bytes(12) + n.to_bytes(2, "big"))
        world.run(1.1)
        longest = max(longest, len(world.journal))
    assert 1000 < longest < 2100
    world.hosts[A], world.addresses[A] = (1, 2), tuple(world.fabric.host(A).addresses)
    known = world.fabric.host(A)
    new = restart(make_world, world)
    new.run(0.6)
    assert new.fabric.host(A) == known


def test_a_journal_that_is_replaced_keeps_hosts_whose_ports_were_not_found_yet(make_world, world):
    world.run(2.0)
    records = [*({"mac": "02:00:00:00:00:99", "dpid": None} for _ in range(5000)), *world.journal]
    new = make_world()
    new.feed(HostsRead(tuple(records)))
    new.connect(2)
    new.run(1.0)
    new.host(C, (2, 2), IP_C)
    new.say(C, IP_C)
    new.run(5.0)
    assert {record["mac"][-2:] for record in new.journal} == {"0a", "0b", "0c"}
    assert HostLearnt(C, 2, 2, (IP_C,)) in new.fabric.hosts()


def test_hosts_of_another_controller_are_known_by_who_followed_it(make_world, world):
    """It is told records as they are written, and takes them over when it leads, however late that is."""
    world.run(2.0)
    known = world.fabric.hosts()
    new = make_world()
    new.hosts, new.addresses = world.hosts, world.addresses
    gone = {"mac": format_mac(C), "dpid": 1, "port_no": 4, "ips": []}
    for record in (gone, *world.journal, {"mac": format_mac(C), "dpid": None}):
        assert new.feed(HostsFollowed((record,))) in ((), None, [])
    new.run(10 * world.settings.host_timeout_s)
    new.feed(HostsRead(()))
    new.connect(1)
    new.run(0.6)
    assert new.fabric.hosts() == known
