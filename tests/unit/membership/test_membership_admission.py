"""The policy's part: refused members count for nothing, and a new policy is applied without new reports."""

from __future__ import annotations

from controller.membership.settings import MembershipLimits
from controller.wire.addresses import parse_ip

G = "239.1.1.1"
S1, S2 = "10.1.0.1", "10.1.0.2"
UNLIMITED = {"reports_per_second_per_port": 1e6, "report_burst": 1e6}


def only(*hosts):
    return lambda host, group, source: host.mac[-1] in hosts


def only_from(*sources):
    allowed = {parse_ip(s) for s in sources}
    return lambda host, group, source: source in allowed


class Changing:
    """An admission that can be replaced, and notes what it is asked for good."""

    def __init__(self, admit):
        self.admit = admit
        self.asked = []

    def __call__(self, host, group, source):
        self.asked.append((host.mac[-1], source))
        return self.admit(host, group, source)

    def explain(self, host, group, source):
        return self.admit(host, group, source)


def reconsidered(book, policy, is_concerned=lambda _group: True):
    steps = book.core.reconsider(policy.explain, is_concerned)
    return [line for effects in steps for line in book.keep(effects, 2.0)]


def test_a_refused_host_is_told_once_and_counts_for_nothing(playbook):
    book = playbook(admit=only(2))
    assert book.report(1, 1, "to_ex", G) == [f"refused 1 {G} any"]
    assert book.report(1, 1, "to_ex", G) == []
    assert book.report(2, 1, "is_ex", G) == []
    assert book.interest(G) == "nothing"
    assert book.report(3, 1, "to_in", G) == []
    assert list(book.core.members()) == []


def test_a_refused_host_does_not_make_good_for_one_who_leaves(playbook):
    book = playbook(admit=only(1))
    book.report(1, 1, "to_ex", G)
    book.report(1, 2, "to_ex", G)
    assert book.report(2, 1, "to_in", G) == [f"1:1 query4 {G}"]
    assert book.quiet_until(10)[-1] == (4, f"1:1 {G} nothing")


def test_sources_are_admitted_one_by_one(playbook):
    book = playbook(admit=only_from(S1))
    assert book.report(1, 1, "allow", G, f"{S1} {S2}") == [f"refused 1 {G} {S2}", f"1:1 {G} only {{{S1}}}"]
    assert book.report(2, 1, "block", G, S2) == []
    assert book.report(3, 1, "to_ex", G) == [f"refused 1 {G} any", f"1:1 {G} nothing"]


def test_changing_to_any_source_where_only_one_is_allowed_and_back(playbook):
    book = playbook(admit=only_from(S1))
    book.report(1, 1, "to_ex", G)
    assert book.report(2, 1, "to_in", G, S1) == [f"1:1 {G} only {{{S1}}}"]


def test_from_an_allowed_source_to_any_other_is_refused_without_a_query(playbook):
    book = playbook(admit=only_from(S1))
    book.report(1, 1, "allow", G, S1)
    assert book.report(2, 1, "to_ex", G, S1) == [f"refused 1 {G} any", f"1:1 {G} nothing"]


def test_the_verdict_is_asked_for_once(playbook):
    asked = []

    def admit(host, group, source):
        asked.append((host.mac[-1], source))
        return True

    book = playbook(admit=admit)
    for now in range(5):
        book.report(now, 1, "is_ex", G)
        book.report(now, 2, "is_in", G, S1)
    assert asked == [(1, None), (2, parse_ip(S1))]


def test_another_ip_address_is_judged_anew(playbook):
    book = playbook(admit=lambda host, group, source: host.ip == parse_ip("10.0.0.7"))
    assert book.report(1, 1, "to_ex", G) == [f"refused 1 {G} any"]
    assert book.report(2, 1, "is_ex", G, ip="0.0.0.0") == []
    assert book.report(3, 1, "is_ex", G, ip="10.0.0.7") == [f"1:1 {G} all but {{}}"]
    assert book.report(4, 1, "is_ex", G, ip="0.0.0.0") == []
    assert book.report(5, 1, "is_ex", G, ip="10.0.0.8") == [f"refused 1 {G} any", f"1:1 {G} nothing"]


def test_a_new_policy_takes_members_off_and_lets_others_in(playbook):
    policy = Changing(only(1))
    book = playbook(ports=[(1, 1), (1, 2)], admit=policy)
    book.report(1, 1, "to_ex", G)
    book.report(1, 2, "to_ex", G, port=(1, 2))
    policy.admit = only(2)
    assert reconsidered(book, policy) == [f"refused 1 {G} any", f"1:1 {G} nothing", f"1:2 {G} all but {{}}"]
    assert reconsidered(book, policy) == []
    assert book.interest(G, (1, 2)) == "all but {}"


def test_only_what_another_policy_decides_otherwise_is_asked_anew(playbook):
    policy = Changing(only_from(S1, S2))
    book = playbook(admit=policy)
    book.report(1, 1, "allow", G, f"{S1} {S2}")
    book.report(1, 2, "allow", G, S1)
    policy.asked.clear()
    policy.admit = only_from(S1)
    assert reconsidered(book, policy) == [f"refused 1 {G} {S2}", f"1:1 {G} only {{{S1}}}"]
    assert policy.asked == [(1, parse_ip(S2))]


def test_groups_that_are_not_concerned_are_not_looked_at(playbook):
    policy = Changing(only(1))
    book = playbook(admit=policy)
    book.report(1, 1, "to_ex", G)
    book.report(1, 1, "to_ex", "239.1.1.2")
    policy.admit = only()
    assert reconsidered(book, policy, parse_ip(G).__eq__) == [f"refused 1 {G} any", f"1:1 {G} nothing"]
    assert book.interest("239.1.1.2") == "all but {}"


def test_members_that_come_and_go_between_the_steps_of_a_new_policy_end_up_as_it_says(playbook):
    policy = Changing(only(1, 2, 3, 4))
    book = playbook(ports=[(1, 1), (1, 2)], admit=policy, fast_leave=True)
    for host, port in ((1, (1, 1)), (2, (1, 1)), (3, (1, 2))):
        book.report(1, host, "to_ex", G, port=port)
    policy.admit = only(4)
    steps = book.core.reconsider(policy.explain)
    book.keep(next(steps), 2.0)
    book.report(2, 2, "to_in", G)
    book.report(2, 4, "to_ex", G, port=(1, 2))
    book.keep(next(steps), 2.0)
    assert not book.core.ports[1, 1].refused.keys() - book.core.ports[1, 1].states()
    book.keep(book.core.port_removed(1, 1, 2.0), 2.0)
    for effects in steps:
        book.keep(effects, 2.0)
    assert book.core.members_table.admitted_count == 1
    assert {m.host.mac[-1]: m.admitted for m in book.core.members()} == {3: False, 4: True}
    assert book.interest(G, (1, 2)) == "all but {}"


def test_refused_memberships_age_too(playbook):
    book = playbook(admit=only())
    book.report(1, 1, "to_ex", G)
    assert book.quiet_until(261) == []
    assert list(book.core.members()) == []


def test_refused_state_makes_room_for_admitted_members(playbook):
    limits = MembershipLimits(groups_per_port=2, hosts_per_port=2, **UNLIMITED)
    book = playbook(admit=only(9), limits=limits)
    for host, group in ((1, "239.0.0.1"), (2, "239.0.0.2")):
        book.report(1, host, "to_ex", group)
    assert book.report(1, 3, "to_ex", "239.0.0.3") == ["refused 3 239.0.0.3 any"]
    assert book.core.counters["refused-not-kept"] == 1
    assert book.report(2, 9, "to_ex", G) == [f"1:1 {G} all but {{}}"]
    assert len(list(book.core.members())) == 2
    assert book.report(2, 9, "to_ex", "239.0.0.4") == ["1:1 239.0.0.4 all but {}"]
    assert book.report(2, 9, "to_ex", "239.0.0.5") == ["notice membership-limit-groups"]
