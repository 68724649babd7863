"""Slots of the store: each group has one, tenants have some kept, and the others are whose who comes first."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from controller.overcommit.slots import SlotClaim, Slots, SlotView


def taken(store, **claims):
    slots: Slots[int] = Slots()
    slots.use(store, {name: SlotClaim(*claim) for name, claim in claims.items()})
    return slots


def take(slots, tenant, count, first=0):
    """Have groups take slots as long as there is room; return how many did."""
    done = 0
    for group in range(first, first + count):
        if slots.has_room(tenant):
            slots.take((tenant, group), tenant)
            done += 1
    return done


def test_what_is_kept_for_a_tenant_nobody_else_gets():
    slots = taken(100, video=(50, 20))
    assert take(slots, "", 200) == 70
    assert take(slots, "video", 200) == 30
    assert len(slots) == 100


def test_a_tenant_gets_what_nobody_was_promised_too():
    slots = taken(100, video=(50, 20), backup=(40, 0))
    assert take(slots, "video", 200) == 60
    assert not slots.has_room("")
    assert take(slots, "backup", 200) == 40


def test_a_slot_that_is_given_back_is_whose_it_was():
    slots = taken(10, video=(4, 0))
    assert (take(slots, "", 20), take(slots, "video", 20)) == (6, 4)
    slots.give_back(("video", 0))
    assert not slots.has_room("")
    slots.give_back(("", 0))
    assert slots.has_room("")
    slots.give_back(("", 0))
    assert len(slots) == 8


def test_a_lower_reservation_has_more_kept_and_a_higher_one_none_given_back():
    slots = taken(1000, video=(50, 20))
    assert slots.of("video") == SlotView("video", 30, 0)
    for reservation, kept in ((10, 40), (30, 40), (0, 50), (50, 50)):
        slots.use(1000, {"video": SlotClaim(50, reservation)})
        assert slots.of("video").kept == kept
    slots.use(1000, {"video": SlotClaim(30, 30)})
    assert slots.of("video").kept == 30
    slots.use(1000, {})
    slots.use(1000, {"video": SlotClaim(50, 20)})
    assert slots.of("video").kept == 30, "a tenant that was not there begins anew"


def test_what_a_policy_says_of_all_goes_before_what_one_had_before():
    slots = taken(100, video=(80, 0))
    slots.use(100, {"video": SlotClaim(80, 60), "backup": SlotClaim(70, 0)})
    assert [each.kept for each in slots.views()] == [30, 70]


def test_a_smaller_store_takes_no_slot_away():
    slots = taken(100)
    assert take(slots, "", 100) == 100
    slots.use(40, {})
    assert len(slots) == 100
    for group in range(60):
        slots.give_back(("", group))
        assert not slots.has_room("") or group == 60
    slots.give_back(("", 60))
    assert slots.has_room("")


def test_groups_that_are_there_are_of_no_tenant():
    slots = taken(10, video=(4, 0))
    slots.clear(range(8))
    slots.use(10, {"video": SlotClaim(4, 0)})
    assert not slots.has_room("")
    assert take(slots, "video", 10) == 2, "there are no more than the store has"


TENANTS = ("", "a", "b", "c")
CLAIMS = st.dictionaries(st.sampled_from(TENANTS[1:]), st.tuples(st.integers(0, 6), st.integers(0, 6)))
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("take"), st.integers(0, 30), st.sampled_from(TENANTS)),
        st.tuples(st.just("give"), st.integers(0, 30), st.just("")),
        st.tuples(st.just("use"), st.integers(1, 20), CLAIMS),
    ),
    max_size=80,
)


@given(STEPS)
def test_no_more_are_taken_than_there_are_and_all_that_are_kept_are_had(steps):
    slots, held = taken(12), {}
    for what, number, which in steps:
        if what == "use":
            slots.use(number, {name: SlotClaim(*claim) for name, claim in which.items()})
        elif what == "give":
            slots.give_back(number)
            held.pop(number, None)
        elif number not in held and slots.has_room(which):
            slots.take(number, which)
            held[number] = which
            assert len(slots) <= slots.store
        views = {each.tenant: each for each in slots.views()}
        assert sum(each.kept for each in views.values()) <= slots.store
        assert len(slots) == sum(each.taken for each in views.values()) == len(held)
        for name, each in views.items():
            assert each.taken == list(held.values()).count(name)
            if each.taken < each.kept and len(slots) < slots.store:
                assert slots.has_room(name)
