"""General queries, the election of the querier, router ports, and what another querier's queries do here."""

from __future__ import annotations

from itertools import pairwise

import pytest

from controller.effects import Notice
from controller.membership.events import RouterVerdict, SendQuery
from controller.membership.settings import MembershipLimits, MembershipSettings
from controller.wire.addresses import format_ip, parse_ip

G = "239.1.1.1"
S1, S2 = "10.1.0.1", "10.1.0.2"


def general_times(book, family=4, port=(1, 1)):
    return [
        at
        for at, e in book.log
        if isinstance(e, SendQuery) and e.group is None and (e.family, e.dpid, e.port_no) == (family, *port)
    ]


def test_a_new_port_is_queried_at_once_for_both_families(playbook):
    book = playbook(ports=[])
    effects = book.core.port_added(3, 4, 0.0)
    assert effects == [
        SendQuery(3, 4, 4, 3, None, (), 1.0, False, 2, 125.0),
        SendQuery(3, 4, 6, 2, None, (), 1.0, False, 2, 125.0),
    ]
    assert book.core.port_added(3, 4, 1.0) == []


def test_only_the_first_query_of_a_port_asks_for_quick_answers(playbook):
    book = playbook(ports=[], startup_count=3)
    first = book.core.port_added(3, 4, 0.0)
    book.run_until(600)
    later = [e.max_response_s for _, e in book.log if isinstance(e, SendQuery)]
    assert [e.max_response_s for e in first] == [1.0, 1.0]
    assert len(later) > 8
    assert set(later) == {10.0}
    quick = playbook(ports=[], response_interval_s=0.5)
    assert [e.max_response_s for e in quick.core.port_added(3, 4, 0.0)] == [0.5, 0.5]


def test_startup_and_regular_intervals(playbook):
    book = playbook(startup_count=3)
    book.run_until(1000)
    times = [0.0, *general_times(book)]
    gaps = [b - a for a, b in pairwise(times)]
    assert all(125 / 8 <= gap <= 125 / 4 for gap in gaps[:2])
    assert 62.5 <= gaps[2] <= 125
    assert gaps[3:] == pytest.approx([125] * len(gaps[3:]))


def test_ports_that_come_together_are_queried_apart(playbook):
    ports = [(1, n) for n in range(200)]
    book = playbook(ports=ports)
    book.run_until(300)
    phases = sorted(general_times(book, 4, port)[-1] % 125 for port in ports)
    assert max(b - a for a, b in pairwise(phases)) < 70
    assert len({round(p, 3) for p in phases}) > 190
    per_second = [sum(int(p) == second for p in phases) for second in range(125)]
    assert max(per_second) < 20


def test_a_caller_that_slept_through_intervals_sends_one_query(playbook):
    book = playbook(startup_count=1)
    book.run_until(125)
    before = len(general_times(book))
    book.keep(book.core.on_deadline(2000.0), 2000.0)
    assert len(general_times(book)) == before + 1


def test_any_address_wins_against_the_proxy_querier_and_is_given_up_in_time(playbook):
    book = playbook()
    assert book.query(10, "10.9.9.9") == [
        *("1:1 router4 present", "admitted router 10.9.9.9", "notice membership-querier-changed"),
    ]
    book.run_until(100)
    assert book.query(100, "10.9.9.9") == []
    status = book.core.querier(4)
    assert (status.is_ours, status.address, status.expires_at) == (False, parse_ip("10.9.9.9"), 355)
    assert [line for _, line in book.run_until(354.9) if "query4" in line] == []
    lines = book.run_until(360)
    assert (355, "notice membership-querier-changed") in lines
    taken = [at for at, line in lines if line == "1:1 query4 general"]
    assert len(taken) == 1
    assert 355 <= taken[0] <= 356
    assert book.core.querier(4).is_ours


def test_the_lowest_address_is_the_querier(playbook):
    book = playbook(query_address_v4=parse_ip("10.0.0.50"))
    assert book.query(1, "10.0.0.60") == ["1:1 router4 present", "admitted router 10.0.0.60"]
    assert book.core.querier(4).is_ours
    book.query(2, "10.0.0.40")
    book.query(3, "10.0.0.45")
    assert book.core.querier(4).address == parse_ip("10.0.0.40")
    book.query(4, "10.0.0.30")
    assert book.core.querier(4).address == parse_ip("10.0.0.30")
    assert book.core.querier(6).is_ours


@pytest.mark.parametrize("source", ["0.0.0.0", "::", "2001:db8::1", "fe80::ffff:ffff:ffff:fffe"])
def test_queries_without_a_bid_change_nothing(playbook, source):
    book = playbook()
    assert book.query(1, source) == []
    assert book.core.querier(4 if "." in source else 6).is_ours
    assert list(book.core.router_port_keys()) == []


def test_a_link_local_router_wins_the_mld_election(playbook):
    book = playbook()
    book.query(1, "fe80::1")
    assert book.core.querier(6).address == parse_ip("fe80::1")
    assert book.report(2, 1, "to_ex", "ff1e::1") == ["1:1 ff1e::1 all but {}"]
    assert book.report(3, 1, "to_in", "ff1e::1") == []


def test_the_queriers_values_are_adopted_and_dropped_with_it(playbook):
    book = playbook()
    book.query(1, "10.9.9.9", robustness=3, interval_s=20)
    book.report(2, 1, "to_ex", G)
    (member,) = book.core.members()
    assert member.expires_at == 2 + 3 * 20 + 10
    assert book.core.querier(4).expires_at == 1 + 3 * 20 + 5
    book.run_until(67)
    book.report(67, 1, "is_ex", G)
    (member,) = book.core.members()
    assert member.expires_at == 67 + 260


def test_zero_values_and_older_queriers_leave_ours(playbook):
    book = playbook()
    book.query(1, "10.9.9.9", robustness=0, interval_s=0)
    assert book.core.querier(4).expires_at == 256
    assert "notice membership-querier-version" in book.query(
        2, "10.9.9.9", version=2, robustness=None, interval_s=None
    )
    assert book.core.querier(4).expires_at == 257


def test_what_the_querier_itself_left_is_left_at_once(playbook):
    """It asks nobody at its own port after its own leave; who else is a member there goes on to be one."""
    book = playbook()
    book.query(1, "10.0.0.9")
    for host in (200, 2):
        book.report(2, host, "to_ex", G)
    assert book.report(3, 200, "to_in", G) == []
    assert book.interest(G) == "all but {}"
    book = playbook()
    book.query(1, "10.0.0.9")
    book.report(2, 200, "to_ex", G)
    book.report(3, 200, "to_in", G)
    assert book.interest(G) == "nothing"


def test_another_querier_asks_for_those_who_left(playbook):
    book = playbook(ports=[(1, 1), (2, 1)])
    book.query(1, "10.9.9.9", port=(2, 1))
    book.report(2, 1, "to_ex", G)
    assert book.report(3, 1, "to_in", G) == []
    assert book.query(4, "10.9.9.9", G, port=(2, 1), suppress=True, response_s=1) == []
    assert book.query(5, "10.9.9.9", G, port=(2, 1), response_s=1.5) == []
    assert book.quiet_until(20) == [(8, f"1:1 {G} nothing")]


def test_under_another_querier_a_host_that_left_does_not_make_good_for_the_next(playbook):
    book = playbook()
    book.query(1, "10.9.9.9")
    for host in (1, 2):
        book.report(2, host, "to_ex", G)
    book.report(3, 1, "to_in", G)
    book.report(3, 1, "to_ex", G)
    book.report(4, 2, "to_in", G)
    assert [m.host.mac[-1] for m in book.core.members()] == [1]
    book.report(5, 1, "to_in", G)
    book.report(6, 2, "to_ex", G)
    book.report(7, 2, "to_in", G)
    assert [(m.host.mac[-1], m.leaving) for m in book.core.members()] == [(1, True), (2, True)]


def test_another_queriers_question_lowers_timers_and_answers_raise_them(playbook):
    book = playbook()
    book.query(1, "10.9.9.9")
    book.report(2, 1, "allow", G, f"{S1} {S2}")
    book.report(2, 2, "is_ex", "239.2.2.2", version=2)
    book.query(3, "10.9.9.9", G, f"{S1} {S2}", response_s=1)
    book.query(3, "10.9.9.9", "239.2.2.2", response_s=1)
    book.report(4, 1, "is_in", G, S2)
    book.report(4, 2, "is_ex", "239.2.2.2", version=2)
    assert book.quiet_until(20) == [(5, f"1:1 {G} only {{{S2}}}")]
    assert book.interest("239.2.2.2") == "all but {}"


def test_only_the_querier_lowers_timers(playbook):
    book = playbook(query_address_v4=parse_ip("10.0.0.1"))
    book.report(1, 1, "to_ex", G)
    book.query(2, "10.9.9.9", G, response_s=1)
    assert book.quiet_until(20) == []


def test_questions_under_way_end_when_another_querier_is_elected(playbook):
    book = playbook()
    book.report(1, 1, "to_ex", G)
    book.report(2, 1, "to_in", G)
    book.query(2.5, "10.9.9.9")
    assert book.quiet_until(20) == [(4, f"1:1 {G} nothing")]


def test_a_querier_behind_a_port_that_goes_is_gone(playbook):
    book = playbook(ports=[(1, 1), (2, 1)])
    book.query(40, "10.9.9.9", port=(2, 1))
    book.core.port_removed(2, 1, 41.0)
    assert book.core.querier(4).is_ours
    assert any(line == "1:1 query4 general" for _, line in book.run_until(42))


def test_queriers_only_where_they_are_accepted(playbook):
    book = playbook(ports=[(1, 1), (2, 1)], accept_queriers=frozenset({(2, 1)}))
    assert "notice membership-query-refused" in book.query(1, "10.9.9.9")
    assert book.core.querier(4).is_ours
    book.query(2, "10.9.9.9", port=(2, 1))
    assert not book.core.querier(4).is_ours


def test_without_a_querier_of_our_own_nothing_is_sent(playbook):
    book = playbook(querier=False)
    book.report(1, 1, "to_ex", G)
    book.report(2, 1, "to_in", G)
    assert book.run_until(300) == [(261, f"1:1 {G} nothing")]


@pytest.mark.parametrize(
    ("version", "asks_group", "asks_sources"), [(3, True, True), (2, True, False), (1, False, False)]
)
def test_older_queries_ask_what_they_can(playbook, version, asks_group, asks_sources):
    book = playbook(igmp_version=version)
    book.report(1, 1, "allow", G, S1)
    assert bool(book.report(2, 1, "block", G, S1)) is asks_sources
    book.report(2, 1, "to_ex", "239.2.2.2")
    assert bool(book.report(3, 1, "to_in", "239.2.2.2")) is asks_group
    assert {e.version for _, e in book.log if isinstance(e, SendQuery)} <= {version}


def test_queries_carry_the_intervals(playbook):
    book = playbook(robustness=3, last_member_interval_s=0.5)
    book.report(1, 1, "to_ex", G)
    book.report(2, 1, "to_in", G)
    book.run_until(10)
    queries = [(at, e) for at, e in book.log if isinstance(e, SendQuery)]
    assert [at for at, _ in queries] == [2, 2.5, 3.0]
    assert queries[0][1] == SendQuery(1, 1, 4, 3, parse_ip(G), (), 0.5, False, 3, 125.0)
    assert [at for at, e in book.log if getattr(e, "interest", 0) is None] == [3.5]


def test_router_ports_are_learnt_from_queries_and_time_out(playbook):
    book = playbook(query_address_v4=parse_ip("10.0.0.1"))
    assert book.query(1, "10.0.0.2", interval_s=20) == ["1:1 router4 present", "admitted router 10.0.0.2"]
    assert book.query(10, "10.0.0.2", interval_s=20) == []
    assert book.quiet_until(100) == [(10 + 45, "1:1 router4 gone")]


def test_router_ports_are_learnt_from_hellos(playbook):
    book = playbook()
    assert book.hello(1, "10.0.0.2", 105) == ["1:1 router4 present", "admitted router 10.0.0.2"]
    assert book.hello(2, "10.0.0.3", 30) == ["admitted router 10.0.0.3"]
    assert book.hello(3, "10.0.0.2", 0) == []
    assert book.quiet_until(50) == [(32, "1:1 router4 gone")]
    assert book.hello(60, "fe80::9", 0xFFFF) == ["1:1 router6 present", "admitted router fe80::9"]
    assert book.hello(70, "fe80::9", 0) == ["1:1 router6 gone"]
    assert book.hello(70, "fe80::9", 0) == []
    assert list(book.core.router_port_keys()) == []


def test_no_router_is_believed_for_ever(playbook):
    """Neither 65535 as a PIM holdtime nor the longest query interval that IGMP can say, of 31,744 s."""
    book = playbook()
    book.hello(0, "10.0.0.2", 0xFFFF)
    assert book.quiet_until(99999) == [(600, "1:1 router4 gone")]
    book = playbook()
    book.query(0, "10.0.0.3", robustness=7, interval_s=31744)
    assert book.core.querier(4).expires_at == 300
    book.report(1, 1, "to_ex", G)
    (member,) = book.core.members()
    assert member.expires_at == 1 + 600 + 10
    assert (300, "1:1 router4 gone") in book.quiet_until(300)
    assert book.core.querier(4).is_ours
    own = playbook(robustness=3, query_interval_s=1000)
    own.query(0, "10.0.0.3", robustness=7, interval_s=31744)
    assert own.core.querier(4).expires_at == 3 * 1000 + 5


def test_router_ports_can_be_set_and_their_learning_forbidden(playbook):
    book = playbook(ports=[], static_router_ports=frozenset({(1, 1)}), learn_router_ports=frozenset({(2, 1)}))
    lines = book.keep(book.core.port_added(1, 1, 0.0), 0.0)
    assert lines[-2:] == ["1:1 router4 present", "1:1 router6 present"]
    book.core.port_added(2, 1, 0.0)
    book.core.port_added(3, 1, 0.0)
    refused = ["notice membership-pim-hello-refused", "refused router 10.0.0.3"]
    assert book.hello(1, "10.0.0.3", 105, port=(3, 1)) == refused
    admitted = ["2:1 router4 present", "admitted router 10.0.0.3"]
    assert book.hello(1, "10.0.0.3", 105, port=(2, 1)) == admitted
    assert book.hello(1, "10.0.0.3", 105, port=(1, 1)) == [], "who is at a static port need not be judged"
    assert "1:1 router4 gone" not in [line for _, line in book.quiet_until(500)]


def test_by_default_nobody_is_a_router_or_querier_and_that_is_told_once_per_interval(playbook):
    book = playbook(accept_queriers=False, learn_router_ports=False)
    told = ["notice membership-query-refused", "refused router 10.9.9.9"]
    assert book.query(1, "10.9.9.9") == told
    assert [book.query(at, "10.9.9.9") for at in (2, 3, 10.9)] == [[], [], []]
    assert book.query(11.1, "10.9.9.9") == told
    assert book.core.counters["query-refused"] == 5
    hello = ["notice membership-pim-hello-refused", "refused router fe80::9"]
    assert book.hello(12, "fe80::9", 105) == hello
    assert book.core.querier(4).is_ours
    assert list(book.core.router_port_keys()) == []
    texts = [effect.text for _, effect in book.log if isinstance(effect, Notice)]
    assert texts[0] == (
        "Port 1:1 receives the IGMP query of 10.9.9.9 (02:00:00:00:00:c8), which is ignored and reaches nobody: "
        "a rule with role router about this host, or multicast.querier.accept_others with this port, would allow it."
    )
    assert "the PIM hello of fe80::9" in texts[-1]
    assert "multicast.router_ports.learn" in texts[-1]


SOME = frozenset({parse_ip(G)})


@pytest.mark.parametrize(
    ("verdict", "querier", "groups"),
    [
        (RouterVerdict(True, "uplink", "why"), "10.9.9.9", None),
        (RouterVerdict(True, "some", "why", SOME), None, {SOME}),
    ],
)
def test_a_rule_admits_a_router_whatever_the_settings_are(playbook, verdict, querier, groups):
    book = playbook(accept_queriers=False, learn_router_ports=False, admit_router=lambda host: verdict)
    lines = book.query(1, "10.9.9.9")
    assert lines[:2] == ["1:1 router4 present", "admitted router 10.9.9.9"]
    address = book.core.querier(4).address
    assert address == (None if querier is None else parse_ip(querier))
    (entry,) = book.core.router_ports
    assert entry.groups == groups
    assert ("notice membership-query-refused" in lines) is (querier is None)


def test_a_rule_denies_a_router_whatever_the_settings_are(playbook):
    book = playbook(admit_router=lambda host: RouterVerdict(False, "never", "rule never denies it"))
    assert book.hello(1, "10.0.0.2", 105) == ["notice membership-pim-hello-refused", "refused router 10.0.0.2"]
    assert book.query(2, "10.0.0.2") == ["notice membership-query-refused", "refused router 10.0.0.2"]
    assert book.core.querier(4).is_ours


def test_routers_of_a_port_have_together_what_each_may_have(playbook):
    other = frozenset({parse_ip("239.9.9.9")})
    grants = {"10.0.0.2": SOME, "10.0.0.3": other, "10.0.0.4": None}
    book = playbook(
        admit_router=lambda host: RouterVerdict(True, "r", "why", grants[format_ip(host.ip)]), accept_queriers=False
    )
    book.hello(0, "10.0.0.2", 105)
    (entry,) = book.core.router_ports
    assert entry.groups == {SOME}
    book.hello(1, "10.0.0.3", 50)
    assert entry.groups == {SOME, other}
    book.hello(2, "10.0.0.4", 20)
    assert entry.groups is None
    book.run_until(30)
    assert entry.groups == {SOME, other}
    book.run_until(60)
    assert entry.groups == {SOME}
    assert book.quiet_until(200) == [(105, "1:1 router4 gone")]


def test_routers_that_are_refused_by_new_settings_are_forgotten_at_once(playbook):
    book = playbook()
    book.query(1, "10.9.9.9")
    lines = book.keep(book.core.set_settings(MembershipSettings(), MembershipLimits(), 2.0), 2.0)
    assert "1:1 router4 gone" in lines
    assert book.core.querier(4).is_ours
    assert any(line == "1:1 query4 general" for _, line in book.run_until(3.1))


def test_the_neighbours_of_a_port_are_bounded(playbook):
    limits = MembershipLimits(routers_per_port=2, reports_per_second_per_port=1e6, report_burst=1e6)
    book = playbook(limits=limits)
    book.hello(1, "10.0.0.1", 105)
    book.hello(1, "10.0.0.2", 105)
    assert book.hello(1, "10.0.0.3", 105) == ["notice membership-limit-routers"]
    assert book.hello(2, "10.0.0.1", 105) == []


def test_new_settings_change_router_ports_elections_and_intervals(playbook):
    book = playbook()
    book.query(1, "10.9.9.9")
    limits = MembershipLimits()
    lower = MembershipSettings(
        query_address_v4=parse_ip("10.0.0.1"),
        query_interval_s=20,
        static_router_ports=frozenset({(1, 1)}),
        accept_queriers=True,
    )
    lines = book.keep(book.core.set_settings(lower, limits, 2.0), 2.0)
    assert "1:1 router6 present" in lines
    assert book.core.querier(4).is_ours
    assert any(line == "1:1 query4 general" for _, line in book.run_until(3.1))
    book.run_until(200)
    times = general_times(book)
    assert times[-1] - times[-2] == pytest.approx(20)
    silent = MembershipSettings(querier=False)
    assert "1:1 router6 gone" in book.keep(book.core.set_settings(silent, limits, 200.0), 200.0)
    assert [line for _, line in book.run_until(900) if "general" in line] == []
    book.core.set_settings(MembershipSettings(), limits, 900.0)
    assert [line for _, line in book.run_until(901) if "general" in line] != []


def test_ssm_groups_joined_for_any_source_end_when_the_rule_is_set(playbook):
    book = playbook(enforce_ssm=False)
    book.report(1, 1, "to_ex", "232.1.1.1")
    book.report(1, 2, "allow", "232.1.1.1", S1)
    lines = book.keep(book.core.set_settings(MembershipSettings(), MembershipLimits(), 2.0), 2.0)
    assert lines == [f"1:1 232.1.1.1 only {{{S1}}}"]
