"""Every table has a bound, a counter, and a notice that cannot be multiplied; other ports are not affected."""

from __future__ import annotations

import pytest

from controller.config.policy import Policy
from controller.config.settings import Limits
from controller.effects import Notice
from controller.membership.limits import SmallTokenBucket
from controller.membership.settings import MembershipLimits, MembershipSettings
from controller.multicast.settings import membership_limits
from controller.wire.addresses import parse_ip
from controller.wire.packets import GroupRecord, RecordType, Report

UNLIMITED = {"reports_per_second_per_port": 1e6, "report_burst": 1e6}
UNLIMITED |= {"reports_per_second_per_host": 1e6, "host_report_burst": 1e6}


def test_groups_of_a_port(playbook):
    book = playbook(ports=[(1, 1), (1, 2)], limits=MembershipLimits(groups_per_port=3, **UNLIMITED))
    for n in range(1, 4):
        book.report(1, 1, "to_ex", f"239.0.0.{n}")
    assert book.report(1, 1, "to_ex", "239.0.0.4") == ["notice membership-limit-groups"]
    assert book.report(1, 1, "to_ex", "239.0.0.5") == []
    assert book.core.counters["limit-groups"] == 2
    assert book.report(1, 2, "to_ex", "239.0.0.1") == []
    assert book.report(1, 1, "to_ex", "ff02::1:ff00:1") == ["1:1 ff02::1:ff00:1 all but {}"]
    assert book.report(1, 1, "to_ex", "239.0.0.4", port=(1, 2)) == ["1:2 239.0.0.4 all but {}"]
    assert book.report(12, 1, "to_ex", "239.0.0.4") == ["notice membership-limit-groups"]
    book.report(13, 1, "to_in", "239.0.0.3")
    book.run_until(16)
    assert book.report(16, 1, "to_ex", "239.0.0.4") == ["1:1 239.0.0.4 all but {}"]


def test_link_scope_groups_of_a_port(playbook):
    book = playbook(limits=MembershipLimits(link_groups_per_port=1, **UNLIMITED))
    book.report(1, 1, "to_ex", "ff02::1:ff00:1")
    assert book.report(1, 1, "to_ex", "ff02::1:ff00:2") == ["notice membership-limit-groups"]


def test_hosts_of_a_port(playbook):
    book = playbook(limits=MembershipLimits(hosts_per_port=2, **UNLIMITED))
    for host in (1, 2):
        book.report(1, host, "to_ex", "239.0.0.1")
    assert book.report(1, 3, "to_ex", "239.0.0.1") == ["notice membership-limit-hosts"]
    assert book.report(1, 2, "to_ex", "239.0.0.2") == ["1:1 239.0.0.2 all but {}"]


def test_groups_of_a_host_leave_others_at_its_port_theirs(playbook):
    book = playbook(limits=MembershipLimits(groups_per_host=2, **UNLIMITED))
    for n in (1, 2):
        book.report(1, 1, "to_ex", f"239.0.0.{n}")
    assert book.report(1, 1, "to_ex", "239.0.0.3") == ["notice membership-limit-host-groups"]
    assert book.report(1, 2, "to_ex", "239.0.0.3") == ["1:1 239.0.0.3 all but {}"]
    assert book.report(1, 1, "to_ex", "ff02::1:ff00:1") == ["1:1 ff02::1:ff00:1 all but {}"]
    book.report(2, 1, "to_in", "239.0.0.1")
    book.run_until(10)
    assert book.report(10, 1, "to_ex", "239.0.0.4") == ["1:1 239.0.0.4 all but {}"]


def test_refused_memberships_of_a_host_make_room_for_its_own_alone(playbook):
    limits = MembershipLimits(groups_per_host=2, **UNLIMITED)
    book = playbook(admit=lambda _host, group, _source: group[3] < 100, limits=limits)
    book.report(1, 2, "to_ex", "239.0.0.101")
    book.report(1, 1, "to_ex", "239.0.0.102")
    book.report(1, 1, "to_ex", "239.0.0.1")
    assert book.report(1, 1, "to_ex", "239.0.0.2") == ["1:1 239.0.0.2 all but {}"]
    kept = sorted((member.host.mac[5], member.group[3]) for member in book.core.members())
    assert kept == [(1, 1), (1, 2), (2, 101)]


def test_the_reports_of_a_host_are_limited_and_those_of_others_are_read(playbook):
    limits = MembershipLimits(**{**UNLIMITED, "reports_per_second_per_host": 1, "host_report_burst": 2})
    book = playbook(limits=limits)
    book.report(1, 1, "to_ex", "239.0.0.1")
    assert book.report(1, 1, "to_ex", "239.0.0.2") == ["1:1 239.0.0.2 all but {}"]
    book.report(1, 1, "to_ex", "239.0.0.3")
    assert book.report(1, 1, "to_ex", "239.0.0.4") == ["notice membership-limit-host-rate"]
    assert book.report(1, 2, "to_ex", "239.0.0.4") == ["1:1 239.0.0.4 all but {}"]
    assert book.report(3, 1, "to_ex", "239.0.0.5") == ["1:1 239.0.0.5 all but {}"]


def test_memberships_overall(playbook):
    book = playbook(limits=MembershipLimits(states=1, **UNLIMITED))
    book.report(1, 1, "to_ex", "239.0.0.1")
    assert book.report(1, 1, "to_ex", "239.0.0.2") == ["notice membership-limit-states"]


def test_sources_of_a_record_and_of_a_host(playbook):
    book = playbook(limits=MembershipLimits(sources_per_group=2, **UNLIMITED))
    assert book.report(1, 1, "allow", "239.0.0.1", "10.1.0.1 10.1.0.2 10.1.0.3") == [
        "notice membership-limit-sources"
    ]
    book.report(1, 1, "allow", "239.0.0.1", "10.1.0.1 10.1.0.2")
    book.report(1, 1, "allow", "239.0.0.1", "10.1.0.3 10.1.0.4")
    assert book.report(2, 1, "allow", "239.0.0.1", "10.1.0.5") == []
    assert book.core.counters["limit-sources"] == 2
    assert book.report(2, 1, "allow", "239.0.0.1", "10.1.0.1") == []
    assert book.core.counters["limit-sources"] == 2


def test_messages_per_second_of_a_port(playbook):
    limits = MembershipLimits(reports_per_second_per_port=10, report_burst=5)
    book = playbook(ports=[(1, 1), (1, 2)], limits=limits)
    for n in range(8):
        book.report(1, 1, "to_ex", f"239.0.0.{n}")
    assert len(list(book.core.interests())) == 5
    assert book.core.counters["limit-rate"] == 3
    assert [e for _, e in book.log if "limit" in getattr(e, "kind", "")] != []
    assert book.query(1, "10.0.0.1") == []
    assert book.report(1, 1, "to_ex", "239.0.0.1", port=(1, 2)) == ["1:2 239.0.0.1 all but {}"]
    assert book.report(1.11, 1, "to_ex", "239.0.0.6") == ["1:1 239.0.0.6 all but {}"]


def test_a_bucket_refills_to_its_burst_only():
    bucket = SmallTokenBucket()
    assert [bucket.take(0.0, 1.0, 2.0) for _ in range(3)] == [True, True, False]
    assert [bucket.take(100.0, 1.0, 2.0) for _ in range(3)] == [True, True, False]


def test_timers_do_not_pile_up_under_joins_and_leaves(playbook):
    book = playbook(fast_leave=True, querier=False)
    for n in range(10_000):
        book.report(n / 1000, 1, "to_ex", f"239.0.{n >> 8 & 63}.{n & 255}")
        book.report(n / 1000, 1, "to_in", f"239.0.{n >> 8 & 63}.{n & 255}")
    assert len(book.core.timers) < 2000
    assert book.core.next_deadline() is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"robustness": 0},
        {"robustness": 8},
        {"query_interval_s": 10.0, "response_interval_s": 10.0},
        {"response_interval_s": 0.0},
        {"last_member_interval_s": 0.0},
        {"startup_interval_s": -1.0},
        {"startup_count": 0},
        {"last_member_count": 0},
        {"igmp_version": 4},
        {"mld_version": 3},
        {"query_address_v4": b"\x0a"},
        {"query_address_v6": bytes(16)},
    ],
)
def test_settings_out_of_range_are_refused(wrong):
    with pytest.raises(ValueError):
        MembershipSettings(**wrong)


# Records

LONG = 180
"""Records of one IGMPv3 report in an Ethernet frame."""


def long_report(book, now, host=1, first=0, count=LONG, sources=()):
    records = tuple(
        GroupRecord(RecordType.CHANGE_TO_INCLUDE if sources else RecordType.CHANGE_TO_EXCLUDE, group, sources)
        for group in (bytes((239, 7, n >> 8, n & 255)) for n in range(first, first + count))
    )
    report = Report(4, 3, bytes((2, 0, 0, 0, 0, host)), bytes((10, 0, 0, host)), records)
    return book.keep(book.core.report_received(1, 1, report, now), now)


def test_long_reports_cause_a_bounded_number_of_decisions(playbook):
    """A hundred reports a second, the limit, of 180 refused groups each."""
    decided = []
    book = playbook(admit=lambda _host, group, _source: bool(decided.append(group)), limits=MembershipLimits())
    for number in range(1000):
        long_report(book, number / 100, first=number % 300 * LONG)
    assert len(decided) <= 1000 + LONG + 500 * 10
    notices = [effect for _, effect in book.log if isinstance(effect, Notice) and "records" in effect.kind]
    assert [notice.kind for notice in notices] == ["membership-limit-records"]
    assert book.core.counters["limit-records"] > 900
    assert book.report(10, 2, "to_ex", "239.1.1.1") == ["refused 2 239.1.1.1 any"]
    assert decided[-1] == parse_ip("239.1.1.1"), "short reports of others are read"


def test_sources_count_as_records(playbook):
    decided = []
    book = playbook(admit=lambda _host, group, source: bool(decided.append(source)), limits=MembershipLimits())
    sources = tuple(bytes((10, 9, 0, n)) for n in range(60))
    for number in range(100):
        long_report(book, 0.5, first=number * 3, count=3, sources=sources)
    assert 0 < len(decided) <= 1000 + 180


def test_the_records_of_a_host_are_limited_and_those_of_others_are_read(playbook):
    limits = MembershipLimits(records_per_second_per_host=10, host_record_burst=20)
    book = playbook(limits=limits)
    long_report(book, 1, count=25)
    long_report(book, 1.1, first=100, count=25)
    assert len(list(book.core.members())) == 50, "a host is known by its first report"
    assert "notice membership-limit-host-records" in long_report(book, 1.2, first=200, count=2)
    assert book.report(1.3, 1, "to_ex", "239.8.0.1") != [], "a short report is read all the same"
    assert len(long_report(book, 1.3, host=2, first=300, count=2)) == 2
    assert len(long_report(book, 5, first=200, count=2)) == 2, "what was overdrawn is paid off"


def test_an_address_that_changes_with_every_report_costs_what_it_causes(playbook):
    decided = []
    book = playbook(admit=lambda host, group, _source: decided.append(group) or True, limits=MembershipLimits())
    long_report(book, 0, count=60)
    for number in range(100):
        book.report(0.5, 1, "is_ex", "239.7.0.1", ip=f"10.0.1.{number}")
    assert len(decided) <= 60 + 1000 + 60


@pytest.mark.parametrize("count", [64, 256])
def test_a_host_that_answers_a_query_with_all_its_groups_in_one_report_is_read(playbook, count):
    """As Linux does, with robustness 2 within a second; limits are those of the policy file."""
    limits = membership_limits(Policy(limits=Limits(groups_per_port=256)))
    book = playbook(limits=limits)
    for at in (0, 0.5, 125, 250):
        long_report(book, at, count=count)
    assert len(list(book.core.members())) == count
    assert "limit-records" not in book.core.counters
    assert "limit-host-records" not in book.core.counters
