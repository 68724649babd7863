"""Which frames are of which VLAN: what ports let in, with their tags or to be given one, and the tables they go to.

Links between switches carry every VLAN with its tag. A port to hosts lets in the VLANs that it has; the rest of what
is tagged goes on to the table that drops it, and counts it. LLDP has no VLAN (IEEE 802.1AB, 7.1). OpenFlow 1.3 alone.
"""

from __future__ import annotations

from controller.config.vlans import PortVlans
from controller.rules.cookies import cookie_of
from controller.rules.model import OFPP_CONTROLLER, Action, Goto, Match, Output, PushVlan, Rule, RuleKey
from controller.rules.pipeline import (
    ADMIT,
    DISCOVERY_TAG,
    ETH_TYPE_IPV4,
    ETH_TYPE_IPV6,
    INGRESS,
    IPPROTO_ICMPV6,
    PRIORITY_ADDRESS_RESOLUTION,
    PRIORITY_HELD,
    PRIORITY_LLDP,
    PRIORITY_MISS,
    PRIORITY_OTHER_MULTICAST,
    PRIORITY_PORT_TAGGED,
    PRIORITY_PORT_UNTAGGED,
    PRIORITY_PORT_VLAN,
    VLAN_ADMIT,
    VLAN_FORWARD,
    VLAN_UNICAST,
)
from controller.wire.ethernet import ETHERTYPE_ARP, ETHERTYPE_LLDP
from controller.wire.nd import ADVERTISEMENT, SOLICITATION

_RESOLUTION = (
    Match(eth_type=ETHERTYPE_ARP),
    *(
        Match(eth_type=ETH_TYPE_IPV6, ip_proto=IPPROTO_ICMPV6, icmpv6_type=kind)
        for kind in (SOLICITATION, ADVERTISEMENT)
    ),
)
_GROUPS = (
    Match(eth_type=ETH_TYPE_IPV4, ip_dst=b"\xe0" + bytes(3), ip_dst_prefix=4),
    Match(eth_type=ETH_TYPE_IPV6, ip_dst=b"\xff" + bytes(15), ip_dst_prefix=8),
)


def vlan_base_rules() -> list[Rule]:
    """Return the entries of a switch, whatever its ports, in a fabric with VLANs."""
    return [
        _rule(INGRESS, PRIORITY_LLDP, Match(eth_type=ETHERTYPE_LLDP), (Goto(ADMIT),)),
        *(_rule(VLAN_ADMIT, PRIORITY_ADDRESS_RESOLUTION, match, (Output(OFPP_CONTROLLER),)) for match in _RESOLUTION),
        _rule(VLAN_ADMIT, PRIORITY_MISS, Match(), (Goto(VLAN_FORWARD),)),
        *(_rule(VLAN_FORWARD, PRIORITY_OTHER_MULTICAST, match, ()) for match in _GROUPS),
        _rule(VLAN_FORWARD, PRIORITY_MISS, Match(), (Goto(VLAN_UNICAST),)),
        _rule(VLAN_UNICAST, PRIORITY_MISS, Match(), ()),
    ]


def link_rules(port_no: int) -> list[Rule]:
    """Return the entry by which a port that leads to a switch lets every VLAN in."""
    return [_rule(INGRESS, PRIORITY_PORT_TAGGED, Match(port_no, tagged=True), (Goto(VLAN_ADMIT),))]


def edge_rules(port_no: int, port: PortVlans) -> list[Rule]:
    """Return the entries by which a port to hosts lets the VLANs in that it has; none for one that has none."""
    rules = [
        _rule(INGRESS, PRIORITY_PORT_VLAN, Match(port_no, vlan_id=vlan_id), (Goto(VLAN_ADMIT),))
        for vlan_id in sorted(port.tagged)
    ]
    if port.untagged != 0:
        enter = () if port.untagged is None else (PushVlan(port.untagged), Goto(VLAN_ADMIT))
        rules.append(_rule(INGRESS, PRIORITY_PORT_TAGGED, Match(port_no, tagged=True), (Goto(ADMIT),)))
        rules.append(_rule(INGRESS, PRIORITY_PORT_UNTAGGED, Match(port_no), enter))
    return rules


def closed_rules(port_no: int) -> list[Rule]:
    """Return the entry by which an OpenFlow 1.0 switch drops what a port of a VLAN sends without a tag, but LLDP.

    It has no tables for VLANs, and else took it for the fabric's own domain.
    """
    return [_rule(0, PRIORITY_HELD - 1, Match(port_no), ())]


def entry_keys(port_no: int) -> list[RuleKey]:
    """Return the keys of the entries that say where all frames of a port go, with a tag and without."""
    return [
        RuleKey(INGRESS, PRIORITY_PORT_TAGGED, Match(port_no, tagged=True)),
        RuleKey(INGRESS, PRIORITY_PORT_UNTAGGED, Match(port_no)),
    ]


def _rule(table: int, priority: int, match: Match, actions: tuple[Action, ...]) -> Rule:
    origin = ("vlan", table, priority, match.in_port, match.vlan_id)
    return Rule(RuleKey(table, priority, match), actions, cookie_of(DISCOVERY_TAG, origin))
