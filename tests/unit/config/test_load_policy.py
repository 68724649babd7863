"""What a good policy file becomes."""

from pathlib import Path

import pytest

from controller.config import (
    MacAddress,
    Policy,
    PolicyInvalid,
    Prefix,
    Role,
    Rule,
    SwitchPort,
    Tenant,
    load_policy,
)
from controller.wire.addresses import parse_ip, parse_mac

POLICIES = sorted((Path(__file__).parents[3] / "policies").glob("*.yaml"))

EXAMPLE = """\
version: 1
tenants:
  tenant1: [10.0.0.1, 10.0.0.5, 10.1.0.0/16, "00:00:00:00:00:0b", {dpid: 1, port: 3}]
rules:                       # first match wins
  - {name: tenant1-feed, groups: [239.1.0.0/16], role: receiver, hosts: [tenant1], action: allow}
  - {name: feed-source, groups: [239.1.0.0/16], role: sender, hosts: [10.0.0.1], action: allow}
default: deny                # deny | allow
limits: {groups_per_port: 64, reports_per_second_per_port: 100}
multicast: {tree: vsrt, querier: {robustness: 2, query_interval_s: 125, response_interval_s: 10, last_member_interval_s: 1}}
"""  # noqa: E501 - as it stands there


def prefix(text: str) -> Prefix:
    address, _, length = text.partition("/")
    network = parse_ip(address)
    return Prefix(network, int(length) if length else 8 * len(network))


def test_the_example_of_the_interface_description():
    policy = load_policy(EXAMPLE)
    assert policy == Policy(
        tenants=(
            Tenant(
                "tenant1",
                (
                    prefix("10.0.0.1"),
                    prefix("10.0.0.5"),
                    prefix("10.1.0.0/16"),
                    MacAddress(parse_mac("00:00:00:00:00:0b")),
                    SwitchPort(1, 3),
                ),
            ),
        ),
        rules=(
            Rule("tenant1-feed", (prefix("239.1.0.0/16"),), frozenset({Role.RECEIVER}), True, tenants=("tenant1",)),
            Rule(
                "feed-source", (prefix("239.1.0.0/16"),), frozenset({Role.SENDER}), True, hosts=(prefix("10.0.0.1"),)
            ),
        ),
    )
    assert policy.warnings == ()
    assert [rule.line for rule in policy.rules] == [5, 6]


@pytest.mark.parametrize("path", POLICIES, ids=lambda path: path.name)
def test_policies_that_are_shipped_have_no_fault_and_no_warning(path: Path):
    assert load_policy(path.read_bytes(), str(path)).warnings == ()


def test_there_are_policies_to_ship():
    assert {"example.yaml", "open.yaml", "strict.yaml"} <= {path.name for path in POLICIES}


def test_a_version_is_enough_and_denies():
    policy = load_policy("version: 1")
    assert policy == Policy()
    assert policy.default_allow is False


def test_a_policy_cannot_be_changed():
    with pytest.raises(AttributeError):
        load_policy("version: 1").default_allow = True  # type: ignore[misc]


def test_bytes_may_begin_with_a_byte_order_mark():
    assert load_policy(b"\xef\xbb\xbfversion: 1\r\ndefault: allow\r\n").default_allow


def test_json_is_yaml():
    assert load_policy('{"version": 1, "default": "allow"}').default_allow


def rule_of(extra: str) -> Rule:
    text = f"version: 1\ntenants: {{blue: [10.0.0.1]}}\nrules:\n  - {{name: r, groups: [239.0.0.0/8], {extra}}}\n"
    return load_policy(text).rules[0]


def test_a_rule_may_name_any_host():
    assert rule_of("role: any, hosts: any, action: deny").any_host
    rule = rule_of("role: any, hosts: [any, blue], action: deny")
    assert rule.any_host
    assert rule.roles == {Role.RECEIVER, Role.SENDER}
    assert rule.tenants == ("blue",)
    assert not rule.allow


def test_a_rule_about_routers_needs_no_groups():
    policy = load_policy("version: 1\nrules: [{name: r, role: router, hosts: any, action: allow}]")
    (rule,) = policy.rules
    assert (rule.roles, rule.groups) == ({Role.ROUTER}, ())
    assert rule_of("role: router, hosts: any, action: allow").groups == (Prefix(parse_ip("239.0.0.0"), 8),)


def test_no_port_is_a_router_port_and_no_other_querier_counts_by_default():
    multicast = load_policy("version: 1").multicast
    assert multicast.router_ports.learn is False
    assert multicast.querier.accept_others is False


def test_a_rule_may_name_hosts_in_every_way():
    rule = rule_of(
        "role: sender, action: allow, hosts: [blue, 10.0.0.9, 'fe80::/10', 02:00:00:00:00:0A, {dpid: 0xff, port: 7}]"
    )
    assert rule.hosts == (
        prefix("10.0.0.9"),
        prefix("fe80::/10"),
        MacAddress(b"\x02\0\0\0\0\x0a"),
        SwitchPort(255, 7),
    )


def test_a_mac_address_needs_no_quotes_even_where_yaml_would_count_in_sixties():
    assert rule_of("role: any, action: allow, hosts: [10:20:30:40:50:10]").hosts == (
        MacAddress(bytes.fromhex("102030405010")),
    )


def test_a_rule_may_ask_for_sources():
    rule = rule_of("role: receiver, hosts: any, action: allow, sources: [10.0.0.1, 10.2.0.0/16]")
    assert rule.sources == (prefix("10.0.0.1"), prefix("10.2.0.0/16"))


def test_tenants_may_stand_after_the_rules():
    policy = load_policy(
        "rules: [{name: r, groups: [239.1.1.1], role: any, hosts: [late], action: allow}]\n"
        "tenants: {late: [10.0.0.1]}\nversion: 1\n"
    )
    assert policy.rules[0].tenants == ("late",)


def test_groups_may_be_as_wide_as_all_of_multicast():
    policy = load_policy(
        "version: 1\n"
        "rules: [{name: r, groups: [224.0.0.0/4, 'ff00::/8', 224.0.0.0/23], role: any, hosts: any, action: allow}]\n"
    )
    assert policy.rules[0].groups == (prefix("224.0.0.0/4"), prefix("ff00::/8"), prefix("224.0.0.0/23"))


def test_settings_of_every_type():
    policy = load_policy(
        """
version: 1
limits: {groups_per_port: 0x10, reports_per_second_per_port: 2.5e2}
multicast:
  tree: steiner
  seed: 7
  fast_leave: [{dpid: 1, port: 2}, {dpid: 3, port: 4}]
  default_rate_bps: 1e7
  querier:
    enabled: no
    last_member_count: 3
    address_v4: 10.0.0.254
    address_v6: "fe80::1"
  router_ports: {learn: false, static: [{dpid: 9, port: 9}]}
unicast: {host_timeout_s: 60}
discovery: {lldp_interval_s: .5}
"""
    )
    assert policy.limits.groups_per_port == 16
    assert policy.limits.reports_per_second_per_port == 250.0
    assert policy.limits.hosts_per_port == Policy().limits.hosts_per_port
    multicast = policy.multicast
    assert (multicast.tree, multicast.seed, multicast.default_rate_bps) == ("steiner", 7, 1e7)
    assert multicast.fast_leave == {(1, 2), (3, 4)}
    assert multicast.querier.enabled is False
    assert multicast.querier.last_member_count == 3
    assert multicast.querier.startup_count is None
    assert multicast.querier.address_v4 == parse_ip("10.0.0.254")
    assert multicast.querier.address_v6 == parse_ip("fe80::1")
    assert multicast.router_ports.learn is False
    assert multicast.router_ports.static == {SwitchPort(9, 9)}
    assert policy.unicast.host_timeout_s == 60.0
    assert policy.discovery.lldp_interval_s == 0.5


def test_fast_leave_for_all_ports_or_none():
    assert load_policy("version: 1\nmulticast: {fast_leave: true}").multicast.fast_leave is True
    assert load_policy("version: 1").multicast.fast_leave is False


def test_the_comparison_with_peers_is_set():
    anomaly = load_policy("version: 1\nanomaly: {interval_s: 10, peers: pod, watch: {cpu: false}}\n").anomaly
    assert (anomaly.interval_s, anomaly.peers, anomaly.watch.cpu, anomaly.watch.lost) == (10, "pod", False, True)


def test_the_comparison_has_the_values_of_its_source():
    anomaly = load_policy("version: 1").anomaly
    assert (anomaly.interval_s, anomaly.smoothing_samples, anomaly.bins_max) == (15, 15, 1000)
    assert (anomaly.window_samples, anomaly.shift_samples, anomaly.confirm_windows) == (60, 30, 3)


def warnings_of(tenants: str, rules: str) -> list[tuple[int, str]]:
    policy = load_policy(f"version: 1\ntenants: {tenants}\nrules:\n{rules}")
    return [(warning.line, warning.message) for warning in policy.warnings]


SHADOWS = [
    ("role: router, hosts: any", "groups: [239.1.1.1], role: router, hosts: any", True),
    ("groups: [239.1.1.1], role: router, hosts: any", "role: router, hosts: any", False),
    ("role: router, hosts: any", "groups: [239.1.1.1], role: any, hosts: any", False),
    ("groups: [239.0.0.0/8], role: any, hosts: any", "role: router, hosts: any", False),
    ("groups: [239.0.0.0/8], role: any, hosts: any", "groups: [239.1.1.1], role: any, hosts: [blue]", True),
    ("groups: [239.0.0.0/8], role: any, hosts: any", "groups: [239.1.1.1, 232.1.1.1], role: any, hosts: any", False),
    ("groups: [239.0.0.0/8], role: sender, hosts: any", "groups: [239.1.1.1], role: any, hosts: any", False),
    ("groups: [239.0.0.0/8], role: any, hosts: any", "groups: [239.1.1.1], role: sender, hosts: any", True),
    ("groups: [239.0.0.0/8], role: any, hosts: [blue]", "groups: [239.0.0.0/8], role: any, hosts: any", False),
    ("groups: [239.0.0.0/8], role: any, hosts: [blue]", "groups: [239.0.0.0/8], role: any, hosts: [blue]", True),
    (
        "groups: [239.0.0.0/8], role: any, hosts: [blue]",
        "groups: [239.0.0.0/8], role: any, hosts: [blue, red]",
        False,
    ),
    ("groups: [239.0.0.0/8], role: any, hosts: [10.0.0.0/8]", "groups: [239.1.1.1], role: any, hosts: [red]", True),
    ("groups: [239.0.0.0/8], role: any, hosts: [10.0.0.0/8]", "groups: [239.1.1.1], role: any, hosts: [blue]", False),
    (
        "groups: [239.0.0.0/8], role: any, hosts: any, sources: [10.0.0.1]",
        "groups: [239.1.1.1], role: any, hosts: any",
        False,
    ),
    (
        "groups: [239.0.0.0/8], role: any, hosts: any, sources: [10.0.0.0/24]",
        "groups: [239.1.1.1], role: any, hosts: any, sources: [10.0.0.1]",
        True,
    ),
    (
        "groups: [239.0.0.0/8], role: any, hosts: any",
        "groups: [239.1.1.1], role: any, hosts: any, sources: [10.0.0.1]",
        True,
    ),
]


@pytest.mark.parametrize(("first", "second", "shadowed"), SHADOWS)
def test_a_rule_that_never_decides_is_warned_of(first: str, second: str, shadowed: bool):
    found = warnings_of(
        "{blue: [10.0.0.1, '00:00:00:00:00:0b', {dpid: 1, port: 1}], red: [10.0.0.2]}",
        f"  - {{name: one, action: deny, {first}}}\n  - {{name: two, action: allow, {second}}}\n",
    )
    expected = [(5, "rule 'two' never decides: 'one' (line 4) comes first")] if shadowed else []
    assert found == expected


def test_rules_that_match_nothing_are_warned_of():
    assert warnings_of(
        "{none: []}",
        "  - {name: a, groups: [239.1.1.1], role: any, hosts: [none], action: allow}\n"
        "  - {name: b, groups: [239.1.1.1], role: any, hosts: any, sources: ['fd00::1'], action: allow}\n",
    ) == [
        (2, "the tenant has no hosts"),
        (4, "rule 'a' never applies: its tenants have no hosts"),
        (5, "rule 'b' never applies: its sources are not of its groups' family"),
    ]


def test_addresses_in_two_tenants_are_warned_of():
    found = load_policy(
        "version: 1\ntenants:\n  a: [10.0.0.0/8, {dpid: 1, port: 1}, '00:00:00:00:00:01', '00:00:00:00:00:01']\n"
        "  b:\n    - 10.1.0.0/16\n    - {dpid: 1, port: 1}\n  c: [10.0.0.0/8]\n"
    ).warnings
    assert [(warning.line, warning.field, warning.message) for warning in found] == [
        (3, "tenants.a[3]", "00:00:00:00:00:01 is in tenant 'a' already (line 3)"),
        (5, "tenants.b[0]", "10.1.0.0/16 is within 10.0.0.0/8 of tenant 'a' (line 3)"),
        (6, "tenants.b[1]", "1:1 is in tenant 'a' already (line 3)"),
        (7, "tenants.c[0]", "10.0.0.0/8 is in tenant 'a' already (line 3)"),
    ]


def test_warnings_do_not_make_policies_differ():
    once = "version: 1\ntenants: {a: [10.0.0.1]}"
    assert load_policy(once) == load_policy("# moved down a line\n" + once)


def test_the_error_tells_source_line_and_field():
    with pytest.raises(PolicyInvalid, match=r"^site\.yaml:2: default: expected one of allow, deny"):
        load_policy("version: 1\ndefault: perhaps", "site.yaml")
