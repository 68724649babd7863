"""Open vSwitch whose tables are too small, and a controller that ends as groups come in: another has them in."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import Any

import pytest

from apps.emulation import processes
from apps.emulation.cluster import wait_that
from several_controllers import SETTLED_S, Clustered

pytestmark = pytest.mark.emulation

TABLE, LIMITED_TABLES = 48, (1, 2)
OLD, NEW = range(10, 34), range(40, 56)
"""The streams of groups that are in, and of those that come in at the last moment."""

RATE_BPS, FRAME_BYTES = 32_000, 200
PAST_GRACE_S = 18.0
POLICY = f"""\
version: 1
default: allow
limits: {{groups_per_port: 1024, senders_per_port: 1024, reports_per_second_per_port: 10000}}
multicast: {{querier: {{response_interval_s: 1, last_member_interval_s: 0.2}}}}
overcommit: {{mode: swap, capacity: {{default: {TABLE}}}}}
"""


def group_of(number: int) -> str:
    return f"239.64.0.{number}"


def counted(net: Clustered, name: str) -> int:
    return int(net.leader.show("status")["counters"].get(name, 0))


def limit_tables(net: Clustered) -> None:
    for switch in net.fabric.graph.switches():
        for table in LIMITED_TABLES:
            bridge = net.fabric.node(switch).name
            made = ("--", "--id=@table", "create", "Flow_Table", f"flow_limit={TABLE}", "overflow_policy=refuse")
            processes.run("ovs-vsctl", *made, "--", "set", "Bridge", bridge, f"flow_tables:{table}=@table")


@pytest.mark.parametrize("swaps", ["told", "untold"])
def test_a_leader_is_killed_as_groups_come_in(clustered: Callable[..., Clustered], swaps: str) -> None:
    """What is told of in the log comes some moments after what switches do."""
    net = clustered(2, of_cluster={"policy": POLICY})
    limit_tables(net)
    for number in (*OLD, *NEW):
        net.fabric.join("h3", group_of(number))
        net.fabric.open_stream(
            number, "h1" if number % 2 else "h5", group_of(number), RATE_BPS, frame_bytes=FRAME_BYTES
        )
    net.leader.wait_until("groups", lambda found: sum(1 for each in found if each["members"]) > len(OLD) + len(NEW))
    net.fabric.send(2, None, OLD)
    wait_that("all are in", lambda: counted(net, "swaps-in") >= len(OLD), SETTLED_S)
    net.wait_in_sync(net.leader)
    net.cluster.wait_journal(lambda keys: {f"tree/{group_of(number)}" for number in OLD} <= keys)
    before = counted(net, "swaps-in")
    store = [server.pid for server in net.cluster.store.servers]
    if swaps == "untold":
        for pid in store:
            os.kill(pid, signal.SIGSTOP)
    net.fabric.send(3, None, NEW)
    wait_that("the others are in", lambda: counted(net, "swaps-in") >= before + len(NEW), SETTLED_S)
    net.wait_in_sync(net.leader)
    flows = net.flows()
    net.leader.kill()
    for pid in store if swaps == "untold" else ():
        os.kill(pid, signal.SIGCONT)
    other = net.cluster.members[net.wait_other_leader().member]
    wait_that("the time of grace is over", lambda: _seconds_sent(net) > PAST_GRACE_S, 4 * PAST_GRACE_S)
    net.fabric.halt()
    assert net.flows() == flows
    assert int(other.show("status")["counters"].get("faults", 0)) == 0, "no packet came to a controller"
    lost = {}
    sent, seen = net.fabric.sent(), net.fabric.settled()
    for phase, streams in ((2, OLD), (3, NEW)):
        for number in streams:
            tally: dict[str, Any] = seen[f"h3 {group_of(number)}"]["streams"].get(f"{number}:{phase}", {})
            assert tally.get("duplicates", 0) == 0
            if missing := sent[str(number)]["phases"][str(phase)]["sent"] - tally.get("received", 0):
                lost[number] = missing
    assert sum(lost.values()) <= net.fabric.overruns(), lost


def _seconds_sent(net: Clustered) -> float:
    sent = net.fabric.sent()[str(NEW[0])]["phases"]["3"]["sent"]
    return float(sent * FRAME_BYTES * 8 / RATE_BPS)
