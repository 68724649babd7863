"""Open vSwitch as a fat tree whose cores have one entry for each set of pods: no packet is lost or doubled."""

from __future__ import annotations

import time
from typing import Any

import pytest

from topology.generators import make
from topology.graph import Graph, NodeKind

pytestmark = pytest.mark.emulation

GROUPS, TABLE = 24, 60
MEMBERS, SENDER, GUEST = ("h1", "h6", "h11"), "h16", "h13"
RATE_BPS, FRAME_BYTES = 32_000, 200
POLICY = """\
version: 1
default: allow
limits: {{groups_per_port: 1024, senders_per_port: 1024, reports_per_second_per_port: 10000}}
multicast: {{querier: {{response_interval_s: 1, last_member_interval_s: 0.2}}}}
overcommit: {{mode: {mode}, capacity: {{default: {table}}}}}
"""


@pytest.fixture(scope="module")
def bench() -> tuple[Graph, dict[str, Any]]:
    return make("fattree", {"k": 4}), {}


@pytest.fixture(scope="module")
def policy_between() -> str:
    return POLICY.format(mode="swap", table=1000)


def group_of(number: int) -> str:
    return f"239.65.0.{number}"


def at_cores(live: Any) -> tuple[int, int]:
    """Return how many entries of single groups, and how many shared ones, the fullest core has."""
    found = []
    graph = live.fabric.graph
    for core in (switch for switch in graph.switches() if graph.kind(switch) is NodeKind.CORE):
        entries = live.fabric.ofctl("dump-flows", core, "table=2", "--no-stats").splitlines()
        own = sum("nw_dst=239.65." in entry for entry in entries)
        found.append((own, sum("dl_dst=03:80" in entry for entry in entries)))
    return max(own for own, _ in found), max(shared for _, shared in found)


def wait_until(live: Any, wanted: tuple[int, int]) -> None:
    deadline_s = time.monotonic() + 40
    while (found := at_cores(live)) != wanted:
        assert time.monotonic() < deadline_s, found
        time.sleep(0.3)


def wait_members(live: Any, names: set[str], groups: int = GROUPS) -> None:
    wanted = {live.mac(name) for name in names}
    live.controller.wait_until(
        "groups",
        lambda known: sum({member["mac"] for member in found["members"]} == wanted for found in known) == groups,
        timeout_s=60,
    )
    live.wait_ready()


def assert_all_arrived(live: Any, phases: range, names: tuple[str, ...], groups: int = GROUPS) -> None:
    sent, seen = live.fabric.sent(), live.fabric.settled()
    missed = {}
    for number in range(groups):
        for phase in phases:
            wanted = sent[str(number)]["phases"][str(phase)]["sent"]
            for name in names:
                tally = seen[f"{name} {group_of(number)}"]["streams"].get(f"{number}:{phase}", {})
                found = (tally.get("received", 0), tally.get("duplicates", 0))
                if found != (wanted, 0):
                    missed[number, phase, name] = (*found, wanted)
    assert missed == {}


@pytest.mark.each_framework
def test_groups_go_over_to_shared_entries_and_back_under_packets(live: Any) -> None:
    """They come in with entries of their own; then tables have no ample room, members come and go, the mode ends."""
    streams = range(GROUPS)
    for number in streams:
        for name in MEMBERS:
            live.fabric.join(name, group_of(number))
        live.fabric.open_stream(number, SENDER, group_of(number), RATE_BPS, frame_bytes=FRAME_BYTES)
    wait_members(live, set(MEMBERS))
    live.send(1, 0.5)
    live.controller.wait_until("groups", lambda groups: sum(not found["out"] for found in groups) == GROUPS)
    live.wait_ready()
    assert at_cores(live)[1] == 0
    live.fabric.send(2, None, streams)
    live.set_policy(POLICY.format(mode="swap", table=TABLE))
    wait_until(live, (0, 1))
    live.fabric.send(3, None, streams)
    for number in streams:
        live.fabric.join(GUEST, group_of(number))
    wait_members(live, {*MEMBERS, GUEST})
    live.fabric.send(4, None, streams)
    for number in streams:
        live.fabric.leave(GUEST, group_of(number))
    wait_members(live, set(MEMBERS))
    wait_until(live, (0, 1))
    live.fabric.send(5, None, streams)
    live.set_policy(POLICY.format(mode="off", table=TABLE))
    deadline_s = time.monotonic() + 40
    while at_cores(live)[1]:
        assert time.monotonic() < deadline_s, at_cores(live)
        time.sleep(0.3)
    live.halt()
    live.send(6, 0.5)
    assert_all_arrived(live, range(2, 7), MEMBERS)
