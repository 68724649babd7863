"""The integral of the rates is what was really sent, up to declared gaps, whatever befalls samples and counters."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.performance.batch import Discontinuity, SampleRates, Samples
from controller.performance.compare import FASTEST_BPS, JUMP_SLACK, SLACK_BYTES
from controller.performance.counters import COUNTER_COUNT, UNSUPPORTED, Counter
from port_samples import one_port

WATCHED = [Counter.RX_BYTES, Counter.TX_BYTES, Counter.RX_PACKETS, Counter.TX_PACKETS]
COLUMNS = [counter.column for counter in WATCHED]
INTERVAL_S = 10
MOST_BYTES = 1_000_000_000
"""In an interval, at 1 Gbit/s; below what the port carries."""

OLD_PACKETS = 1 << 40
SHOWING_PACKETS = 4_000_000
"""From so many on a reset shows: what is counted until the next sample is less, and no wrap explains the fall."""


@dataclass
class Device:
    """A port with counters of 32 or 64 bits, and what it really sent."""

    bits: int
    tells_time: bool
    start: int
    now_s: float = 10_000.0
    born_s: float = 0.0
    sent: list[int] = field(default_factory=lambda: [0] * 4)
    shown: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.shown = [self.start, self.start // 2, OLD_PACKETS, OLD_PACKETS]

    def send(self, octets: int) -> None:
        amounts = (octets, octets // 3, octets // 1000, octets // 3000)
        for place, exact in enumerate(amounts):
            amount = exact
            size = 1 << (self.bits if place < 2 else 64)
            if (self.shown[place] + amount) % size == UNSUPPORTED:
                amount += 1
            self.sent[place] += amount
            self.shown[place] = (self.shown[place] + amount) % size

    def reset(self) -> None:
        self.shown = [0] * 4

    def recreate(self) -> None:
        self.reset()
        self.born_s = self.now_s

    def sample(self) -> tuple[float, float, list[int], list[int]]:
        return (
            self.now_s,
            self.now_s - self.born_s if self.tells_time else math.nan,
            list(self.shown),
            list(self.sent),
        )


ACTIONS = st.sampled_from(["poll"] * 8 + ["lose", "repeat", "hold", "reset", "recreate", "set back", "set on"])


@st.composite
def stories(draw: st.DrawFn) -> tuple[Device, list[tuple[str, int]]]:
    bits = draw(st.sampled_from([32, 64]))
    top = (1 << bits) - 1
    start = draw(st.one_of(st.integers(1, top - 1), st.integers(top - 3 * MOST_BYTES, top - 1)))
    steps = draw(st.lists(st.tuples(ACTIONS, st.integers(0, MOST_BYTES)), min_size=3, max_size=40))
    return Device(bits, draw(st.booleans()), start), steps


def told(device: Device, steps: list[tuple[str, int]]) -> list[tuple[float, float, list[int], list[int]]]:
    """The samples as they arrive: received time, duration, counters, really sent."""
    arrived = [device.sample()]
    held: list[tuple[float, float, list[int], list[int]]] = []
    offset_s, lost = 0.0, 0
    for action, octets in steps:
        device.now_s += INTERVAL_S
        device.send(octets)
        if action in ("reset", "recreate") and device.shown[2] > SHOWING_PACKETS:
            getattr(device, action)()
            device.now_s += 1
            device.send(octets // 50)
        elif action in ("set back", "set on") and device.tells_time:
            offset_s += 3600 if action == "set on" else -3600
        at_s, *rest = device.sample()
        sample = (at_s + offset_s, *rest)
        if action == "lose" and lost < 2:
            # More would let a 32-bit counter wrap without a trace.
            lost += 1
            continue
        if action == "hold" and not held:
            held.append(sample)
            continue
        lost = 0
        arrived.append(sample)
        if action == "repeat":
            arrived.append(sample)
        if held:
            # Held back on the way: it is received after the next one, and is older.
            late = held.pop()
            arrived.append((late[0] if not device.tells_time else sample[0] + 0.1, *late[1:]))
    return arrived


def as_samples(arrived: list[tuple[float, float, list[int], list[int]]]) -> Samples:
    counters = np.zeros((len(arrived), COUNTER_COUNT), np.uint64)
    counters[:, COLUMNS] = [[*shown] for _, _, shown, _ in arrived]
    return Samples(
        np.zeros(len(arrived), np.int32),
        np.array([at_s for at_s, *_ in arrived]),
        np.array([duration_s for _, duration_s, *_ in arrived]),
        counters,
    )


def check_integral(rates: SampleRates, arrived: list[tuple[float, float, list[int], list[int]]]) -> None:
    last: list[int] | None = None
    for index, (_, _, _, sent) in enumerate(arrived):
        code = Discontinuity(int(rates.discontinuity[index]))
        if code.ignored:
            assert np.isnan(rates.per_s[index]).all()
            continue
        if rates.gap[index]:
            assert code is not Discontinuity.NONE, "a gap is declared"
            assert np.isnan(rates.per_s[index]).all()
        else:
            assert last is not None
            counted = rates.per_s[index, COLUMNS] * rates.interval_s[index]
            known = ~np.isnan(counted)
            really = np.array(sent, float) - np.array(last, float)
            assert counted[known] == pytest.approx(really[known], abs=0.5), (index, code)
            assert known.all() or code is Discontinuity.WRAPS_UNKNOWN
        last = sent


@settings(max_examples=250)
@given(stories(), st.booleans())
def test_the_integral_is_what_was_sent_up_to_declared_gaps(
    story: tuple[Device, list[tuple[str, int]]], at_once: bool
) -> None:
    arrived = told(*story)
    samples = as_samples(arrived)
    table = one_port()
    if at_once:
        rates = table.update(samples)
    else:
        rates = SampleRates.concatenate([table.update(samples.take(slice(i, i + 1))) for i in range(len(samples))])
    check_integral(rates, arrived)


@settings(max_examples=60)
@given(stories())
def test_without_disturbance_nothing_is_left_out(story: tuple[Device, list[tuple[str, int]]]) -> None:
    device, steps = story
    arrived = told(device, [("poll", octets) for _, octets in steps])
    rates = one_port().update(as_samples(arrived))
    assert set(rates.discontinuity[1:].tolist()) <= {
        Discontinuity.NONE,
        Discontinuity.WRAP_32,
        Discontinuity.WRAP_64,
    }
    counted = (rates.per_s[1:, COLUMNS] * rates.interval_s[1:, None]).sum(axis=0)
    assert counted == pytest.approx(np.array(device.sent, float), rel=1e-9, abs=1)


@settings(max_examples=60)
@given(stories())
def test_only_what_happened_is_declared(story: tuple[Device, list[tuple[str, int]]]) -> None:
    """A gap needs a cause: no story without resets and stepped clocks has one after its first sample."""
    device, steps = story
    grave = ("reset", "recreate", "set back", "set on")
    # A port that counts nothing while a sample is late leaves no trace of which is older.
    quiet = [("poll" if action in grave else action, octets + 1) for action, octets in steps]
    rates = one_port().update(as_samples(told(device, quiet)))
    assert not rates.gap[1:].any()


ANY_COUNTER = st.one_of(
    st.integers(0, UNSUPPORTED), st.sampled_from([0, 1, (1 << 32) - 1, 1 << 32, UNSUPPORTED - 1, UNSUPPORTED])
)
ANY_TIME = st.one_of(st.floats(0, 100), st.floats(allow_nan=False, min_value=-1e12, max_value=1e12))
ANY_DURATION = st.one_of(st.just(math.nan), st.floats(0, 100), st.floats(-1e12, 1e12), st.just(math.inf))


@settings(max_examples=150)
@given(
    st.lists(
        st.tuples(ANY_TIME, ANY_DURATION, st.lists(ANY_COUNTER, min_size=4, max_size=4)), min_size=1, max_size=12
    ),
    st.sampled_from([0.0, 1e9]),
    st.booleans(),
)
def test_whatever_comes_no_rate_is_negative_infinite_or_more_than_a_port_can_carry(
    found: list[tuple[float, float, list[int]]], speed_bps: float, at_once: bool
) -> None:
    samples = as_samples([(at_s, duration_s, shown, []) for at_s, duration_s, shown in found])
    table = one_port(speed_bps, interval_s=10)
    parts = [samples] if at_once else [samples.take(slice(i, i + 1)) for i in range(len(samples))]
    rates = SampleRates.concatenate([table.update(part) for part in parts])
    known = ~np.isnan(rates.per_s)
    assert (rates.per_s[known] >= 0).all() and np.isfinite(rates.per_s[known]).all()
    interval_s = np.broadcast_to(rates.interval_s[:, None], known.shape)
    assert (interval_s[known] > 0).all()
    fastest_bps = speed_bps or FASTEST_BPS
    counted = rates.per_s[known] * interval_s[known]
    most = interval_s[known] * fastest_bps / 8 * JUMP_SLACK + SLACK_BYTES
    assert (counted <= most * (1 + 1e-9)).all()
    assert set(rates.discontinuity.tolist()) <= set(Discontinuity)
