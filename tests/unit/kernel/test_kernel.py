"""Deadlines, token buckets, spread moments and limited notices."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from controller.effects import Notice
from controller.kernel.deadlines import Deadlines
from controller.kernel.notices import NOTICE_INTERVAL_S, NOTICED_BOUND, NoticeLimiter, PortNotices
from controller.kernel.spread import fraction
from controller.kernel.token_bucket import TokenBucket


@given(st.lists(st.tuples(st.integers(0, 9), st.one_of(st.none(), st.floats(0, 100)))), st.floats(0, 100))
def test_deadlines_come_due_in_order_and_once(steps, now):
    deadlines: Deadlines[int] = Deadlines()
    expected: dict[int, float] = {}
    for key, at in steps:
        if at is None:
            deadlines.cancel(key)
            expected.pop(key, None)
        else:
            deadlines.set(key, at)
            expected[key] = at
    assert deadlines.next() == min(expected.values(), default=None)
    due = list(deadlines.due(now))
    assert sorted(due) == sorted(key for key, at in expected.items() if at <= now)
    assert [expected[key] for key in due] == sorted(expected[key] for key in due)
    assert list(deadlines.due(now)) == []
    assert len(deadlines) == len(expected) - len(due)


def test_a_deadline_set_for_now_while_others_come_due_waits_for_the_next_time():
    deadlines: Deadlines[str] = Deadlines()
    deadlines.set("a", 1.0)
    for key in deadlines.due(1.0):
        deadlines.set(key, 1.0)
    assert deadlines.next() == 1.0


def test_deadlines_set_again_and_again_take_no_more_room():
    deadlines: Deadlines[int] = Deadlines()
    for n in range(100_000):
        deadlines.set(n % 10, float(n))
    assert len(deadlines) == 10
    assert len(deadlines._heap) < 200


def test_a_bucket_gives_its_burst_and_then_its_rate():
    bucket = TokenBucket(5, 2.0, 10.0)
    assert [bucket.take(10.0) for _ in range(6)] == [True] * 5 + [False]
    assert bucket.wait_s(10.0) == 0.5
    assert bucket.take(10.0 + bucket.wait_s(10.0))
    assert not bucket.take(10.5)
    assert not bucket.take(11.0, 3)
    assert bucket.take(12.0, 3)


def test_fractions_are_spread_and_stable():
    values = [fraction(1, n) for n in range(1000)]
    assert values == [fraction(1, n) for n in range(1000)]
    assert all(0 <= value < 1 for value in values)
    assert 0.45 < sum(values) / 1000 < 0.55


def test_a_notice_of_a_port_is_told_once_in_an_interval_and_counted_each_time():
    told: list[Notice] = []
    notices = PortNotices(told.append)
    notices.counted("flaps", (1, 2), "flaps", 0.0)
    notices.counted("flaps", (1, 2), "flaps", NOTICE_INTERVAL_S - 0.1)
    notices.counted("flaps", (1, 3), "flaps", 1.0)
    notices.counted("lost", (1, 0), "is lost", 1.0)
    notices.counted("flaps", (1, 2), "flaps", NOTICE_INTERVAL_S)
    assert [notice.text for notice in told] == [
        "Port 1:2 flaps.",
        "Port 1:3 flaps.",
        "Switch 1 is lost.",
        "Port 1:2 flaps.",
    ]
    assert told[0].fields == (("dpid", 1), ("port_no", 2))
    assert notices.counters == {"flaps": 4, "lost": 1}


def test_what_a_limiter_remembers_is_bounded():
    limiter = NoticeLimiter(60.0)
    assert all(limiter.passes(key, 0.0) for key in range(NOTICED_BOUND))
    assert not limiter.passes(0, 1.0)
    assert limiter.passes("one more", 1.0)
    assert limiter.passes(0, 1.0)
