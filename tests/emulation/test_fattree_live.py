"""A FatTree, full of loops, under a live controller."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest

from topology.generators import make
from topology.graph import Graph

pytestmark = pytest.mark.emulation

RATE_BPS = 10e6  # 1,000 packets/s


@pytest.fixture(scope="module")
def bench() -> tuple[Graph, dict[str, Any]]:
    return make("fattree", {"k": 4}), {}


def test_pingall_loses_nothing(live: Any, unanswered: Any) -> None:
    assert unanswered(live, list(permutations(live.fabric.graph.hosts(), 2))) == []


def test_steady_receiver_sees_nothing_of_others_coming_and_going(live: Any, group: str) -> None:
    live.join(group, "h16")
    live.stream(1, "h1", group, RATE_BPS)
    live.fabric.send(1)
    come_and_go = ("h2", "h5", "h9", "h12", "h15")
    members = {"h16"}
    for host in come_and_go:
        members.add(host)
        live.fabric.join(host, group)
        live.wait_members(group, members)
    for host in come_and_go:
        live.fabric.leave(host, group)
    live.wait_members(group, {"h16"})
    live.halt()
    assert live.counts(1, f"h16 {group}")[0] > 200
    live.assert_all_received(1, f"h16 {group}")


def test_stream_survives_whatever_cable_is_pulled(live: Any, group: str) -> None:
    live.join(group, "h16")
    live.stream(1, "h1", group, RATE_BPS)
    for phase, link in enumerate(live.tree(group), 1):
        live.fabric.link_down(*link)
        live.wait_ready(links=31)
        live.send(phase, 0.3)
        live.assert_all_received(phase, f"h16 {group}")
        live.fabric.link_up(*link)
        live.wait_ready(links=32)
