"""Real hosts join, send and leave under a live controller on Open vSwitch."""

from __future__ import annotations

from typing import Any

import pytest

from apps.status_client import query
from topology.graph import Graph

pytestmark = pytest.mark.emulation

ALLOW_ALL = "version: 1\ndefault: allow\n"


@pytest.fixture(scope="module")
def bench(diamond: Graph) -> tuple[Graph, dict[str, Any]]:
    return diamond, {}


def closed_group(group: str) -> str:
    """The group of the same number in which the policy admits members, and one sender, only."""
    return group.replace("239.1.", "239.9.", 1)


def test_members_receive_and_others_do_not(live: Any, group: str) -> None:
    live.join(group, "h2", "h3")
    for host in ("h1", "h2", "h3", "h4"):
        live.fabric.tap(host)
    live.stream(1, "h1", group)
    live.send(1, 1.0)
    live.assert_all_received(1, f"h2 {group}", f"h3 {group}")
    seen = live.fabric.settled()
    for host in ("h1", "h4"):
        assert seen[f"tap {host}"]["groups"] == {}
    for host in ("h2", "h3"):
        assert seen[f"tap {host}"]["wrong_destination_count"] == 0


def test_first_packets_reach_members(live: Any, group: str) -> None:
    """A sender that the controller has not seen sending loses at most a few packets until it is admitted."""
    live.join(group, "h4")
    live.fabric.open_stream(1, "h1", group, 2e6, pattern="constant")
    held_up = live.held_up()
    live.send(0, 0.5)
    sent, received, duplicates = live.counts(0, f"h4 {group}")
    assert duplicates == 0
    assert received >= sent - 200 * (0.2 + held_up.seconds())  # packets/s
    live.send(1, 0.3)
    live.assert_all_received(1, f"h4 {group}")


def test_refused_hosts_neither_receive_nor_send(live: Any, group: str) -> None:
    group = closed_group(group)
    for host in ("h2", "h3", "h4"):
        live.fabric.join(host, group)
    live.wait_members(group, {"h2", "h3"}, {"h4"})
    live.fabric.tap("h4")
    live.stream(1, "h1", group)
    live.stream(2, "h4", group)
    live.stream(3, "h2", group)
    live.send(1, 1.0)
    live.assert_all_received(1, f"h2 {group}", f"h3 {group}")
    for host in ("h2", "h3"):
        for stream in (2, 3):
            assert live.counts(0, f"{host} {group}", stream)[1] == 0
            assert live.counts(1, f"{host} {group}", stream)[1] == 0
    seen = live.fabric.settled()
    assert seen["tap h4"]["groups"] == {}
    assert seen[f"h4 {group}"]["streams"] == {}
    assert {sender["mac"] for sender in live.document(group)["senders"] if not sender["admitted"]} == {
        live.mac("h2"),
        live.mac("h4"),
    }


def test_leave_ends_the_stream(live: Any, group: str) -> None:
    live.join(group, "h2", "h3")
    live.stream(1, "h1", group)
    live.fabric.leave("h3", group)
    live.wait_members(group, {"h2"})
    live.fabric.tap("h3")
    live.send(1, 0.5)
    live.assert_all_received(1, f"h2 {group}")
    assert live.fabric.settled()["tap h3"]["groups"] == {}
    live.fabric.join("h3", group)
    live.wait_members(group, {"h2", "h3"})
    live.send(2, 0.5)
    live.assert_all_received(2, f"h3 {group}")


@pytest.mark.parametrize("version", [1, 2, 3])
def test_each_igmp_version_joins(live: Any, group: str, version: int) -> None:
    live.join(group, "h2", igmp_version=version)
    live.stream(1, "h1", group)
    live.send(1, 0.3)
    live.assert_all_received(1, f"h2 {group}")


def test_source_specific_receiver_gets_its_source_only(live: Any) -> None:
    fabric, group = live.fabric, "232.1.1.1"
    fabric.join("h3", group, include=[fabric.address("h1")])
    fabric.join("h4", group, include=[fabric.address("h1"), fabric.address("h2")])
    live.wait_members(group, {"h3", "h4"})
    live.send_both_to(group, "h3")
    live.assert_all_received(1, f"h3 {group}", f"h4 {group}")
    live.assert_all_received(1, f"h4 {group}", stream=2)
    live.assert_seen("h3", group)


def test_excluded_source_is_kept_away(live: Any, group: str) -> None:
    live.assert_excluded_source_is_kept_away(group)


def test_ipv6_groups(live: Any) -> None:
    fabric, group, channel = live.fabric, "ff1e::4242", "ff3e::4242"
    fabric.join("h3", group)
    fabric.join("h4", channel, include=[fabric.address("h2", ipv6=True)])
    live.wait_members(group, {"h3"})
    live.wait_members(channel, {"h4"})
    fabric.tap("h4")
    live.stream(1, "h1", group)
    live.stream(2, "h1", channel)
    live.stream(3, "h2", channel)
    live.send(1, 0.5)
    live.assert_all_received(1, f"h3 {group}")
    live.assert_all_received(1, f"h4 {channel}", stream=3)
    from_h2 = sum(counts["sent"] for counts in fabric.sent()["3"]["phases"].values())
    assert set(seen := fabric.settled()["tap h4"]["groups"]) == {channel}
    assert seen[channel] <= from_h2


def test_spoofed_source_reaches_nobody(live: Any, group: str) -> None:
    """h4 takes the address of h1, the only one that may send."""
    fabric, group = live.fabric, closed_group(group)
    live.join(group, "h3")
    interface = fabric.interface("h4")
    fabric.run_on("h4", "ip", "address", "add", "10.0.0.1/32", "dev", interface)
    try:
        fabric.run_on("h4", "ip", "route", "replace", "224.0.0.0/4", "dev", interface, "src", "10.0.0.1")
        live.stream(1, "h4", group)
        live.send(1, 0.5)
    finally:
        fabric.run_on("h4", "ip", "route", "replace", "224.0.0.0/4", "dev", interface)
        fabric.run_on("h4", "ip", "address", "del", "10.0.0.1/32", "dev", interface)
    assert fabric.settled()[f"h3 {group}"]["streams"] == {}


@pytest.mark.parametrize("group", ["224.0.0.251", "ff02::fb"])
def test_link_scope_groups_reach_every_host(live: Any, group: str) -> None:
    live.assert_reaches_every_host(group)


def capacities_bps(live: Any) -> set[float]:
    told = query(live.controller.socket, {"changes": {"links": 0}})
    return {link["capacity_bps"] for link in told["sections"]["links"]["multicast"]["put"].values()}


def test_the_capacity_of_links_follows_the_policy_while_running(live: Any, group: str) -> None:
    live.join(group, "h3")
    live.stream(1, "h1", group)
    live.fabric.send(1)
    live.set_policy(f"{ALLOW_ALL}discovery: {{link_capacity_bps: 40000000000}}\n")
    live.controller.wait_until("status", lambda _status: capacities_bps(live) == {4e10})
    live.halt()
    live.assert_all_received(1, f"h3 {group}")
