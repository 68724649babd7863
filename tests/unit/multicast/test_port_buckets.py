"""Token buckets per port let as much pass as one that counts its tokens."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from controller.multicast.port_buckets import PortBuckets

RATES, BURSTS = (0.5, 10.0, 1000.0), (1.0, 3.5, 20.0)
TICKS_PER_S = 1 << 14
"""Moments are told by what binary fractions hold exactly."""


@given(
    st.sampled_from(RATES),
    st.sampled_from(BURSTS),
    st.lists(st.integers(0, 3 * TICKS_PER_S) | st.just(0), max_size=60),
)
def test_as_many_pass_as_there_are_tokens(rate, burst, gaps):
    buckets = PortBuckets(rate, burst)
    tokens, now_ticks = Fraction(burst), 1000 * TICKS_PER_S
    for gap in gaps:
        now_ticks += gap
        tokens = min(Fraction(burst), tokens + Fraction(rate) * gap / TICKS_PER_S)
        passes = buckets.take(1, 2, now_ticks / TICKS_PER_S)
        if abs(tokens - 1) > Fraction(2, 1000):  # else the bucket may round either way
            assert passes is (tokens >= 1)
        tokens -= passes


def test_a_burst_passes_whole_and_not_one_more():
    for rate in RATES:
        for burst in (1, 20, 200):
            buckets = PortBuckets(rate, burst)
            assert sum(buckets.take(1, 2, 123456.789) for _ in range(burst + 5)) == burst


def test_ports_have_buckets_of_their_own_and_are_forgotten():
    buckets = PortBuckets(1.0, 1.0)
    assert buckets.take(1, 2, 0.0)
    assert buckets.take(1, 3, 0.0)
    assert not buckets.take(1, 2, 0.5)
    buckets.forget(1, 2)
    assert buckets.take(1, 2, 0.5)
