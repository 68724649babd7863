"""Snapshots survive JSON, restore the same state with the time that is left, and cannot do harm."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from controller.membership.core import MembershipCore
from controller.membership.settings import MembershipLimits, MembershipSettings
from controller.wire.addresses import parse_ip

G = "239.1.1.1"
S1, S2 = "10.1.0.1", "10.1.0.2"


def filled(playbook):
    book = playbook(ports=[(1, 1), (2, 1)])
    book.report(1, 1, "to_ex", G)
    book.report(2, 1, "allow", G, S1)
    book.report(3, 2, "allow", G, f"{S1} {S2}", port=(2, 1))
    book.report(4, 3, "is_ex", "239.2.2.2", version=2)
    book.report(4, 4, "to_ex", "ff1e::1", "2001:db8::1")
    book.query(5, "fe80::1", port=(2, 1))
    book.hello(6, "10.0.0.254", 0xFFFF)
    book.report(7, 4, "to_in", "ff1e::1")
    return book


def through_json(book, now):
    return json.loads(json.dumps(book.core.snapshot(now)))


def test_a_restored_core_goes_on_as_the_old_one(playbook):
    old = filled(playbook)
    new = playbook(ports=[])
    lines = new.keep(new.core.restore(through_json(old, 10.0), 1010.0), 1010.0)
    assert sorted(lines) == sorted(
        [
            "1:1 239.1.1.1 all but {}",
            "2:1 239.1.1.1 only {10.1.0.1,10.1.0.2}",
            "1:1 239.2.2.2 all but {}",
            "1:1 ff1e::1 all but {2001:db8::1}",
            "2:1 router6 present",
            "1:1 router4 present",
        ]
    )
    for port in ((1, 1), (2, 1)):
        new.core.port_added(*port, 1010.0)
    assert new.core.querier(6).address == parse_ip("fe80::1")
    assert {member.since for member in new.core.members()} == {1010.0}, "it was written then at the latest"
    assert sorted(m._replace(expires_at=m.expires_at - 1000, since=0.0) for m in new.core.members()) == sorted(
        m._replace(since=0.0) for m in old.core.members()
    )
    assert new.report(1011, 3, "block", "239.2.2.2", S1) == []
    assert new.core.counters["report-ignored-in-older-mode"] == 1
    ends = lambda book, base: [  # noqa: E731
        (at - base, line) for at, line in book.quiet_until(base + 600) if "nothing" in line or "only" in line
    ]
    assert ends(new, 1000.0) == ends(old, 0.0)


def test_the_time_while_nobody_looked_counts(playbook):
    old = playbook()
    old.report(0, 1, "to_ex", G)
    old.report(0, 2, "allow", "239.2.2.2", S1)
    old.report(200, 2, "allow", "239.2.2.2", S2)
    records = through_json(old, 200.0)
    new = playbook(querier=False)
    lines = new.keep(new.core.restore(records, 5000.0, elapsed_s=100.0), 5000.0)
    assert lines == [f"1:1 239.2.2.2 only {{{S2}}}"]
    assert new.quiet_until(6000) == [(5160, "1:1 239.2.2.2 nothing")]


def test_what_is_restored_at_a_port_that_never_comes_back_ages_and_is_forgotten(playbook):
    old = playbook()
    old.report(0, 1, "to_ex", G)
    new = playbook(ports=[])
    new.core.restore(through_json(old, 0.0), 0.0)
    assert new.report(1, 2, "to_ex", G) == []
    assert new.quiet_until(300) == [(260, f"1:1 {G} nothing")]
    assert new.core.ports == {}


def test_the_policy_in_force_judges_what_is_restored(playbook):
    old = playbook()
    old.report(0, 1, "to_ex", G)
    new = playbook(admit=lambda host, group, source: False)
    assert new.keep(new.core.restore(through_json(old, 0.0), 0.0), 0.0) == [f"refused 1 {G} any"]


def test_limits_hold_for_what_is_restored(playbook):
    old = playbook()
    for n in range(5):
        old.report(0, 1, "to_ex", f"239.0.0.{n}")
    new = playbook(limits=MembershipLimits(groups_per_port=2))
    new.core.restore(through_json(old, 0.0), 0.0)
    assert len(list(new.core.members())) == 2
    assert new.core.counters["limit-groups"] == 3


def test_present_memberships_prevail_over_the_journal(playbook):
    book = playbook()
    book.report(0, 1, "to_ex", G, S1)
    records = through_json(book, 0.0)
    book.report(100, 1, "is_ex", G, S1)
    assert book.core.restore(records, 100.0) == []
    (member,) = book.core.members()
    assert member.expires_at == 360


GOOD = {
    "record": "member",
    "dpid": 1,
    "port_no": 1,
    "group": G,
    "mac": "02:00:00:00:00:01",
    "ip": "10.0.0.1",
    "mode": "exclude",
    "group_s": 100.0,
    "sources": {},
    "excluded": [],
    "leaving": False,
}


@pytest.mark.parametrize(
    "fault",
    [
        {"record": "what"},
        {"record": None},
        {"group": "10.0.0.1"},
        {"group": "224.0.0.5"},
        {"group": 7},
        {"mac": "nonsense"},
        {"ip": "fe80::1"},
        {"mode": "sideways"},
        {"group_s": "soon"},
        {"sources": {"fe80::1": 5}},
        {"sources": [S1]},
        {"excluded": [None]},
        {"dpid": None},
    ],
)
def test_a_faulty_record_is_counted_and_passed_over(playbook, fault):
    book = playbook()
    assert book.core.restore([{**GOOD, **fault}, {}, GOOD], 0.0) != []
    assert book.core.counters["journal-record"] == 2
    assert book.interest(G) == "all but {}"


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 2**70),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from(["member", "querier", "router", "group", "include", "exclude", G, S1, "fe80::1", "ff1e::1"]),
    st.lists(st.just(S1), max_size=2),
    st.dictionaries(st.sampled_from([S1, "x"]), st.floats(), max_size=2),
)
FIELDS = [*GOOD, "family", "address", "robustness", "query_interval_s", "remaining_s", "query_s", "neighbours"]


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(st.dictionaries(st.sampled_from(FIELDS), VALUES), max_size=4),
    st.dictionaries(st.sampled_from(FIELDS), VALUES),
)
def test_no_journal_raises(records, changes):
    core = MembershipCore(MembershipSettings(), MembershipLimits(), lambda host, group, source: True)
    core.port_added(1, 1, 0.0)
    core.restore([*records, {**GOOD, **changes}], 10.0, 1.0)
    core.on_deadline(1000.0)
    json.dumps(core.snapshot(1000.0))


def test_a_journal_brings_no_router_back_that_is_refused_now(playbook):
    records = through_json(filled(playbook), 10.0)
    new = playbook(accept_queriers=False, learn_router_ports=False)
    lines = new.keep(new.core.restore(records, 1010.0), 1010.0)
    assert [line for line in lines if "router" in line] == []
    assert new.core.querier(6).is_ours
    assert list(new.core.router_port_keys()) == []
    assert new.core.counters.get("journal-record", 0) == 0


def test_a_router_of_an_older_journal_is_passed_over(playbook):
    old = [
        {
            "record": "router",
            "dpid": 1,
            "port_no": 1,
            "family": 4,
            "query_s": 100.0,
            "neighbours": {"10.0.0.2": None},
        },
        {"record": "querier", "family": 4, "address": "10.0.0.2", "dpid": 1, "port_no": 1, "robustness": 7}
        | {"query_interval_s": 31744.0, "remaining_s": 222000.0},
    ]
    new = playbook()
    assert new.core.restore([*old, GOOD], 0.0) != []
    assert list(new.core.router_port_keys()) == []
    assert new.core.querier(4).is_ours
    assert new.core.counters["journal-record"] == 2


def test_the_time_of_a_journal_is_believed_no_longer_than_that_of_a_packet(playbook):
    records = [
        {"record": "router", "dpid": 1, "port_no": 1, "family": 4}
        | {"routers": [{"address": "10.0.0.2", "mac": "02:00:00:00:00:01", "asks": False, "remaining_s": 1e9}]},
        {"record": "querier", "family": 4, "address": "10.0.0.2", "mac": "02:00:00:00:00:01", "dpid": 1, "port_no": 1}
        | {"robustness": 2, "query_interval_s": 125.0, "remaining_s": 1e9},
    ]
    new = playbook()
    new.core.restore(records, 0.0)
    assert new.core.querier(4).expires_at == 255
    assert (600, "1:1 router4 gone") in new.quiet_until(2000)
