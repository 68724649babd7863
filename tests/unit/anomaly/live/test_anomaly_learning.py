from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from controller.anomaly.live import AnomalyCore
from controller.anomaly.live_learning import Judgement, Learning
from controller.anomaly.live_metrics import PORT_METRICS
from controller.anomaly.live_state import all_changed, changes, restore
from controller.config.anomaly_settings import Anomaly

Floats = NDArray[np.float64]

MEMBERS = 8
CARRIES_MORE = 3
WINDOW = 12
LOAD = next(index for index, metric in enumerate(PORT_METRICS) if metric.name == "tx_utilisation_pct")
ERRORS = next(index for index, metric in enumerate(PORT_METRICS) if metric.name == "errors_per_s")
PEERS_ALONE = 100_000


def settings(least_own_windows: int) -> Anomaly:
    return Anomaly(window_samples=WINDOW, shift_samples=WINDOW, least_own_windows=least_own_windows)


def window(rng: np.random.Generator, spread: float, extra: float = 8.0) -> Floats:
    """Values of `MEMBERS` ports, of which one always carries `extra` more than the others."""
    values = np.full((len(PORT_METRICS), MEMBERS, WINDOW), np.nan)
    values[LOAD] = 30 + spread * rng.standard_normal((MEMBERS, WINDOW))
    values[LOAD, CARRIES_MORE] += extra
    return values


def scores(learning: Learning, values: Floats) -> Floats:
    return judgement(learning, values).overall


def by_metric(learning: Learning, values: Floats) -> Floats:
    return judgement(learning, values).by_metric


def judgement(learning: Learning, values: Floats) -> Judgement:
    judging = learning.judge("peers", PORT_METRICS, np.arange(values.shape[1]), values)
    while True:
        try:
            next(judging)
        except StopIteration as end:
            found: Judgement = end.value
            return found


def learnt(least_own_windows: int, windows: int, seed: int = 1) -> Learning:
    """A group watched while its ports vary much, so that the one that carries more stands out by few bins."""
    learning = Learning(settings(least_own_windows))
    learning.fit(MEMBERS)
    rng = np.random.default_rng(seed)
    for _ in range(windows):
        scores(learning, window(rng, 8.0))
    return learning


def at_night(learning: Learning, extra: float = 8.0) -> Floats:
    """Scores once all ports vary little: what stood out by few bins does so by many."""
    return scores(learning, window(np.random.default_rng(99), 0.5, extra))


def test_a_port_that_is_as_it_always_was_is_not_suspected_once_its_peers_are_closer_together():
    assert at_night(learnt(PEERS_ALONE, 60))[CARRIES_MORE] > 1
    assert at_night(learnt(48, 60))[CARRIES_MORE] <= 1


def test_a_port_that_left_its_peers_and_its_own_past_is_suspected_and_the_others_are_not():
    found = at_night(learnt(48, 60), extra=50.0)
    assert np.flatnonzero(found > 1).tolist() == [CARRIES_MORE]


@pytest.mark.parametrize(("windows", "suspected"), [(47, True), (48, False)])
def test_a_past_that_is_too_short_is_no_witness(windows: int, suspected: bool):
    assert bool(at_night(learnt(48, windows))[CARRIES_MORE] > 1) is suspected


def test_a_port_that_always_had_errors_is_named_whatever_its_past():
    learning = Learning(settings(6))
    learning.fit(MEMBERS)
    rng = np.random.default_rng(2)
    for _ in range(60):
        values = window(rng, 8.0, 0.0)
        values[ERRORS] = 0.0
        values[ERRORS, 5] = 4.0
        found = scores(learning, values)
    assert np.flatnonzero(found > 1).tolist() == [5]


def test_own_history_switched_off_leaves_the_peers_alone():
    learning = learnt(48, 60)
    learning.configure(Anomaly(window_samples=WINDOW, shift_samples=WINDOW, own_history=False))
    assert at_night(learning)[CARRIES_MORE] > 1


@pytest.mark.parametrize("own_windows", [PEERS_ALONE, 6])
def test_the_margin_of_loads_holds_for_loads_alone(own_windows: int):
    def judged(margin: float, load_margin: float) -> Floats:
        given = replace(settings(own_windows), margin=margin, load_margin=load_margin)
        learning = Learning(given)
        learning.fit(MEMBERS)
        rng = np.random.default_rng(3)
        for _ in range(40):
            values = window(rng, 4.0, 0.0)
            values[ERRORS] = 0.0
            scores(learning, values)
        values[LOAD, 1] += 60.0
        values[ERRORS, 5] = 4.0
        return by_metric(learning, values)

    plain = judged(1.0, 1.0)
    assert plain[1, LOAD] > 1 and plain[5, ERRORS] > 1
    of_loads, of_all = judged(1.0, 2.0), judged(2.0, 1.0)
    assert (of_loads[1, LOAD], of_loads[5, ERRORS]) == pytest.approx((plain[1, LOAD] / 2, plain[5, ERRORS]))
    assert (of_all[1, LOAD], of_all[5, ERRORS]) == pytest.approx((plain[1, LOAD] / 2, plain[5, ERRORS] / 2))


def test_the_own_past_outlasts_a_restart():
    former, later = (AnomalyCore(settings(48), 15.0) for _ in range(2))
    rng = np.random.default_rng(1)
    for port_no in range(1, MEMBERS + 1):
        former.members.groups[former.add_member((1, port_no))] = "peers"
    for _ in range(60):
        scores(former.learning, window(rng, 8.0))
    all_changed(former)
    assert restore(later, changes(former, MEMBERS)) == MEMBERS
    assert at_night(later.learning)[CARRIES_MORE] <= 1
    assert at_night(later.learning, extra=50.0)[CARRIES_MORE] > 1


@pytest.mark.parametrize("members", [3, 4, 5])
def test_one_far_off_does_not_hide_itself_in_the_bins_of_a_group_of_few(members: int):
    learning = Learning(settings(48))
    learning.fit(members)
    rng = np.random.default_rng(4)
    for _ in range(60):
        scores(learning, loads(rng, members))
    values = loads(rng, members)
    values[LOAD, 1] *= 3
    assert np.flatnonzero(scores(learning, values) > 2).tolist() == [1]


def loads(rng: np.random.Generator, members: int) -> Floats:
    """Values of ports that carry the same, but for noise."""
    values = np.full((len(PORT_METRICS), members, WINDOW), np.nan)
    values[LOAD] = 20 + 4 * rng.standard_normal((members, WINDOW))
    return values


def of_a_moved_load(members: int, silent: int, windows: int = 60) -> list[int]:
    """Return who is suspected where the first ports fall silent and the others carry what these carried."""
    learning = Learning(settings(48))
    learning.fit(members)
    rng = np.random.default_rng(5)
    for _ in range(windows):
        scores(learning, loads(rng, members))
    values = loads(rng, members)
    values[LOAD, silent:] += 20 * silent / (members - silent)
    values[LOAD, :silent] = 0.0
    found: list[int] = np.flatnonzero(by_metric(learning, values)[:, LOAD] > 1).tolist()
    return found


@pytest.mark.parametrize(("members", "silent"), [(2, 1), (3, 1), (3, 2), (4, 2), (4, 3), (5, 4), (6, 4)])
def test_ports_that_lost_their_load_are_suspected_and_not_those_that_took_it_over(members: int, silent: int):
    assert of_a_moved_load(members, silent) == list(range(silent))


def test_which_way_load_went_counts_from_when_the_own_past_is_a_witness():
    assert of_a_moved_load(4, 3, windows=47) == [3]


def test_a_load_that_all_ports_share_is_no_fault_of_those_that_carry_less_of_it():
    learning = Learning(settings(48))
    learning.fit(4)
    rng = np.random.default_rng(6)
    for _ in range(60):
        scores(learning, loads(rng, 4))
    values = loads(rng, 4)
    values[LOAD] += 30
    assert not (by_metric(learning, values)[:, LOAD] > 1).any()
