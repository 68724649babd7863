"""Controllers that share a fabric through etcd: one ends, stops or is cut off, and nothing is lost meanwhile."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from apps.emulation import processes
from apps.emulation.cluster import Cluster
from apps.emulation.controller import ControllerProcess, Framework
from apps.emulation.network import CONTROLLER_PORT, EmulatedFabric
from apps.status_client import query
from controller.cluster.keys import Leader
from how_to import blocks, files
from topology.graph import Graph, Kind

pytestmark = pytest.mark.emulation

FRAMEWORK = "os-ken"
UNDER_EVERY_FRAMEWORK = ("test_a_leader_is_killed_while_a_stream_runs_and_a_host_joins",)

GROUP = "239.1.1.1"
RATE_BPS = 4e6
SERVED_S = 5.0
"""A join is served within a second on a quiet machine (docs/cluster.md); a busy one has this long."""

SETTLED_S = 30.0


class Shared:
    """Three switches in a ring with two hosts each, and their controllers; h1 sends, h3 receives."""

    def __init__(self, cluster: Cluster, fabric: EmulatedFabric) -> None:
        self.cluster = cluster
        self.fabric = fabric
        self.before = cluster.wait_leader()
        self.leader.wait_discovered(fabric)
        fabric.announce()
        self.fabric.join("h3", GROUP)
        self.wait_group(self.leader, "members", 1)
        fabric.open_stream(1, "h1", GROUP, RATE_BPS, pattern="constant")
        fabric.send(0)
        self.wait_group(self.leader, "senders", 1)
        self.wait_in_sync(self.leader)
        fabric.send(1)
        self.wait_received("h3")

    @property
    def leader(self) -> ControllerProcess:
        """The controller that led at first."""
        return self.cluster.members[self.before.member]

    def follower(self) -> ControllerProcess:
        """Return another one."""
        return next(member for name, member in self.cluster.members.items() if name != self.before.member)

    def wait_group(self, member: ControllerProcess, what: str, count: int) -> None:
        """Wait until a controller knows so many members or senders of the group."""

        def known(groups: list[dict[str, Any]]) -> bool:
            return any(found["group"] == GROUP and len(found[what]) >= count for found in groups)

        member.wait_until("groups", known)

    def wait_in_sync(self, member: ControllerProcess) -> None:
        """Wait until every switch holds what a controller wants there."""
        count = len(self.fabric.graph.switches())
        member.wait_until("status", lambda status: status["in_sync"] and status["switches"] == count, SETTLED_S)

    def wait_received(self, host: str, within_s: float = SERVED_S) -> float:
        """Wait until a host receives the stream; return how long that took, in seconds."""
        begun_s = time.monotonic()
        while not self.received(host):
            assert time.monotonic() < begun_s + within_s, self.cluster.logs()
            time.sleep(0.01)
        return time.monotonic() - begun_s

    def received(self, host: str) -> int:
        """Return how many packets of the stream a host has received."""
        found = self.fabric.received()[f"{host} {GROUP}"]["streams"]
        return int(found.get("1:1", {}).get("received", 0))

    def join(self, host: str, within_s: float = SERVED_S) -> float:
        """Let a host join; return how long it takes until it receives, in seconds."""
        self.fabric.join(host, GROUP)
        return self.wait_received(host, within_s)

    def wait_other_leader(self) -> Leader:
        """Wait until another one leads, and all switches are as it wants them."""
        now = self.cluster.wait_leader(self.before.epoch)
        assert now.member != self.before.member
        self.wait_in_sync(self.cluster.members[now.member])
        return now

    def check_nothing_lost(self) -> None:
        """End the stream: h3 has received each packet once, other than those that the machine lost."""
        self.fabric.sender.ask("halt")
        sent = self.fabric.sent()["1"]["phases"]["1"]["sent"]
        seen = self.fabric.settled()[f"h3 {GROUP}"]["streams"]["1:1"]
        assert seen["duplicates"] == 0
        assert 0 <= sent - seen["received"] <= self.fabric.overruns(), (sent, seen, self.cluster.logs())

    def flows(self) -> list[set[str]]:
        """Return the flow entries of each switch, without their counters."""
        dumps = (
            self.fabric.ofctl("dump-flows", switch, "--no-stats") for switch in sorted(self.fabric.graph.switches())
        )
        return [{line.strip() for line in dump.splitlines() if "actions=" in line} for dump in dumps]


@pytest.fixture
def ring() -> Graph:
    graph = Graph()
    for name in ("s1", "s2", "s3"):
        graph.add_node(name, Kind.TOR)
    for one, other in (("s1", "s2"), ("s2", "s3"), ("s1", "s3")):
        graph.add_link(one, other)
    for number in range(1, 7):
        graph.add_node(f"h{number}", Kind.HOST)
        graph.add_link(f"s{(number + 1) // 2}", f"h{number}")
    return graph


@pytest.fixture
def shared(ring: Graph, tmp_path: Path, framework: Framework) -> Iterator[Callable[..., Shared]]:
    """Brings up a fabric under several controllers."""
    if shutil.which("etcd") is None:
        pytest.skip("etcd (Debian package etcd-server) is not installed")
    with ExitStack() as stack:

        def bring_up(count: int = 2, **options: Any) -> Shared:
            cluster = Cluster(tmp_path, CONTROLLER_PORT, count, framework=framework)
            fabric = EmulatedFabric(ring, controller=cluster, more_controller_ports=cluster.ports[1:], **options)
            return Shared(cluster, stack.enter_context(fabric))

        yield bring_up


@pytest.mark.parametrize("protocols", ["OpenFlow13", "OpenFlow10"])
def test_a_leader_is_killed_while_a_stream_runs_and_a_host_joins(
    shared: Callable[..., Shared], protocols: str
) -> None:
    net = shared(3, protocols=protocols)
    net.leader.kill()
    net.join("h5")
    net.wait_other_leader()
    net.check_nothing_lost()


def test_a_leader_that_was_stopped_writes_nothing_when_it_goes_on(shared: Callable[..., Shared]) -> None:
    net = shared()
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


def test_a_leader_that_ends_hands_over(shared: Callable[..., Shared]) -> None:
    net = shared()
    net.leader.stop()
    net.join("h5")
    now = net.wait_other_leader()
    assert f"it handed over to {now.member}" in net.leader.log()
    net.check_nothing_lost()


def test_a_leader_whose_process_beside_is_killed_goes_on_or_gives_way(shared: Callable[..., Shared]) -> None:
    """Which of the two it is depends on how soon another process runs, and is looked at in test_sidecar.py."""
    net = shared()
    (beside,) = beside_of(net.leader.pid)
    os.kill(beside, signal.SIGKILL)
    net.leader.wait_log("it is started anew")
    net.join("h5")
    time.sleep(4.0)  # longer than the lease, with which it would have lost the lead
    now = net.cluster.wait_leader()
    if now.incarnation == net.before.incarnation:
        assert now == net.before
    else:
        assert now.epoch > net.before.epoch
        net.leader.wait_log("This controller begins anew as one who follows", SETTLED_S)
    net.wait_in_sync(net.cluster.members[now.member])
    net.leader.wait_until("status", lambda _status: beside_of(net.leader.pid) not in ([], [beside]), SETTLED_S)
    net.check_nothing_lost()


def test_a_leader_goes_on_without_the_store(shared: Callable[..., Shared]) -> None:
    net = shared()
    net.cluster.store.kill()
    net.join("h5")
    net.leader.wait_log("store does not answer", SETTLED_S)
    net.join("h6")
    net.cluster.store.launch()
    net.cluster.store.wait()
    net.leader.wait_log("store answers again", SETTLED_S)
    net.wait_in_sync(net.cluster.members[net.cluster.wait_leader().member])
    net.check_nothing_lost()


def test_a_leader_that_is_cut_off_from_the_store_gives_way(shared: Callable[..., Shared]) -> None:
    net = shared()
    number = int(net.before.member.removeprefix("c"))
    cut_off(f"127.0.0.{10 + number}")
    now = net.wait_other_leader()
    net.leader.wait_log("This controller begins anew as one who follows", SETTLED_S)
    net.join("h5")
    assert net.cluster.leader() == now
    net.check_nothing_lost()


def test_a_store_that_was_emptied_is_written_anew_by_who_leads(shared: Callable[..., Shared]) -> None:
    net = shared()
    drain = {"do": "switch-drain", "dpid": net.fabric.dpid("s3")}
    assert "error" not in query(net.leader.socket, drain)
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


def test_a_leader_that_is_cut_off_from_its_switches_hands_over(shared: Callable[..., Shared]) -> None:
    net = shared()
    let_go(net, net.leader)
    net.leader.wait_log("is to lead", SETTLED_S)
    net.join("h5")
    net.wait_other_leader()
    net.leader.wait_log("This controller begins anew as one who follows", SETTLED_S)
    net.check_nothing_lost()


def test_a_leader_whose_machine_is_gone_is_followed(shared: Callable[..., Shared]) -> None:
    """Its connections stay as they are, without a word: neither it nor the process beside it says anything."""
    net = shared()
    pids = (net.leader.pid, *beside_of(net.leader.pid))
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    net.join("h5")
    net.wait_other_leader()
    for pid in pids:
        os.kill(pid, signal.SIGCONT)
    net.leader.wait_log("This controller begins anew as one who follows", SETTLED_S)
    net.check_nothing_lost()


def test_a_policy_that_differs_is_told(
    shared: Callable[..., Shared],
) -> None:
    net = shared()
    follower = net.follower()
    policy = net.cluster.policy_of(follower_name(net))
    policy.write_text(policy.read_text().replace("default: allow", "default: deny"))
    follower.wait_log("goes by another policy than the one that leads", SETTLED_S)
    assert net.cluster.leader() == net.before
    net.check_nothing_lost()


def test_operators_see_who_leads_and_hand_over(shared: Callable[..., Shared]) -> None:
    net = shared()
    follower = net.follower()
    other = follower_name(net)
    found = {line.split()[0]: line for line in vsrt(net.leader, "show", "cluster").splitlines()[1:]}
    assert sorted(found) == ["c1", "c2"]
    assert "leads" in found[net.before.member]
    assert "follows" in found[other]
    drain = {"do": "switch-drain", "dpid": net.fabric.dpid("s3")}
    refused = query(follower.socket, drain)
    assert refused["reason"] == "not-leader"
    assert f"{net.before.member} leads, ask there" in refused["error"]
    assert "error" not in query(net.leader.socket, drain)
    assert vsrt(net.leader, "do", "hand-over", other).strip() == f"the lead is handed over; to {other}"
    assert net.wait_other_leader().member == other
    assert "drained" in vsrt(follower, "show", "switches")
    net.check_nothing_lost()


def test_the_guide_to_several_controllers(shared: Callable[..., Shared], tmp_path: Path) -> None:
    net = shared()
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


def test_nothing_is_set_while_the_store_is_silent(shared: Callable[..., Shared]) -> None:
    net = shared()
    net.cluster.store.kill()
    net.leader.wait_log("store does not answer", SETTLED_S)
    refused = query(net.leader.socket, {"do": "switch-drain", "dpid": net.fabric.dpid("s3")})
    assert (refused["refused"], refused["reason"]) == (True, "engine-unreachable")
    assert "drained" not in vsrt(net.leader, "show", "switches")


def let_go(net: Shared, member: ControllerProcess) -> None:
    """Have no switch connected to a controller any more, though all else reaches it."""
    others = [f"tcp:127.0.0.1:{port}" for port in net.cluster.ports if port != member.port]
    for switch in sorted(net.fabric.graph.switches()):
        processes.run("ovs-vsctl", "set-controller", str(switch), *others)


def follower_name(net: Shared) -> str:
    return next(name for name in net.cluster.members if name != net.before.member)


def vsrt(member: ControllerProcess, *words: str) -> str:
    """Return what a command says of a controller."""
    return processes.run(str(Path(sys.executable).parent / "vsrt"), *words, "--socket", str(member.socket))


def beside_of(pid: int) -> list[int]:
    """Return the processes that are beside a controller."""
    found = [child for task in Path(f"/proc/{pid}/task").iterdir() for child in read(task / "children").split()]
    return [int(child) for child in found if "apps.cluster" in read(Path(f"/proc/{child}/cmdline"))]


def read(path: Path) -> str:
    """Return what a file says, nothing where the thread or process that it is of has ended."""
    try:
        return path.read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def cut_off(address: str) -> None:
    """Lose all that goes to an address of the store, in the network of the test."""
    processes.run("ip", "route", "add", "blackhole", f"{address}/32", "table", "local")
