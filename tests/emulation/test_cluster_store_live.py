"""A store that is slow, stands still or forgets what is past while the lead changes; leaders that end in a row.

With test_cluster_live.py and test_cluster_faults_live.py it has a test of each row of the table in docs/cluster.md.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

import pytest

from apps.emulation.cluster import FABRIC, StoreServer
from apps.status_client import query
from controller.cluster.engine import Committed, KeyPage, PutKey, ReadPage, Transaction
from controller.cluster.keys import Keys
from several_controllers import GROUP, SETTLED_S, Clustered, beside_of

pytestmark = pytest.mark.emulation

FRAMEWORK = "os-ken"
SLOW_S, VERY_SLOW_S = 0.25, 0.7
"""How long the disk takes to sync: with the latter hardly a write is answered within the second that a store has."""

LEASE_PACKETS = 1600
"""Of the stream, in four seconds: a lease lasts for three."""

REPORTS_PACKETS = 2400
"""Of the stream, in six seconds: followers keep reports for five."""

REVISIONS = 2000


@contextmanager
def slow_disk(server: StoreServer, sync_s: float) -> Iterator[None]:
    """Have each sync of the store's files take longer."""
    calls = "fdatasync,fsync"
    inject = f"inject={calls}:delay_exit={sync_s * 1e6:.0f}"
    command = ("strace", "-f", "-o", "/dev/null", "-e", f"trace={calls}", "-e", inject, "-p", str(server.pid))
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as tracer:
        assert tracer.stderr is not None
        try:
            assert "attached" in tracer.stderr.readline()
            yield
        finally:
            tracer.terminate()


def test_a_slow_disk_costs_no_leader_the_lead_and_another_one_leads_after_it(
    clustered: Callable[..., Clustered],
) -> None:
    net = clustered()
    (server,) = net.cluster.store.servers
    with slow_disk(server, SLOW_S):
        net.order(net.leader, "switch-drain", dpid=net.fabric.dpid("s3"))
        net.join("h5")
        net.wait_more("h3", LEASE_PACKETS)
        assert net.cluster.leader() == net.before
        net.leader.kill()
        net.join("h6", SETTLED_S)
        net.wait_other_leader()
        net.check_nothing_lost()


def test_a_disk_so_slow_that_writes_have_no_answer_keeps_nobody_from_the_lead(
    clustered: Callable[..., Clustered],
) -> None:
    net = clustered()
    (server,) = net.cluster.store.servers
    with slow_disk(server, VERY_SLOW_S):
        told = query(net.leader.socket, {"do": "switch-drain", "dpid": net.fabric.dpid("s3")})
        assert told.get("reason") in (None, "engine-unconfirmed", "engine-unreachable")
        net.leader.kill()
        net.join("h5", SETTLED_S)
        net.wait_other_leader()
        net.check_nothing_lost()


def test_a_leader_that_is_killed_while_it_takes_over_is_followed(clustered: Callable[..., Clustered]) -> None:
    net = clustered(3)
    net.leader.kill()
    net.fabric.join("h5", GROUP)
    second = net.cluster.wait_leader(net.before.epoch)
    net.cluster.members[second.member].kill()
    net.wait_received("h5", SETTLED_S)
    third = net.wait_led(second.epoch)
    assert third.member not in (net.before.member, second.member)
    net.check_nothing_lost()


@pytest.mark.parametrize("is_elected", [False, True], ids=["before the election", "after it"])
def test_a_store_that_stands_still_while_the_lead_changes_puts_it_off(
    clustered: Callable[..., Clustered], is_elected: bool
) -> None:
    net = clustered()
    (server,) = net.cluster.store.servers
    if is_elected:
        net.leader.kill()
        net.cluster.wait_leader(net.before.epoch)
    os.kill(server.pid, signal.SIGSTOP)
    if not is_elected:
        net.leader.kill()
    net.fabric.join("h5", GROUP)
    net.wait_more("h3", LEASE_PACKETS)
    os.kill(server.pid, signal.SIGCONT)
    net.wait_other_leader()
    net.wait_received("h5", SETTLED_S)
    net.check_nothing_lost()


def test_one_that_was_stopped_while_the_store_forgot_what_is_past_leads_by_what_there_is(
    clustered: Callable[..., Clustered],
) -> None:
    """Its watch begins at a revision that is compacted, and what it would have heard of hosts is gone."""
    net = clustered()
    follower = net.follower()
    pids = (follower.pid, *beside_of(follower.pid))
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    net.join("h5")
    net.wait_more("h3", REPORTS_PACKETS)
    net.cluster.wait_journal(lambda keys: f"heard/{GROUP}/{net.fabric.dpid('s3')}" in keys)
    with closing(net.cluster.store.engine()) as engine:
        for number in range(REVISIONS):
            put = PutKey(f"{Keys(FABRIC).journal}attack/{number % 5}", f"observation {number} {{}}")
            assert type(engine.ask(Transaction((), (put,)))) is Committed
        page = engine.ask(ReadPage("/", limit=1))
        assert type(page) is KeyPage
        engine.question("/v3/kv/compaction", {"revision": page.revision, "physical": True})
    net.leader.kill()
    for pid in reversed(pids):  # a controller that goes on first ends the process beside it, which says nothing
        os.kill(pid, signal.SIGCONT)
    net.wait_other_leader()
    net.wait_group(follower, "members", 2)
    net.join("h6")
    net.check_nothing_lost()
