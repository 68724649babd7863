"""Hosts on bonds whose legs lead to two switches: one copy by whichever leg works, static and by LACP."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from apps.cli.main import main
from how_to import ROOT, SYSTEM_PATH, Reader, blocks, files, wait
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
  h1: {mode: static, ports: [{dpid: 1, port: 1}, {dpid: 2, port: 1}]}
  h2: {mode: lacp, ports: [{dpid: 1, port: 2}, {dpid: 2, port: 2}]}
"""
BONDS = {"h1": "static", "h2": "lacp"}
TORS = ("s1", "s2")


@pytest.fixture(scope="module")
def bench() -> tuple[Graph, dict[str, Any]]:
    """ToRs s1 and s2, joined by s3 and by s4; h1 and h2 are at both, h3 at s1, h4 at s2."""
    graph = Graph()
    for name in TORS:
        graph.add_node(name, NodeKind.TOR)
    for name in ("s3", "s4"):
        graph.add_node(name, NodeKind.AGGREGATION)
        for tor in TORS:
            graph.add_link(tor, name)
    for name, switches in (("h1", TORS), ("h2", TORS), ("h3", TORS[:1]), ("h4", TORS[1:])):
        graph.add_node(name, NodeKind.HOST)
        for switch in switches:
            graph.add_link(switch, name, capacity_bps=1e9)
    return graph, {"bonds": BONDS}


def legs(live: Any, host: str) -> list[tuple[int, int]]:
    """Return the dpid and port number of the switches' ends of a host's cables."""
    found = []
    for interface in live.fabric.node(host).intfList():
        link = interface.link
        end = link.intf1 if link.intf2.node.name == host else link.intf2
        found.append((int(end.node.dpid, 16), int(end.node.ports[end])))
    return found


@pytest.fixture(scope="module")
def policy_between() -> str:
    return POLICY


@pytest.fixture
def bonds(live: Any) -> Any:
    """The fabric with its bonds, whose legs all work."""
    wait_legs(live, 4)
    return live


def wait_legs(live: Any, count: int) -> None:
    """Wait until so many legs of all bonds work, to the hosts and to the controller."""

    def working(status: dict[str, Any]) -> bool:
        legs_and_others = count + len({"h3", "h4"})
        return bool(status["edge_ports"] == legs_and_others and sum(map(len, live.fabric.working_legs())) == count)

    live.controller.wait_until("status", working)
    live.wait_ready()


def said_elsewhere(live: Any) -> list[int]:
    """Return how often a host said something at a port that is not its own; tests of other bonds may count too."""
    counters = live.controller.show("status")["counters"]
    return [counters.get(kind, 0) for kind in ("report-elsewhere", "spoofed-sender")]


def leg_of(live: Any, host: str, group: str) -> str:
    """Return the ToR by which a bonded member gets a group, by what switches hold."""
    found = []
    for dpid, port_no in legs(live, host):
        switch = live.fabric.switch_with_dpid(dpid)
        flows = live.fabric.ofctl("dump-flows", switch, "--no-stats").splitlines()
        if any(group in line and f"output:{port_no}" in line.replace('"', "") for line in flows):
            found.append(switch)
    (switch,) = found
    return str(switch)


@pytest.mark.parametrize("host", sorted(BONDS))
def test_a_member_gets_one_copy_whichever_leg_works(bonds: Any, group: str, host: str) -> None:
    bonds.join(group, host, "h3")
    bonds.stream(1, "h4", group, RATE_BPS, pattern="constant")
    bonds.send(1, 0.5)
    bonds.assert_all_received(1, f"{host} {group}", f"h3 {group}")
    tor = leg_of(bonds, host, group)
    bonds.fabric.send(2)
    held_up = bonds.held_up()
    bonds.fabric.link_down(tor, host)
    wait_legs(bonds, 3)
    bonds.halt()
    sent, received, duplicates = bonds.counts(2, f"{host} {group}")
    print(host, sent - received, "lost of", sent)
    assert duplicates == 0
    assert sent - received < LOST_WITH_A_LEG + held_up.seconds() * PACKETS_PER_S
    bonds.wait_members(group, {host, "h3"})
    bonds.send(3, 0.5)
    bonds.assert_all_received(3, f"{host} {group}", f"h3 {group}")
    bonds.fabric.send(4)
    bonds.fabric.link_up(tor, host)
    wait_legs(bonds, 4)
    bonds.halt()
    bonds.assert_all_received(4, f"{host} {group}", f"h3 {group}")


@pytest.mark.parametrize("host", sorted(BONDS))
def test_a_sender_is_heard_once_by_all_but_itself(bonds: Any, group: str, host: str) -> None:
    others = sorted({"h1", "h2", "h3", "h4"} - {host})
    bonds.join(group, host, *others)
    bonds.fabric.tap(host)
    bonds.stream(1, host, group, RATE_BPS, pattern="constant")
    bonds.send(1, 0.5)
    bonds.assert_all_received(1, *(f"{other} {group}" for other in others))
    assert bonds.fabric.settled()[f"tap {host}"]["groups"] == {}, "it came back by another leg"
    names = [f"{other} {group}" for other in others]
    for phase, tor in ((2, TORS[0]), (5, TORS[1])):
        bonds.fabric.send(phase)
        held_up = bonds.held_up()
        bonds.fabric.link_down(tor, host)
        wait_legs(bonds, 3)
        may_be_lost = LOST_WITH_A_LEG + held_up.seconds() * PACKETS_PER_S
        bonds.send(phase + 1, 0.5)
        bonds.fabric.send(phase + 2)
        bonds.fabric.link_up(tor, host)
        wait_legs(bonds, 4)
        bonds.halt()
        for name in names:
            sent, received, duplicates = bonds.counts(phase, name)
            assert duplicates == 0
            assert sent - received < may_be_lost
        bonds.assert_all_received(phase + 1, *names)
        bonds.assert_all_received(phase + 2, *names)
    assert bonds.fabric.settled()[f"tap {host}"]["groups"] == {}


def test_the_guide_is_followed(bonds: Any, tmp_path: Path) -> None:
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{SYSTEM_PATH}", "PYTHONPATH": str(ROOT)}
    environment["VSRT_SOCKET"] = str(bonds.controller.socket)
    policy = files("bonds.md")["bonds.yaml"]
    (tmp_path / "bonds.yaml").write_text(policy)
    check, see_ports, see_alarms = blocks("bonds.md")
    with Reader(tmp_path, environment) as reader:
        reader.run(check)
        bonds.set_policy(policy)
        wait_legs(bonds, 4)
        shown = reader.run(see_ports)
        assert "edge, leg of server1" in shown and "edge, leg of server2" in shown
        bonds.fabric.link_down("s1", "h2")
        wait_legs(bonds, 3)
        wait(lambda: "1 of 2 legs of the link aggregation group server2 work" in reader.run(see_alarms))
        bonds.fabric.link_up("s1", "h2")
        wait_legs(bonds, 4)
        wait(lambda: is_over(reader.run(see_alarms)))


def test_who_checks_is_told_of_a_bond_that_is_not_declared_and_by_which_line_it_is(bonds: Any) -> None:
    declared = [line for line in POLICY.splitlines(keepends=True) if "  h2: " not in line]

    def undeclared() -> list[str]:
        out = io.StringIO()
        with redirect_stdout(out):
            main(["check", "--json", "--socket", str(bonds.controller.socket)])
        return [
            found["text"] for found in json.loads(out.getvalue())["findings"] if found["kind"] == "lacp-undeclared"
        ]

    assert not undeclared()
    bonds.set_policy("".join(declared))
    text = wait(lambda: next((text for text in undeclared() if "look like one bond" in text), None))
    bonds.set_policy("".join(declared) + f"  {text.split('declares: ')[1]}\n")
    wait_legs(bonds, 4)
    assert not undeclared()


def is_over(alarms: str) -> bool:
    """Tell whether nothing is said to lack legs any more; an alarm that other tests made flap stays, and says so."""
    return all("This is over" in line for line in alarms.splitlines() if "server2" in line)


def test_link_scope_groups_reach_each_host_once(bonds: Any) -> None:
    others = {"h1", "h2", "h3", "h4"}
    for host in others:
        bonds.fabric.tap(host)
    for number, host in enumerate(sorted(others), 1):
        group = f"224.0.0.{100 + number}"
        bonds.fabric.open_stream(number, host, group, 1e5, ttl=1)
        bonds.send(0, 0.5, number)
        sent = bonds.fabric.sent()[str(number)]["phases"]["0"]["sent"]
        seen = bonds.fabric.settled()
        assert sent > 0
        assert {at: seen[f"tap {at}"]["groups"].get(group, 0) for at in others} == {
            at: 0 if at == host else sent for at in others
        }


def test_hosts_reach_each_other_by_whichever_leg(bonds: Any, unanswered: Callable[..., Any]) -> None:
    pairs = [(one, other) for one in ("h1", "h2", "h3", "h4") for other in ("h1", "h2", "h3", "h4") if one != other]
    before = said_elsewhere(bonds)
    assert unanswered(bonds, pairs) == []
    for tor in TORS:
        bonds.fabric.link_down(tor, "h1")
        wait_legs(bonds, 3)
        assert unanswered(bonds, pairs, rounds=5) == []
        bonds.fabric.link_up(tor, "h1")
        wait_legs(bonds, 4)
    assert unanswered(bonds, pairs) == []
    assert said_elsewhere(bonds) == before
