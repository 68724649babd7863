"""What switches tell becomes events of a core, and a core's effects become messages, over connections of os-ken."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import pytest

pytest.importorskip("os_ken")

from controller.effects import ApplyEdits, Notice, Put, Remove, RequestFlows, RequestTables, SendPacket
from controller.events import (
    BarrierReplied,
    EditFailed,
    FlowStatsReceived,
    PacketReceived,
    Port,
    PortChanged,
    SwitchConnected,
    SwitchDisconnected,
    TablesReceived,
)
from controller.rules.lowering import LOWERINGS
from controller.rules.model import FlowEntry, FlowKey, Match, Output
from controller.rules.table_capacity import encode_tables_reply, encode_tables_request
from served_app import (
    BARRIER_REPLY,
    BARRIER_REQUEST,
    DESC,
    ERROR,
    FLOW,
    FLOW_MOD,
    PACKET_IN,
    PACKET_OUT,
    PORT_STATUS,
    STATS_REPLY,
    STATS_REQUEST,
    XID_TAG,
    NotingApp,
    Switch,
    packet_in,
    port_1_0,
    port_1_3,
    serving,
    told_until,
)

VERSIONS = pytest.mark.parametrize("version", [1, 4], ids=["OpenFlow 1.0", "OpenFlow 1.3"])
OURS, OTHERS = XID_TAG << 24 | 5, (XID_TAG ^ 1) << 24 | 5
RULE = FlowEntry(FlowKey(0, 7, Match(in_port=3)), (Output(2),), 0x5602 << 48 | 1)


@pytest.fixture
def app() -> Iterator[NotingApp]:
    with serving(NotingApp) as (app,):
        yield app


def mac(port_no: int) -> bytes:
    return b"\x0a\0\0\0\0" + bytes((port_no & 255,))


def test_ports_of_openflow_1_3(app: NotingApp) -> None:
    ports = (
        port_1_3(1, b"eth1", curr_kbps=40_000_000),
        port_1_3(2, b"\xff\xe4", config=1),
        port_1_3(3, b"sixteen-letters!", state=1),
        port_1_3(4, config=~1 & 0x65, state=~1 & 7),
    )
    with Switch(9, 4, b"".join(ports)):
        (told,) = told_until(app.core, SwitchConnected)
    assert told == SwitchConnected(
        9,
        4,
        (
            Port(1, "eth1", mac(1), True, 40e9),
            Port(2, "\N{REPLACEMENT CHARACTER}" * 2, mac(2), False, 0.0),
            Port(3, "sixteen-letters!", mac(3), False, 0.0),
            Port(4, "p", mac(4), True, 0.0),
        ),
    )


def test_ports_of_openflow_1_0(app: NotingApp) -> None:
    speeds = {0: 0.0, 1: 10e6, 2: 10e6, 4: 100e6, 8: 100e6, 16: 1e9, 32: 1e9, 64: 10e9, 0x7F: 10e9, 0xF80: 0.0}
    ports = [port_1_0(port_no, b"eth", curr=curr) for port_no, curr in enumerate(speeds, 1)]
    ports += [port_1_0(20, config=1), port_1_0(21, state=1), port_1_0(22, config=0x7E, state=0x300)]
    with Switch(9, 1, b"".join(ports)):
        (told,) = told_until(app.core, SwitchConnected)
    assert (told.dpid, told.ofp_version) == (9, 1)
    assert told.ports[:-3] == tuple(
        Port(port_no, "eth", mac(port_no), True, speed_bps) for port_no, speed_bps in enumerate(speeds.values(), 1)
    )
    assert [(port.port_no, port.up) for port in told.ports[-3:]] == [(20, False), (21, False), (22, True)]


@VERSIONS
def test_ports_that_change(app: NotingApp, version: int) -> None:
    port = port_1_0 if version == 1 else port_1_3
    with Switch(9, version, port(1)) as switch:
        told_until(app.core, SwitchConnected)
        for reason, config in ((0, 0), (2, 1), (1, 1)):
            switch.send(PORT_STATUS, 0, struct.pack("!B7x", reason) + port(1, config=config))
            (told,) = told_until(app.core, PortChanged)
            assert told == PortChanged(9, Port(1, "p", mac(1), config == 0, 0.0), deleted=reason == 1)


@VERSIONS
def test_frames(app: NotingApp, version: int) -> None:
    frame = bytes(range(60))
    with Switch(9, version) as switch:
        told_until(app.core, SwitchConnected)
        switch.send(PACKET_IN, 0, packet_in(version, 7, frame))
        assert told_until(app.core, PacketReceived) == [PacketReceived(9, 7, frame, unmatched=True)]


@VERSIONS
def test_answers_to_others_are_not_the_core_s(app: NotingApp, version: int) -> None:
    """All apps of a process use one connection; each knows its answers by their transaction ids."""
    with Switch(9, version) as switch:
        told_until(app.core, SwitchConnected)
        failed = struct.pack("!HH", 3, 2) + bytes(64)
        stats = struct.pack("!HH", FLOW, 0) + bytes(0 if version == 1 else 4)
        for xid in (OTHERS, OURS):
            switch.send(BARRIER_REPLY[version], xid)
            switch.send(ERROR, xid, failed)
            switch.send(STATS_REPLY[version], xid, stats)
        switch.send(PACKET_IN, 0, packet_in(version, 1, bytes(60)))
        barrier, error, flows, _ = told_until(app.core, PacketReceived)
    assert (barrier, error) == (BarrierReplied(9, OURS), EditFailed(9, OURS, 3, 2))
    header = struct.pack("!BBHI", version, STATS_REPLY[version], 8 + len(stats), OURS)
    assert flows == FlowStatsReceived(9, version, OURS, header + stats)


@VERSIONS
def test_a_switch_is_asked_what_its_tables_have_room_for_and_its_answer_is_an_event(
    app: NotingApp, version: int
) -> None:
    answer = encode_tables_reply(version, OURS, {0: 500})
    with Switch(9, version) as switch:
        told_until(app.core, SwitchConnected)
        switch.receive_stats_request(DESC)
        app.ask(lambda: app.perform([RequestTables(9, OURS)]))
        kind, xid, body = switch.receive()
        assert (kind, xid) == (STATS_REQUEST[version], OURS)
        assert body == encode_tables_request(version, OURS)[8:]
        switch.send(STATS_REPLY[version], OURS, answer[8:])
        (received,) = told_until(app.core, TablesReceived)
    assert received == TablesReceived(9, version, OURS, answer)


@VERSIONS
def test_effects_are_messages_in_their_order(app: NotingApp, version: int) -> None:
    app.core.effects[PacketReceived] = [
        ApplyEdits(9, OURS, (Put(RULE), Remove(RULE.key))),
        SendPacket(9, (1, 2), b"a frame of some bytes"),
        RequestFlows(9, OURS + 9, 0x5602 << 48, 0xFFFF << 48),
        Notice("told", "Something happened.", (("dpid", 9),)),
        ApplyEdits(8, OURS, (Put(RULE),)),
        SendPacket(8, (1,), b"nobody gets this"),
        RequestFlows(8, OURS, 0, 0),
    ]
    lowering = LOWERINGS[version]
    with Switch(9, version) as switch:
        told_until(app.core, SwitchConnected)
        switch.receive_stats_request(DESC)
        switch.send(PACKET_IN, 0, packet_in(version, 7, bytes(60)))
        received = [switch.receive() for _ in range(5)]
        assert [kind for kind, _, _ in received] == [
            FLOW_MOD,
            FLOW_MOD,
            BARRIER_REQUEST[version],
            PACKET_OUT,
            STATS_REQUEST[version],
        ]
        assert [xid for _, xid, _ in received] == [OURS, OURS + 1, OURS + 2, XID_TAG << 24, OURS + 9]
        assert received[0][2] == lowering.encode_put(RULE, OURS)[8:]
        assert received[1][2] == lowering.encode_remove(RULE.key, OURS)[8:]
        assert received[3][2] == lowering.encode_packet_out((1, 2), b"a frame of some bytes", 0)[8:]
        assert received[4][2] == lowering.encode_flow_stats_request(0, 0x5602 << 48, 0xFFFF << 48)[8:]
    assert app.ask(lambda: app.notices) == {"told": 1}
    assert app.texts == ["Something happened."]


@VERSIONS
def test_the_end_of_a_connection_is_told_once_and_nothing_is_sent_to_it(app: NotingApp, version: int) -> None:
    with Switch(9, version):
        told_until(app.core, SwitchConnected)
    assert told_until(app.core, SwitchDisconnected) == [SwitchDisconnected(9)]
    app.ask(lambda: app.perform([SendPacket(9, (1,), b""), ApplyEdits(9, OURS, ()), RequestFlows(9, OURS, 0, 0)]))
    with Switch(9, version) as switch:
        assert told_until(app.core, SwitchConnected)[0].dpid == 9
        app.ask(lambda: app.perform([SendPacket(9, (1,), b"a frame")]))
        assert switch.receive(PACKET_OUT)[2].endswith(b"a frame")
    assert app.texts == [], "nobody cut it"


@VERSIONS
def test_a_connection_takes_over_from_another_of_the_same_switch(app: NotingApp, version: int) -> None:
    with Switch(9, version) as old:
        told_until(app.core, SwitchConnected)
        with Switch(9, version) as new:
            told_until(app.core, SwitchConnected)
            old.close()
            new.send(PACKET_IN, 0, packet_in(version, 1, bytes(60)))
            assert len(told_until(app.core, PacketReceived)) == 1, "the end of the old one is not the switch's"
            app.ask(lambda: app.perform([SendPacket(9, (1,), b"a frame")]))
            assert new.receive(PACKET_OUT)[2].endswith(b"a frame")
        assert told_until(app.core, SwitchDisconnected) == [SwitchDisconnected(9)]
    assert app.ask(app.core.told.empty)
