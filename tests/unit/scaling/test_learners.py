"""Learners and rules: what they advise of a pool, what they learn from, and what they leave alone."""

from __future__ import annotations

from random import Random

import pytest

from controller.scaling.heuristics import ScalingHeuristics
from controller.scaling.learners import DEFAULT_LEARNER, LEARNERS, make_learner
from controller.scaling.model import PoolBounds, PoolReading, ScalingAdvice, TierReading, members_for, reward_of
from controller.scaling.rules import ProportionalUsage, SameAsYesterday, ThresholdVotes
from controller.scaling.seasonal import SeasonalQ
from controller.scaling.values import STATES_BOUND, ActionValues
from controller.scaling.vscale import VScale


def tier(members: int, usage: float, lateness: float = 0.1, errors: float = 0.0) -> TierReading:
    return TierReading(members, members * usage, (usage,) * members, lateness, errors)


def reading(number: int, *tiers: TierReading, load_next: tuple[float, ...] | None = None) -> PoolReading:
    return PoolReading(number, tiers, 0.25, load_next)


def test_the_slo_is_met_where_tiers_together_are_in_time_and_nothing_is_given_up() -> None:
    assert reading(0, tier(1, 0.5, 0.12), tier(1, 0.5, 0.13)).is_met
    assert not reading(0, tier(1, 0.5, 0.12), tier(1, 0.5, 0.14)).is_met
    assert not reading(0, tier(1, 0.5, 0.1, errors=1)).is_met


def test_the_reward_is_greatest_where_the_scarcest_resource_is_at_gamma_and_falls_on_both_sides() -> None:
    rewards = [reward_of(reading(0, tier(2, usage, 0.01)), 0.8) for usage in (0.1, 0.5, 0.8, 1.0)]
    assert max(rewards) == rewards[2] == pytest.approx(1.0)
    assert rewards[0] < 0 < rewards[1] < rewards[3] < 1
    late = [reward_of(reading(0, tier(2, 0.9, lateness)), 0.8) for lateness in (0.3, 0.5, 1.0, 100.0)]
    assert late == sorted(late, reverse=True) and late[0] < -1 and late[2] == late[3] == -10


def test_members_for_a_load_keep_each_as_busy_as_is_asked_and_are_never_none() -> None:
    assert [members_for(load) for load in (0.0, 0.2, 1.0, 2.5)] == [1, 1, 1, 3]
    assert members_for(8.5, 0.85) == 10


@pytest.mark.parametrize(
    ("advised", "left"),
    [(3, 1), (1, 1), (-3, -2), (-1, -1)],
    ids=["above the limit", "up", "below least", "down"],
)
def test_bounds_leave_the_part_of_an_advice_that_they_allow(advised: int, left: int) -> None:
    bounds = PoolBounds(least=2, limit=7)
    pool = reading(0, tier(4, 0.5), tier(2, 0.5))
    held = bounds.held(pool, ScalingAdvice(0, advised, "it is tried"))
    assert held == ScalingAdvice(0, left, "it is tried")


def test_bounds_turn_an_advice_that_they_leave_nothing_of_into_none() -> None:
    pool = reading(0, tier(4, 0.5), tier(2, 0.5))
    assert PoolBounds(2, 6).held(pool, ScalingAdvice(0, 1, "")) is None
    assert PoolBounds(2, 6).held(pool, ScalingAdvice(1, -1, "")) is None
    assert PoolBounds(3, 5).held(pool, ScalingAdvice(1, -1, "")) is None, "below least already: nothing is taken away"


def test_heuristics_scale_up_above_gamma_down_below_the_rest_and_not_between() -> None:
    found = [ScalingHeuristics().advise(reading(0, tier(3, 0.5, lateness))) for lateness in (0.02, 0.1, 0.21, 0.6)]
    assert [advice and advice.change for advice in found] == [-1, None, 1, 2]


def test_heuristics_name_the_tier_by_errors_then_by_what_rises_then_by_what_is_latest() -> None:
    by_errors, by_rise, by_height = ScalingHeuristics(), ScalingHeuristics(), ScalingHeuristics()
    by_errors.advise(reading(0, tier(2, 0.5), tier(2, 0.5)))
    errors = by_errors.advise(reading(1, tier(2, 0.5, 0.3), tier(2, 0.5, errors=2)))
    by_rise.advise(reading(0, tier(2, 0.5, 0.18), tier(2, 0.5, 0.02)))
    rise = by_rise.advise(reading(1, tier(2, 0.5, 0.19), tier(2, 0.5, 0.1)))
    height = by_height.advise(reading(0, tier(2, 0.5, 0.1), tier(2, 0.5, 0.2)))
    assert [advice and advice.tier for advice in (errors, rise, height)] == [1, 1, 1]


def test_heuristics_take_from_a_tier_that_has_more_than_one_member() -> None:
    advice = ScalingHeuristics().advise(reading(0, tier(1, 0.1, 0.001), tier(2, 0.1, 0.002)))
    assert advice is not None and (advice.tier, advice.change) == (1, -1)


def test_heuristics_compare_nothing_across_a_gap() -> None:
    heuristics = ScalingHeuristics()
    heuristics.advise(reading(0, tier(2, 0.5, 0.0), tier(2, 0.5, 0.2)))
    advice = heuristics.advise(reading(9, tier(2, 0.5, 0.1), tier(2, 0.5, 0.2)))
    assert advice is not None and advice.tier == 1


def test_values_have_alpha_for_the_weight_of_what_was_known() -> None:
    values: ActionValues[str, str] = ActionValues(alpha=0.75, beta=0.5)
    values.learn("busy", "up", 1.0, "calm")
    values.learn("calm", "stay", 2.0, "calm")
    assert values.known("calm") == {"stay": 2.0}
    values.learn("busy", "up", 0.0, "calm")
    assert values.known("busy")["up"] == pytest.approx(0.75 * 1.0 + 0.25 * (0.0 + 0.5 * 2.0))
    assert values.best("busy", ["down", "up"]) == "up"


def test_values_are_bounded_and_the_state_of_longest_ago_goes() -> None:
    values: ActionValues[int, str] = ActionValues(0.5, 0.5)
    for state in range(STATES_BOUND):
        values.learn(state, "up", 1.0, state)
    values.learn(0, "up", 1.0, 0)
    values.learn(STATES_BOUND, "up", 1.0, 0)
    assert len(values) == STATES_BOUND
    assert values.known(0) and not values.known(1)


def drawn(*numbers: float):
    """Return a chance that draws these numbers, in their order."""
    waiting = list(numbers)
    return lambda: waiting.pop(0)


def test_vscale_goes_by_heuristics_where_nothing_is_known_and_as_printed_by_the_table() -> None:
    late = reading(0, tier(3, 0.9, 0.21))
    mended = VScale(drawn(0.0)).advise(late)
    assert mended is not None and mended.change == 1 and "of the SLO" in mended.reason
    assert VScale(drawn(0.0), literal=True).advise(late) is None, "nothing is known, so no action is better than none"


def test_vscale_without_heuristics_tries_what_was_not_tried_in_the_state() -> None:
    learner = VScale(drawn(0.9, 0.99), has_heuristics=False)
    advice = learner.advise(reading(0, tier(3, 0.9, 0.21)))
    assert advice is not None and "not tried" in advice.reason


def test_vscale_learns_from_what_the_pool_became_not_from_what_it_advised() -> None:
    learner = VScale(drawn(0.9, 0.9, 0.1), has_heuristics=True)
    assert learner.advise(reading(0, tier(3, 0.9, 0.21))) is not None
    learner.advise(reading(1, tier(3, 0.9, 0.21)))
    third = learner.advise(reading(2, tier(3, 0.9, 0.21)))
    assert third is None, "to change nothing was tried, and is the best that is known"


@pytest.mark.parametrize("name", LEARNERS)
def test_nothing_is_learnt_across_a_gap_and_no_learner_fails_at_one(name: str) -> None:
    learner = make_learner(name, Random(1).random)
    for number in (0, 1, 7, 8):
        learner.advise(reading(number, tier(3, 0.9, 0.3), tier(2, 0.2, 0.01)))


def test_votes_are_of_the_majority_of_members_and_leave_a_tier_calm_after_it_changed() -> None:
    votes = ThresholdVotes(0.7, 0.4)
    split = TierReading(2, 1.5, (0.9, 0.6), 0.1)
    assert votes.advise(reading(0, split)) is None
    assert votes.advise(reading(1, tier(2, 0.8))) == ScalingAdvice(0, 2, "100% of its members are above 70%")
    assert [votes.advise(reading(number, tier(4, 0.8))) for number in (2, 3, 4)] == [None] * 3
    assert votes.advise(reading(5, tier(4, 0.8))) is not None
    assert ThresholdVotes().advise(reading(0, tier(1, 0.1))) is None, "the last member stays"


def test_usage_in_proportion_tolerates_a_tenth_and_then_brings_it_to_the_target() -> None:
    rule = ProportionalUsage(0.7)
    assert rule.advise(reading(0, tier(10, 0.76))) is None
    found = [rule.advise(reading(0, tier(10, usage))) for usage in (0.84, 0.35)]
    assert [advice and advice.change for advice in found] == [2, -5]
    both = rule.advise(reading(0, tier(10, 0.35), tier(4, 1.4)))
    assert both is not None and (both.tier, both.change) == (1, 4), "who lacks members is first"


def test_yesterday_has_what_the_larger_of_both_loads_takes() -> None:
    rule = SameAsYesterday(0.85)
    ahead = rule.advise(reading(0, tier(5, 0.8), load_next=(8.5,)))
    assert ahead is not None and ahead.change == 5
    assert rule.advise(reading(0, tier(5, 0.8), load_next=(1.0,))) is None
    assert rule.advise(reading(0, tier(5, 0.85))) is None


@pytest.mark.parametrize(
    "wrong",
    [lambda: ThresholdVotes(0.4, 0.7), lambda: ProportionalUsage(0), lambda: SameAsYesterday(1.1)],
    ids=["votes", "usage", "fill"],
)
def test_parameters_that_make_no_sense_are_refused(wrong) -> None:
    with pytest.raises(ValueError, match="must be"):
        wrong()


def test_a_seasonal_learner_begins_with_two_tenths_and_takes_more_after_misses() -> None:
    learner = SeasonalQ(lambda: 0.99)
    advice = learner.advise(reading(0, tier(10, 1.0, 0.1), load_next=(10.0,)))
    assert advice is not None and advice.change == 2
    for number in range(1, 3):
        learner.advise(reading(number, tier(12, 10 / 12, 0.1), load_next=(10.0,)))
    assert learner.advise(reading(3, tier(12, 10 / 12, 0.1), load_next=(10.0,))) is None
    learner.advise(reading(4, tier(12, 10 / 12, 0.3), load_next=(10.0,)))
    after = learner.advise(reading(5, tier(12, 10 / 12, 0.1), load_next=(10.0,)))
    assert after is not None and after.change == -1, "one tenth has not missed the SLO yet"


@pytest.mark.parametrize("members", [5, 14], ids=["fewer", "more"])
def test_a_seasonal_learner_learns_nothing_from_a_pool_that_is_not_what_it_asked_for(members: int) -> None:
    learner, taught = SeasonalQ(lambda: 0.99), SeasonalQ(lambda: 0.99)
    for number in range(40):
        learner.advise(reading(number, tier(members, 10 / members, 9.0), load_next=(10.0,)))
    wanted = reading(40, tier(10, 1.0, 9.0), load_next=(10.0,))
    assert learner.advise(wanted) == taught.advise(wanted)


def test_the_default_is_a_learner() -> None:
    assert DEFAULT_LEARNER in LEARNERS
