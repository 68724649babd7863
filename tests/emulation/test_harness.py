"""The emulation harness measures what is there, without any controller."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from threading import Timer
from typing import Any

import pytest

from apps.emulation import processes
from apps.emulation.namespace import network_of
from apps.emulation.network import EmulatedFabric
from apps.emulation.processes import NICENESS, EmulationError
from apps.emulation.traffic import DEFAULT_FRAME_BYTES
from apps.emulation.vlan_devices import make_kernel_device
from topology.graph import Graph

pytestmark = pytest.mark.emulation

GROUP = "239.1.2.3"
Start = Callable[..., EmulatedFabric]


def flood(fabric: EmulatedFabric, switch: str = "s1", table: int = 0) -> None:
    fabric.ofctl("add-flow", switch, f"table={table},priority=0,actions=flood")


def send(fabric: EmulatedFabric, phase: int, duration_s: float) -> int:
    fabric.send(phase, duration_s)
    fabric.wait_sent(duration_s + 10)
    return int(fabric.sent()["1"]["phases"][str(phase)]["sent"])


def tally(fabric: EmulatedFabric, name: str, phase: int) -> dict[str, Any]:
    found: dict[str, Any] = fabric.settled()[name]["streams"][f"1:{phase}"]
    return found


def test_counts_are_exact(start_fabric: Start, make_star: Callable[..., Graph]) -> None:
    fabric = start_fabric(make_star(4), controller_port=None)
    flood(fabric)
    fabric.join("h2", GROUP)
    fabric.join("h3", GROUP, include=[fabric.address("h1")])
    fabric.join("h3", GROUP, include=[fabric.address("h4")], name="other source")
    fabric.tap("h4")
    fabric.open_stream(1, "h1", GROUP, 5e6, seed=3)
    sent = send(fabric, 0, 1.0)
    running_s = 1.0 - fabric.sent()["1"]["phases"]["0"]["held_up_ns"] / 1e9
    assert 400 < sent / running_s < 600  # 500 packets of 1,250 bytes are expected
    for name in (f"h2 {GROUP}", f"h3 {GROUP}"):
        counts = tally(fabric, name, 0)
        assert (counts["received"], counts["duplicates"], counts["missing_count"]) == (sent, 0, 0)
    received = fabric.settled()
    assert received["other source"]["streams"] == {}
    assert received["tap h4"] == {"groups": {GROUP: sent}, "wrong_destination_count": 0}


def test_an_interface_on_a_vlan_is_the_kernels_where_it_has_any(
    start_fabric: Start, make_star: Callable[..., Graph]
) -> None:
    fabric = start_fabric(make_star(3), controller_port=None)
    flood(fabric)
    names = {host: fabric.add_vlan(host, 7, f"10.0.7.{host[1:]}") for host in ("h1", "h2")}
    with network_of(fabric.pid("h3")):
        processes.run("ip", "link", "add", "one", "type", "veth", "peer", "name", "other")
        probe = subprocess.run(
            ["ip", "link", "add", "link", "one", "name", "one.7", "type", "vlan", "id", "7"], check=False
        )
        processes.run("ip", "link", "delete", "one")
    for host, name in names.items():
        details = fabric.run_on(host, "ip", "-details", "link", "show", name)
        assert ("vlan protocol 802.1Q id 7" in details, "tun type tap" in details) == (
            probe.returncode == 0,
            probe.returncode != 0,
        )
    fabric.join("h2", GROUP, interface=names["h2"])
    fabric.tap("h3")
    fabric.open_stream(1, "h1", GROUP, 2e6, interface=names["h1"], pattern="constant")
    sent = send(fabric, 0, 0.3)
    counts = tally(fabric, f"h2 {GROUP}", 0)
    assert (counts["received"], counts["duplicates"], counts["missing_count"]) == (sent, 0, 0)
    assert fabric.settled()["tap h3"]["groups"] == {f"{GROUP}@7": sent}


def test_a_vlan_that_no_device_can_have_is_refused_with_the_kernels_words(
    start_fabric: Start, make_star: Callable[..., Graph]
) -> None:
    fabric = start_fabric(make_star(2), controller_port=None)
    with network_of(fabric.pid("h1")), pytest.raises(EmulationError, match="Cannot find device"):
        make_kernel_device("nowhere", "nowhere.7", 7)


def test_ipv6_counts_and_phases(start_fabric: Start, make_star: Callable[..., Graph]) -> None:
    fabric = start_fabric(make_star(2), controller_port=None)
    flood(fabric)
    fabric.wait_addresses()
    fabric.join("h2", "ff1e::77")
    fabric.open_stream(1, "h1", "ff1e::77", 2e6, pattern="constant")
    fabric.send(0)
    while fabric.sent()["1"]["phases"]["0"]["sent"] < 20:
        pass
    fabric.send(1, 0.5)
    fabric.wait_sent(10)
    sent = fabric.sent()["1"]["phases"]
    for phase in (0, 1):
        assert tally(fabric, "h2 ff1e::77", phase)["received"] == sent[str(phase)]["sent"]
    running_s = 0.5 - sent["1"]["held_up_ns"] / 1e9
    assert sent["1"]["sent"] == pytest.approx(200 * running_s, abs=5)


def test_what_the_machine_loses_is_told_apart_from_what_switches_lose(
    start_fabric: Start, make_star: Callable[..., Graph]
) -> None:
    fabric = start_fabric(make_star(2), controller_port=None)
    flood(fabric)
    fabric.join("h2", GROUP)
    fabric.open_stream(1, "h1", GROUP, 1e6)
    assert send(fabric, 0, 0.3) == tally(fabric, f"h2 {GROUP}", 0)["received"]
    assert fabric.overruns() == 0
    os.kill(fabric.ovs.vswitchd_pid, signal.SIGSTOP)
    try:
        fabric.open_stream(2, "h1", GROUP, 4e8, pattern="constant")
        fabric.send(1, 0.5, [2])
        fabric.wait_sent(20)
    finally:
        os.kill(fabric.ovs.vswitchd_pid, signal.SIGCONT)
    sent = fabric.sent()["2"]["phases"]["1"]["sent"]
    received = fabric.settled()[f"h2 {GROUP}"]["streams"]["2:1"]["received"]
    assert received > 0
    assert 0 < sent - received <= fabric.overruns() <= sent - received + 20  # hosts send a little by themselves


def test_packets_that_switches_have_not_taken_in_are_waited_for(
    start_fabric: Start, make_star: Callable[..., Graph]
) -> None:
    fabric = start_fabric(make_star(2), controller_port=None)
    flood(fabric)
    fabric.join("h2", GROUP)
    fabric.open_stream(1, "h1", GROUP, 1e6)
    assert send(fabric, 0, 0.3) == tally(fabric, f"h2 {GROUP}", 0)["received"]
    os.kill(fabric.ovs.vswitchd_pid, signal.SIGSTOP)
    going_on = Timer(1.0, os.kill, (fabric.ovs.vswitchd_pid, signal.SIGCONT))
    going_on.start()
    try:
        assert send(fabric, 1, 0.3) == tally(fabric, f"h2 {GROUP}", 1)["received"] > 0
    finally:
        going_on.join()


def test_what_forwards_and_measures_goes_before_all_else_on_the_machine(
    start_fabric: Start, make_star: Callable[..., Graph]
) -> None:
    fabric = start_fabric(make_star(2), controller_port=None)
    for pid in (fabric.ovs.vswitchd_pid, fabric.sender.pid, fabric.receiver.pid):
        assert os.getpriority(os.PRIO_PROCESS, pid) == NICENESS
        of_session = Path(f"/proc/{pid}/autogroup")
        assert not of_session.exists() or of_session.read_text().split()[-1] == str(NICENESS)


def test_duplicates_and_leaves_show(start_fabric: Start, make_star: Callable[..., Graph]) -> None:
    fabric = start_fabric(make_star(2), controller_port=None)
    fabric.ofctl("add-flow", "s1", "priority=0,actions=output:2,output:2")
    fabric.join("h2", GROUP)
    fabric.open_stream(1, "h1", GROUP, 1e6)
    sent = send(fabric, 0, 0.5)
    counts = tally(fabric, f"h2 {GROUP}", 0)
    assert (counts["received"], counts["duplicates"]) == (sent, sent)
    fabric.leave("h2", GROUP)
    send(fabric, 1, 0.3)
    assert list(fabric.settled()[f"h2 {GROUP}"]["streams"]) == ["1:0"]


@pytest.mark.parametrize("rate_bps", [8e6, 14e6])
@pytest.mark.parametrize("only", ["meters", "shapers"])
def test_capacity_is_enforced(
    start_fabric: Start, make_star: Callable[..., Graph], rate_bps: float, only: str
) -> None:
    fabric = start_fabric(make_star(2, capacity_bps=10e6), controller_port=None, capacities=True)
    flood(fabric, table=1)
    if only == "shapers":
        fabric.ofctl("del-flows", "s1", "table=0")
        fabric.ofctl("add-flow", "s1", "table=0,actions=goto_table:1")
    else:
        fabric.run_on("h2", "tc", "qdisc", "del", "dev", fabric.interface("h2"), "ingress")
    fabric.join("h2", GROUP)
    fabric.open_stream(1, "h1", GROUP, rate_bps, seed=5)
    send(fabric, 0, 0.5)  # spends the burst that is granted to a fresh meter
    duration_s = 4.0
    sent = send(fabric, 1, duration_s)
    running_s = duration_s - fabric.sent()["1"]["phases"]["1"]["held_up_ns"] / 1e9
    lost_pct = 100 * (1 - (tally(fabric, f"h2 {GROUP}", 1)["received"] + fabric.overruns()) / sent)

    def excess_pct(time_s: float) -> float:
        return max(0.0, 100 * (1 - 10e6 * time_s / (sent * DEFAULT_FRAME_BYTES * 8)))

    # What a sender that is held up leaves free may count for what follows, or be lost to it.
    slack_pct = 3.0 if rate_bps > 10e6 else 0.8
    assert sent * DEFAULT_FRAME_BYTES * 8 / running_s == pytest.approx(rate_bps, rel=0.1)
    assert excess_pct(duration_s) - slack_pct <= lost_pct <= excess_pct(running_s) + slack_pct


@pytest.mark.parametrize("patch_links", [True, False])
def test_link_down_is_seen(start_fabric: Start, diamond: Graph, patch_links: bool) -> None:
    fabric = start_fabric(diamond, controller_port=None, patch_links=patch_links)
    for switch in ("s1", "s3", "s2"):
        flood(fabric, switch)
    fabric.join("h3", GROUP)
    fabric.open_stream(1, "h1", GROUP, 1e6)
    assert send(fabric, 0, 0.3) == tally(fabric, f"h3 {GROUP}", 0)["received"]
    fabric.link_down("s3", "s2")
    send(fabric, 1, 0.3)
    assert "1:1" not in fabric.settled()[f"h3 {GROUP}"]["streams"]
    fabric.link_up("s3", "s2")
    fabric.wait_flows()
    assert send(fabric, 2, 0.3) == tally(fabric, f"h3 {GROUP}", 2)["received"]


@pytest.mark.parametrize("patch_links", [True, False])
def test_whatever_was_taken_away_is_brought_back(start_fabric: Start, diamond: Graph, patch_links: bool) -> None:
    fabric = start_fabric(diamond, controller_port=None, patch_links=patch_links)
    fabric.join("h4", GROUP)
    fabric.open_stream(1, "h1", GROUP, 1e6)
    fabric.move_host("h4", "s1")
    fabric.switch_down("s3")
    fabric.switch_down("s2")
    fabric.link_down("s1", "s4")
    flood(fabric, "s1")
    fabric.wait_flows()
    assert send(fabric, 0, 0.2) == tally(fabric, f"h4 {GROUP}", 0)["received"]
    fabric.restore()
    assert fabric.received() == fabric.sent() == {}
    for switch in ("s2", "s3"):
        flood(fabric, switch)
    fabric.wait_flows()
    for host in ("h3", "h4"):
        fabric.join(host, GROUP)
    fabric.open_stream(1, "h1", GROUP, 1e6)
    sent = send(fabric, 1, 0.2)
    assert [tally(fabric, f"{host} {GROUP}", 1)["received"] for host in ("h3", "h4")] == [sent, sent]


def test_link_down_shows_in_port_state(start_fabric: Start, diamond: Graph) -> None:
    fabric = start_fabric(diamond, controller_port=None)
    for switch in ("s1", "s3"):
        assert "LINK_DOWN" not in fabric.ofctl("dump-ports-desc", switch).partition("LOCAL")[0]
    fabric.link_down("s1", "s3")
    for switch in ("s1", "s3"):
        assert "LINK_DOWN" in fabric.ofctl("dump-ports-desc", switch).partition("LOCAL")[0]


def test_what_ran_is_gone_even_after_an_error(make_star: Callable[..., Graph]) -> None:
    outside = Path("/proc/thread-self/ns/net").readlink()
    with pytest.raises(ZeroDivisionError), EmulatedFabric(make_star(2), controller_port=None) as fabric:
        assert Path("/proc/thread-self/ns/net").readlink() != outside
        pids = [fabric.pid("h1"), fabric.sender.pid, fabric.receiver.pid, fabric.ovs.vswitchd_pid]
        directory = fabric.ovs.directory
        raise ZeroDivisionError
    assert Path("/proc/thread-self/ns/net").readlink() == outside
    assert not directory.exists()
    assert "OVS_RUNDIR" not in os.environ
    for pid in pids:
        path = Path(f"/proc/{pid}/stat")
        assert not path.exists() or path.read_text().rpartition(")")[2].split()[0] == "Z"


def test_faults_are_told(start_fabric: Start, make_star: Callable[..., Graph]) -> None:
    fabric = start_fabric(make_star(2), controller_port=None)
    with pytest.raises(EmulationError, match=r"not.a.group"):
        fabric.join("h1", "not a group")
    fabric.join("h1", GROUP)
    with pytest.raises(EmulationError, match="in use"):
        fabric.join("h1", GROUP)
    with pytest.raises(EmulationError, match="exit 1"):
        fabric.run_on("h1", "ping", "-c", "1", "-W", "1", fabric.address("h2"))
    with pytest.raises(ValueError, match="meters"):
        EmulatedFabric(make_star(2), capacities=True, protocols="OpenFlow10")
