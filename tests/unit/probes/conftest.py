"""Points of a few records, and scripts that are run over what they give."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Any, NamedTuple

import pytest

from controller.probes.points import PointCatalogue, ProbePoint
from controller.probes.script import Probe, load


class Colour(StrEnum):
    RED = "red"


class Small(NamedTuple):
    number: int


class Large(NamedTuple):
    number: int
    text: str


class Packet(NamedTuple):
    dpid: int
    data: bytes
    colour: Colour = Colour.RED
    rate: float = 1.5
    ports: tuple[int, ...] = ()
    parts: tuple[Small | Large, ...] = ()
    group: bytes | None = None
    secret: str = "hidden"


class Answer(NamedTuple):
    dpid: int
    xid: int


CATALOGUE = PointCatalogue(
    [ProbePoint("app", "event", Packet), ProbePoint("app", "effect", Answer), ProbePoint("other", "event", Packet)]
)


def probe_of(script: str) -> Probe:
    return Probe(load(script, CATALOGUE))


def run(script: str, records: Iterable[Any] = (), *, step_ns: int = 1000) -> Probe:
    """Run a script over records: packets are events, answers effects of one app."""
    probe = probe_of(script)
    probe.begin(0)
    now_ns = 0
    for now_ns, record in enumerate(records):
        probe.fire("app", "event" if type(record) is Packet else "effect", record, now_ns * step_ns)
    probe.end(now_ns * step_ns)
    return probe


def printed(script: str, *records: Any) -> list[str]:
    return list(run(script, records).run.printed)


@pytest.fixture
def packet() -> Packet:
    return Packet(7, bytes(range(16)), ports=(3, 4), parts=(Small(1), Large(2, "b")))
