"""What becomes of frames by the entries that say which VLANs ports have, by what each has for tags and carries."""

from __future__ import annotations

from functools import cache

import pytest

from controller.config.vlans import PortVlans
from controller.discovery.vlan_rules import (
    edge_rules,
    entry_keys,
    link_rules,
    old_base_rules,
    old_edge_rules,
    old_entry_keys,
    old_link_rules,
    vlan_base_rules,
)
from controller.rules import of10, of13
from controller.rules.cookies import VLAN_TAGGED_COOKIE
from controller.rules.evaluate import Fields, FlowTables
from controller.rules.model import OFPP_CONTROLLER, Goto
from controller.rules.pipeline import ADMIT, OPENFLOW_1_0, OPENFLOW_1_3, VLAN_ADMIT, VLAN_FORWARD, VLAN_UNICAST

TABLE_NAMES = {ADMIT: "admit", VLAN_ADMIT: "VLAN admit", VLAN_FORWARD: "VLAN forward", VLAN_UNICAST: "VLAN unicast"}
VLANS = (10, 20, 30)
LINK, ACCESS, TRUNK, VOICE, OWN, OWN_TAGGED = 1, 2, 3, 4, 5, 6
PORTS = {
    ACCESS: PortVlans(10, frozenset()),
    TRUNK: PortVlans(None, frozenset((10, 20))),
    VOICE: PortVlans(10, frozenset((20,))),
    OWN: PortVlans(0, frozenset()),
    OWN_TAGGED: PortVlans(0, frozenset((20,))),
}
HOST, STATION = b"\2\0\0\0\0\1", b"\2\0\0\0\0\2"
TO_HOST = Fields(STATION, HOST, 0x0800, 17, b"\x0a\0\0\1", b"\x0a\0\0\2")
TO_GROUP = Fields(b"\1\0\x5e\1\2\3", HOST, 0x0800, 17, b"\x0a\0\0\1", b"\xef\1\2\3")
TO_LOW_GROUP = TO_GROUP._replace(ip_dst=b"\xe0\1\2\3")
TO_GROUP_V6 = Fields(b"\x33\x33\0\0\0\1", HOST, 0x86DD, 17, b"\xfe" + bytes(15), b"\xff\x1e" + bytes(13) + b"\1")
ARP = Fields(b"\xff" * 6, HOST, 0x0806)
LLDP = Fields(b"\x01\x80\xc2\0\0\x0e", HOST, 0x88CC)
NEIGHBOUR = TO_GROUP_V6._replace(ip_proto=58, icmpv6_type=135)
ADVERTISED = NEIGHBOUR._replace(icmpv6_type=136)
IN_DOUBLE = Fields(STATION, HOST, 0x8100)
BRIDGES = Fields(b"\x01\x80\xc2\0\0\x0d", HOST, 0x8100)


@cache
def tables_of(version: int, passes: bool = False) -> FlowTables:
    """Return a switch with a port of each kind."""
    if version == OPENFLOW_1_3:
        rules = [*vlan_base_rules(passes), *link_rules(LINK)]
        rules += [rule for port_no, port in PORTS.items() for rule in edge_rules(port_no, port)]
    else:
        rules = [*old_base_rules(VLANS), *old_link_rules(LINK)]
        rules += [rule for port_no, port in PORTS.items() for rule in old_edge_rules(port_no, port, VLANS)]
    assert len({rule.key for rule in rules}) == len(rules)
    codec = of13 if version == OPENFLOW_1_3 else of10
    assert not [problem for rule in rules if (problem := codec.expressible(rule)) is not None]
    tables = FlowTables()
    for rule in rules:
        tables.put(rule)
    return tables


def fate(version: int, frame: Fields, port_no: int, *vlan_ids: int, passes: bool = False) -> str:
    """Say what becomes of a frame: dropped, counted as well, the table where it goes on, or who gets it."""
    verdict = tables_of(version, passes).process(version, frame._replace(vlan_ids=vlan_ids), port_no)
    if not verdict.met:
        return "goes on"
    last = verdict.met[-1]
    if verdict.sent:
        assert [sent.port_no for sent in verdict.sent] == [OFPP_CONTROLLER]
        return f"controller, {verdict.sent[0].vlan_ids}"
    if last.actions and isinstance(last.actions[-1], Goto):
        return TABLE_NAMES[last.actions[-1].table]
    return "counted" if last.cookie == VLAN_TAGGED_COOKIE else "dropped"


@pytest.mark.parametrize(
    ("port_no", "vlan_ids", "expected"),
    [
        (LINK, (10,), "controller, (10,)"), (LINK, (30,), "controller, (30,)"), (LINK, (), "goes on"),
        (ACCESS, (), "controller, (10,)"), (ACCESS, (10,), "counted"), (ACCESS, (20,), "counted"),
        (ACCESS, (0,), "counted"), (ACCESS, (4095,), "counted"),
        (TRUNK, (), "dropped"), (TRUNK, (10,), "controller, (10,)"), (TRUNK, (20,), "controller, (20,)"),
        (TRUNK, (30,), "counted"), (TRUNK, (0,), "counted"),
        (VOICE, (), "controller, (10,)"), (VOICE, (20,), "controller, (20,)"), (VOICE, (10,), "counted"),
        (OWN, (), "goes on"), (OWN, (10,), "counted"), (OWN, (0,), "counted"),
        (OWN_TAGGED, (), "goes on"), (OWN_TAGGED, (20,), "controller, (20,)"), (OWN_TAGGED, (30,), "counted"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("frame", [ARP, NEIGHBOUR, ADVERTISED])
def test_in_1_3_addresses_are_asked_for_in_the_vlan_of_a_port_and_wrong_tags_counted(
    frame: Fields, port_no: int, vlan_ids: tuple[int, ...], expected: str
) -> None:
    assert fate(OPENFLOW_1_3, frame, port_no, *vlan_ids) == expected


@pytest.mark.parametrize("port_no", [LINK, *PORTS])
def test_in_1_3_lldp_without_a_tag_goes_to_the_controllers_entries_at_every_port(port_no: int) -> None:
    assert fate(OPENFLOW_1_3, LLDP, port_no) == "admit"


@pytest.mark.parametrize("frame", [TO_GROUP, TO_LOW_GROUP, TO_GROUP_V6])
def test_in_1_3_groups_without_entries_end_and_hosts_that_nobody_knows_too(frame: Fields) -> None:
    assert fate(OPENFLOW_1_3, frame, TRUNK, 10) == fate(OPENFLOW_1_3, frame, LINK, 30) == "dropped"
    assert fate(OPENFLOW_1_3, TO_HOST, ACCESS) == fate(OPENFLOW_1_3, TO_HOST, LINK, 20) == "dropped"
    tables = tables_of(OPENFLOW_1_3)
    met = [rule.key.table for rule in tables.process(OPENFLOW_1_3, TO_HOST._replace(vlan_ids=(10,)), TRUNK).met]
    assert met == [0, VLAN_ADMIT, VLAN_FORWARD, VLAN_UNICAST], "frames to hosts come to the table of hosts"
    met = [rule.key.table for rule in tables.process(OPENFLOW_1_3, frame._replace(vlan_ids=(10,)), TRUNK).met]
    assert met == [0, VLAN_ADMIT, VLAN_FORWARD], "those to groups do not"


@pytest.mark.parametrize("inner", [0x8100, 0x88A8])
@pytest.mark.parametrize("port_no", [LINK, TRUNK])
def test_in_1_3_two_tags_are_counted_unless_they_pass_and_groups_of_bridges_never_do(
    inner: int, port_no: int
) -> None:
    frame, bridges = IN_DOUBLE._replace(eth_type=inner), BRIDGES._replace(eth_type=inner)
    assert fate(OPENFLOW_1_3, frame, port_no, 10, 7) == "counted"
    assert fate(OPENFLOW_1_3, bridges, port_no, 10, 7) == "counted"
    verdict = tables_of(OPENFLOW_1_3, True).process(OPENFLOW_1_3, bridges._replace(vlan_ids=(10, 7)), port_no)
    assert verdict.met[-1].key.table == VLAN_ADMIT and not verdict.met[-1].actions, "no later table may flood it"
    verdict = tables_of(OPENFLOW_1_3, True).process(OPENFLOW_1_3, frame._replace(vlan_ids=(10, 7)), port_no)
    assert verdict.met[-1].key.table == VLAN_UNICAST, "it goes the way of frames to hosts"
    assert fate(OPENFLOW_1_3, frame, ACCESS, 10, 7, passes=True) == "counted", "its port has no tagged VLAN"


@pytest.mark.parametrize(
    ("port_no", "vlan_ids", "of_arp", "of_others"),
    [
        (LINK, (), "dropped", "dropped"), (LINK, (10,), "dropped", "dropped"), (LINK, (0,), "dropped", "dropped"),
        (ACCESS, (), "controller, ()", "dropped"), (ACCESS, (10,), "counted", "counted"),
        (ACCESS, (0,), "counted", "counted"),
        (TRUNK, (), "dropped", "dropped"), (TRUNK, (10,), "controller, (10,)", "dropped"),
        (TRUNK, (30,), "counted", "counted"),
        (VOICE, (), "controller, ()", "dropped"), (VOICE, (20,), "controller, (20,)", "dropped"),
        (VOICE, (10,), "counted", "counted"),
        (OWN, (), "goes on", "goes on"), (OWN, (10,), "counted", "counted"),
        (OWN_TAGGED, (), "goes on", "goes on"), (OWN_TAGGED, (20,), "controller, (20,)", "dropped"),
        (OWN_TAGGED, (30,), "counted", "counted"),
    ],
)  # fmt: skip
def test_in_1_0_what_a_port_may_have_ends_uncounted_and_the_rest_counted(
    port_no: int, vlan_ids: tuple[int, ...], of_arp: str, of_others: str
) -> None:
    assert fate(OPENFLOW_1_0, ARP, port_no, *vlan_ids) == of_arp
    assert fate(OPENFLOW_1_0, TO_HOST, port_no, *vlan_ids) == of_others


@pytest.mark.parametrize("inner", [0x8100, 0x88A8])
@pytest.mark.parametrize("port_no", [LINK, ACCESS, TRUNK, OWN])
def test_in_1_0_two_tags_are_counted_at_every_port(inner: int, port_no: int) -> None:
    assert fate(OPENFLOW_1_0, IN_DOUBLE._replace(eth_type=inner), port_no, 10, 7) == "counted"


@pytest.mark.parametrize("frame", [TO_GROUP, TO_LOW_GROUP])
@pytest.mark.parametrize("vlan_id", VLANS)
def test_in_1_0_groups_of_vlans_without_entries_end_at_links_before_they_are_looked_at_by_port(
    frame: Fields, vlan_id: int
) -> None:
    (met,) = tables_of(OPENFLOW_1_0).process(OPENFLOW_1_0, frame._replace(vlan_ids=(vlan_id,)), LINK).met
    assert (met.key.match.in_port, met.key.match.vlan_id, met.actions) == (None, vlan_id, ())


@pytest.mark.parametrize("port", [*PORTS.values(), PortVlans(0, frozenset(VLANS))])
def test_what_drops_frames_of_a_port_is_known_by_its_key_when_the_port_is_another(port: PortVlans) -> None:
    of_all = [rule.key for rule in edge_rules(7, port) if rule.key.match.vlan_id is None]
    assert set(of_all) <= set(entry_keys(7))
    assert {rule.key for rule in link_rules(7)} <= set(entry_keys(7))
    drops = {rule.key for rule in old_edge_rules(7, port, VLANS) if not rule.actions}
    assert drops <= set(old_entry_keys(7, VLANS))
    assert {rule.key for rule in old_link_rules(7)} <= set(old_entry_keys(7, VLANS))
