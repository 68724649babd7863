"""Large flows take the least loaded of equal paths, as long as they are large, and nobody is cut off meanwhile."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.config.load import load_policy
from controller.config.policy import Policy
from controller.multicast.events import LoadsMeasured
from controller.rules.model import Goto, SetEthDst
from controller.rules.pipeline import PRIORITY_PINNED_FLOW, PRIORITY_PINNED_WAY
from controller.service_classes.pool import AliasesUsed, FlowsUsed
from controller.unicast.large_flows import WAYS_PER_TURN
from controller.unicast.settings import UnicastChanged, UnicastSettings, of_policy

from .reaching import assert_reachable, populate

CAPACITY_BPS = 1e9
POLL_S = 10.0
POOL = 8


class Traffic:
    """What hosts send each other, at rates that nothing holds up, and what links carry of it."""

    def __init__(self, bench: Any, cables: list[tuple[int, int, int, int]]) -> None:
        self.bench = bench
        self.far = {(a, port_a): b for a, port_a, b, _ in cables} | {(b, port_b): a for a, _, b, port_b in cables}
        self.flows: dict[tuple[Any, Any], float] = {}
        self.others_bps: Counter[tuple[int, int]] = Counter()

    def way(self, one: Any, other: Any) -> list[tuple[int, int]]:
        """The ports by which the packets of a flow leave switches for others."""
        bench, here = self.bench, (one.dpid, one.port_no)
        ways: list[tuple[int, int]] = []
        address = other.mac
        while True:
            dpid, in_port = here
            rule = bench.rule_for(dpid, in_port, address)
            if isinstance(rule.actions[0], SetEthDst):
                address = rule.actions[0].mac
            if isinstance(rule.actions[-1], Goto):
                rule = bench.located(dpid, in_port, address)
            end = (dpid, rule.actions[-1].port_no)
            if end not in bench.other_end:
                return ways
            ways.append(end)
            here = bench.other_end[end]

    def loads_bps(self) -> Counter[tuple[int, int]]:
        loads = Counter(self.others_bps)
        for (one, other), bps in self.flows.items():
            for end in self.way(one, other):
                loads[end] += bps
        return loads

    def run(self, polls: int, is_measured: bool = True) -> None:
        for _ in range(polls):
            loads = self.loads_bps()
            if is_measured:
                told = tuple((*end, self.far[end], float(loads[end])) for end in self.bench.other_end)
                self.bench.feed(LoadsMeasured(told))
            for (one, other), bps in self.flows.items():
                dpid, mac = one.dpid, other.mac
                rules = self.bench.rules[dpid]
                pinned = self.bench.pinned_flow(dpid, mac)
                entry = pinned or rules[next(key for key in rules if key.match.eth_dst == mac)]
                self.bench.byte_counts[dpid, entry.key] += int(bps * POLL_S / 8)
            self.bench.run(POLL_S)


def made(make_bench, make_host, make_fattree, version: int = 4, pool: int = POOL):
    bench = make_bench(UnicastSettings(large_flows=pool), version)
    cables, ends = make_fattree(4)
    bench.build(cables, ends)
    hosts = [make_host(number, *end) for number, end in enumerate(ends, 1)]
    populate(bench, hosts)
    return bench, hosts, Traffic(bench, cables)


@pytest.fixture(params=[4, 1, 0], ids=["1.3", "1.0", "mixed"])
def world(request, make_bench, make_host, make_fattree):
    return made(make_bench, make_host, make_fattree, request.param)


@pytest.fixture
def of13(make_bench, make_host, make_fattree):
    return made(make_bench, make_host, make_fattree)


def colliding(traffic: Traffic, hosts: list[Any]) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    """Two flows from one switch to two others that leave it by one port."""
    here = [host for host in hosts if host.dpid == hosts[0].dpid]
    by_port = defaultdict(list)
    for other in hosts:
        if other.dpid // 100 != here[0].dpid // 100:
            by_port[traffic.way(here[0], other)[0]].append(other)
    one, another = next(
        (one, other) for found in by_port.values() for one in found for other in found if one.dpid != other.dpid
    )
    return (here[0], one), (here[1], another)


def busiest(traffic: Traffic) -> float:
    return max(traffic.loads_bps().values())


def test_of_two_large_flows_on_one_link_one_goes_elsewhere_and_all_reach_all(world):
    bench, hosts, traffic = world
    for flow in colliding(traffic, hosts):
        traffic.flows[flow] = 0.4 * CAPACITY_BPS
    assert busiest(traffic) == 0.8 * CAPACITY_BPS
    traffic.run(1)
    assert not bench.pinned, "one poll tells no rate"
    bench.on_edits = lambda: assert_reachable(bench, hosts[::3])
    traffic.run(4)
    assert busiest(traffic) == 0.4 * CAPACITY_BPS
    assert bench.pinned
    assert {key.priority for _, key in bench.pinned} <= {PRIORITY_PINNED_FLOW, PRIORITY_PINNED_WAY}
    assert_reachable(bench, hosts)
    placed = [notice for notice in bench.notices if notice.kind == "large-flow"]
    assert placed and "400.0 Mbit/s" in placed[0].text


def test_a_flow_goes_round_what_others_put_on_links(of13):
    _, hosts, traffic = of13
    one, other = hosts[0], hosts[-1]
    traffic.flows[one, other] = 0.2 * CAPACITY_BPS
    before = traffic.way(one, other)
    traffic.others_bps[before[1]] = 0.7 * CAPACITY_BPS
    traffic.run(4)
    assert before[1] not in traffic.way(one, other)
    assert busiest(traffic) == 0.7 * CAPACITY_BPS


def test_a_small_flow_stays_and_a_flow_that_ends_leaves_no_entry(of13):
    bench, hosts, traffic = of13
    flows = colliding(traffic, hosts)
    for flow in flows:
        traffic.flows[flow] = 0.09 * CAPACITY_BPS
    edits = bench.edits
    traffic.run(6)
    assert bench.edits == edits
    traffic.flows = dict.fromkeys(flows, 0.4 * CAPACITY_BPS)
    traffic.run(5)
    assert bench.pinned
    assert bench.pool_used[-1] == FlowsUsed(1)
    traffic.flows.clear()
    traffic.run(4)
    assert not bench.pinned
    assert not [key for table in bench.rules.values() for key in table if key.priority == PRIORITY_PINNED_FLOW]
    assert bench.pool_used[-1] == FlowsUsed(0)
    assert bench.core.counters["large-flow-over"] == 1


def test_flows_and_aliases_share_the_pool(of13):
    bench, hosts, traffic = of13
    for flow in colliding(traffic, hosts):
        traffic.flows[flow] = 0.4 * CAPACITY_BPS
    bench.feed(AliasesUsed(POOL))
    traffic.run(5)
    assert not bench.pinned
    assert bench.core.counters["large-flow-pool-empty"] > 0
    assert len([notice for notice in bench.notices if notice.kind == "large-flow-pool-empty"]) == 1
    bench.feed(AliasesUsed(POOL - 1))
    traffic.run(2)
    assert bench.pinned


def test_off_nothing_is_read_and_not_one_entry_differs(make_bench, make_host, make_fattree):
    bench, hosts, traffic = made(make_bench, make_host, make_fattree, pool=0)
    for flow in colliding(traffic, hosts):
        traffic.flows[flow] = 0.4 * CAPACITY_BPS
    edits, rules = bench.edits, bench.host_rules()
    traffic.run(5)
    assert (bench.edits, bench.host_rules()) == (edits, rules)
    bench.feed(UnicastChanged(UnicastSettings(large_flows=POOL)))
    traffic.run(5)
    assert bench.pinned
    bench.feed(UnicastChanged(UnicastSettings()))
    bench.run(0.1)
    assert bench.host_rules() == rules


def test_nothing_is_decided_by_links_that_nobody_has_measured(of13):
    bench, hosts, traffic = of13
    for flow in colliding(traffic, hosts):
        traffic.flows[flow] = 0.4 * CAPACITY_BPS
    traffic.run(5, is_measured=False)
    assert not bench.pinned


def pinned_way(traffic: Traffic, hosts: list[Any]) -> tuple[tuple[Any, Any], list[tuple[int, int]]]:
    """Have a flow take a way of its own; return the flow and the way."""
    flows = colliding(traffic, hosts)
    for flow in flows:
        traffic.flows[flow] = 0.4 * CAPACITY_BPS
    traffic.run(5)
    (flow,) = (flow for flow in flows if traffic.bench.pinned_flow(flow[0].dpid, flow[1].mac) is not None)
    return flow, traffic.way(*flow)


@pytest.mark.parametrize("hop", [0, 1, 2])
def test_a_link_of_a_way_that_fails_takes_its_entries_along(world, hop):
    bench, hosts, traffic = world
    flow, way = pinned_way(traffic, hosts)
    end = way[hop]
    bench.link((*end, *bench.other_end[end]), up=False)
    bench.run(1.0)
    assert bench.pinned_flow(flow[0].dpid, flow[1].mac) is None
    assert not bench.pinned
    assert_reachable(bench, hosts)


def test_a_host_that_moves_takes_its_flows_along(of13):
    bench, hosts, traffic = of13
    flow, _ = pinned_way(traffic, hosts)
    elsewhere = next(host for host in hosts if host.dpid not in (flow[0].dpid, flow[1].dpid))
    bench.feed(flow[1]._replace(dpid=elsewhere.dpid, port_no=elsewhere.port_no))
    bench.run(1.0)
    assert not bench.pinned
    moved = bench.trace((flow[0].dpid, flow[0].port_no), flow[1].mac)
    assert moved == [(elsewhere.dpid, elsewhere.port_no)]


def test_a_switch_that_is_away_is_on_no_way_and_is_left_aside_where_it_misleads(of13):
    """What it holds goes on to a link that fails: whatever came by it goes round it then."""
    bench, hosts, traffic = of13
    _, way = pinned_way(traffic, hosts)
    (dpid, port_no) = way[1]
    held = [key for at, key in bench.pinned if at == dpid]
    assert held, "the aggregation switch has a choice"
    bench.lose(dpid)
    bench.run(1.0)
    assert {at for at, _ in bench.pinned} == {dpid}
    bench.link((dpid, port_no, *bench.other_end[dpid, port_no]), up=False)
    bench.run(1.0)
    assert_reachable(bench, hosts)
    bench.regain(dpid)
    bench.run(1.0)
    assert not bench.pinned
    assert_reachable(bench, hosts)


def test_entries_of_ways_from_before_a_restart_go_at_once(of13, make_bench):
    bench, hosts, traffic = of13
    pinned_way(traffic, hosts)
    again = make_bench(UnicastSettings(large_flows=POOL))
    again.rules = bench.rules
    cables = [(*a, *b) for a, b in bench.other_end.items() if a < b]
    again.build(cables, [(host.dpid, host.port_no) for host in hosts])
    again.run(1.0)
    left = {key.priority for table in again.rules.values() for key in table}
    assert not left & {PRIORITY_PINNED_FLOW, PRIORITY_PINNED_WAY}


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_whatever_fails_while_flows_move_nothing_circles(data, make_bench, make_host, make_fattree):
    bench, hosts, traffic = made(make_bench, make_host, make_fattree)
    sample = hosts[::5]
    bench.on_edits = lambda: [bench.trace((one.dpid, one.port_no), other.mac) for one in sample for other in hosts]
    pairs = data.draw(st.lists(st.tuples(st.sampled_from(hosts), st.sampled_from(hosts)), max_size=6))
    cables = [(*a, *b) for a, b in bench.other_end.items() if a < b]
    for one, other in pairs:
        if one.dpid != other.dpid:
            traffic.flows[one, other] = 0.5 * CAPACITY_BPS
    traffic.run(3)
    down = data.draw(st.lists(st.sampled_from(cables), unique=True, max_size=3))
    for cable in down:
        bench.link(cable, up=False)
    bench.run(0.5)
    for cable in data.draw(st.permutations(down)):
        bench.link(cable)
    bench.run(0.5)
    traffic.run(2)
    bench.on_edits = lambda: None
    assert_reachable(bench, hosts)


def test_the_policy_says_whether_and_how_many():
    def loaded(aliases: str) -> Policy:
        return load_policy(f"version: 1\ndefault: allow\naliases:\n{aliases}")

    assert of_policy(loaded("  mode: dynamic\n")).large_flows == 0
    assert of_policy(loaded("  mode: dynamic\n  unicast: true\n  pool: 5\n")).large_flows == 5
    static = loaded("  mode: static\n  unicast: true\n")
    assert of_policy(static).large_flows == 0
    assert [(warning.line, warning.field) for warning in static.warnings] == [(5, "aliases.unicast")]


def test_on_many_flows_is_decided_in_several_turns(make_bench, make_host, make_fattree):
    """In a fabric of k = 8 each flow to another pod has 16 ways: a turn has room for those of 16 flows."""
    bench = make_bench(UnicastSettings(large_flows=64))
    cables, ends = make_fattree(8)
    bench.build(cables, ends)
    hosts = [make_host(number, *end) for number, end in enumerate(ends, 1)]
    populate(bench, hosts)
    traffic = Traffic(bench, cables)
    here = [host for host in hosts if host.dpid == hosts[0].dpid]
    others = [host for host in hosts if host.dpid // 100 != here[0].dpid // 100]
    for number, other in enumerate(others[:40]):
        traffic.flows[here[number % len(here)], other] = 0.2 * CAPACITY_BPS
    placed, perform = [0], bench.perform

    def counted(effects: Any) -> None:
        placed.append(bench.core.counters["large-flow"] - sum(placed))
        perform(effects)

    bench.perform = counted
    traffic.run(4)
    assert sum(placed) > 16
    assert max(placed) <= WAYS_PER_TURN / 16
