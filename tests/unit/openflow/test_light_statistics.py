"""Light statistics replies say what the framework's own parser says, under Ryu and os-ken."""

from __future__ import annotations

import importlib
import struct
import time
from typing import Any

import pytest

from apps.openflow.statistics import use_light_statistics

FRAMEWORKS = ("os_ken", "ryu")
VERSIONS = {1: ("ofproto_v1_0", "OFPStatsReply", 12), 4: ("ofproto_v1_3", "OFPMultipartReply", 16)}


class Datapath:
    id = 5


def parsers(framework: str, version: int) -> tuple[Any, Any, int]:
    """Return the parser functions of the framework itself and of the light kind, which its module is left without."""
    pytest.importorskip(framework)
    name, base, _ = VERSIONS[version]
    module = importlib.import_module(f"{framework}.ofproto.{name}_parser")
    kind = getattr(module, base).cls_msg_type
    own = getattr(module, base).parser
    before = module._MSG_PARSERS[kind]
    use_light_statistics(module, getattr(module, base))
    light, module._MSG_PARSERS[kind] = module._MSG_PARSERS[kind], before
    return own, light, kind


def message(version: int, kind: int, stats: int, body: bytes, flags: int = 1) -> bytes:
    header = VERSIONS[version][2]
    start = struct.pack("!BBHIHH", version, kind, header + len(body), 11, stats, flags)
    return start.ljust(header, b"\0") + body


BODIES = {
    (1, 3): bytes(range(64)) * 2,
    (1, 4): bytes(range(104)) * 2,
    (1, 5): bytes(range(32)) * 3,
    (4, 3): bytes(range(24)) * 2,
    (4, 4): bytes(range(112)) * 2,
    (4, 5): bytes(range(40)) * 3,
    (4, 6): (bytes((0, 40)) + bytes(range(38))) * 2,
    (4, 9): (bytes(4) + bytes((0, 40)) + bytes(range(34))) * 2,
    (4, 1): (bytes((0, 56)) + bytes(range(46)) + bytes((0, 1, 0, 4, 0, 0, 0, 0))) * 2,
}


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize(("version", "stats"), BODIES)
def test_the_body_is_what_the_framework_reads(framework: str, version: int, stats: int):
    own, light, kind = parsers(framework, version)
    data = message(version, kind, stats, BODIES[version, stats])
    theirs, ours = (parse(Datapath(), version, kind, len(data), 11, data) for parse in (own, light))
    assert type(ours).__name__ == type(theirs).__name__
    assert (ours.xid, ours.type, ours.flags, bytes(ours.buf)) == (11, stats, 1, data)
    assert [str(entry) for entry in ours.body] == [str(entry) for entry in theirs.body]
    assert len(ours.body) > 1


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("version", VERSIONS)
def test_other_kinds_are_read_by_the_framework(framework: str, version: int):
    own, light, kind = parsers(framework, version)
    data = message(version, kind, 0, bytes(1056))
    theirs, ours = (parse(Datapath(), version, kind, len(data), 11, data) for parse in (own, light))
    assert type(ours) is type(theirs)


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_an_entry_without_length_does_not_hold_up_the_controller(framework: str):
    _, light, kind = parsers(framework, 4)
    data = message(4, kind, 6, bytes(40))
    assert bytes(light(Datapath(), 4, kind, len(data), 11, data).buf) == data


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("version", VERSIONS)
def test_a_reply_says_when_it_was_read_off_its_connection(framework: str, version: int):
    _, light, kind = parsers(framework, version)
    data = message(version, kind, 4, BODIES[version, 4])
    before_s = time.time()
    reply = light(Datapath(), version, kind, len(data), 11, data)
    assert before_s <= reply.received_s <= time.time()
