"""Which switch a port leads to is known over a restart: a trunk is one before its neighbour is back."""

from __future__ import annotations

import pytest

from controller.discovery.journal import HostsRead
from topology.events import PortRole

A = b"\x02\0\0\0\0\x0a"
IP_A = b"\x0a\0\0\x0a"


@pytest.fixture
def world(make_world):
    """Switches 1 and 2, a cable between their ports 1, host A at switch 1."""
    world = make_world()
    world.cable((1, 1), (2, 1))
    world.host(A, (1, 2), IP_A)
    world.connect(1)
    world.connect(2)
    world.run(1.0)
    world.say(A, IP_A)
    world.run(2.0)
    assert world.links() == {(1, 2)}
    return world


def restart(make_world, world):
    new = make_world()
    new.cables, new.hosts, new.addresses = world.cables, world.hosts, world.addresses
    new.feed(HostsRead(tuple(world.journal)))
    return new


def role(world, end):
    return world.fabric.role(*end)


def test_a_trunk_whose_neighbour_connects_late_is_no_edge_and_nobody_is_looked_for_behind_it(make_world, world):
    new = restart(make_world, world)
    new.connect(2)
    new.run(5.0)
    assert role(new, (2, 1)) is PortRole.TRUNK
    new.say(A, IP_A, (2, 1))
    assert not new.fabric.hosts()
    new.connect(1)
    new.run(0.6)
    assert new.links() == {(1, 2)}
    assert (new.fabric.host(A).dpid, new.fabric.host(A).port_no) == (1, 2)
    assert not any(notice.kind == "edge-became-trunk" for notice in new.notices)


def test_a_neighbour_that_does_not_come_back_is_not_waited_for_in_vain(make_world, world):
    new = restart(make_world, world)
    new.connect(2)
    new.run(world.settings.switch_grace_s - 0.1)
    assert role(new, (2, 1)) is PortRole.TRUNK
    new.run(0.1 + new.settings.edge_latest_s)
    assert role(new, (2, 1)) is PortRole.EDGE
    again = restart(make_world, new)
    again.connect(2)
    again.run(new.settings.edge_latest_s)
    assert role(again, (2, 1)) is PortRole.EDGE


def test_a_port_that_was_cabled_to_a_host_meanwhile_serves_it(make_world, world):
    world.unplug((1, 1))
    world.host(A, (2, 1), IP_A)
    new = restart(make_world, world)
    new.connect(1)
    new.connect(2)
    new.run(new.settings.switch_grace_s)
    new.say(A, IP_A)
    assert (new.fabric.host(A).dpid, new.fabric.host(A).port_no) == (2, 1)


def test_a_cable_that_was_pulled_before_is_not_waited_for(make_world, world):
    world.link((1, 1), False)
    world.run(2.0)
    new = restart(make_world, world)
    new.connect(2)
    new.run(0.6)
    assert role(new, (2, 1)) is PortRole.EDGE


def test_a_port_that_was_moved_to_another_switch_is_known_to_lead_there(make_world, world):
    world.unplug((1, 1))
    world.cable((2, 1), (3, 1))
    world.port((1, 1), False)
    world.connect(3)
    world.run(10.0)
    assert world.links() == {(2, 3)}
    assert {
        (record["dpid"], record["port_no"]): record["leads_to"] for record in world.journal if "leads_to" in record
    } == {
        (1, 1): None,
        (2, 1): 3,
        (3, 1): 2,
    }


def test_nothing_is_written_where_a_restart_finds_what_was_there(make_world, world):
    new = restart(make_world, world)
    new.connect(1)
    new.connect(2)
    new.run(20.0)
    assert new.links() == {(1, 2)}
    assert not [record for record in new.journal if "leads_to" in record]


def test_a_journal_that_is_replaced_keeps_cables_that_are_not_found_yet(make_world, world):
    new = make_world()
    world.journal[:0] = [{"mac": "02:00:00:00:00:99", "dpid": None}] * 5000
    new = restart(make_world, world)
    new.connect(3)
    new.run(1.0)
    new.host(A, (3, 2), IP_A)
    new.say(A, IP_A)
    new.run(5.0)
    assert len(new.journal) < 20
    last = restart(make_world, new)
    last.connect(2)
    last.run(5.0)
    assert role(last, (2, 1)) is PortRole.TRUNK


@pytest.mark.parametrize("port_no,leads_to", [(0, 1), (1, 0), (1, -1), ("x", 1), (1, "x"), (None, None)])
def test_records_of_no_cable_are_counted_and_left_out(make_world, port_no, leads_to):
    world = make_world()
    world.feed(HostsRead(({"dpid": 1, "port_no": port_no, "leads_to": leads_to},)))
    assert [notice.kind for notice in world.notices] == ["host-journal-faulty"]
    world.connect(1)
    world.run(0.6)
    assert role(world, (1, 1)) is PortRole.EDGE


def test_no_port_becomes_edge_while_a_connected_switch_is_not_ready(make_world):
    """A switch that is slow to confirm its first entries hands over nothing, so that silence proves nothing."""
    world = make_world()
    world.cable((1, 1), (2, 1))
    world.connect(1)
    world.mute = True
    world.connect(2)
    world.run(0.9)
    assert role(world, (1, 1)) is PortRole.UNKNOWN
    world.run(0.6)
    assert role(world, (1, 1)) is PortRole.TRUNK
