"""What switches send reaches the apps as the framework would have said it, under Ryu and os-ken."""

from __future__ import annotations

import importlib
import struct
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.openflow.connection import Connection
from apps.openflow.southbound import PACKETS_AT_ONCE, Southbound, packet_in
from controller.events import (
    BarrierReplied,
    ControllerRole,
    EditFailed,
    FlowStatsReceived,
    PacketReceived,
    RoleReplied,
)

FRAMEWORKS = ("os_ken", "ryu")
IN_PORT = struct.pack("!II", 0x80000004, 7)
METADATA = struct.pack("!IQ", 0x80000408, 9)
OURS, THEIRS = 0xA2 << 24 | 5, 0x11 << 24 | 5


class Datapath:
    id = 5


class Unhurried:
    """A loop that nothing is due on."""

    now_s = 0.0

    def add(self, _member: Any) -> None:
        pass


class App:
    def __init__(self, takes_lldp: bool = True, takes_ipv4_groups: bool = True) -> None:
        self.takes_lldp = takes_lldp
        self.takes_ipv4_groups = takes_ipv4_groups
        self.packets: list[PacketReceived] = []
        self.turns: list[int] = []
        self.answers: list[Any] = []
        self.refusals: list[tuple[str, str]] = []

    def packets_received(self, events: Sequence[PacketReceived]) -> None:
        self.packets += events
        self.turns.append(len(events))

    def answered(self, event: Any) -> None:
        self.answers.append(event)

    def switch_refused(self, host: str, reason: str) -> None:
        self.refusals.append((host, reason))


def parsed(framework: str, version: str, data: bytes) -> Any:
    """Return what the framework itself reads of a packet-in."""
    pytest.importorskip(framework)
    module = importlib.import_module(f"{framework}.ofproto.ofproto_{version}_parser")
    return module.OFPPacketIn.parser(Datapath(), data[0], data[1], len(data), 11, data)


def message(kind: int, body: bytes, version: int = 4, xid: int = 11) -> bytes:
    return struct.pack("!BBHI", version, kind, 8 + len(body), xid) + body


def packet_in_1_3(fields: bytes, frame: bytes, trailing: bytes = b"", reason: int = 1) -> bytes:
    match = struct.pack("!HH", 1, 4 + len(fields)) + fields + bytes(-(4 + len(fields)) % 8)
    return message(
        10, struct.pack("!IHBBQ", 0xFFFFFFFF, len(frame), reason, 2, 3) + match + bytes(2) + frame + trailing
    )


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("fields", [IN_PORT, IN_PORT + METADATA])
@pytest.mark.parametrize("trailing", [b"", bytes(6)])
@pytest.mark.parametrize("reason", [0, 1])
def test_a_packet_in_of_1_3_agrees_with_the_framework(
    framework: str, fields: bytes, trailing: bytes, reason: int
) -> None:
    data = packet_in_1_3(fields, b"frame of some bytes", trailing, reason)
    theirs = parsed(framework, "v1_3", data)
    assert packet_in(5, 4, data) == PacketReceived(5, theirs.match["in_port"], theirs.data, theirs.reason == 0)


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("reason", [0, 1])
def test_a_packet_in_of_1_0_agrees_with_the_framework(framework: str, reason: int) -> None:
    frame = b"frame of some bytes"
    data = message(10, struct.pack("!IHHBx", 0xFFFFFFFF, len(frame), 7, reason) + frame, version=1)
    theirs = parsed(framework, "v1_0", data)
    assert packet_in(5, 1, data) == PacketReceived(5, theirs.in_port, theirs.data, theirs.reason == 0)


def test_a_packet_in_whose_port_does_not_come_first_is_left_to_the_framework() -> None:
    assert packet_in(5, 4, packet_in_1_3(METADATA + IN_PORT, b"frame")) is None


@given(st.sampled_from((1, 4)), st.binary(max_size=60))
def test_no_bytes_make_it_fail(version: int, body: bytes) -> None:
    packet_in(5, version, message(10, body, version))


@given(st.sampled_from((1, 4)), st.integers(0, 30), st.binary(max_size=40))
def test_no_message_makes_the_apps_fail(version: int, kind: int, body: bytes) -> None:
    southbound, app = Southbound(Unhurried(), lambda _name: False), App()  # type: ignore[arg-type]
    southbound.add(app, 0xA2)
    southbound.take(Datapath(), version, kind, OURS, message(kind, body, version, OURS))


@pytest.mark.parametrize(("version", "barrier", "stats"), [(1, 19, 17), (4, 21, 19)])
def test_answers_reach_the_app_that_asked(version: int, barrier: int, stats: int) -> None:
    southbound, ours, other = Southbound(Unhurried(), lambda _name: False), App(), App()  # type: ignore[arg-type]
    southbound.add(ours, 0xA2)
    southbound.add(other, 0xA3)

    def take(kind: int, body: bytes, xid: int) -> bool:
        return southbound.take(Datapath(), version, kind, xid, message(kind, body, version, xid))

    flows = struct.pack("!HH4x", 1, 0)
    ports = struct.pack("!HH4x", 4, 0)
    assert take(barrier, b"", OURS) and take(1, struct.pack("!HH", 5, 1), OURS) and take(stats, flows, OURS)
    assert ours.answers == [
        BarrierReplied(5, OURS),
        EditFailed(5, OURS, 5, 1),
        FlowStatsReceived(5, version, OURS, message(stats, flows, version, OURS)),
    ]
    assert not take(barrier, b"", THEIRS) and not take(1, struct.pack("!HH", 5, 1), THEIRS)
    assert not take(stats, ports, OURS) and not take(12, b"", OURS)
    assert other.answers == []


@pytest.mark.parametrize(
    ("version", "kind", "body", "generation_id"),
    [(1, 4, struct.pack("!III", 0x2320, 11, 1), None), (4, 25, struct.pack("!I4xQ", 2, 7), 7)],
    ids=["the extension of 1.0", "1.3"],
)
def test_roles_reach_the_app_that_asked(version: int, kind: int, body: bytes, generation_id: int | None) -> None:
    southbound, ours = Southbound(Unhurried(), lambda _name: False), App()  # type: ignore[arg-type]
    southbound.add(ours, 0xA2)
    assert southbound.take(Datapath(), version, kind, OURS, message(kind, body, version, OURS))
    assert ours.answers == [RoleReplied(5, OURS, ControllerRole.MASTER, generation_id)]
    assert not southbound.take(Datapath(), version, kind, OURS, message(kind, body[:-4], version, OURS))


def test_what_somebody_else_observes_goes_to_the_framework_too() -> None:
    southbound, app = Southbound(Unhurried(), lambda name: name == "EventOFPPacketIn"), App()  # type: ignore[arg-type]
    southbound.add(app, 0xA2)
    data = packet_in_1_3(IN_PORT, b"frame")
    assert not southbound.take(Datapath(), 4, 10, 11, data)
    assert app.packets == [PacketReceived(5, 7, b"frame")]
    southbound.remove(app)
    assert not southbound.take(Datapath(), 4, 10, 11, data)
    assert len(app.packets) == 1


@pytest.mark.parametrize("version", [1, 4])
def test_lldp_frames_go_to_those_alone_that_want_them(version: int) -> None:
    southbound = Southbound(Unhurried(), lambda _name: False)  # type: ignore[arg-type]
    discovery, other = App(), App(takes_lldp=False)
    for tag, app in ((0xA2, discovery), (0xA3, other)):
        southbound.add(app, tag)
    ends = bytes(range(12))
    lldp, arp = ends + b"\x88\xcc\x02", ends + b"\x08\x06"
    tagged, short = ends + b"\x81\x00\x00\x07\x88\xcc", ends
    for frame in (lldp, arp, tagged, short):
        old = message(10, struct.pack("!IHHBx", 0xFFFFFFFF, len(frame), 7, 1) + frame, version=1)
        data = packet_in_1_3(IN_PORT, frame) if version == 4 else old
        assert southbound.take(Datapath(), version, 10, 11, data)
    southbound.hand_over()
    assert [event.data for event in discovery.packets] == [lldp, arp, tagged, short]
    assert [event.data for event in other.packets] == [arp, tagged, short]
    southbound.remove(discovery)
    southbound.take(Datapath(), version, 10, 11, data)
    southbound.hand_over()
    assert len(discovery.packets) == 4
    assert len(other.packets) == 4


def test_frames_to_ipv4_groups_go_to_those_alone_that_want_them() -> None:
    southbound = Southbound(Unhurried(), lambda _name: False)  # type: ignore[arg-type]
    multicast, unicast = App(takes_lldp=False), App(takes_lldp=False, takes_ipv4_groups=False)
    for tag, app in ((0xA2, multicast), (0xA3, unicast)):
        southbound.add(app, tag)
    rest = bytes(6) + b"\x08\x00"
    report, other_group = b"\x01\x00\x5e\x00\x00\x16" + rest, b"\x33\x33\x00\x00\x00\x16" + rest
    broadcast, host = b"\xff" * 6 + rest, b"\x02\x00\x5e\x00\x00\x16" + rest
    for frame in (report, other_group, broadcast, host):
        assert southbound.take(Datapath(), 4, 10, 11, packet_in_1_3(IN_PORT, frame))
    southbound.hand_over()
    assert [event.data for event in multicast.packets] == [report, other_group, broadcast, host]
    assert [event.data for event in unicast.packets] == [other_group, broadcast, host]


def read_from_a_connection(southbound: Southbound, data: bytes, together: bool) -> list[bytes]:
    """Have a connection hand over what it read; return what the framework is given."""
    given: list[bytes] = []
    datapath = SimpleNamespace(id=5, socket=None, address="there", ofproto=SimpleNamespace(OFP_VERSION=4))
    connection = Connection(
        datapath,
        Unhurried(),  # type: ignore[arg-type]
        southbound.take,
        southbound.take_packets if together else lambda _datapath, _data, at: at,
        southbound.hand_over,
        lambda *message: given.append(message[-1]),
        lambda _connection: None,
        lambda _connection, _reason: None,
        5.0,
    )
    connection.is_up = True
    connection._hand_over(data)
    southbound.hand_over()
    return given


FRAMES = st.one_of(
    st.binary(max_size=4),
    st.sampled_from((b"\x01\x00\x5e\x01\x02\x03", b"\x33\x33\0\0\0\x16", bytes(12) + b"\x88\xcc")).map(
        lambda start: start + bytes(20)
    ),
)
PACKET_INS = st.builds(
    packet_in_1_3,
    st.sampled_from((IN_PORT, IN_PORT, IN_PORT, IN_PORT + METADATA, METADATA + IN_PORT)),
    FRAMES,
    st.sampled_from((b"", b"", bytes(6))),
    st.integers(0, 1),
)
MESSAGES = st.one_of(
    PACKET_INS,
    PACKET_INS,
    st.builds(message, st.integers(7, 30), st.binary(max_size=50), st.sampled_from((1, 4)), st.just(OURS)),
    st.builds(lambda data, cut: data[:2] + struct.pack("!H", max(8, len(data) - cut)) + data[4 : len(data) - cut],
              PACKET_INS, st.integers(0, 30)),
)  # fmt: skip


@given(st.lists(MESSAGES, max_size=40), st.integers(0, 30))
def test_packet_ins_taken_together_are_those_taken_one_by_one(messages: list[bytes], cut: int) -> None:
    data = b"".join(messages)
    data = data[: len(data) - cut]
    found = []
    for together in (False, True):
        southbound = Southbound(Unhurried(), lambda _name: False)  # type: ignore[arg-type]
        discovery, other = App(), App(takes_lldp=False, takes_ipv4_groups=False)
        for tag, app in ((0xA2, discovery), (0xA3, other)):
            southbound.add(app, tag)
        given_to_it = read_from_a_connection(southbound, data, together)
        found.append((given_to_it, [(app.packets, app.turns, app.answers) for app in (discovery, other)]))
    assert found[0] == found[1]


@pytest.mark.parametrize("withheld", [False, True])
def test_packet_ins_that_somebody_else_is_to_see_are_not_taken_together(withheld: bool) -> None:
    southbound, app = Southbound(Unhurried(), lambda _name: not withheld), App()  # type: ignore[arg-type]
    southbound.add(app, 0xA2)
    if withheld:
        southbound.gate = SimpleNamespace(withholds=lambda _event: False)  # type: ignore[assignment]
    data = packet_in_1_3(IN_PORT, b"\x01\x00\x5e\x01\x02\x03" + bytes(20))
    assert southbound.take_packets(Datapath(), data, 0) == 0
    assert read_from_a_connection(southbound, data, True) == ([] if withheld else [data])
    assert len(app.packets) == 1


@pytest.mark.parametrize("together", [False, True])
def test_an_app_that_fails_has_those_behind_and_others_have_all(
    caplog: pytest.LogCaptureFixture, together: bool
) -> None:
    class Failing(App):
        def packets_received(self, events: Sequence[PacketReceived]) -> None:
            super().packets_received(events)
            if len(self.turns) == 1:
                raise ValueError("this one fails")

    southbound, app, other = Southbound(Unhurried(), lambda _name: False), Failing(), App()  # type: ignore[arg-type]
    southbound.add(app, 0xA2)
    southbound.add(other, 0xA3)
    frames = [bytes(12) + number.to_bytes(2, "big") for number in range(PACKETS_AT_ONCE + 3)]
    read_from_a_connection(southbound, b"".join([packet_in_1_3(IN_PORT, frame) for frame in frames]), together)
    assert "this one fails" in caplog.text
    assert [event.data for event in app.packets] == frames
    assert other.packets == app.packets


def test_packets_that_come_together_are_one_turn_up_to_a_bound() -> None:
    southbound, app = Southbound(Unhurried(), lambda _name: False), App()  # type: ignore[arg-type]
    southbound.add(app, 0xA2)
    frames = [number.to_bytes(2, "big") for number in range(PACKETS_AT_ONCE + 3)]
    for frame in frames:
        assert southbound.take(Datapath(), 4, 10, 11, packet_in_1_3(IN_PORT, frame))
    assert app.turns == [PACKETS_AT_ONCE]
    southbound.hand_over()
    southbound.hand_over()
    assert app.turns == [PACKETS_AT_ONCE, 3]
    assert [event.data for event in app.packets] == frames


def test_what_a_switch_said_before_is_heard_before() -> None:
    told: list[Any] = []

    class Both(App):
        def packets_received(self, events: Sequence[PacketReceived]) -> None:
            told.extend(event.data for event in events)

        def answered(self, event: Any) -> None:
            told.append(type(event))

    southbound = Southbound(Unhurried(), lambda _name: False)  # type: ignore[arg-type]
    southbound.add(Both(), 0xA2)
    ends = bytes(range(12))
    first, lldp, last = ends + b"\x08\x00", ends + b"\x88\xcc", ends + b"\x08\x06"

    def take(kind: int, data: bytes, xid: int = 11) -> bool:
        return southbound.take(Datapath(), 4, kind, xid, data)

    assert take(10, packet_in_1_3(IN_PORT, first)) and take(21, message(21, b"", 4, OURS), OURS)
    assert take(10, packet_in_1_3(IN_PORT, lldp)) and take(10, packet_in_1_3(IN_PORT, last))
    assert not take(12, message(12, b"", 4, THEIRS), THEIRS)
    assert told == [first, BarrierReplied, lldp, last]


def test_one_app_tells_who_was_refused_and_the_log_where_there_is_none(caplog: pytest.LogCaptureFixture) -> None:
    southbound = Southbound(Unhurried(), lambda _name: False)  # type: ignore[arg-type]
    connection: Any = SimpleNamespace(address=("192.0.2.7", 40000))
    for _ in range(3):
        southbound.refused(connection, "it showed no certificate")
    told = [record.getMessage() for record in caplog.records]
    assert told == ["A switch that connected from 192.0.2.7 was refused: it showed no certificate."]
    first, second = App(), App()
    southbound.add(first, 1)
    southbound.add(second, 2)
    southbound.refused(connection, "it does not speak TLS")
    assert (first.refusals, second.refusals) == ([("192.0.2.7", "it does not speak TLS")], [])
    assert len(caplog.records) == 1
