"""A fabric by a policy that was imported from Faucet: ports in its VLANs, and groups that its access lists deny."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from controller.migration.draft import text_of
from controller.migration.faucet import read_faucet
from controller.migration.report import InputFile
from topology.graph import Graph
from vlan_hosts import add_interfaces, join, named, place

pytestmark = pytest.mark.emulation

RATE_BPS = 4e6  # 400 packets/s
OFFICE, CAMERAS = 10, 20
NO_DATA, NO_JOINS = "239.77.1.1", "239.120.1.1"
"""Groups that access lists deny: packets to one, reports of the other."""

LISTS = """\
vlans:
  office: {vid: 10}
  cameras: {vid: 20}
acls:
  no-market-data:
    - rule: {dl_type: 0x800, nw_dst: 239.77.0.0/16, actions: {allow: 0}}
    - rule: {actions: {allow: 1}}
  no-camera-joins:
    - rule: {dl_type: 0x800, nw_proto: 2, nw_dst: 239.120.0.0/16, actions: {allow: 0}}
    - rule: {actions: {allow: 1}}
"""
PORTS = {
    "h1": "native_vlan: office",
    "h2": "native_vlan: cameras, acls_in: [no-market-data]",
    "h3": "native_vlan: cameras",
    "h5": "native_vlan: office",
    "h6": "native_vlan: cameras",
    "h7": "native_vlan: office, acls_in: [no-camera-joins]",
    "h8": "tagged_vlans: [office, cameras]",
}
"""What Faucet's file says of the ports of hosts; it does not name that of h4."""

QUERIER = "multicast: {querier: {query_interval_s: 20, response_interval_s: 1, last_member_interval_s: 0.2}}\n"


@pytest.fixture(scope="module")
def bench(wide_diamond: Graph) -> tuple[Graph, dict[str, Any]]:
    return wide_diamond, {}


def configuration(live: Any, ports: Mapping[str, str]) -> str:
    """Return a configuration of Faucet for the switches and ports of the fabric."""
    switches: dict[int, list[str]] = {}
    for host, said in ports.items():
        dpid, port_no = place(live, host)
        switches.setdefault(dpid, []).append(f"      {port_no}: {{name: {host}, {said}}}\n")
    lines = [f"  s{dpid}:\n    dp_id: {dpid}\n    interfaces:\n{''.join(said)}" for dpid, said in switches.items()]
    return LISTS + "dps:\n" + "".join(lines)


@pytest.fixture
def moved(live: Any) -> Any:
    """The fabric by the policy that Faucet's configuration came to."""
    draft, _ = read_faucet([InputFile("faucet.yaml", configuration(live, PORTS))], lambda *_: None)
    live.set_policy(text_of(draft, []) + QUERIER)
    add_interfaces(live, {"h8": (OFFICE, CAMERAS)})
    live.wait_ready()
    return live


def send_from(live: Any, number: int, host: str, group: str, vlan_id: int, admitted: bool = True) -> None:
    """Have a host send (phase 0), and wait until it is known as a sender in its VLAN, and admitted or refused."""
    live.fabric.open_stream(number, host, group, RATE_BPS, pattern="constant")
    live.fabric.send(0, streams=[number])
    mac = live.mac(host)

    def known(groups: list[dict[str, Any]]) -> bool:
        found = [document for document in groups if document["group"] == named(group, vlan_id)]
        senders = [sender for document in found for sender in document["senders"]]
        return any((sender["mac"], sender["admitted"]) == (mac, admitted) for sender in senders)

    live.controller.wait_until("groups", known)
    live.wait_ready()


def streams_seen(live: Any, receiver: str, group: str) -> set[int]:
    """Return the streams of which a receiver has received something."""
    return {int(key.partition(":")[0]) for key in live.fabric.settled()[f"{receiver} {group}"]["streams"]}


def wait_refused(live: Any, group: str, vlan_id: int, *hosts: str) -> None:
    """Wait until hosts are refused a group of a VLAN, and switches go by it."""
    wanted = {live.mac(host) for host in hosts}

    def refused(groups: list[dict[str, Any]]) -> bool:
        found = [document for document in groups if document["group"] == named(group, vlan_id)]
        return any(wanted <= {one["mac"] for one in document["refused"]} for document in found)

    live.controller.wait_until("groups", refused)
    live.wait_ready()


def test_ports_are_in_the_vlans_that_faucet_had_them_in(moved: Any, group: str, unanswered: Any) -> None:
    join(moved, group, "h5", "h6", "h8.10")
    moved.wait_members(named(group, OFFICE), {"h5", "h8"})
    moved.wait_members(named(group, CAMERAS), {"h6"})
    send_from(moved, 1, "h1", group, OFFICE)
    moved.send(1, 0.5)
    moved.halt()
    moved.assert_all_received(1, f"h5 {group}", f"h8.10 {group}")
    assert streams_seen(moved, "h6", group) == set()
    assert unanswered(moved, [("h1", "h5"), ("h2", "h6"), ("h1", "h6")]) == [("h1", "h6")]


def test_packets_to_a_group_that_a_list_denies_go_nowhere(moved: Any) -> None:
    join(moved, NO_DATA, "h6")
    moved.wait_members(named(NO_DATA, CAMERAS), {"h6"})
    send_from(moved, 1, "h2", NO_DATA, CAMERAS, admitted=False)
    send_from(moved, 2, "h3", NO_DATA, CAMERAS)
    moved.send(1, 0.5)
    moved.halt()
    moved.assert_all_received(1, f"h6 {NO_DATA}", stream=2)
    assert streams_seen(moved, "h6", NO_DATA) == {2}


def test_reports_of_a_group_that_a_list_denies_are_refused(moved: Any) -> None:
    join(moved, NO_JOINS, "h5", "h7")
    wait_refused(moved, NO_JOINS, OFFICE, "h7")
    moved.wait_members(named(NO_JOINS, OFFICE), {"h5"}, {"h7"})
    send_from(moved, 1, "h1", NO_JOINS, OFFICE)
    moved.send(1, 0.5)
    moved.halt()
    moved.assert_all_received(1, f"h5 {NO_JOINS}")
    assert streams_seen(moved, "h7", NO_JOINS) == set()


def test_a_port_that_faucet_s_file_does_not_name_has_no_groups(moved: Any, group: str) -> None:
    join(moved, group, "h4")
    wait_refused(moved, group, 0, "h4")
    assert not moved.document(group)["members"]
