"""A host on a VLAN: what it joins and sends there goes nowhere, and the operator sees how much it was."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from apps.emulation.namespace import network_of
from controller.wire.addresses import parse_ip, parse_mac
from controller.wire.encode import encode
from controller.wire.packets import GroupRecord, RecordType, Report
from controller.wire.udp import encode_udp
from topology.graph import Graph

pytestmark = [pytest.mark.emulation, pytest.mark.each_framework]

FRAMES = 25
TAGS = {"802.1Q": "81000005", "priority": "8100e000", "802.1ad": "88a80005", "double": "88a8000581000006"}


@pytest.fixture(scope="module", params=["OpenFlow13", "OpenFlow10"])
def bench(request: pytest.FixtureRequest, diamond: Graph) -> tuple[Graph, dict[str, Any]]:
    return diamond, {"protocols": request.param}


def put_tagged(live: Any, host: str, tags: str, *frames: bytes) -> None:
    """Send frames as an interface of a VLAN does."""
    with network_of(live.fabric.pid(host)), socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sock:
        sock.bind((live.fabric.interface(host), 0))
        for frame in frames:
            sock.send(frame[:12] + bytes.fromhex(tags) + frame[12:])


def test_a_host_on_a_vlan_is_no_member_and_no_sender(live: Any, group: str) -> None:
    fabric = live.fabric
    live.join(group, "h3")
    live.stream(1, "h1", group)
    fabric.tap("h4")
    fabric.tap("h3")
    before = live.controller.show("status")["counters"].get("vlan-tagged", 0)
    mac, source = parse_mac(live.mac("h2")), parse_ip(fabric.address("h2"))
    records = (GroupRecord(RecordType.CHANGE_TO_EXCLUDE, parse_ip(group), ()),)
    joins = [encode(Report(4, 3, mac, source, records))] * FRAMES
    data = [encode_udp(mac, source, parse_ip(group), b"tagged")] * FRAMES
    for tags in TAGS.values():
        put_tagged(live, "h2", tags, *joins, *data)
    total = before + 2 * FRAMES * len(TAGS)
    live.controller.wait_until("status", lambda status: status["counters"].get("vlan-tagged", 0) >= total)
    live.send(1, 0.3)
    live.halt()
    live.assert_all_received(1, f"h3 {group}")
    document = live.document(group)
    assert [member["mac"] for member in document["members"]] == [live.mac("h3")]
    assert [sender["mac"] for sender in document["senders"]] == [live.mac("h1")]
    sent = sum(phase["sent"] for phase in fabric.sent()["1"]["phases"].values())
    seen = fabric.settled()
    assert seen["tap h4"]["groups"] == {}
    assert 0 < seen["tap h3"]["groups"][group] <= sent
    assert "frames with a VLAN tag that their port is not to have" in live.controller.log()
