"""OpenFlow 1.0 switches do what they can, and say what they cannot."""

from __future__ import annotations

import socket
from itertools import permutations
from typing import Any

import pytest

from apps.emulation.namespace import network_of
from controller.wire.addresses import parse_ip
from controller.wire.dpids import format_dpid
from controller.wire.ethernet import ETHERTYPE_IPV4
from tests.emulation.conftest import POLICY
from topology.graph import Graph

pytestmark = pytest.mark.emulation

MARKS = """\
classes: [{name: feed, importance: 1, groups: [239.0.0.0/8], dscp: ef}]
queues: {mode: mark}
"""


@pytest.fixture(scope="module")
def bench(diamond: Graph) -> tuple[Graph, dict[str, Any]]:
    return diamond, {"protocols": "OpenFlow10"}


def test_members_receive_and_refused_hosts_do_not(live: Any, group: str) -> None:
    group = group.replace("239.1.", "239.9.", 1)
    for host in ("h2", "h3", "h4"):
        live.fabric.join(host, group)
    live.wait_members(group, {"h2", "h3"}, {"h4"})
    live.fabric.tap("h4")
    live.stream(1, "h1", group)
    live.stream(2, "h4", group)
    live.send(1, 0.5)
    live.assert_all_received(1, f"h2 {group}", f"h3 {group}")
    for host in ("h2", "h3"):
        assert live.counts(1, f"{host} {group}", 2)[1] == 0
    seen = live.fabric.settled()
    assert seen["tap h4"]["groups"] == {}


def test_source_filters_hold(live: Any, group: str) -> None:
    live.assert_excluded_source_is_kept_away(group)


def code_points(live: Any, host: str, group: str) -> set[int]:
    """Return the code points of the next packets to a group that a host gets."""
    wanted, found = parse_ip(group), []
    with network_of(live.fabric.pid(host)):
        wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETHERTYPE_IPV4))
    with wire:
        wire.bind((live.fabric.interface(host), ETHERTYPE_IPV4))
        wire.settimeout(10.0)
        while len(found) < 20:
            frame = wire.recv(2048)
            if frame[30:34] == wanted:
                found.append(frame[15] >> 2)
    return set(found)


@pytest.mark.each_framework
def test_a_stream_is_marked_while_it_flows_and_loses_nothing(live: Any, group: str) -> None:
    live.join(group, "h2", "h3")
    live.stream(1, "h1", group)
    live.fabric.send(1)
    assert code_points(live, "h2", group) == {0}
    live.set_policy(POLICY + MARKS)
    live.wait_ready()
    assert code_points(live, "h2", group) == code_points(live, "h3", group) == {46}
    live.set_policy(POLICY)
    live.wait_ready()
    assert code_points(live, "h3", group) == {0}
    live.fabric.send(2)
    live.assert_all_received(1, f"h2 {group}", f"h3 {group}")


def test_stream_survives_a_pulled_cable(live: Any, group: str) -> None:
    live.join(group, "h3")
    live.stream(1, "h1", group)
    link = live.tree(group)[0]
    live.fabric.link_down(*link)
    live.wait_ready(links=3)
    live.send(1, 0.5)
    live.assert_all_received(1, f"h3 {group}")
    assert link not in live.tree(group)


def names(dpid: int) -> tuple[str, str]:
    """A switch's name, and what it is called until it has said that."""
    return f"s{dpid}", format_dpid(dpid)


def test_ipv6_groups_are_refused_with_a_word(live: Any) -> None:
    group = "ff1e::10"
    for number in (1, 2, 3, 4):
        told = [f"ipv6-unsupported: Switch {name} speaks OpenFlow 1.0: MLD joins" for name in names(number)]
        live.controller.wait_until("status", lambda _, told=told: any(text in live.controller.log() for text in told))
    live.fabric.join("h3", group)
    live.fabric.tap("h3")
    live.fabric.open_stream(1, "h1", group, 2e6)
    live.send(0, 0.3)
    seen = live.fabric.settled()
    assert (seen[f"h3 {group}"]["streams"], seen["tap h3"]["groups"]) == ({}, {})


def test_link_scope_groups_reach_every_host(live: Any) -> None:
    live.assert_reaches_every_host("224.0.0.251")


def test_everybody_reaches_everybody(live: Any, unanswered: Any) -> None:
    assert unanswered(live, list(permutations(live.fabric.graph.hosts(), 2))) == []
