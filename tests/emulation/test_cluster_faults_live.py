"""What may fail around controllers that share a fabric: their store, their connections, their clocks, their switches.

With test_cluster_live.py it has a test of each row of the table in docs/cluster.md.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from apps.emulation import processes
from apps.emulation.cluster import FABRIC, PEER_PORT, EtcdServer, wait_that
from apps.emulation.controller import ControllerProcess
from apps.status_client import query
from controller.cluster.engine import Committed, PutKey, Transaction
from controller.cluster.keys import Keys
from several_controllers import GROUP, SETTLED_S, VERSIONS, Clustered, fill, lose, lose_no_more, make_room, vsrt

pytestmark = pytest.mark.emulation

FRAMEWORK = "os-ken"
BEGINS_ANEW = "This controller begins anew as one who follows"
LINK_SILENT_PACKETS = 1600
"""Of the stream, in four seconds: a link that is silent for three is given up."""

UNANSWERED_PACKETS = 800
"""Of the stream, in two seconds: a port whose LLDP frames are unanswered for 0.4 is one to hosts."""

JUMPING_CLOCK = Path(__file__).parents[1] / "support" / "jumping_clock.c"


def test_a_leader_whose_switches_are_silent_hands_over(clustered: Callable[..., Clustered]) -> None:
    """Nothing of its connections to switches arrives, which neither end is told of."""
    net = clustered()
    lose(f"tcp dport {net.leader.port}", f"tcp sport {net.leader.port}")
    net.leader.wait_log("is to lead", SETTLED_S)
    net.join("h5")
    net.wait_other_leader()
    net.check_nothing_lost()


def test_a_leader_whose_machine_is_cut_off_gives_way(clustered: Callable[..., Clustered]) -> None:
    """Neither the store nor the others nor switches hear of it, nor it of them."""
    net = clustered()
    address = net.address(net.before.member)
    port = net.leader.port
    lose(f"tcp dport {port}", f"tcp sport {port}", f"ip daddr {address}", f"ip saddr {address}")
    net.join("h5", SETTLED_S)
    now = net.wait_other_leader()
    lose_no_more()
    net.leader.wait_log(BEGINS_ANEW, SETTLED_S)
    net.leader.wait_log("leads fabric", SETTLED_S, count=2)
    assert net.cluster.leader() == now
    net.check_nothing_lost()


def test_a_leader_whom_the_store_alone_hears_keeps_the_lead(clustered: Callable[..., Clustered]) -> None:
    """The others do not hear it, and challenge it: it puts its key again as often."""
    net = clustered(3)

    def revision() -> int:
        held = {each.key: each.revision for each in net.cluster.store.read(Keys(FABRIC).lead).held}
        return held[Keys(FABRIC).leader]

    revisions = {revision()}

    def has_answered() -> bool:
        revisions.add(revision())
        return len(revisions) > 2

    lose(f"ip daddr {net.address(net.before.member)} tcp dport {PEER_PORT}")
    wait_that("it has answered two challenges", has_answered, SETTLED_S)
    net.join("h5")
    net.wait_more("h3", LINK_SILENT_PACKETS)
    assert net.cluster.leader() == net.before
    net.check_nothing_lost()


@pytest.mark.parametrize("protocols", ["OpenFlow13", "OpenFlow10"])
def test_a_store_that_stands_still_stops_no_leader_but_at_old_switches(
    clustered: Callable[..., Clustered], protocols: str
) -> None:
    """Its lease ends with the store's silence, and its epoch does not.

    Switches of OpenFlow 1.0, which know no generations, are not written without a lease.
    """
    net = clustered(protocols=protocols)
    (server,) = net.cluster.store.servers
    os.kill(server.pid, signal.SIGSTOP)
    net.leader.wait_log("store does not answer", SETTLED_S)
    if protocols == "OpenFlow13":
        net.join("h5")
    else:
        net.leader.wait_log("switches of OpenFlow 1.0 are not written", SETTLED_S)
        before = net.flows()
        net.fabric.join("h5", GROUP)
        net.wait_group(net.leader, "members", 2)
        net.wait_more("h3", LINK_SILENT_PACKETS)
        assert net.flows() == before
    net.leader.wait_log("lease is not confirmed", SETTLED_S)
    os.kill(server.pid, signal.SIGCONT)
    net.leader.wait_log("store answers again", SETTLED_S)
    wait_that("who led leads", lambda: net.cluster.leader() == net.before, SETTLED_S)
    net.wait_received("h5", SETTLED_S)
    net.check_nothing_lost()
    assert net.cluster.leader() == net.before
    assert not any(BEGINS_ANEW in member.log() for member in net.cluster.members.values())


def test_controllers_that_start_without_the_store_wait_for_it(clustered: Callable[..., Clustered]) -> None:
    net = clustered()
    net.kill_all()
    net.cluster.store.kill()
    before = net.flows()
    net.start_all()
    for member in net.cluster.members.values():
        member.wait_log("store does not answer", SETTLED_S)
        assert member.show("status")["switches"] == 0
    assert net.flows() == before
    net.cluster.store.launch()
    net.cluster.store.wait()
    net.wait_led(net.before.epoch)
    net.join("h5")
    net.check_nothing_lost()


def test_a_store_without_space_is_as_one_that_is_silent(clustered: Callable[..., Clustered]) -> None:
    """Its leases are kept then, its keys are not written: the leader goes on, and nothing is set."""
    net = clustered(of_cluster={"store": EtcdServer(options=("--quota-backend-bytes", str(16 << 20)))})
    fill(net.cluster.store)
    net.join("h5")
    drain = {"do": "switch-drain", "dpid": net.fabric.dpid("s3")}
    net.leader.wait_log("cannot be written", SETTLED_S)
    refused = query(net.leader.socket, drain)
    assert (refused["refused"], refused["reason"]) == (True, "engine-unreachable")
    assert "drained" not in vsrt(net.leader, "show", "switches")
    net.join("h6")
    assert net.cluster.leader() == net.before
    make_room(net.cluster.store)
    wait_that("switches can be drained", lambda: "error" not in query(net.leader.socket, drain), SETTLED_S)
    net.cluster.wait_journal(lambda keys: "drain" in "".join(keys))
    net.check_nothing_lost()


def test_a_store_without_a_majority_is_as_one_that_is_silent(clustered: Callable[..., Clustered]) -> None:
    """One server of three is left, which answers with errors: nothing is set, nobody follows a leader that ends."""
    net = clustered(of_cluster={"store": EtcdServer(3)})
    gone = net.cluster.store.servers[1:]
    for server in gone:
        server.kill()
    net.leader.wait_log("store does not answer", SETTLED_S)
    net.join("h5")
    refused = query(net.leader.socket, {"do": "switch-drain", "dpid": net.fabric.dpid("s3")})
    assert (refused["refused"], refused["reason"]) == (True, "engine-unreachable")
    net.leader.kill()
    net.fabric.join("h6", GROUP)
    net.wait_more("h3", LINK_SILENT_PACKETS)
    assert net.received("h6") == 0
    for server in gone:
        server.launch()
    net.cluster.store.wait()
    net.wait_other_leader()
    net.wait_received("h6", SETTLED_S)
    net.check_nothing_lost()


def test_a_store_whose_leader_is_killed_costs_no_lead(clustered: Callable[..., Clustered]) -> None:
    net = clustered(of_cluster={"store": EtcdServer(3)})
    net.cluster.store.wait_leading().kill()
    net.join("h5")
    net.cluster.store.wait_leading()
    assert net.cluster.leader() == net.before
    net.check_nothing_lost()


def test_the_end_of_a_leader_and_of_the_stores_leader_at_once(clustered: Callable[..., Clustered]) -> None:
    net = clustered(of_cluster={"store": EtcdServer(3)})
    net.cluster.store.wait_leading().kill()
    net.leader.kill()
    net.join("h5", SETTLED_S)
    net.wait_other_leader()
    net.check_nothing_lost()


@pytest.mark.parametrize("versions", ["OpenFlow13", "mixed"])
def test_a_store_emptied_while_nobody_led_is_written_above_the_switches(
    clustered: Callable[..., Clustered], versions: str
) -> None:
    """Switches know a generation that no first epoch reaches."""
    net = clustered(**VERSIONS[versions])
    late = 1 << 40
    net.kill_all()
    with closing(net.cluster.store.engine()) as engine:
        put = PutKey(Keys(FABRIC).epoch, str(late))
        assert type(engine.ask(Transaction((), (put,)))) is Committed
    net.start_all()
    net.wait_led(late)
    net.kill_all()
    net.cluster.store.empty()
    net.start_all()
    net.wait_led(late)
    net.join("h5", SETTLED_S)  # who sends is not known until entries without a record have gone
    net.check_nothing_lost()


def test_a_store_that_was_set_back_is_led_above_the_switches(clustered: Callable[..., Clustered]) -> None:
    """It has what it had some leaders before, and names the first of them as the one that leads."""
    net = clustered()
    backup = net.cluster.store.back_up()
    net.wait_led(net.before.epoch - 1)
    now = net.before
    for _ in range(2):
        now = net.wait_leads(next(name for name in net.cluster.members if name != now.member))
    net.join("h5", SETTLED_S)
    net.cluster.store.set_back(backup)
    net.wait_led(now.epoch)
    net.join("h6", SETTLED_S)
    net.check_nothing_lost()


def test_links_whose_frames_are_lost_at_a_take_over_count_as_there(clustered: Callable[..., Clustered]) -> None:
    """By the log their ports lead to switches: the stream that comes in there is not taken for a forged sender's."""
    net = clustered()
    net.kill_all()
    lldp = "table=1,priority=65535,dl_type=0x88cc"
    for switch in net.fabric.graph.switches():
        net.fabric.ofctl("add-flow", switch, f"{lldp},actions=drop")
    net.start_all()
    net.wait_led(net.before.epoch)
    net.wait_more("h3", UNANSWERED_PACKETS)
    for switch in net.fabric.graph.switches():
        net.fabric.ofctl("del-flows", switch, "--strict", lldp)
    net.join("h5")
    assert "spoofed-sender" not in net.cluster.logs()
    net.check_nothing_lost()


@pytest.mark.parametrize("protocols", ["OpenFlow13", "OpenFlow10"])
def test_a_switch_that_reconnects_or_restarts_is_read_and_written_anew(
    clustered: Callable[..., Clustered], protocols: str
) -> None:
    net = clustered(protocols=protocols)
    net.fabric.control_down("s3")
    net.leader.wait_until("status", lambda status: status["switches"] == 2, SETTLED_S)
    net.fabric.control_up("s3")
    net.wait_in_sync(net.leader)
    net.join("h5")
    net.check_nothing_lost()
    net.fabric.switch_down("s3")
    net.leader.wait_until("status", lambda status: status["switches"] == 2, SETTLED_S)
    net.fabric.switch_up("s3")
    net.wait_in_sync(net.leader)
    net.fabric.send(1)
    before = net.received("h5")
    wait_that("h5 receives again", lambda: net.received("h5") > before, SETTLED_S)
    assert net.cluster.leader() == net.before


@pytest.mark.parametrize("jump_s", [3600, -3600])
def test_clocks_that_jump_change_nothing(clustered: Callable[..., Clustered], tmp_path: Path, jump_s: int) -> None:
    """The time of day of all controllers jumps by an hour."""
    offset, library = tmp_path / "offset_s", tmp_path / "jumping_clock.so"
    offset.write_text("0")
    processes.run("gcc", "-shared", "-fPIC", "-o", str(library), str(JUMPING_CLOCK))
    net = clustered(of_cluster={"env": {"LD_PRELOAD": str(library), "JUMPING_CLOCK": str(offset)}})
    offset.write_text(str(jump_s))
    net.join("h5")
    assert net.cluster.leader() == net.before
    (told,) = (found for found in net.leader.show("groups") if found["group"] == GROUP)
    assert len(told["members"]) == 2
    net.leader.kill()
    net.join("h6")
    net.wait_other_leader()
    net.check_nothing_lost()


def test_machines_that_have_run_for_different_times_follow_each_other(
    clustered: Callable[..., Clustered], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each controller's monotonic clock counts from another day on; the lead goes from the latest to the earliest."""
    days = {"c1": 300, "c2": 30, "c3": 0}
    plain = ControllerProcess.command

    def command(member: ControllerProcess) -> list[str]:
        ahead_s = days[member.env["VSRT_MEMBER"]] * 86400
        return ["unshare", "--time", "--monotonic", str(ahead_s), *plain(member)]

    monkeypatch.setattr(ControllerProcess, "command", command)
    net = clustered(3)
    for host, name in (("h5", "c1"), ("h6", "c2"), ("h4", "c3"), ("h2", "c1")):
        leader = net.wait_leads(name)
        net.join(host)
        assert "lldp-forged" not in net.cluster.logs()
    net.cluster.members["c1"].kill()
    net.wait_led(leader.epoch)
    net.check_nothing_lost()
