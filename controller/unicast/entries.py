"""The flow entries of unicast that depend on hosts, switches and trunks.

OpenFlow 1.3 has two tables. UNICAST takes what hosts send: it delivers to hosts of its own switch, and gives a frame
for another switch's host that one's location address. LOCATION forwards by it, by label between switches, and gives
the host's own address back at the last one. Frames that come from another switch are for LOCATION only, all others
for UNICAST: no host can send by location address.

Frames of VLANs have VLAN_UNICAST in place of UNICAST, and their tag all the way. There a host goes by the name of its
address (`controller.kernel.domains`), and the entries for it ask for its VLAN. LOCATION is the same for all: a
location address is one host's in one VLAN, and what forwards by label looks at nothing else. The last switch takes
the tag off where the host's port has none.

OpenFlow 1.0 has one table and no mask: there is an entry for each location address. They come first, so that a host
with a MAC address that is another's location address gets nothing of that one's. In VLANs those ask for the tag, and
what is for a host has an entry for each port that its frames may enter by.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from controller.kernel.domains import OWN_DOMAIN, address_of, domain_of
from controller.rules.cookies import cookie_of
from controller.rules.model import Action, FlowEntry, FlowKey, Goto, Match, Output, PopVlan, PushVlan, SetEthDst
from controller.rules.pipeline import (
    LOCATION,
    OPENFLOW_1_0,
    PRIORITY_LABEL,
    PRIORITY_LOCATION,
    PRIORITY_PINNED_FLOW,
    PRIORITY_PINNED_WAY,
    PRIORITY_TRUNK,
    PRIORITY_UNICAST,
    UNICAST,
    UNICAST_TAG,
    VLAN_UNICAST,
    at_port,
)
from controller.unicast.locations import LABEL_MASK, location_address

Entered: TypeAlias = Sequence[tuple[int | None, int | None]]
"""Ports by which frames of a VLAN enter a switch, each with the tag that they have there; None for none."""


ANY_PORT: Entered = ((None, None),)
"""Frames may enter by whatever port, and no entry asks by which."""


def host_keys(ofp_version: int, mac: bytes, entered: Entered = ANY_PORT) -> list[FlowKey]:
    """Return the keys of the entries for what hosts of a switch send to a host.

    Parameters
    ----------
    ofp_version : int
        1 (OpenFlow 1.0) or 4 (1.3).
    mac : bytes
        The name of the host's MAC address.
    entered : sequence
        In OpenFlow 1.0, the ports by which frames of the host's VLAN may enter, with their tags.
    """
    address, vlan_id = address_of(mac), domain_of(mac)
    if not vlan_id:
        return [FlowKey(0 if ofp_version == OPENFLOW_1_0 else UNICAST, PRIORITY_UNICAST, Match(eth_dst=address))]
    if ofp_version != OPENFLOW_1_0:
        return [FlowKey(VLAN_UNICAST, PRIORITY_UNICAST, Match(eth_dst=address, vlan_id=vlan_id))]
    priority = at_port(PRIORITY_UNICAST)
    return [FlowKey(0, priority, Match(port_no, eth_dst=address, vlan_id=tag)) for port_no, tag in entered]


def location_key(ofp_version: int, address: bytes, vlan_id: int = OWN_DOMAIN) -> FlowKey:
    """Return the key of the entry for one location address, that of a host in a VLAN."""
    table = 0 if ofp_version == OPENFLOW_1_0 else LOCATION
    return FlowKey(table, PRIORITY_LOCATION, Match(eth_dst=address, vlan_id=vlan_id or None))


def own_rules(
    ofp_version: int,
    mac: bytes,
    address: bytes,
    port_no: int,
    is_tagged: bool = False,
    entered: Entered = ANY_PORT,
) -> list[FlowEntry]:
    """Return the entries that deliver to a host at its own switch: what comes from other switches, then the rest.

    `is_tagged` tells whether the port has the host's VLAN with its tag; `entered` is as for `host_keys`.
    """
    cookie = cookie_of(UNICAST_TAG, ("host", mac))
    vlan_id = domain_of(mac)
    deliver: tuple[Action, ...] = (Output(port_no),)
    popped = (PopVlan(), *deliver) if vlan_id and not is_tagged else deliver
    rules = [FlowEntry(location_key(ofp_version, address, vlan_id), (SetEthDst(address_of(mac)), *popped), cookie)]
    for key in host_keys(ofp_version, mac, entered):
        if key.match.vlan_id is not None or not vlan_id:
            rules.append(FlowEntry(key, popped, cookie))
        else:
            rules.append(FlowEntry(key, (PushVlan(vlan_id), *deliver) if is_tagged else deliver, cookie))
    return rules


def far_rules(
    ofp_version: int, mac: bytes, address: bytes, port_no: int | None, entered: Entered = ANY_PORT
) -> list[FlowEntry]:
    """Return the entries that give what is for another switch's host its location address; none without a way.

    The port that leads there is for OpenFlow 1.0 alone; `entered` is as for `host_keys`.
    """
    onward: Action
    if ofp_version != OPENFLOW_1_0:
        onward = Goto(LOCATION)
    elif port_no is None:
        return []
    else:
        onward = Output(port_no)
    cookie, vlan_id = cookie_of(UNICAST_TAG, ("host", mac)), domain_of(mac)
    rules = []
    for key in host_keys(ofp_version, mac, entered):
        tag: tuple[Action, ...] = (PushVlan(vlan_id),) if vlan_id and key.match.vlan_id is None else ()
        rules.append(FlowEntry(key, (SetEthDst(address), *tag, onward), cookie))
    return rules


def passing_rule(ofp_version: int, mac: bytes, address: bytes, port_no: int) -> FlowEntry:
    """Return the entry that forwards by one host's whole location address, for want of a mask."""
    key = location_key(ofp_version, address, domain_of(mac))
    return FlowEntry(key, (Output(port_no),), cookie_of(UNICAST_TAG, ("host", mac)))


def label_key(number: int, label: int) -> FlowKey:
    """Return the key of the entry for one label of a switch."""
    return FlowKey(LOCATION, PRIORITY_LABEL, Match(eth_dst=location_address(number, label), eth_dst_mask=LABEL_MASK))


def label_rule(number: int, label: int, port_no: int) -> FlowEntry:
    """Return the entry that forwards by label to a switch."""
    return FlowEntry(label_key(number, label), (Output(port_no),), cookie_of(UNICAST_TAG, ("switch", number)))


def pinned_flow_rule(ofp_version: int, mac: bytes, address: bytes, port_no: int) -> FlowEntry | None:
    """Return the entry that sends what a switch's hosts send to a host by a port of its own; None: cannot be said.

    It comes before the entry for the host, and behind what lets frames from other switches in. In VLANs OpenFlow 1.0
    would need an entry for each port.
    """
    if ofp_version == OPENFLOW_1_0 and domain_of(mac):
        return None
    (key,) = host_keys(ofp_version, mac)
    cookie = cookie_of(UNICAST_TAG, ("host", mac))
    return FlowEntry(key._replace(priority=PRIORITY_PINNED_FLOW), (SetEthDst(address), Output(port_no)), cookie)


def pinned_way_rule(ofp_version: int, mac: bytes, address: bytes, in_port: int, port_no: int) -> FlowEntry:
    """Return the entry that sends on what comes in by a port for a host, where its label may have another way."""
    key = location_key(ofp_version, address, domain_of(mac))
    pinned = key._replace(priority=PRIORITY_PINNED_WAY, match=key.match._replace(in_port=in_port))
    return FlowEntry(pinned, (Output(port_no),), cookie_of(UNICAST_TAG, ("host", mac)))


def trunk_rule(port_no: int, table: int = UNICAST) -> FlowEntry:
    """Return the entry that lets frames from another switch be forwarded by location address, after a table."""
    key = FlowKey(table, PRIORITY_TRUNK, Match(in_port=port_no))
    return FlowEntry(key, (Goto(LOCATION),), cookie_of(UNICAST_TAG, ("trunk", port_no)))


def trunk_rules(port_no: int, has_vlans: bool) -> list[FlowEntry]:
    """Return all entries of OpenFlow 1.3 that let frames from another switch be forwarded by location address."""
    return [trunk_rule(port_no, table) for table in ((UNICAST, VLAN_UNICAST) if has_vlans else (UNICAST,))]
