"""Open vSwitch whose tables hold a quarter of the groups: no packet is lost or doubled, and none is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from apps.emulation import processes
from several_controllers import vsrt
from topology.generators.draft import Draft
from topology.graph import Graph, NodeKind

pytestmark = pytest.mark.emulation

TABLE = 64
FEW, MORE = 32, 48
GROUPS = 256
ACTIVE = 40
RATE_BPS, FRAME_BYTES = 16_000, 200
PHASE_S = 2.5
DRAIN_S = 120.0
"""How long what is under way may take on a busy machine, where the controller is far behind."""

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


def limit_tables(live: Any, entries: int = TABLE) -> None:
    """Have each table that groups have entries in refuse more than it is said to have room for, or fewer."""
    for switch in live.fabric.graph.switches():
        for table in LIMITED_TABLES:
            bridge = live.fabric.node(switch).name
            made = ("--", "--id=@table", "create", "Flow_Table", f"flow_limit={entries}", "overflow_policy=refuse")
            processes.run("ovs-vsctl", *made, "--", "set", "Bridge", bridge, f"flow_tables:{table}=@table")


def counted(live: Any, name: str) -> int:
    return int(live.controller.show("status")["counters"].get(name, 0))


def dropped(live: Any) -> int:
    """Return how many packets to groups that are out the controller has dropped, beyond what it carries of them."""
    return counted(live, "faults-over-limit") + counted(live, "carried-over-limit")


def open_streams(live: Any, groups: int) -> None:
    """Have a host be a member of all groups, and others ready to send to them."""
    for number in range(groups):
        live.fabric.join(MEMBER, group_of(number))
        host = SENDERS[number % len(SENDERS)]
        live.fabric.open_stream(number, host, group_of(number), RATE_BPS, frame_bytes=FRAME_BYTES)
    live.controller.wait_until(
        "groups", lambda found: sum(1 for each in found if each["members"]) >= groups, timeout_s=60
    )


def lost_and_doubled(live: Any, phases: dict[int, range]) -> dict[tuple[int, int], tuple[int, int]]:
    """Return by phase and stream how many packets have not arrived, and have arrived twice, where it is any."""
    sent, seen = live.fabric.sent(), live.fabric.received()
    found = {}
    for phase, wave in phases.items():
        for number in wave:
            tally = seen[f"{MEMBER} {group_of(number)}"]["streams"].get(f"{number}:{phase}", {})
            wanted = sent[str(number)]["phases"][str(phase)]["sent"]
            found[phase, number] = (wanted - tally.get("received", 0), tally.get("duplicates", 0))
    return {place: counts for place, counts in found.items() if counts != (0, 0)}


def assert_all_arrived(live: Any, phases: dict[int, range]) -> None:
    """All that was sent in each phase, by those that sent then, arrives once; on a busy machine it takes time."""
    live.controller.wait_until("status", lambda _: missing(live, phases) <= live.overruns(), timeout_s=DRAIN_S)
    live.fabric.settled()
    assert missing(live, phases) <= live.overruns(), lost_and_doubled(live, phases)
    assert not any(doubled for _, doubled in lost_and_doubled(live, phases).values())


def missing(live: Any, phases: dict[int, range]) -> int:
    return sum(count for count, _ in lost_and_doubled(live, phases).values())


def assert_told_what_is_missing(live: Any, phases: dict[int, range], dropped_before: int) -> None:
    """What the controller tells that it has dropped since is missing, and nothing is doubled.

    Where groups go in and out without end caches of a busy switch may lose a few packets more (ADR 23): one in a
    hundred is allowed for.
    """
    sent = live.fabric.sent()
    all_sent = sum(sent[str(number)]["phases"][str(phase)]["sent"] for phase in phases for number in phases[phase])

    def untold() -> int:
        return missing(live, phases) - (dropped(live) - dropped_before)

    live.controller.wait_until("status", lambda _: untold() <= live.overruns() + all_sent / 100, timeout_s=DRAIN_S)
    live.fabric.settled()
    assert untold() >= 0, lost_and_doubled(live, phases)
    assert not any(doubled for _, doubled in lost_and_doubled(live, phases).values())


def capacities(live: Any) -> dict[tuple[int, int], int]:
    """Return what each table is taken to have room for where that is less than was said."""
    tables = json.loads(vsrt(live.controller, "show", "tables", "--json"))
    return {(each["dpid"], each["table"]): each["capacity"] for each in tables if each["capacity"] < TABLE}


@pytest.mark.each_framework
def test_four_times_as_many_groups_as_tables_hold(live: Any) -> None:
    limit_tables(live)
    open_streams(live, GROUPS)
    waves = [range(first, first + ACTIVE) for first in range(0, GROUPS - ACTIVE + 1, ACTIVE)]
    phases = dict(enumerate([*waves, waves[0]], 1))
    for phase, wave in phases.items():
        live.send(phase, PHASE_S, *wave)
    assert_all_arrived(live, phases)
    assert counted(live, "swaps-out") >= GROUPS - 2 * TABLE
    assert counted(live, "table-full") == 0


@pytest.mark.each_framework
def test_tables_that_take_fewer_entries_than_was_said_and_other_ones_as_they_run(live: Any) -> None:
    """The policy says 64 all the time; switches take 64, then 32, then 64 again."""
    limit_tables(live)
    before, dropped_before = counted(live, "table-full"), dropped(live)
    open_streams(live, 3 * ACTIVE)
    waves = [range(first, first + ACTIVE) for first in (0, ACTIVE, 2 * ACTIVE)]
    phases = dict(enumerate([waves[0], *waves, waves[0]], 1))
    live.send(1, PHASE_S, *phases[1])
    assert counted(live, "table-full") == before
    limit_tables(live, FEW)
    for phase in (2, 3, 4, 5):
        live.send(phase, PHASE_S, *phases[phase])
    live.controller.wait_log("table-smaller")
    refusals = counted(live, "table-full") - before
    assert 0 < refusals < TABLE
    live.controller.wait_until("status", lambda _: set(capacities(live).values()) == {FEW}, timeout_s=60)
    limit_tables(live)
    phases[6] = range(2 * ACTIVE)
    live.fabric.send(6, None, phases[6])
    live.controller.wait_until("status", lambda _: not capacities(live), timeout_s=180)  # asked again after a minute
    live.halt()
    assert_told_what_is_missing(live, phases, dropped_before)
    assert counted(live, "table-full") - before < 2 * TABLE


@pytest.mark.each_framework
def test_switches_that_say_from_the_first_that_they_take_less_and_take_more_later(live: Any) -> None:
    """The policy says 64, switches take 32 and say so, so that half of the groups that send are out; then 48."""
    live.controller.stop()  # whatever it has learnt of these switches before
    limit_tables(live, FEW)
    live.restore()
    open_streams(live, 2 * ACTIVE)
    waves = [range(ACTIVE), range(ACTIVE, 2 * ACTIVE)]
    phases = dict(enumerate(3 * waves, 1))
    for phase in (1, 2, 3, 4):
        live.send(phase, PHASE_S, *phases[phase])
    assert counted(live, "table-full") == 0, live.controller.log()[-4000:]
    assert set(capacities(live).values()) == {FEW}
    limit_tables(live, MORE)
    for phase in (5, 6):
        live.send(phase, PHASE_S, *phases[phase])
    assert_told_what_is_missing(live, phases, dropped_before=0)
    assert counted(live, "swaps-out") > 0
