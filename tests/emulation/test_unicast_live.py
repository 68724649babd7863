"""Unicast beside multicast: everybody reaches everybody, whatever cable is pulled."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest

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
