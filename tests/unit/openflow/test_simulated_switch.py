"""The simulated switches by themselves: what they keep, answer, forward and hold, told over a connection."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from contextlib import suppress

import pytest

from apps.openflow.southbound import packet_in
from apps.simulated_fabric import messages
from apps.simulated_fabric.fabric import SimulatedFabric
from apps.simulated_fabric.switch import Service
from controller.discovery.base_rules import base_rules
from controller.rules.model import FlowEntry, FlowKey, Match, Output
from controller.rules.of13 import (
    decode_flow_stats,
    encode_barrier,
    encode_flow_stats_request,
    encode_packet_out,
    encode_put,
    encode_remove,
)
from controller.rules.pipeline import OPENFLOW_1_3, PRIORITY_UNICAST, UNICAST
from controller.wire.lldp import ECHO_MAC, NEAREST_BRIDGE_MAC, encode_lldp
from topology.generators import make

TIMEOUT_S = 10.0
TAG, OTHER_TAG = 0x5603, 0x5602
TAG_MASK = 0xFFFF << 48
HEADER = struct.Struct("!BBHI")


class Peers:
    """The controller's ends of the connections of a fabric of three switches in a row, by datapath id."""

    def __init__(self) -> None:
        self.server = socket.create_server(("127.0.0.1", 0))
        self.fabric = SimulatedFabric(make("tree", {"depth": 2, "fanout": 2}), self.server.getsockname())
        self.streams: dict[int, socket.socket] = {}
        self.came: dict[int, bytes] = {}
        self.unread: list[tuple[int, bytes]] = []
        self.fabric.connect()
        for _ in self.fabric.switches:
            self.accept()

    def accept(self) -> int:
        self.server.settimeout(0.0)
        streams: list[socket.socket] = []

        def accepted() -> bool:
            try:
                streams.append(self.server.accept()[0])
            except BlockingIOError:
                return False
            return True

        assert self.fabric.run_until(accepted, TIMEOUT_S)
        stream = streams[0]
        stream.setblocking(False)
        self.streams[0], self.came[0] = stream, b""
        self.send(0, HEADER.pack(4, messages.HELLO, 8, 1) + HEADER.pack(4, messages.FEATURES_REQUEST, 8, 2))
        (features,) = self.wait(0, messages.FEATURES_REPLY)
        dpid = int.from_bytes(features[8:16], "big")
        self.unread = [(whose, message) for whose, message in self.unread if whose not in (0, dpid)]
        self.streams[dpid], self.came[dpid] = self.streams.pop(0), self.came.pop(0)
        return dpid

    def send(self, dpid: int, *told: bytes) -> None:
        self.streams[dpid].sendall(b"".join(told))

    def read(self, dpid: int, kind: int) -> list[bytes]:
        """The messages of a type that have come and were not read yet."""
        with suppress(BlockingIOError):
            self.came[dpid] += self.streams[dpid].recv(1 << 20)
        rest = self.came[dpid]
        while len(rest) >= 8 and len(rest) >= (size := int.from_bytes(rest[2:4], "big")):
            self.unread.append((dpid, rest[:size]))
            rest = rest[size:]
        self.came[dpid] = rest
        found = [message for whose, message in self.unread if whose == dpid and message[1] == kind]
        self.unread = [(whose, message) for whose, message in self.unread if whose != dpid or message[1] != kind]
        return found

    def wait(self, dpid: int, kind: int, count: int = 1) -> list[bytes]:
        found: list[bytes] = []

        def come() -> bool:
            found.extend(self.read(dpid, kind))
            return len(found) >= count

        assert self.fabric.run_until(come, TIMEOUT_S)
        return found

    def statistics(self, dpid: int, cookie: int = 0, mask: int = 0) -> list[bytes]:
        self.send(dpid, encode_flow_stats_request(7, cookie, mask))
        found = self.wait(dpid, messages.MULTIPART_REPLY)
        while decode_flow_stats(found[-1]).more:
            found += self.wait(dpid, messages.MULTIPART_REPLY)
        return found

    def held(self, dpid: int, cookie: int = 0, mask: int = 0) -> dict[FlowKey, FlowEntry]:
        read = [decode_flow_stats(reply) for reply in self.statistics(dpid, cookie, mask)]
        assert [reply.fault for reply in read if reply.fault] == []
        return {entry.rule.key: entry.rule for reply in read for entry in reply.entries}

    def close(self) -> None:
        self.fabric.close()
        self.server.close()
        for stream in self.streams.values():
            stream.close()


@pytest.fixture
def peers() -> Iterator[Peers]:
    made = Peers()
    yield made
    made.close()


def unicast(number: int, port_no: int = 1, tag: int = TAG) -> FlowEntry:
    mac = b"\x02\x00" + number.to_bytes(4, "big")
    return FlowEntry(FlowKey(UNICAST, PRIORITY_UNICAST, Match(eth_dst=mac)), (Output(port_no),), tag << 48 | number)


def put_all(rules: list[FlowEntry]) -> bytes:
    return b"".join(encode_put(rule, xid) for xid, rule in enumerate(rules))


def with_command(message: bytes, command: int) -> bytes:
    return message[:25] + bytes((command,)) + message[26:]


def test_entries_are_told_as_they_were_put_and_by_cookie(peers: Peers) -> None:
    ours, others = [unicast(number) for number in range(3)], [unicast(9, tag=OTHER_TAG)]
    rules = [*ours, *others, *base_rules(OPENFLOW_1_3)]
    peers.send(2, put_all(rules))
    assert peers.held(2) == {rule.key: rule for rule in rules}
    assert peers.held(2, TAG << 48, TAG_MASK) == {rule.key: rule for rule in ours}
    assert peers.held(3) == {}


def test_a_put_replaces_and_a_strict_removal_takes_that_entry_alone(peers: Peers) -> None:
    peers.send(2, put_all([unicast(1), unicast(2)]), encode_put(unicast(1, 2), 5), encode_remove(unicast(2).key, 6))
    assert list(peers.held(2).values()) == [unicast(1, 2)]


def test_a_strict_modification_adds_nothing_and_leaves_cookies_alone(peers: Peers) -> None:
    peers.send(2, encode_put(unicast(1), 1))
    for rule in (unicast(1, 2, OTHER_TAG), unicast(2)):
        peers.send(2, with_command(encode_put(rule, 2), messages.MODIFY_STRICT))
    assert list(peers.held(2).values()) == [unicast(1, 2)]


def test_a_removal_that_is_not_strict_takes_what_is_as_specific_or_more_so(peers: Peers) -> None:
    rules = [*base_rules(OPENFLOW_1_3), unicast(1)]
    lldp = [rule for rule in rules if rule.key.match.eth_type == 0x88CC]
    wide = FlowEntry(FlowKey(1, 0, Match(eth_type=0x88CC)), (), 0)
    peers.send(2, put_all(rules), with_command(encode_put(wide, 9), messages.DELETE))
    assert len(lldp) == 2
    assert peers.held(2).keys() == {rule.key for rule in rules} - {rule.key for rule in lldp}


def test_a_long_table_is_told_in_several_replies(peers: Peers) -> None:
    rules = [unicast(number) for number in range(2000)]
    peers.send(2, put_all(rules))
    assert peers.held(2) == {rule.key: rule for rule in rules}
    assert len(peers.statistics(2)) > 1


def test_a_full_table_refuses_with_the_error_of_the_specification(peers: Peers) -> None:
    peers.fabric.switches[2].table.capacity = 2
    peers.send(2, put_all([unicast(number) for number in range(3)]), encode_put(unicast(0, 2), 3))
    (error,) = peers.wait(2, messages.ERROR)
    assert struct.unpack_from("!IHH", error, 4) == (2, 5, 1)
    assert list(peers.held(2).values()) == [unicast(0, 2), unicast(1)]


def test_a_hard_timeout_ends_an_entry(peers: Peers) -> None:
    peers.send(2, encode_put(unicast(1)._replace(hard_timeout_s=1), 1), encode_put(unicast(2), 2))
    assert len(peers.held(2)) == 2
    table = peers.fabric.switches[2].table
    assert peers.fabric.run_until(lambda: len(table.held) < 2, TIMEOUT_S)
    assert list(peers.held(2).values()) == [unicast(2)]


def test_an_lldp_frame_crosses_its_cable_to_a_switch_that_hands_it_over(peers: Peers) -> None:
    fabric = peers.fabric
    (near, port_no), (far, far_port) = next(iter(fabric.links.items()))
    frame, echo = encode_lldp(near, port_no, b"token"), encode_lldp(near, port_no, b"token")[6:]
    leave = encode_packet_out([port_no], frame, 1)
    peers.send(near, leave, encode_barrier(2))
    peers.wait(near, messages.BARRIER_REPLY)
    peers.send(far, put_all(base_rules(OPENFLOW_1_3)), encode_barrier(3))
    peers.wait(far, messages.BARRIER_REPLY)
    assert fabric.watch.packet_ins == 0
    peers.send(near, leave)
    (arrived,) = (packet_in(far, OPENFLOW_1_3, message) for message in peers.wait(far, messages.PACKET_IN))
    assert arrived is not None
    assert (arrived.in_port, arrived.data) == (far_port, frame)
    peers.send(near, put_all(base_rules(OPENFLOW_1_3)), encode_packet_out([port_no], ECHO_MAC + echo, 4))
    (returned,) = (packet_in(near, OPENFLOW_1_3, message) for message in peers.wait(near, messages.PACKET_IN))
    assert returned is not None
    assert (returned.in_port, returned.data) == (port_no, NEAREST_BRIDGE_MAC + echo)


def test_a_packet_goes_by_the_entries_as_they_are(peers: Peers) -> None:
    switch = peers.fabric.switches[2]
    reached: list[int] = []
    peers.fabric.reached_host = lambda dpid, port_no, _frame: reached.append(port_no)
    frame = unicast(1).key.match.eth_dst + bytes(6) + b"\x08\x00" + bytes(46)
    to_hosts = [port_no for port_no in switch.ports if port_no not in switch.far]
    for number in (*to_hosts, None, to_hosts[0]):
        told = encode_remove(unicast(1).key, 1) if number is None else encode_put(unicast(1, number), 1)
        peers.send(2, put_all(base_rules(OPENFLOW_1_3)), told, encode_barrier(2))
        peers.wait(2, messages.BARRIER_REPLY)
        reached.clear()
        switch.arrive(next(iter(switch.far)), frame)
        assert reached == ([] if number is None else [number])


@pytest.mark.parametrize("silent", [False, True], ids=["told", "silent"])
def test_a_cable_that_is_down_carries_nothing_and_is_told_of_or_not(peers: Peers, silent: bool) -> None:
    fabric = peers.fabric
    (near, port_no), (far, _) = next(iter(fabric.links.items()))
    peers.send(far, put_all(base_rules(OPENFLOW_1_3)), encode_barrier(3))
    peers.wait(far, messages.BARRIER_REPLY)
    fabric.set_link((near, port_no), False, silent=silent)
    peers.send(near, encode_packet_out([port_no], encode_lldp(near, port_no, b"token"), 1), encode_barrier(2))
    peers.wait(near, messages.BARRIER_REPLY)
    peers.send(far, encode_barrier(4))
    peers.wait(far, messages.BARRIER_REPLY)
    assert fabric.watch.packet_ins == 0
    fabric.set_link((near, port_no), True)
    if silent:
        peers.send(near, encode_barrier(5))
        assert peers.read(near, messages.PORT_STATUS) == []
    else:
        states = [message[16 + 36 : 16 + 40] for message in peers.wait(near, messages.PORT_STATUS, 2)]
        assert states == [b"\0\0\0\1", b"\0\0\0\4"]
    peers.send(near, encode_packet_out([port_no], encode_lldp(near, port_no, b"token"), 1))
    assert len(peers.wait(far, messages.PACKET_IN)) == 1


def test_a_slow_switch_takes_its_time_and_answers_a_barrier_when_it_is_done(peers: Peers) -> None:
    switch = peers.fabric.switches[2]
    switch.service = Service(edits_per_s=100.0, barrier_s=0.5)
    switch.take(put_all([unicast(number) for number in range(10)]) + encode_barrier(99), 1000.0)
    assert len(switch.table.held) == 0
    switch.serve(1000.055)
    assert len(switch.table.held) == 5
    switch.serve(1000.105)
    assert len(switch.table.held) == 10
    assert HEADER.pack(4, messages.BARRIER_REPLY, 8, 99) not in switch.out
    switch.serve(1000.605)
    assert HEADER.pack(4, messages.BARRIER_REPLY, 8, 99) in switch.out


def test_a_switch_that_holds_too_many_edits_ends_its_connection_and_comes_back(peers: Peers) -> None:
    switch = peers.fabric.switches[2]
    switch.service = Service(edits_per_s=1.0, held_edits=4)
    peers.send(2, put_all([unicast(number) for number in range(8)]))
    assert peers.fabric.run_until(lambda: switch.drops, TIMEOUT_S)
    assert peers.accept() == 2
    assert switch.drops == 1
    assert len(switch.table.held) <= 4


def test_a_switch_that_does_not_read_answers_when_it_goes_on(peers: Peers) -> None:
    fabric = peers.fabric
    fabric.set_reading(2, False)
    peers.send(2, encode_barrier(1))
    peers.send(3, encode_barrier(2))
    peers.wait(3, messages.BARRIER_REPLY)
    assert peers.read(2, messages.BARRIER_REPLY) == []
    fabric.set_reading(2, True)
    assert len(peers.wait(2, messages.BARRIER_REPLY)) == 1


def test_a_switch_that_died_comes_back_with_an_empty_table_or_its_own(peers: Peers) -> None:
    fabric = peers.fabric
    for empty in (False, True):
        peers.send(2, encode_put(unicast(1), 1), encode_barrier(2))
        peers.wait(2, messages.BARRIER_REPLY)
        fabric.kill(2)
        assert fabric.connected_count == 2
        fabric.revive(2, empty=empty)
        assert peers.accept() == 2
        assert len(peers.held(2)) == (0 if empty else 1)


def test_port_counters_rise(peers: Peers) -> None:
    request = struct.pack("!BBHIHH4xI4x", 4, messages.MULTIPART_REQUEST, 24, 1, messages.PORT_STATS, 0, messages.ANY)
    bytes_received = []
    for _ in range(2):
        peers.send(2, request)
        (reply,) = peers.wait(2, messages.MULTIPART_REPLY)
        entries = [reply[at : at + 112] for at in range(16, len(reply), 112)]
        assert [int.from_bytes(entry[:4], "big") for entry in entries] == list(peers.fabric.switches[2].ports)
        bytes_received.append(int.from_bytes(entries[0][24:32], "big"))
        peers.fabric.run_for(0.01)
    assert bytes_received[0] < bytes_received[1]
