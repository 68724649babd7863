"""What one turn of the unicast core is: it follows what changed, some at a time, and not the size of the fabric."""

from __future__ import annotations

from itertools import pairwise

import pytest

from controller.events import DeadlineReached
from controller.unicast.changed_hosts import HOSTS_AT_ONCE, PATHS_AT_ONCE
from turns import calls_of

EDITS_AT_ONCE = 4 * HOSTS_AT_ONCE + 400
"""Entries that one turn may ask for: those of some hosts, and by label at some switches."""


@pytest.fixture
def in_fattree(make_bench, make_fattree):
    """Return a fabric with as many ports per switch as asked for, and its host ports."""

    def make(k):
        cables, ends = make_fattree(k)
        bench = make_bench()
        bench.build(cables, ends)
        return bench, ends

    return make


def desired_count(bench):
    return sum(len(bench.core.entries.desired(dpid)) for dpid in bench.rules)


def turns(bench):
    """Yield after each turn that is due now."""
    bench.now = max(bench.now, bench.core.next_deadline())
    while (due_s := bench.core.next_deadline()) is not None and due_s <= bench.now:
        bench.feed(DeadlineReached())
        yield


def test_hosts_that_announce_themselves_together_have_their_entries_some_at_a_time(in_fattree, make_host):
    bench, ends = in_fattree(6)
    hosts = [make_host(number, *ends[number % len(ends)]) for number in range(600)]
    for host in hosts:
        bench.feed(host)
    counts = [desired_count(bench)]
    for _ in turns(bench):
        counts.append(desired_count(bench))
    assert len(counts) > 600 / HOSTS_AT_ONCE
    assert max(later - before for before, later in pairwise(counts)) <= EDITS_AT_ONCE
    bench.run(1.0)
    for host in hosts:
        assert bench.trace_onward(ends[0][0], host.mac) == [(host.dpid, host.port_no)]


def test_switches_that_have_their_first_hosts_are_few_in_one_turn(in_fattree, make_host):
    bench, ends = in_fattree(8)
    first = dict(reversed(ends))
    for number, end in enumerate(first.items()):
        bench.feed(make_host(number, *end))
    known, most = 0, PATHS_AT_ONCE // len(bench.rules)
    for _ in turns(bench):
        now_known = sum(bench.core.location_address(make_host(number, 0, 0).mac) is not None for number in range(32))
        assert now_known - known <= most
        known = now_known
    assert known == len(first) == 32


def test_a_host_found_soon_after_a_start_costs_the_same_in_a_larger_fabric(in_fattree, make_host):
    def calls(k):
        bench, ends = in_fattree(k)
        bench.feed(make_host(1, *ends[0]))
        bench.run(0.5)
        bench.feed(make_host(2, *ends[0]))
        bench.now = max(bench.now, bench.core.next_deadline())
        return calls_of(lambda: bench.feed(DeadlineReached()))

    assert calls(8) <= calls(4) + 20
