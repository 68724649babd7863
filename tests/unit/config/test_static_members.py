"""The section `static_members`: what it may say, and every fault with its line."""

from __future__ import annotations

import json

import pytest

from controller.config import PolicyInvalid, load_policy
from controller.config.policy import StaticMember
from controller.config.static_members import MAX_STATIC_MEMBERS
from controller.config.terms import SwitchPort
from controller.wire.addresses import parse_ip, parse_name


def fault_of(text: str) -> tuple[int, str, str]:
    with pytest.raises(PolicyInvalid) as caught:
        load_policy(text)
    (error,) = caught.value.errors
    return error.line, error.field, error.message


def test_ports_are_named_as_everywhere():
    policy = load_policy("""\
version: 1
switches: {leaf1: {dpid: "0000a2f1c3d4e5f6"}}
static_members:
  - group: 239.1.1.1
    ports:
      - {dpid: leaf1, port: 2}
      - {dpid: 0x1a, port: 3}
  - {group: "ff0e::1", ports: [{dpid: 3, port: 9}]}
""")
    assert policy.static_members == (
        StaticMember(parse_ip("239.1.1.1"), SwitchPort(0xA2F1C3D4E5F6, 2)),
        StaticMember(parse_ip("239.1.1.1"), SwitchPort(0x1A, 3)),
        StaticMember(parse_ip("ff0e::1"), SwitchPort(3, 9)),
    )
    assert [member.line for member in policy.static_members] == [6, 7, 8]
    assert policy.known_switches() == {0xA2F1C3D4E5F6, 0x1A, 3}


def test_a_group_may_be_one_of_a_vlan():
    policy = load_policy("""\
version: 1
static_members:
  - {group: 239.1.1.1@20, ports: [{dpid: 1, port: 2}]}
  - {group: 239.1.1.1, ports: [{dpid: 1, port: 2}]}
  - {group: "ff0e::1@4094", ports: [{dpid: 1, port: 2}]}
""")
    assert [member.group for member in policy.static_members] == [
        parse_name("239.1.1.1@20"),
        parse_ip("239.1.1.1"),
        parse_name("ff0e::1@4094"),
    ]


def test_the_vlan_of_a_group_may_be_called_by_its_name():
    policy = load_policy("""\
version: 1
vlans: {names: {20: video, 30: camera room}, default: {trunk: [video, camera room], native: untagged}}
static_members:
  - {group: 239.1.1.1@video, ports: [{dpid: 1, port: 2}]}
  - {group: "ff0e::1@camera room", ports: [{dpid: 1, port: 2}]}
""")
    assert policy.warnings == ()
    assert [member.group for member in policy.static_members] == [
        parse_name("239.1.1.1@20"),
        parse_name("ff0e::1@30"),
    ]
    assert fault_of("""\
version: 1
vlans: {names: {20: video}}
static_members:
  - {group: 239.1.1.1@20, ports: [{dpid: 1, port: 2}]}
  - {group: 239.1.1.1@vide, ports: [{dpid: 1, port: 2}]}
""") == (5, "static_members[1].group", "no VLAN is called 'vide'; did you mean 'video'?")


@pytest.mark.parametrize(
    ("entry", "field", "message"),
    [
        ("{group: 239.1.1.1@video, ports: [{dpid: 1, port: 2}]}", "group", "no VLAN is called 'video'"),
        ("{group: 239.1.1.1@untagged, ports: [{dpid: 1, port: 2}]}", "group", "does not end with a VLAN from 1"),
        ("{group: 239.1.1.1@0, ports: [{dpid: 1, port: 2}]}", "group", "does not end with a VLAN from 1 to 4094"),
        ("{group: 239.1.1.1@4095, ports: [{dpid: 1, port: 2}]}", "group", "does not end with a VLAN from 1 to 4094"),
        ("{group: 239.1.1.1@, ports: [{dpid: 1, port: 2}]}", "group", "does not end with a VLAN from 1 to 4094"),
        ("{group: 224.0.0.5@20, ports: [{dpid: 1, port: 2}]}", "group", "is link scope"),
        ("{group: 239.1.0.0/16@20, ports: [{dpid: 1, port: 2}]}", "group", "is a prefix"),
        ("{group: 232.1.1.1@20, ports: [{dpid: 1, port: 2}]}", "group", "a static member has no source"),
        ("{group: 224.0.0.5, ports: [{dpid: 1, port: 2}]}", "group", "is link scope"),
        ("{group: 10.0.0.1, ports: [{dpid: 1, port: 2}]}", "group", "is not within the multicast addresses"),
        ("{group: 239.1.0.0/16, ports: [{dpid: 1, port: 2}]}", "group", "is a prefix"),
        ("{group: 232.1.1.1, ports: [{dpid: 1, port: 2}]}", "group", "a static member has no source"),
        ('{group: "ff3e::1", ports: [{dpid: 1, port: 2}]}', "group", "a static member has no source"),
        ("{group: [], ports: [{dpid: 1, port: 2}]}", "group", "expected the address of a group"),
        ("{group: 239.1.1.1, ports: []}", "ports", "no ports"),
        ("{group: 239.1.1.1}", "ports", "missing"),
        ("{ports: [{dpid: 1, port: 2}]}", "group", "missing"),
        ("{group: 239.1.1.1, ports: [{dpid: 1, port: 2}], more: 1}", "more", "unknown key"),
        ("{group: 239.1.1.1, ports: [{dpid: leaf9, port: 2}]}", "ports[0].dpid", "no switch of that name"),
        ("{group: 239.1.1.1, ports: [{dpid: 1, port: 0}]}", "ports[0].port", "is not within"),
    ],
)
def test_faults_have_their_line(entry: str, field: str, message: str):
    line, at, text = fault_of(f"version: 1\nstatic_members:\n  - {entry}\n")
    assert (line, at) == (3, f"static_members[0].{field}")
    assert message in text


def test_a_pair_named_twice_is_a_fault_that_names_the_first_line():
    line, at, text = fault_of("""\
version: 1
static_members:
  - {group: 239.1.1.1, ports: [{dpid: 1, port: 2}]}
  - group: 239.1.1.1
    ports: [{dpid: 2, port: 2}, {dpid: 0x1, port: 2}]
""")
    assert (line, at) == (5, "static_members[1].ports[1]")
    assert text.endswith("is given 239.1.1.1 already (line 3)")


def test_ssm_groups_may_be_given_where_joins_without_source_are_allowed():
    policy = load_policy("""\
version: 1
static_members: [{group: 232.1.1.1, ports: [{dpid: 1, port: 2}]}]
multicast: {enforce_ssm: false}
""")
    assert policy.static_members[0].group == parse_ip("232.1.1.1")


def test_there_is_a_bound():
    ports = [{"dpid": 1, "port": number + 1} for number in range(MAX_STATIC_MEMBERS + 1)]
    document = {"version": 1, "static_members": [{"group": "239.1.1.1", "ports": ports}]}
    assert "at most 16384" in fault_of(json.dumps(document))[2]


def test_a_port_that_is_not_in_the_domain_of_its_group_is_warned_of():
    text = """\
version: 1
vlans: {ports: [{ports: [{dpid: 1, port: 1}], access: 10}, {ports: [{dpid: 1, port: 2}], trunk: [10, 20]}]}
static_members:
  - {group: 239.1.1.1@10, ports: [{dpid: 1, port: 1}, {dpid: 1, port: 2}]}
  - group: 239.1.1.1@20
    ports:
      - {dpid: 1, port: 2}
      - {dpid: 1, port: 1}
  - {group: 239.1.1.1, ports: [{dpid: 1, port: 3}, {dpid: 1, port: 2}]}
"""
    assert [(warning.line, warning.message) for warning in load_policy(text).warnings] == [
        (8, "port 1:1 is not in VLAN 20, and is given 239.1.1.1@20 once it is"),
        (9, "port 1:2 is not in the fabric's own domain, and is given 239.1.1.1 once it is"),
    ]
