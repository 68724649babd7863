"""Advice about a pool of monitors: its reason, when nothing is said or done, and what outlasts the process."""

from __future__ import annotations

import json
from random import Random

import pytest

from controller.performance.poll_load import LATENESS_BOUNDS, PollLoad, late_of_99
from controller.scaling.advised import Advised, advice_text, advised_document, read_advised
from controller.scaling.advisor import MOST_PACE, Advisor, AdvisorSettings, PoolInterval
from controller.scaling.learners import LEARNERS
from controller.scaling.loads import MemberLoad, member_load, read_member_load
from controller.scaling.model import PoolBounds
from controller.scaling.period import period_of
from controller.scaling.table import TABLE_BYTES, AdvisorTable, TableBroken, read_table
from controller.simulation.scaling import diurnal

EARLY_BIN = 20


def load(number: int, usage: float, run: str = "run", **more: object) -> MemberLoad:
    of = MemberLoad(number, 300, run, True, 1, usage, usage / 2, 0.0, 1000, 0, 0, {EARLY_BIN: 1000})
    return of._replace(**more)


def interval(number: int, *usages: float, drained: frozenset[str] = frozenset(), **more: object) -> PoolInterval:
    loads = {f"m{at}": load(number, usage, f"run-{at}") for at, usage in enumerate(usages, 1)}
    return PoolInterval(number, loads, frozenset(loads), drained)._replace(**more)


def advisor(learner: str = "yesterday", *, applies: bool = True, least: int = 2, limit: int = 16) -> Advisor:
    settings = AdvisorSettings(300, learner, bounds=PoolBounds(least, limit), applies=applies)
    return Advisor(settings, Random(1).random)


def test_a_load_that_three_are_too_few_for_has_its_advice_with_state_rule_lateness_and_cost() -> None:
    said = advisor(applies=False).take(interval(7, 0.9, 0.95, 1.0))
    assert (said.monitors, said.wanted, said.load, said.is_ordered) == (3, 4, pytest.approx(2.85), False)
    assert said.scarcest == "processor" and said.is_met and said.cost_h == 24
    assert said.expected_lateness is not None and said.lateness is not None
    assert said.expected_lateness < said.lateness == pytest.approx(LATENESS_BOUNDS[EARLY_BIN], abs=1e-4)
    text = advice_text(said)
    for part in ("4 monitors in the place of 3", "load 2.85", "processor 95% taken", "yesterday", "24 monitor hours"):
        assert part in text


def test_every_learner_says_what_it_would_have_within_the_bounds() -> None:
    said = advisor(limit=4).take(interval(7, 2.0, 2.0, 2.0))
    assert set(said.others) == set(LEARNERS)
    assert said.others["yesterday"] == said.others["proportional"] == 4
    assert {each["learner"] for each in advised_document(said)["learners"]} == set(LEARNERS)


def test_what_was_skipped_counts_as_work() -> None:
    assert load(1, 0.9, skipped=1000).load == pytest.approx(1.8)
    assert load(1, 0.9, polls=0, skipped=1000).load == pytest.approx(9.0)


def test_nothing_goes_below_the_fewest() -> None:
    said = advisor(least=3).take(interval(7, 0.1, 0.1, 0.1))
    assert (said.wanted, said.is_ordered, said.withheld) == (3, False, "There are to be at least 3 monitors.")
    assert advisor(least=2).take(interval(7, 0.1, 0.1, 0.1)).wanted == 2


def test_a_pool_that_has_lost_more_than_the_fewest_gets_them_back() -> None:
    """However little there is to do: one that ended is missed when the next one ends."""
    said = advisor(least=4).take(interval(7, 0.1, 0.1, 0.1))
    assert (said.wanted, said.is_ordered) == (4, True)
    assert said.rule == "there are to be at least 4 monitors"
    assert advisor(least=4).take(interval(7, 0.99, 1.0, 1.0)).wanted >= 4


def test_a_pool_that_has_more_than_the_most_is_to_lose_them() -> None:
    said = advisor(limit=3).take(interval(7, 0.8, 0.8, 0.8, 0.8, 0.8))
    assert (said.wanted, said.rule, said.cost_h) == (3, "there are to be at most 3 monitors", -48)
    assert advisor(limit=4).take(interval(7, 0.1, 0.1, 0.1, 0.1, 0.1)).wanted == 2, "fewer yet, where fewer do"


def test_what_is_known_of_intervals_of_another_length_is_left_behind_and_what_was_learnt_is_not() -> None:
    one = advisor("seasonal-q")
    for number in range(100):
        one.take(interval(number, 0.9, 0.9))
    text = one.table()
    settings = AdvisorSettings(60, "seasonal-q")
    other = json.loads(Advisor(settings, Random(1).random, read_table(text)).table())
    assert (other["loads"], other["acted"], other["interval_s"]) == ([], None, 60)
    assert other["learnt"]["seasonal-q"] == json.loads(text)["learnt"]["seasonal-q"] != []
    same = AdvisorSettings(300, "seasonal-q")
    assert Advisor(same, Random(1).random, read_table(text)).table() == text
    del (before := json.loads(text))["interval_s"]
    assert len(read_table(json.dumps(before)).loads) == 100, "a table of before says no length"


def test_nothing_is_done_twice_within_two_intervals() -> None:
    one = advisor()
    ordered = [one.take(interval(number, 0.9, 0.95, 1.0)) for number in range(7, 11)]
    assert [each.is_ordered for each in ordered] == [True, False, True, False]
    assert ordered[1].withheld == "Something was done in the interval before already."


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"disturbed": "m9 is taking over."}, "m9 is taking over."),
        ({"loads": {}}, "m1, m2, m3 told nothing of the interval."),
        ({"at_work": frozenset()}, "No monitor is at work."),
        ({"pace": 2}, "The time between polls changed in the interval."),
    ],
)
def test_nothing_is_advised_done_or_learnt_of_a_gap(change: dict[str, object], why: str) -> None:
    one = advisor("vscale")
    one.take(interval(7, 0.9, 0.95, 1.0))
    before = json.loads(one.table())
    said = one.take(interval(8, 0.9, 0.95, 1.0, **change))
    assert (said.gap, said.wanted, said.is_ordered, dict(said.others)) == (why, None, False, {})
    assert json.loads(one.table()) == before
    assert advice_text(said) == f"Nothing is advised: {why}"


def test_a_clock_that_is_ahead_or_behind_is_named_and_nothing_is_advised_until_it_is_not() -> None:
    one = advisor()
    early = interval(7, 0.5, 0.5, 0.5, early=frozenset({"m2", "m9"}))
    are = "that of the monitor that divides: have them set alike."
    assert one.take(early).gap == f"The clock of m2 is ahead of {are}"
    whole = {number: interval(number, 0.5, 0.5, 0.5).loads for number in range(8, 12)}
    ahead = {"m1": whole[8]["m1"], "m2": whole[9]["m2"], "m3": whole[9]["m3"]}
    assert one.take(interval(8, 0.5, 0.5, 0.5, loads=ahead)).gap == f"The clocks of m2, m3 are ahead of {are}"
    assert one.take(interval(9, 0.5, 0.5, 0.5)).gap == ""
    behind = {**whole[10], "m3": whole[9]["m3"]}
    assert one.take(interval(10, 0.5, 0.5, 0.5, loads=behind)).gap == "m3 told nothing of the interval."
    behind = {**whole[11], "m3": whole[10]["m3"]}
    assert one.take(interval(11, 0.5, 0.5, 0.5, loads=behind)).gap == f"The clock of m3 is behind {are}"


def test_nothing_is_said_of_an_interval_in_which_members_changed() -> None:
    one = advisor()
    one.take(interval(7, 0.5, 0.5, 0.5))
    loads = {**interval(8, 0.5, 0.5).loads, "m3": load(8, 0.5, "another run")}
    assert one.take(interval(8, 0.5, 0.5, 0.5, loads=loads)).gap == "Members of the pool changed in the interval."
    loads = {**interval(9, 0.5, 0.5).loads, "m3": load(9, 0.5, "another run", is_whole=False)}
    assert one.take(interval(9, 0.5, 0.5, 0.5, loads=loads)).gap == "m3 came in the interval."


def test_a_monitor_that_is_busy_beside_the_leader_is_to_be_moved() -> None:
    said = advisor().take(interval(7, 0.6, 0.3, 0.6, beside_leader=frozenset({"m1", "m2"})))
    assert said.placement.startswith("m1 runs on the machine of the controller that leads and takes 60%")
    assert said.placement in advice_text(said)
    assert advisor().take(interval(7, 0.6, 0.3, 0.6)).placement == ""


def test_one_that_goes_by_other_intervals_is_named() -> None:
    loads = {**interval(7, 0.5, 0.5).loads, "m3": load(70, 0.5, interval_s=30)}
    said = advisor().take(interval(7, 0.5, 0.5, 0.5, loads=loads))
    assert said.gap == "m3 goes by another scaling.interval_s than the 300 s here."


def test_the_articles_learner_learns_from_what_the_pool_has_become_across_the_change() -> None:
    one = advisor("vscale")
    one.take(interval(7, 0.9, 0.95, 1.0))
    grown = interval(8, 0.7, 0.7, 0.7, 0.7)
    assert one.take(grown).gap
    one.take(interval(9, 0.7, 0.7, 0.7, 0.7))
    ((members, *_, known),) = json.loads(one.table())["learnt"]["vscale"]
    assert (members, [each[:2] for each in known]) == ([3], [[0, 1]])


def test_polls_become_rarer_where_no_monitor_is_left_and_frequent_again_when_the_load_goes() -> None:
    one = advisor(limit=3)
    said = one.take(interval(7, 1.0, 1.0, 1.0))
    assert (said.wanted, said.wanted_pace, said.is_ordered) == (3, 2, True)
    assert "polls 2 times as far apart" in advice_text(said)

    def at_pace(number: int, pace: int, usage: float) -> Advised:
        loads = {name: each._replace(pace=pace) for name, each in interval(number, *[usage] * 3).loads.items()}
        return one.take(interval(number, *[usage] * 3, loads=loads, pace=pace))

    assert (at_pace(9, 2, 0.6).wanted_pace, at_pace(10, 2, 0.6).wanted) == (2, 3)
    assert at_pace(11, 2, 0.2).wanted_pace == 1, "frequent again before a monitor goes"
    last = at_pace(13, MOST_PACE, 1.0)
    assert (last.wanted_pace, last.is_ordered) == (MOST_PACE, False)
    assert "neither monitors nor time between polls are left" in last.rule


def test_the_load_one_period_ago_counts_once_the_normalcy_engine_knows_the_period() -> None:
    trace = diurnal(1, days=4)
    assert period_of(dict(enumerate(trace.loads)), 300) == 288
    assert period_of(dict(enumerate(trace.loads[:288])), 300) is None
    assert period_of({number: Random(number).uniform(5, 6) for number in range(1000)}, 300) is None
    loads = tuple(enumerate(trace.loads))
    settings = AdvisorSettings(300, bounds=PoolBounds(2, 64))
    one = Advisor(settings, Random(1).random, AdvisorTable(loads))
    said = one.take(interval(len(loads), 0.5, 0.5))
    assert said.period == 288
    assert said.load_before == pytest.approx(trace.loads[len(loads) + 1 - 288], abs=1e-3)


def test_what_was_learnt_is_known_to_the_next_one() -> None:
    one = advisor("seasonal-q")
    for number in range(50):
        one.take(interval(number, 0.6, 0.6))
    settings = AdvisorSettings(300, "seasonal-q", bounds=PoolBounds(2, 16), applies=True)
    table = read_table(one.table())
    assert Advisor(settings, Random(1).random, table).table() == one.table()
    assert len(table.loads) == 50 and table.met == (True,) * 50 and table.learnt["seasonal-q"][0]


def test_the_table_fits_and_has_all_of_the_chosen_one_and_the_best_of_others() -> None:
    one = advisor("vscale-literal")
    for number in range(50):
        one.take(interval(number, 0.6, 0.6))
    for name in ("vscale", "vscale-literal", "vscale-no-heuristics"):
        known = [[0, change, 0.12345678901234567] for change in (0, 1, 2, -1, -2)]
        states = [[[at], 1, 1, known] for at in range(4096)]
        one.learners[name].restore(states)
    text = one.table()
    assert len(text) <= TABLE_BYTES
    learnt = read_table(text).learnt
    assert len(learnt["vscale-literal"]) == 4096
    counts = []
    for name in ("vscale", "vscale-no-heuristics"):
        assert learnt[name] == one.learners[name].saved()[-len(learnt[name]) :], "what was learnt of latest"
        counts.append(len(learnt[name]))
    assert min(counts) > 500 and max(counts) < 1.1 * min(counts), "in equal parts"
    assert learnt["seasonal-q"] == one.learners["seasonal-q"].saved()
    settings = AdvisorSettings(300, "vscale-literal", bounds=PoolBounds(2, 16))
    assert json.loads(Advisor(settings, Random(1).random, read_table(text)).table())["learnt"] == learnt


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"version":2}',
        '{"version":1,"loads":[[1,NaN]],"met":[],"acted":null,"period":null,"learnt":{}}',
        '{"version":1,"loads":[],"met":[],"acted":null,"period":0,"learnt":{}}',
        "x" * (TABLE_BYTES + 1),
        "[" * 5000,
    ],
)
def test_a_table_that_makes_no_sense_is_refused(text: str) -> None:
    with pytest.raises(TableBroken):
        read_table(text)


@pytest.mark.parametrize(
    ("name", "saved"),
    [
        ("vscale", 7),
        ("vscale", [[[1], 1]]),
        ("vscale", [[[1], 1, 1, [[0, 1, float("inf")]]]]),
        ("vscale", [[[1], 1, 1, [[1, 1, 0.5]]]]),
        ("vscale", [[[1], 1, 1, [[0, 7, 0.5]]]]),
        ("seasonal-q", []),
        ("seasonal-q", [[[1, 0, 0, 9, 1.0, 1.0]], []]),
        ("seasonal-q", [[[1, 0, 0, 1, 1.0, -1.0]], []]),
        ("seasonal-q", [[], [[1, 0, 0, -4]]]),
    ],
)
def test_what_a_learner_cannot_have_learnt_is_refused(name: str, saved: object) -> None:
    with pytest.raises(TableBroken, match=name):
        Advisor(AdvisorSettings(300), Random(1).random, AdvisorTable(learnt={name: saved}))


def test_loads_and_advice_are_read_as_they_were_written_and_nonsense_is_none() -> None:
    polls = PollLoad()
    for lateness in (0.0, 0.01, 0.3, 100.0):
        polls.answered(lateness)
    polls.skipped, polls.busy_s = 3, 12.0
    told = member_load(7, 300, "run", True, 2, polls.reading(), 30.0, 300.0, 64, 0.25)
    assert read_member_load(told.text()) == told
    assert (told.cpu, told.places, told.backlog, told.polls, told.skipped) == (0.1, 0.0006, 0.25, 4, 3)
    said = advisor().take(interval(7, 0.9, 0.95, 1.0))
    assert read_advised(said.text()) == said
    for text in (
        "",
        "[]",
        "{}",
        "null",
        told.text().replace("0.1", "-0.1"),
        told.text().replace('"pace":2', '"pace":0'),
    ):
        assert read_member_load(text) is None
    for text in ("", "[]", "{}", "null", said.text().replace('"number":7', '"number":"7"')):
        assert read_advised(text) is None


def test_99_of_100_polls_are_within_the_lateness_and_one_is_not() -> None:
    assert late_of_99({}) == 0
    assert late_of_99({3: 99, 30: 1}) == LATENESS_BOUNDS[3]
    assert late_of_99({3: 98, 30: 2}) == LATENESS_BOUNDS[30]
    assert late_of_99({len(LATENESS_BOUNDS): 5}) == 2 * LATENESS_BOUNDS[-1]
