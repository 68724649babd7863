"""The merged interest of a group, counted, against the merge of all interests one by one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from controller.membership.events import ANY_SOURCE, FilterMode, Interest
from controller.membership.tables import merge
from controller.multicast.merged_interest import MergedInterest

SOURCES = st.frozensets(st.sampled_from([bytes((10, 0, 0, n)) for n in range(1, 5)]))
INTERESTS = st.one_of(
    st.none(),
    st.builds(Interest, st.just(FilterMode.EXCLUDE), SOURCES),
    st.builds(Interest, st.just(FilterMode.INCLUDE), SOURCES.filter(bool)),
)


@given(st.lists(st.tuples(st.integers(0, 4), INTERESTS), max_size=30))
def test_it_is_what_all_but_one_want_together(changes):
    merged, wanted = MergedInterest(), {}
    for place, interest in changes:
        merged.replace(wanted.get(place), interest)
        wanted[place] = interest
        present = {at: held for at, held in wanted.items() if held is not None}
        assert merged.count == len(present)
        assert merged.without(None) == merge(present.values())
        for own, held in present.items():
            assert merged.without(held) == merge(other for at, other in present.items() if at != own)


def test_any_source_is_told_without_looking_at_sources():
    merged = MergedInterest()
    for _ in range(3):
        merged.replace(None, ANY_SOURCE)
    merged.replace(None, Interest(FilterMode.INCLUDE, frozenset({b"\x0a\0\0\1"})))
    assert merged.without(ANY_SOURCE) is ANY_SOURCE
