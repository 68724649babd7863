"""Decoding of statistics replies of both OpenFlow versions."""

from __future__ import annotations

from collections import Counter
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from controller.performance import of10_stats, of13_stats
from controller.performance.poller_layout import Entries, MalformedReply, Reply
from controller.performance.schedule import StatKind

os_ken = pytest.importorskip("os_ken.ofproto.ofproto_protocol")

VERSIONS = (of10_stats, of13_stats)
KINDS = [(module, kind) for module in VERSIONS for kind in module.LAYOUTS]
ALL_ONES = 2**64 - 1


def body_of(module: ModuleType, kind: StatKind, count: int, seed: int = 1) -> bytes:
    """Return entries of random content; those that say their length say it right."""
    layout = module.LAYOUTS[kind]
    entry = layout.entry
    raw = np.random.default_rng(seed).integers(0, 256, count * entry.itemsize, np.uint8).tobytes()
    rows = np.frombuffer(raw, entry).copy()
    if "length" not in entry.names:
        return rows.tobytes()
    parts = []
    for number, row in enumerate(rows):
        tail = b"" if layout.match_bytes or layout.match_at is None else (1).to_bytes(2) + (4).to_bytes(2) + bytes(4)
        tail += bytes(16 * (number % 3))
        row["length"] = entry.itemsize + len(tail)
        parts.append(row.tobytes() + tail)
    return b"".join(parts)


def message_of(module: ModuleType, kind: int, body: bytes, flags: int = 0, xid: int = 77) -> bytes:
    type_ = module.OFPT_STATS_REPLY if module is of10_stats else module.OFPT_MULTIPART_REPLY
    length = module.HEADER_BYTES + len(body)
    header = bytes((module.VERSION, type_)) + length.to_bytes(2) + xid.to_bytes(4)
    return (header + kind.to_bytes(2) + flags.to_bytes(2)).ljust(module.HEADER_BYTES, b"\0") + body


def parse(module: ModuleType, message: bytes) -> Any:
    """Read a message with os-ken's own parser."""
    from os_ken.ofproto import ofproto_parser

    datapath = os_ken.ProtocolDesc(version=module.VERSION)
    version, type_, length, xid = ofproto_parser.header(message)
    return ofproto_parser.msg(datapath, version, type_, length, xid, bytearray(message))


@pytest.mark.parametrize("module", VERSIONS, ids=("1.0", "1.3"))
def test_ports_are_what_the_framework_reads(module: ModuleType):
    body = body_of(module, StatKind.PORT, 48)
    ours = module.decode(StatKind.PORT, body)
    assert isinstance(ours, Entries)
    names = module.LAYOUTS[StatKind.PORT].counters
    theirs = parse(module, message_of(module, StatKind.PORT, body)).body
    assert ours.keys[:, 0].tolist() == [port.port_no for port in theirs]
    assert ours.counters.tolist() == [[getattr(port, name) for name in names] for port in theirs]
    if module is of13_stats:
        expected = [port.duration_sec + port.duration_nsec * 1e-9 for port in theirs]
        assert ours.duration_s.tolist() == pytest.approx(expected)
    else:
        assert np.isnan(ours.duration_s).all()


FIELDS = {
    StatKind.QUEUE: (("port_no", "queue_id"), ("tx_bytes", "tx_packets", "tx_errors"), ()),
    StatKind.GROUP: (("group_id",), ("packet_count", "byte_count"), ("ref_count",)),
    StatKind.METER: (("meter_id",), ("packet_in_count", "byte_in_count"), ("flow_count",)),
    StatKind.FLOW: (("table_id", "priority", "cookie"), ("packet_count", "byte_count"), ()),
    StatKind.TABLE: (("table_id",), ("lookup_count", "matched_count"), ("active_count",)),
}


@pytest.mark.parametrize(("module", "kind"), [(m, k) for m, k in KINDS if k in FIELDS])
def test_other_kinds_are_what_the_framework_reads(module: ModuleType, kind: StatKind):
    body = body_of(module, kind, 9)
    if module is of13_stats and kind in (StatKind.GROUP, StatKind.METER, StatKind.FLOW):
        body = body_of(module, kind, 1) * 9
    ours = module.decode(kind, body)
    assert isinstance(ours, Entries)
    if kind is StatKind.FLOW and module is of10_stats:
        # The framework would read random bytes behind an entry as actions.
        assert len(ours.keys) == 9
        return
    theirs = parse(module, message_of(module, kind, body)).body
    keys, counters, gauges = FIELDS[kind]

    def read(entry: Any, name: str) -> int:
        return int(getattr(entry, name, None) if hasattr(entry, name) else getattr(entry, name.replace("ed_", "es_")))

    assert ours.keys[:, : len(keys)].tolist() == [[read(entry, name) for name in keys] for entry in theirs]
    assert ours.counters.tolist() == [[read(entry, name) for name in counters] for entry in theirs]
    assert ours.gauges.tolist() == [[read(entry, name) for name in gauges] for entry in theirs]


def test_flow_entries_of_different_matches_are_told_apart():
    first = body_of(of13_stats, StatKind.FLOW, 1)
    entries = of13_stats.decode(StatKind.FLOW, first + first[:-1] + b"\x01" + first)
    assert isinstance(entries, Entries)
    assert entries.keys[0].tolist() == entries.keys[2].tolist()
    longer = first[:0] + (len(first) + 8).to_bytes(2) + first[2:48] + bytes((0, 1, 0, 12)) + bytes(12)
    other = of13_stats.decode(StatKind.FLOW, longer)
    assert isinstance(other, Entries)
    assert other.keys[0, :3].tolist() == entries.keys[0, :3].tolist()
    assert other.keys[0, 3] != entries.keys[0, 3]


@pytest.mark.parametrize(("module", "kind"), KINDS)
def test_requests_are_what_the_framework_reads_and_writes(module: ModuleType, kind: StatKind):
    datapath = os_ken.ProtocolDesc(version=module.VERSION)
    proto, parser = datapath.ofproto, datapath.ofproto_parser
    if module is of10_stats:
        made = {
            StatKind.PORT: lambda: parser.OFPPortStatsRequest(datapath, 0, proto.OFPP_NONE),
            StatKind.QUEUE: lambda: parser.OFPQueueStatsRequest(datapath, 0, proto.OFPP_ALL, proto.OFPQ_ALL),
            StatKind.FLOW: lambda: parser.OFPFlowStatsRequest(datapath, 0, parser.OFPMatch(), 0xFF, proto.OFPP_NONE),
            StatKind.TABLE: lambda: parser.OFPTableStatsRequest(datapath, 0),
        }[kind]()
    else:
        made = {
            StatKind.PORT: lambda: parser.OFPPortStatsRequest(datapath),
            StatKind.QUEUE: lambda: parser.OFPQueueStatsRequest(datapath),
            StatKind.GROUP: lambda: parser.OFPGroupStatsRequest(datapath),
            StatKind.METER: lambda: parser.OFPMeterStatsRequest(datapath),
            StatKind.FLOW: lambda: parser.OFPFlowStatsRequest(datapath),
            StatKind.TABLE: lambda: parser.OFPTableStatsRequest(datapath, 0),
        }[kind]()
    made.set_xid(77)
    made.serialize()
    assert module.encode_request(kind, 77) == bytes(made.buf)


@pytest.mark.parametrize("module", VERSIONS, ids=("1.0", "1.3"))
def test_a_message_is_taken_apart(module: ModuleType):
    message = message_of(module, StatKind.PORT, b"x" * 8, flags=1)
    assert module.read_reply(message) == Reply(77, StatKind.PORT, True, b"x" * 8)
    assert module.read_reply(message[:-1]) == MalformedReply("stats-wrong-length")
    assert module.read_reply(message[: module.HEADER_BYTES - 1]) == MalformedReply("stats-truncated-header")


@pytest.mark.parametrize(("module", "kind"), KINDS)
def test_an_empty_body_has_no_entries_and_a_cut_one_is_malformed(module: ModuleType, kind: StatKind):
    nothing = module.decode(kind, b"")
    assert isinstance(nothing, Entries)
    assert len(nothing.keys) == len(nothing.counters) == len(nothing.duration_s) == 0
    body = body_of(module, kind, 3)
    for cut in range(len(body)):
        found = module.decode(kind, body[:cut])
        assert isinstance(found, MalformedReply) or len(found.keys) < 3


def test_an_entry_that_says_it_has_no_length_ends_the_reading():
    body = bytes(2) + body_of(of13_stats, StatKind.GROUP, 1)[2:]
    assert of13_stats.decode(StatKind.GROUP, body) == MalformedReply("stats-entry-length")


def test_unknown_kinds_are_malformed():
    assert of13_stats.decode(99, b"") == MalformedReply("stats-unknown-kind")
    assert of10_stats.decode(StatKind.METER, b"") == MalformedReply("stats-unknown-kind")


def test_a_counter_of_all_ones_stays_what_it_is():
    body = bytearray(body_of(of13_stats, StatKind.PORT, 1))
    body[8:16] = b"\xff" * 8
    entries = of13_stats.decode(StatKind.PORT, bytes(body))
    assert isinstance(entries, Entries)
    assert entries.counters[0, 0] == ALL_ONES


def test_random_bytes_never_raise():
    """100,000 strings: random ones, whole replies cut or with bytes changed, through both decoders."""
    generator = np.random.default_rng(20)
    noise = generator.integers(0, 256, 1 << 20, np.uint8).tobytes()
    whole = [(module, message_of(module, kind, body_of(module, kind, 4))) for module, kind in KINDS]
    lengths = generator.integers(0, 160, 100_000)
    starts = generator.integers(0, len(noise) - 256, 100_000)
    outcomes: Counter[str] = Counter()
    for number, (length, start) in enumerate(zip(lengths.tolist(), starts.tolist(), strict=True)):
        module, good = whole[number % len(whole)]
        if number % 3 == 0:
            message = noise[start : start + length]
        elif number % 3 == 1:
            message = good[:length]
        else:
            at = start % len(good)
            message = good[:at] + noise[start : start + 2] + good[at + 2 :]
        reply = module.read_reply(message)
        if isinstance(reply, MalformedReply):
            outcomes[reply.reason] += 1
            reply = Reply(0, list(module.LAYOUTS)[number % len(module.LAYOUTS)], False, message)
        entries = module.decode(reply.kind, reply.body)
        outcomes[entries.reason if isinstance(entries, MalformedReply) else "decoded"] += 1
    assert set(outcomes) == {
        "stats-truncated-header",
        "stats-wrong-length",
        "stats-truncated",
        "stats-entry-length",
        "stats-unknown-kind",
        "decoded",
    }
