"""Every kind of fault, with its line, and all of them at once."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.config import PolicyInvalid, load_policy
from controller.config.document import MAX_BYTES, MAX_DEPTH
from controller.config.faults import MAX_ERRORS, MAX_SUGGESTIONS
from controller.config.load import MAX_RULES


def faults(text: str | bytes) -> list[tuple[int, str, str]]:
    """Return the faults of a text, which must have some."""
    with pytest.raises(PolicyInvalid) as caught:
        load_policy(text)
    return [tuple(error) for error in caught.value.errors]  # type: ignore[misc]


def only_fault(text: str | bytes) -> tuple[int, str, str]:
    found = faults(text)
    assert len(found) == 1, found
    return found[0]


def in_tenant(literal: str) -> str:
    return f"version: 1\ntenants:\n  blue:\n    - {literal}\n"


def in_rule(**changed: str) -> str:
    entries = {"name": "r", "groups": "[239.1.0.0/16]", "role": "any", "hosts": "any", "action": "allow", **changed}
    return "version: 1\nrules:\n  - " + "\n    ".join(f"{key}: {value}" for key, value in entries.items() if value)


SYNTAX = [
    ("", 1, "the file is empty"),
    ("# nothing but a comment\n", 1, "the file is empty"),
    ("---\n", 1, "the file is empty"),
    ("version: 1\nrules: [\n", 2, "YAML syntax"),
    ("version: 1\nrules:\n\t- a\n", 3, "a tab in the indentation"),
    ("version: 1\ndefault: 'deny\nrules: []\n", 3, "a quoted scalar from line 2 on"),
    ("version: 1\ndefault: b: c\n", 2, "YAML syntax"),
    ("version: 1\n---\nversion: 1\n", 2, "a second YAML document"),
    ("version: 1\ndefault: &x deny\n", 2, "anchors are not supported"),
    ("version: 1\ndefault: !!str deny\n", 2, "tags are not supported"),
    ("version: 1\ndefault:\n  !!python/object/apply:os.system deny\n", 3, "tags are not supported"),
    ("version: 1\ndefault: de\x00ny\n", 2, "U+0000"),
    ("version: 1\ndefault: \ud800\n", 2, "U+D800"),
    (b"version: 1\n# caf\xe9\n", 2, "byte 0xe9 is not UTF-8"),
    ("version: 1".encode("utf-16"), 1, "is not UTF-8"),
    ("version: 1\nanomaly: " + "[" * 5000, 2, f"nested deeper than {MAX_DEPTH}"),
    ("version: 1\n" + "- " * 5000, 2, ""),
    ("version: 1 #" + " " * MAX_BYTES, 1, "larger than"),
    (b"version: 1 #" + b" " * MAX_BYTES, 1, "larger than"),
    ("- version: 1\n", 1, "expected a mapping of the policy's sections, found a list"),
    ("version 1", 1, "expected a mapping of the policy's sections, found the text 'version 1'"),
]


@pytest.mark.parametrize(("text", "line", "message"), SYNTAX, ids=range(len(SYNTAX)))
def test_what_is_no_policy_text(text: str | bytes, line: int, message: str):
    found_line, _, found = only_fault(text)
    assert found_line == line
    assert message in found


def test_aliases_are_refused_wherever_they_stand():
    bomb = "version: 1\nanomaly:\n  a: &a [x, x]\n  b: &b [*a, *a]\n  c: [*b, *b]\ndefault: *a\n"
    found = [(line, message.split(":")[0]) for line, _, message in faults(bomb) if message != "unknown key"]
    assert found == [
        (3, "anchor &a"),
        (4, "alias *a"),
        (4, "alias *a"),
        (4, "anchor &b"),
        (5, "alias *b"),
        (5, "alias *b"),
        (6, "alias *a"),
    ]


CASES = [
    # the sections
    ("default: deny", 1, "version", "missing"),
    ("version: 2", 1, "version", "version 2 is not supported, only 1"),
    ("version: true", 1, "version", "expected a whole number, found the boolean 'true'"),
    ("version: '1'", 1, "version", "expected a whole number, found the text '1'"),
    ("version: 1.0", 1, "version", "expected a whole number, found the number '1.0'"),
    ("version: 1\nversion: 1", 2, "version", "duplicate key, first on line 1"),
    ("version: 1\nrulse: []", 2, "rulse", "unknown key; did you mean 'rules'?"),
    ("version: 1\nxyzzy: []", 2, "xyzzy", "unknown key"),
    ("version: 1\n? [a]\n: b", 2, "", "expected a text as key, found a list"),
    ("version: 1\n5: b", 2, "[…]", ""),
    ("version: 1\ndefault:", 2, "default", "expected one of allow, deny, found nothing"),
    ("version: 1\ndefault: no", 2, "default", "expected one of allow, deny, found the boolean 'no'"),
    ("version: 1\ntenants: [10.0.0.1]", 2, "tenants", "found a list"),
    ("version: 1\nrules: {}", 2, "rules", "expected a list of rules, found a mapping"),
    ("version: 1\nrules:", 2, "rules", "expected a list of rules, found nothing"),
    ("version: 1\nlimits: 5", 2, "limits", "expected a mapping, found the number '5'"),
    ("version: 1\nanomaly: [1]", 2, "anomaly", "expected a mapping, found a list"),
    ("version: 1\nanomaly:\n  margin: 1\n  margin: 2", 4, "anomaly.margin", "duplicate key, first on line 3"),
    ("version: 1\nanomaly: {margins: 1}", 2, "anomaly.margins", "unknown key; did you mean 'margin'?"),
    ("version: 1\nanomaly:\n  confirm_windows: 0", 3, "anomaly.confirm_windows", "0 is not within 1 and 16"),
    ("version: 1\nanomaly: {form: fast}", 2, "anomaly.form", "expected one of pairs, binned, median"),
    ("version: 1\nanomaly: {watch: {lost: 1}}", 2, "anomaly.watch.lost", "found the number '1'"),
    # hosts
    (in_tenant("10.0.0.300"), 4, "tenants.blue[0]", "'10.0.0.300' is not an IPv4 or IPv6 address or prefix"),
    (in_tenant("10.0.0.01"), 4, "tenants.blue[0]", "is not an IPv4 or IPv6 address or prefix"),
    (in_tenant("10.1"), 4, "tenants.blue[0]", "is not an IPv4 or IPv6 address or prefix"),
    (in_tenant("host7"), 4, "tenants.blue[0]", "is not an IPv4 or IPv6 address or prefix"),
    (in_tenant("10.0.0.1/8"), 4, "tenants.blue[0]", "has host bits set; did you mean 10.0.0.0/8?"),
    (in_tenant("'fd00::1/64'"), 4, "tenants.blue[0]", "has host bits set; did you mean fd00::/64?"),
    (in_tenant("10.0.0.0/33"), 4, "tenants.blue[0]", "the length of an IPv4 prefix is 0 to 32"),
    (in_tenant("10.0.0.0/-1"), 4, "tenants.blue[0]", "the length of an IPv4 prefix is 0 to 32"),
    (in_tenant("10.0.0.0/255.0.0.0"), 4, "tenants.blue[0]", "the length of an IPv4 prefix is 0 to 32"),
    (in_tenant("'fd00::/129'"), 4, "tenants.blue[0]", "the length of an IPv6 prefix is 0 to 128"),
    (in_tenant("224.1.1.1"), 4, "tenants.blue[0]", "is multicast"),
    (in_tenant("'ff05::/16'"), 4, "tenants.blue[0]", "is multicast"),
    (in_tenant("0.0.0.0"), 4, "tenants.blue[0]", "unspecified"),
    (in_tenant("255.255.255.255"), 4, "tenants.blue[0]", "broadcast"),
    (in_tenant("'fe80::1%eth0'"), 4, "tenants.blue[0]", "has a zone"),
    (in_tenant("'::ffff:10.0.0.1'"), 4, "tenants.blue[0]", "IPv4-mapped"),
    (in_tenant("01:00:00:00:00:01"), 4, "tenants.blue[0]", "group address"),
    (in_tenant("00:00:00:00:00:00"), 4, "tenants.blue[0]", "all zero"),
    (in_tenant("00-00-00-00-00-0b"), 4, "tenants.blue[0]", "is not a MAC address such as"),
    (in_tenant("0:0:0:0:0:b"), 4, "tenants.blue[0]", "is not a MAC address such as"),
    (in_tenant("true"), 4, "tenants.blue[0]", "{dpid, port}, found the boolean 'true'"),
    (in_tenant("~"), 4, "tenants.blue[0]", "{dpid, port}, found nothing"),
    (in_tenant("''"), 4, "tenants.blue[0]", "{dpid, port}, found the text ''"),
    (in_tenant("[10.0.0.1]"), 4, "tenants.blue[0]", "{dpid, port}, found a list"),
    (in_tenant("{dpid: 1}"), 4, "tenants.blue[0].port", "missing"),
    (in_tenant("{dpid: 1, port: 2, vlan: 3}"), 4, "tenants.blue[0].vlan", "unknown key"),
    (in_tenant("{dpid: 0, port: 2}"), 4, "tenants.blue[0].dpid", "0 is not within 1 and 18446744073709551615"),
    (in_tenant("{dpid: 1, port: 4294967295}"), 4, "tenants.blue[0].port", "is not within 1 and 4294967040"),
    (in_tenant("{dpid: 1, port: yes}"), 4, "tenants.blue[0].port", "expected a whole number"),
    ("version: 1\ntenants:\n  blue: 10.0.0.1", 3, "tenants.blue", "expected a list of hosts"),
    ("version: 1\ntenants:\n  any: [10.0.0.1]", 3, "tenants.any", "reserved"),
    ("version: 1\ntenants:\n  '10.0.0.1': []", 3, "tenants['10.0.0.1']", "could be taken for an address"),
    ("version: 1\ntenants:\n  yes: []", 3, "tenants.yes", "expected a text as key"),
    ("version: 1\ntenants:\n  a: []\n  a: []", 4, "tenants.a", "duplicate key, first on line 3"),
    (f"version: 1\ntenants:\n  {'x' * 65}: []", 3, f"tenants.{'x' * 65}", "at most 64"),
    ('version: 1\ntenants:\n  "a\\nb": []', 3, "tenants['a\\nb']", "control characters"),
    (
        "version: 1\ntenants:\n  a:\n    - 00:00:00:00:00:0b\n  b:\n    - 00:00:00:00:00:0B",
        6,
        "tenants.b[0]",
        "00:00:00:00:00:0b is in tenant 'a' already (line 4)",
    ),
    # rules
    (in_rule(name=""), 3, "rules[0].name", "missing"),
    (in_rule(name="5"), 3, "rules[0].name", "expected a name (put it in quotes), found the number '5'"),
    (in_rule(name="on"), 3, "rules[0].name", "expected a name (put it in quotes), found the boolean 'on'"),
    (in_rule(name="default"), 3, "rules[0].name", "reserved"),
    (in_rule(name="' x'"), 3, "rules[0].name", "spaces at its ends"),
    (
        in_rule() + in_rule()[len("version: 1\nrules:") :],
        8,
        "rules[1].name",
        "already the name of the rule on line 3",
    ),
    (in_rule(groups=""), 3, "rules[0].groups", "missing; only a rule about routers may do without"),
    (in_rule(role="router", groups="[]"), 4, "rules[0].groups", "no groups"),
    (in_rule(role="router", sources="[10.0.0.1]"), 8, "rules[0].sources", "a router is told by its host alone"),
    (in_rule(groups="[]"), 4, "rules[0].groups", "no groups"),
    (in_rule(groups="239.1.1.1"), 4, "rules[0].groups", "expected a list of groups, found the text '239.1.1.1'"),
    (in_rule(groups="[10.0.0.0/8]"), 4, "rules[0].groups[0]", "not within the multicast addresses"),
    (in_rule(groups="[0.0.0.0/0]"), 4, "rules[0].groups[0]", "not within the multicast addresses"),
    (in_rule(groups="[224.0.0.0/3]"), 4, "rules[0].groups[0]", "not within the multicast addresses"),
    (in_rule(groups="[224.0.0.251]"), 4, "rules[0].groups[0]", "link scope"),
    (in_rule(groups="[224.0.0.0/24]"), 4, "rules[0].groups[0]", "link scope"),
    (in_rule(groups="['ff02::1:ff00:0/104']"), 4, "rules[0].groups[0]", "link scope"),
    (in_rule(groups="['ff12::/16']"), 4, "rules[0].groups[0]", "link scope"),
    (in_rule(groups="[239.1.0.1/16]"), 4, "rules[0].groups[0]", "host bits"),
    (in_rule(groups="[239.1.1.1, tenant]"), 4, "rules[0].groups[1]", "is not an IPv4 or IPv6 address"),
    (in_rule(role="reciever"), 5, "rules[0].role", "did you mean 'receiver'?"),
    (in_rule(role="[sender]"), 5, "rules[0].role", "found a list"),
    (in_rule(hosts="[]"), 6, "rules[0].hosts", "no hosts"),
    (in_rule(hosts="10.0.0.1"), 6, "rules[0].hosts", "expected a list of hosts"),
    (in_rule(hosts="[red]"), 6, "rules[0].hosts[0]", "unknown tenant 'red'"),
    ("tenants: {studio: []}\n" + in_rule(hosts="[studoi]"), 7, "rules[0].hosts[0]", "did you mean 'studio'?"),
    (in_rule(hosts="[10.0.0.256]"), 6, "rules[0].hosts[0]", "is not an IPv4 or IPv6 address"),
    (in_rule(action="permit"), 7, "rules[0].action", "expected one of allow, deny, found 'permit'"),
    (in_rule(sources="[239.1.1.1]"), 8, "rules[0].sources[0]", "is multicast"),
    (in_rule(sources="[]"), 8, "rules[0].sources", "no sources"),
    (in_rule(source="[10.0.0.1]"), 8, "rules[0].source", "unknown key; did you mean 'sources'?"),
    ("version: 1\nrules:\n  - x", 3, "rules[0]", "expected a mapping with name, groups"),
    # settings
    ("version: 1\nlimits: {groups_per_prot: 1}", 2, "limits.groups_per_prot", "did you mean 'groups_per_port'?"),
    ("version: 1\nlimits:\n  groups: 0", 3, "limits.groups", "0 is not within 1 and 1048576"),
    ("version: 1\nlimits:\n  groups: true", 3, "limits.groups", "expected a whole number, found the boolean 'true'"),
    ("version: 1\nlimits:\n  groups: 1.5", 3, "limits.groups", "expected a whole number, found the number '1.5'"),
    ("version: 1\nlimits:\n  groups: 010", 3, "limits.groups", "expected a whole number"),
    ("version: 1\nlimits:\n  groups: 1:30", 3, "limits.groups", "expected a whole number, found the text '1:30'"),
    (f"version: 1\nlimits:\n  groups: 1{'0' * 30}", 3, "limits.groups", "is not within"),
    (f"version: 1\nlimits:\n  groups: 1{'0' * 9999}", 3, "limits.groups", "expected a whole number, found the text"),
    ("version: 1\nunicast:\n  host_timeout_s: .nan", 3, "unicast.host_timeout_s", "expected a finite number"),
    ("version: 1\nunicast:\n  host_timeout_s: -.INF", 3, "unicast.host_timeout_s", "expected a finite number"),
    ("version: 1\nunicast:\n  host_timeout_s: 1e999", 3, "unicast.host_timeout_s", "expected a finite number"),
    ("version: 1\nunicast:\n  host_timeout_s: -5", 3, "unicast.host_timeout_s", "-5 is not within 10 and 86400"),
    (
        "version: 1\nunicast:\n  host_timeout_s: 5 min",
        3,
        "unicast.host_timeout_s",
        "expected a number, found the text",
    ),
    (
        "version: 1\nunicast:\n  host_timeout_s: false",
        3,
        "unicast.host_timeout_s",
        "expected a number, found the bool",
    ),
    ("version: 1\nmulticast:\n  tree: vsrtt", 3, "multicast.tree", "did you mean 'vsrt'?"),
    ("version: 1\nmulticast:\n  seed: abc", 3, "multicast.seed", "expected a whole number"),
    ("version: 1\nmulticast:\n  fast_leave: 1", 3, "multicast.fast_leave", "expected true, false or list of"),
    ("version: 1\nmulticast:\n  fast_leave:\n    - {port: 1}", 4, "multicast.fast_leave[0].dpid", "missing"),
    ("version: 1\nmulticast:\n  querier: []", 3, "multicast.querier", "expected a mapping, found a list"),
    ("version: 1\nmulticast:\n  querier:\n    enabled: 1", 4, "multicast.querier.enabled", "expected true or false"),
    (
        "version: 1\nmulticast:\n  querier:\n    query_interval_s: 10",
        3 + 1,
        "multicast.querier.response_interval_s",
        "10 is not below query_interval_s 10",
    ),
    (
        "version: 1\nmulticast:\n  querier:\n    address_v4: 224.0.0.1",
        4,
        "multicast.querier.address_v4",
        "expected an IPv4 address, found 224.0.0.1",
    ),
    (
        "version: 1\nmulticast:\n  querier:\n    address_v6: '2001:db8::1'",
        4,
        "multicast.querier.address_v6",
        "expected an IPv6 link-local address, found 2001:db8::1",
    ),
    (
        "version: 1\nmulticast:\n  router_ports: {static: {dpid: 1, port: 1}}",
        3,
        "multicast.router_ports.static",
        "expected a list of {dpid, port}, found a mapping",
    ),
    (
        "version: 1\nmulticast:\n  proxy:\n    router_ports: [{dpid: 1}]",
        4,
        "multicast.proxy.router_ports[0].port",
        "missing",
    ),
    (
        "version: 1\nmulticast:\n  router_ports:\n    on_join: sometimes",
        4,
        "multicast.router_ports.on_join",
        "expected true, false or list of {dpid, port}",
    ),
    (
        "version: 1\nlimits: {joins_per_port: 0}",
        2,
        "limits.joins_per_port",
        "0 is not within 1 and 65536",
    ),
    (
        "version: 1\nmulticast:\n  proxy: {address_v4: 239.1.1.1}",
        3,
        "multicast.proxy.address_v4",
        "expected an IPv4 address, found 239.1.1.1",
    ),
    (
        "version: 1\nmulticast:\n  proxy:\n    adress_v6: fe80::1",
        4,
        "multicast.proxy.adress_v6",
        "unknown key",
    ),
]


@pytest.mark.parametrize(("text", "line", "field", "message"), CASES, ids=range(len(CASES)))
def test_a_fault_has_its_line_and_field(text: str, line: int, field: str, message: str):
    found_line, found_field, found = only_fault(text)
    if field != "[…]":
        assert found_field == field
    assert found_line == line
    assert message in found


def test_all_faults_come_at_once_in_the_order_of_their_lines():
    text = """\
version: 1
tenants:
  a: [10.0.0.300, "00:00:00:00:00:0b"]
  b: [00:00:00:00:00:0b]
rules:
  - {name: x, groups: [10.0.0.0/8], role: reciever, hosts: [c], action: allow}
  - {name: x, groups: [224.0.0.1], role: any, hosts: any, action: no}
defualt: deny
limits: {groups: 0, hosts_per_port: "1"}
multicast: {tree: best, querier: {robustness: 0}}
anomaly: 7
"""
    assert [(line, field) for line, field, _ in faults(text)] == [
        (3, "tenants.a[0]"),
        (4, "tenants.b[0]"),
        (6, "rules[0].groups[0]"),
        (6, "rules[0].hosts[0]"),
        (6, "rules[0].role"),
        (7, "rules[1].action"),
        (7, "rules[1].groups[0]"),
        (7, "rules[1].name"),
        (8, "defualt"),
        (9, "limits.groups"),
        (9, "limits.hosts_per_port"),
        (10, "multicast.querier.robustness"),
        (10, "multicast.tree"),
        (11, "anomaly"),
    ]


def test_too_many_rules_are_refused():
    line, field, message = only_fault("version: 1\nrules: [" + "x, " * (MAX_RULES + 1) + "]")
    assert (line, field) == (2, "rules")
    assert f"at most {MAX_RULES}" in message


def test_the_list_of_faults_is_bounded():
    found = faults("version: 1\nanomaly:\n" + "  margin: 1\n" * (MAX_ERRORS + 6))
    assert len(found) == MAX_ERRORS + 1
    assert found[-1] == (MAX_ERRORS + 3, "", "5 further faults are not listed")


def test_suggestions_are_bounded_for_their_search_is_slow():
    keys = "".join(f"rules{index}: 1\n" for index in range(2 * MAX_SUGGESTIONS))
    found = faults("version: 1\n" + keys)
    assert len(found) == 2 * MAX_SUGGESTIONS
    assert sum("did you mean 'rules'?" in message for _, _, message in found) == MAX_SUGGESTIONS


def test_a_message_is_one_line_of_printable_text():
    for _, field, message in faults('version: 1\n"a\\nb\\e[31m": 1\ndefault: "x\\ny"\n'):
        assert field.isprintable()
        assert message.isprintable()


GOOD = (
    in_rule(sources="[10.0.0.1]")
    + "\ntenants: {a: [10.0.0.1, {dpid: 1, port: 1}]}\nlimits: {groups: 5}\nanomaly: {}\n"
)
TOKENS = st.sampled_from(
    [
        *"[]{}:,-?&*!|>'\"%@`#~=\\\t\n \x85\ufeff",
        "---",
        "...",
        "<<",
        "!!",
        "\\U",
        ": ",
        "- ",
        "0x",
        ".nan",
        "1e9",
        "/",
        "ff02::1",
    ]
)


@settings(max_examples=200)
@given(st.binary(max_size=200))
def test_random_bytes_raise_nothing_else(data: bytes):
    try:
        load_policy(data)
    except PolicyInvalid as invalid:
        assert invalid.errors


@settings(max_examples=200)
@given(st.text(max_size=100))
def test_random_text_raises_nothing_else(text: str):
    try:
        load_policy("version: 1\n" + text)
    except PolicyInvalid as invalid:
        assert invalid.errors


@settings(max_examples=200)
@given(st.lists(st.tuples(st.integers(0, len(GOOD)), st.integers(0, 12), TOKENS | st.text(max_size=3)), max_size=6))
def test_mutations_of_a_good_policy_raise_nothing_else(edits: list[tuple[int, int, str]]):
    text = GOOD
    for at, removed, inserted in edits:
        text = text[:at] + inserted + text[at + removed :]
    lines = text.count("\n") + text.count("\r") + text.count("\x85") + text.count("\u2028") + text.count("\u2029") + 1
    try:
        load_policy(text)
    except PolicyInvalid as invalid:
        assert invalid.errors
        assert all(1 <= error.line <= lines for error in invalid.errors)
