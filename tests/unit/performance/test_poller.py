"""The poller: what switches answer becomes samples of the right rows; what makes no sense is counted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from controller.effects import Notice
from controller.events import DeadlineReached, EditFailed, SwitchConnected, SwitchDisconnected
from controller.performance import of10_stats, of13_stats
from controller.performance.inputs import SamplesReceived
from controller.performance.poller import (
    EntriesSampled,
    Poller,
    SwitchTaken,
    SwitchTurned,
)
from controller.performance.poller_layout import HEADER
from controller.performance.ports import PortRows
from controller.performance.requests import RequestStats, StatsReceived
from controller.performance.schedule import PollSettings, StatKind
from topology.events import HostGone, HostLearnt, LinkDown, LinkUp, SwitchDown, SwitchUp
from topology.graph import NodeKind

TAG = 0x04
CODECS = {1: of10_stats, 4: of13_stats}
LOCAL = {1: 0xFFFE, 4: 0xFFFFFFFE}


class Bench:
    """A poller, switches that answer when told to, and what came out."""

    def __init__(self, versions: dict[int, int], ports: int = 3, timeout_s: float = 30.0, **settings: Any) -> None:
        self.now = 0.0
        self.table = PortRows()
        self.poller = Poller(PollSettings(timeout_s=timeout_s, **settings), TAG, self.table)
        self.versions = versions
        self.requests: list[tuple[int, int, int]] = []
        self.samples: list[SamplesReceived] = []
        self.entries: list[EntriesSampled] = []
        self.turned: list[SwitchTurned] = []
        self.notices: list[str] = []
        for dpid, version in versions.items():
            for port_no in range(1, ports + 1):
                self.table.add(dpid, port_no, f"p{port_no}", 1e9)
            self.feed(SwitchConnected(dpid, version, ()))

    def feed(self, event: Any) -> None:
        for effect in self.poller.handle(event, self.now):
            if isinstance(effect, RequestStats):
                version, type_, length, xid, kind, _ = HEADER.unpack_from(effect.message)
                assert version == self.versions[effect.dpid]
                assert type_ == (16 if version == 1 else 18)
                assert length == len(effect.message)
                self.requests.append((effect.dpid, xid, kind))
            elif isinstance(effect, SamplesReceived):
                self.samples.append(effect)
            elif isinstance(effect, EntriesSampled):
                self.entries.append(effect)
            elif isinstance(effect, SwitchTurned):
                self.turned.append(effect)
            else:
                assert isinstance(effect, Notice)
                self.notices.append(effect.kind)

    def run(self, until_s: float) -> None:
        while True:
            deadline = self.poller.next_deadline()
            if deadline is None or deadline > until_s:
                break
            self.now = max(self.now, deadline)
            self.feed(DeadlineReached())
        self.now = until_s

    def kinds(self) -> list[NodeKind]:
        return [switch.kind for _, switch in sorted(self.poller.schedule.switches.items())]

    def reply(self, dpid: int, xid: int, body: bytes, kind: int = 4, more: bool = False) -> None:
        version = self.versions[dpid]
        codec = CODECS[version]
        header = HEADER.pack(version, codec.VERSION, codec.HEADER_BYTES + len(body), xid, kind, more)
        message = header.ljust(codec.HEADER_BYTES, b"\0") + body
        self.feed(StatsReceived(dpid, version, xid, message, 1e9 + self.now))

    def ports(self, dpid: int, *port_nos: int) -> bytes:
        layout = CODECS[self.versions[dpid]].LAYOUTS[StatKind.PORT]
        rows = np.zeros(len(port_nos), layout.entry)
        rows["port_no"] = port_nos
        rows["counters"] = np.array(port_nos)[:, None] * 100 + np.arange(12)
        if "duration_s" in layout.entry.names:
            rows["duration_s"], rows["duration_ns"] = 7, 500_000_000
        return rows.tobytes()


@pytest.mark.parametrize("version", [1, 4])
def test_ports_become_samples_of_their_rows(version: int):
    bench = Bench({5: version, 6: version})
    bench.run(10.0)
    for dpid, xid, kind in bench.requests:
        assert kind == StatKind.PORT
        bench.reply(dpid, xid, bench.ports(dpid, 3, 1, 2))
    bench.run(10.5)
    (received,) = bench.samples
    samples = received.samples
    names = [bench.table.name(row) for row in samples.rows.tolist()]
    order = [dpid for dpid, _, _ in bench.requests]
    assert [(name.dpid, name.port_no) for name in names] == [(dpid, port) for dpid in order for port in (3, 1, 2)]
    assert samples.counters[0].tolist() == [300 + column for column in range(12)]
    assert samples.at_s.tolist() == [1e9 + 10.0] * 6
    assert np.isnan(samples.duration_s).all() if version == 1 else (samples.duration_s == 7.5).all()


@pytest.mark.parametrize("version", [1, 4])
def test_ports_that_are_none_of_the_fabric_are_left_out(version: int):
    bench = Bench({5: version})
    bench.run(10.0)
    ((dpid, xid, _),) = bench.requests
    bench.reply(dpid, xid, bench.ports(dpid, 1, LOCAL[version], 2))
    bench.run(10.5)
    assert len(bench.samples[0].samples) == 2
    assert len(bench.notices) == 0


def test_a_reply_in_parts_is_taken_part_by_part():
    bench = Bench({5: 4})
    bench.run(10.0)
    ((dpid, xid, _),) = bench.requests
    bench.reply(dpid, xid, bench.ports(dpid, 1, 2), more=True)
    bench.reply(dpid, xid, bench.ports(dpid, 3))
    bench.run(10.5)
    assert [len(received.samples) for received in bench.samples] == [3]
    assert bench.poller.schedule.outstanding == 0


def test_waiting_samples_can_be_fetched_before_rows_change_hands():
    bench = Bench({5: 4})
    bench.run(10.0)
    ((dpid, xid, _),) = bench.requests
    bench.reply(dpid, xid, bench.ports(dpid, 1, 2))
    received = bench.poller.flush()
    assert received is not None
    assert len(received.samples) == 2
    assert bench.poller.flush() is None
    bench.run(11.0)
    assert bench.samples == []


def test_other_kinds_come_as_entries():
    bench = Bench({5: 4}, kinds=frozenset((StatKind.QUEUE, StatKind.METER)))
    bench.run(10.0)
    assert [kind for _, _, kind in bench.requests] == [StatKind.QUEUE, StatKind.METER]
    dpid, xid, _ = bench.requests[0]
    queue = (1).to_bytes(4) + (2).to_bytes(4) + b"".join(value.to_bytes(8) for value in (10, 20, 30)) + bytes(8)
    bench.reply(dpid, xid, queue, kind=StatKind.QUEUE)
    (found,) = bench.entries
    assert (found.dpid, found.kind, found.entries.keys.tolist()) == (5, StatKind.QUEUE, [[1, 2]])
    assert found.entries.counters.tolist() == [[10, 20, 30]]


def test_what_makes_no_sense_is_counted_and_ignored():
    bench = Bench({5: 4, 6: 4})
    bench.run(10.0)
    (first, xid, _), (second, _, _) = bench.requests
    body = bench.ports(first, 1, 2)
    bench.reply(second, xid, body)
    bench.feed(StatsReceived(first, 4, xid, b"\4\x13\0\x10", 0.0))
    bench.feed(StatsReceived(first, 4, xid, b"\4\x13\0\x11" + bytes(12), 0.0))
    bench.reply(first, xid, body[:-1])
    bench.reply(first, xid, body)
    bench.reply(first, xid + 999, body)
    bench.run(11.0)
    assert bench.samples == []
    assert dict(bench.poller.counters) == {
        "stats-truncated-header": 1,
        "stats-wrong-length": 1,
        "stats-truncated": 1,
    }
    assert bench.poller.schedule.counters["reply-from-wrong-switch"] == 1
    assert bench.poller.schedule.counters["reply-twice"] == 1
    assert bench.poller.schedule.counters["reply-unknown"] == 1
    assert len(bench.notices) == 6


def test_notice_of_one_kind_and_switch_is_given_once_in_a_while():
    bench = Bench({5: 4})
    for number in range(50):
        bench.now = number * 0.1
        bench.reply(5, number, b"")
    assert bench.notices == ["reply-unknown"]
    bench.requests.clear()
    bench.now = 20.0
    bench.reply(5, 51, b"")
    assert bench.notices == ["reply-unknown", "reply-unknown"]


def test_a_silent_switch_is_told_to_be_down_and_up_again():
    bench = Bench({5: 4}, interval_s=5, timeout_s=2.0)
    bench.run(0.5)
    bench.run(9.0)
    assert bench.turned == [SwitchTurned(5, True), SwitchTurned(5, False)]
    assert "switch-silent" in bench.notices
    bench.requests.clear()
    bench.run(10.6)
    bench.reply(5, bench.requests[-1][1], bench.ports(5, 1))
    assert bench.turned[2:] == [SwitchTurned(5, True)]
    bench.feed(SwitchDisconnected(5))
    assert bench.turned[3:] == [SwitchTurned(5, False)]


def test_a_refused_kind_is_told_once():
    bench = Bench({5: 4})
    bench.run(10.0)
    ((_, xid, _),) = bench.requests
    bench.feed(EditFailed(5, xid, 1, 3))
    assert bench.notices == ["stats-refused"]


def test_a_switch_that_is_taken_is_polled_when_it_is_due_and_not_when_it_is_left():
    poller = Poller(PollSettings(), TAG, PortRows())
    poller.handle(SwitchTaken(1, 4, 3.0), 0.0)
    poller.handle(SwitchTaken(2, 9, 0.0), 0.0)  # of a version that is not spoken
    assert poller.next_deadline() == 3.0
    assert [type(effect) for effect in poller.handle(DeadlineReached(), 3.0)][:1] == [RequestStats]
    assert poller.schedule.left(1, 3.5) == 0.0  # an answer is waited for
    assert poller.schedule.left(7, 3.5) == 0.0 and not poller.schedule.switches


def test_classes_follow_the_fabric():
    bench = Bench(
        {1: 4, 2: 4, 3: 4}, class_interval_s={NodeKind.TOR: 2, NodeKind.AGGREGATION: 4}, interval_s=8, timeout_s=1.0
    )
    for dpid in (1, 2, 3):
        bench.feed(SwitchUp(dpid, 4))
    bench.feed(LinkUp(1, 1, 2, 1, 1e9))
    bench.feed(LinkUp(2, 2, 3, 1, 1e9))
    assert bench.poller.kind_of(1) is NodeKind.SWITCH
    bench.feed(HostLearnt(bytes(6), 1, 3, ()))
    assert [bench.poller.kind_of(dpid) for dpid in (1, 2, 3)] == [NodeKind.TOR, NodeKind.AGGREGATION, NodeKind.CORE]
    bench.run(40.0)
    counts = {1: 0, 2: 0, 3: 0}
    for tenth in range(401, 801):
        bench.requests.clear()
        bench.run(tenth / 10)
        for dpid, xid, _ in bench.requests:
            counts[dpid] += 1
            bench.reply(dpid, xid, bench.ports(dpid, 1))
    assert counts == {1: 20, 2: 10, 3: 5}


def test_a_switch_keeps_its_class_while_it_is_gone_or_cut_off():
    bench = Bench({1: 4, 2: 4, 3: 4})
    for dpid in (1, 2, 3):
        bench.feed(SwitchUp(dpid, 4))
    bench.feed(LinkUp(1, 1, 2, 1, 1e9))
    bench.feed(LinkUp(2, 2, 3, 1, 1e9))
    bench.feed(HostLearnt(bytes(6), 1, 3, ()))
    bench.run(5.0)
    bench.feed(LinkDown(1, 1, 2, 1))
    bench.feed(LinkDown(2, 2, 3, 1))
    bench.run(10.0)
    assert bench.kinds() == [NodeKind.TOR, NodeKind.AGGREGATION, NodeKind.CORE]
    bench.feed(HostGone(bytes(6), 1, 3))
    for dpid in (1, 2):
        bench.feed(SwitchDisconnected(dpid))
        bench.feed(SwitchDown(dpid))
    bench.run(15.0)
    assert bench.kinds() == [NodeKind.TOR, NodeKind.AGGREGATION, NodeKind.CORE]
    bench.feed(SwitchConnected(2, 4, ()))
    bench.feed(SwitchUp(2, 4))
    bench.run(20.0)
    assert bench.kinds() == [NodeKind.TOR, NodeKind.AGGREGATION, NodeKind.CORE]
