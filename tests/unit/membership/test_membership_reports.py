"""Reports, leaves and expiry at the ports, as playbooks."""

from __future__ import annotations

import pytest

G = "239.1.1.1"
S1, S2, S3 = "10.1.0.1", "10.1.0.2", "10.1.0.3"


def test_a_join_is_an_interest_and_its_repetition_nothing(playbook):
    book = playbook()
    assert book.report(1, 1, "to_ex", G) == [f"1:1 {G} all but {{}}"]
    assert book.report(1, 1, "to_ex", G) == []
    assert book.report(2, 1, "is_ex", G) == []


def test_a_membership_ends_exactly_at_the_membership_interval(playbook):
    book = playbook()
    book.report(1, 1, "to_ex", G)
    book.report(50, 1, "is_ex", G)
    assert book.quiet_until(309.9) == []
    assert book.quiet_until(400) == [(310, f"1:1 {G} nothing")]
    assert not book.core.ports[1, 1].groups


def test_a_late_caller_gets_the_end_of_a_membership_before_the_new_one(playbook):
    book = playbook(querier=False)
    book.report(0, 1, "to_ex", G)
    assert book.report(260, 1, "to_ex", G) == [f"1:1 {G} nothing", f"1:1 {G} all but {{}}"]


def test_the_last_leave_is_asked_for_twice_and_ends_after_the_last_member_query_time(playbook):
    book = playbook()
    book.report(1, 1, "to_ex", G)
    assert book.report(10, 1, "to_in", G) == [f"1:1 query4 {G}"]
    assert book.report(10.2, 1, "to_in", G) == []
    assert book.quiet_until(20) == [(11, f"1:1 query4 {G}"), (12, f"1:1 {G} nothing")]


def test_an_answer_to_the_query_keeps_the_membership(playbook):
    book = playbook()
    book.report(1, 1, "to_ex", G)
    book.report(10, 1, "to_in", G)
    assert book.report(10.5, 1, "is_ex", G) == []
    assert book.quiet_until(60) == [(11, f"1:1 query4 {G} S")]
    assert book.interest(G) == "all but {}"


def test_a_leave_that_others_on_the_port_make_good_asks_nothing(playbook):
    book = playbook()
    book.report(1, 1, "to_ex", G)
    book.report(1, 2, "to_ex", G)
    assert book.report(10, 1, "to_in", G) == []
    assert [m.host.mac[-1] for m in book.core.members()] == [2]
    assert book.report(11, 2, "to_in", G) == [f"1:1 query4 {G}"]


def test_a_member_that_is_itself_leaving_does_not_make_good_for_another(playbook):
    book = playbook()
    book.report(1, 1, "to_ex", G)
    book.report(10, 1, "to_in", G)
    book.report(10.5, 2, "to_ex", G)
    assert book.report(10.7, 2, "to_in", G) == [f"1:1 query4 {G}"]
    assert book.quiet_until(20) == [(11.7, f"1:1 query4 {G}"), (12.7, f"1:1 {G} nothing")]


def test_a_leave_at_one_port_leaves_the_other_alone(playbook):
    book = playbook(ports=[(1, 1), (1, 2)], fast_leave=True)
    book.report(1, 1, "to_ex", G)
    book.report(1, 2, "to_ex", G, port=(1, 2))
    assert book.report(2, 1, "to_in", G) == [f"1:1 {G} nothing"]
    assert book.interest(G, (1, 2)) == "all but {}"


def test_a_leave_of_a_host_without_membership_is_nothing(playbook):
    book = playbook()
    book.report(1, 1, "to_ex", G)
    assert book.report(2, 9, "to_in", G) == []
    assert book.report(2, 9, "block", G, S1) == []


def test_sources_are_added_blocked_and_asked_for(playbook):
    book = playbook()
    assert book.report(1, 1, "allow", G, f"{S1} {S2}") == [f"1:1 {G} only {{{S1},{S2}}}"]
    assert book.report(2, 1, "block", G, S1) == [f"1:1 query4 {G} {{{S1}}}"]
    assert book.report(2, 1, "block", G, S1) == []
    assert book.quiet_until(10) == [(3, f"1:1 query4 {G} {{{S1}}}"), (4, f"1:1 {G} only {{{S2}}}")]


def test_a_blocked_source_that_is_reported_again_is_asked_for_with_the_suppress_flag(playbook):
    book = playbook()
    book.report(1, 1, "allow", G, f"{S1} {S2}")
    book.report(2, 1, "block", G, f"{S1} {S2}")
    book.report(2.5, 1, "is_in", G, S1)
    assert book.quiet_until(10) == [
        (3, f"1:1 query4 {G} {{{S1}}} S"),
        (3, f"1:1 query4 {G} {{{S2}}}"),
        (4, f"1:1 {G} only {{{S1}}}"),
    ]


def test_a_source_that_another_host_wants_is_given_up_without_a_question(playbook):
    book = playbook()
    book.report(1, 1, "allow", G, f"{S1} {S2}")
    book.report(1, 2, "allow", G, S1)
    assert book.report(2, 1, "block", G, S1) == []
    assert book.interest(G) == f"only {{{S1},{S2}}}"
    assert book.report(2, 2, "block", G, S1) == [f"1:1 query4 {G} {{{S1}}}"]


def test_to_exclude_asks_for_the_sources_it_gives_up(playbook):
    book = playbook()
    book.report(1, 1, "to_ex", G)
    assert book.report(2, 1, "to_ex", G, S1) == [f"1:1 query4 {G} {{{S1}}}"]
    assert book.quiet_until(10) == [(3, f"1:1 query4 {G} {{{S1}}}"), (4, f"1:1 {G} all but {{{S1}}}")]


def test_to_include_asks_for_sources_and_group(playbook):
    book = playbook()
    book.report(1, 1, "to_ex", G)
    book.report(1, 1, "allow", G, S1)
    assert book.report(2, 1, "to_in", G, S2) == [f"1:1 query4 {G} {{{S1}}}", f"1:1 query4 {G}"]
    assert book.quiet_until(10) == [
        (3, f"1:1 query4 {G} {{{S1}}}"),
        (3, f"1:1 query4 {G}"),
        (4, f"1:1 {G} only {{{S2}}}"),
    ]


@pytest.mark.parametrize(
    ("reports", "merged"),
    [
        ([("to_ex", S1), ("to_ex", f"{S1} {S2}")], f"all but {{{S1}}}"),
        ([("to_ex", f"{S1} {S2}"), ("allow", S1)], f"all but {{{S2}}}"),
        ([("to_ex", S1), ("to_ex", S2)], "all but {}"),
        ([("allow", S1), ("allow", S2)], f"only {{{S1},{S2}}}"),
        ([("allow", S1), ("to_ex", "")], "all but {}"),
    ],
)
def test_a_ports_interest_is_the_merge_of_its_hosts(playbook, reports, merged):
    for order in (reports, reports[::-1]):
        book = playbook()
        for host, (kind, sources) in enumerate(order):
            book.report(1, host, kind, G, sources)
        assert book.interest(G) == merged


def test_fast_leave_takes_the_state_at_once_where_it_is_set(playbook):
    book = playbook(ports=[(1, 1), (1, 2)], fast_leave=frozenset({(1, 1)}))
    for port in ((1, 1), (1, 2)):
        book.report(1, 1, "to_ex", G, port=port)
    assert book.report(2, 1, "to_in", G) == [f"1:1 {G} nothing"]
    assert book.report(2, 1, "to_in", G, port=(1, 2)) == [f"1:2 query4 {G}"]


def test_a_version_2_leave_is_asked_for_as_others_may_have_kept_silent(playbook):
    book = playbook()
    book.report(1, 1, "is_ex", G, version=2)
    book.report(2, 2, "is_ex", G, version=2)
    assert book.report(10, 1, "to_in", G, version=2) == [f"1:1 query4 {G}"]
    assert book.report(10.8, 2, "is_ex", G, version=2) == []
    assert book.quiet_until(200) == [(11, f"1:1 query4 {G} S")]
    assert [m.host.mac[-1] for m in book.core.members()] == [2]
    assert book.quiet_until(400) == [(270.8, f"1:1 {G} nothing")]


def test_a_version_2_host_that_went_silently_is_found_out_by_the_leave_of_another(playbook):
    book = playbook()
    book.report(1, 1, "is_ex", G, version=2)
    book.report(2, 2, "is_ex", G, version=2)
    book.report(10, 1, "to_in", G, version=2)
    assert book.quiet_until(200) == [(11, f"1:1 query4 {G}"), (12, f"1:1 {G} nothing")]


def test_one_version_2_report_refreshes_every_host_of_the_port(playbook):
    book = playbook()
    book.report(0, 1, "is_ex", G, version=2)
    book.report(0, 2, "is_ex", G, version=2)
    for now in range(100, 1001, 100):
        book.run_until(now)
        book.report(now, 1, "is_ex", G, version=2)
    assert {m.host.mac[-1]: m.expires_at for m in book.core.members()} == {1: 1260, 2: 1260}
    book.run_until(1010)
    assert book.report(1010, 1, "to_in", G, version=2) == [f"1:1 query4 {G}"]
    book.run_until(1010.5)
    assert book.report(1010.5, 2, "is_ex", G, version=2) == []
    book.run_until(1100)
    assert [m.host.mac[-1] for m in book.core.members()] == [2]


def test_fast_leave_in_version_2_mode_still_asks_where_another_host_is_known(playbook):
    book = playbook(fast_leave=True)
    book.report(1, 1, "is_ex", G, version=2)
    book.report(1, 2, "is_ex", G, version=2)
    assert book.report(2, 1, "to_in", G, version=2) == [f"1:1 query4 {G}"]
    book.run_until(5)
    book.report(6, 3, "is_ex", G, version=2)
    assert book.report(7, 3, "to_in", G, version=2) == [f"1:1 {G} nothing"]


def test_in_version_2_mode_source_lists_are_ignored(playbook):
    book = playbook()
    book.report(1, 1, "is_ex", G, version=2)
    assert book.report(2, 2, "to_ex", G, S1) == []
    assert book.report(2, 2, "block", G, S1) == []
    assert [m.excluded for m in book.core.members()] == [frozenset(), frozenset()]
    assert book.core.counters["report-ignored-in-older-mode"] == 1


def test_version_2_mode_ends_with_its_timer(playbook):
    book = playbook(querier=False)
    book.report(0, 1, "is_ex", G, version=2)
    book.report(200, 2, "to_ex", G)
    book.report(259.9, 2, "block", G, S1)
    assert [m.sources for m in book.core.members()] == [frozenset(), frozenset()]
    book.report(260, 2, "block", G, S1)
    assert [len(m.sources) for m in book.core.members()] == [1]


def test_in_version_1_mode_leaves_are_ignored(playbook):
    book = playbook()
    book.report(1, 1, "is_ex", G, version=1)
    book.report(1, 2, "is_ex", G, version=2)
    assert book.report(2, 2, "to_in", G, version=2) == []
    assert book.report(2, 2, "to_in", G) == []
    assert book.quiet_until(400) == [(261, f"1:1 {G} nothing")]


def test_mld_version_1_mode_takes_its_done_messages(playbook):
    group = "ff1e::1"
    book = playbook()
    assert book.report(1, 1, "is_ex", group, version=1) == [f"1:1 {group} all but {{}}"]
    assert book.report(2, 2, "to_ex", group, "2001:db8::1") == []
    assert book.report(3, 1, "to_in", group, version=1) == [f"1:1 query6 {group}"]


def test_groups_that_are_never_pruned_are_not_tracked(playbook):
    book = playbook()
    for group in ("224.0.0.251", "ff02::1", "ff01::5"):
        assert book.report(1, 1, "to_ex", group) == []
    assert book.report(1, 1, "to_ex", "ff02::1:ff00:1") == ["1:1 ff02::1:ff00:1 all but {}"]
    assert book.core.counters["report-of-untracked-group"] == 3


def test_an_address_that_is_no_group_is_counted(playbook):
    book = playbook()
    assert book.report(1, 1, "to_ex", "10.0.0.9") == []
    assert book.core.counters["report-of-untracked-group"] == 1


@pytest.mark.parametrize("group", ["232.1.1.1", "ff3e::8000:1"])
def test_ssm_groups_take_sources_only(playbook, group):
    source = S1 if "." in group else "2001:db8::1"
    book = playbook()
    assert book.report(1, 1, "to_ex", group) == ["notice membership-ssm-any-source"]
    assert book.report(1, 1, "is_ex", group, version=1) == []
    assert book.report(1, 1, "allow", group, source) == [f"1:1 {group} only {{{source}}}"]
    lax = playbook(enforce_ssm=False)
    assert lax.report(1, 1, "to_ex", group) == [f"1:1 {group} all but {{}}"]


def test_a_host_that_is_gone_takes_its_memberships_with_it(playbook):
    book = playbook()
    book.report(1, 1, "to_ex", G)
    book.report(1, 1, "to_ex", "ff1e::1")
    book.report(1, 2, "to_ex", G)
    effects = book.keep(book.core.host_removed(b"\x02\x00\x00\x00\x00\x01", 1, 1, 2.0), 2.0)
    assert effects == ["1:1 ff1e::1 nothing"]
    assert [m.host.mac[-1] for m in book.core.members()] == [2]
    assert book.core.host_removed(b"\x02\x00\x00\x00\x00\x01", 1, 1, 2.0) == []


def test_a_port_that_is_gone_takes_everything_with_it(playbook):
    book = playbook()
    book.report(1, 1, "to_ex", G)
    book.hello(1, "10.0.0.254", 105)
    effects = book.keep(book.core.port_removed(1, 1, 2.0), 2.0)
    assert effects == [f"1:1 {G} nothing", "1:1 router4 gone"]
    assert book.core.next_deadline() is None
    assert book.report(3, 1, "to_ex", G) == []
    assert book.keep(book.core.port_removed(1, 1, 2.0), 2.0) == []


def test_reports_at_a_port_that_is_not_served_keep_no_state(playbook):
    book = playbook()
    assert book.report(1, 1, "to_ex", G, port=(7, 7)) == []
    assert (7, 7) not in book.core.ports


def test_large_source_lists_are_asked_for_in_queries_that_fit(playbook):
    sources = " ".join(f"2001:db8::{i:x}" for i in range(1, 61))
    more = " ".join(f"2001:db8::1:{i:x}" for i in range(1, 61))
    book = playbook()
    book.report(1, 1, "allow", "ff1e::1", sources)
    book.report(1, 2, "allow", "ff1e::1", more)
    book.report(2, 1, "block", "ff1e::1", sources)
    book.report(2.5, 2, "block", "ff1e::1", more)
    sizes = [len(e.sources) for at, e in book.log if at == 2.5]
    assert sizes == [89, 31]


def test_hosts_that_exclude_different_sources_make_good_together(playbook):
    book = playbook()
    book.report(1, 1, "to_ex", G)
    book.report(1, 2, "to_ex", G, S1)
    assert book.report(2, 1, "to_in", G) == [f"1:1 query4 {G} S"]
    book.report(2.5, 1, "is_ex", G)
    book.run_until(5)
    book.report(5, 3, "to_ex", G, S2)
    assert book.report(6, 1, "to_in", G) == []
    assert book.interest(G) == "all but {}"


def test_a_source_that_another_host_is_giving_up_is_asked_for_again(playbook):
    book = playbook()
    book.report(1, 2, "to_ex", G)
    book.report(2, 2, "block", G, S1)
    book.report(2.5, 1, "allow", G, S1)
    assert book.report(2.7, 1, "block", G, S1) == [f"1:1 query4 {G} {{{S1}}}"]
    assert book.quiet_until(10) == [(3.7, f"1:1 query4 {G} {{{S1}}}"), (4.7, f"1:1 {G} all but {{{S1}}}")]


def test_from_sources_to_all_but_these(playbook):
    book = playbook()
    book.report(1, 1, "allow", G, S1)
    assert book.report(2, 1, "to_ex", G, S1) == [f"1:1 query4 {G} {{{S1}}}", f"1:1 {G} all but {{}}"]
    assert book.quiet_until(10) == [(3, f"1:1 query4 {G} {{{S1}}}"), (4, f"1:1 {G} all but {{{S1}}}")]


def test_a_suppressed_source_query_is_left_out_beside_a_group_query(playbook):
    book = playbook()
    book.report(1, 1, "to_ex", G)
    book.report(1, 1, "allow", G, S1)
    book.report(2, 1, "to_in", G, S2)
    book.report(2.5, 2, "allow", G, S1)
    assert book.quiet_until(10) == [(3, f"1:1 query4 {G}"), (4, f"1:1 {G} only {{{S1},{S2}}}")]


def test_a_repeated_version_2_leave_is_not_asked_for_again(playbook):
    book = playbook()
    for host in (1, 2):
        book.report(1, host, "is_ex", G, version=2)
    book.report(10, 1, "to_in", G, version=2)
    book.report(10.5, 2, "is_ex", G, version=2)
    assert book.report(10.7, 1, "to_in", G, version=2) == []
    assert [line for _, line in book.quiet_until(100)] == [f"1:1 query4 {G} S"]
