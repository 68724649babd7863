"""Open vSwitch with one entry inside for all silent groups: no packet is lost or doubled as they sleep and wake."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from several_controllers import vsrt
from topology.generators.draft import Draft
from topology.graph import Graph, NodeKind

pytestmark = pytest.mark.emulation

GROUPS = 56
SENDER, MEMBERS, GUEST = "h1", ("h2", "h3"), "h4"
CHANNEL_GROUPS = 40
OTHER_SENDER, CHANNEL_MEMBERS = "h3", ("h2", "h4")
RATE_BPS, FRAME_BYTES = 16_000, 200
POLICY = """\
version: 1
default: allow
limits:
  groups_per_port: 1024
  senders_per_port: 1024
  reports_per_second_per_port: 10000
  unknown_packets_per_second_per_port: 10000
multicast: {{querier: {{response_interval_s: 1, last_member_interval_s: 0.2}}}}
overcommit: {{mode: cover, faults_per_second: 10000, capacity: {{switches: {{{spine}: {room}}}}}}}
{more}"""
IN_VLAN = "vlans: {ports: [{tier: tor, access: 10}]}\n"


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
    return policy_of(bench[0], 5000)


def policy_of(graph: Graph, room: int, more: str = "") -> str:
    """Return a policy by which the spine has room for so many entries."""
    return POLICY.format(spine=graph.attributes(spine_of(graph))["dpid"], room=room, more=more)


def spine_of(graph: Graph) -> Any:
    (spine,) = (switch for switch in graph.switches() if graph.kind(switch) is NodeKind.AGGREGATION)
    return spine


def group_of(number: int) -> str:
    return f"239.66.0.{number}"


def members_of(number: int) -> tuple[str, ...]:
    """Return the members of a group: of every other one there is none at the third leaf."""
    return MEMBERS[: 1 + number % 2]


def at_spine(live: Any, table: int) -> tuple[int, int, int]:
    """Return how many entries the spine has in a table of groups: all, of single groups, and of covering trees."""
    entries = live.fabric.ofctl(
        "dump-flows", spine_of(live.fabric.graph), f"table={table}", "--no-stats"
    ).splitlines()
    entries = [entry for entry in entries if "priority" in entry]
    own = sum("nw_dst=239.66." in entry for entry in entries)
    return len(entries), own, sum("dl_dst=03:4f" in entry for entry in entries)


def wait_members(live: Any, count: int) -> None:
    live.controller.wait_until(
        "groups", lambda groups: sum(len(found["members"]) for found in groups) == count, timeout_s=60
    )


def wait_until_spine(live: Any, table: int, wanted: Any) -> None:
    deadline_s = time.monotonic() + 90
    while not wanted(*(found := at_spine(live, table))):
        assert time.monotonic() < deadline_s, found
        time.sleep(0.3)


def wait_until_noted(live: Any, table: int, count: int) -> None:
    """Wait until it is noted what entries all groups have: one of which it is not counts as heard when it is."""
    place = live.fabric.dpid(spine_of(live.fabric.graph)), table

    def are_noted(_status: Any) -> bool:
        tables = json.loads(vsrt(live.controller, "show", "tables", "--json"))
        return any((each["dpid"], each["table"]) == place and each["groups"] == count for each in tables)

    live.controller.wait_until("status", are_noted)


@pytest.mark.parametrize(("more", "table"), [("", 2), (IN_VLAN, 6)], ids=["no VLAN", "VLAN"])
def test_silent_groups_have_an_entry_in_common_and_their_own_when_they_send(live: Any, more: str, table: int) -> None:
    graph = live.fabric.graph
    live.set_policy(policy_of(graph, 5000, more))
    streams = range(GROUPS)
    before = live.controller.show("status")["counters"].get("covers", 0)
    for number in streams:
        for name in members_of(number):
            live.fabric.join(name, group_of(number))
        live.fabric.open_stream(number, SENDER, group_of(number), RATE_BPS, frame_bytes=FRAME_BYTES)
    wait_members(live, 3 * GROUPS // 2)
    live.send(1, 0.5)
    wait_until_spine(live, table, lambda _all, own, _covering: own == GROUPS)
    live.wait_ready()
    live.controller.wait_until(
        "groups", lambda groups: not any(sender["rate_bps"] for found in groups for sender in found["senders"])
    )
    wait_until_noted(live, table, GROUPS)
    entries, *_ = at_spine(live, table)
    live.set_policy(policy_of(graph, entries + 1, more))
    wait_until_spine(live, table, lambda _all, own, covering: own < GROUPS // 4 and covering > 0)
    assert live.controller.show("status")["counters"]["covers"] - before > 3 * GROUPS // 4
    live.send(2, 0.5)
    live.fabric.send(3, None, streams)
    wait_until_spine(live, table, lambda _all, own, _covering: own > GROUPS // 2)
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


@pytest.mark.parametrize(("more", "table"), [("", 2), (IN_VLAN, 6)], ids=["no VLAN", "VLAN"])
def test_silent_channels_have_an_entry_in_common_while_others_of_their_groups_send(
    live: Any, more: str, table: int
) -> None:
    graph = live.fabric.graph
    live.set_policy(policy_of(graph, 5000, more))
    awake, sleeping = range(CHANNEL_GROUPS), range(CHANNEL_GROUPS, 2 * CHANNEL_GROUPS)
    senders = {**dict.fromkeys(awake, SENDER), **dict.fromkeys(sleeping, OTHER_SENDER)}
    groups = {number: group_of(number % CHANNEL_GROUPS) for number in senders}
    sources = [live.fabric.address(name) for name in (SENDER, OTHER_SENDER)]
    before = live.controller.show("status")["counters"]
    for number in awake:
        for name in CHANNEL_MEMBERS:
            live.fabric.join(name, groups[number], include=sources)
    for number, sender in senders.items():
        live.fabric.open_stream(number, sender, groups[number], RATE_BPS, frame_bytes=FRAME_BYTES)
    wait_members(live, len(CHANNEL_MEMBERS) * CHANNEL_GROUPS)
    live.send(1, 0.5)
    wait_until_spine(live, table, lambda _all, own, _covering: own == len(senders))
    live.wait_ready()
    wait_until_noted(live, table, CHANNEL_GROUPS)
    entries, *_ = at_spine(live, table)
    live.fabric.send(2, None, awake)
    live.controller.wait_until(
        "groups", lambda found: all(any(sender["rate_bps"] for sender in each["senders"]) for each in found)
    )
    live.set_policy(policy_of(graph, entries + 1, more))
    live.controller.wait_until(
        "status",
        lambda status: (
            status["counters"].get("channel-covers", 0) - before.get("channel-covers", 0) > CHANNEL_GROUPS // 2
        ),
    )
    wait_until_spine(
        live, table, lambda _all, own, covering: own < len(senders) - CHANNEL_GROUPS // 2 and covering > 0
    )
    live.fabric.send(3, None, sleeping)
    live.controller.wait_until(
        "status",
        lambda status: status["counters"].get("channel-covers-left", 0) - before.get("channel-covers-left", 0) > 8,
    )
    live.halt()
    live.send(4, 0.5)
    sent, seen = live.fabric.sent(), live.fabric.settled()
    missed = {}
    for number, group in groups.items():
        for phase, counts in sent[str(number)]["phases"].items():
            for name in CHANNEL_MEMBERS:
                tally = seen[f"{name} {group}"]["streams"].get(f"{number}:{phase}", {})
                found = (tally.get("received", 0), tally.get("duplicates", 0))
                if found != (counts["sent"], 0):
                    missed[number, phase, name] = (*found, counts["sent"])
    assert missed == {}
    assert live.controller.show("status")["counters"].get("table-full", 0) == 0
