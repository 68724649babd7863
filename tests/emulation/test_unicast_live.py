"""Unicast beside multicast: everybody reaches everybody, whatever cable is pulled."""

from __future__ import annotations

import json
from itertools import permutations
from typing import Any

import pytest

from apps.status_client import query
from topology.graph import Graph

pytestmark = pytest.mark.emulation


@pytest.fixture(scope="module")
def bench(diamond: Graph) -> tuple[Graph, dict[str, Any]]:
    return diamond, {}


def test_everybody_reaches_everybody(live: Any, unanswered: Any) -> None:
    assert unanswered(live, list(permutations(live.fabric.graph.hosts(), 2))) == []


def test_ipv6_pings_are_answered(live: Any, unanswered: Any) -> None:
    assert unanswered(live, list(permutations(live.fabric.graph.hosts(), 2)), ipv6=True) == []


def test_pings_find_a_way_around_a_pulled_cable(live: Any, unanswered: Any) -> None:
    pairs = list(permutations(live.fabric.graph.hosts(), 2))
    assert unanswered(live, pairs) == []
    live.fabric.link_down("s1", "s3")
    live.wait_ready(links=3)
    for _ in range(5):  # the entries of unicast are put into place by an app of its own
        if not (left := unanswered(live, pairs)):
            break
    assert left == []


def test_a_host_that_was_not_heard_of_is_found(live: Any, unanswered: Any) -> None:
    live.fabric.link_down("s2", "h4")
    live.wait_ready(hosts=3)
    live.fabric.link_up("s2", "h4")
    live.wait_ready(edge_ports=4)
    assert unanswered(live, [("h1", "h4")]) == []


def known_addresses(live: Any) -> set[str]:
    told = query(live.controller.socket, {"changes": {"hosts": 0}})
    return {ip for host in told["sections"]["hosts"]["multicast"]["put"].values() for ip in host["ips"]}


def test_hosts_that_say_nothing_are_known_again_after_a_restart(live: Any) -> None:
    """Nobody asks for anybody's address: IPv4 addresses come from the journal and the hosts' answers to it alone."""
    hosts = live.fabric.graph.hosts()
    addresses = {live.fabric.address(host) for host in hosts}
    journal = live.controller.directory / "state" / "hosts.jsonl"

    def is_written(_status: Any) -> bool:
        lines = journal.read_text().splitlines() if journal.exists() else []
        last = {record["mac"]: record.get("ips", ()) for record in map(json.loads, lines)}
        return addresses <= {address for ips in last.values() for address in ips}

    live.controller.wait_until("status", is_written)
    live.controller.stop()
    with journal.open("a") as file:
        file.write('{"mac":"00:00:00:00:0')
    live.controller.start()
    live.controller.wait_until("status", lambda _: addresses <= known_addresses(live))
    live.wait_ready(edge_ports=len(hosts))
    assert "hosts.jsonl" in live.controller.log(), "the torn line was told of"
