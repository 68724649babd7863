"""The monitor's core and its console: from switch events and replies to rates, link loads and answers."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from controller.config.settings import Monitor
from controller.events import (
    DeadlineReached,
    FlowStatsReceived,
    Port,
    PortChanged,
    SwitchConnected,
    SwitchDisconnected,
)
from controller.maintenance.errors import ErrorsMeasured
from controller.multicast.events import LoadsMeasured
from controller.performance import of13_stats
from controller.performance.counters import COUNTERS
from controller.performance.effects import EventsRaised, SamplesRated
from controller.performance.poller import SwitchTurned
from controller.performance.poller_core import XID_TAG, MonitorChanged, MonitorCore
from controller.performance.poller_layout import HEADER
from controller.performance.poller_view import ACTIONS, VIEWS, Console, QuestionInvalid
from controller.performance.requests import RequestStats, StatsReceived
from controller.performance.schedule import StatKind
from controller.snapshot.names import Names
from topology.events import HostLearnt, LinkUp, PortRole, PortRoleChanged, SwitchDown, SwitchUp

EPOCH_S = 1.7e9
PORT = of13_stats.LAYOUTS[StatKind.PORT].entry


class Fabric:
    """Switches 1 and 2 (ToRs), joined by switch 3; every port sends and receives at its own rate when polled."""

    def __init__(self, monitor: Monitor | None = None) -> None:
        self.now = 50.0
        self.core = MonitorCore(monitor or Monitor(), self.now, EPOCH_S + self.now)
        self.console = Console(self.core, self.change, lambda: self.now, lambda: {"outputs": {}}, Names())
        self.tx_bps: dict[tuple[int, int], float] = {}
        self.tx_dropped: dict[tuple[int, int], int] = {}
        self.rx_errors: dict[tuple[int, int], int] = {}
        self.silent: set[int] = set()
        self.effects: list[Any] = []
        for dpid in (1, 2, 3):
            self.feed(SwitchConnected(dpid, 4, tuple(self.port(n) for n in (1, 2, 3, 0xFFFFFFFE))))
            self.feed(SwitchUp(dpid, 4))
        self.feed(LinkUp(1, 1, 3, 1, 1e9))
        self.feed(LinkUp(2, 1, 3, 2, 1e9))
        for dpid in (1, 2):
            self.feed(HostLearnt(bytes((2, 0, 0, 0, 0, dpid)), dpid, 2, ()))
            self.feed(PortRoleChanged(dpid, 2, PortRole.EDGE))

    @staticmethod
    def port(port_no: int, up: bool = True) -> Port:
        return Port(port_no, f"p{port_no}", bytes(6), up, 1e9)

    def change(self, monitor: Monitor) -> None:
        self.feed(MonitorChanged(monitor))

    def feed(self, event: Any) -> None:
        for effect in self.core.handle(event, self.now):
            self.effects.append(effect)
            if isinstance(effect, RequestStats) and effect.dpid not in self.silent:
                xid, kind = HEADER.unpack_from(effect.message)[3:5]
                assert xid >> 24 == XID_TAG
                if kind == StatKind.PORT:
                    self.answer(effect.dpid, xid)

    def answer(self, dpid: int, xid: int) -> None:
        rows = np.zeros(3, PORT)
        rows["port_no"] = (1, 2, 3)
        for row in rows:
            octets = self.tx_bps.get((dpid, int(row["port_no"])), 0.0) / 8 * self.now
            row["counters"][3] = int(octets)
            row["counters"][1] = int(octets) // 1000
            row["counters"][6] = self.rx_errors.get((dpid, int(row["port_no"])), 0)
            row["counters"][5] = self.tx_dropped.get((dpid, int(row["port_no"])), 0)
        rows["duration_s"], rows["duration_ns"] = int(self.now), int(self.now % 1 * 1e9)
        body = rows.tobytes()
        head = HEADER.pack(4, 19, 16 + len(body), xid, StatKind.PORT, 0)
        self.feed(StatsReceived(dpid, 4, xid, head + bytes(4) + body, EPOCH_S + self.now))

    def run(self, seconds: float) -> None:
        end_s = self.now + seconds
        while (deadline := self.core.next_deadline()) is not None and deadline <= end_s:
            self.now = max(self.now, deadline)
            self.feed(DeadlineReached())
        self.now = end_s

    def of(self, kind: type) -> list[Any]:
        return [effect for effect in self.effects if isinstance(effect, kind)]

    def ask(self, action: str, **asked: Any) -> Any:
        answer = ACTIONS[f"perf-{action}"](self.console, asked)
        return json.loads(json.dumps(answer, allow_nan=False))


@pytest.fixture
def fabric() -> Fabric:
    fabric = Fabric()
    fabric.tx_bps = {(1, 1): 4e8, (3, 2): 3e8, (2, 2): 1e8}
    fabric.run(35.0)
    return fabric


def test_rates_are_those_that_were_sent(fabric: Fabric):
    ports = {(port["dpid"], port["port_no"]): port for port in fabric.ask("report")["ports"]}
    assert len(ports) == 9
    for place, bps in fabric.tx_bps.items():
        assert ports[place]["tx_bps"] == pytest.approx(bps, rel=0.001)
        assert ports[place]["tx_utilisation_pct"] == pytest.approx(bps / 1e7, rel=0.001)
    assert ports[1, 3]["tx_bps"] == 0
    assert ports[1, 1]["time"] == pytest.approx(EPOCH_S + fabric.now, abs=10)
    assert fabric.of(SamplesRated)


def test_links_are_told_what_their_sending_ends_send(fabric: Fabric):
    last = {}
    for effect in fabric.of(LoadsMeasured):
        last.update({(u, port_no, v): bps for u, port_no, v, bps in effect.loads})
    assert last.keys() == {(1, 1, 3), (3, 1, 1), (2, 1, 3), (3, 2, 2)}
    assert last[1, 1, 3] == pytest.approx(4e8, rel=0.001)
    assert last[3, 2, 2] == pytest.approx(3e8, rel=0.001)
    assert last[3, 1, 1] == last[2, 1, 3] == 0


def test_ports_with_errors_are_told_and_once_more_when_these_are_over(fabric: Fabric):
    assert {effect.errors for effect in fabric.of(ErrorsMeasured)} == {()}
    assert {dpid for effect in fabric.of(ErrorsMeasured) for dpid in effect.switches} == {1, 2, 3}
    fabric.effects.clear()
    fabric.rx_errors = {(1, 2): 40, (3, 1): 10}
    fabric.run(65.0)
    told = [error for effect in fabric.of(ErrorsMeasured) for error in effect.errors]
    assert [(dpid, port_no) for dpid, port_no, _ in told].count((1, 2)) == 2
    assert [per_s for dpid, _, per_s in told if dpid == 1] == [pytest.approx(4.0, rel=0.01), 0.0]
    fabric.effects.clear()
    fabric.change(replace(Monitor(), feed_trees=False))
    fabric.rx_errors[2, 1] = 5
    fabric.run(35.0)
    assert [error[:2] for effect in fabric.of(ErrorsMeasured) for error in effect.errors if error[2]] == [(2, 1)]


def test_ports_to_switches_that_dropped_something_since_the_poll_before_are_told(fabric: Fabric):
    assert {effect.dropping for effect in fabric.of(LoadsMeasured)} == {()}
    fabric.effects.clear()
    fabric.tx_dropped = {(3, 2): 7, (1, 2): 9}
    fabric.run(35.0)
    told = [(3, 2) in effect.dropping for effect in fabric.of(LoadsMeasured) if effect.loads[0][0] == 3]
    assert told.count(True) == 1, "the next poll finds no more of them"
    assert {port for effect in fabric.of(LoadsMeasured) for port in effect.dropping} == {(3, 2)}


def test_parallel_cables_are_told_each_with_what_it_carries(fabric: Fabric):
    fabric.feed(LinkUp(1, 2, 3, 3, 1e9))
    fabric.tx_bps[1, 2] = 2e8
    fabric.effects.clear()
    fabric.run(35.0)
    last = {}
    for effect in fabric.of(LoadsMeasured):
        last.update({(u, port_no, v): bps for u, port_no, v, bps in effect.loads})
    assert last[1, 1, 3] == pytest.approx(4e8, rel=0.001)
    assert last[1, 2, 3] == pytest.approx(2e8, rel=0.001)
    assert last[3, 3, 1] == 0


def test_a_switch_that_falls_silent_is_down_and_its_links_carry_nothing_known(fabric: Fabric):
    fabric.silent.add(3)
    fabric.effects.clear()
    fabric.run(15.0)
    assert SwitchTurned(3, False) in fabric.effects
    assert LoadsMeasured(((3, 1, 1, 0.0), (3, 2, 2, 0.0))) in fabric.effects
    top = fabric.ask("top")
    assert top["down"] == [3]
    assert {port["dpid"] for port in top["ports"]} == {1, 2}
    assert not any(port["up"] for port in fabric.ask("report", node=3)["ports"])


def test_trees_are_not_fed_where_that_is_not_wanted():
    fabric = Fabric(replace(Monitor(), feed_trees=False))
    fabric.run(40.0)
    assert fabric.of(SamplesRated)
    assert fabric.of(LoadsMeasured) == []


def test_ports_come_and_go_with_their_messages(fabric: Fabric):
    fabric.feed(PortChanged(1, fabric.port(3), True))
    assert [port["port_no"] for port in fabric.ask("report", node=1)["ports"]] == [1, 2]
    fabric.feed(PortChanged(1, fabric.port(3), False))
    fabric.feed(PortChanged(1, fabric.port(7), False))
    fabric.feed(PortChanged(1, fabric.port(0xFFFFFFFE), False))
    assert [port["port_no"] for port in fabric.ask("report", node=1)["ports"]] == [1, 2, 3, 7]
    fabric.feed(PortChanged(1, fabric.port(2, up=False), False))
    assert fabric.of(EventsRaised)[-1].events[0].counter == "link_down"
    assert [event["counter"] for event in fabric.ask("events")["events"]] == ["link_down"]
    assert fabric.ask("report", node=1, port=2)["ports"][0]["raised"] == ["link_down"]


def test_a_switch_that_is_gone_stays_on_the_list_as_down(fabric: Fabric):
    fabric.feed(SwitchDisconnected(2))
    fabric.feed(SwitchDown(2))
    assert fabric.ask("top")["down"] == [2]
    assert fabric.ask("report", by="node")["rows"][1]["up"] == "down"


def test_reports_by_node_and_by_type(fabric: Fabric):
    nodes = {row["node"]: row for row in fabric.ask("report", by="node")["rows"]}
    assert {node: row["type"] for node, row in nodes.items()} == {1: "tor", 2: "tor", 3: "aggregation"}
    assert nodes[1]["busiest"] == "0000000000000001:1"
    types = {row["type"]: row for row in fabric.ask("report", by="type")["rows"]}
    assert types["tor"]["ports"] == 6
    assert types["tor"]["tx_bps"] == pytest.approx(5e8, rel=0.001)
    assert types["tor"]["up"] == "2/2"
    assert [(p["dpid"], p["port_no"]) for p in fabric.ask("report", type="hosts")["ports"]] == [(1, 2), (2, 2)]
    assert {p["dpid"] for p in fabric.ask("report", type="aggregation")["ports"]} == {3}
    cut = fabric.ask("report", limit=2)
    assert (len(cut["ports"]), cut["more"]) == (2, True)
    assert fabric.ask("report", limit=9)["more"] is False


def test_top_tells_the_busiest_first(fabric: Fabric):
    assert [(p["dpid"], p["port_no"]) for p in fabric.ask("top", count=2)["ports"]] == [(1, 1), (3, 2)]
    assert [(p["dpid"], p["port_no"]) for p in fabric.ask("top", order="tx", type="hosts")["ports"]] == [(2, 2)]
    assert fabric.ask("top", order="errors")["ports"] == []


def test_histograms_count_every_rate(fabric: Fabric):
    whole, one = fabric.ask("histogram", counter="tx_bytes"), fabric.ask("histogram", counter="tx_bytes", node=1)
    rates = sum(int((~np.isnan(e.rates.per_s[:, 3])).sum()) for e in fabric.of(SamplesRated))
    assert whole["samples"] == whole["zeros"] + sum(bucket["count"] for bucket in whole["buckets"]) == rates
    assert 0 < one["samples"] < whole["samples"]


def test_totals_begin_anew(fabric: Fabric):
    assert fabric.ask("reset", node=1, port=1)["ports"] == 1
    ports = {(port["dpid"], port["port_no"]): port for port in fabric.ask("report")["ports"]}
    assert ports[1, 1]["totals"]["tx_bytes"] == 0
    assert ports[3, 2]["totals"]["tx_bytes"] > 0
    assert ports[1, 1]["since"] == pytest.approx(EPOCH_S + fabric.now)
    assert fabric.ask("reset")["ports"] == 9


def test_a_knob_turned_while_it_runs_takes_effect(fabric: Fabric):
    assert fabric.ask("set", knob="intervals.tor", value="2") == {"knob": "intervals.tor", "before": None, "value": 2}
    fabric.effects.clear()
    fabric.run(20.0)
    asked = [effect.dpid for effect in fabric.of(RequestStats)]
    assert (asked.count(1), asked.count(2), asked.count(3)) == (10, 10, 2)
    assert fabric.ask("set", knob="outstanding", value=7)["value"] == 7
    assert fabric.core.poller.schedule.settings.outstanding == 7
    assert fabric.ask("set", knob="thresholds.tx_utilisation.raise_above", value=30)["value"] == 30
    fabric.ask("set", knob="thresholds.tx_utilisation.hold_s", value=0)
    fabric.run(30.0)
    raised = {(event["dpid"], event["port_no"]) for event in fabric.ask("events", count=100)["events"]}
    assert (1, 1) in raised
    knobs = fabric.ask("get", knob="intervals")["knobs"]
    assert [knob["value"] for knob in knobs] == [2, None, None, None]


@pytest.mark.parametrize(
    ("action", "asked", "message"),
    [
        ("report", {"node": 9}, "there is no switch 9"),
        ("report", {"node": 1, "port": 77}, "has no port 77"),
        ("report", {"port": 1}, "has no port 1"),
        ("report", {"node": "1"}, "node: there is no switch 1"),
        ("report", {"node": 1.5}, "node: 1.5 is no whole number"),
        ("report", {"type": "spine"}, "type: 'spine'"),
        ("report", {"by": "colour"}, "by: 'colour'"),
        ("report", {"statistics": "weather"}, "statistics: 'weather'"),
        ("report", {"limit": 0}, "limit: 0"),
        ("top", {"count": -1}, "count: -1"),
        ("top", {"order": "size"}, "order: 'size'"),
        ("histogram", {}, "counter: None"),
        ("histogram", {"counter": "rx_bytes", "node": 9}, "there is no switch 9"),
        ("histogram", {"counter": ["rx_bytes"]}, "counter: "),
        ("set", {"knob": "interval_s", "value": 0}, "interval_s: 0 is not within 1 and 65535 s"),
        ("set", {}, "there is no such setting"),
        ("get", {"knob": "intervall"}, "intervall: there is no such setting"),
    ],
)
def test_a_question_that_makes_no_sense_is_refused(fabric: Fabric, action: str, asked: dict[str, Any], message: str):
    with pytest.raises(QuestionInvalid, match=message.replace("(", r"\(")):
        fabric.ask(action, **asked)


def test_other_statistics_are_shown():
    fabric = Fabric(replace(Monitor(), statistics=replace(Monitor().statistics, flow=True)))
    fabric.silent = {1, 2, 3}
    while not fabric.of(RequestStats):
        fabric.run(1.0)
    fabric.run(0.5)
    requests = [(e.dpid, *HEADER.unpack_from(e.message)[3:5]) for e in fabric.of(RequestStats)]
    dpid, xid, _ = next(request for request in requests if request[2] == StatKind.FLOW)
    match = bytes((0, 1, 0, 4, 0, 0, 0, 0))
    entry = (56).to_bytes(2) + bytes((1, 0)) + bytes(8) + (500).to_bytes(2) + bytes(10) + (77).to_bytes(8)
    entry += (10).to_bytes(8) + (1000).to_bytes(8) + match
    message = HEADER.pack(4, 19, 16 + len(entry), xid, StatKind.FLOW, 0) + bytes(4) + entry
    fabric.feed(FlowStatsReceived(dpid, 4, xid, message))
    (found,) = fabric.ask("report", statistics="flow", node=dpid)["entries"]
    assert (found["key"]["priority"], found["key"]["cookie"]) == (500, 77)
    assert found["totals"] == {"packets": 10, "bytes": 1000}
    fabric.feed(SwitchDisconnected(dpid))
    assert fabric.ask("report", statistics="flow")["entries"] == []


def test_the_status_tells_of_polls_and_ports(fabric: Fabric):
    status = VIEWS["perf"](fabric.console)
    assert status["ports"] == 9
    assert status["counters"]["samples"] == sum(len(effect.samples) for effect in fabric.of(SamplesRated))
    assert set(fabric.ask("report")["ports"][0]["totals"]) == set(COUNTERS)
