"""What misses at a table by each choice of the groups that are in it."""

from __future__ import annotations

from itertools import product
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.simulation.table_choices import CHOICES
from controller.simulation.table_trace import Trace, TraceResult, run_trace


def run(policy: str, groups: list[int], table: int, *, step_s: float = 1.0, **options: float) -> TraceResult:
    trace = Trace([step_s * position for position in range(len(groups))], groups)
    return run_trace(trace, table, CHOICES[policy](trace, table, Random(1)), **options)


def misses_with_foresight(groups: list[int], table: int) -> int:
    """Return the least misses of any choice, each miss coming in or staying out, by trying all."""
    states = {frozenset[int](): 0}
    for group in groups:
        following: dict[frozenset[int], int] = {}
        for inside, misses in states.items():
            after = [inside]
            if group not in inside:
                misses += 1
                after += [inside | {group}] if len(inside) < table else []
                after += [inside - {left} | {group} for left in inside]
            for one in after:
                following[one] = min(misses, following.get(one, misses))
        states = following
    return min(states.values())


@given(st.lists(st.integers(0, 4), min_size=1, max_size=14), st.integers(1, 3))
def test_belady_is_the_least_that_any_choice_can_miss(groups: list[int], table: int):
    least = misses_with_foresight(groups, table)
    assert run("belady", groups, table, latency_s=0.0).misses == least
    for policy in CHOICES:
        assert run(policy, groups, table, latency_s=0.0).misses >= least


@given(st.lists(st.integers(0, 9), max_size=60), st.integers(1, 5), st.sampled_from(sorted(CHOICES)))
def test_no_choice_has_more_in_than_the_table_holds(groups: list[int], table: int, policy: str):
    found = run(policy, groups, table)
    assert found.packets == len(groups)
    assert found.max_resident <= table
    assert len(set(groups)) <= found.misses
    assert found.swaps_out <= found.swaps_in <= found.misses


@pytest.mark.parametrize(("policy", "misses"), [("lru", 6), ("fifo", 7)])
def test_textbook_cases(policy: str, misses: int):
    assert run(policy, [1, 2, 1, 3, 1, 2, 3, 1], 2).misses == misses


def test_packets_miss_until_the_entry_is_there():
    assert run("lru", [1] * 10, 1, step_s=0.004, latency_s=0.01).misses == 3
    assert run("lru", [1] * 10, 1, step_s=0.004, latency_s=0.0).misses == 1


def test_what_comes_before_the_warm_up_is_not_counted():
    found = run("lru", [1, 2, 1, 2, 1, 2], 1, warmup_s=3.0)
    assert found == TraceResult(packets=3, misses=3, swaps_in=3, swaps_out=3, readings=0, max_resident=1)


def test_the_controller_reads_counters_each_two_seconds_at_rest():
    found = run("default", [1] * 1000, 4, step_s=0.1)
    assert found.misses == 1
    assert found.readings == pytest.approx(50, abs=1)


def test_the_controller_keeps_groups_that_send_and_lets_others_by():
    steady = [1, 2, 3] * 200
    once = [
        group
        for triple, other in zip(zip(*[iter(steady)] * 3, strict=True), range(10, 210), strict=True)
        for group in (*triple, other)
    ]
    found = run("default", once, 3, step_s=0.05, warmup_s=5.0)
    lru = run("lru", once, 3, step_s=0.05, warmup_s=5.0)
    others = sum(group >= 10 for group in once[100:])
    assert found.misses == others, "only what sends once misses"
    assert lru.misses == lru.packets, "each packet drives out a group that sends on"


def test_the_same_seed_gives_the_same_result():
    groups = [int(one) for one in "".join(map("".join, product("0123", repeat=4)))]
    for policy in CHOICES:
        assert run(policy, groups, 2) == run(policy, groups, 2)
