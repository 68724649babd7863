"""By what Open vSwitch tells flows apart: a select group without OpenFlow 1.5 not by UDP ports, `multipath` does."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

import pytest

from apps.emulation.processes import run
from controller.wire.udp import encode_udp
from private_bridge import private_bridge

pytestmark = pytest.mark.emulation

BRIDGE = "select0"
FLOWS = 64
UDP, TCP = 17, 6
BUCKETS = "bucket={}weight:1,actions=output:2,bucket={}weight:1,actions=output:3"
BY_SWITCH = "group_id=1,type=select," + BUCKETS.format("", "")
MULTIPATH = "multipath(symmetric_l3l4+udp,0,hrw,2,0,NXM_NX_REG0[0..3])"
BY_FIELDS = "group_id=1,type=select,selection_method=hash,fields(ip_src,ip_dst,udp_src,udp_dst)," + BUCKETS.format(
    "bucket_id:0,", "bucket_id:1,"
)


@pytest.fixture(scope="module")
def bridge() -> Iterator[str]:
    with private_bridge(BRIDGE):
        run("ovs-vsctl", "--timeout=10", "set", "bridge", BRIDGE, "protocols=OpenFlow13,OpenFlow15")
        for number in (1, 2, 3):
            run("ovs-vsctl", "--timeout=10", "add-port", BRIDGE, f"sel{number}", "--", *internal(number))
        yield BRIDGE


def internal(number: int) -> list[str]:
    return ["set", "interface", f"sel{number}", "type=internal", f"ofport_request={number}"]


def ofctl(version: int, *words: str) -> str:
    return run("ovs-ofctl", "-O", f"OpenFlow{version}", *words)


def frame(protocol: int, port: int) -> bytes:
    """A packet of a sender to a group, from one of its ports, of UDP or another protocol with ports in its place."""
    made = bytearray(
        encode_udp(b"\2" + bytes(4) + b"\1", b"\x0a\0\0\1", b"\xef\1\1\1", bytes(24), eth_dst=b"\1\0\x5e\1\1\1")
    )
    made[23] = protocol
    made[34:38] = port.to_bytes(2, "big") + (5001).to_bytes(2, "big")
    if protocol == TCP:
        made[46:48] = b"\x50\x02"
    return bytes(made)


def met(bridge: str, protocol: int, version: int, group: str) -> list[int]:
    """How many packets, each of another flow, meet each bucket."""
    for words in (("del-flows", bridge), ("del-groups", bridge)):
        ofctl(13, *words)
    ofctl(version, "add-group", bridge, group)
    ofctl(
        13,
        "add-flow",
        bridge,
        "priority=1,ip,actions=group:1" if protocol == TCP else "priority=1,udp,actions=group:1",
    )
    for number in range(FLOWS):
        packet = frame(protocol, 4000 + number).hex()
        ofctl(13, "packet-out", bridge, f"in_port=1 packet={packet} actions=table")
    deadline = time.monotonic() + 10.0
    while True:
        told = ofctl(13, "dump-group-stats", bridge)
        counts = [int(count) for count in re.findall(r"bucket\d:packet_count=(\d+)", told)]
        if sum(counts) >= FLOWS or time.monotonic() > deadline:
            return counts
        time.sleep(0.1)


def test_flows_of_udp_of_one_sender_all_meet_one_bucket(bridge: str):
    assert sorted(met(bridge, UDP, 13, BY_SWITCH)) == [0, FLOWS]


def test_flows_of_tcp_are_told_apart_by_their_ports(bridge: str):
    assert min(met(bridge, TCP, 13, BY_SWITCH)) > FLOWS // 8


def test_fields_of_a_select_group_can_be_chosen_with_openflow_1_5_alone(bridge: str):
    assert min(met(bridge, UDP, 15, BY_FIELDS)) > FLOWS // 8


def test_the_multipath_action_tells_flows_of_udp_apart_with_openflow_1_3(bridge: str):
    for words in (("del-flows", bridge), ("del-groups", bridge)):
        ofctl(13, *words)
    ofctl(13, "add-flow", bridge, f"priority=1,udp,actions={MULTIPATH},goto_table:1")
    for number in (0, 1):
        ofctl(13, "add-flow", bridge, f"table=1,reg0={number},actions=output:{number + 2}")
    for number in range(FLOWS):
        ofctl(13, "packet-out", bridge, f"in_port=1 packet={frame(UDP, 4000 + number).hex()} actions=table")
    counts: list[int] = []
    deadline = time.monotonic() + 10.0
    while sum(counts) < FLOWS and time.monotonic() < deadline:
        time.sleep(0.1)
        told = ofctl(13, "dump-flows", bridge, "table=1")
        counts = [int(count) for count in re.findall(r"n_packets=(\d+)", told)]
    assert sum(counts) == FLOWS and min(counts) > FLOWS // 8
