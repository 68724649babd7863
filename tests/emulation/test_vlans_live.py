"""Groups of VLANs on switches: hosts at access and trunk ports join, send and ask in their own domains alone."""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from apps.emulation import processes, traffic
from apps.emulation.cluster import wait_that
from apps.emulation.namespace import network_of
from apps.emulation.processes import EmulationError
from controller.wire.addresses import parse_ip, parse_mac
from controller.wire.encode import encode
from controller.wire.ethernet import with_tag, without_tag
from controller.wire.frame import decode
from controller.wire.packets import GroupRecord, Query, RecordType, Report
from controller.wire.udp import encode_udp
from topology.graph import Graph
from vlan_hosts import add_interfaces, join, named, port_lines

pytestmark = pytest.mark.emulation

RATE_BPS, PACKETS_PER_S = 4e6, 400
STREAMS = {10: (1, "h1"), 20: (2, "h2"), 0: (3, "h3")}
"""The number of the stream of each domain, and the host at s1 that sends it."""

ACCESS = {"h1": 10, "h2": 20, "h5": 10, "h6": 20}
TRUNKS = {"h8": (10, 20)}
"""The VLANs of the hosts' ports; h3, h4 and h7 are in the fabric's own domain."""

RECEIVERS = {10: ("h5", "h8.10"), 20: ("h6", "h8.20"), 0: ("h7",)}
POLICY = """\
version: 1
default: allow
multicast: {querier: {query_interval_s: 20, response_interval_s: 1, last_member_interval_s: 0.2}}
check: {interval_s: 2}
vlans:
  names: {10: storage, 20: video}
  ports:
"""
WRONG_FRAMES = 25

SWITCHES: dict[str, dict[str, Any]] = {
    "OpenFlow 1.3": {},
    "OpenFlow 1.0": {"protocols": "OpenFlow10"},
    "mixed": {"old_switches": ("s1", "s3")},
}


@pytest.fixture(scope="module", params=list(SWITCHES))
def bench(wide_diamond: Graph, request: pytest.FixtureRequest) -> tuple[Graph, dict[str, Any]]:
    return wide_diamond, SWITCHES[request.param]


@pytest.fixture
def vlans(live: Any) -> Any:
    """The fabric with its ports in their VLANs."""
    live.set_policy(policy(live))
    add_interfaces(live, TRUNKS)
    live.wait_ready()
    return live


def policy(live: Any, access: Mapping[str, int] = ACCESS) -> str:
    return POLICY + port_lines(live, access, TRUNKS)


def join_everywhere(live: Any, group: str) -> None:
    """Have all receivers of all domains join one address, and wait until they are members of their own."""
    for receivers in RECEIVERS.values():
        join(live, group, *receivers)
    for vlan_id, receivers in RECEIVERS.items():
        live.wait_members(named(group, vlan_id), {receiver.partition(".")[0] for receiver in receivers})


def send_everywhere(live: Any, group: str, domains: tuple[int, ...] = (10, 20, 0)) -> None:
    """Have the sender of each domain send (phase 0), and wait until it is known there."""
    for vlan_id in domains:
        number, host = STREAMS[vlan_id]
        live.fabric.open_stream(number, host, group, RATE_BPS, pattern="constant")
        live.fabric.send(0, streams=[number])
        wanted, mac = named(group, vlan_id), live.mac(host)

        def known(groups: list[dict[str, Any]], wanted: str = wanted, mac: str = mac) -> bool:
            found = [document for document in groups if document["group"] == wanted]
            return any(sender["mac"] == mac for document in found for sender in document["senders"])

        live.controller.wait_until("groups", known)
    live.wait_ready()


def streams_seen(live: Any, name: str) -> set[int]:
    """Return the streams of which a socket has received something."""
    return {int(key.partition(":")[0]) for key in live.fabric.settled()[name]["streams"]}


def assert_own_packets(live: Any, group: str, phase: int) -> None:
    """Every receiver has what its domain's sender sent in a phase, once, and nothing of other domains."""
    for vlan_id, receivers in RECEIVERS.items():
        number, _ = STREAMS[vlan_id]
        names = [f"{receiver} {group}" for receiver in receivers]
        live.assert_all_received(phase, *names, stream=number)
        assert all(streams_seen(live, name) == {number} for name in names)


@contextmanager
def wire(live: Any, host: str) -> Iterator[socket.socket]:
    """What comes and goes on the cable of a host."""
    with network_of(live.fabric.pid(host)):
        sock = traffic.open_wire(live.fabric.interface(host))
    with sock:
        yield sock


def general_query_tags(sock: socket.socket, wanted: set[int], timeout_s: float = 30.0) -> set[int]:
    """Return with which tags a host was asked about all groups, once those that are wanted are among them."""
    tags: set[int] = set()
    deadline = time.monotonic() + timeout_s
    while not wanted <= tags and select.select([sock], [], [], max(0.0, deadline - time.monotonic()))[0]:
        frame, is_own = traffic.receive_frame(sock)
        tag, inner = without_tag(frame) or (0, frame)
        packet = decode(inner)
        if not is_own and isinstance(packet, Query) and packet.group is None and packet.family == 4:
            tags.add(tag)
    return tags


def heard_until(sock: socket.socket, last: bytes, timeout_s: float = 10.0) -> list[bytes]:
    """Return the frames with tags that a host hears before a frame."""
    tagged: list[bytes] = []
    deadline = time.monotonic() + timeout_s
    while select.select([sock], [], [], max(0.0, deadline - time.monotonic()))[0]:
        frame, is_own = traffic.receive_frame(sock)
        if not is_own and frame[: len(last)] == last:
            return tagged
        if not is_own and without_tag(frame) is not None:
            tagged.append(frame)
    raise AssertionError("the last frame was not heard")


def heard_in_time(sock: socket.socket, frame: bytes, timeout_s: float = 10.0) -> bool:
    """Tell whether a host hears a frame."""
    deadline = time.monotonic() + timeout_s
    while select.select([sock], [], [], max(0.0, deadline - time.monotonic()))[0]:
        received, is_own = traffic.receive_frame(sock)
        if not is_own and received[: len(frame)] == frame:
            return True
    return False


@pytest.mark.each_framework
def test_each_domain_has_its_own_packets(vlans: Any, group: str) -> None:
    join_everywhere(vlans, group)
    for host in ("h4", "h5", "h6", "h7", "h8"):
        vlans.fabric.tap(host)
    send_everywhere(vlans, group)
    vlans.send(1, 0.5)
    vlans.halt()
    assert_own_packets(vlans, group, 1)
    seen = vlans.fabric.settled()
    tags = {host: set(seen[f"tap {host}"]["groups"]) for host in ("h4", "h5", "h6", "h7", "h8")}
    assert tags == {
        "h4": set(),
        "h5": {group},
        "h6": {group},
        "h7": {group},
        "h8": {f"{group}@10", f"{group}@20"},
    }
    assert not any(seen[f"tap {host}"]["wrong_destination_count"] for host in tags)


def test_hosts_reach_those_of_their_domain_alone(vlans: Any, unanswered: Any) -> None:
    assert unanswered(vlans, [("h1", "h5"), ("h6", "h2"), ("h3", "h7"), ("h4", "h3")]) == []
    apart = [("h1", "h2"), ("h1", "h6"), ("h5", "h3"), ("h7", "h6")]
    assert sorted(unanswered(vlans, apart)) == sorted(apart)


def test_ipv6_groups_have_their_domain_too(vlans: Any, bench: tuple[Graph, dict[str, Any]]) -> None:
    group = "ff1e::1020"
    if bench[1]:
        vlans.controller.wait_log("OpenFlow 1.0: MLD joins at its ports and IPv6 groups through it are refused")
        vlans.fabric.tap("h5")
        vlans.fabric.open_stream(1, "h1", group, RATE_BPS, pattern="constant")
        vlans.send(1, 0.3)
        assert vlans.fabric.settled()["tap h5"]["groups"] == {}
        return
    join_everywhere(vlans, group)
    send_everywhere(vlans, group)
    vlans.send(1, 0.5)
    vlans.halt()
    assert_own_packets(vlans, group, 1)


def test_a_host_at_a_trunk_port_sends_into_its_vlan(vlans: Any, group: str) -> None:
    join(vlans, group, "h5", "h6", "h7")
    for vlan_id, host in ((10, "h5"), (20, "h6"), (0, "h7")):
        vlans.wait_members(named(group, vlan_id), {host})
    interface = f"{vlans.fabric.interface('h8')}.10"
    vlans.fabric.open_stream(1, "h8", group, RATE_BPS, interface=interface, pattern="constant")
    vlans.fabric.send(0, streams=[1])
    vlans.controller.wait_until(
        "groups",
        lambda groups: any(found["group"] == f"{group}@10" and found["senders"] for found in groups),
    )
    vlans.wait_ready()
    vlans.send(1, 0.5)
    vlans.halt()
    vlans.assert_all_received(1, f"h5 {group}")
    assert [streams_seen(vlans, f"{host} {group}") for host in ("h6", "h7")] == [set(), set()]


def test_every_domain_of_a_port_is_asked(live: Any, request: pytest.FixtureRequest) -> None:
    with wire(live, "h8") as at_trunk, wire(live, "h5") as at_access:
        request.getfixturevalue("vlans")
        assert general_query_tags(at_trunk, {10, 20}) >= {10, 20}
        assert general_query_tags(at_access, {0}) == {0}


def test_wrong_tags_go_nowhere_and_are_counted(vlans: Any, group: str, unanswered: Any) -> None:
    join_everywhere(vlans, group)
    unanswered(vlans, [("h1", "h5")])  # h1 has said nothing yet in its VLAN: it is looked for with the first answer
    assert unanswered(vlans, [("h1", "h5")]) == []
    hosts = ("h2", "h4", "h5", "h6", "h7", "h8")
    for host in hosts:
        vlans.fabric.tap(host)
    before = vlans.controller.show("status")["counters"].get("vlan-tagged", 0)
    mac, source = parse_mac(vlans.mac("h1")), parse_ip(vlans.fabric.address("h1"))
    magic = traffic.HEADER.pack(traffic.MAGIC, 9, 0, 0, 0)
    other = group.rpartition(".")[0] + ".77"
    records = (GroupRecord(RecordType.CHANGE_TO_EXCLUDE, parse_ip(other), ()),)
    frames = [encode_udp(mac, source, parse_ip(group), magic), encode(Report(4, 3, mac, source, records))]
    to_h5 = encode_udp(parse_mac(vlans.mac("h8")), source, source, b"plain", eth_dst=parse_mac(vlans.mac("h5")))
    with wire(vlans, "h1") as sock, wire(vlans, "h8") as at_trunk, wire(vlans, "h5") as at_access:
        for tag in (10, 20, 30, 0, 4095):
            for frame in frames * WRONG_FRAMES:
                sock.send(with_tag(frame, tag))
        for frame in [with_tag(with_tag(to_h5, 20), 10)] * WRONG_FRAMES:
            at_trunk.send(frame)
        vlans.controller.wait_until(
            "status",
            # What was dropped while ports changed their VLANs before may be read only now.
            lambda status: status["counters"].get("vlan-tagged", 0) >= before + 11 * WRONG_FRAMES,
        )
        at_trunk.send(with_tag(to_h5, 10))
        assert heard_until(at_access, to_h5) == [], "an inner tag came out where the outer one was taken off"
    seen = vlans.fabric.settled()
    assert all(seen[f"tap {host}"]["groups"] == {} for host in hosts)
    known = {document["group"] for document in vlans.controller.show("groups")}
    assert not known & {named(other, vlan_id) for vlan_id in (0, 10, 20, 30)}


def test_frames_with_two_tags_pass_in_the_vlan_of_the_outer_one(
    vlans: Any, bench: tuple[Graph, dict[str, Any]], group: str, unanswered: Any
) -> None:
    vlans.set_policy(policy(vlans) + "  double_tagged: pass\n")
    vlans.wait_ready()
    if bench[1]:
        vlans.controller.wait_log(
            "OpenFlow 1.0: it drops frames with two VLAN tags, which pass elsewhere by the policy"
        )
        return
    unanswered(vlans, [("h1", "h5")])  # h5 has said something in its VLAN then
    mac, source = parse_mac(vlans.mac("h8")), parse_ip("10.99.0.8")
    records = (GroupRecord(RecordType.CHANGE_TO_EXCLUDE, parse_ip(group), ()),)
    inner = {
        "to h5": encode_udp(mac, source, source, b"one", eth_dst=parse_mac(vlans.mac("h5"))),
        "to nobody known": encode_udp(mac, source, source, b"any", eth_dst=b"\x02\0\0\0\x09\x09"),
        "to a group": encode_udp(mac, source, parse_ip(group), b"group"),
        "report": encode(Report(4, 3, mac, source, records)),
    }
    others = {"to h5": []} | {what: ["h1"] for what in inner if what != "to h5"}
    last = encode_udp(mac, source, source, b"last", eth_dst=b"\xff" * 6)
    with (
        wire(vlans, "h8") as at_trunk,
        wire(vlans, "h5") as at_h5,
        wire(vlans, "h1") as at_h1,
        wire(vlans, "h6") as at_h6,
    ):
        for what, frame in inner.items():
            at_trunk.send(with_tag(with_tag(frame, 99), 10))
            assert heard_in_time(at_h5, with_tag(frame, 99)), what
        for outer in (10, 20):
            at_trunk.send(with_tag(with_tag(last, 99), outer))
        for name, sock, expected in (
            ("h1", at_h1, [frame for what, frame in inner.items() if others[what]]),
            ("h6", at_h6, []),
        ):
            passed = [frame for frame in heard_until(sock, with_tag(last, 99)) if frame != with_tag(last, 99)]
            assert [frame[:60] for frame in passed] == [with_tag(frame, 99)[:60] for frame in expected], name
    known = {document["group"] for document in vlans.controller.show("groups")}
    assert not known & {named(group, vlan_id) for vlan_id in (0, 10, 20, 99)}


def test_a_switch_that_looks_behind_both_tags_is_told_of(
    vlans: Any, bench: tuple[Graph, dict[str, Any]], group: str
) -> None:
    if bench[1]:
        return
    mac, source = parse_mac(vlans.mac("h8")), parse_ip(vlans.fabric.address("h8"))
    report = encode(Report(4, 3, mac, source, (GroupRecord(RecordType.CHANGE_TO_EXCLUDE, parse_ip(group), ()),)))
    processes.run("ovs-vsctl", "set", "Open_vSwitch", ".", "other_config:vlan-limit=2")
    try:
        with wire(vlans, "h8") as at_trunk:
            at_trunk.send(with_tag(with_tag(report, 99), 10))
            vlans.controller.wait_log("double-tagged-misread")
    finally:
        processes.run("ovs-vsctl", "remove", "Open_vSwitch", ".", "other_config", "vlan-limit")
    assert named(group, 10) not in {document["group"] for document in vlans.controller.show("groups")}


def test_a_rule_may_be_about_a_vlan(vlans: Any, group: str) -> None:
    rule = "{name: one, groups: [239.0.0.0/8], role: receiver, hosts: any, vlan: storage, action: allow}"
    vlans.set_policy(policy(vlans).replace("default: allow", f"default: deny\nrules: [{rule}]"))
    join(vlans, group, "h5", "h6", "h8.10", "h8.20")
    vlans.wait_members(f"{group}@10", {"h5", "h8"})
    vlans.wait_members(f"{group}@20", set(), {"h6", "h8"})


def test_a_stream_in_a_vlan_survives_a_pulled_cable(vlans: Any, group: str) -> None:
    join_everywhere(vlans, group)
    send_everywhere(vlans, group)
    link = vlans.tree(f"{group}@10")[0]
    vlans.fabric.send(1)
    held_up = vlans.held_up()
    vlans.fabric.link_down(*link)
    vlans.wait_ready(links=3)
    vlans.fabric.send(2, 0.5)
    vlans.fabric.wait_sent(15)
    assert link not in vlans.tree(f"{group}@10")
    for receiver in RECEIVERS[10]:
        sent, received, duplicates = vlans.counts(1, f"{receiver} {group}")
        assert duplicates == 0
        assert sent - received < (1 + held_up.seconds()) * PACKETS_PER_S
    assert_own_packets(vlans, group, 2)
    vlans.fabric.link_up(*link)
    vlans.wait_ready(links=4)
    vlans.send(3, 0.5)
    assert_own_packets(vlans, group, 3)


def test_a_port_is_moved_to_another_vlan_while_packets_flow(vlans: Any, group: str) -> None:
    join_everywhere(vlans, group)
    send_everywhere(vlans, group)
    vlans.fabric.send(1)
    vlans.set_policy(policy(vlans, {**ACCESS, "h5": 20}))
    vlans.wait_members(f"{group}@10", {"h8"})
    vlans.wait_members(f"{group}@20", {"h5", "h6", "h8"})
    vlans.send(2, 0.5)
    vlans.halt()
    vlans.assert_all_received(2, f"h5 {group}", f"h6 {group}", f"h8.20 {group}", stream=2)
    assert vlans.counts(2, f"h5 {group}", stream=1)[1] == 0
    for vlan_id, receiver in ((10, "h8.10"), (20, "h6"), (20, "h8.20"), (0, "h7")):
        vlans.assert_all_received(1, f"{receiver} {group}", stream=STREAMS[vlan_id][0])


def test_a_controller_that_is_killed_and_comes_back_costs_nothing(vlans: Any, group: str) -> None:
    join_everywhere(vlans, group)
    send_everywhere(vlans, group)
    before = {switch: flows(vlans, switch) for switch in ("s1", "s2", "s3", "s4")}
    vlans.fabric.send(1)
    vlans.controller.kill()
    vlans.controller.start()
    vlans.controller.wait_discovered(vlans.fabric)
    for vlan_id, receivers in RECEIVERS.items():
        vlans.wait_members(named(group, vlan_id), {receiver.partition(".")[0] for receiver in receivers})
    vlans.halt()
    assert_own_packets(vlans, group, 1)
    # A drop of unknown senders, while the controller was late to learn them, lasts a second.
    now = before

    def is_as_before() -> bool:
        nonlocal now
        now = {switch: flows(vlans, switch) for switch in before}
        return now == before

    try:
        wait_that("all is as before", is_as_before, 30)
    except EmulationError as error:
        differing = {switch: sorted(now[switch] ^ before[switch]) for switch in before}
        raise EmulationError(f"{differing}\n{vlans.controller.log()[-4000:]}") from error


def flows(live: Any, switch: str) -> set[str]:
    """Return the entries of a switch, without what they have counted."""
    lines = live.fabric.ofctl("dump-flows", switch, "--no-stats").splitlines()
    return {line.strip() for line in lines if "actions=" in line}
