"""Which groups another policy concerns: none is left out whose decisions change, and few others are named."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from controller.admission.admission import Admission
from controller.admission.concern import Concern
from controller.admission.host import Host
from controller.config.policy import ROLES, Policy, Role, Rule, Tenant
from controller.config.terms import parse_prefix
from controller.wire.addresses import parse_ip

GROUPS = [parse_ip(text) for text in ("239.1.1.1", "239.1.2.1", "239.2.1.1", "232.1.1.1", "ff0e::1")]
PREFIXES = [
    parse_prefix(text) for text in ("239.1.1.0/24", "239.1.0.0/16", "239.0.0.0/8", "232.0.0.0/8", "ff0e::/16")
]
ADDRESSES = [parse_ip(text) for text in ("10.0.0.1", "10.0.0.2", "10.1.0.1")]
TERMS = [parse_prefix(text) for text in ("10.0.0.1/32", "10.0.0.0/24", "10.1.0.0/16")]
HOSTS = [Host(bytes((2, 0, 0, 0, 0, number)), address, 1, number) for number, address in enumerate(ADDRESSES)]
ASKED = [
    (host, group, role, source)
    for host in HOSTS
    for group in GROUPS
    for role in (Role.RECEIVER, Role.SENDER)
    for source in (None, ADDRESSES[0])
]


def rule(name, groups=PREFIXES[:1], role="any", allow=True, tenants=("a",), hosts=(), sources=(), line=1):
    return Rule(
        name, tuple(groups), ROLES[role], allow, False, tuple(tenants), tuple(hosts), tuple(sources), line=line
    )


RULES = st.builds(
    rule,
    name=st.sampled_from("pqr"),
    groups=st.lists(st.sampled_from(PREFIXES), min_size=1, max_size=2),
    role=st.sampled_from(["receiver", "sender", "any", "router"]),
    allow=st.booleans(),
    tenants=st.lists(st.sampled_from("ab"), max_size=1),
    hosts=st.lists(st.sampled_from(TERMS), max_size=1),
    sources=st.lists(st.sampled_from(TERMS), max_size=1),
)
POLICIES = st.builds(
    lambda rules, hosts, default: Policy(
        tenants=tuple(Tenant(name, tuple(terms)) for name, terms in zip("ab", hosts, strict=True)),
        rules=tuple(replace(one, name=f"{one.name}{number}") for number, one in enumerate(rules)),
        default_allow=default,
    ),
    st.lists(RULES, max_size=4),
    st.tuples(*[st.lists(st.sampled_from(TERMS), min_size=1, max_size=1)] * 2),
    st.booleans(),
)


@settings(max_examples=300, deadline=None)
@given(before=POLICIES, after=POLICIES, kept=st.integers(0, 4))
def test_no_group_is_left_out_whose_decisions_change(before, after, kept):
    after = replace(after, rules=(*before.rules[:kept], *after.rules))
    concern = Concern()
    concern.add(before, after)
    old, new = Admission(before), Admission(after)
    for host, group, role, source in ASKED:
        if old.explain(host, group, role, source).admit != new.explain(host, group, role, source).admit:
            assert concern.about(group, role)


def test_a_rule_that_changes_concerns_its_groups_before_and_after_and_its_roles():
    first, last = rule("first", PREFIXES[2:3]), rule("last", PREFIXES[3:4])
    before = Policy(rules=(first, rule("middle", PREFIXES[:1], "receiver"), last))
    after = Policy(rules=(first, rule("middle", PREFIXES[4:], "receiver"), last))
    concern = Concern()
    assert concern.add(before, after)
    assert [group for group in GROUPS if concern.about(group, Role.RECEIVER)] == [GROUPS[0], GROUPS[4]]
    assert not any(concern.about(group, Role.SENDER) for group in GROUPS)
    assert concern.of_role(Role.RECEIVER)
    assert not concern.of_role(Role.SENDER)


def test_a_rule_that_comes_or_goes_concerns_no_groups_but_its_own():
    first, second, third = (rule(name, [prefix]) for name, prefix in zip("xyz", PREFIXES[2:], strict=True))
    for before, after in (((first, third), (first, second, third)), ((first, second, third), (first, third))):
        concern = Concern()
        assert concern.add(Policy(rules=before), Policy(rules=after))
        assert [group for group in GROUPS if concern.about(group, Role.SENDER)] == [GROUPS[3]]


def test_other_hosts_of_a_tenant_concern_the_rules_that_name_it():
    rules = (rule("a", PREFIXES[:1], tenants="a"), rule("b", PREFIXES[3:4], tenants="b"))
    hosts = (Tenant("a", (TERMS[0],)), Tenant("b", (TERMS[0],)))
    concern = Concern()
    assert concern.add(Policy(tenants=hosts, rules=rules), Policy(tenants=(hosts[0], Tenant("b", ())), rules=rules))
    assert [group for group in GROUPS if concern.about(group, Role.SENDER)] == [GROUPS[3]]


def test_another_default_concerns_every_group():
    concern = Concern()
    assert concern.add(Policy(), Policy(default_allow=True))
    assert all(concern.about(group, role) for group in GROUPS for role in (Role.RECEIVER, Role.SENDER))


def test_lines_and_the_order_of_tenants_concern_nothing():
    hosts = (Tenant("a", (TERMS[0],), line=1), Tenant("b", (), line=2))
    before = Policy(tenants=hosts, rules=(rule("a", line=3),))
    concern = Concern()
    assert not concern.add(before, Policy(tenants=hosts[::-1], rules=(rule("a", line=9),)))
    assert not concern


def test_a_concern_grows_by_every_change():
    concern = Concern()
    concern.add(Policy(), Policy(rules=(rule("a", PREFIXES[3:4]),)))
    concern.add(Policy(rules=(rule("a", PREFIXES[3:4]),)), Policy(rules=(rule("b", PREFIXES[:1]),)))
    assert [group for group in GROUPS if concern.about(group, Role.RECEIVER)] == [GROUPS[0], GROUPS[3]]
