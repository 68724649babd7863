"""A hot group gets further trees while it runs: each lets more pass, and nobody loses or doubles a packet for it."""

from __future__ import annotations

import time
from typing import Any

import pytest

from apps.status_client import query
from topology.generators.draft import Draft
from topology.graph import Graph, NodeKind

pytestmark = pytest.mark.emulation

SPINE_BPS = 10e6
SENDERS = [f"h{number}" for number in range(1, 9)]
RATE_BPS = 5.5e6
POLICY = """\
version: 1
default: allow
discovery: {{link_capacity_bps: 10000000}}
multicast: {{querier: {{response_interval_s: 1, last_member_interval_s: 0.2}}}}
aliases: {{mode: {mode}, pace: fast, static: {{{group}: {count}}}}}
"""


@pytest.fixture(scope="module")
def bench() -> tuple[Graph, dict[str, Any]]:
    """Eight hosts at one leaf and one at another, joined by four spines that pass 10 Mbit/s each."""
    draft = Draft(100e6)
    leaves = [draft.switch(NodeKind.TOR) for _ in range(2)]
    spines = [draft.switch(NodeKind.AGGREGATION) for _ in range(4)]
    draft.hosts(leaves[0], 8)
    draft.hosts(leaves[1], 1)
    for leaf in leaves:
        for spine in spines:
            draft.link(leaf, spine, SPINE_BPS / 100e6)
    return draft.graph, {"capacities": True}


def give(live: Any, group: str, count: int, mode: str = "static") -> None:
    """Have the policy give a group so many aliases, and wait until its senders are on their trees."""
    live.set_policy(POLICY.format(mode=mode, group=group, count=max(count, 1)) if count or mode == "dynamic" else OFF)
    if mode == "static":
        live.controller.wait_until("groups", lambda groups: is_split(groups, group, count))
        live.wait_ready()


OFF = POLICY.format(mode="off", group="239.0.0.0/8", count=1)


def is_split(groups: list[dict[str, Any]], group: str, count: int) -> bool:
    found = next((document for document in groups if document["group"] == group), None)
    if found is None or len(found["aliases"]) != count:
        return False
    return all(alias["state"] == "bound" for alias in found["aliases"])


def start(live: Any, group: str, rate_bps: float) -> None:
    live.set_policy(OFF)
    live.join(group, "h9")
    for number, host in enumerate(SENDERS, 1):
        live.stream(number, host, group, rate_bps)


def received(live: Any, group: str, phase: int, seconds: float) -> tuple[int, int]:
    """Send a phase from all; return how many packets came, and how many of them twice."""
    live.send(phase, seconds)
    counts = [live.counts(phase, f"h9 {group}", number) for number in range(1, len(SENDERS) + 1)]
    return sum(came for _, came, _ in counts), sum(twice for _, _, twice in counts)


def test_trees_come_and_go_under_packets_and_each_arrives_once(live: Any, group: str) -> None:
    start(live, group, 0.4e6)
    live.fabric.send(1)
    for count in (3, 1, 4, 0):
        give(live, group, count)
    live.halt()
    for number in range(1, len(SENDERS) + 1):
        live.assert_all_received(1, f"h9 {group}", stream=number)


def test_eight_senders_pass_as_much_more_as_there_are_trees(live: Any, group: str) -> None:
    """IBM's table 5 with spines for devices: 1, 2.0 and 3.9 times as much with 0, 1 and 3 aliases."""
    start(live, group, RATE_BPS)
    live.halt()
    came = {}
    for phase, count in enumerate((0, 1, 3), 1):
        give(live, group, count)
        came[count], twice = received(live, group, phase, 5.0)
        assert twice == 0
    assert came[1] / came[0] >= 1.9
    assert came[3] / came[0] >= 3.6


def test_a_group_that_waits_gets_trees_by_what_is_measured(live: Any, group: str) -> None:
    start(live, group, RATE_BPS)
    live.fabric.send(1)
    give(live, group, 0, mode="dynamic")
    live.controller.wait_until(
        "groups", lambda groups: any(len(found["aliases"]) >= 2 for found in groups), timeout_s=90
    )
    time.sleep(1)
    live.halt()
    came, twice = received(live, group, 2, 5.0)
    assert twice == 0
    assert came * 10_000 / 5.0 >= 2 * SPINE_BPS
    answer = query(live.controller.socket, {"changes": {"events": 0}})
    events = answer["sections"]["events"]["multicast"]["put"].values()
    moved = [event for event in events if event["kind"] == "alias-moved"]
    assert moved
    assert all("to wait less" in event["text"] for event in moved)
