"""What switches say that their tables have room for: as the framework has it, and never believed blindly."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.rules.pipeline import LOCATION, OPENFLOW_1_0, OPENFLOW_1_3
from controller.rules.table_capacity import (
    BOUNDLESS,
    decode_tables,
    encode_tables_reply,
    encode_tables_request,
)

os_ken = pytest.importorskip("os_ken.ofproto.ofproto_protocol")

VERSIONS = pytest.mark.parametrize("version", [OPENFLOW_1_0, OPENFLOW_1_3], ids=["OpenFlow 1.0", "OpenFlow 1.3"])


def parsed(version: int, message: bytes) -> Any:
    """Read a message with os-ken's own parser."""
    from os_ken.ofproto import ofproto_parser

    _, kind, length, xid = ofproto_parser.header(message)
    datapath = os_ken.ProtocolDesc(version=version)
    return ofproto_parser.msg(datapath, version, kind, length, xid, bytearray(message))


def test_the_request_is_what_the_framework_sends():
    from os_ken.ofproto import ofproto_v1_0_parser, ofproto_v1_3_parser

    for version, request in (
        (OPENFLOW_1_0, ofproto_v1_0_parser.OFPTableStatsRequest),
        (OPENFLOW_1_3, ofproto_v1_3_parser.OFPTableFeaturesStatsRequest),
    ):
        theirs = request(os_ken.ProtocolDesc(version=version), 0)
        theirs.set_xid(7)
        theirs.serialize()
        assert encode_tables_request(version, 7) == bytes(theirs.buf)


@VERSIONS
def test_a_reply_is_what_the_framework_reads(version):
    message = encode_tables_reply(version, 9, {0: 500, 1: 2000}, more=True)
    body = parsed(version, message).body
    assert [(each.table_id, each.max_entries) for each in body] == [(0, 500), (1, 2000)]
    answer = decode_tables(message)
    assert (answer.xid, answer.more, answer.fault) == (9, True, None)
    assert answer.entries == ({0: 500} if version == OPENFLOW_1_0 else {0: 500, 1: 2000})


def test_properties_of_tables_are_passed_over():
    from os_ken.ofproto import ofproto_v1_3_parser as parser

    features = [
        parser.OFPTableFeaturesStats(
            table_id=number,
            name=b"table",
            metadata_match=0,
            metadata_write=0,
            config=0,
            max_entries=300 + number,
            properties=[parser.OFPTableFeaturePropNextTables(type_=2, table_ids=list(range(number, 7)))],
        )
        for number in range(3)
    ]
    body = b"".join(each.serialize() for each in features)
    head = encode_tables_reply(OPENFLOW_1_3, 9, {})
    message = head[:2] + (len(head) + len(body)).to_bytes(2, "big") + head[4:] + body
    assert decode_tables(message).entries == {0: 300, 1: 301, 2: 302}


@VERSIONS
def test_nonsense_is_left_out(version):
    told = {0: 0xFFFFFFFF, 1: 0, 2: BOUNDLESS, 3: BOUNDLESS - 1, LOCATION: 1, LOCATION + 1: 77, 254: 77}
    answer = decode_tables(encode_tables_reply(version, 9, told))
    assert answer.fault is None
    assert answer.entries == ({} if version == OPENFLOW_1_0 else {3: BOUNDLESS - 1, LOCATION: 1})
    for count in (0, 0xFFFFFFFF, BOUNDLESS):
        assert decode_tables(encode_tables_reply(version, 9, {0: count})).entries == {}


@VERSIONS
def test_what_is_cut_short_is_a_fault(version):
    message = encode_tables_reply(version, 9, {0: 500, 1: 600})
    for size in range(len(message)):
        assert decode_tables(message[:size]).fault is not None
        shorter = message[:2] + size.to_bytes(2, "big") + message[4:size]
        answer = decode_tables(shorter)
        assert set(answer.entries) <= {0, 1}


@given(st.binary(max_size=300))
def test_no_bytes_raise(message):
    decode_tables(message)
    for kind in (b"\x01\x11", b"\x04\x13"):
        decode_tables(kind + len(message).to_bytes(2, "big") + message)
