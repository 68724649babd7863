"""Least rates follow what queues send and drop, and the goals of their classes."""

from __future__ import annotations

from dataclasses import replace
from math import ceil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.queues.managed import managed_queues
from controller.queues.measures import switch_uses
from controller.queues.port_queues import PortQueues
from controller.queues.settings import QueuesChanged
from controller.service_classes.clusters import REFRESH_S
from controller.service_classes.goals import Goal, GoalKind

from .conftest import BULK, CAPACITY_BPS, DESK, FEED, settings_of
from .test_queues_set_up import rates

PACKET_BYTES = 1000


def use(tx_bps, dropped_bps=0.0):
    return tx_bps, tx_bps / 8 / PACKET_BYTES, dropped_bps / 8 / PACKET_BYTES


def uses_of(ports):
    """Return what a reply tells, from what the queues of each port sent and dropped."""
    rows = [(port_no, queue_id, *use) for port_no, here in ports.items() for queue_id, use in here.items()]
    keys = np.array([row[:2] for row in rows], dtype=np.uint64).reshape(-1, 2)
    return switch_uses(keys, *(np.array([row[column] for row in rows], dtype=float) for column in (2, 3, 4)))


def decided(classes, uses, floor_pct=1.0):
    """Return what is known of a port after its queues sent and dropped so much."""
    ports = PortQueues(settings_of(classes=tuple(classes), mode="goal", floor_pct=floor_pct), 0.0)
    ports.rates(1, 1, CAPACITY_BPS, None)
    ports.measured(1, uses_of({1: uses}))
    (found,) = ports.reports()
    return found


def test_a_class_is_sure_of_what_its_goal_needs_and_the_others_of_the_floor():
    found = decided((FEED, BULK), {6: use(2e6), 1: use(8e6)})
    assert found.min_rate_bps == {0: 0, 1: 100_000, 6: 2_100_000, 7: 100_000}
    assert not found.missing_bps


def test_what_a_queue_dropped_was_offered_too():
    found = decided((FEED, BULK), {6: use(1e6, 1e6)})
    assert found.min_rate_bps[6] == 2_100_000
    assert found.performance == {6: float("inf")}


def test_what_does_not_fit_is_missing_from_the_less_important():
    feed = replace(FEED, goal=Goal(GoalKind.RATE, 9e6))
    found = decided((feed, DESK, BULK), {6: use(9.5e6), 5: use(0.5e6)})
    # 9.45 Mbit/s for the feed; the desk needs 0.55 Mbit/s and 8000 bits in 2 ms, and 250 kbit/s are left over floors
    assert found.min_rate_bps == {0: 0, 1: 100_000, 5: 350_000, 6: 9_450_000, 7: 100_000}
    assert found.missing_bps == {5: 4_550_000 - 350_000}


def test_classes_of_one_importance_need_together_what_the_most_demanding_needs():
    slow, fast = replace(DESK, name="slow", goal=Goal(GoalKind.DELAY, 8.0)), DESK
    assert decided((slow, fast), {5: use(1e6)}).min_rate_bps[5] == 1_100_000 + 4_000_000
    feeds = [replace(FEED, name=name, goal=Goal(GoalKind.RATE, 1e6)) for name in ("a", "b")]
    assert decided(feeds, {6: use(5e6)}).min_rate_bps[6] == 2_100_000


CLASSES = st.lists(
    st.builds(
        lambda number, importance, goal: replace(FEED, name=str(number), importance=importance, goal=goal),
        st.integers(0, 10**6),
        st.integers(1, 5),
        st.one_of(
            st.none(),
            st.builds(Goal, st.just(GoalKind.LOSS), st.floats(0, 99)),
            st.builds(Goal, st.just(GoalKind.DELAY), st.floats(0.1, 1000)),
            st.builds(Goal, st.just(GoalKind.VELOCITY), st.floats(0.1, 99)),
            st.builds(Goal, st.just(GoalKind.RATE), st.floats(1, 1e9)),
        ),
    ),
    max_size=8,
)


@given(CLASSES, st.dictionaries(st.integers(0, 7), st.floats(0, 2e7), max_size=8), st.floats(0, 12.5))
def test_rates_never_exceed_the_port_and_everyone_has_the_floor(classes, loads, floor_pct):
    found = decided(classes, {queue_id: use(bps) for queue_id, bps in loads.items()}, floor_pct=floor_pct)
    assert sum(found.min_rate_bps.values()) <= CAPACITY_BPS
    floor = int(CAPACITY_BPS * floor_pct / 100)
    assert all(rate >= floor for queue_id, rate in found.min_rate_bps.items() if queue_id)
    assert all(index >= 0 for index in found.performance.values())


class PlainPort:
    """One port by the book: a queue after the other, the most important first."""

    def __init__(self, classes, capacity_bps, floor_pct):
        self.queues, self.capacity_bps, self.floor_pct = managed_queues(classes), capacity_bps, floor_pct
        self.looked, self.before = None, {}
        floor = min(int(capacity_bps * floor_pct / 100), int(capacity_bps / len(self.queues)))
        self.rates, self.missing = {0: 0} | {each.queue_id: floor for each in self.queues}, {}

    def need(self, queue, uses):
        tx_bps, tx_pps, dropped_pps = uses.get(queue.queue_id, (0.0, 0.0, 0.0))
        packet_bytes = tx_bps / 8 / tx_pps if tx_pps else 0.0
        offered_bps = tx_bps + 8 * packet_bytes * dropped_pps
        needs = [0.0]
        for kind, value in queue.goals:
            match kind:
                case GoalKind.LOSS:
                    needs.append(1.05 * (1 - value / 100) * offered_bps)
                case GoalKind.DELAY:
                    needs.append(1.1 * offered_bps + 1000 / value * 8 * (packet_bytes or 1500))
                case GoalKind.VELOCITY:
                    needs.append(1.1 * offered_bps + value / 100 / (1 - value / 100) * self.capacity_bps)
                case GoalKind.RATE:
                    needs.append(1.05 * min(offered_bps, value))
        return (ceil(max(needs) - 1e-3) if offered_bps else 0), offered_bps

    def measured(self, uses):
        if not uses and not self.before:
            return False
        self.before = uses
        found = {each.queue_id: self.need(each, uses) for each in self.queues}
        offered = {queue_id: bps for queue_id, (_, bps) in found.items()}
        if self.looked is not None and self.looked[0] == uses.keys():
            changes = [abs(bps - self.looked[1][queue_id]) for queue_id, bps in offered.items()]
            if max(changes) < 0.01 * self.capacity_bps:
                return False
        self.looked = uses.keys(), offered
        floor = min(int(self.capacity_bps * self.floor_pct / 100), int(self.capacity_bps / len(found)))
        left, rates, self.missing = int(self.capacity_bps) - floor * len(found), {0: 0}, {}
        for queue_id, (need, _) in found.items():
            granted = min(max(0, need - floor), left)
            left -= granted
            rates[queue_id] = floor + granted
            if need > rates[queue_id]:
                self.missing[queue_id] = need - rates[queue_id]
        large = any(abs(rate - self.rates[queue_id]) >= 0.05 * self.capacity_bps for queue_id, rate in rates.items())
        short = any(
            min(1.01 * bps, rates[queue_id] / 1.01) > self.rates[queue_id] for queue_id, bps in offered.items()
        )
        if not large and not short:
            return False
        self.rates = rates
        return True


SAMPLES = st.lists(
    st.dictionaries(
        st.integers(1, 4),
        st.dictionaries(
            st.integers(0, 9),
            st.tuples(st.integers(1, 10**10), st.integers(0, 10**6), st.just(0) | st.integers(0, 10**5)),
            max_size=8,
        ),
        max_size=4,
    ),
    max_size=6,
)


@given(
    CLASSES,
    st.lists(st.sampled_from((1e7, 1e9, 1e10)) | st.integers(10**6, 10**11), min_size=1, max_size=3),
    st.sampled_from((0.0, 1.0, 30.0)),
    SAMPLES,
)
def test_all_ports_of_a_switch_together_have_what_each_has_by_itself(classes, capacities, floor_pct, samples):
    ports = PortQueues(settings_of(classes=tuple(classes), mode="goal", floor_pct=floor_pct), 0.0)
    plain = {port_no: PlainPort(classes, bps, floor_pct) for port_no, bps in enumerate(capacities, 1)}
    for sample in samples:
        for port_no, port in plain.items():
            ports.rates(1, port_no, port.capacity_bps, None)
        # queues from 8 on are somebody else's; those below that no class has count as used or not, and no further
        told = {port_no: {n: use for n, use in here.items() if n < 8} for port_no, here in sample.items()}
        wanted = [port.measured(told.get(port_no, {})) for port_no, port in plain.items()]
        assert ports.measured(1, uses_of(sample)) == any(wanted)
        for port_no, port in plain.items():
            assert ports.rates(1, port_no, port.capacity_bps, None) == port.rates
        assert ports.missing(1) == {port_no: port.missing for port_no, port in plain.items() if port.missing}


@pytest.fixture
def bench(server, make_bench):
    """One switch with one port to hosts, whose rates follow goals."""
    server.bridge("s1", 1, 1)
    bench = make_bench(settings_of(server.target, mode="goal"))
    bench.switch(1, 1)
    bench.wait(lambda: bench.answers)
    bench.poll(1, counters(), 2.0)
    return bench


def counters(feed_bytes=0, desk_bytes=0, bulk_bytes=0, feed_drops=0):
    """Counters of port 1: packets of 1000 bytes."""
    sent = {6: feed_bytes, 5: desk_bytes, 1: bulk_bytes, 0: 0, 7: 0}
    return {(1, n): (size, size // PACKET_BYTES, feed_drops if n == 6 else 0) for n, size in sent.items()}


def test_a_port_begins_with_the_floor_and_follows_what_is_measured(server, bench):
    assert set(rates(server, "s1-1").values()) == {12_000, 100_000}
    bench.poll(1, counters(feed_bytes=500_000, bulk_bytes=2_000_000), 2.0)
    bench.settle()
    assert rates(server, "s1-1") == {0: 12_000, 1: 100_000, 5: 100_000, 6: 2_100_000, 7: 100_000}
    assert len(bench.transacts) == 2
    # 4 % of the port less is not written, 5 % is; a class that is silent has the floor again
    bench.poll(1, counters(feed_bytes=900_000, bulk_bytes=4_000_000), 2.0)
    assert len(bench.transacts) == 2
    bench.poll(1, counters(feed_bytes=1_275_000, bulk_bytes=6_000_000), 2.0)
    bench.settle()
    assert rates(server, "s1-1")[6] == 1_575_000
    bench.poll(1, counters(feed_bytes=1_275_000, bulk_bytes=6_000_000), 2.0)
    bench.settle()
    assert rates(server, "s1-1")[6] == 100_000


def test_a_class_that_is_sure_of_less_than_comes_to_it_is_sure_of_more_however_little_that_is():
    """What is written follows 5 % of the port; a class that needs 2 % more than it has would lose that for good."""
    ports = PortQueues(settings_of(classes=(FEED, BULK), mode="goal"), 0.0)
    ports.rates(1, 1, CAPACITY_BPS, None)
    loads = (2e6, 2.05e6, 2.2e6, 2.15e6, 1.8e6, 1.5e6)
    sure = []
    for bps in loads:
        ports.measured(1, uses_of({1: {6: use(bps), 1: use(9e6 - bps)}}))
        sure.append(ports.rates(1, 1, CAPACITY_BPS, None)[6])
    assert sure == [2_100_000, 2_100_000, 2_310_000, 2_310_000, 2_310_000, 1_575_000]


def test_rates_that_fit_no_better_are_left_as_they_are():
    """A queue whose need the port cannot meet has what is left, which is not written anew for a trifle."""
    greedy = replace(DESK, goal=Goal(GoalKind.LOSS, 0.0))
    ports = PortQueues(settings_of(classes=(FEED, greedy), mode="goal"), 0.0)
    ports.rates(1, 1, CAPACITY_BPS, None)
    assert ports.measured(1, uses_of({1: {6: use(2.2e6), 5: use(12e6)}}))
    assert not ports.measured(1, uses_of({1: {6: use(2.15e6), 5: use(13e6)}}))
    assert ports.measured(1, uses_of({1: {6: use(2.05e6), 5: use(12e6)}}))


def test_a_restart_goes_on_with_the_rates_that_switches_have(server, bench, make_bench):
    bench.poll(1, counters(feed_bytes=500_000), 2.0)
    bench.settle()
    anew = make_bench(bench.core.settings)
    anew.switch(1, 1)
    anew.wait(lambda: anew.core.databases.servers)
    assert not anew.transacts
    assert rates(server, "s1-1")[6] == 2_100_000


def test_goals_that_cannot_be_met_are_told_of_with_port_class_and_what_is_missing(bench):
    greedy = replace(FEED, goal=Goal(GoalKind.LOSS, 0.0))
    bench.feed(QueuesChanged(bench.core.settings._replace(classes=(greedy, DESK, BULK))))
    bench.settle()
    bench.poll(1, counters(feed_bytes=2_000_000), 2.0)
    bench.poll(1, counters(feed_bytes=4_000_000, desk_bytes=250_000), 2.0)
    (notice,) = bench.told("goal-infeasible")
    # beside floors of 400 kbit/s the feed takes 8.3 Mbit/s, and of 5.0 Mbit/s that the desk needs 1.3 are left
    assert notice.text == "Port 1:1 lacks capacity for goals: 3700000 bit/s for desk."
    assert dict(notice.fields) == {"dpid": 1, "port_no": 1, "missing_bps": 3_700_000}
    bench.poll(1, counters(feed_bytes=6_000_000, desk_bytes=500_000), 2.0)
    assert len(bench.told("goal-infeasible")) == 1


def test_counters_that_go_back_say_nothing(server, bench):
    bench.poll(1, counters(feed_bytes=500_000), 2.0)
    bench.settle()
    count = len(bench.transacts)
    bench.poll(1, counters(feed_bytes=1000), 2.0)
    bench.poll(1, counters(feed_bytes=501_000), 2.0)
    bench.settle()
    assert rates(server, "s1-1")[6] == 2_100_000
    assert len(bench.transacts) - count in (0, 2), (
        "the floor meanwhile, where a queue of which nothing is known is silent"
    )


def test_with_the_floor_alone_rates_follow_nothing(server, bench):
    bench.feed(QueuesChanged(bench.core.settings._replace(mode="static")))
    bench.settle()
    bench.poll(1, counters(), 2.0)
    bench.poll(1, counters(feed_bytes=500_000), 2.0)
    assert rates(server, "s1-1")[6] == 100_000


def test_without_queues_nothing_is_polled(make_bench):
    bench = make_bench(settings_of(mode="mark"))
    bench.switch(1, 1)
    bench.advance(10.0)
    assert not bench.requests and not bench.transacts


def test_classes_share_the_ports_of_their_cluster_alone_once_that_is_known():
    ports = PortQueues(settings_of(mode="goal"), 0.0)
    for dpid in (1, 2):
        ports.rates(dpid, 1, CAPACITY_BPS, None)
    # the feed and the bulk meet at switch 1, the desk is alone at switch 2 but for a trace of the bulk
    ports.measured(1, uses_of({1: {6: use(2e6), 1: use(4e6)}}))
    ports.measured(2, uses_of({1: {5: use(1e6), 1: use(3e5)}}))
    assert dict(ports.rates(2, 1, CAPACITY_BPS, None))[6] == 100_000
    assert ports.clusters() == []
    ports.on_deadline(REFRESH_S)
    assert ports.clusters() == [(6, 1), (5,)]
    ports.measured(2, uses_of({1: {5: use(0.2e6), 1: use(3e5)}}))
    assert dict(ports.rates(2, 1, CAPACITY_BPS, None)) == {0: 0, 7: 100_000, 6: 0, 5: 220_000 + 4_000_000, 1: 0}
