"""Whatever one port sends, forged, broken or by the thousand, hosts at other ports are served."""

from __future__ import annotations

import json
import os
import re
import socket
import struct
from collections.abc import Iterable
from math import inf
from random import Random
from threading import Thread
from typing import Any

import pytest

from apps.emulation import processes
from apps.emulation.namespace import network_of
from apps.status_client import query
from controller.wire.addresses import parse_ip, parse_mac
from controller.wire.encode import encode
from controller.wire.packets import GroupRecord, PimHello, Query, RecordType, Report
from controller.wire.udp import encode_udp
from patience import Patience
from topology.graph import Graph

pytestmark = pytest.mark.emulation

ALLOW = "version: 1\ndefault: allow\n"
STORM = 3000
FLOOD_BEGINS = 200
"""Packets of a flood that come before the others."""
LONG = 180
"""Records of one report in an Ethernet frame."""
LIMITS = ALLOW + "limits: {groups_per_port: 2, unknown_packets_per_second_per_port: 20, senders_per_port: 32}\n"
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


def unplug(live: Any, switch: str, host: str) -> None:
    """Let the controller forget a host and what it filled; the end of the test puts its cable back."""
    live.fabric.link_down(switch, host)
    live.wait_ready(edge_ports=3)


def join_report(group: bytes) -> bytes:
    return encode(Report(4, 2, MAC4, IP4, (GroupRecord(RecordType.MODE_IS_EXCLUDE, group, ()),)))


def false_report(kind: RecordType, group: str) -> bytes:
    """What h4 says under the address of h3."""
    return encode(Report(4, 3, MAC4, parse_ip("10.0.0.3"), (GroupRecord(kind, parse_ip(group), ()),)))


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


def test_long_reports_cost_a_bounded_number_of_decisions_and_hide_no_action(live: Any, group: str) -> None:
    live.set_policy("version: 1\ndefault: deny\n")
    state = live.controller.directory / "state"
    place = {"dpid": 2, "port_no": 1, "group": group}
    query(live.controller.socket, {"do": "static-member-add", **place, "by": "me"})

    def audited() -> list[dict[str, Any]]:
        path = state / "audit.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    before = len(audited())
    groups = [struct.pack("!BBH", 239, 78, number) for number in range(LONG * 100)]
    reports = [groups[first : first + LONG] for first in range(0, len(groups), LONG)]
    put_on_wire(live, "h4", [encode(Report(4, 3, MAC4, IP4, tuple(map(joined, asked)))) for asked in reports])
    wait_counter(live, "limit-records")
    query(live.controller.socket, {"do": "static-member-remove", **place})
    actions = [json.loads(line) for line in (state / "actions.jsonl").read_text().splitlines()]
    assert [line["verdict"] for line in actions if line["asked"].get("group") == group] == ["done", "done"]

    live.controller.wait_until(
        "status", lambda _: any("count" in line for line in audited()[before:]), timeout_s=30.0
    )
    lines = audited()[before:]
    assert len(lines) <= 3 * (64 + 1), "in two intervals, or three"
    assert sum(line.get("count", 1) for line in lines) < len(groups) / 2
    unplug(live, "s2", "h4")


def joined(group: bytes) -> GroupRecord:
    return GroupRecord(RecordType.CHANGE_TO_EXCLUDE, group, ())


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


def test_who_waits_for_room_is_served_when_the_last_receiver_of_a_group_leaves(live: Any) -> None:
    live.set_policy(f"{ALLOW}limits: {{groups: 1}}\nmulticast: {{fast_leave: true}}\n")
    first, second = "239.1.210.1", "239.1.210.2"
    live.join(first, "h2")
    live.stream(1, "h1", first)
    live.fabric.join("h3", second)
    live.stream(2, "h1", second)
    live.send(1, 0.3)
    live.assert_all_received(1, f"h2 {first}")
    assert live.fabric.settled()[f"h3 {second}"]["streams"] == {}
    live.fabric.leave("h2", first)
    live.wait_members(second, {"h3"})
    live.wait_ready()
    live.send(2, 0.3, 2)
    live.assert_all_received(2, f"h3 {second}", stream=2)


def test_a_flood_to_unknown_groups_is_cut_off(live: Any, group: str) -> None:
    live.set_policy(LIMITS)
    live.join(group, "h3")
    frames = [encode_udp(MAC4, IP4, number, bytes(64)) for number in numbered_groups(STORM)]
    put_on_wire(live, "h4", frames[:FLOOD_BEGINS])
    live.controller.wait_log("sender-penalty: Port s2:2 ")
    live.wait_ready()
    put_on_wire(live, "h4", frames)
    live.stream(1, "h1", group)
    live.send(1, 0.3)
    live.assert_all_received(1, f"h3 {group}")
    senders = [
        sender
        for document in live.controller.show("groups")
        for sender in document["senders"]
        if sender["mac"] == live.mac("h4")
    ]
    assert len(senders) <= 32
    counters = live.controller.show("status")["counters"]
    seen = sum(counters.get(name, 0) for name in ("unknown-packets-over-limit", "senders-per-port"))
    assert 0 < seen <= FLOOD_BEGINS, "what comes while the penalty lasts stays in the switch"


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


def test_a_host_that_claims_to_be_a_router_gets_nothing(live: Any, group: str) -> None:
    live.set_policy(ALLOW)
    live.join(group, "h2")
    live.stream(1, "h1", group)
    live.fabric.tap("h3")
    live.fabric.tap("h4")
    claims = [encode(Query(4, 3, MAC4, IP4, None, (), 0.1, False, 7, 31744.0)), encode(PimHello(4, MAC4, IP4, inf))]

    def refused(status: Any) -> bool:
        put_on_wire(live, "h4", claims)  # anew, where the switch still drops what an earlier flood made it drop
        return all(status["counters"].get(name, 0) >= 3 for name in ("query-refused", "pim-hello-refused"))

    live.controller.wait_until("status", refused)
    live.controller.wait_log("membership-query-refused: Port s2:2 receives the IGMP query of 10.0.0.4")
    known = live.controller.show("routers")
    assert known["router_ports"] == []
    assert all(querier["ours"] for querier in known["queriers"])
    live.send(1, 0.3)
    live.assert_all_received(1, f"h2 {group}")
    seen = live.fabric.settled()
    assert seen["tap h4"]["groups"].get(group, 0) == 0
    assert seen["tap h3"]["groups"].get("224.0.0.13", 0) == 0, "its hellos reach no host"


def test_another_querier_that_a_rule_allows_is_yielded_to_and_gets_every_group(live: Any, group: str) -> None:
    live.set_policy(f"{ALLOW}rules: [{{name: uplink, role: router, hosts: [{{dpid: 2, port: 2}}], action: allow}}]\n")
    live.join(group, "h2")
    live.stream(1, "h1", group)
    live.fabric.tap("h4")
    put_on_wire(live, "h4", [encode(Query(4, 3, MAC4, IP4, None, (), 0.1, False, 1, 1.0))])
    live.controller.wait_log("membership-querier-changed: Port s2:2 leads to the querier of IPv4 now, 10.0.0.4")
    known = live.controller.show("routers")
    (router,) = known["router_ports"]
    assert (router["dpid"], router["port_no"], router["routers"], router["groups"]) == (2, 2, ["10.0.0.4"], None)
    assert [(querier["ours"], querier["address"]) for querier in known["queriers"]] == [
        (False, "10.0.0.4"),
        (True, None),
    ]
    live.wait_ready()
    live.send(1, 0.3)
    live.assert_all_received(1, f"h2 {group}")
    sent = live.fabric.sent()["1"]["phases"]["1"]["sent"]
    assert live.fabric.settled()["tap h4"]["groups"][group] >= sent
    live.controller.wait_log("membership-querier-changed: The other querier of IPv4 is gone")


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


@pytest.mark.each_framework
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
    # All but those that the controller saw first; Open vSwitch brings its counts up to date a little later.
    least = sent["1"]["sent"] + sent["0"]["sent"] // 2
    live.controller.wait_until("status", lambda _: dropped(live, group) >= least)


def test_a_report_with_a_members_address_neither_joins_nor_leaves(live: Any, group: str) -> None:
    group = group.replace("239.1.", "239.9.", 1)
    live.join(group, "h3")
    live.stream(1, "h1", group)
    live.fabric.tap("h4")
    put_on_wire(live, "h4", [false_report(RecordType.CHANGE_TO_EXCLUDE, group)] * 3)
    live.wait_members(group, {"h3"}, {"h4"})
    (refused,) = live.document(group)["refused"]
    assert (refused["ip"], refused["rule"]) == ("10.0.0.3", "(spoofed)")
    assert refused["reason"].startswith(f"10.0.0.3 belongs to {live.mac('h3')} at port")
    put_on_wire(live, "h4", [false_report(RecordType.CHANGE_TO_INCLUDE, group)] * 3)
    wait_counter(live, "spoofed-report", 6)
    live.wait_members(group, {"h3"})
    put_on_wire(live, "h4", [join_report(parse_ip(group)), false_report(RecordType.MODE_IS_EXCLUDE, group)])
    live.wait_members(group, {"h3"}, {"h4"})
    assert live.document(group)["refused"][0]["rule"] == "others"
    live.send(1, 0.5)
    live.assert_all_received(1, f"h3 {group}")
    assert live.fabric.settled()["tap h4"]["groups"].get(group, 0) == 0


def dropped(live: Any, group: str) -> int:
    """How many packets to a group the switch of h4 has dropped at its port."""
    entries = live.fabric.ofctl("dump-flows", "s2", "table=1").splitlines()
    (entry,) = [
        line for line in entries if f"nw_dst={group}" in line and "in_port=" in line and "actions=drop" in line
    ]
    found = re.search(r"n_packets=(\d+)", entry)
    assert found is not None
    return int(found[1])


FLOOD_CUT = "IGMP messages a second: its switch drops them"
FLOOD_ENDED = "has ended: its IGMP messages are read again"


def flood_counts(status: dict[str, Any]) -> list[int]:
    """How often a port was guarded, messages of floods that were read, and reports, since the controller began."""
    return [status["counters"].get(name, 0) for name in ("port-guarded", "membership-flood", "reports")]


@pytest.mark.parametrize("kind", ["IGMP", "PIM"])
def test_a_flood_is_cut_at_the_switch_and_a_join_elsewhere_is_fast(live: Any, group: str, kind: str) -> None:
    hello = encode(PimHello(4, MAC4, IP4, 105))
    frames = [join_report(numbered_groups(1)[0]) if kind == "IGMP" else hello] * 60_000
    cut, *before = flood_counts(live.controller.show("status"))
    ended_count = live.controller.log().count(FLOOD_ENDED)
    cut_count = live.controller.log().count(FLOOD_CUT)
    flood = Thread(target=put_on_wire, args=(live, "h4", frames))
    flood.start()
    try:
        live.controller.wait_log(FLOOD_CUT, timeout_s=20, count=cut_count + 1)
        patience = Patience(os.getpid(), 2.0)
        live.join(group, "h3")
        patience.check()
    finally:
        flood.join()
    status = live.controller.wait_until("status", lambda status: flood_counts(status)[0] > cut)
    assert sum(flood_counts(status)[1:]) - sum(before) < len(frames) / 5
    live.controller.wait_log(FLOOD_ENDED, timeout_s=20, count=ended_count + 1)
    unplug(live, "s2", "h4")
