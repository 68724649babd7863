"""The live allocator's core: metrics from the monitor, ports that come and go, reservations, questions."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.allocation import live_view
from controller.allocation.events import AllocationChanged, PortsRated, ports_rated
from controller.allocation.fabric_domains import FabricDomains
from controller.allocation.fields import RequestError
from controller.config.settings import Allocation, PortParameters
from controller.events import PortChanged, SwitchConnected, SwitchDisconnected
from controller.performance.batch import Samples
from controller.performance.counters import COUNTER_COUNT, Counter
from controller.performance.ports import PortRows
from controller.performance.rates import RateTable
from topology.events import HostLearnt, LinkUp, PortRole, PortRoleChanged, SwitchUp
from topology.generators import make
from topology.graph import Graph, NodeKind
from topology.live import LiveFabric

from .allocator_bench import MINUTE, START_S, UPLINKS, Bench, port


@pytest.fixture
def bench() -> Bench:
    return Bench().connect()


def test_the_least_loaded_port_is_taken_and_explain_says_why(bench: Bench):
    bench.measure({"1:1": 40, "1:2": 10, "2:1": 30, "2:2": 30})
    answer = bench.allocate(ports=UPLINKS, count=1)
    assert answer["ports"] == ["1:2"]
    assert answer["metrics"]["1:2"]["port_percent_busy"] == 10
    told = bench.console.explain({"port": "1:1"})
    assert (told["chosen"], told["usage"]) == (False, 40)
    assert told["steps"][0]["reason"] == "usage 40 %; 1:2 has 10 %"
    assert "port 40 % counts" in told["usage_steps"]
    assert bench.console.explain({"port": "1:3"})["reason"] == "not among the ports that were asked for"


def test_redundancy_comes_before_load(bench: Bench):
    bench.measure({"1:1": 40, "1:2": 1, "2:1": 30, "2:2": 20})
    assert bench.allocate(ports=UPLINKS, count=2, levels=["switch"])["ports"] == ["1:2", "2:2"]
    bench.core.reservations.refresh()
    assert bench.allocate(ports=UPLINKS, count=2)["ports"] == ["1:2", "2:1"]


def test_failure_domains_come_from_the_topology(bench: Bench):
    found = bench.watch()
    assert found["1:2"]["components"] == {"plane": "12", "pod": "1", "switch": "1", "neighbour": "12"}
    assert found["12:1"]["components"] == {"plane": "12", "pod": "1", "switch": "12", "neighbour": "1"}
    assert found["1:3"]["components"] == {"pod": "1", "switch": "1"}
    bench.tell(SwitchUp(5, 4), SwitchConnected(5, 4, (port(7, name="xe-2/0/3"),)))
    assert bench.watch()["5:7"]["components"] == {"switch": "5", "line_card": "5/2/0"}


def test_the_cpu_of_the_switch_counts(bench: Bench):
    bench.measure({"1:1": 40, "2:1": 40}, {1: 60.0})
    found = bench.watch()
    assert [found[name]["usage"] for name in ("1:1", "2:1")] == pytest.approx([50, 40])
    assert found["1:1"]["cpu_percent_busy"] == pytest.approx(60)


def test_requests_between_two_polls_spread_as_one_does(bench: Bench):
    load = {"1:1": 20.0, "1:2": 21.0, "2:1": 22.0, "2:2": 23.0}
    bench.measure(load)
    wish = {"ports": UPLINKS, "size_pct": 5, "levels": ["neighbour"]}
    one = bench.allocate(**wish, count=4, reserve=False)["ports"]
    several = [bench.allocate(**wish, count=1)["ports"][0] for _ in range(4)]
    assert several == one
    assert bench.watch()["1:1"]["reserved_pct"] == 7.5
    bench.now_s += 10
    bench.rate(load)
    assert bench.allocate(**wish, count=1)["ports"] == ["1:1"]


def test_a_full_port_is_not_chosen(bench: Bench):
    bench.measure({"1:1": 100.0, "1:2": 99.0})
    answer = bench.allocate(ports=UPLINKS, count=4, allow_fewer=True)
    assert "1:1" not in answer["ports"]
    assert bench.console.explain({"port": "1:1"})["reason"].startswith("no candidate: port_percent_busy 100 % at or")


def test_a_metric_is_provisional_from_the_first_minute_of_a_first_hour():
    bench = Bench(Allocation()).connect()
    for _ in range(6):
        bench.rate({"1:1": 30.0, "1:2": 10.0})
        before = bench.watch()["1:1"]
        bench.now_s += 10
    bench.rate({"1:1": 30.0, "1:2": 10.0})
    found = bench.watch()["1:1"]
    assert before["usage"] is None
    assert before["measurement"] == "first averaging period: valid in 3550 s"
    assert (found["usage"], found["measurement"]) == (
        pytest.approx(30),
        "provisional, 0 s old; first averaging period: valid in 3540 s",
    )
    assert bench.allocate(ports=["1:1", "1:2"], count=1)["ports"] == ["1:2"]


def test_what_is_reserved_stays_until_its_port_is_measured(bench: Bench):
    bench.measure({"1:1": 20, "2:1": 20})
    bench.allocate(ports=["1:1"], count=1)
    bench.now_s += 10
    bench.rate({"2:1": 20})
    assert bench.watch()["1:1"]["reserved_pct"] == 1.5
    bench.rate({"1:1": float("nan")})
    assert bench.watch()["1:1"]["reserved_pct"] == 1.5
    bench.now_s += 10
    bench.rate({"1:1": 20})
    assert bench.watch()["1:1"]["reserved_pct"] == 0


def test_explain_of_a_request_reserves_nothing_and_needs_an_answer_otherwise(bench: Bench):
    with pytest.raises(RequestError, match="no allocation is kept"):
        bench.console.explain({"port": "1:1"})
    bench.measure({"1:1": 20, "1:2": 10})
    told = bench.console.explain({"port": "1:2", "count": 1, "ports": ["1:1", "1:2"]})
    assert told["chosen"]
    assert told["reserved_pct"] == 0
    told = bench.console.explain({"port": "1:1", "count": 3, "ports": ["1:1", "1:2"]})
    assert told["note"] == "3 ports requested, 2 allocated"


def test_what_the_monitor_rated_is_told_without_samples_put_aside():
    table = PortRows()
    for number in (1, 2, 3):
        table.add(7, number, "", 1e9)
    rates_of = RateTable(table)
    rows = np.array([2, 0, 1], np.int32)

    def rated(at_s: list[float], octets: list[int]) -> PortsRated:
        counters = np.zeros((3, COUNTER_COUNT), np.uint64)
        counters[:, Counter.TX_BYTES.column] = octets
        samples = Samples(rows, np.array(at_s), np.array(at_s) - START_S, counters)
        return ports_rated(rates_of.update(samples), table, {7: 30.0, 8: 40.0})

    first = rated([START_S + 100.0] * 3, [0, 0, 0])
    assert first.ports == ((7, 3), (7, 1), (7, 2))
    assert np.isnan(first.busier_pct).all()
    second = rated([START_S + 110.0, START_S + 110.0, START_S + 100.0], [125_000_000, 250_000_000, 0])
    assert second.ports == ((7, 3), (7, 1))
    assert second.busier_pct == pytest.approx([10, 20])
    assert second.cpu_pct == {7: 30.0}


def test_without_a_monitor_every_port_says_so(bench: Bench):
    answer = bench.allocate(ports=UPLINKS, count=1)
    assert answer["measured"] == {"ports": 12, "valid": 0, "last_sample_s_ago": None}
    assert {each["reason"] for each in answer["unmeasured"]} == {"never measured: the monitor told nothing of it"}
    assert "without metrics" in answer["steps"][0]["reason"]


def test_a_metric_is_valid_after_the_first_period_and_until_it_is_stale():
    bench = Bench(Allocation(openflow=MINUTE, stale_s=300)).connect()
    bench.rate({"1:1": 20})
    assert bench.watch()["1:1"]["measurement"] == "first averaging period: valid in 60 s"
    bench.measure({"1:1": 20})
    assert bench.watch()["1:1"]["measurement"] == "valid, 0 s old"
    bench.now_s += 301
    found = bench.watch()["1:1"]
    assert (found["usage"], found["measurement"]) == (None, "stale: the last sample is 301 s old")
    answer = bench.allocate(ports=["1:1"], count=1)
    assert answer["unmeasured"] == [{"id": "1:1", "reason": "stale: the last sample is 301 s old"}]
    assert answer["measured"]["last_sample_s_ago"] == 301


def test_a_port_of_unknown_speed_says_that_its_utilisation_is_not_known(bench: Bench):
    bench.measure({"1:1": float("nan")})
    assert bench.watch()["1:1"]["measurement"] == "no utilisation known"


def test_ports_that_vanish_are_no_candidates_and_are_told(bench: Bench):
    bench.measure({"1:1": 10, "1:2": 20, "2:1": 30, "2:2": 40})
    bench.allocate(ports=["1:1"], count=1)
    bench.tell(PortChanged(1, port(1), True), PortChanged(1, port(2, up=False), False), SwitchDisconnected(2))
    listed = ["1:1", "1:2", "2:1", "1:3"]
    answer = bench.allocate(ports=listed, count=1)
    assert answer["ports"] == ["1:3"]
    assert answer["excluded"] == [
        {"id": "1:1", "reason": "the port is gone"},
        {"id": "1:2", "reason": "its link is down"},
        {"id": "2:1", "reason": "switch 2 is not connected"},
    ]
    assert bench.allocate(ports=listed, count=4, allow_down=True) == {
        "error": {"requested": 4, "allocated": 2, "available": 2},
        "measured": {"ports": 12, "valid": 4, "last_sample_s_ago": 0.0},
    }
    assert not {"1:1", "2:1"} & bench.watch().keys()
    bench.tell(PortChanged(1, port(1), False))
    found = bench.watch()["1:1"]
    assert (found["usage"], found["reserved_pct"]) == (10, 0)


def test_ports_that_are_gone_are_forgotten_when_stale_and_others_keep_their_metrics(bench: Bench):
    bench.measure({"1:1": 10, "2:1": 30})
    bench.tell(SwitchDisconnected(2))
    bench.core.expire(round(bench.now_s * 1000))
    assert "2:1" in bench.core.book.names
    bench.core.changes(100)
    bench.now_s += 172_801
    bench.rate({"1:1": 10})
    bench.core.expire(round(bench.now_s * 1000))
    assert not [name for name in bench.core.book.names if name.startswith("2:")]
    assert "2:1" in bench.core.changes(100).forgotten
    bench.rate({"1:1": 10})
    assert bench.watch()["1:1"]["usage"] == 10


def test_a_full_book_gives_the_room_of_ports_that_are_gone_to_others():
    bench = Bench(Allocation(openflow=MINUTE, ports=2))
    bench.tell(SwitchConnected(1, 4, (port(1), port(2))), SwitchConnected(2, 4, (port(1),)))
    assert set(bench.watch()) == {"1:1", "1:2"}
    bench.tell(SwitchDisconnected(1), SwitchConnected(3, 4, (port(1),)))
    bench.rate({"3:1": 5, "2:1": 7, "1:1": 9})
    assert set(bench.watch()) == {"3:1"}
    bench.now_s += 172_801
    bench.core.expire(round(bench.now_s * 1000))
    assert set(bench.watch()) == {"2:1", "3:1"}


def test_a_flood_of_ports_leaves_nothing_behind():
    bench = Bench(Allocation(openflow=MINUTE, ports=10))
    for dpid in range(1, 200):
        bench.tell(SwitchConnected(dpid, 4, tuple(map(port, range(1, 5)))), SwitchDisconnected(dpid))
    assert len(bench.core.book) <= 10
    assert bench.watch() == {}
    bench.tell(SwitchConnected(1, 4, tuple(map(port, range(1, 13)))))
    assert len(bench.watch()) == 10
    bench.tell(SwitchDisconnected(1), SwitchConnected(2, 4, tuple(map(port, range(1, 11)))))
    assert len(bench.watch()) == 10


def test_attachments_are_the_hosts_behind_a_port(bench: Bench):
    bench.measure({"1:3": 0, "1:4": 0})
    bench.tell(HostLearnt(bytes([2, 0, 0, 0, 9, 9]), 1, 3, ()))
    assert bench.watch()["1:3"]["initiator_load"] == 2
    assert bench.allocate(ports=["1:3", "1:4"], count=1)["ports"] == ["1:4"]


def test_a_ceiling_disqualifies_with_its_reason_and_parameters_can_change(bench: Bench):
    bench.measure({"1:1": 60, "1:2": 70})
    assert bench.allocate(ports=["1:1", "1:2"], count=1)["ports"] == ["1:1"]
    ceiling = PortParameters(days_to_average_utilization=10001, port_utilization_ceiling=50)
    bench.tell(AllocationChanged(Allocation(openflow=ceiling)))
    answer = bench.allocate(ports=["1:1", "1:2"], count=1)
    assert answer["error"]["available"] == 0
    told = bench.console.explain({"port": "1:1", "count": 1, "ports": ["1:1", "1:2"]})
    assert told["reason"] == "no candidate: port_percent_busy 60 % at or above port_utilization_ceiling 50 %"


def test_previously_allocated_ports_count_and_come_first(bench: Bench):
    bench.measure({"1:1": 60, "1:2": 70, "2:1": 10, "2:2": 80})
    answer = bench.allocate(ports=UPLINKS, count=2, levels=["neighbour"], previously_allocated=["0x2:1"])
    assert answer["ports"] == ["2:1", "1:2"]


def test_operators_may_tell_components_of_ports(bench: Bench):
    racks = [{"id": "1:1", "components": {"rack": "a"}}, {"id": "1:2", "components": {"rack": "a"}}]
    bench.measure({"1:1": 1, "1:2": 2, "2:1": 50})
    answer = bench.allocate(ports=[*racks, {"id": "2:1", "components": {"rack": "b"}}], levels=["rack"], count=2)
    assert answer["ports"][1] == "2:1"


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({}, "count: expected a whole number"),
        ({"count": 0}, "count: 0 is below 1"),
        ({"count": 1, "ports": ["9:9"]}, r"ports\[0\]: there is no port 9:9"),
        ({"count": 1, "ports": ["eth0"]}, r"ports\[0\]: 'eth0' is not DPID:PORT"),
        ({"count": 1, "ports": ["1:1", "0x1:1"]}, r"ports\[1\]: 1:1 is there twice"),
        ({"count": 1, "ports": [{"id": "1:1", "usage": 3}]}, r"ports\[0\].usage: unknown field"),
        ({"count": 1, "ports": {"type": "leaf"}}, "ports.type: 'leaf' is none of"),
        ({"count": 1, "ports": {"role": "x"}}, "ports.role: 'x' is none of"),
        ({"count": 1, "ports": {"node": 99}}, "ports.node: switch 99 is not connected"),
        ({"count": 1, "ports": ["1:1"], "previously_allocated": ["1:2"]}, r"previously_allocated\[0\]: '1:2' is not"),
        ({"count": 1, "size_pct": 101}, "size_pct: 101 is not within 0 and 100"),
        ({"count": 1, "networks": []}, "request.count: unknown field"),
        ({"networks": [{"name": "a", "ports": ["9:9"]}]}, r"networks\[0\].ports\[0\]: there is no port 9:9"),
        ({"networks": [{"name": "a", "ports": {"type": "x"}}]}, r"networks\[0\].ports.type: 'x' is none of"),
        ({"networks": [], "hosts": [], "max_paths": 1, "size_pct": -1}, "size_pct: -1 is not"),
    ],
)
def test_a_faulty_request_names_its_field(bench: Bench, asked: dict[str, Any], message: str):
    with pytest.raises(RequestError, match=message):
        bench.allocate(**asked)


def test_fewer_ports_are_an_answer_only_where_that_is_allowed(bench: Bench):
    wish = {"ports": ["1:1"], "count": 2}
    assert bench.allocate(**wish)["error"] == {"requested": 2, "allocated": 1, "available": 1}
    assert bench.allocate(**wish, allow_fewer=True)["ports"] == ["1:1"]


HOST = {"name": "h", "initiators": [{"id": "nic0", "network": "a"}, {"id": "nic1", "network": "b"}]}
NETWORKS = [
    {"name": "a", "ports": ["1:1", "2:1"]},
    {"name": "b", "ports": [{"id": "1:2"}, {"id": "2:2"}]},
]


def test_several_networks_and_hosts_are_served_from_measured_load(bench: Bench):
    bench.measure({"1:1": 40, "2:1": 10, "1:2": 50, "2:2": 20})
    asked = {"networks": NETWORKS, "hosts": [HOST], "max_paths": 2, "levels": ["switch"], "size_pct": 10}
    answer = bench.allocate(**asked)
    assert answer["ports"] == ["2:1", "1:2"]
    assert [(path["initiator"], path["port"]) for path in answer["paths"]] == [("nic0", "2:1"), ("nic1", "1:2")]
    assert bench.watch()["1:2"]["reserved_pct"] == 15
    told = bench.console.explain({"port": "2:2"})
    assert (told["chosen"], told["steps"][0]["reason"][:17]) == (False, "switch 2 left out")
    few = bench.allocate(**{**asked, "networks": [*NETWORKS[:1], {"name": "b", "ports": []}], "min_paths": 2})
    assert few["error"] == {"host": "h", "requested": 2, "allocated": 1, "available": 1}
    bench.core.reservations.refresh()
    told = bench.console.explain({"port": "2:2", **asked})
    assert not told["chosen"]


def test_an_allocation_of_too_many_candidates_is_not_kept(bench: Bench, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(live_view, "MOST_KEPT", 10)
    bench.allocate(ports=["1:1"], count=1)
    assert bench.console.explain({"port": "1:1"})["chosen"]
    bench.allocate(ports=UPLINKS, count=2)
    with pytest.raises(RequestError, match="no allocation is kept"):
        bench.console.explain({"port": "1:1"})


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-1, 1 << 70)
    | st.floats()
    | st.sampled_from(["1:1", "2:2", "tor", "edge"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["id", "type", "role", "node", "level", "budget", "switch", "1"]), inner)
    ),
    max_leaves=6,
)
SOUND = {
    "count": st.integers(1, 5),
    "ports": st.sampled_from([UPLINKS, ["1:1", "2:2"], {"node": 1}]),
    "levels": st.sampled_from([["switch"], ["neighbour", "plane"]]),
    "previously_allocated": st.sampled_from([["1:1"], []]),
    "used": st.sampled_from([{"switch": ["1"]}, {}]),
    "affinity": st.sampled_from([{"level": "switch", "budget": {"1": 1 << 70}}, None]),
    "mode": st.sampled_from(["vipr", "default"]),
    "size_pct": st.sampled_from([0, 3.5]),
    "allow_fewer": st.booleans(),
}


@given(st.fixed_dictionaries({}, optional=SOUND), st.dictionaries(st.sampled_from([*SOUND]), VALUES, max_size=1))
def test_any_request_is_answered_or_refused_with_a_reason(sound: dict[str, Any], other: dict[str, Any]):
    asked = {"count": 1, **sound, **other}
    bench = Bench().connect()
    for question in (bench.console.allocate, bench.console.watch):
        with suppress(RequestError):
            json.dumps(question(asked), allow_nan=False)
    bench.measure({"1:1": 10, "2:1": 30})
    paths = {"networks": NETWORKS, "hosts": [HOST], "max_paths": 2}
    for more in ({}, paths):
        with suppress(RequestError):
            json.dumps(bench.console.explain({"port": "1:1", **more, **asked}), allow_nan=False)
    asked.pop("count", None)
    with suppress(RequestError):
        json.dumps(bench.console.allocate({**paths, **asked}), allow_nan=False)


def test_the_ports_of_a_selector_follow_the_fabric(bench: Bench):
    bench.measure({"1:1": 40, "1:2": 10, "2:1": 30, "2:2": 30})
    wish = {"ports": UPLINKS, "count": 1, "reserve": False}
    assert bench.allocate(**wish)["ports"] == ["1:2"]
    bench.tell(PortChanged(1, port(2, up=False), False))
    assert bench.allocate(**wish)["ports"] == ["2:1"]
    bench.tell(PortRoleChanged(2, 1, PortRole.EDGE))
    assert bench.allocate(**wish)["ports"] == ["2:2"]
    bench.tell(SwitchDisconnected(2))
    assert bench.allocate(**wish)["ports"] == ["1:1"]
    bench.tell(PortChanged(1, port(2), False))
    assert bench.allocate(**wish)["ports"] == ["1:2"]


def fabric_of(graph: Graph) -> LiveFabric:
    """What discovery tells of a generated fabric."""
    fabric = LiveFabric()
    dpids = {node: number for number, node in enumerate(graph.switches(), 1)}
    for dpid in dpids.values():
        fabric.apply(SwitchUp(dpid, 4))
    for link in graph.links():
        for each in (link, link.reversed()):
            if each.u in dpids and each.v in dpids:
                ends = (dpids[each.u], dpids[each.v], dpids[each.v], dpids[each.u])
                fabric.apply(LinkUp(*ends, 1e9))
            elif each.u in dpids:
                fabric.apply(HostLearnt(str(each.v).encode(), dpids[each.u], 1000, ()))
    return fabric


def entities(fabric: LiveFabric, level: str, kind: NodeKind) -> list[int]:
    """How many switches of a class are in each entity of a level, by the ports of links."""
    domains = FabricDomains(fabric)
    found: dict[str | None, set[Any]] = {}
    for link in fabric.graph.links():
        for each in (link, link.reversed()):
            if domains.kind(each.u) is kind:
                own = domains.components(each.u, each.u_port, "")
                found.setdefault(own.get(level), set()).add(each.u)
    return sorted(map(len, found.values()))


@pytest.mark.parametrize("k", [4, 6])
def test_planes_and_pods_of_a_fat_tree(k: int):
    fabric = fabric_of(make("fattree", {"k": k}))
    half = k // 2
    assert entities(fabric, "plane", NodeKind.CORE) == [half] * half
    assert entities(fabric, "plane", NodeKind.AGGREGATION) == [k] * half
    assert entities(fabric, "plane", NodeKind.TOR) == [k * half] * half
    assert entities(fabric, "pod", NodeKind.AGGREGATION) == entities(fabric, "pod", NodeKind.TOR) == [half] * k
    assert entities(fabric, "pod", NodeKind.CORE) == [half * half] * k


def test_where_planes_are_joined_each_highest_switch_is_one():
    graph = make("fattree", {"k": 4})
    fabric = fabric_of(graph)
    cores = [dpid for dpid in fabric.switches() if FabricDomains(fabric).kind(dpid) is NodeKind.CORE]
    aggregations = [dpid for dpid in fabric.switches() if FabricDomains(fabric).kind(dpid) is NodeKind.AGGREGATION]
    for core in cores:
        for aggregation in aggregations:
            fabric.apply(LinkUp(core, 100 + aggregation, aggregation, 100 + core, 1e9))
    assert entities(fabric, "plane", NodeKind.CORE) == [1, 1, 1, 1]


def test_a_switch_that_nothing_reaches_leaves_the_domains_of_others_alone():
    fabric = fabric_of(make("fattree", {"k": 4}))
    fabric.apply(SwitchUp(999, 4))
    fabric.apply(SwitchUp(998, 4))
    fabric.apply(LinkUp(998, 1, 999, 1, 1e9))
    assert entities(fabric, "plane", NodeKind.AGGREGATION) == [4, 4]
    assert FabricDomains(fabric).components(998, 1, "") == {"switch": "998", "neighbour": "999"}


def test_without_hosts_there_are_neither_planes_nor_pods():
    fabric = LiveFabric()
    for event in (SwitchUp(1, 4), SwitchUp(2, 4), LinkUp(1, 1, 2, 1, 1e9)):
        fabric.apply(event)
    assert FabricDomains(fabric).components(1, 1, "") == {"switch": "1", "neighbour": "2"}
    assert FabricDomains(fabric).kind(1) is NodeKind.SWITCH
