"""Tables of several switches: groups are in or out whole, and who leaves frees what is missing."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from controller.overcommit.tables import GroupTables

ALWAYS = 1000.0
"""A rate of packets with which a group may come in whoever has to leave for it."""


def tables(capacities: Mapping[int, int]) -> GroupTables[str]:
    found: GroupTables[str] = GroupTables(Random(1), 100)
    for dpid, capacity in capacities.items():
        found.set_capacity(dpid, capacity)
    found.residence.read({}, 0.0)
    return found


def let_in(found: GroupTables[str], group: str, *dpids: int, now_s: float = 0.0) -> None:
    found.came_in(group, dict.fromkeys(dpids, 1), now_s)


def wants_in(found: GroupTables[str], group: str, *dpids: int, now_s: float) -> tuple[str, ...] | None:
    for number in range(20):
        found.residence.missed(group, now_s - number / ALWAYS)
    return found.find_leaving(group, dict.fromkeys(dpids, 1), now_s)


def silent_since(found: GroupTables[str], now_s: float, *groups: str) -> None:
    """Have all groups but those named send until now, and nobody named since the beginning."""
    while (at_s := found.residence.next_reading_s()) <= now_s:
        found.residence.read({group: 40 for group in found if group not in groups}, at_s)


def test_where_there_is_room_nobody_leaves():
    found = tables({1: 1, 2: 1})
    let_in(found, "a", 1)
    assert wants_in(found, "new", 2, now_s=1.0) == ()


def test_who_leaves_has_an_entry_where_one_is_missing():
    found = tables({1: 2, 2: 1, 3: 9})
    let_in(found, "elsewhere", 1, 3)
    let_in(found, "here", 2, 3)
    silent_since(found, 30.0, "elsewhere", "here")
    assert wants_in(found, "new", 2, 3, now_s=30.0) == ("here",)


def test_of_groups_that_have_ended_the_one_that_frees_both_full_tables_leaves_alone():
    found = tables({1: 2, 2: 2})
    let_in(found, "one", 1)
    let_in(found, "both", 1, 2)
    let_in(found, "other", 2)
    silent_since(found, 30.0, "one", "both", "other")
    assert wants_in(found, "new", 1, 2, now_s=30.0) == ("both",)


def test_several_leave_where_none_frees_all_that_is_missing():
    found = tables({1: 1, 2: 1})
    let_in(found, "one", 1)
    let_in(found, "other", 2)
    silent_since(found, 30.0, "one", "other")
    assert sorted(wants_in(found, "new", 1, 2, now_s=30.0) or ()) == ["one", "other"]


def test_nobody_leaves_where_one_table_is_full_of_groups_that_send_more():
    found = tables({1: 1, 2: 1})
    let_in(found, "ended", 1)
    let_in(found, "sends", 2)
    silent_since(found, 30.0, "ended")
    found.residence.missed("new", 30.0)
    assert found.find_leaving("new", {1: 1, 2: 1}, 30.0) is None
    assert found.find_leaving("new", {1: 1}, 30.0) == ("ended",), "it may leave for somebody else"


def test_a_table_that_is_found_smaller_has_more_leave():
    found = tables({1: 3})
    for group in ("a", "b", "c"):
        let_in(found, group, 1)
    silent_since(found, 30.0, "a", "b", "c")
    found.set_capacity(1, 2)
    assert len(wants_in(found, "new", 1, now_s=30.0) or ()) == 2


def test_ended_groups_leave_ahead_of_need_until_tables_have_room():
    found = tables({1: 100, 2: 1000})
    for number in range(99):
        let_in(found, f"g{number}", 1, 2)
    ended = [f"g{number}" for number in range(20)]
    silent_since(found, 60.0, *ended)
    leaving = found.take_ended()
    assert len(leaving) == 5 and set(leaving) <= set(ended)
    for group in leaving:
        found.went_out(group)
    assert found.tables[1].free == 6 and found.take_ended() == ()


class AnyOrder(RuleBasedStateMachine):
    """Whatever comes in which order, no table has more than it holds, and each group is whole."""

    @initialize(capacities=st.lists(st.integers(1, 3), min_size=4, max_size=4))
    def begin(self, capacities: list[int]) -> None:
        self.found = tables(dict(enumerate(capacities)))
        self.needs: dict[str, dict[int, int]] = {}
        self.now_s = 0.0

    @rule(
        group=st.sampled_from("abcdefgh"),
        at=st.sets(st.integers(0, 3), min_size=1),
        after_s=st.floats(0.01, 5),
    )
    def packet(self, group: str, at: set[int], after_s: float) -> None:
        self.now_s += after_s
        if group in self.found or not self.found.residence.missed(group, self.now_s):
            return
        entries = dict.fromkeys(sorted(at), 1)
        leaving = self.found.find_leaving(group, entries, self.now_s)
        if leaving is None:
            return
        assert len(set(leaving)) == len(leaving)
        short = {dpid for dpid in entries if not self.found.tables[dpid].free}
        for left in leaving:
            assert short & self.needs[left].keys(), "who frees nothing that is missing stays"
            self.found.went_out(left)
            del self.needs[left]
        self.found.came_in(group, entries, self.now_s)
        self.needs[group] = entries

    @rule(packets=st.dictionaries(st.sampled_from("abcdefgh"), st.integers(1, 50)))
    def reading(self, packets: dict[str, int]) -> None:
        self.now_s = max(self.now_s, self.found.residence.next_reading_s())
        self.found.residence.read(
            {group: count for group, count in packets.items() if group in self.found}, self.now_s
        )
        for left in self.found.take_ended():
            self.found.went_out(left)
            del self.needs[left]

    @rule(group=st.sampled_from("abcdefgh"))
    def gone(self, group: str) -> None:
        self.found.forget(group)
        self.needs.pop(group, None)

    @invariant()
    def whole(self) -> None:
        if not hasattr(self, "needs"):
            return
        assert {group: self.found.entries(group) for group in self.needs} == self.needs
        assert len(self.found) == len(self.needs)
        for dpid, table in self.found.tables.items():
            held = [group for group, entries in self.needs.items() if dpid in entries]
            assert table.used == len(held) <= table.capacity
            assert sorted(table.groups.urn) == sorted(held)


TestAnyOrder = AnyOrder.TestCase
TestAnyOrder.settings = settings(max_examples=20, stateful_step_count=40)
