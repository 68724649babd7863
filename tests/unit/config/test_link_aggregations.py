"""The section `link_aggregations`: what it says, and means for others, and faults with lines."""

from __future__ import annotations

import pytest

from controller.config import PolicyInvalid, load_policy
from controller.config.link_aggregations import MAX_LEGS
from controller.config.policy import LinkAggregation
from controller.config.terms import SwitchPort

BOTH = "{mode: static, ports: [{dpid: 1, port: 3}, {dpid: 2, port: 3}]}"


def faults_of(text: str) -> list[tuple[int, str, str]]:
    with pytest.raises(PolicyInvalid) as caught:
        load_policy(text)
    return [(error.line, error.field, error.message) for error in caught.value.errors]


def test_ports_are_named_as_everywhere_and_keep_their_order():
    policy = load_policy("""\
version: 1
switches: {leaf1: {dpid: 1}, leaf2: {dpid: 2}}
link_aggregations:
  server7: {mode: static, ports: [{dpid: leaf2, port: 3}, {dpid: leaf1, port: 3}]}
""")
    legs = (SwitchPort(2, 3), SwitchPort(1, 3))
    assert policy.link_aggregations == (LinkAggregation("server7", "static", legs),)
    assert policy.link_aggregations[0].line == 4
    assert policy.known_switches() == {1, 2}


def test_a_port_of_a_group_stands_for_all_of_it_where_hosts_are_named():
    policy = load_policy(f"""\
version: 1
link_aggregations: {{server7: {BOTH}}}
tenants: {{a: [{{dpid: 2, port: 3}}, {{dpid: 2, port: 4}}]}}
static_members: [{{group: 239.1.1.1, ports: [{{dpid: 2, port: 3}}]}}]
""")
    assert policy.tenants[0].hosts == (SwitchPort(1, 3), SwitchPort(2, 4))
    assert policy.static_members[0].port == SwitchPort(1, 3)


def test_a_group_is_given_once_by_whatever_of_its_ports():
    text = f"""\
version: 1
link_aggregations: {{server7: {BOTH}}}
static_members:
  - {{group: 239.1.1.1, ports: [{{dpid: 1, port: 3}}]}}
  - {{group: 239.1.1.1, ports: [{{dpid: 2, port: 3}}]}}
"""
    ((line, field, message),) = faults_of(text)
    assert (line, field) == (5, "static_members[1].ports[0]")
    assert "is given 239.1.1.1 already (line 4)" in message


@pytest.mark.parametrize(
    ("entry", "field", "message"),
    [
        ("a: {mode: static, ports: []}", "a.ports", "0 ports; a group has 2 to"),
        ("a: {mode: static, ports: [{dpid: 1, port: 3}]}", "a.ports", "1 ports; a group has 2 to"),
        ("a: {mode: trunk, ports: [{dpid: 1, port: 3}, {dpid: 1, port: 4}]}", "a.mode", "static"),
        ("a: {mode: static}", "a.ports", "missing"),
        ("a: {ports: [{dpid: 1, port: 3}, {dpid: 1, port: 4}]}", "a.mode", "missing"),
        ("a: {mode: static, ports: [{dpid: 1, port: 3}, {dpid: 1, port: 3}]}", "a.ports[1]", "in 'a' already"),
        ("a: {mode: static, ports: [{dpid: leaf9, port: 3}, {dpid: 1, port: 3}]}", "a.ports[0].dpid", "no switch"),
        ("a: {mode: static, ports: [{dpid: 1, port: 0}, {dpid: 1, port: 3}]}", "a.ports[0].port", "is not within"),
        (f'"7a": {BOTH}', "7a", "cannot name a group"),
        (f"a: {{more: 1, {BOTH[1:]}", "a.more", "unknown key"),
    ],
)
def test_faults_have_their_line(entry: str, field: str, message: str):
    ((line, found, text),) = faults_of(f"version: 1\nlink_aggregations:\n  {entry}\n")
    assert (line, found) == (3, f"link_aggregations.{field}")
    assert message in text


def test_a_port_is_in_one_group():
    first = "a: {mode: static, ports: [{dpid: 1, port: 3}, {dpid: 2, port: 3}]}"
    second = "b: {mode: static, ports: [{dpid: 1, port: 4}, {dpid: 2, port: 3}]}"
    ((line, field, message),) = faults_of(f"version: 1\nlink_aggregations:\n  {first}\n  {second}\n")
    assert (line, field) == (4, "link_aggregations.b.ports[1]")
    assert message == "port 2:3 is in 'a' already (line 3)"


def test_more_ports_than_a_group_may_have():
    ports = ", ".join(f"{{dpid: 1, port: {port_no}}}" for port_no in range(1, MAX_LEGS + 2))
    ((_, _, message),) = faults_of(f"version: 1\nlink_aggregations: {{a: {{mode: static, ports: [{ports}]}}}}\n")
    assert message == f"{MAX_LEGS + 1} ports; a group has 2 to {MAX_LEGS}"


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ("vlans: {ports: [{ports: [{dpid: 2, port: 3}], access: 10}]}", "are not in the same VLANs"),
        ("multicast: {router_ports: {static: [{dpid: 2, port: 3}]}}", "port 2:3 is in multicast.router_ports.static"),
        (
            "topology: {links: [[{dpid: 2, port: 3}, {dpid: 3, port: 1}]]}",
            "port 2:3 is the end of a link in topology",
        ),
    ],
)
def test_legs_are_alike_and_lead_to_a_host(section: str, message: str):
    ((line, field, text),) = faults_of(f"version: 1\n{section}\nlink_aggregations:\n  a: {BOTH}\n")
    assert (line, field) == (4, "link_aggregations.a")
    assert message in text


def test_legs_in_the_same_vlans_are_alike():
    load_policy(f"""\
version: 1
vlans: {{ports: [{{ports: [{{dpid: 1, port: 3}}, {{dpid: 2, port: 3}}], access: 10}}]}}
link_aggregations: {{a: {BOTH}}}
""")
