"""Faucet's access lists: a policy decides as Faucet did with the packets, by lists of ports and of VLANs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.admission import Admission, Host, Role
from controller.config import load_policy
from controller.config.terms import parse_prefix
from controller.migration.draft import text_of
from controller.migration.faucet import read_faucet
from controller.migration.report import InputFile
from controller.wire.addresses import parse_ip
from imported_policy import file_of

MAC = bytes.fromhex("0200000000aa")


def decides(policy, port, group, role="sender", ip="10.0.110.9", vlan=110, dpid=0xA1):
    host = Host(MAC, parse_ip(ip), dpid, port)
    return Admission(policy).decide(host, parse_ip(group), Role(role), None, vlan).admit


@pytest.fixture
def campus(imported):
    return imported(read_faucet([file_of("campus.yaml")], lambda _, path: None if "local" in path else file_of(path)))


@pytest.mark.parametrize(
    ("port", "group", "role", "vlan", "admitted"),
    [
        (8, "239.77.1.1", "sender", 110, False),  # the VLAN's list, at a port without one
        (8, "239.77.1.1", "sender", 130, True),
        (8, "239.5.0.9", "sender", 110, True),
        (2, "239.77.1.1", "sender", 110, False),  # the port's list lets it through, the VLAN's does not
        (2, "239.5.0.9", "sender", 110, True),
        (2, "239.120.1.1", "receiver", 110, False),
        (2, "239.121.1.1", "receiver", 110, True),
        (8, "239.120.1.1", "receiver", 120, True),
        (7, "239.120.1.1", "sender", 120, True),
        (7, "239.121.1.1", "sender", 120, False),
        (7, "239.120.1.1", "receiver", 120, False),  # the last rule drops reports too
        (10, "239.1.1.1", "sender", 130, False),  # no rule matches: Faucet drops
        (8, "ff3e:77::1", "sender", 110, False),
        (8, "ff3e:78::1", "sender", 110, True),
        (13, "239.1.1.1", "sender", 0, False),  # a port that Faucet's file does not name
    ],
)
def test_groups_are_decided_on_as_faucet_did(campus, port, group, role, vlan, admitted):
    assert decides(campus.policy, port, group, role, vlan=vlan) is admitted


def test_the_lists_of_a_whole_switch_are_those_of_its_ports(campus):
    assert not decides(campus.policy, 3, "239.120.1.1", "receiver", dpid=162)
    assert decides(campus.policy, 3, "239.5.0.9", dpid=162)


@pytest.mark.parametrize(
    ("line", "word", "said"),
    [
        ("no-dhcp-server:", "impossible", "drops what no rule of a list matches"),
        ("udp_src: 67", "impossible", "with line"),
        ("nw_dst: 10.0.130.0/24", "impossible", "with line"),
        ("- rule: {dl_type: 0x806, actions: {allow: 1}}", "taken", "everything but groups"),
        ("tcp_dst: 25", "impossible", "with line"),
        ("nw_dst: 239.0.0.0/255.0.0.0", "taken", "with line"),
        ("cameras-send:", "taken", "rules for the ports"),
        ("rules:", "taken", "its rules"),
        ("# IGMP for the cameras", "idle", "a comment"),
    ],
)
def test_a_line_of_a_list_is_reported(campus, line, word, said):
    assert campus.word(line, "campus-acls.yaml") == word
    assert said in campus.said(line, "campus-acls.yaml")


def test_a_rule_that_drops_all_says_what_it_does_and_what_it_does_not(imported):
    text = "acls: {a: [{rule: {actions: {allow: 0}}}]}\n"
    text += "dps: {s1: {dp_id: 1, interfaces: {1: {native_vlan: 5, acl_in: a}}}}\n"
    found = imported(read_faucet([InputFile("f", text)], lambda *_: None))
    assert "refuses senders of 224.0.0.0/4, ff00::/8" in str(found.lines[0].parts)
    assert found.lines[0].outcome.word == "impossible"


PREFIXES = st.sampled_from(
    ["", "239.0.0.0/8", "239.1.0.0/16", "239.1.1.0/24", "239.1.1.1", "239.2.0.0/16", "10.0.0.0/8"]
)
SOURCES = st.sampled_from(["", "", "10.1.0.0/16", "10.1.1.1"])
PROTOCOLS = st.sampled_from([None, None, 17, 2])
RULES = st.lists(st.tuples(PREFIXES, SOURCES, PROTOCOLS, st.booleans()), max_size=5)
GROUPS = ("239.1.1.1", "239.1.1.9", "239.1.9.9", "239.2.2.2", "238.1.1.1")


def written(name, rules):
    lines = [f"  {name}:" + (" []" if not rules else "")]
    for prefix, source, protocol, allow in rules:
        matches = ["dl_type: 0x800"]
        matches += [f"nw_dst: {prefix}"] if prefix else []
        matches += [f"nw_src: {source}"] if source and protocol != 2 else []
        matches += [] if protocol is None else [f"nw_proto: {protocol}"]
        lines.append(f"    - rule: {{{', '.join(matches)}, actions: {{allow: {int(allow)}}}}}")
    return "\n".join(lines) + "\n"


def lets_through(rules, group, source, protocol):
    """What Faucet does with a packet: the first rule that matches decides, and none is a drop."""
    for prefix, from_prefix, rule_protocol, allow in rules:
        matches_source = not from_prefix or rule_protocol == 2 or parse_prefix(from_prefix).contains(parse_ip(source))
        matches_group = not prefix or parse_prefix(prefix).contains(parse_ip(group))
        if matches_group and matches_source and rule_protocol in (None, protocol):
            return allow
    return False


@given(RULES, st.none() | RULES, st.booleans())
def test_senders_are_decided_on_as_faucet_decides_on_their_packets(port_rules, vlan_rules, port_has_list):
    """By any lists of a port and of its VLAN, for UDP to any group from any source."""
    of_vlan = "" if vlan_rules is None else ", acls_in: [v]"
    of_port = ", acls_in: [p]" if port_has_list else ""
    text = f"vlans: {{office: {{vid: 100{of_vlan}}}}}\nacls:\n{written('p', port_rules)}"
    text += "" if vlan_rules is None else written("v", vlan_rules)
    text += f"dps: {{s1: {{dp_id: 1, interfaces: {{1: {{native_vlan: office{of_port}}}}}}}}}\n"
    draft, _ = read_faucet([InputFile("f", text)], lambda *_: None)
    policy = load_policy(text_of(draft, []))
    admission = Admission(policy)
    for group in GROUPS:
        for source in ("10.1.1.1", "10.1.9.9", "10.9.9.9"):
            expected = (not port_has_list or lets_through(port_rules, group, source, 17)) and (
                vlan_rules is None or lets_through(vlan_rules, group, source, 17)
            )
            host = Host(MAC, parse_ip(source), 1, 1)
            assert admission.decide(host, parse_ip(group), Role.SENDER, None, 100).admit is expected, (group, source)
