"""Which silent groups are under which covering trees, and what they send in vain."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from controller.overcommit.covers import (
    GATHERED,
    LEAST_GROUPS,
    MOST_COVERS,
    CoverChoice,
    CoverNeed,
    copies_in_vain,
    gather,
    sending_part,
)

CAPACITY_BPS = 1_000_000


def tree_of(links):
    adjacent = {}
    for u, v in links:
        adjacent.setdefault(u, set()).add(v)
        adjacent.setdefault(v, set()).add(u)
    return adjacent


def star(ends):
    """Return a tree of two levels: each switch of ten behind one of its own, these behind switch 1000."""
    links = {(end, 100 + end // 10) for end in ends}
    return tree_of(links | {(inner, 1000) for _, inner in links})


class Star:
    def __init__(self):
        self.asked = []

    def __call__(self, ends, queue_id):
        self.asked.append((ends, queue_id))
        return len(self.asked), star(ends)


def chooser(spurious_pct=5):
    choice = CoverChoice(lambda _u, _v: CAPACITY_BPS)
    choice.use(spurious_pct)
    return choice


def needs(count, ends, rate_bps=10):
    return {number: CoverNeed({ends[0]: rate_bps}, frozenset(ends[1:])) for number in range(count)}


def always(_group, _number):
    return True


def in_vain_by_hand(tree, need):
    """Send a packet of each sender by what switches do, and count what reaches nobody beyond."""
    found = Counter()

    def members_beyond(u, v):
        return v in need.members or any(members_beyond(v, w) for w in tree[v] - {u})

    def sent(came_from, at, rate_bps):
        for near in tree[at] - {came_from}:
            if at in need.switches and not members_beyond(at, near):
                continue
            if not members_beyond(at, near):
                found[at, near] += rate_bps
            sent(at, near, rate_bps)

    for sender, rate_bps in need.senders.items():
        sent(None, sender, rate_bps)
    return found


def test_copies_in_vain_are_those_that_switches_would_send():
    for seed in range(300):
        dice = random.Random(seed)
        size = dice.randint(2, 12)
        tree = tree_of([(node, dice.randrange(node)) for node in range(1, size)])
        senders = {node: dice.randint(1, 9) for node in dice.sample(range(size), dice.randint(1, min(3, size)))}
        members = frozenset(dice.sample(range(size), dice.randint(0, size)))
        need = CoverNeed(senders, members)
        assert copies_in_vain(tree, need) == in_vain_by_hand(tree, need), seed


def test_no_link_is_expected_to_carry_more_in_vain_than_its_part():
    for seed in range(20):
        dice = random.Random(seed)
        choice, build = chooser(spurious_pct=1), Star()
        wanted = {
            number: CoverNeed({dice.randrange(40): dice.randint(1, 4000)}, frozenset(dice.sample(range(40), 3)))
            for number in range(200)
        }
        found = choice.choose(wanted, build, always)
        assert found == choice.under
        charges = Counter()
        for number, tree in found.items():
            charges.update(copies_in_vain(choice.trees[tree].adjacent, wanted[number]))
        assert charges == choice.charges
        assert max(charges.values(), default=0) <= CAPACITY_BPS / 100
        for number in list(found):
            choice.leave(number)
        assert not +choice.charges and not choice.under


def aged(part):
    """Return a choice of ten groups that charge a link with so much of what it may carry in vain, oldest first."""
    choice = chooser(spurious_pct=5)
    wide = {"wide": CoverNeed({1: 1}, frozenset([2, 13]))}
    narrow = {number: CoverNeed({1: round(part * CAPACITY_BPS / 200)}, frozenset([2])) for number in range(10)}
    found = choice.choose(wide | narrow, Star(), always)
    assert len(found) == 1 + len(narrow)
    return choice, narrow


def test_the_oldest_tenth_makes_room_once_a_link_carries_nine_tenths_of_what_it_may_in_vain():
    choice, narrow = aged(0.89)
    assert choice.oldest_of_full() == []
    choice, narrow = aged(0.91)
    assert choice.oldest_of_full() == [0]
    choice.note(0, narrow[0], choice.under[0])
    assert choice.oldest_of_full() == [0], "what is noted of a group makes it no younger"
    choice.leave(0)
    assert choice.oldest_of_full() == [], "eight tenths are left"
    assert choice.choose({0: narrow[0]}, Star(), always)
    assert choice.oldest_of_full() == [1], "who comes back is the youngest"


def test_where_nothing_is_carried_in_vain_nobody_makes_room():
    choice = chooser(spurious_pct=0)
    choice.choose(needs(LEAST_GROUPS, [1, 12, 23], rate_bps=10**9), Star(), always)
    assert choice.oldest_of_full() == []


def test_a_group_that_needs_all_of_a_tree_sends_nothing_in_vain():
    choice = chooser(spurious_pct=0)
    found = choice.choose(needs(LEAST_GROUPS, [1, 12, 23], rate_bps=10**9), Star(), always)
    assert len(found) == LEAST_GROUPS
    assert not choice.charges


def test_no_tree_is_made_for_a_few_groups_or_kept_for_a_few_that_may_be_under_it():
    few = needs(LEAST_GROUPS - 1, [1, 2])
    choice, build = chooser(), Star()
    assert choice.choose(few, build, always) == {}
    assert build.asked == []
    assert choice.choose(needs(2 * LEAST_GROUPS, [1, 2]), build, lambda group, _number: group < 3) == {}
    assert len(build.asked) == 1
    assert not choice.trees and not choice.under and not choice.charges
    assert choice.choose(needs(LEAST_GROUPS, [1, 2]), lambda _ends, _queue_id: None, always) == {}


def test_a_group_is_under_the_tree_with_the_fewest_switches_beside_its_own():
    choice, build = chooser(), Star()
    wide = {("wide", number): need for number, need in needs(LEAST_GROUPS, [1, 2, 3, 14, 25]).items()}
    assert set(choice.choose(wide, build, always).values()) == {1}
    tight = {("tight", number): need for number, need in needs(LEAST_GROUPS, [1, 2, 36]).items()}
    assert set(choice.choose(tight, build, always).values()) == {2}
    assert choice.choose({"both": CoverNeed({1: 1}, frozenset([2]))}, build, always) == {"both": 2}
    assert choice.choose({"other": CoverNeed({1: 1}, frozenset([2]))}, build, lambda _, tree: tree == 1) == {
        "other": 1
    }
    assert len(build.asked) == 2


def test_trees_are_gathered_for_groups_that_are_near_each_other():
    near = {number: CoverNeed({1: 1}, frozenset([2, 3])) for number in range(GATHERED - 1)}
    wanted = {"first": CoverNeed({1: 1}, frozenset([2])), "far": CoverNeed({77: 1}, frozenset([88])), **near}
    ends, gathered = gather(wanted)
    assert ends == {1, 2, 3}
    assert len(gathered) == GATHERED
    assert "far" not in gathered


def test_there_are_so_many_trees_and_no_more():
    choice, build = chooser(), Star()
    for turn in range(MOST_COVERS + 3):
        wanted = {(turn, number): need for number, need in needs(LEAST_GROUPS, [3 * turn, 3 * turn + 1]).items()}
        assert bool(choice.choose(wanted, build, always)) is (turn < MOST_COVERS)
    assert len(choice.trees) == MOST_COVERS
    for group in [group for group, tree in choice.under.items() if tree == 5]:
        choice.leave(group)
    assert list(choice.unused()) == [5]
    choice.drop(6)
    assert 6 not in choice.trees and 6 not in choice.under.values()


def test_what_a_group_sends_now_is_noted_and_told_whether_it_is_too_much():
    choice = chooser(spurious_pct=5)
    wanted = needs(LEAST_GROUPS, [1, 2, 13]) | {"narrow": CoverNeed({1: 10}, frozenset([2]))}
    choice.choose(wanted, Star(), always)
    number = choice.under["narrow"]
    before = choice.charges.copy()
    assert choice.note("narrow", CoverNeed({1: CAPACITY_BPS // 20}, frozenset([2])), number)
    assert not choice.note("narrow", CoverNeed({1: CAPACITY_BPS // 20 + 1}, frozenset([2])), number)
    assert choice.note("narrow", wanted["narrow"], number)
    assert choice.charges == before


@pytest.mark.parametrize(("silence_s", "part"), [(0, 1), (-1, 1), (3, 0.5), (297, 0.01)])
def test_the_longer_a_group_is_silent_the_less_it_is_expected_to_send(silence_s, part):
    assert sending_part(silence_s) == pytest.approx(part)


def test_groups_of_one_queue_have_a_tree_in_common_and_few_of_another_have_none():
    choice, build = chooser(), Star()
    wanted = {(number, queue): CoverNeed({1: 1}, frozenset([2]), queue)
              for number in range(LEAST_GROUPS) for queue in (None, 0, 3)}  # fmt: skip
    few = {"few": CoverNeed({1: 1}, frozenset([2]), 5)}
    found = choice.choose(wanted | few, build, always)
    assert found.keys() == wanted.keys()
    assert {queue: {found[group] for group in wanted if group[1] == queue} for queue in (None, 0, 3)} == {
        None: {1}, 0: {2}, 3: {3}}  # fmt: skip
    assert build.asked == [(frozenset([1, 2]), queue) for queue in (None, 0, 3)]
    assert choice.choose({"late": CoverNeed({1: 1}, frozenset([2]), 3)}, build, always) == {"late": 3}


def test_a_tree_that_all_leave_is_unused_and_one_that_is_dropped_charges_nothing():
    choice = chooser()
    found = choice.choose(needs(LEAST_GROUPS, [1, 2, 3]), Star(), always)
    assert list(choice.unused()) == [] and choice.charges
    for group in list(found)[1:]:
        choice.leave(group)
    assert list(choice.unused()) == []
    choice.leave(next(iter(found)))
    assert list(choice.unused()) == [1] and not choice.charges
    choice.choose(needs(LEAST_GROUPS, [1, 2, 3]), Star(), always)
    choice.drop(1)
    assert not choice.trees and not choice.under and not choice.charges
