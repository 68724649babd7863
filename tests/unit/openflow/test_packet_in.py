"""Light packet-ins say what the framework's own parser says, under Ryu and os-ken."""

from __future__ import annotations

import importlib
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.openflow.packet_in import use_light_packet_ins

FRAMEWORKS = ("os_ken", "ryu")
IN_PORT = struct.pack("!II", 0x80000004, 7)
METADATA = struct.pack("!IQ", 0x80000408, 9)


class Datapath:
    id = 5


def parsers(framework):
    """Return the parser functions of the framework itself and of the light kind, which its module is left without."""
    pytest.importorskip(framework)
    module = importlib.import_module(f"{framework}.ofproto.ofproto_v1_3_parser")
    kind = module.OFPPacketIn.cls_msg_type
    before = module._MSG_PARSERS[kind]
    use_light_packet_ins(module)
    light, module._MSG_PARSERS[kind] = module._MSG_PARSERS[kind], before
    return module.OFPPacketIn.parser, light, kind


def message(kind, fields, frame, total_len=None, trailing=b""):
    match = struct.pack("!HH", 1, 4 + len(fields)) + fields + bytes(-(4 + len(fields)) % 8)
    size = len(frame) if total_len is None else total_len
    body = struct.pack("!IHBBQ", 0xFFFFFFFF, size, 1, 2, 3) + match + bytes(2) + frame + trailing
    return struct.pack("!BBHI", 4, kind, 8 + len(body), 11) + body


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("fields", [IN_PORT, METADATA + IN_PORT, IN_PORT + METADATA])
@pytest.mark.parametrize("trailing", [b"", bytes(6)])
def test_it_agrees_with_the_framework(framework, fields, trailing):
    own, light, kind = parsers(framework)
    data = message(kind, fields, b"frame of some bytes", trailing=trailing)
    theirs, ours = (parse(Datapath(), 4, kind, len(data), 11, data) for parse in (own, light))
    for name in ("buffer_id", "total_len", "reason", "table_id", "cookie", "data", "xid"):
        assert getattr(ours, name) == getattr(theirs, name)
    assert ours.in_port == theirs.match["in_port"] == 7
    assert dict(ours.match.items()) == dict(theirs.match.items())
    assert type(ours).__name__ == type(theirs).__name__


@pytest.mark.parametrize("framework", FRAMEWORKS)
@given(st.binary(max_size=60))
def test_it_fails_only_where_the_framework_fails(framework, body):
    own, light, kind = parsers(framework)
    data = struct.pack("!BBHI", 4, kind, 8 + len(body), 11) + body
    try:
        own(Datapath(), 4, kind, len(data), 11, data)
    except Exception:
        return
    light(Datapath(), 4, kind, len(data), 11, data)
