"""Bonds that use one leg at a time, and bonds in VLANs: members and senders go on by whichever leg is in use."""

from __future__ import annotations

import time
from typing import Any

import pytest

from apps.status_client import query
from how_to import wait
from topology.graph import Graph, NodeKind

pytestmark = pytest.mark.emulation

RATE_BPS = 10e6
PACKETS_PER_S = 1000
LOST_WITH_A_LEG = 300
"""Of a stream, but for what comes while the controller and the switches have no processor."""

POLICY = """\
version: 1
default: allow
multicast: {querier: {query_interval_s: 20, response_interval_s: 1, last_member_interval_s: 0.2}}
link_aggregations:
  h1: {mode: active-backup, ports: [{dpid: 1, port: 1}, {dpid: 2, port: 1}]}
  h4: {mode: lacp, ports: [{dpid: 1, port: 3}, {dpid: 2, port: 3}]}
vlans:
  ports: [{ports: [{dpid: 1, port: 3}, {dpid: 2, port: 3}, {dpid: 2, port: 4}], access: 10}]
"""
TORS = ("s1", "s2")
VLAN_GROUP = "239.1.220.1"


@pytest.fixture(scope="module")
def bench() -> tuple[Graph, dict[str, Any]]:
    """ToRs s1 and s2, joined by s3; h1 and h4 are on bonds at both, h2 at s1, h3 and h5 at s2. h4, h5: VLAN 10."""
    graph = Graph()
    for name in TORS:
        graph.add_node(name, NodeKind.TOR)
    graph.add_node("s3", NodeKind.AGGREGATION)
    for tor in TORS:
        graph.add_link(tor, "s3", 10, None)
    cables = (("h1", "s1", 1), ("h1", "s2", 1), ("h2", "s1", 2), ("h3", "s2", 2))
    for host, tor, port_no in (*cables, ("h4", "s1", 3), ("h4", "s2", 3), ("h5", "s2", 4)):
        graph.add_node(host, NodeKind.HOST)
        graph.add_link(tor, host, port_no, None, capacity_bps=1e9)
    return graph, {"bonds": {"h1": "active-backup", "h4": "lacp"}}


@pytest.fixture(scope="module")
def policy_between() -> str:
    return POLICY


def wait_legs(live: Any, of_h4: int) -> None:
    """Wait until h1 uses one leg and h4 so many, to the hosts and to the controller."""

    def working(status: dict[str, Any]) -> bool:
        of_h1, of_other = live.fabric.working_legs()
        is_so = len(of_h1) == 1 and len(of_other) == of_h4
        return bool(is_so and status["edge_ports"] == 1 + of_h4 + len({"h2", "h3", "h5"}))

    live.controller.wait_until("status", working)
    live.wait_ready()


def place_of(live: Any, host: str) -> int | None:
    """Return the datapath id of the switch where the controller has a host."""
    answer = query(live.controller.socket, {"changes": {"hosts": 0}})
    found = answer["sections"]["hosts"]["multicast"]["put"].values()
    return next((known["dpid"] for known in found if known["mac"] == live.mac(host)), None)


@pytest.fixture
def bonds(live: Any) -> Any:
    live.fabric.activate_leg("h1", 1)
    wait_legs(live, 2)
    return live


def test_a_member_that_hears_one_leg_gets_each_packet_once_by_the_one_it_uses(bonds: Any, group: str) -> None:
    bonds.join(group, "h1", "h2")
    bonds.stream(1, "h3", group, RATE_BPS, pattern="constant")
    bonds.send(1, 0.5)
    bonds.assert_all_received(1, f"h1 {group}", f"h2 {group}")
    for phase, change, dpid in (
        (2, lambda: bonds.fabric.link_down("s1", "h1"), 2),
        (4, lambda: bonds.fabric.link_up("s1", "h1"), 2),
        (6, lambda: bonds.fabric.activate_leg("h1", 1), 1),
    ):
        bonds.fabric.send(phase)
        held_up = bonds.held_up()
        change()
        wait(lambda at=dpid: place_of(bonds, "h1") == at)
        wait_legs(bonds, 2)
        bonds.halt()
        sent, received, duplicates = bonds.counts(phase, f"h1 {group}")
        print(f"phase {phase}: {sent - received} of {sent} packets lost")
        assert duplicates == 0
        assert sent - received < LOST_WITH_A_LEG + held_up.seconds() * PACKETS_PER_S
        bonds.assert_all_received(phase, f"h2 {group}")
        bonds.send(phase + 1, 0.5)
        bonds.assert_all_received(phase + 1, f"h1 {group}", f"h2 {group}")


def test_a_sender_is_heard_by_whichever_leg_it_uses(bonds: Any, group: str, unanswered: Any) -> None:
    bonds.join(group, "h2", "h3")
    bonds.stream(1, "h1", group, RATE_BPS, pattern="constant")
    bonds.send(1, 0.5)
    names = [f"{host} {group}" for host in ("h2", "h3")]
    bonds.assert_all_received(1, *names)
    for phase, number in ((2, 2), (4, 1)):
        bonds.fabric.activate_leg("h1", number)
        wait(lambda dpid=number: place_of(bonds, "h1") == dpid)
        bonds.wait_ready()
        assert unanswered(bonds, [("h1", "h2"), ("h3", "h1")], rounds=5) == []
        bonds.send(phase, 0.5)
        bonds.assert_all_received(phase, *names)
    (document,) = (found for found in bonds.controller.show("groups") if found["group"] == group)
    assert len(document["senders"]) == 1, "once, whatever its legs"


def test_a_bond_in_a_vlan_is_served_there_by_whichever_leg_works(bonds: Any, group: str, unanswered: Any) -> None:
    for host in ("h4", "h2"):
        bonds.fabric.join(host, VLAN_GROUP)
    bonds.wait_members(f"{VLAN_GROUP}@10", {"h4"})
    bonds.fabric.open_stream(1, "h5", VLAN_GROUP, RATE_BPS, pattern="constant")
    bonds.send(0, 0.5)
    bonds.wait_ready()
    bonds.send(1, 0.5)
    bonds.assert_all_received(1, f"h4 {VLAN_GROUP}")
    assert bonds.counts(1, f"h2 {VLAN_GROUP}")[1] == 0, "h2 is not in the VLAN"
    for phase, tor in ((2, "s1"), (5, "s2")):
        bonds.fabric.send(phase)
        held_up = bonds.held_up()
        bonds.fabric.link_down(tor, "h4")
        wait_legs(bonds, 1)
        bonds.halt()
        sent, received, duplicates = bonds.counts(phase, f"h4 {VLAN_GROUP}")
        print(f"{tor}: {sent - received} of {sent} packets lost")
        assert duplicates == 0
        assert sent - received < LOST_WITH_A_LEG + held_up.seconds() * PACKETS_PER_S
        assert unanswered(bonds, [("h4", "h5"), ("h5", "h4")], rounds=5) == []
        bonds.fabric.link_up(tor, "h4")
        wait_legs(bonds, 2)
        bonds.send(phase + 1, 0.5)
        bonds.assert_all_received(phase + 1, f"h4 {VLAN_GROUP}")


def test_legs_in_another_fabric_are_refused_until_a_link_joins_them(bonds: Any, group: str, unanswered: Any) -> None:
    bonds.join(group, "h1", "h2")
    bonds.fabric.link_down("s1", "s3")
    wait(lambda: bonds.fabric.working_legs()[1] == ["h4-eth0"])
    wait_legs(bonds, 1)
    assert place_of(bonds, "h1") == 1
    assert unanswered(bonds, [("h1", "h2"), ("h2", "h1")], rounds=5) == []
    bonds.stream(1, "h2", group, RATE_BPS, pattern="constant")
    bonds.send(1, 0.5)
    bonds.assert_all_received(1, f"h1 {group}")
    bonds.fabric.link_up("s1", "s3")
    wait_legs(bonds, 2)
    assert unanswered(bonds, [("h4", "h5"), ("h3", "h1")], rounds=5) == []


def test_a_restart_of_the_controller_costs_a_bond_by_lacp_what_its_timeout_says(bonds: Any) -> None:
    """The bond gives up a leg that was silent for 3 s, 2 s after the controller's end at the soonest."""
    bonds.fabric.join("h4", VLAN_GROUP)
    bonds.wait_members(f"{VLAN_GROUP}@10", {"h4"})
    bonds.fabric.open_stream(1, "h5", VLAN_GROUP, RATE_BPS, pattern="constant")
    bonds.send(0, 0.5)
    bonds.wait_ready()
    bonds.fabric.send(1)
    bonds.controller.kill()
    stopped_s = time.monotonic()
    bonds.controller.start()
    started_s = time.monotonic()
    wait(lambda: len(bonds.fabric.working_legs(started_s)[1]) == 2)
    wait_legs(bonds, 2)
    away_s = time.monotonic() - stopped_s
    bonds.halt()
    sent, received, duplicates = bonds.counts(1, f"h4 {VLAN_GROUP}")
    print(f"{sent - received} of {sent} packets lost in {away_s:.1f} s")
    assert duplicates == 0
    assert (sent - received) * 1e-3 <= max(away_s - 1.5, 0.0)
    bonds.send(2, 0.5)
    bonds.assert_all_received(2, f"h4 {VLAN_GROUP}")
