"""Simulated pools: they follow their load, repeat by their seed, and learners fare on them as is published."""

from __future__ import annotations

from random import Random
from statistics import median

import numpy as np
import pytest

from controller.scaling.learners import make_learner
from controller.scaling.model import PoolBounds, PoolReading, ScalingAdvice
from controller.scaling.rules import SameAsYesterday
from controller.simulation.scaling import LoadTrace, SimulatedTier, diurnal, run_scaling, tournament


class Fixed:
    """Advises nothing."""

    def advise(self, reading: PoolReading) -> ScalingAdvice | None:
        return None


class Greedy:
    """Advises many more at each interval."""

    def advise(self, reading: PoolReading) -> ScalingAdvice | None:
        return ScalingAdvice(0, 100, "it is tried")


@pytest.mark.parametrize("make", [diurnal, tournament])
def test_traces_repeat_by_their_seed_and_their_period(make) -> None:
    trace = make(7)
    assert trace == make(7) != make(8)
    assert len(trace.loads) % trace.period == 0
    loads = np.array(trace.loads).reshape(-1, trace.period)
    assert np.corrcoef(loads[0], loads[1])[0, 1] > 0.9
    assert loads.max() > 3 * loads.min()


def test_lateness_grows_with_usage_and_work_that_is_left_waits_for_the_next_interval() -> None:
    generator = np.random.default_rng(1)
    late = [SimulatedTier(4, 1.0).interval(load, generator).lateness for load in (1.0, 3.0, 3.8, 6.0)]
    assert late == sorted(late) and late[0] < 0.05 < 1 < late[3]
    tier = SimulatedTier(4, 1.0)
    over = tier.interval(6.0, generator)
    after = tier.interval(3.5, generator)
    assert over.errors and over.usage == pytest.approx(1.5, rel=0.2)
    assert after.lateness > 2 * SimulatedTier(4, 1.0).interval(3.5, generator).lateness


def test_an_advice_holds_from_the_next_interval_on_and_bounds_hold_always() -> None:
    trace = LoadTrace((1.0,) * 5, 5)
    assert run_scaling(trace, Fixed()).members == (2,) * 5
    assert run_scaling(trace, Greedy(), bounds=PoolBounds(1, 6)).members == (2, 6, 6, 6, 6)


def test_tiers_have_their_own_members_and_one_that_gets_more_work_has_more_of_them() -> None:
    run = run_scaling(diurnal(3, days=2), SameAsYesterday(), weights=(1.0, 0.3))
    assert run.met_pct(288) > 98
    assert run.mean_members(288) > 1.2 * run_scaling(diurnal(3, days=2), SameAsYesterday()).mean_members(288)


@pytest.mark.parametrize("make", [diurnal, tournament])
def test_the_seasonal_learner_meets_the_slo_from_the_second_repetition_on_with_few_members(make) -> None:
    met, ratios = [], []
    for seed in range(1000, 1005):
        trace = make(seed)
        ours = run_scaling(trace, make_learner("seasonal-q", Random(seed).random), seed)
        ample = run_scaling(trace, SameAsYesterday(0.75), seed)
        met.append(ours.met_pct(trace.period))
        ratios.append(ours.mean_members(trace.period) / ample.mean_members(trace.period))
    assert median(met) >= 99.5
    assert median(ratios) < 0.95, "a fixed head-room that is ample takes more"


def test_the_articles_learner_becomes_its_heuristics_and_learns_without_them() -> None:
    first, later = [], []
    for seed in range(1000, 1004):
        trace = diurnal(seed, days=6)
        with_them = run_scaling(trace, make_learner("vscale", Random(seed).random), seed)
        assert with_them.met_pct() == pytest.approx(
            run_scaling(trace, make_learner("heuristics", Random(seed).random), seed).met_pct(), abs=2
        )
        without = run_scaling(trace, make_learner("vscale-no-heuristics", Random(seed).random), seed)
        first.append(without.met_pct(0, trace.period))
        later.append(without.met_pct(trace.period))
    assert median(later) > median(first) + 5
