"""Hosts at access ports of an Open vSwitch that is not ours, whose trunk port leads into the fabric, VLAN by VLAN.

That switch snoops IGMP itself, in each VLAN: it hands hosts' reports on to whoever asks there, and nothing else.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from apps.emulation import processes, traffic
from controller.wire.ethernet import ETHERTYPE_LLDP
from controller.wire.lldp import NEAREST_BRIDGE_MAC
from topology.graph import Graph
from vlan_hosts import join, named, place

pytestmark = pytest.mark.emulation

BRIDGE, OURS, THEIRS = "foreign", "s2-x", "x-s2"
"""The other switch, and the two ends of the cable to it."""

BEHIND = {"h7": 10, "h8": 20}
"""The hosts at its access ports."""

ACCESS = {"h1": 10, "h2": 20, "h5": 10, "h6": 20}
STREAMS = {10: (1, "h1"), 20: (2, "h2")}
RECEIVERS = {10: ("h5", "h7"), 20: ("h6", "h8")}
RATE_BPS = 4e6  # 400 packets/s
WAIT_S = 30.0

POLICY = """\
version: 1
default: allow
multicast:
  querier: {address_v4: 10.250.0.1, query_interval_s: 4, response_interval_s: 1, last_member_interval_s: 0.2}
vlans:
  ports:
    - {ports: [{dpid: 2, port: UPLINK}], TRUNK}
"""


@pytest.fixture(scope="module")
def bench(wide_diamond: Graph) -> tuple[Graph, dict[str, Any]]:
    return wide_diamond, {}


@contextmanager
def foreign_switch(live: Any, *uplink: str) -> Iterator[int]:
    """Move h7 and h8 to access ports of another switch, cabled to s2; gives the number of the port of s2."""
    moved = {}
    for host in BEHIND:
        ((port, _),) = live.fabric.node("s2").connectionsTo(live.fabric.node(host))
        moved[host] = port.name, live.fabric.node("s2").ports[port]
    kind = "netdev" if live.fabric.ovs.datapath == "user" else "system"
    settings = (f"datapath_type={kind}", "fail_mode=standalone", "mcast_snooping_enable=true")
    quiet = "other_config:mcast-snooping-disable-flood-unregistered=true"
    processes.run("ovs-vsctl", "add-br", BRIDGE, "--", "set", "Bridge", BRIDGE, *settings, quiet)
    try:
        processes.run("ip", "link", "add", THEIRS, "type", "veth", "peer", "name", OURS)
        processes.run(
            "sysctl", "-qw", f"net.ipv6.conf.{OURS}.disable_ipv6=1", f"net.ipv6.conf.{THEIRS}.disable_ipv6=1"
        )
        for end in (OURS, THEIRS):
            processes.run("ip", "link", "set", end, "up")
        for host, vlan_id in BEHIND.items():
            processes.run("ovs-vsctl", "del-port", moved[host][0])
            processes.run("ovs-vsctl", "add-port", BRIDGE, moved[host][0], f"tag={vlan_id}")
        processes.run("ovs-vsctl", "add-port", BRIDGE, THEIRS, *uplink)
        processes.run("ovs-vsctl", "add-port", "s2", OURS)
        yield int(processes.run("ovs-vsctl", "get", "Interface", OURS, "ofport"))
    finally:
        processes.run("ovs-vsctl", "--if-exists", "del-port", OURS, "--", "del-br", BRIDGE)
        processes.run("ip", "link", "delete", THEIRS)
        for name, number in moved.values():
            put_back = ("add-port", "s2", name, "--", "set", "Interface", name, f"ofport_request={number}")
            processes.run("ovs-vsctl", *put_back)


def use(live: Any, uplink: int, trunk: str = "trunk: [10, 20]") -> None:
    """Put the port to the other switch, and those of hosts, into their VLANs."""
    text = POLICY.replace("UPLINK", str(uplink)).replace("TRUNK", trunk)
    for host, vlan_id in ACCESS.items():
        dpid, port_no = place(live, host)
        text += f"    - {{ports: [{{dpid: {dpid}, port: {port_no}}}], access: {vlan_id}}}\n"
    live.set_policy(text)
    live.wait_ready()
    wait_snooped((10, "querier"), (20, "querier"))


def snooped() -> set[tuple[int, str]]:
    """Return what the other switch knows: the VLAN and the group of each member, `querier` for who asks."""
    lines = processes.run("ovs-appctl", "mdb/show", BRIDGE).splitlines()[1:]
    return {(int(line.split()[1]), line.split()[2]) for line in lines}


def wait_snooped(*wanted: tuple[int, str]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not set(wanted) <= snooped():
        assert time.monotonic() < deadline, (wanted, snooped())
        time.sleep(0.1)


def join_everywhere(live: Any, group: str) -> None:
    """Have hosts at both switches join one address in either VLAN."""
    for receivers in RECEIVERS.values():
        join(live, group, *receivers)
    for vlan_id, receivers in RECEIVERS.items():
        live.wait_members(named(group, vlan_id), set(receivers))


def send_everywhere(live: Any, group: str) -> None:
    """Have a host in each VLAN send (phase 0), and wait until it is known there."""
    for vlan_id, (number, host) in STREAMS.items():
        live.fabric.open_stream(number, host, group, RATE_BPS, pattern="constant")
        live.fabric.send(0, streams=[number])
        wanted = named(group, vlan_id)
        live.controller.wait_until(
            "groups", lambda groups, wanted=wanted: any(g["group"] == wanted and g["senders"] for g in groups)
        )
    live.wait_ready()


def assert_own_packets(live: Any, group: str, phase: int) -> None:
    """Every receiver has what the sender of its VLAN sent in a phase, once, and nothing of the other VLAN."""
    for vlan_id, receivers in RECEIVERS.items():
        number, _ = STREAMS[vlan_id]
        names = [f"{receiver} {group}" for receiver in receivers]
        live.assert_all_received(phase, *names, stream=number)
        for name in names:
            streams = live.fabric.settled()[name]["streams"]
            assert {int(key.partition(":")[0]) for key in streams} == {number}


def test_each_vlan_has_its_own_group_behind_a_switch_that_snoops(live: Any, group: str, unanswered: Any) -> None:
    with foreign_switch(live, "vlan_mode=trunk", "trunks=10,20") as uplink:
        use(live, uplink)
        join_everywhere(live, group)
        wait_snooped((10, group), (20, group))
        send_everywhere(live, group)
        live.send(1, 0.5)
        live.halt()
        assert_own_packets(live, group, 1)
        unanswered(live, [("h7", "h1"), ("h8", "h2")])  # who has said nothing yet is looked for with the first
        assert unanswered(live, [("h1", "h7"), ("h8", "h2"), ("h7", "h5")]) == []
        apart = [("h7", "h8"), ("h1", "h8"), ("h8", "h5")]
        assert sorted(unanswered(live, apart)) == sorted(apart)


def test_a_host_behind_an_access_port_sends_into_its_vlan_alone(live: Any, group: str) -> None:
    with foreign_switch(live, "vlan_mode=trunk", "trunks=10,20") as uplink:
        use(live, uplink)
        join(live, group, "h5", "h6", "h8")
        live.wait_members(f"{group}@10", {"h5"})
        live.wait_members(f"{group}@20", {"h6", "h8"})
        live.fabric.open_stream(3, "h7", group, RATE_BPS, pattern="constant")
        live.fabric.send(0, streams=[3])
        live.controller.wait_until(
            "groups", lambda groups: any(g["group"] == f"{group}@10" and g["senders"] for g in groups)
        )
        live.wait_ready()
        live.send(1, 0.5)
        live.halt()
        live.assert_all_received(1, f"h5 {group}", stream=3)
        seen = live.fabric.settled()
        assert [seen[f"{host} {group}"]["streams"] for host in ("h6", "h8")] == [{}, {}]


def test_a_native_vlan_that_differs_is_told_and_disturbs_nobody(live: Any, group: str) -> None:
    with foreign_switch(live, "vlan_mode=native-untagged", "tag=10", "trunks=10,20") as uplink:
        use(live, uplink, "trunk: [20], native: 10")
        join_everywhere(live, group)
        send_everywhere(live, group)
        live.fabric.send(1)
        with traffic.open_wire(THEIRS) as sock:
            sock.send(lldp_of(30))
        live.controller.wait_log("is in VLAN 10 without a tag, and leads to port Gi1/0/3 of 00:11:22:33:44:ff")
        live.halt()
        assert_own_packets(live, group, 1)


def lldp_of(port_vlan_id: int) -> bytes:
    """Return LLDP of a switch that says in which VLAN its port has frames without a tag."""
    mac = bytes.fromhex("0011223344ff")
    unit = b"".join(
        (kind << 9 | len(value)).to_bytes(2, "big") + value
        for kind, value in (
            (1, b"\x04" + mac),
            (2, b"\x05Gi1/0/3"),
            (3, b"\0\x78"),
            (127, b"\x00\x80\xc2\x01" + port_vlan_id.to_bytes(2, "big")),
            (0, b""),
        )
    )
    return NEAREST_BRIDGE_MAC + mac + ETHERTYPE_LLDP.to_bytes(2, "big") + unit
