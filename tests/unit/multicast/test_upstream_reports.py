"""What a proxy says upstream: a router that takes the reports in knows what is wanted, though one may be lost."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.membership.events import ANY_SOURCE, FilterMode, Interest
from controller.multicast.upstream_reports import Unconfirmed, answer_record, in_reports, present_record
from controller.wire.addresses import parse_ip
from controller.wire.encode import encode
from controller.wire.frame import decode
from controller.wire.packets import GroupRecord, RecordType, Report

GROUP, GROUP_V6 = parse_ip("239.1.2.3"), parse_ip("ff0e::1:2:3")
S = [parse_ip(f"10.0.0.{n}") for n in range(1, 6)]
ROBUSTNESS = 2
INTERESTS = st.one_of(
    st.none(),
    st.builds(Interest, st.just(FilterMode.EXCLUDE), st.frozensets(st.sampled_from(S))),
    st.builds(Interest, st.just(FilterMode.INCLUDE), st.frozensets(st.sampled_from(S), min_size=1)),
)


def include(*sources):
    return Interest(FilterMode.INCLUDE, frozenset(sources))


def exclude(*sources):
    return Interest(FilterMode.EXCLUDE, frozenset(sources))


def heard(before, records):
    """Return what a router holds after records, for which nobody else answers when it asks."""
    mode, sources = (FilterMode.INCLUDE, set()) if before is None else (before.mode, set(before.sources))
    for kind, _, named in records:
        if kind is RecordType.CHANGE_TO_EXCLUDE:
            mode, sources = FilterMode.EXCLUDE, set(named)
        elif kind is RecordType.CHANGE_TO_INCLUDE:
            mode, sources = FilterMode.INCLUDE, set(named)
        elif (kind is RecordType.ALLOW_NEW_SOURCES) is (mode is FilterMode.INCLUDE):
            sources |= set(named)
        else:
            sources -= set(named)
    return None if mode is FilterMode.INCLUDE and not sources else Interest(mode, frozenset(sources))


@given(st.lists(st.tuples(INTERESTS, st.integers(0, 3)), min_size=1, max_size=12), st.lists(st.booleans()))
def test_a_router_that_never_misses_two_reports_in_a_row_knows_what_is_wanted(changes, losses):
    wanted, router, unconfirmed = None, None, Unconfirmed()
    last_lost, lost = False, iter(losses)
    for number, (after, said_count) in enumerate([*changes, (changes[-1][0], ROBUSTNESS)]):
        if after != wanted:
            unconfirmed.add(wanted, after, ROBUSTNESS)
            wanted = after
        while said_count and not unconfirmed.is_done:
            records = unconfirmed.records(GROUP, wanted, False)
            last_lost = not last_lost and next(lost, False)
            router = router if last_lost else heard(router, records)
            said_count -= number < len(changes)
    assert unconfirmed.is_done
    assert router == wanted


def said(before, after, is_older=False):
    unconfirmed, found = Unconfirmed(), []
    unconfirmed.add(before, after, ROBUSTNESS)
    while not unconfirmed.is_done:
        found.append([(record.type.name, record.sources) for record in unconfirmed.records(GROUP, after, is_older)])
    assert len(found) == ROBUSTNESS
    assert found[0] == found[1]
    return found[0]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (None, ANY_SOURCE, [("CHANGE_TO_EXCLUDE", ())]),
        (ANY_SOURCE, None, [("CHANGE_TO_INCLUDE", ())]),
        (None, include(S[0]), [("ALLOW_NEW_SOURCES", (S[0],))]),
        (include(S[0]), include(S[1]), [("ALLOW_NEW_SOURCES", (S[1],)), ("BLOCK_OLD_SOURCES", (S[0],))]),
        (include(S[0]), None, [("BLOCK_OLD_SOURCES", (S[0],))]),
        (exclude(S[0]), exclude(S[1]), [("ALLOW_NEW_SOURCES", (S[0],)), ("BLOCK_OLD_SOURCES", (S[1],))]),
        (include(S[0]), exclude(S[1]), [("CHANGE_TO_EXCLUDE", (S[1],))]),
        (exclude(S[0]), include(S[1]), [("CHANGE_TO_INCLUDE", (S[1],))]),
    ],
)
def test_changes_are_said_as_rfc_9776_5_1_has_them(before, after, expected):
    assert said(before, after) == expected


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [(None, ANY_SOURCE, "MODE_IS_EXCLUDE"), (include(S[0]), None, "CHANGE_TO_INCLUDE")],
)
def test_older_versions_say_joins_and_leaves(before, after, expected):
    assert said(before, after, True) == [(expected, ())]


def test_a_change_meanwhile_is_said_as_often_as_any():
    unconfirmed = Unconfirmed()
    unconfirmed.add(None, include(S[0]), 2)
    unconfirmed.records(GROUP, include(S[0]), False)
    unconfirmed.add(include(S[0]), include(S[0], S[1]), 2)
    first = unconfirmed.records(GROUP, include(S[0], S[1]), False)
    second = unconfirmed.records(GROUP, include(S[0], S[1]), False)
    assert [record.sources for record in first] == [(S[0], S[1])]
    assert [record.sources for record in second] == [(S[1],)]
    assert unconfirmed.is_done


def test_answers_about_sources_are_those_that_are_wanted_of_them():
    assert answer_record(GROUP, include(S[0]), frozenset()) == present_record(GROUP, include(S[0]))
    assert answer_record(GROUP, include(S[0]), frozenset(S[:2])).sources == (S[0],)
    assert answer_record(GROUP, exclude(S[0]), frozenset(S[:2])).sources == (S[1],)
    assert answer_record(GROUP, include(S[0]), frozenset(S[1:2])) is None


@pytest.mark.parametrize("family", [4, 6])
def test_reports_fit_into_packets_and_lose_nothing_but_what_an_exclude_has_no_room_for(family):
    version = 3 if family == 4 else 2
    base = parse_ip("239.0.0.0" if family == 4 else "ff0e::")
    groups = [(int.from_bytes(base, "big") + n).to_bytes(len(base), "big") for n in range(1000)]
    host = parse_ip("10.0.0.0" if family == 4 else "2001:db8::")
    sources = tuple((int.from_bytes(host, "big") + n).to_bytes(len(host), "big") for n in range(1, 801))
    records = [GroupRecord(RecordType.MODE_IS_EXCLUDE, group) for group in groups]
    records.append(GroupRecord(RecordType.CHANGE_TO_INCLUDE, groups[0], sources))
    records.append(GroupRecord(RecordType.CHANGE_TO_EXCLUDE, groups[1], sources))
    mac, ip = bytes.fromhex("020000000001"), bytes(4) if family == 4 else parse_ip("fe80::1")
    found = []
    for report in in_reports(records, family, version):
        frame = encode(Report(family, version, mac, ip, report))
        assert len(frame) <= 1514
        found += decode(frame).records
    assert found[:1000] == records[:1000]
    included = [record for record in found if record.type is RecordType.CHANGE_TO_INCLUDE]
    assert len(included) == 1, "a second one would take back the sources of the first"
    allowed = [record for record in found if record.type is RecordType.ALLOW_NEW_SOURCES]
    assert sum((record.sources for record in included + allowed), ()) == sources
    (excluded,) = (record for record in found if record.type is RecordType.CHANGE_TO_EXCLUDE)
    assert excluded.sources == sources[: len(excluded.sources)]
    assert len(excluded.sources) > 80


@pytest.mark.parametrize(("family", "version", "leaves"), [(4, 2, 1), (4, 1, 0), (6, 1, 1)])
def test_older_versions_have_a_report_for_each_group_and_none_for_source_specific_ones(family, version, leaves):
    group, ssm = (GROUP, parse_ip("232.1.1.1")) if family == 4 else (GROUP_V6, parse_ip("ff3e::1:1"))
    records = [
        GroupRecord(RecordType.MODE_IS_EXCLUDE, group),
        GroupRecord(RecordType.MODE_IS_INCLUDE, ssm, (S[0],)),
        GroupRecord(RecordType.CHANGE_TO_INCLUDE, group),
    ]
    reports = list(in_reports(records, family, version))
    assert len(reports) == 1 + leaves
    assert {record.group for report in reports for record in report} == {group}
