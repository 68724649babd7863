"""Least rates follow what queues send and drop, and the goals of their classes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.queues.measures import queue_use
from controller.queues.port_queues import PortQueues
from controller.queues.port_rates import decide, managed_queues, performance
from controller.queues.settings import QueuesChanged
from controller.service_classes.clusters import REFRESH_S
from controller.service_classes.goals import Goal, GoalKind

from .conftest import BULK, CAPACITY_BPS, DESK, FEED, settings_of
from .test_queues_set_up import rates

PACKET_BYTES = 1000


def use(tx_bps, dropped_bps=0.0):
    return queue_use(tx_bps, tx_bps / 8 / PACKET_BYTES, dropped_bps / 8 / PACKET_BYTES)


def decided(classes, uses, among=None, floor_pct=1.0):
    queues = managed_queues(classes)
    return decide(queues, uses, among, CAPACITY_BPS, floor_pct)


def test_a_class_is_sure_of_what_its_goal_needs_and_the_others_of_the_floor():
    found = decided((FEED, BULK), {6: use(2e6), 1: use(8e6)})
    assert found.min_rate_bps == {0: 0, 1: 100_000, 6: 2_100_000, 7: 100_000}
    assert not found.missing_bps


def test_what_a_queue_dropped_was_offered_too():
    found = decided((FEED, BULK), {6: use(1e6, 1e6)})
    assert found.min_rate_bps[6] == 2_100_000
    uses = {6: use(1e6, 1e6)}
    assert performance(managed_queues((FEED, BULK)), uses, found.min_rate_bps, CAPACITY_BPS) == {6: float("inf")}


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


def test_only_queues_of_the_port_s_cluster_share_it():
    found = decided((FEED, DESK, BULK), {6: use(2e6), 5: use(1e3)}, among={6, 7})
    assert found.min_rate_bps == {0: 0, 1: 0, 5: 0, 6: 2_100_000, 7: 100_000}


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
    uses = {queue_id: use(bps) for queue_id, bps in loads.items()}
    found_index = performance(managed_queues(classes), uses, found.min_rate_bps, CAPACITY_BPS)
    assert all(index >= 0 for index in found_index.values())


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
    ports.measured(1, {1: {6: use(2e6), 1: use(4e6)}})
    ports.measured(2, {1: {5: use(1e6), 1: use(3e5)}})
    assert dict(ports.rates(2, 1, CAPACITY_BPS, None))[6] == 100_000
    assert ports.clusters() == []
    ports.on_deadline(REFRESH_S)
    assert ports.clusters() == [(6, 1), (5,)]
    ports.measured(2, {1: {5: use(0.2e6), 1: use(3e5)}})
    assert dict(ports.rates(2, 1, CAPACITY_BPS, None)) == {0: 0, 7: 100_000, 6: 0, 5: 220_000 + 4_000_000, 1: 0}
