"""The flow entries of unicast that depend on hosts, switches and trunks.

OpenFlow 1.3 has two tables. UNICAST takes what hosts send: it delivers to hosts of its own switch, and gives a frame
for another switch's host that one's location address. LOCATION forwards by it, by label between switches, and gives
the host's own address back at the last one. Frames that come from another switch are for LOCATION only, all others
for UNICAST: no host can send by location address.

Frames of VLANs have VLAN_UNICAST in place of UNICAST, and their tag all the way. There a host goes by the name of its
address (`controller.kernel.domains`), and the entries for it ask for its VLAN. LOCATION is the same for all: a
location address is one host's in one VLAN, and what forwards by label looks at nothing else. The last switch takes
the tag off where the host's port has none. OpenFlow 1.0 has no entries for hosts of VLANs.

OpenFlow 1.0 has one table and no mask: there is an entry for each location address. They come first, so that a host
with a MAC address that is another's location address gets nothing of that one's.
"""

from __future__ import annotations

from controller.kernel.domains import OWN_DOMAIN, address_of, domain_of
from controller.rules.cookies import cookie_of
from controller.rules.model import Action, Goto, Match, Output, PopVlan, Rule, RuleKey, SetEthDst
from controller.rules.pipeline import (
    LOCATION,
    OPENFLOW_1_0,
    PRIORITY_LABEL,
    PRIORITY_LOCATION,
    PRIORITY_TRUNK,
    PRIORITY_UNICAST,
    UNICAST,
    UNICAST_TAG,
    VLAN_UNICAST,
)
from controller.unicast.locations import LABEL_MASK, location_address


def can_serve(ofp_version: int, mac: bytes) -> bool:
    """Tell whether a switch can hold entries for a host: those of VLANs need OpenFlow 1.3."""
    return ofp_version != OPENFLOW_1_0 or domain_of(mac) == OWN_DOMAIN


def host_key(ofp_version: int, mac: bytes) -> RuleKey:
    """Return the key of the entry for what hosts of a switch send to a host."""
    if vlan_id := domain_of(mac):
        return RuleKey(VLAN_UNICAST, PRIORITY_UNICAST, Match(eth_dst=address_of(mac), vlan_id=vlan_id))
    return RuleKey(0 if ofp_version == OPENFLOW_1_0 else UNICAST, PRIORITY_UNICAST, Match(eth_dst=mac))


def location_key(ofp_version: int, address: bytes) -> RuleKey:
    """Return the key of the entry for one location address."""
    return RuleKey(0 if ofp_version == OPENFLOW_1_0 else LOCATION, PRIORITY_LOCATION, Match(eth_dst=address))


def own_rules(
    ofp_version: int, mac: bytes, address: bytes, port_no: int, is_tagged: bool = False
) -> tuple[Rule, ...]:
    """Return the entries that deliver to a host at its own switch: what comes from other switches, and the rest.

    There are none where the switch cannot serve the host. `is_tagged` tells whether the port has the host's VLAN with
    its tag.
    """
    cookie = cookie_of(UNICAST_TAG, ("host", mac))
    if vlan_id := domain_of(mac):
        if ofp_version == OPENFLOW_1_0:
            return ()
        deliver: tuple[Action, ...] = (Output(port_no),) if is_tagged else (PopVlan(), Output(port_no))
        key = RuleKey(LOCATION, PRIORITY_LOCATION, Match(eth_dst=address, vlan_id=vlan_id))
        return (
            Rule(key, (SetEthDst(address_of(mac)), *deliver), cookie),
            Rule(host_key(ofp_version, mac), deliver, cookie),
        )
    return (
        Rule(location_key(ofp_version, address), (SetEthDst(mac), Output(port_no)), cookie),
        Rule(host_key(ofp_version, mac), (Output(port_no),), cookie),
    )


def far_rule(ofp_version: int, mac: bytes, address: bytes, port_no: int | None) -> Rule | None:
    """Return the entry that gives what is for another switch's host its location address; None where there is no way.

    There is none either where the switch cannot serve the host. The port that leads there is for OpenFlow 1.0 alone.
    """
    if not can_serve(ofp_version, mac):
        return None
    onward: Action
    if ofp_version != OPENFLOW_1_0:
        onward = Goto(LOCATION)
    elif port_no is None:
        return None
    else:
        onward = Output(port_no)
    return Rule(host_key(ofp_version, mac), (SetEthDst(address), onward), cookie_of(UNICAST_TAG, ("host", mac)))


def passing_rule(ofp_version: int, mac: bytes, address: bytes, port_no: int) -> Rule:
    """Return the entry that forwards by one host's whole location address, for want of a mask."""
    return Rule(location_key(ofp_version, address), (Output(port_no),), cookie_of(UNICAST_TAG, ("host", mac)))


def label_key(number: int, label: int) -> RuleKey:
    """Return the key of the entry for one label of a switch."""
    return RuleKey(LOCATION, PRIORITY_LABEL, Match(eth_dst=location_address(number, label), eth_dst_mask=LABEL_MASK))


def label_rule(number: int, label: int, port_no: int) -> Rule:
    """Return the entry that forwards by label to a switch."""
    return Rule(label_key(number, label), (Output(port_no),), cookie_of(UNICAST_TAG, ("switch", number)))


def trunk_rule(port_no: int, table: int = UNICAST) -> Rule:
    """Return the entry that lets frames from another switch be forwarded by location address, after a table."""
    key = RuleKey(table, PRIORITY_TRUNK, Match(in_port=port_no))
    return Rule(key, (Goto(LOCATION),), cookie_of(UNICAST_TAG, ("trunk", port_no)))


def trunk_rules(port_no: int, has_vlans: bool) -> list[Rule]:
    """Return all entries of OpenFlow 1.3 that let frames from another switch be forwarded by location address."""
    return [trunk_rule(port_no, table) for table in ((UNICAST, VLAN_UNICAST) if has_vlans else (UNICAST,))]
