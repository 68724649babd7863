"""Open vSwitch whose tables hold a quarter of the groups: no packet is lost or doubled, and none is refused."""

from __future__ import annotations

from typing import Any

import pytest

from apps.emulation import processes
from topology.generators.draft import Draft
from topology.graph import Graph, NodeKind

pytestmark = pytest.mark.emulation

TABLE = 64
GROUPS = 256
ACTIVE = 40
RATE_BPS, FRAME_BYTES = 16_000, 200
PHASE_S = 2.5
LIMITED_TABLES = (1, 2)
SENDERS = ("h1", "h2", "h3", "h4")
MEMBER = "h7"
POLICY = """\
version: 1
default: allow
limits: {{groups_per_port: 1024, senders_per_port: 1024, reports_per_second_per_port: 10000}}
multicast: {{querier: {{response_interval_s: 1, last_member_interval_s: 0.2}}}}
overcommit: {{mode: {mode}, capacity: {{default: {table}}}}}
"""
OVERCOMMITTED = POLICY.format(mode="swap", table=TABLE)


@pytest.fixture(scope="module")
def bench() -> tuple[Graph, dict[str, Any]]:
    """Four leaves of two hosts under two spines."""
    draft = Draft(1e9)
    leaves = [draft.switch(NodeKind.TOR) for _ in range(4)]
    spines = [draft.switch(NodeKind.AGGREGATION) for _ in range(2)]
    for leaf in leaves:
        draft.hosts(leaf, 2)
        for spine in spines:
            draft.link(leaf, spine)
    return draft.graph, {}


@pytest.fixture(scope="module")
def policy_between() -> str:
    return OVERCOMMITTED


def group_of(number: int) -> str:
    return f"239.64.{number >> 8}.{number & 255}"


def limit_tables(live: Any) -> None:
    """Have each table that groups have entries in refuse more than it is said to have room for."""
    for switch in live.fabric.graph.switches():
        for table in LIMITED_TABLES:
            bridge = live.fabric.node(switch).name
            made = ("--", "--id=@table", "create", "Flow_Table", f"flow_limit={TABLE}", "overflow_policy=refuse")
            processes.run("ovs-vsctl", *made, "--", "set", "Bridge", bridge, f"flow_tables:{table}=@table")


def counted(live: Any, name: str) -> int:
    return int(live.controller.show("status")["counters"].get(name, 0))


@pytest.mark.each_framework
def test_four_times_as_many_groups_as_tables_hold(live: Any) -> None:
    limit_tables(live)
    for number in range(GROUPS):
        live.fabric.join(MEMBER, group_of(number))
        host = SENDERS[number % len(SENDERS)]
        live.fabric.open_stream(number, host, group_of(number), RATE_BPS, frame_bytes=FRAME_BYTES)
    live.controller.wait_until(
        "groups", lambda groups: sum(1 for found in groups if found["members"]) >= GROUPS, timeout_s=60
    )
    waves = [range(first, first + ACTIVE) for first in range(0, GROUPS - ACTIVE + 1, ACTIVE)]
    phases = [*waves, waves[0]]
    for phase, wave in enumerate(phases, 1):
        live.send(phase, PHASE_S, *wave)
    sent, seen = live.fabric.sent(), live.fabric.settled()
    for phase, wave in enumerate(phases, 1):
        for number in wave:
            tally = seen[f"{MEMBER} {group_of(number)}"]["streams"].get(f"{number}:{phase}", {})
            wanted = sent[str(number)]["phases"][str(phase)]["sent"]
            found = (tally.get("received", 0), tally.get("duplicates", 0))
            assert found == (wanted, 0), (phase, number)
    assert counted(live, "swaps-out") >= GROUPS - 2 * TABLE
    assert counted(live, "table-full") == 0
