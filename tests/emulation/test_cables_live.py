"""Parallel cables on Open vSwitch: groups share them, and one that is pulled or put back costs what any link does."""

from __future__ import annotations

from typing import Any

import pytest

from topology.graph import Graph, NodeKind

pytestmark = pytest.mark.emulation

RATE_BPS, PACKETS_PER_S = 5e6, 500
GROUPS = {f"239.1.200.{number}": "h3" if number < 3 else "h5" for number in range(1, 5)}
"""The member of each group: two are reached by the cables between the ToRs, two by those to the spine."""


@pytest.fixture(scope="module")
def bench() -> tuple[Graph, dict[str, Any]]:
    """Two ToRs with two cables to a spine each and two between them, and a third ToR with one cable to the spine."""
    graph = Graph()
    for name in ("s1", "s2", "s3"):
        graph.add_node(name, NodeKind.TOR)
    graph.add_node("s4", NodeKind.AGGREGATION)
    for tor, lower, upper in (("s1", 11, 1), ("s1", 12, 2), ("s2", 11, 3), ("s2", 12, 4), ("s3", 11, 5)):
        graph.add_link(tor, "s4", lower, upper)
    for port_no in (21, 22):
        graph.add_link("s1", "s2", port_no, port_no)
    for number in range(1, 7):
        graph.add_node(f"h{number}", NodeKind.HOST)
        graph.add_link(f"s{(number + 1) // 2}", f"h{number}", number % 2 + 1, 0)
    return graph, {}


def ports_between(live: Any, u: int, v: int) -> dict[str, int]:
    """Return the port of switch `u` by which each group goes to switch `v`, where several cables join these."""
    links = {group: live.document(group)["links"] for group in GROUPS}
    return {group: link[2] for group in GROUPS for link in links[group] if link[:2] == [u, v] and link[2:]}


def test_groups_share_parallel_cables_and_lose_nothing_when_one_comes_back(live: Any) -> None:
    for number, (group, member) in enumerate(GROUPS.items(), 1):
        live.join(group, member)
        live.stream(number, "h1", group, RATE_BPS, pattern="constant")
    live.halt()
    names = {group: f"{member} {group}" for group, member in GROUPS.items()}
    assert sorted(ports_between(live, 1, 2).values()) == [21, 22]
    assert sorted(ports_between(live, 1, 4).values()) == [11, 12]
    phase = 0
    for u, v, second in ((1, 2, 22), (1, 4, 12)):
        (moved,) = (group for group, port_no in ports_between(live, u, v).items() if port_no == second)
        phase += 1
        live.fabric.send(phase)
        held_up = live.held_up()
        live.fabric.link_down(f"s{u}", f"s{v}", 2)
        live.wait_ready(links=6)
        live.halt()
        assert not ports_between(live, u, v), "one cable is left, and is not told apart"
        for number, (group, name) in enumerate(names.items(), 1):
            if group != moved:
                live.assert_all_received(phase, name, stream=number)
                continue
            sent, received, duplicates = live.counts(phase, name, number)
            print(f"s{u}-s{v}: {sent - received} of {sent} packets lost")
            assert duplicates == 0
            assert sent - received < (1 + held_up.seconds()) * PACKETS_PER_S, "a second's worth"
        live.controller.wait_until("alarms", lambda found: len(found["alarms"]) == 1)
        phase += 1
        live.fabric.send(phase)
        live.fabric.link_up(f"s{u}", f"s{v}", 2)
        live.wait_ready(links=7)
        live.halt()
        for number, name in enumerate(names.values(), 1):
            live.assert_all_received(phase, name, stream=number)
        live.controller.wait_until("alarms", lambda found: not found["alarms"])


def test_hosts_reach_each_other_over_parallel_cables_whichever_is_out(live: Any, unanswered: Any) -> None:
    pairs = [(one, other) for one in ("h1", "h3", "h5") for other in ("h2", "h4", "h6")]
    assert unanswered(live, pairs) == []
    for u, v in (("s1", "s2"), ("s1", "s4"), ("s2", "s4")):
        for number in (1, 2):
            live.fabric.link_down(u, v, number)
            live.wait_ready(links=6)
            assert unanswered(live, pairs, rounds=5) == [], (u, v, number)
            live.fabric.link_up(u, v, number)
            live.wait_ready(links=7)
    assert unanswered(live, pairs) == []
