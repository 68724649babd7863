"""Windows: what they make of switches of several kinds, and what they learn, keep and forget."""

from __future__ import annotations

import pytest
from slow_switch import KINDS, Kind, keep_busy

from controller.config.edit_settings import WINDOW_POLICIES, Edits
from controller.datapath import window as window_module
from controller.datapath.window import (
    GROWTH,
    LOSS_REMEMBERED_S,
    PROBE_INTERVAL,
    START_EDITS,
    WINDOWS,
    FittedLine,
    LineWindow,
    Windows,
)

KIND = {kind.name: kind for kind in KINDS}
LOCAL = [kind for kind in KINDS if kind.delay_s <= 0.002]


def feed(window, batches, delay_s=0.002, edit_s=0.001, now=0.0):
    """Have full batches confirmed by a switch without any noise; return their sizes."""
    sizes = []
    for _ in range(batches):
        sizes.append(window.size)
        window.confirmed(window.size, delay_s + window.size * edit_s, now)
    return sizes


# What windows make of switches


@pytest.mark.parametrize("kind", LOCAL, ids=lambda kind: kind.name)
@pytest.mark.parametrize("seed", [1, 2])
def test_the_line_uses_most_of_a_switch_and_has_edits_wait_for_little(kind, seed):
    outcome = keep_busy(kind, Edits(), seed=seed)
    assert outcome.share > 0.8
    assert outcome.mean_wait_s < max(20 * kind.delay_s, 4 * 5 / kind.rate_per_s) + 0.02
    assert outcome.worst_wait_s < 1.0
    assert outcome.connections_lost == 0


@pytest.mark.parametrize("kind", LOCAL, ids=lambda kind: kind.name)
def test_no_other_window_has_edits_wait_for_less_without_giving_up_throughput(kind):
    line, aimd, fixed = (keep_busy(kind, Edits(window=policy)) for policy in WINDOW_POLICIES)
    assert line.mean_wait_s < aimd.mean_wait_s
    assert line.mean_wait_s < fixed.mean_wait_s / 4
    assert line.share > 0.85 * max(aimd.share, fixed.share)


def test_a_switch_far_away_is_kept_busy_within_the_delay_that_is_allowed():
    far = KIND["2,000 edits/s, far away"]
    steady = keep_busy(far, Edits(), slows_to=1.0)
    assert steady.share > 0.8
    assert steady.mean_wait_s < 1.5 * (0.25 + 1.5 * far.delay_s)
    assert keep_busy(far, Edits(delay_s=0.05), slows_to=1.0).mean_wait_s < steady.mean_wait_s / 2


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_switch_that_holds_few_edits_loses_its_connection_once_at_most(seed):
    small = KIND["3,000 edits/s, holds 256"]
    outcome = keep_busy(small, Edits(), seed=seed)
    assert outcome.connections_lost <= 1
    assert outcome.share > 0.65
    fixed = keep_busy(small, Edits(window="fixed"), seed=seed)
    assert fixed.connections_lost > 50 and fixed.share == 0


def test_a_switch_that_confirms_nothing_in_time_is_sent_less_until_it_does():
    slow = Kind("1 edit/s", 0.01, 1.0)
    assert keep_busy(slow, Edits(), duration_s=300, slows_to=1.0).share > 0.6


# The line


def test_the_line_is_that_of_the_switch():
    window = LineWindow(Edits())
    sizes = feed(window, 40, delay_s=0.002, edit_s=0.001)
    assert window.size == pytest.approx(9 * 2, abs=1)
    assert max(sizes) <= 24


def test_no_more_is_under_way_than_can_be_done_in_the_time_allowed():
    window = LineWindow(Edits(delay_s=0.1))
    assert feed(window, 40, delay_s=0.5, edit_s=0.001)[-1] == pytest.approx(100, abs=2)


def test_windows_grow_by_half_at_most_and_only_where_batches_were_full():
    window = LineWindow(Edits())
    before = START_EDITS
    for _ in range(8):
        assert window.size <= GROWTH * (before + 1)  # windows are not rounded before they grow
        before = window.size
        window.confirmed(window.size, 0.01, 0.0)
    assert before > 150
    idle = LineWindow(Edits())
    for _ in range(50):
        idle.confirmed(START_EDITS // 2, 0.01, 0.0)
    assert idle.size == START_EDITS


def test_now_and_then_a_batch_is_small():
    sizes = feed(LineWindow(Edits()), 4 * PROBE_INTERVAL)
    steady = sizes[PROBE_INTERVAL:]
    assert sum(size < 10 for size in steady) == 3
    assert min(steady) == pytest.approx(max(steady) / 4, abs=1)


def test_a_stall_counts_for_little():
    line = FittedLine()
    for edits in (10, 20, 40, 10, 20, 40):
        line.take(edits, 0.002 + edits * 0.001)
    line.take(20, 10.0)
    assert line.edit_s == pytest.approx(0.001, rel=0.5)
    for edits in (10, 20, 40) * 3:
        line.take(edits, 0.002 + edits * 0.001)
    assert (line.delay_s, line.edit_s) == (pytest.approx(0.005, abs=0.004), pytest.approx(0.001, rel=0.2))


@pytest.mark.parametrize("factor", [0.2, 5.0])
def test_a_switch_that_has_become_slower_or_faster_is_known_after_few_batches(factor):
    window = LineWindow(Edits())
    feed(window, 100, edit_s=0.001)
    sizes = feed(window, 30, edit_s=0.001 / factor)
    assert max(sizes[10:]) == pytest.approx(18 * factor, rel=0.4, abs=2)


def test_a_switch_that_becomes_slower_little_by_little_is_followed():
    window = LineWindow(Edits())
    feed(window, 1000, edit_s=0.001)
    edit_s = 0.001
    for _ in range(370):
        edit_s *= 1.003
        feed(window, 1, edit_s=edit_s)
    assert max(feed(window, 300, edit_s=edit_s)[280:]) == pytest.approx(9 * 0.002 / edit_s, rel=0.2)


def test_batches_that_take_no_time_do_no_harm():
    window = LineWindow(Edits())
    for _ in range(100):
        window.confirmed(window.size, 0.0, 0.0)
    assert window.size in (512, 128)


def test_a_window_comes_back_from_one_edit():
    window = LineWindow(Edits())
    feed(window, 20, delay_s=0.01, edit_s=2.0)
    assert window.size == 1
    assert max(feed(window, 60, delay_s=0.002, edit_s=0.001)[40:]) == pytest.approx(18, abs=2)


# Failures


@pytest.mark.parametrize("policy", ["line", "aimd"])
def test_a_failure_halves_the_ceiling_which_comes_back_slowly(policy):
    window = WINDOWS[policy](Edits(window=policy))
    feed(window, 200, delay_s=0.05, edit_s=1e-6)
    assert window.size == 512
    window.failed(window.size)
    assert window.size == 256
    sizes = [size for size in feed(window, 100, delay_s=0.05, edit_s=1e-6) if size > 128]
    assert max(sizes) <= 256 * window_module.RECOVERY**100
    assert sizes[-1] > 1.4 * 256
    feed(window, 100, delay_s=0.05, edit_s=1e-6)
    assert max(feed(window, 2, delay_s=0.05, edit_s=1e-6)) == 512


def test_a_batch_that_is_small_beside_the_window_says_nothing_of_it():
    window = LineWindow(Edits())
    feed(window, 40, delay_s=0.05, edit_s=1e-6)
    size = window.size
    assert size >= 128
    window.failed(3)
    window.lost(3, 0.0)
    for _ in range(1000):
        window.confirmed(1, 60.0, 0.0)
    assert window.size == size


def test_a_connection_that_ends_with_more_under_way_than_ever_bounds_the_window_for_a_day():
    window = LineWindow(Edits())
    while (size := window.size) <= 256:
        window.confirmed(size, 0.05, 0.0)
    window.lost(size, 10.0)
    assert max(feed(window, 2000, delay_s=0.05, edit_s=1e-6, now=10.0)) <= 256
    assert max(feed(window, 2000, delay_s=0.05, edit_s=1e-6, now=10.0 + LOSS_REMEMBERED_S)) == 512


def test_a_connection_that_ends_with_no_more_under_way_than_before_is_a_failure_as_any():
    window = LineWindow(Edits())
    feed(window, 200, delay_s=0.05, edit_s=1e-6)
    window.lost(512, 0.0)
    assert window.size <= 256
    assert max(feed(window, 300, delay_s=0.05, edit_s=1e-6)) == 512
    young = LineWindow(Edits())
    while (size := young.size) < 100:
        young.confirmed(size, 0.05, 0.0)
    young.confirmed(size, 0.05, 0.0)
    young.lost(size, 0.0)
    assert max(feed(young, 500, delay_s=0.05, edit_s=1e-6)) == 512


def test_a_fixed_window_learns_nothing():
    window = WINDOWS["fixed"](Edits(window="fixed", at_once=512))
    feed(window, 20, edit_s=1.0)
    window.failed(512)
    window.lost(512, 0.0)
    assert window.size == 512


def test_aimd_adds_while_batches_are_in_time_and_halves_where_one_is_late():
    window = WINDOWS["aimd"](Edits(window="aimd", delay_s=0.1))
    assert feed(window, 3, edit_s=0.001) == [16, 24, 32]
    window.confirmed(40, 0.2, 0.0)
    assert window.size == 20


# What is kept


def test_what_was_learnt_outlives_the_connection_for_as_many_switches_as_the_bound_says(monkeypatch):
    monkeypatch.setattr(window_module, "WINDOWS_BOUND", 2)
    windows = Windows(Edits())
    feed(windows.connected(1), 20)
    learnt = windows.of(1)
    windows.connected(2)
    assert windows.connected(1) is learnt
    windows.connected(3)
    assert windows.connected(1) is learnt
    windows.connected(4)
    windows.connected(5)
    assert windows.of(1) is not learnt


def test_a_switch_that_connects_again_is_sent_little_at_first_and_soon_as_much_as_it_can_do():
    windows = Windows(Edits())
    window = windows.connected(1)
    feed(window, 40, delay_s=0.02, edit_s=1e-6)
    assert window.size > 400
    assert windows.connected(1) is window
    sizes = feed(window, 12, delay_s=0.02, edit_s=1e-6)
    assert sizes[0] == START_EDITS and max(sizes) == 512
    windows.connected(1)
    assert max(feed(window, 40, delay_s=0.02, edit_s=0.005)) <= 50


def test_settings_apply_at_once_and_another_kind_of_window_begins_anew():
    windows = Windows(Edits())
    feed(windows.of(1), 40, delay_s=0.05, edit_s=1e-6)
    learnt = windows.of(1)
    windows.use(Edits(at_once=100))
    assert windows.of(1) is learnt and learnt.size <= 100
    windows.use(Edits(at_once=512))
    assert max(feed(windows.of(1), 40, delay_s=0.05, edit_s=1e-6)) == 512
    windows.use(Edits(window="fixed", at_once=300))
    assert windows.of(1).size == 300
    windows.use(Edits(window="fixed", at_once=200))
    assert windows.of(1).size == 200
