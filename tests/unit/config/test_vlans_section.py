"""The section `vlans`: what it may say, and every fault with its line."""

from __future__ import annotations

import json
from typing import Any

import pytest

from controller.config import Policy, PolicyInvalid, load_policy
from controller.config.read_vlans import MAX_LABEL_KEY_SETS, MAX_TRUNK_VLANS, MAX_VLAN_ENTRIES
from controller.config.vlans import UNTAGGED_ONLY, PortVlans, Vlans
from controller.wire.addresses import parse_name

BEFORE = """\
version: 1
switches: {leaf1: {dpid: 1}, leaf2: {dpid: 2}, leaf3: {dpid: 3}}
labels: {leaf2: {room: a}, "leaf1:9": {camera: yes}}
vlans:
"""


def faults_of(text: str) -> list[tuple[int, str, str]]:
    with pytest.raises(PolicyInvalid) as caught:
        load_policy(text)
    return [(error.line, error.field, error.message) for error in caught.value.errors]


def fault_of(text: str) -> tuple[int, str, str]:
    (fault,) = faults_of(text)
    return fault


def loaded(section: str) -> Vlans:
    return load_policy(BEFORE + section).vlans


def said(entry: str) -> PortVlans:
    """Return what an entry says of a port, in a section with the VLANs 10, 11 and 50 besides."""
    return loaded(f"  names: {{10: a, 11: b, 50: c}}\n  ports: [{{switches: [leaf3], {entry}}}]\n").of(3, 1, None)


def members(*vlan_ids: int) -> frozenset[int]:
    return frozenset(vlan_ids)


def test_ports_are_named_in_every_way():
    vlans = loaded("""\
  names: {10: storage, 0x14: video}
  default: {access: 10}
  ports:
    - {ports: [{dpid: leaf1, port: 3}, {dpid: 0x1, port: 4}], access: 11}
    - {ports: [{dpid: leaf1, port: 5}], access: 10, voice: 20}
    - {ports: [{dpid: leaf2, port: 1}], trunk: [20, 30-32], native: 10}
    - {switches: [leaf3, 7], trunk: all}
    - {labels: {room: a}, access: 30}
    - {labels: {camera: yes}, access: untagged}
    - {tier: tor, access: 40}
""")
    everything = members(10, 11, 20, 30, 31, 32, 40)
    assert {place: vlans.of(*place, "tor") for place in [(1, 3), (1, 4), (1, 5), (2, 1), (2, 2), (7, 1), (1, 9)]} == {
        (1, 3): PortVlans(11, members()),
        (1, 4): PortVlans(11, members()),
        (1, 5): PortVlans(10, members(20)),
        (2, 1): PortVlans(10, members(20, 30, 31, 32)),
        (2, 2): PortVlans(30, members()),
        (7, 1): PortVlans(None, everything),
        (1, 9): UNTAGGED_ONLY,
    }
    assert vlans.of(1, 6, "tor") == PortVlans(40, members())
    assert vlans.of(1, 6, "core") == vlans.of(1, 6, None) == PortVlans(10, members())
    assert vlans.all_vlans() == everything
    assert [vlans.name(vlan_id) for vlan_id in (10, 20, 30)] == ["storage", "video", "30"]
    assert [entry.line for entry in vlans.entries] == list(range(8, 15))
    assert vlans.is_used
    assert vlans.switches == {1, 2, 3, 7}


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ("access: 1", PortVlans(1, members())),
        ("access: 4094", PortVlans(4094, members())),
        ("access: untagged", UNTAGGED_ONLY),
        ("access: untagged, voice: 20", PortVlans(0, members(20))),
        ("trunk: [1-3, 3-3, 2]", PortVlans(None, members(1, 2, 3))),
        ("trunk: [4093-4094], native: 4092", PortVlans(4092, members(4093, 4094))),
        ("trunk: [10], native: untagged", PortVlans(0, members(10))),
        ("trunk: all", PortVlans(None, members(10, 11, 50))),
        ("trunk: all, native: 11", PortVlans(11, members(10, 50))),
        ("trunk: all, native: untagged", PortVlans(0, members(10, 11, 50))),
        ("trunk: all, native: 60", PortVlans(60, members(10, 11, 50))),
        ("access: a", PortVlans(10, members())),
        ("access: a, voice: b", PortVlans(10, members(11))),
        ("trunk: [a, 20-21, c], native: b", PortVlans(11, members(10, 20, 21, 50))),
    ],
)
def test_what_is_said_of_a_port(entry: str, expected: PortVlans):
    assert said(entry) == expected


def test_a_name_that_no_vlan_has_is_told_with_the_nearest_one():
    section = "  names: {20: video}\n  ports:\n    - {switches: [1], trunk: [30,\n      vidoe]}\n"
    message = "no VLAN is called 'vidoe'; did you mean 'video'?"
    assert fault_of(BEFORE + section) == (8, "vlans.ports[0].trunk[1]", message)


def test_two_tags_pass_where_it_is_said():
    trunk = "  default: {trunk: [10], native: untagged}\n"
    said = {word: loaded(f"{trunk}  double_tagged: {word}\n").passes_double_tagged for word in ("pass", "refuse")}
    assert said == {"pass": True, "refuse": False}
    assert not loaded(trunk).passes_double_tagged
    message = "expected one of refuse, pass, found 'drop'"
    assert fault_of(f"{BEFORE}{trunk}  double_tagged: drop\n") == (6, "vlans.double_tagged", message)


def test_two_tags_that_pass_nowhere_are_warned_of():
    (warning,) = load_policy(BEFORE + "  default: {access: 10}\n  double_tagged: pass\n").warnings
    assert (warning.line, warning.field) == (6, "vlans.double_tagged")
    assert warning.message == "no port has a VLAN with its tag, so that no frame with two tags passes"


def test_nothing_is_said_where_there_is_no_section():
    assert load_policy("version: 1\n").vlans == Policy().vlans == Vlans() == loaded("  ports: []\n")


def test_equal_trunks_are_one_set():
    vlans = loaded("  ports: [{switches: [1], trunk: [5-9]}, {switches: [2], trunk: [9, 5-8], native: 4}]\n")
    assert vlans.of(1, 1, None).tagged is vlans.of(2, 1, None).tagged


@pytest.mark.parametrize(
    ("entry", "field", "message"),
    [
        ("access: 0", ".access", "0 is not within 1 and 4094"),
        ("access: 4095", ".access", "4095 is not within 1 and 4094"),
        ("access: storage", ".access", "no VLAN is called 'storage'"),
        ("access: 10-11", ".access", "expected a VLAN, its name, or untagged, found the text '10-11'"),
        ("access: [1]", ".access", "expected a VLAN, its name, or untagged, found a list"),
        (
            "access: 10, voice: 10",
            ".voice",
            "VLAN 10 is of access and voice; its frames have a tag, or they have none",
        ),
        ("access: 10, voice: 0", ".voice", "0 is not within 1 and 4094"),
        ("access: 10, voice: untagged", ".voice", "expected a VLAN, or its name, found the text 'untagged'"),
        ("access: 10, voice: phones", ".voice", "no VLAN is called 'phones'"),
        ("access: 10, native: 20", ".native", "does not go with access"),
        ("trunk: [10], voice: 20", ".voice", "does not go with trunk"),
        ("trunk: [10], access: 20", "", "both access and trunk; a port has one of them"),
        ("voice: 20", "", "neither access nor trunk"),
        ("native: 20", "", "neither access nor trunk"),
        ("trunk: []", ".trunk", "the trunk has no VLANs"),
        (
            "trunk: 10",
            ".trunk",
            "expected a list of VLANs, their names and ranges such as 30-35, or all, found the number '10'",
        ),
        ("trunk: every", ".trunk", "or all, found the text 'every'"),
        ("trunk: [20, 35-30]", ".trunk[1]", "the range 35-30 is upside down; did you mean 30-35?"),
        (
            "trunk: [20, 0-5]",
            ".trunk[1]",
            "expected a VLAN, its name, or a range such as 30-35, found the text '0-5'",
        ),
        ("trunk: [4000-4095]", ".trunk[0]", "4095 is not within 1 and 4094"),
        ("trunk: [4095]", ".trunk[0]", "4095 is not within 1 and 4094"),
        ("trunk: [0]", ".trunk[0]", "0 is not within 1 and 4094"),
        ("trunk: [all]", ".trunk[0]", "expected a VLAN, its name, or a range such as 30-35, found the text 'all'"),
        ("trunk: [20, video]", ".trunk[1]", "no VLAN is called 'video'"),
        ("trunk: [20], native: video", ".native", "no VLAN is called 'video'"),
        ("trunk: [20-30], native: 25", ".native", "VLAN 25 is of native and trunk"),
        ("trunk: [20], native: 4095", ".native", "4095 is not within"),
        ("trunk: all", ".trunk", "the section names no other VLAN, so that the trunk has none"),
        ("trunk: all, native: 10", ".trunk", "the section names no other VLAN, so that the trunk has none"),
        ("access: 10, vlan: 20", ".vlan", "unknown key"),
    ],
)
def test_what_cannot_be_said_of_a_port(entry: str, field: str, message: str):
    for text, path in (
        (f"  ports:\n    - {{switches: [1], {entry}}}\n", "vlans.ports[0]"),
        (f"  default:\n    {{{entry}}}\n", "vlans.default"),
    ):
        line, at, found = fault_of(BEFORE + text)
        assert (line, at) == (6, path + field)
        assert message in found


@pytest.mark.parametrize(
    ("where", "field", "message"),
    [
        ("ports: []", ".ports", "no ports, so that the entry is about no port"),
        ("switches: []", ".switches", "no switches, so that the entry is about no port"),
        ("labels: {}", ".labels", "no labels, so that the entry is about no port"),
        ("ports: [{dpid: leaf9, port: 1}]", ".ports[0].dpid", "no switch of that name; did you mean"),
        ("ports: [{dpid: 1}]", ".ports[0].port", "missing"),
        ("ports: [3]", ".ports[0]", "found the number '3'"),
        ("switches: [leaf9]", ".switches[0]", "no switch of that name; did you mean"),
        ("switches: leaf1", ".switches", "expected a list of switches, found the text 'leaf1'"),
        ("labels: {romo: a}", ".labels.romo", "no switch and no port has a label 'romo'; did you mean 'room'?"),
        ("labels: {tier: tor}", ".labels.tier", "is known of every switch"),
        ("labels: [room]", ".labels", "expected a mapping of labels"),
        ("tier: leaf", ".tier", "expected one of tor, aggregation, core, switch, found 'leaf'"),
        ("tier: host", ".tier", "expected one of tor, aggregation, core, switch, found 'host'"),
        (
            "tier: tor, switches: [1]",
            "",
            "names ports by switches and tier; expected one of ports, switches, labels,",
        ),
    ],
)
def test_what_cannot_name_ports(where: str, field: str, message: str):
    line, at, found = fault_of(f"{BEFORE}  ports:\n    - {{{where}, access: 10}}\n")
    assert (line, at) == (6, f"vlans.ports[0]{field}")
    assert message in found


@pytest.mark.parametrize(
    ("section", "line", "field", "message"),
    [
        ("  [10]\n", 5, "vlans", "expected a mapping with names, default, ports, found a list"),
        ("  vlan: 10\n", 5, "vlans.vlan", "unknown key"),
        ("  default: 10\n", 5, "vlans.default", "expected a mapping such as {access: 10}"),
        ("  default: {tier: tor, access: 10}\n", 5, "vlans.default.tier", "unknown key"),
        ("  ports: {}\n", 5, "vlans.ports", "expected a list of entries"),
        (
            "  ports:\n    - access: 10\n",
            6,
            "vlans.ports[0]",
            "names ports by nothing; expected one of ports, switches",
        ),
        ("  names: [a]\n", 5, "vlans.names", "expected VLANs to names, found a list"),
        ("  names:\n    0: a\n", 6, "vlans.names.0", "0 is not within 1 and 4094"),
        ("  names:\n    4095: a\n", 6, "vlans.names.4095", "4095 is not within 1 and 4094"),
        ("  names:\n    ten: a\n", 6, "vlans.names.ten", "expected a whole number"),
        ("  names:\n    10: 5\n", 6, "vlans.names.10", "expected a name (put it in quotes), found the number '5'"),
        ("  names:\n    10: '5'\n", 6, "vlans.names.10", "'5' cannot name a VLAN: a letter, then up to 63 letters"),
        ("  names:\n    10: untagged\n", 6, "vlans.names.10", "hyphens, but neither all nor untagged"),
        (f"  names:\n    10: {'x' * 65}\n", 6, "vlans.names.10", "cannot name a VLAN"),
        ("  names:\n    10: a\n    0xa: b\n", 7, "vlans.names.0xa", "VLAN 10 is 'a' already"),
        ("  names:\n    10: a\n    10: b\n", 7, "vlans.names.10", "duplicate key, first on line 6"),
        ("  names:\n    10: a\n    11: a\n", 7, "vlans.names.11", "'a' is already the name of VLAN 10"),
    ],
)
def test_faults_of_the_section_have_their_line(section: str, line: int, field: str, message: str):
    found_line, at, text = fault_of(BEFORE + section)
    assert (found_line, at) == (line, field)
    assert message in text


@pytest.mark.parametrize(
    ("one", "other", "place"),
    [
        ("ports: [{dpid: 2, port: 3}]", "ports: [{dpid: 5, port: 3}, {dpid: leaf2, port: 3}]", "port 2:3"),
        ("switches: [5, 6]", "switches: [6, 7]", "switch 6"),
        ("labels: {room: a}", "labels: {room: a}", "switch 2"),
        ("labels: {camera: yes}", "labels: {camera: yes}", "port 1:9"),
        ("tier: core", "tier: core", "tier core"),
    ],
)
def test_two_entries_that_differ_and_are_as_specific_are_a_fault_that_names_both_lines(
    one: str, other: str, place: str
):
    entries = f"  ports:\n    - {{{one}, access: 10}}\n    - {{tier: tor, access: 9}}\n    - {{{other}, access: "
    line, at, text = fault_of(f"{BEFORE}{entries}20}}\n")
    assert (line, at) == (8, "vlans.ports[2]")
    assert text == f"says otherwise of {place} than the entry on line 6, which is as specific"
    assert load_policy(f"{BEFORE}{entries}10}}\n").vlans.conflicts == ()


def test_labels_that_differ_are_settled_by_an_entry_that_is_more_specific():
    text = """\
version: 1
labels: {"1:1": {a: x, b: y}}
vlans:
  ports:
    - {labels: {a: x}, access: 10}
    - {labels: {b: y}, access: 20}
"""
    assert fault_of(text)[0] == 6
    settled = load_policy(text + "    - {ports: [{dpid: 1, port: 1}], access: 20}\n").vlans
    assert settled.of(1, 1, None) == PortVlans(20, members())


def test_all_faults_are_told_at_once():
    section = "  default: {access: 0}\n  ports:\n    - {switches: [leaf9], access: 0}\n    - {tier: x, trunk: []}\n"
    assert [(line, field) for line, field, _ in faults_of(BEFORE + section)] == [
        (5, "vlans.default.access"),
        (7, "vlans.ports[0].access"),
        (7, "vlans.ports[0].switches[0]"),
        (8, "vlans.ports[1].tier"),
        (8, "vlans.ports[1].trunk"),
    ]


def test_a_tier_that_concerns_no_port_is_warned_of():
    policy = load_policy(f"{BEFORE}  ports:\n    - {{tier: tor, access: 10}}\n    - {{tier: core, access: 20}}\n")
    (warning,) = policy.warnings
    assert (warning.line, warning.field) == (7, "vlans.ports[1].tier")
    assert warning.message.startswith("concerns no port")


def test_a_label_that_nothing_has_is_warned_of():
    policy = load_policy(f"{BEFORE}  ports:\n    - {{labels: {{room: b}}, access: 10}}\n")
    (warning,) = policy.warnings
    assert (warning.line, warning.field) == (6, "vlans.ports[0].labels.room")
    assert warning.message == "no switch and no port has the label room=b, so that the entry is about no port"
    assert not policy.vlans.is_used


def test_only_labels_that_entries_name_are_kept():
    section = "vlans: {ports: [{labels: {room: a}, access: 10}]}\n"
    one = load_policy("version: 1\nlabels: {1: {room: a}}\n" + section).vlans
    other = load_policy("version: 1\nlabels: {1: {room: a, rack: b}, 2: {rack: b}}\n" + section).vlans
    assert one == other


def document(**vlans: Any) -> str:
    return json.dumps({"version": 1, "vlans": vlans})


def test_there_are_bounds():
    entry = {"switches": [1], "access": 10}
    assert load_policy(document(ports=[entry] * MAX_VLAN_ENTRIES)).vlans.is_used
    assert (
        fault_of(document(ports=[entry] * (MAX_VLAN_ENTRIES + 1)))[2] == "65537 entries; at most 65536 are supported"
    )


def test_sets_of_label_keys_are_bounded():
    keys = [f"k{number}" for number in range(12)]
    pairs = [{a: "x", b: "x"} for a in keys for b in keys if a < b]
    assert len(pairs) > MAX_LABEL_KEY_SETS

    def text(count: int) -> str:
        labels = {"1": dict.fromkeys(keys, "x")}
        ports = [{"labels": pair, "access": 10} for pair in pairs[:count]]
        return json.dumps({"version": 1, "labels": labels, "vlans": {"ports": ports}})

    assert load_policy(text(MAX_LABEL_KEY_SETS)).vlans.is_used
    assert fault_of(text(MAX_LABEL_KEY_SETS + 1))[2] == (
        "the labels of entries have more than 64 different sets of keys"
    )


def test_vlans_of_trunks_that_differ_are_bounded():
    ports = [{"switches": [last], "trunk": [f"1-{last}"]} for last in range(4094, 3000, -1)]
    few = next(count for count in range(len(ports)) if sum(range(4094 - count, 4095)) > MAX_TRUNK_VLANS)
    assert load_policy(document(ports=ports[:few] * 3)).vlans.is_used
    assert fault_of(document(ports=ports))[1:] == (
        f"vlans.ports[{few}].trunk",
        "trunks that differ have more than 1048576 VLANs together",
    )


IN_VLAN = "an IPv4 address with @ and its VLAN, such as 10.0.20.250@20"


def proxied(addresses: str) -> str:
    return (
        f"version: 1\nvlans: {{names: {{20: video}}}}\nmulticast:\n  proxy:\n    vlan_addresses_v4: [{addresses}]\n"
    )


def test_a_proxy_may_have_an_address_in_each_vlan():
    policy = load_policy(proxied("10.0.10.250@10, 10.0.20.250@video"))
    names = (parse_name("10.0.10.250@10"), parse_name("10.0.20.250@20"))
    assert policy.multicast.proxy.vlan_addresses_v4 == names


@pytest.mark.parametrize(
    ("addresses", "message"),
    [
        ("10.0.20.250", "expected an IPv4 address with @ and its VLAN, such as 10.0.20.250@20, found '10.0.20.250'"),
        (
            "239.1.1.1@20",
            "expected an IPv4 address with @ and its VLAN, such as 10.0.20.250@20, found '239.1.1.1@20'",
        ),
        ("10.0.20.250@4095", "'10.0.20.250@4095' does not end with a VLAN from 1 to 4094"),
        ("10.0.20.250@vidoe", "no VLAN is called 'vidoe'; did you mean 'video'?"),
        ("nobody@20", "'nobody' does not appear to be an IPv4 or IPv6 address"),
    ],
)
def test_what_is_no_address_in_a_vlan(addresses: str, message: str):
    line, field, found = fault_of(proxied(addresses))
    assert (line, field) == (5, "multicast.proxy.vlan_addresses_v4[0]")
    assert found.startswith(message)


def test_a_vlan_has_one_address_of_a_proxy():
    line, field, found = fault_of(proxied("10.0.20.250@20, 10.0.20.251@video"))
    assert (line, field) == (5, "multicast.proxy.vlan_addresses_v4[1]")
    assert found == "VLAN 20 has 10.0.20.250@20 already"
