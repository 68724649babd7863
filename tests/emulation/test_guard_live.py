"""Whatever one port sends, forged, broken or by the thousand, hosts at other ports are served."""

from __future__ import annotations

import json
import re
import socket
import struct
from collections.abc import Iterable
from random import Random
from typing import Any

import pytest

from apps.emulation import processes
from apps.emulation.namespace import network_of
from controller.wire.addresses import parse_ip, parse_mac
from controller.wire.encode import encode
from controller.wire.packets import GroupRecord, PimHello, Query, RecordType, Report
from controller.wire.udp import encode_udp
from topology.graph import Graph

pytestmark = pytest.mark.emulation

ALLOW = "version: 1\ndefault: allow\n"
STORM = 3000
LIMITS = ALLOW + "limits: {groups_per_port: 2, unknown_packets_per_second_per_port: 20, senders_per_port: 4}\n"
GROUP_V6 = parse_ip("ff1e::4d")
MAC4, IP4 = parse_mac("00:00:00:00:00:04"), parse_ip("10.0.0.4")


@pytest.fixture(scope="module")
def bench(diamond: Graph) -> tuple[Graph, dict[str, Any]]:
    return diamond, {}


def put_on_wire(live: Any, host: str, frames: Iterable[bytes]) -> None:
    with network_of(live.fabric.pid(host)), socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sock:
        sock.bind((live.fabric.interface(host), 0))
        for frame in frames:
            sock.send(frame)


def wait_counter(live: Any, name: str, count: int = 1) -> None:
    live.controller.wait_until("status", lambda status: status["counters"].get(name, 0) >= count)


def join_report(group: bytes) -> bytes:
    return encode(Report(4, 2, MAC4, IP4, (GroupRecord(RecordType.MODE_IS_EXCLUDE, group, ()),)))


def numbered_groups(count: int) -> list[bytes]:
    return [struct.pack("!BBH", 239, 77, number) for number in range(count)]


def test_a_storm_of_joins_is_cut_off(live: Any, group: str) -> None:
    live.join(group, "h2")
    live.stream(1, "h1", group)
    live.fabric.send(1)
    put_on_wire(live, "h4", [join_report(number) for number in numbered_groups(STORM)])
    wait_counter(live, "limit-rate")
    live.fabric.join("h3", group)
    live.wait_members(group, {"h2", "h3"})
    live.send(2, 0.3)
    live.halt()
    live.assert_all_received(1, f"h2 {group}")
    live.assert_all_received(2, f"h2 {group}", f"h3 {group}")
    stormed = [document for document in live.controller.show("groups") if document["group"].startswith("239.77.")]
    assert 0 < len(stormed) <= 64
    live.fabric.link_down("s2", "h4")
    live.wait_ready(edge_ports=3, groups=1)


def test_groups_per_port_are_bounded(live: Any) -> None:
    live.set_policy(LIMITS)
    groups = ["239.1.200.1", "239.1.200.2", "239.1.200.3"]
    for group in groups[:2]:
        live.join(group, "h2")
    live.fabric.join("h2", groups[2])
    wait_counter(live, "limit-groups")
    live.join(groups[2], "h3")
    live.stream(1, "h1", groups[2])
    live.send(1, 0.3)
    live.assert_all_received(1, f"h3 {groups[2]}")
    assert live.fabric.settled()[f"h2 {groups[2]}"]["streams"] == {}


def test_a_flood_to_unknown_groups_is_cut_off(live: Any, group: str) -> None:
    live.set_policy(LIMITS)
    live.join(group, "h3")
    frames = [encode_udp(MAC4, IP4, number, bytes(64)) for number in numbered_groups(STORM)]
    put_on_wire(live, "h4", frames)
    live.controller.wait_log("sender-penalty: port 2:2")
    live.stream(1, "h1", group)
    live.send(1, 0.3)
    live.assert_all_received(1, f"h3 {group}")
    senders = [
        sender
        for document in live.controller.show("groups")
        for sender in document["senders"]
        if sender["mac"] == live.mac("h4")
    ]
    assert len(senders) <= 4
    counters = live.controller.show("status")["counters"]
    assert 0 < sum(counters.get(name, 0) for name in ("unknown-packets-over-limit", "senders-per-port")) < STORM / 2


def test_garbage_is_counted_and_harms_nobody(live: Any, group: str) -> None:
    live.join(group, "h2", "h3")
    live.stream(1, "h1", group)
    live.fabric.send(1)
    random = Random(5)
    sound = [
        join_report(parse_ip("239.77.1.1")),
        encode(Query(4, 3, MAC4, IP4, None, (), 1.0, False, 2, 125.0)),
        encode(PimHello(4, MAC4, IP4, 105.0)),
        bytes.fromhex("0180c200000e00000000000488cc") + random.randbytes(60),
        bytes.fromhex("ffffffffffff0000000000040806") + random.randbytes(40),
        encode(Report(6, 2, MAC4, parse_ip("fe80::4"), (GroupRecord(RecordType.MODE_IS_EXCLUDE, GROUP_V6, ()),))),
    ]

    def broken() -> bytes:
        frame = bytearray(random.choice(sound))
        for _ in range(random.randint(1, 8)):
            frame[random.randrange(14, len(frame))] = random.randrange(256)
        return bytes(frame[: random.randint(15, len(frame))])

    put_on_wire(live, "h4", [broken() for _ in range(STORM)])
    live.wait_ready()
    live.send(2, 0.3)
    live.halt()
    live.assert_all_received(1, f"h2 {group}", f"h3 {group}")
    live.assert_all_received(2, f"h2 {group}", f"h3 {group}")
    assert "Traceback" not in live.controller.log()


def test_another_querier_is_yielded_to_and_gets_every_group(live: Any, group: str) -> None:
    live.join(group, "h2")
    live.stream(1, "h1", group)
    live.fabric.tap("h4")
    put_on_wire(live, "h4", [encode(Query(4, 3, MAC4, IP4, None, (), 0.1, False, 1, 1.0))])
    live.controller.wait_log("membership-querier-changed: port 2:2: querier of IPv4 is 10.0.0.4")
    known = live.controller.show("routers")
    assert {"dpid": 2, "port_no": 2, "family": 4, "static": False} in known["router_ports"]
    assert [(querier["ours"], querier["address"]) for querier in known["queriers"]] == [
        (False, "10.0.0.4"),
        (True, None),
    ]
    live.wait_ready()
    live.send(1, 0.3)
    live.assert_all_received(1, f"h2 {group}")
    sent = live.fabric.sent()["1"]["phases"]["1"]["sent"]
    assert live.fabric.settled()["tap h4"]["groups"][group] >= sent
    live.controller.wait_log("membership-querier-changed: no other querier of IPv4 is left")


def test_fast_leave_asks_nobody(live: Any, group: str) -> None:
    slow = "querier: {response_interval_s: 1, last_member_interval_s: 60}"
    live.set_policy(f"{ALLOW}multicast: {{fast_leave: true, {slow}}}\n")
    live.join(group, "h2", "h3")
    live.fabric.leave("h3", group)
    live.wait_members(group, {"h2"})  # by asking it would take two minutes


def test_mld_of_version_1_joins(live: Any) -> None:
    group, setting = "ff1e::4301", f"net.ipv6.conf.{live.fabric.interface('h3')}.force_mld_version"
    live.fabric.run_on("h3", "sysctl", "-qw", f"{setting}=1")
    try:
        live.join(group, "h3")
        live.stream(1, "h1", group)
        live.send(1, 0.3)
        live.assert_all_received(1, f"h3 {group}")
    finally:
        live.fabric.run_on("h3", "sysctl", "-qw", f"{setting}=0")


def test_a_full_table_is_reported_and_what_was_served_still_is(live: Any, group: str) -> None:
    live.join(group, "h2", "h3")
    live.stream(1, "h1", group)
    table = live.fabric.ofctl("dump-flows", "s2", "table=2")
    live.fabric.send(1)
    limit = table.count("cookie=") + 1
    processes.run(
        *("ovs-vsctl", "--", "--id=@full", "create", "Flow_Table", f"flow_limit={limit}", "overflow_policy=refuse"),
        *("--", "set", "Bridge", "s2", "flow_tables:2=@full"),
    )
    try:
        more = [f"{group.rpartition('.')[0]}.{number}" for number in range(2, 8)]
        for other in more:
            live.fabric.join("h3", other)
        live.controller.wait_log("table-full")
    finally:
        processes.run("ovs-vsctl", "clear", "Bridge", "s2", "flow_tables")
    live.wait_ready()
    live.send(2, 0.3)
    live.halt()
    live.assert_all_received(1, f"h2 {group}", f"h3 {group}")
    live.assert_all_received(2, f"h2 {group}", f"h3 {group}")
    live.stream(2, "h1", more[-1])
    live.send(3, 0.3, 2)
    live.assert_all_received(3, f"h3 {more[-1]}", stream=2)


def test_each_decision_is_logged_and_counted_by_rule(live: Any, group: str) -> None:
    group = group.replace("239.1.", "239.9.", 1)
    audit = live.controller.directory / "state" / "audit.jsonl"

    def counts() -> dict[str, tuple[int, int]]:
        return {rule["rule"]: (rule["allow"], rule["deny"]) for rule in live.controller.show("rules")}

    before = counts()
    live.fabric.join("h3", group)
    live.fabric.join("h4", group)
    live.wait_members(group, {"h3"}, {"h4"})
    after = counts()
    assert after["receive"][0] - before["receive"][0] == 1
    assert after["others"][1] - before["others"][1] == 1
    live.controller.wait_until(
        "status", lambda _: sum(1 for line in audit.read_text().splitlines() if group in line) >= 2
    )
    lines = [json.loads(line) for line in audit.read_text().splitlines() if group in line]
    assert {(line["rule"], line["verdict"]) for line in lines} == {("receive", "allow"), ("others", "deny")}


def test_what_is_refused_is_dropped_at_its_own_port(live: Any, group: str) -> None:
    group = group.replace("239.1.", "239.9.", 1)
    live.join(group, "h3")
    live.stream(1, "h4", group)
    live.send(1, 0.3)
    sent = live.fabric.sent()["1"]["phases"]
    # All but those that the controller saw first; Open vSwitch brings its counts up to date every half second.
    least = sent["1"]["sent"] + sent["0"]["sent"] // 2
    live.controller.wait_until("status", lambda _: dropped(live, group) >= least)


def dropped(live: Any, group: str) -> int:
    """How many packets to a group the switch of h4 has dropped at its port."""
    entries = live.fabric.ofctl("dump-flows", "s2", "table=1").splitlines()
    (entry,) = [
        line for line in entries if f"nw_dst={group}" in line and "in_port=" in line and "actions=drop" in line
    ]
    found = re.search(r"n_packets=(\d+)", entry)
    assert found is not None
    return int(found[1])
