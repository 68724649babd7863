"""Decisions: each against a plain reading of the policy, and the cases that operators ask about."""

from collections.abc import Iterable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.admission import Admission, Decision, Host, Role
from controller.config import (
    HostTerm,
    MacAddress,
    Policy,
    Prefix,
    Rule,
    SwitchPort,
    Tenant,
    load_policy,
)
from controller.config.policy import ROLES
from controller.config.rule_index import RuleIndex
from controller.config.terms import mask_address
from controller.membership.events import HostRef
from controller.wire.addresses import is_link_scope_group, parse_ip

RECEIVER, SENDER, ROUTER = Role
GROUP = parse_ip("239.1.1.1")


def host(ip: str | None = "10.0.0.1", mac: int = 1, dpid: int = 1, port_no: int = 1) -> Host:
    return Host(mac.to_bytes(6, "big"), None if ip is None else parse_ip(ip), dpid, port_no)


def admission(rules: str, tenants: str = "{}", default: str = "deny") -> Admission:
    return Admission(load_policy(f"version: 1\ntenants: {tenants}\nrules: [{rules}]\ndefault: {default}\n"))


ALLOW = "{name: one, groups: [239.1.0.0/16], role: receiver, hosts: [%s], action: allow}"

MATCHES = [
    ("10.0.0.1", host(), True),
    ("10.0.0.2", host(), False),
    ("10.0.0.0/24", host(), True),
    ("0.0.0.0/0", host(), True),
    ("0.0.0.0/0", host("fd00::1"), False),
    ("'::/0'", host("fd00::1"), True),
    ("'::/0'", host("10.0.0.1"), False),
    ("'fe80::/10'", host("fe80::5"), True),
    ("10.0.0.1", host("::ffff:10.0.0.1"), False),
    ("10.0.0.1", host(None), False),
    ("00:00:00:00:00:01", host(None), True),
    ("00:00:00:00:00:01", host(mac=2), False),
    ("{dpid: 1, port: 1}", host(None), True),
    ("{dpid: 1, port: 1}", host(dpid=2), False),
    ("{dpid: 1, port: 1}", host(port_no=2), False),
    ("any", host(None), True),
    ("blue", host("10.0.0.77"), True),
    ("blue", host("10.0.0.1", mac=0x77), True),
    ("blue", host("10.0.0.1", dpid=0x77, port_no=7), True),
    ("blue", host("172.16.5.5"), True),
    ("blue", host("172.17.5.5"), False),
]


@pytest.mark.parametrize(("term", "who", "admitted"), MATCHES)
def test_a_host_is_matched_by_address_prefix_mac_or_port(term: str, who: Host, admitted: bool):
    tenants = "{blue: [10.0.0.77, 172.16.0.0/16, '00:00:00:00:00:77', {dpid: 0x77, port: 7}]}"
    decision = admission(ALLOW % term, tenants).decide(who, GROUP, RECEIVER)
    assert decision.admit is admitted
    assert decision.rule == ("one" if admitted else "default")


def test_the_first_match_wins():
    core = admission(
        "{name: stop, groups: [239.1.1.0/24], role: any, hosts: [10.0.0.1], action: deny},"
        "{name: go, groups: [239.1.0.0/16], role: any, hosts: any, action: allow}"
    )
    assert core.decide(host(), GROUP, RECEIVER)[:2] == (False, "stop")
    assert core.decide(host("10.0.0.2"), GROUP, RECEIVER)[:2] == (True, "go")
    assert core.decide(host(), parse_ip("239.1.2.1"), RECEIVER)[:2] == (True, "go")


def test_a_receiver_is_no_sender():
    core = admission(ALLOW % "any")
    assert core.decide(host(), GROUP, RECEIVER).admit
    assert not core.decide(host(), GROUP, SENDER).admit


def test_the_default_may_allow():
    core = admission("{name: stop, groups: [239.0.0.0/8], role: any, hosts: any, action: deny}", default="allow")
    assert core.decide(host(), parse_ip("225.1.1.1"), SENDER)[:2] == (True, "default")
    assert not core.decide(host(), GROUP, SENDER).admit


def test_rules_with_sources_are_about_these_sources():
    core = admission(
        "{name: ssm, groups: [232.0.0.0/8], role: any, hosts: any, sources: [10.0.0.1, 10.9.0.0/16], action: allow}"
    )
    group = parse_ip("232.1.1.1")
    assert core.decide(host(), group, RECEIVER, parse_ip("10.0.0.1")).admit
    assert core.decide(host(), group, RECEIVER, parse_ip("10.9.8.7")).admit
    assert not core.decide(host(), group, RECEIVER, parse_ip("10.0.0.2")).admit
    assert not core.decide(host("10.0.0.1"), group, RECEIVER).admit
    assert core.decide(host("10.0.0.1"), group, SENDER).admit
    assert not core.decide(host("10.0.0.2"), group, SENDER).admit
    assert core.decide(host(None), group, SENDER, parse_ip("10.0.0.1")).admit
    assert not core.decide(host(None), group, SENDER).admit


@pytest.mark.parametrize("group", ["224.0.0.251", "ff02::fb", "ff02::1:ff00:1", "ff11::1"])
def test_link_scope_is_exempt(group: str):
    core = admission("{name: stop, groups: [224.0.0.0/4, 'ff00::/8'], role: any, hosts: any, action: deny}")
    assert core.decide(host(), parse_ip(group), SENDER).admit
    assert core.exempt_count == 1
    assert core.counters()["stop"] == {"allow": 0, "deny": 0}


@pytest.mark.parametrize("group", [b"", b"\0" * 5, parse_ip("10.0.0.1"), parse_ip("fd00::1"), b"\xef" * 6])
def test_what_is_no_group_is_refused_whatever_the_policy(group: bytes):
    assert not admission("", default="allow").decide(host(), group, RECEIVER).admit


def test_reasons_say_how_far_the_rules_went():
    core = admission(
        "{name: ssm, groups: [232.0.0.0/8], role: receiver, hosts: [10.0.0.1], sources: [10.0.0.9], action: allow}"
    )
    group = parse_ip("232.1.1.1")

    def reason(decision: Decision) -> str:
        return decision.reason

    assert reason(core.decide(host(), group, RECEIVER, parse_ip("10.0.0.9"))) == (
        "the rule on line 3 allows receivers of 232.0.0.0/8 from 10.0.0.9 at 10.0.0.1"
    )
    assert reason(core.decide(host(), group, RECEIVER)) == (
        "the rules about this host and group are about other sources; the default is deny"
    )
    assert reason(core.decide(host("10.0.0.2"), group, RECEIVER)) == (
        "no rule about receivers of this group is about this host; the default is deny"
    )
    assert reason(core.decide(host(), group, SENDER)) == (
        "no rule is about senders of this group; the default is deny"
    )


def test_long_rules_have_short_reasons():
    groups = ", ".join(f"239.1.1.{last}" for last in range(1, 201))
    core = admission(f"{{name: long, groups: [{groups}], role: any, hosts: [any], action: deny}}")
    assert core.decide(host(), GROUP, SENDER).reason == (
        "the rule on line 3 denies receivers and senders of 239.1.1.1, 239.1.1.2, 239.1.1.3 and 197 more at any host"
    )


def test_every_decision_is_counted_by_rule_and_verdict():
    core = admission(ALLOW % "10.0.0.1")
    for _ in range(3):
        core.decide(host(), GROUP, RECEIVER)
    core.decide(host("10.0.0.2"), GROUP, RECEIVER)
    assert core.counters() == {"one": {"allow": 3, "deny": 0}, "default": {"allow": 0, "deny": 1}}


def test_a_new_policy_decides_at_once_and_keeps_the_counters_of_rules_that_stay():
    core = admission(ALLOW % "any")
    assert core.decide(host(), GROUP, RECEIVER).admit
    core.replace(load_policy(f"version: 1\nrules: [{ALLOW % 'any'}]".replace("allow", "deny")))
    assert not core.decide(host(), GROUP, RECEIVER).admit
    assert core.counters() == {"one": {"allow": 1, "deny": 1}, "default": {"allow": 0, "deny": 0}}
    core.replace(load_policy("version: 1\ndefault: allow"))
    assert core.decide(host(), GROUP, RECEIVER).admit
    assert core.counters() == {"default": {"allow": 1, "deny": 0}}
    assert core.policy.default_allow


def test_the_host_of_a_membership_fact_is_a_host():
    core = admission(ALLOW % "10.0.0.1")
    fact = HostRef(*host())
    assert core.decide(fact, GROUP, RECEIVER) is core.decide(host(), GROUP, RECEIVER)


# A plain reading of the policy, rule by rule, against which the indexed one is held.

ADDRESSES = [parse_ip(f"10.0.{third}.{last}") for third in (0, 1) for last in (1, 2, 3)]
ADDRESSES += [parse_ip(text) for text in ("fe80::1", "fe80::2", "fd00::1")]
GROUPS = [
    parse_ip(text) for text in ("239.1.0.1", "239.1.1.1", "239.2.0.1", "232.0.0.1", "ff3e::1", "ff05::1", "224.0.0.9")
]
MACS = [bytes((0, 0, 0, 0, 0, last)) for last in (1, 2, 3)]


def prefixes(addresses: list[bytes], shortest: tuple[int, int]) -> st.SearchStrategy[Prefix]:
    def cut(address: bytes, bits: int) -> Prefix:
        length = max(shortest[len(address) == 16], 8 * len(address) - bits)
        return Prefix(mask_address(address, length), length)

    return st.builds(cut, st.sampled_from(addresses), st.sampled_from((0, 0, 1, 8, 16, 24, 120)))


PORTS = st.builds(SwitchPort, st.integers(1, 2), st.integers(1, 2))
TERMS: st.SearchStrategy[HostTerm] = (
    prefixes(ADDRESSES, (0, 0)) | st.sampled_from([MacAddress(mac) for mac in MACS]) | PORTS
)
TENANTS = st.fixed_dictionaries({name: st.lists(TERMS, max_size=4) for name in ("a", "b", "c")})
RULES = st.lists(
    st.builds(
        Rule,
        name=st.just(""),
        groups=st.lists(prefixes(GROUPS, (4, 8)), min_size=1, max_size=3).map(tuple),
        roles=st.sampled_from(list(ROLES.values())),
        allow=st.booleans(),
        any_host=st.booleans(),
        tenants=st.lists(st.sampled_from(["a", "b", "c"]), max_size=2).map(tuple),
        hosts=st.lists(TERMS, max_size=2).map(tuple),
        sources=st.lists(prefixes(ADDRESSES, (0, 0)), max_size=2).map(tuple),
    ).map(lambda rule: replace(rule, groups=rule.groups[1:], sources=()) if ROUTER in rule.roles else rule),
    max_size=8,
)
HOSTS = st.builds(
    Host,
    st.sampled_from(MACS),
    st.none() | st.sampled_from(ADDRESSES),
    st.integers(1, 2),
    st.integers(1, 2),
    st.lists(st.sampled_from(ADDRESSES), max_size=3).map(tuple),
)
QUESTIONS = st.tuples(
    HOSTS, st.sampled_from(GROUPS), st.sampled_from(list(Role)), st.none() | st.sampled_from(ADDRESSES)
)


def policy_of(tenants: dict[str, list[HostTerm]], rules: list[Rule], default_allow: bool) -> Policy:
    named = tuple(
        Rule(
            f"rule {index}",
            rule.groups,
            rule.roles,
            rule.allow,
            rule.any_host,
            rule.tenants,
            rule.hosts,
            rule.sources,
        )
        for index, rule in enumerate(rules)
    )
    return Policy(tuple(Tenant(name, tuple(terms)) for name, terms in tenants.items()), named, default_allow)


def read_plainly(policy: Policy, who: Host, group: bytes, role: Role, source: bytes | None) -> tuple[bool, str]:
    if is_link_scope_group(group):
        return True, "default"
    if role is SENDER and source is None:
        source = who.ip
    for rule in policy.rules:
        terms = [
            *rule.hosts,
            *(term for tenant in policy.tenants if tenant.name in rule.tenants for term in tenant.hosts),
        ]
        if (
            role in rule.roles
            and (not rule.groups or within(group, rule.groups))
            and (rule.any_host or any(is_host(term, who) for term in terms))
            and (not rule.sources or (source is not None and within(source, rule.sources)))
        ):
            return rule.allow, rule.name
    return policy.default_allow and role is not ROUTER, "default"


def within(address: bytes, candidates: Iterable[Prefix]) -> bool:
    return any(candidate.contains(address) for candidate in candidates)


def is_host(term: HostTerm, who: Host) -> bool:
    if isinstance(term, Prefix):
        return any(address is not None and term.contains(address) for address in (who.ip, *who.known))
    return term == (who.mac,) or term == (who.dpid, who.port_no)


@settings(max_examples=200)
@given(TENANTS, RULES, st.booleans(), st.lists(QUESTIONS, min_size=1, max_size=12))
def test_decisions_are_those_of_a_plain_reading(
    tenants: dict[str, list[HostTerm]],
    rules: list[Rule],
    default_allow: bool,
    questions: list[tuple[Host, bytes, Role, bytes | None]],
):
    policy = policy_of(tenants, rules, default_allow)
    core = Admission(policy)
    for question in questions + questions:
        decision = core.decide(*question)
        assert (decision.admit, decision.rule) == read_plainly(policy, *question)
    counted = sum(sum(verdicts.values()) for verdicts in core.counters().values())
    assert counted + core.exempt_count == 2 * len(questions)


@settings(max_examples=200)
@given(TENANTS, RULES, st.lists(QUESTIONS, min_size=1, max_size=12))
def test_a_rule_that_is_called_idle_never_decides(
    tenants: dict[str, list[HostTerm]], rules: list[Rule], questions: list[tuple[Host, bytes, Role, bytes | None]]
):
    policy = policy_of(tenants, rules, False)
    index = RuleIndex(policy.rules, policy.tenants)
    populated = {tenant.name for tenant in policy.tenants if tenant.hosts}
    idle = {
        rule.name
        for position, rule in enumerate(policy.rules)
        if (rule.any_host or rule.hosts or populated.intersection(rule.tenants))
        and index.shadow_of(position) is not None
    }
    core = Admission(policy)
    assert not {core.decide(*question).rule for question in questions} & idle


# Routers


@settings(max_examples=200)
@given(TENANTS, RULES, st.booleans(), HOSTS)
def test_the_groups_of_a_router_are_those_that_the_rules_decide_one_by_one(
    tenants: dict[str, list[HostTerm]], rules: list[Rule], default_allow: bool, who: Host
):
    core = Admission(policy_of(tenants, rules, default_allow))
    for family, size in ((4, 4), (6, 16)):
        decision, groups = core.decide_router(who, family)
        of_family = [group for group in GROUPS if len(group) == size and not is_link_scope_group(group)]
        allowed = [group for group in of_family if core.decide(who, group, ROUTER).admit]
        assert allowed == [group for group in of_family if group in groups]
        assert decision.admit or not allowed
        assert not groups.holds_every_group(family) or allowed == of_family


ROUTER_RULE = "{name: uplink, role: router, hosts: [10.0.0.1], action: allow}"


@pytest.mark.parametrize("rules", ["", "{name: all, groups: [224.0.0.0/4], role: any, hosts: any, action: allow}"])
def test_neither_the_default_nor_the_role_any_admits_a_router(rules: str):
    core = admission(rules, default="allow")
    decision, groups = core.decide_router(host(), 4)
    assert (decision.admit, decision.rule) == (False, "default")
    assert "settings of its port" in decision.reason
    assert GROUP not in groups
    assert not core.decide(host(), GROUP, ROUTER).admit


def test_a_rule_without_groups_admits_a_router_of_every_group():
    core = admission(ROUTER_RULE)
    decision, groups = core.decide_router(host(), 4)
    assert decision == (True, "uplink", "the rule on line 3 allows routers of every group at 10.0.0.1")
    assert groups.holds_every_group(4)
    assert core.decide(host(), GROUP, ROUTER).rule == "uplink"
    assert not core.decide_router(host("10.0.0.2"), 4).decision.admit
    assert not core.decide(host(), GROUP, RECEIVER).admit, "a router is no receiver by that"
    assert core.counters()["uplink"] == {"allow": 2, "deny": 0}


def test_a_router_may_be_allowed_some_groups():
    some = "{name: some, groups: [239.1.0.0/16, 239.2.0.0/16], role: router, hosts: any, action: allow}"
    none = "{name: none, groups: [239.1.9.0/24], role: router, hosts: any, action: deny}"
    decision, groups = admission(f"{none}, {some}").decide_router(host(), 4)
    assert decision.rule == "some"
    names = ("239.1.1.1", "239.1.9.1", "239.2.1.1", "239.3.1.1", "ff0e::1")
    assert [parse_ip(group) in groups for group in names] == [True, False, True, False, False]
    assert not groups.holds_every_group(4)
    assert not admission(f"{none}, {some}").decide_router(host("fd00::1"), 6).decision.admit
    every = "{name: every, groups: [224.0.0.0/4], role: router, hosts: any, action: allow}"
    assert admission(every).decide_router(host(), 4).groups.holds_every_group(4)
    assert not admission(f"{none}, {every}").decide_router(host(), 4).groups.holds_every_group(4)


def test_a_rule_may_deny_a_router_that_a_later_one_allows():
    deny = "{name: not-this, role: router, hosts: [{dpid: 1, port: 1}], action: deny}"
    core = admission(f"{deny}, {ROUTER_RULE}")
    assert core.decide_router(host(), 4).decision[:2] == (False, "not-this")
    assert core.decide_router(host(port_no=2), 4).decision[:2] == (True, "uplink")


VLANS = "vlans: {names: {10: storage, 20: video, 30: shop}}"


def in_vlans(vlan: str) -> Admission:
    rule = f"{{name: one, groups: [239.1.0.0/16], role: any, hosts: any, vlan: {vlan}, action: allow}}"
    return Admission(load_policy(f"version: 1\n{VLANS}\nrules: [{rule}]\n"))


@pytest.mark.parametrize(
    ("vlan", "admitted"),
    [
        ("20", {20}),
        ("video", {20}),
        ("untagged", {0}),
        ("[10, video]", {10, 20}),
        ("[untagged, 10, 20]", {0, 10, 20}),
    ],
)
def test_a_rule_may_be_about_vlans(vlan: str, admitted: set[int]) -> None:
    decider = in_vlans(vlan)
    for role in (RECEIVER, SENDER):
        found = {vlan_id for vlan_id in (0, 10, 20, 30) if decider.decide(host(), GROUP, role, None, vlan_id).admit}
        assert found == admitted
    refused = decider.explain(host(), GROUP, RECEIVER, None, 30)
    assert "are about other VLANs" in refused.reason
    assert "in VLAN" in decider.explain(host(), GROUP, RECEIVER, None, max(admitted)).reason


def test_rules_of_other_vlans_hide_nothing() -> None:
    one = Rule("one", (), frozenset({RECEIVER}), True, any_host=True, vlans=frozenset({10}))
    two = Rule("two", (), frozenset({RECEIVER}), True, any_host=True, vlans=frozenset({10, 20}))
    three = Rule("three", (), frozenset({RECEIVER}), True, any_host=True)
    assert [RuleIndex((one, two, three), ()).shadow_of(n) for n in range(3)] == [None, None, None]
    assert [RuleIndex((three, two, one), ()).shadow_of(n) for n in range(3)] == [None, 0, 0]
    assert RuleIndex((two, one), ()).shadow_of(1) == 0
