from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.anomaly.peers.diagnosis import Diagnosis, TimeSpan, diagnose
from controller.anomaly.peers.settings import Offsets, PeerSettings
from controller.anomaly.series import RawSeries, SeriesName

CHAIN = PeerSettings(interval_s=1, window_samples=12, shift_samples=6, smoothing_samples=2)
SAMPLES = 240
TRAINING = TimeSpan(0, 160)
NAMES = "abcdefgh"


def fleet(members: str = "abcde", metric: str = "await", seed: int = 1, samples: int = SAMPLES) -> list[RawSeries]:
    rng = np.random.default_rng(seed)
    at_s = np.arange(1.0, samples + 1)
    return [RawSeries(SeriesName(member, "g", metric), at_s, rng.gamma(4, 2, samples)) for member in members]


def slow(series: list[RawSeries], member: str, by: float = 30, first: int = 180) -> list[RawSeries]:
    for one in series:
        if one.name.member == member:
            one.values[first:] += by
    return series


def flagged_members(found: Diagnosis) -> set[str]:
    (group,) = found.groups
    return {group.members[index] for index in np.flatnonzero((group.scores > 1).any(axis=0))}


def named(found: Diagnosis) -> set[str]:
    return {one.member.name for one in found.faulty}


def test_the_slow_member_is_named_with_its_time_and_kind():
    series = slow(fleet(), "c") + fleet(metric="tps", seed=2)
    found = diagnose(series, CHAIN, TRAINING)
    assert named(found) == {"c"}
    (fault,) = found.faulty
    assert 180 < fault.first_s <= 198
    assert fault.last_s == found.ends_s[-1]
    assert fault.verdict == "component fault"
    assert list(fault.metrics) == ["await"]
    assert found.persistent[-1][1][0] == (max(value for value, _ in found.persistent[-1][1]), ("c", "g"))


def test_a_difference_of_load_is_told_from_a_fault():
    series = slow(fleet(), "c") + slow(fleet(metric="tps", seed=2), "c")
    assert diagnose(series, CHAIN, TRAINING).faulty[0].verdict == "load difference"


def test_without_training_standing_differences_leave_one_metric_of_many_undecisive():
    """The mean is over two of forty metrics: in one a member is out by a little, in all others all always differ."""
    metrics = [f"level{number}" for number in range(39)]
    series = [
        one._replace(values=np.full(SAMPLES, 100.0 * place))
        for metric in metrics
        for place, one in enumerate(fleet(metric=metric))
    ] + slow(fleet(metric="await"), "c", by=9, first=210)
    (group,) = diagnose(series, CHAIN).groups
    peak = np.nanmax(group.by_metric["await"][:, 2])
    assert 1 < peak < 2
    assert np.nanmax(group.scores) == pytest.approx(peak / 2)


def test_only_the_judged_metric_makes_the_score():
    series = fleet() + slow(fleet(metric="tps", seed=2), "c")
    assert named(diagnose(series, CHAIN, TRAINING)) == {"c"}
    assert named(diagnose(series, CHAIN, TRAINING, judged=frozenset(("await",)))) == set()


def idle(metric: str, level: float, changed: float, first: int, last: int) -> list[RawSeries]:
    """Members whose metric stands still, but for that of `c` in some samples."""
    series = [one._replace(values=np.full(SAMPLES, level)) for one in fleet(metric=metric)]
    series[2].values[first:last] = changed
    return series


@pytest.mark.parametrize(
    ("metric", "level", "changed", "first", "flagged"),
    [
        ("output-packet-rate", 0.0, 1.0, 200, False),
        ("output-packet-rate", 0.5, 1.5, 200, False),
        ("output-packet-rate", 0.0, 1000.0, 180, True),
        ("sessions-up", 4.0, 3.0, 200, True),
        ("rtt", 3.0, 4.0, 180, True),
    ],
)
def test_one_step_of_what_is_rounded_is_no_difference_in_single_samples(
    metric: str, level: float, changed: float, first: int, flagged: bool
):
    last = first + 1 if first == 200 else SAMPLES
    found = diagnose(idle(metric, level, changed, first, last), CHAIN, TRAINING)
    assert flagged_members(found) == ({"c"} if flagged else set())


def test_many_steps_at_once_are_a_difference_in_a_single_sample_too():
    series = idle("output-packet-rate", 0.0, 40.0, 200, 201)
    series[0].values[150] = 1.0
    assert flagged_members(diagnose(series, CHAIN, TRAINING)) == {"c"}


def of_all_kinds(seed: int) -> list[RawSeries]:
    """Metrics that are noisy, rounded, counted, idle or idle in training, with a member that is slow at the end."""
    noisy, rounded, counted, idle_ones, later = (
        slow(fleet(metric=metric, seed=seed + number, samples=2 * SAMPLES), "c", first=2 * SAMPLES - 40)
        for number, metric in enumerate(("await", "tps", "bytes", "rtt", "output-rate"))
    )
    for one in (*rounded, *later):
        np.rint(one.values, out=one.values)
    for one in counted:
        np.cumsum(one.values, out=one.values)
    for one in idle_ones:
        one.values[:] = 0
    for one in later[1:]:
        one.values[: 2 * SAMPLES - 60] = 0
    return noisy + rounded + counted + idle_ones + later


@settings(max_examples=20, deadline=None)
@given(
    seed=st.integers(1, 1000),
    powers=st.lists(st.integers(-12, 12), min_size=5, max_size=5),
    offsets=st.sampled_from(("keep", "remove")),
    is_trained=st.booleans(),
)
def test_a_metric_may_be_in_any_unit(seed: int, powers: list[int], offsets: Offsets, is_trained: bool):
    series = of_all_kinds(seed)
    units = dict(zip(dict.fromkeys(one.name.metric for one in series), powers, strict=True))
    scaled = [one._replace(values=one.values * 10.0 ** units[one.name.metric]) for one in series]
    chain = replace(CHAIN, offsets=offsets)
    training = TimeSpan(0, 2 * SAMPLES - 80) if is_trained else None
    (before,), (after,) = (diagnose(each, chain, training).groups for each in (series, scaled))
    for metric, scores in before.by_metric.items():
        assert np.allclose(scores, after.by_metric[metric], rtol=1e-6, atol=1e-9, equal_nan=True), metric
    assert np.allclose(before.scores, after.scores, rtol=1e-6, equal_nan=True)


def test_groups_are_told_apart():
    low, high = fleet("abcd"), fleet("efgh", seed=3)
    high = [one._replace(name=one.name._replace(peer_group="h"), values=one.values * 50) for one in high]
    assert named(diagnose(low + high, CHAIN, TRAINING)) == set()


def test_counters_are_compared_as_rates():
    series = [one._replace(values=np.cumsum(one.values)) for one in slow(fleet(), "b")]
    assert named(diagnose(series, CHAIN, TRAINING)) == {"b"}


def test_those_that_come_after_training_are_peers_of_each_other():
    late = [one._replace(at_s=one.at_s[190:], values=one.values[190:] * 5) for one in fleet("fgh", seed=4)]
    found = diagnose(fleet() + late, CHAIN, TRAINING)
    assert named(found) == set()
    assert [(group.peer_group, group.members) for group in found.groups] == [
        ("g", list("abcde")),
        ("new in g", list("fgh")),
    ]
    assert any("came after the training period" in note for note in found.notes)


def test_the_order_of_samples_and_copies_of_them_change_nothing():
    rng = np.random.default_rng(5)
    expected = diagnose(slow(fleet(), "d"), CHAIN, TRAINING)
    series = []
    for one in slow(fleet(), "d"):
        order = rng.permutation(np.repeat(np.arange(SAMPLES), 2))
        series.append(one._replace(at_s=one.at_s[order], values=one.values[order]))
    found = diagnose(series, CHAIN, TRAINING)
    assert np.array_equal(found.groups[0].scores, expected.groups[0].scores)
    assert {note.split(" ", 1)[1] for note in found.notes} == {
        "samples repeat a time; the last one written counts (5 series)",
        "samples are earlier than the one before them; they are put in order (5 series)",
    }


def test_a_training_period_without_a_window_is_refused():
    with pytest.raises(ValueError, match="holds no whole window of 12 s"):
        diagnose(fleet(), CHAIN, TimeSpan(0, 5))


def test_one_wrong_time_does_not_ask_for_all_memory():
    series = fleet()
    series[0].at_s[0] = -1.7e9
    with pytest.raises(ValueError, match="19676 days of 5 members at 1 s are too much at once"):
        diagnose(series, CHAIN)


def test_what_cannot_be_seen_without_training_is_said():
    def said(series: list[RawSeries], training: TimeSpan | None = None) -> list[str]:
        return [note for note in diagnose(series, CHAIN, training).notes if "had no training period" in note]

    assert said(fleet(), TRAINING) == []
    (note,) = said(fleet())
    assert note.startswith("1 group of at most 10 members") and "more than a fifth of them is not seen" in note
    (note,) = said(fleet("abcdefghijk"))
    assert note.startswith("1 group of more than 10 members") and "more than half of them is not seen" in note
    late = [one._replace(at_s=one.at_s[190:], values=one.values[190:]) for one in fleet("fgh", seed=4)]
    (note,) = said(fleet() + late, TRAINING)
    assert note.startswith("1 group of at most 10 members")


@pytest.mark.parametrize("series", [[], [RawSeries(SeriesName("a", "g", "m"), np.empty(0), np.empty(0))]])
def test_nothing_to_compare_is_said(series: list[RawSeries]):
    found = diagnose(series, CHAIN)
    assert len(found.ends_s) == 0 and found.faulty == [] and found.persistent == []
    assert "no series holds a value" in found.notes


def test_less_than_a_window_is_said():
    found = diagnose(fleet(samples=5), CHAIN)
    assert found.groups[0].scores.shape == (0, 5)
    assert any("less than one window" in note for note in found.notes)


odd_values = st.one_of(st.floats(-1e6, 1e6), st.sampled_from([np.nan, np.inf, -np.inf, 0.0, 1e300, -1e300]))
odd_series = st.builds(
    lambda member, metric, rows: RawSeries(
        SeriesName(member, "g", metric),
        np.array([at for at, _ in rows], float),
        np.array([v for _, v in rows], float),
    ),
    st.sampled_from("abc"),
    st.sampled_from(["await", "tps"]),
    st.lists(st.tuples(st.integers(0, 90), odd_values), max_size=60),
)


@settings(max_examples=60)
@given(
    st.lists(odd_series, max_size=6, unique_by=lambda one: one.name),
    st.booleans(),
    st.sampled_from(["pairs", "median", "binned"]),
    st.sampled_from(["member", "group", "pooled"]),
    st.sampled_from(["keep", "remove"]),
)
def test_whatever_the_series_hold_every_window_has_a_stated_outcome(
    series: list[RawSeries], trained: bool, form: str, scope: str, offsets: str
):
    chain = PeerSettings(
        interval_s=1, window_samples=12, shift_samples=6, smoothing_samples=2, form=form, scope=scope, offsets=offsets
    )
    try:
        found = diagnose(series, chain, TimeSpan(-10, 45) if trained else None)
    except ValueError as error:
        assert "training period holds no whole window" in str(error)
        return
    for group in found.groups:
        assert group.scores.shape == (len(found.ends_s), len(group.members))
        known = group.scores[~np.isnan(group.scores)]
        assert np.isfinite(known).all() and (known >= 0).all()
    odd = sum(int((~(np.abs(one.values) <= 1e100)).sum()) for one in series)
    assert (odd > 0) == any("without a value" in note or "infinite" in note for note in found.notes)


@pytest.mark.parametrize("taken_over", [8, 25])
def test_where_three_of_four_fail_at_once_the_fourth_is_hardly_accused(taken_over: float):
    series = []
    for number in range(12):
        for one in fleet("abcd", metric=f"bytes-{number}", seed=number):
            one.values[180:] = one.values[180:] + taken_over if one.name.member == "d" else one.values[180:] / 20
            series.append(one)
    (group,) = diagnose(series, CHAIN, TRAINING).groups
    assert group.scores[-3:, 3].max() < 2


def test_drops_that_a_port_counted_once_are_not_held_against_it_for_ever():
    series = fleet("abcde", metric="output-drops")
    for one in series:
        one.values[:] = 0
    series[2].values[190:] = 372
    found = diagnose(series, CHAIN, TRAINING)
    (group,) = found.groups
    flagged = found.ends_s[group.scores[:, 2] > 1]
    assert len(flagged)
    assert flagged.min() > 189
    assert flagged.max() < 205
    assert not (group.scores[:, [0, 1, 3, 4]] > 1).any()
