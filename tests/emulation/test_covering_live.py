"""Open vSwitch with one entry inside for all silent groups: no packet is lost or doubled as they sleep and wake."""

from __future__ import annotations

import time
from typing import Any

import pytest

from topology.generators.draft import Draft
from topology.graph import Graph, NodeKind

pytestmark = pytest.mark.emulation

GROUPS = 56
SENDER, MEMBERS, GUEST = "h1", ("h2", "h3"), "h4"
RATE_BPS, FRAME_BYTES = 16_000, 200
POLICY = """\
version: 1
default: allow
limits: {{groups_per_port: 1024, senders_per_port: 1024, reports_per_second_per_port: 10000}}
multicast: {{querier: {{response_interval_s: 1, last_member_interval_s: 0.2}}}}
overcommit: {{mode: cover, capacity: {{switches: {{{spine}: {room}}}}}}}
"""


@pytest.fixture(scope="module")
def bench() -> tuple[Graph, dict[str, Any]]:
    """Four leaves of a host each under one spine."""
    draft = Draft(1e9)
    leaves = [draft.switch(NodeKind.TOR) for _ in range(4)]
    spine = draft.switch(NodeKind.AGGREGATION)
    for leaf in leaves:
        draft.hosts(leaf, 1)
        draft.link(leaf, spine)
    return draft.graph, {}


@pytest.fixture(scope="module")
def policy_between(bench: tuple[Graph, dict[str, Any]]) -> str:
    return POLICY.format(spine=bench[0].attributes(spine_of(bench[0]))["dpid"], room=5000)


def spine_of(graph: Graph) -> Any:
    (spine,) = (switch for switch in graph.switches() if graph.kind(switch) is NodeKind.AGGREGATION)
    return spine


def group_of(number: int) -> str:
    return f"239.66.0.{number}"


def members_of(number: int) -> tuple[str, ...]:
    """Return the members of a group: of every other one there is none at the third leaf."""
    return MEMBERS[: 1 + number % 2]


def at_spine(live: Any) -> tuple[int, int, int]:
    """Return how many entries of groups the spine has: all, of single groups, and of covering trees."""
    entries = live.fabric.ofctl("dump-flows", spine_of(live.fabric.graph), "table=2", "--no-stats").splitlines()
    entries = [entry for entry in entries if "priority" in entry]
    own = sum("nw_dst=239.66." in entry for entry in entries)
    return len(entries), own, sum("dl_dst=03:4f" in entry for entry in entries)


def wait_members(live: Any, count: int) -> None:
    live.controller.wait_until(
        "groups", lambda groups: sum(len(found["members"]) for found in groups) == count, timeout_s=60
    )


def wait_until_spine(live: Any, wanted: Any) -> None:
    deadline_s = time.monotonic() + 90
    while not wanted(*(found := at_spine(live))):
        assert time.monotonic() < deadline_s, found
        time.sleep(0.3)


def test_silent_groups_have_an_entry_in_common_and_their_own_when_they_send(live: Any) -> None:
    streams = range(GROUPS)
    for number in streams:
        for name in members_of(number):
            live.fabric.join(name, group_of(number))
        live.fabric.open_stream(number, SENDER, group_of(number), RATE_BPS, frame_bytes=FRAME_BYTES)
    wait_members(live, 3 * GROUPS // 2)
    live.send(1, 0.5)
    wait_until_spine(live, lambda _all, own, _covering: own == GROUPS)
    live.wait_ready()
    live.controller.wait_until(
        "groups", lambda groups: not any(sender["rate_bps"] for found in groups for sender in found["senders"])
    )
    entries, *_ = at_spine(live)
    graph = live.fabric.graph
    live.set_policy(POLICY.format(spine=graph.attributes(spine_of(graph))["dpid"], room=entries + 1))
    wait_until_spine(live, lambda _all, own, covering: own < GROUPS // 4 and covering > 0)
    assert live.controller.show("status")["counters"]["covers"] > GROUPS // 2
    live.send(2, 0.5)
    live.fabric.send(3, None, streams)
    wait_until_spine(live, lambda _all, own, _covering: own > GROUPS // 2)
    live.fabric.join(GUEST, group_of(0))
    wait_members(live, 3 * GROUPS // 2 + 1)
    live.halt()
    live.send(4, 0.5)
    sent, seen = live.fabric.sent(), live.fabric.settled()
    missed = {}
    for phase in range(1, 5):
        for number in streams:
            wanted = sent[str(number)]["phases"][str(phase)]["sent"]
            for name in members_of(number):
                tally = seen[f"{name} {group_of(number)}"]["streams"].get(f"{number}:{phase}", {})
                found = (tally.get("received", 0), tally.get("duplicates", 0))
                if found != (wanted, 0):
                    missed[number, phase, name] = (*found, wanted)
    assert missed == {}
    assert live.controller.show("status")["counters"].get("table-full", 0) == 0
