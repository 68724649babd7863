"""Faucet's configuration: what becomes of switches, ports, VLANs, bonds and links, and of each line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.config.terms import SwitchLink, SwitchPort
from controller.migration.faucet import read_faucet
from controller.migration.report import BadConfiguration, InputFile
from imported_policy import file_of

SMALL = """\
vlans: {office: {vid: 100}}
dps:
  s1:
    dp_id: 1
    interfaces:
      1: {native_vlan: office}
"""


def read_beside(includer, path):
    return None if path == "campus-local.yaml" else file_of(path)


@pytest.fixture
def campus(imported):
    return imported(read_faucet([file_of("campus.yaml")], read_beside))


def of(text, read_include=lambda *_: None):
    return read_faucet([InputFile("f.yaml", text)], read_include)


def vlans_at(policy, dpid, port):
    found = policy.vlans.of(dpid, port, "tor")
    return found.untagged, sorted(set(found.vlans()) - {found.untagged})


def test_ports_are_in_the_vlans_that_faucet_had_them_in(campus):
    policy = campus.policy
    assert vlans_at(policy, 0xA1, 1) == (110, [])
    assert vlans_at(policy, 0xA1, 7) == (120, [])
    assert vlans_at(policy, 0xA1, 8) == (120, [110, 130])
    assert {vlans_at(policy, 0xA1, port)[0] for port in (10, 11, 12, 14)} == {130}
    assert [vlans_at(policy, 162, port)[0] for port in (1, 2, 3)] == [110, 130, 110]
    assert vlans_at(policy, 0xA1, 13) == (0, []), "a port that the file does not name"


def test_switches_ports_and_vlans_have_their_names(campus):
    named = {switch.name: (switch.dpid, dict(switch.ports)) for switch in campus.policy.switches}
    assert named == {"north": (0xA1, {1: "desk-1", 7: "camera-7"}), "south": (162, {24: "up-1"})}
    assert campus.policy.vlans.given_name(130) == "guests"


def test_a_stack_is_a_link_that_is_expected_once(campus):
    assert campus.policy.topology.links == {SwitchLink(SwitchPort(0xA1, 24), SwitchPort(162, 24))}
    assert campus.policy.topology.switches == {0xA1, 162}


def test_ports_of_one_lacp_number_are_a_group(campus):
    (group,) = campus.policy.link_aggregations
    assert (group.mode, group.ports) == ("lacp", (SwitchPort(0xA1, 15), SwitchPort(0xA1, 16)))


def test_settings_that_are_per_port_there_hold_for_all_here(campus):
    assert campus.policy.limits.hosts_per_port == 255
    assert campus.policy.unicast.host_timeout_s == 600
    assert campus.word("max_hosts: 3") == "changed"


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("vid: 110", "taken"),
        ('description: "staff"', "changed"),
        ('description: "desk 1, north"', "taken"),
        ("faucet_vips:", "impossible"),
        ('- "2001:db8:120::1/64"', "impossible"),
        ('ip_gw: "10.0.120.1"', "impossible"),
        ("core:", "impossible"),
        ("drop_bpdu: false", "impossible"),
        ('hardware: "Open vSwitch"', "taken"),
        ("priority: 1", "changed"),
        ("permanent_learn: true", "impossible"),
        ("enabled: false", "impossible"),
        ("9: {output_only: true, mirror: desk-1}", "impossible"),
        ("stack: {dp: north, port: 24}", "taken"),
        ("<<: *desk", "taken"),
        ("- campus-local.yaml", "idle"),
        ("- campus-acls.yaml", "taken"),
        ("arp_neighbor_timeout: 30", "taken"),
        ("---", "idle"),
    ],
)
def test_a_line_is_reported(campus, line, word):
    assert campus.word(line, "campus.yaml") == word


def test_what_is_impossible_says_what_to_do(campus):
    for line in campus.lines:
        for part in line.parts:
            assert part.what
            assert part.todo or part.outcome.word != "impossible" or part.is_with_another


def test_every_line_of_every_file_is_reported_once(campus):
    for name in ("campus.yaml", "campus-acls.yaml"):
        told = [(line.line, line.text) for line in campus.lines if line.file == name]
        assert told == list(enumerate(file_of(name).text.splitlines(), 1))
    assert not [line for line in campus.lines if "could not be told" in line.parts[0].what]


def test_what_faucet_does_without_a_line_is_noted(campus):
    assert any("floods" in note for note in campus.report.notes)
    assert any("does not name" in note for note in campus.report.notes)
    assert "ports-without-vlan" in [rule.name for rule in campus.policy.rules]


def test_a_later_file_counts_where_two_define_the_same(imported):
    other = SMALL.replace("100", "200")
    found = imported(read_faucet([InputFile("a", SMALL), InputFile("b", other)], lambda *_: None))
    assert vlans_at(found.policy, 1, 1) == (200, [])
    assert found.said("vlans: {office: {vid: 100}}", "a").endswith("defined again on b:1, which counts")


def test_names_that_no_policy_has_are_changed_and_said(imported):
    text = SMALL.replace("s1:", '"1":').replace("office", "büro 1").replace("1: {nat", '1: {name: "7th", nat')
    found = imported(of(text))
    assert [switch.name for switch in found.policy.switches] == ["x-1"]
    assert found.policy.vlans.given_name(100) == "b-ro-1"
    assert dict(found.policy.switches[0].ports) == {1: "x-7th"}
    changed = [line.line for line in found.lines if line.outcome.word == "changed"]
    assert changed == [1, 3, 6], "the lines of the VLAN, of the switch and of the port"


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("vlans: [", 1, "YAML syntax"),
        ("[]\n", 1, "expected a mapping"),
        ("vlans: {}\n", 0, "no `dps`"),
        (SMALL.replace("dp_id: 1", "dp_id: 0"), 4, "datapath id"),
        (SMALL.replace("dp_id: 1", "dp_id: x"), 4, "datapath id"),
        (SMALL.replace("    dp_id: 1\n", ""), 3, "give it a `dp_id`"),
        (SMALL.replace("vid: 100", "vid: 4095"), 1, "1 to 4094"),
        (SMALL.replace("native_vlan: office", "native_vlan: offcie"), 6, "there is no VLAN 'offcie'"),
        (SMALL.replace("native_vlan: office", "description: x"), 6, "no VLAN"),
        (SMALL.replace("native_vlan: office", "native_vlan: office, tagged_vlans: [office]"), 6, "native VLAN too"),
        (SMALL.replace("native_vlan: office", "native_vlan: office, acls_in: [no]"), 6, "no access list 'no'"),
        (SMALL.replace("native_vlan: office", "stack: {dp: s9, port: 1}"), 6, "there is no switch 's9'"),
        (SMALL.replace("native_vlan: office", "stack: {dp: s1, port: 9}"), 6, "has no port '9'"),
        (SMALL + "      1: {native_vlan: 5}\n", 7, "stands twice"),
        (SMALL + "      p: {number: 1, native_vlan: 5}\n", 7, "defined already, on line 6"),
        (SMALL + "    interface_ranges: {3-1: {native_vlan: 5}}\n", 7, "neither a port, nor a range"),
        (SMALL + "  s2: {dp_id: 1, interfaces: {}}\n", 7, "is that of s1 already"),
        (SMALL + "include: [gone.yaml]\n", 7, "'gone.yaml' is not there"),
        ("vlans: {a: {vid: 1}, b: {vid: 1}}\ndps: {}\n", 1, "defined by another name already"),
        (SMALL + "acls: {a: [{rule: {dl_type: 0x800, nw_dst: 239.1.1.1/255.0.255.0}}]}\n", 7, "holes"),
        (SMALL + "acls: {a: [{rule: {dl_type: 0x800, nw_dst: 239.1.1.999}}]}\n", 7, "239.1.1.999"),
        (SMALL + "acls: {a: [{rule: {actions: {allow: maybe}}}]}\n", 7, "neither true nor false"),
    ],
)
def test_what_faucet_would_refuse_is_a_fault_with_its_line(text, line, message):
    with pytest.raises(BadConfiguration) as refused:
        of(text)
    assert [fault for fault in refused.value.faults if fault.line == line and message in fault.message], refused.value


def test_all_faults_are_told_together():
    text = SMALL.replace("vid: 100", "vid: 0").replace("dp_id: 1", "dp_id: 0")
    with pytest.raises(BadConfiguration) as refused:
        of(text)
    assert [fault.line for fault in refused.value.faults] == [1, 4]


def test_a_file_that_includes_itself_is_a_fault():
    text = SMALL + "include: [f.yaml]\n"
    with pytest.raises(BadConfiguration, match="read twice"):
        of(text, lambda _, path: InputFile(path, text))


def test_aliases_without_end_are_refused():
    ports = "".join(f"      {number}: *p\n" for number in range(2, 3000))
    vlans = ", ".join(map(str, range(2, 4095)))
    text = SMALL.replace("1: {native_vlan: office}", f"1: &p {{tagged_vlans: [{vlans}]}}") + ports
    with pytest.raises(BadConfiguration, match="aliases counted"):
        of(text)


WORDS = st.sampled_from(
    [
        *(
            "vlans",
            "dps",
            "acls",
            "s1",
            "dp_id",
            "interfaces",
            "native_vlan",
            "tagged_vlans",
            "office",
            "vid",
            "rule",
        ),
        *("actions", "allow", "stack", "dp", "port", "1", "2", "100", "0x800", "dl_type", "nw_dst", "239.1.1.1"),
        *("acls_in", "lacp", "interface_ranges", "1-3", "true", "", "~"),
    ]
)
VALUES = st.recursive(
    WORDS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=4), max_leaves=20
)


@given(st.dictionaries(st.sampled_from(["vlans", "dps", "acls", "routers", "x"]), VALUES, max_size=4), st.booleans())
def test_any_yaml_is_refused_with_lines_or_reported_line_by_line(value, is_flow):
    import yaml

    text = yaml.safe_dump(value, default_flow_style=is_flow)
    try:
        _, report = of(text)
    except BadConfiguration as refused:
        count = len(text.splitlines())
        assert refused.faults
        assert all(0 <= fault.line <= count for fault in refused.faults)
    else:
        assert [line.text for line in report.lines()] == text.splitlines()
