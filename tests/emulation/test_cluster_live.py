"""Controllers that share a fabric through etcd: one ends, stops or is cut off, and nothing is lost meanwhile."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from apps.emulation import processes
from apps.emulation.cluster import FABRIC, PEER_PORT, wait_that
from apps.emulation.controller import ControllerProcess
from apps.status_client import query
from controller.cluster.keys import Keys
from how_to import blocks, files
from several_controllers import GROUP, SETTLED_S, VERSIONS, Clustered, beside_of, cut_off, follower_name, let_go, vsrt

pytestmark = pytest.mark.emulation

FRAMEWORK = "os-ken"
UNDER_EVERY_FRAMEWORK = (
    "test_a_leader_is_killed_while_a_stream_runs_and_a_host_joins",
    "test_a_leader_that_ends_hands_over",
)


@pytest.mark.parametrize("versions", VERSIONS)
def test_a_leader_is_killed_while_a_stream_runs_and_a_host_joins(
    clustered: Callable[..., Clustered], versions: str
) -> None:
    net = clustered(3, **VERSIONS[versions])
    net.leader.kill()
    net.join("h5")
    net.wait_other_leader()
    net.check_nothing_lost()


@pytest.mark.parametrize("versions", VERSIONS)
def test_a_leader_that_was_stopped_writes_nothing_when_it_goes_on(
    clustered: Callable[..., Clustered], versions: str
) -> None:
    net = clustered(**VERSIONS[versions])
    stopped = net.leader.pid
    os.kill(stopped, signal.SIGSTOP)
    net.join("h5")
    now = net.wait_other_leader()
    before = net.flows()
    os.kill(stopped, signal.SIGCONT)
    net.leader.wait_log("This controller begins anew as one who follows", SETTLED_S)
    net.leader.wait_log("leads fabric", SETTLED_S, count=2)
    assert net.flows() == before
    assert net.cluster.leader() == now
    net.check_nothing_lost()


@pytest.mark.parametrize(
    "asked",
    [(signal.SIGTERM,), (signal.SIGINT,), (signal.SIGTERM, signal.SIGTERM, signal.SIGINT)],
    ids=["SIGTERM", "SIGINT", "often"],
)
def test_a_leader_that_ends_hands_over(
    clustered: Callable[..., Clustered], asked: tuple[signal.Signals, ...]
) -> None:
    net = clustered()
    for number in asked:
        os.kill(net.leader.pid, number)
    net.join("h5")
    assert net.leader.wait_ended() == 0
    now = net.wait_other_leader()
    assert f"it handed over to {now.member}" in net.leader.log()
    net.check_nothing_lost()


def test_one_that_begins_anew_ends_where_it_is_asked_to(clustered: Callable[..., Clustered]) -> None:
    """Not as another process with the number of the one that was asked."""
    net = clustered()
    os.kill(net.leader.pid, signal.SIGSTOP)
    net.wait_other_leader()
    os.kill(net.leader.pid, signal.SIGCONT)
    net.leader.wait_log("This controller begins anew as one who follows", SETTLED_S)
    os.kill(net.leader.pid, signal.SIGTERM)
    assert net.leader.wait_ended() == 0
    net.check_nothing_lost()


def test_a_leader_whose_process_beside_is_killed_goes_on_or_gives_way(clustered: Callable[..., Clustered]) -> None:
    """Which of the two it is depends on how soon another process runs, and is looked at in test_sidecar.py."""
    net = clustered()
    (beside,) = beside_of(net.leader.pid)
    before = net.cluster.registered()
    os.kill(beside, signal.SIGKILL)
    net.leader.wait_log("it is started anew")
    net.join("h5")
    me = net.before.member
    wait_that(f"{me} has a process beside", lambda: net.cluster.registered().get(me, 0) > before[me], SETTLED_S)
    now = net.cluster.wait_leader()
    if now.incarnation == net.before.incarnation:
        assert now == net.before
    else:
        assert now.epoch > net.before.epoch
        net.leader.wait_log("This controller begins anew as one who follows", SETTLED_S)
    net.wait_in_sync(net.cluster.members[now.member])
    net.leader.wait_until("status", lambda _status: beside_of(net.leader.pid) not in ([], [beside]), SETTLED_S)
    net.check_nothing_lost()


def test_a_leader_goes_on_without_the_store(clustered: Callable[..., Clustered]) -> None:
    net = clustered()
    net.cluster.store.kill()
    net.join("h5")
    net.leader.wait_log("store does not answer", SETTLED_S)
    net.join("h6")
    net.cluster.store.launch()
    net.cluster.store.wait()
    net.leader.wait_log("store answers again", SETTLED_S)
    net.wait_in_sync(net.cluster.members[net.cluster.wait_leader().member])
    net.check_nothing_lost()


def test_a_leader_that_is_cut_off_from_the_store_gives_way(clustered: Callable[..., Clustered]) -> None:
    net = clustered()
    cut_off(net.address(net.before.member))
    now = net.wait_other_leader()
    net.leader.wait_log("This controller begins anew as one who follows", SETTLED_S)
    net.join("h5")
    assert net.cluster.leader() == now
    net.check_nothing_lost()


@pytest.mark.parametrize("versions", ["OpenFlow13", "mixed"])
def test_a_store_that_was_emptied_is_written_anew_by_who_leads(
    clustered: Callable[..., Clustered], versions: str
) -> None:
    net = clustered(**VERSIONS[versions])
    net.order(net.leader, "switch-drain", dpid=net.fabric.dpid("s3"))
    net.cluster.store.empty()
    now = net.cluster.wait_leader(net.before.epoch)
    assert now.incarnation == net.before.incarnation
    net.wait_in_sync(net.leader)
    net.join("h5")
    net.cluster.wait_journal(lambda keys: any("drain" in key for key in keys) and len(keys) > 3)
    net.leader.kill()
    then = net.cluster.wait_leader(now.epoch)
    net.wait_in_sync(net.cluster.members[then.member])
    assert "drained" in vsrt(net.cluster.members[then.member], "show", "switches")
    net.check_nothing_lost()


def test_a_leader_that_is_cut_off_from_its_switches_hands_over(clustered: Callable[..., Clustered]) -> None:
    net = clustered()
    let_go(net, net.leader)
    net.leader.wait_log("is to lead", SETTLED_S)
    net.join("h5")
    net.wait_other_leader()
    net.leader.wait_log("This controller begins anew as one who follows", SETTLED_S)
    net.check_nothing_lost()


def test_a_leader_whose_machine_is_gone_is_followed(clustered: Callable[..., Clustered]) -> None:
    """Its connections stay as they are, without a word: neither it nor the process beside it says anything."""
    net = clustered()
    pids = (net.leader.pid, *beside_of(net.leader.pid))
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    net.join("h5")
    net.wait_other_leader()
    for pid in reversed(pids):  # a controller that goes on first ends the process beside it, which says nothing
        os.kill(pid, signal.SIGCONT)
    net.leader.wait_log("This controller begins anew as one who follows", SETTLED_S)
    net.check_nothing_lost()


def test_the_shared_policy_counts_where_files_differ(clustered: Callable[..., Clustered]) -> None:
    net = clustered()
    other = follower_name(net)
    follower, policy = net.cluster.members[other], net.cluster.policy_of(other)
    policy.write_text(policy.read_text().replace("default: allow", "default: deny"))
    follower.wait_log("says something else than the policy that the controllers share", SETTLED_S)
    net.leader.kill()
    net.join("h5")
    net.wait_other_leader()
    net.cluster.store.kill()
    refused = query(follower.socket, {"do": "policy-reload"})
    assert (refused["refused"], refused["reason"]) == (True, "engine-unreachable")
    net.check_nothing_lost()
    net.cluster.store.launch()
    net.cluster.store.wait()
    wait_that("the reload is done", lambda: "error" not in query(follower.socket, {"do": "policy-reload"}), SETTLED_S)

    def are_refused(groups: list[dict[str, Any]]) -> bool:
        return any(len(found["refused"]) == 2 for found in groups if found["group"] == GROUP)

    follower.wait_until("groups", are_refused)
    (held,) = net.cluster.store.read(Keys(FABRIC).policy).held
    assert "default: deny" in json.loads(held.value)["text"]


def test_operators_see_who_leads_and_hand_over(clustered: Callable[..., Clustered]) -> None:
    net = clustered()
    follower = net.follower()
    other = follower_name(net)
    found = {line.split()[0]: line for line in vsrt(net.leader, "show", "cluster").splitlines()[1:]}
    assert sorted(found) == ["c1", "c2"]
    assert "leads" in found[net.before.member]
    assert "follows" in found[other]
    s3 = net.fabric.dpid("s3")
    refused = query(follower.socket, {"do": "switch-drain", "dpid": s3})
    assert refused["reason"] == "not-leader"
    assert f"{net.before.member} leads, ask there" in refused["error"]
    net.order(net.leader, "switch-drain", dpid=s3)
    assert vsrt(net.leader, "do", "hand-over", other).strip() == f"the lead is handed over; to {other}"
    assert net.wait_other_leader().member == other
    assert "drained" in vsrt(follower, "show", "switches")
    net.check_nothing_lost()


def test_the_guide_to_several_controllers(clustered: Callable[..., Clustered], tmp_path: Path) -> None:
    net = clustered()
    check, look, hand_over = blocks("several-controllers.md")
    for name, text in files("several-controllers.md").items():
        (tmp_path / name).write_text(text)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    env = {**os.environ, "PATH": path, "VSRT_SOCKET": str(net.leader.socket)}

    def run(command: str) -> str:
        done = subprocess.run(command, shell=True, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "good" in run(check)
    assert follower_name(net) in run(look)
    assert follower_name(net) in run(hand_over)
    net.wait_other_leader()
    net.check_nothing_lost()


def test_nothing_is_set_while_the_store_is_silent(clustered: Callable[..., Clustered]) -> None:
    net = clustered()
    net.cluster.store.kill()
    net.leader.wait_log("store does not answer", SETTLED_S)
    refused = query(net.leader.socket, {"do": "switch-drain", "dpid": net.fabric.dpid("s3")})
    assert (refused["refused"], refused["reason"]) == (True, "engine-unreachable")
    assert "drained" not in vsrt(net.leader, "show", "switches")


@contextmanager
def another_fabric(net: Clustered) -> Iterator[ControllerProcess]:
    """Have a controller of four other switches whose policy names the same fabric."""
    env = {"VSRT_MEMBER": "x1", "VSRT_PEER": f"{net.address('c3')}:{PEER_PORT}"}
    policy = net.cluster.policy_of(net.before.member)
    port = max(net.cluster.ports) + 1
    with ControllerProcess(port, framework=FRAMEWORK, policy=policy, env=env) as stranger:
        for number in range(1, 5):
            bridge = (
                "bridge",
                f"x{number}",
                f"other_config:datapath-id={0xF0 + number:016x}",
                "fail_mode=secure",
                "datapath_type=netdev",
            )
            target = ("set-controller", f"x{number}", f"tcp:127.0.0.1:{port}")
            processes.run("ovs-vsctl", "add-br", f"x{number}", "--", "set", *bridge, "--", *target)
        yield stranger


def check_takes_no_part(net: Clustered, stranger: ControllerProcess, why: str) -> None:
    stranger.wait_log("fabric-is-another", SETTLED_S)
    assert f"{why}, and none of the 4 switches" in stranger.log()
    wait_that("x1 is no member", lambda: "x1" not in net.cluster.registered(), SETTLED_S)
    refused = query(stranger.socket, {"do": "switch-drain", "dpid": 0xF1})
    assert (refused["reason"], "takes no part" in refused["error"]) == ("not-leader", True)
    assert "takes no part" in vsrt(stranger, "show", "cluster")
    assert "actions" not in processes.run("ovs-ofctl", "dump-flows", "x1")


def test_controllers_of_another_fabric_of_the_same_name_take_no_part(
    clustered: Callable[..., Clustered],
) -> None:
    """Theirs has more switches, so that it would be handed the lead."""
    net = clustered()
    with another_fabric(net) as stranger:
        check_takes_no_part(net, stranger, f"{net.before.member} leads it")
        assert "x1 is connected to switches, and to none that this controller" in net.leader.log()
        net.join("h5")
        assert net.cluster.leader() == net.before
        net.check_nothing_lost()


def test_controllers_of_another_fabric_that_are_elected_while_none_of_ours_runs_leave_the_log_to_these(
    clustered: Callable[..., Clustered],
) -> None:
    net = clustered()
    net.kill_all()
    journal = net.cluster.store.read(Keys(FABRIC).journal).held
    with another_fabric(net) as stranger:
        check_takes_no_part(net, stranger, "its log has 3 switches")
        assert net.cluster.store.read(Keys(FABRIC).journal).held == journal
        assert net.cluster.leader() is None
        net.start_all()
        net.wait_led(net.before.epoch)
        net.join("h5")
        net.check_nothing_lost()
