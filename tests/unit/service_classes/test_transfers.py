"""Which trees move to which groups: every rule by a case, and what holds whatever the case."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from controller.service_classes.measures import can_spare_tree
from controller.service_classes.transfers import PACES, By, ClassState, GroupState, TransferPass, decide

NOW = 1000.0
IDLE = GroupState(3, 2, 0.0, 0.05)
HOT = GroupState(3, 1, 2.0, 0.9)


def moves(groups, classes=(), pace=PACES["steady"], **moment):
    found = decide(TransferPass(NOW, **{"free": 0, "per_group": 4, **moment}), classes, groups, pace)
    return [(each.by.value, each.donor, each.receiver) for each in found.transfers]


def missing(name: str, importance: int, *groups: str, index: float = 2.0, share: float = 0.5) -> ClassState:
    return ClassState(name, importance, index, share, groups)


def test_waiting_groups_get_free_aliases_first_then_those_of_idle_groups():
    groups = {"idle": IDLE, "hot": HOT, "hotter": HOT._replace(queue=3.0)}
    assert moves(groups, free=1) == [("efficiency", None, "hotter"), ("efficiency", "idle", "hot")]
    assert moves(groups) == [("efficiency", "idle", "hotter")]


def test_a_group_with_little_waiting_gets_a_tree_only_where_none_waits_more():
    little, less = HOT._replace(queue=0.3), HOT._replace(queue=0.25)
    assert moves({"little": little, "less": less}, free=5) == [("efficiency", None, "little")]
    assert moves({"little": little, "hot": HOT}, free=5) == [("efficiency", None, "hot")]


def test_donors_are_safe_wait_half_as_much_and_keep_a_tree():
    assert moves({"hot": HOT, "one": IDLE._replace(trees=1)}) == []
    assert moves({"hot": HOT, "full": IDLE._replace(utilisation=0.1)}) == []
    assert moves({"hot": HOT, "waits": IDLE._replace(queue=1.0)}) == [("efficiency", "waits", "hot")]
    assert moves({"hot": HOT, "waits": IDLE._replace(queue=1.01)}) == []


def test_ties_go_by_trees_and_name():
    donors = {"b": IDLE, "a": IDLE, "c": IDLE._replace(trees=3)}
    receivers = {"y": HOT, "x": HOT, "w": HOT._replace(trees=2)}
    assert moves({**donors, **receivers}) == [
        ("efficiency", "c", "x"),
        ("efficiency", "a", "y"),
        ("efficiency", "b", "w"),
    ]


def test_who_is_left_alone():
    for changes in ({"enabled": False}, {"gain": False}, {"trees": 5}, {"last_action_s": NOW - 59}):
        assert moves({"hot": HOT._replace(**changes)}, free=1) == []
    assert moves({"hot": HOT._replace(last_action_s=NOW - 60, trees=4)}, free=1) == [("efficiency", None, "hot")]
    for changes in ({"enabled": False}, {"last_action_s": NOW - 59}):
        assert moves({"hot": HOT, "idle": IDLE._replace(**changes)}) == []


def test_passes_wait_for_their_intervals():
    assert moves({"hot": HOT}, free=1, last_efficiency_s=NOW - 59) == []
    assert moves({"hot": HOT}, free=1, last_efficiency_s=NOW - 60) == [("efficiency", None, "hot")]
    classes = [missing("market", 1, "hot")]
    assert moves({"hot": HOT}, classes, free=1, last_goal_s=NOW - 29, last_efficiency_s=NOW) == []
    assert moves({"hot": HOT}, classes, free=1, last_goal_s=NOW - 30, last_efficiency_s=NOW) == [
        ("goal", None, "hot")
    ]


def test_the_goal_algorithm_takes_from_the_less_important_whatever_it_costs_them():
    busy = GroupState(5, 2, 50.0, 0.9)
    groups = {"hot": HOT._replace(importance=1), "busy": busy}
    assert moves(groups, [missing("market", 1, "hot")]) == [("goal", "busy", "hot")]
    assert moves({**groups, "busy": busy._replace(importance=1)}, [missing("market", 1, "hot")]) == []
    safe = {**groups, "busy": IDLE._replace(importance=1)}
    assert moves(safe, [missing("market", 1, "hot")]) == [("goal", "busy", "hot")]
    assert (
        moves({"hot": HOT, "busy": IDLE._replace(importance=2)}, [missing("market", 1, "hot")])[0][0] == "efficiency"
    )


def test_classes_that_meet_their_goals_or_wait_elsewhere_are_not_helped():
    moment = {"free": 1, "last_efficiency_s": NOW}
    assert moves({"hot": HOT}, [missing("a", 1, "hot", index=1.0)], **moment) == []
    assert moves({"hot": HOT}, [missing("a", 1, "hot", share=0.09)], **moment) == []
    assert moves({"hot": HOT._replace(queue=0.0)}, [missing("a", 1, "hot")], **moment) == []


def test_classes_are_helped_by_importance_then_index_and_three_groups_of_each():
    groups = {str(queue): HOT._replace(queue=float(queue)) for queue in range(1, 7)}
    many = [missing("many", 2, *groups)]
    assert [to for _, _, to in moves(groups, many, free=9)] == ["6", "5", "4"]
    several = [missing("c", 2, "1", index=9), missing("b", 1, "2"), missing("a", 1, "3", index=3)]
    assert [to for _, _, to in moves(groups, several, free=9)] == ["3", "2", "1"]


def test_one_more_important_than_the_last_one_helped_need_not_wait_as_long():
    groups = {"hot": HOT._replace(last_action_s=NOW - 30)}
    moment = {"free": 1, "last_efficiency_s": NOW}
    assert moves(groups, [missing("a", 1, "hot")], last_helped_importance=2, **moment) == [("goal", None, "hot")]
    assert moves(groups, [missing("a", 1, "hot")], last_helped_importance=1, **moment) == []
    assert moves(groups, [missing("a", 1, "hot")], **moment) == [("goal", None, "hot")]


def test_the_fast_pace_does_all_every_10_s():
    moment = {"free": 1, "last_goal_s": NOW - 10, "last_efficiency_s": NOW - 10, "pace": PACES["fast"]}
    assert moves({"hot": HOT._replace(last_action_s=NOW - 10)}, **moment) == [("efficiency", None, "hot")]
    assert moves({"hot": HOT._replace(last_action_s=NOW - 9)}, **moment) == []


def test_what_the_next_pass_must_know():
    found = decide(TransferPass(NOW, 1, 4, NOW - 5, None, 4), [missing("a", 1, "hot")], {"hot": HOT})
    assert found[1:] == (NOW - 5, NOW, 4)
    found = decide(TransferPass(NOW, 1, 4, None, 5.0, 4), [missing("a", 1, "hot")], {"hot": HOT})
    assert found[1:] == (NOW, 5.0, 1)


group_states = st.builds(
    GroupState,
    st.integers(1, 6),
    st.integers(1, 6),
    st.floats(0, 100),
    st.floats(0, 2),
    st.booleans(),
    st.booleans(),
    st.none() | st.floats(NOW - 100, NOW),
)


@given(st.data(), st.dictionaries(st.text(min_size=1, max_size=3), group_states, max_size=12))
def test_what_holds_of_every_pass(data: st.DataObject, groups: dict[str, GroupState]):
    names = st.lists(st.sampled_from(sorted(groups)), max_size=5, unique=True) if groups else st.just([])
    states = st.builds(
        ClassState, st.text(max_size=3), st.integers(1, 6), st.floats(0, 5), st.floats(0, 1), names.map(tuple)
    )
    classes = data.draw(st.lists(states, max_size=4))
    free, per_group = data.draw(st.integers(0, 5)), data.draw(st.integers(0, 6))
    pace = PACES[data.draw(st.sampled_from(sorted(PACES)))]
    found = decide(TransferPass(NOW, free, per_group), classes, groups, pace).transfers
    touched = [name for each in found for name in (each.donor, each.receiver) if name is not None]
    assert len(touched) == len(set(touched))
    assert sum(each.donor is None for each in found) <= free
    assert len({each.by for each in found}) <= 1
    for each in found:
        receiver = groups[each.receiver]
        assert receiver.enabled and receiver.gain and receiver.queue > 0 and receiver.trees - 1 < per_group
        donor = groups.get(each.donor or "")
        if donor is None:
            continue
        assert donor.enabled and donor.trees > 1
        if each.by is By.GOAL:
            assert donor.importance >= receiver.importance
        if each.by is By.EFFICIENCY or donor.importance == receiver.importance:
            assert can_spare_tree(donor.trees, donor.utilisation)
