"""Edge switches of OpenFlow 1.3 around a core of OpenFlow 1.0."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest

from topology.graph import Graph

pytestmark = pytest.mark.emulation
FRAMEWORK = "ryu"


@pytest.fixture(scope="module")
def bench(diamond: Graph) -> tuple[Graph, dict[str, Any]]:
    return diamond, {"old_switches": ("s3", "s4")}


def test_ipv4_groups_cross_the_old_switches(live: Any, group: str) -> None:
    live.join(group, "h2", "h3")
    live.stream(1, "h1", group)
    live.send(1, 0.5)
    live.assert_all_received(1, f"h2 {group}", f"h3 {group}")


def test_hosts_reach_each_other_across_the_old_switches(live: Any, unanswered: Any) -> None:
    pairs = list(permutations(live.fabric.graph.hosts(), 2))
    assert unanswered(live, pairs) == []
    live.fabric.link_down("s1", "s3")
    live.wait_ready(links=3)
    assert unanswered(live, pairs, rounds=5) == []
    live.fabric.link_up("s1", "s3")
    live.wait_ready(links=4)
    assert unanswered(live, pairs) == []


def test_an_ipv6_group_that_would_have_to_cross_them_is_refused_whole(live: Any) -> None:
    group = "ff1e::1010"
    live.join(group, "h2", "h3")
    assert "OpenFlow 1.0" in live.document(group)["unsupported"]
    live.controller.wait_log(f"group-unsupported: Group {group} is not served")
    for host in ("h2", "h3"):
        live.fabric.tap(host)
    live.stream(1, "h1", group)
    live.send(1, 0.3)
    seen = live.fabric.settled()
    assert [seen[f"tap {host}"]["groups"] for host in ("h2", "h3")] == [{}, {}]


def test_an_ipv6_group_on_one_new_switch_is_served(live: Any) -> None:
    group = "ff1e::1020"
    live.join(group, "h2")
    live.stream(1, "h1", group)
    live.send(1, 0.3)
    live.assert_all_received(1, f"h2 {group}")
