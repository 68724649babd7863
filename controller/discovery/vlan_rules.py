"""Which frames are of which VLAN: what ports let in, with their tags or to be given one, and the tables they go to.

Links between switches carry every VLAN with its tag. A port to hosts lets in the VLANs that it has; the rest of what
is tagged is dropped and counted, by port. LLDP has no VLAN (IEEE 802.1AB, 7.1). OpenFlow 1.0 has one table, and
cannot ask for "any tag": there what a port may have meets entries of the port's own
(`controller.rules.pipeline.at_port`), and right below them the port's other frames are dropped.

What has a second tag behind that of a VLAN is dropped and counted, unless the policy has it pass: where a switch
takes the outer tag off, the inner one might put the frame into a VLAN that its sender may not have. What passes is
known by its EtherType, which is the second tag's, and so meets no entry for what it carries; OpenFlow 1.0 switches
drop it.
"""

from __future__ import annotations

from collections.abc import Iterable

from controller.config.vlans import PortVlans
from controller.rules.cookies import VLAN_TAGGED_COOKIE, cookie_of
from controller.rules.model import OFPP_CONTROLLER, Action, FlowEntry, FlowKey, Goto, Match, Output, PushVlan
from controller.rules.pipeline import (
    ADMIT,
    DISCOVERY_TAG,
    ETH_TYPE_IPV4,
    ETH_TYPE_IPV6,
    INGRESS,
    IPPROTO_ICMPV6,
    PRIORITY_ADDRESS_RESOLUTION,
    PRIORITY_DOUBLE_TAGGED,
    PRIORITY_LLDP,
    PRIORITY_MISS,
    PRIORITY_OTHER_MULTICAST,
    PRIORITY_PORT_CLOSED,
    PRIORITY_PORT_TAGGED,
    PRIORITY_PORT_UNTAGGED,
    PRIORITY_PORT_VLAN,
    PRIORITY_UNTAGGED_MISS,
    PRIORITY_VLAN_TAGGED,
    VLAN_ADMIT,
    VLAN_FORWARD,
    VLAN_UNICAST,
    at_port,
)
from controller.wire.ethernet import ETHERTYPE_ARP, ETHERTYPE_LLDP, ETHERTYPE_QINQ, ETHERTYPE_VLAN
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


_TWO_TAGS = tuple(Match(eth_type=inner, tagged=True) for inner in (ETHERTYPE_VLAN, ETHERTYPE_QINQ))

_BRIDGE_GROUPS = b"\x01\x80\xc2" + bytes(3)
"""What no bridge sends on (IEEE 802.1Q, 8.6.3), but for the last four bits."""


def vlan_base_rules(passes_double_tagged: bool = False) -> list[FlowEntry]:
    """Return the entries of a switch, whatever its ports, in a fabric with VLANs."""
    if passes_double_tagged:
        reserved = (m._replace(eth_dst=_BRIDGE_GROUPS, eth_dst_mask=b"\xff" * 5 + b"\xf0") for m in _TWO_TAGS)
        two_tags = [_rule(VLAN_ADMIT, PRIORITY_VLAN_TAGGED, match, ()) for match in reserved]
    else:
        two_tags = [_counted(VLAN_ADMIT, PRIORITY_VLAN_TAGGED, match) for match in _TWO_TAGS]
    return [
        _rule(INGRESS, PRIORITY_LLDP, Match(eth_type=ETHERTYPE_LLDP), (Goto(ADMIT),)),
        *two_tags,
        *(_rule(VLAN_ADMIT, PRIORITY_ADDRESS_RESOLUTION, match, (Output(OFPP_CONTROLLER),)) for match in _RESOLUTION),
        _rule(VLAN_ADMIT, PRIORITY_MISS, Match(), (Goto(VLAN_FORWARD),)),
        *(_rule(VLAN_FORWARD, PRIORITY_OTHER_MULTICAST, match, ()) for match in _GROUPS),
        _rule(VLAN_FORWARD, PRIORITY_MISS, Match(), (Goto(VLAN_UNICAST),)),
        _rule(VLAN_UNICAST, PRIORITY_MISS, Match(), ()),
    ]


def link_rules(port_no: int) -> list[FlowEntry]:
    """Return the entry by which a port that leads to a switch lets every VLAN in."""
    return [_rule(INGRESS, PRIORITY_PORT_TAGGED, Match(port_no, tagged=True), (Goto(VLAN_ADMIT),))]


def edge_rules(port_no: int, port: PortVlans) -> list[FlowEntry]:
    """Return the entries by which a port to hosts lets the VLANs in that it has, and drops and counts other tags."""
    rules = [
        _rule(INGRESS, PRIORITY_PORT_VLAN, Match(port_no, vlan_id=vlan_id), (Goto(VLAN_ADMIT),))
        for vlan_id in sorted(port.tagged)
    ]
    rules.append(_counted(INGRESS, PRIORITY_PORT_TAGGED, Match(port_no, tagged=True)))
    if port.untagged != 0:
        enter = () if port.untagged is None else (PushVlan(port.untagged), Goto(VLAN_ADMIT))
        rules.append(_rule(INGRESS, PRIORITY_PORT_UNTAGGED, Match(port_no), enter))
    return rules


def old_base_rules(vlans: Iterable[int]) -> list[FlowEntry]:
    """Return the entries of an OpenFlow 1.0 switch, whatever its ports, in a fabric with these VLANs."""
    return [
        *(_counted(0, PRIORITY_DOUBLE_TAGGED, match) for match in _TWO_TAGS),
        *(_rule(0, PRIORITY_OTHER_MULTICAST, _GROUPS[0]._replace(vlan_id=vlan_id), ()) for vlan_id in sorted(vlans)),
    ]


def old_link_rules(port_no: int) -> list[FlowEntry]:
    """Return the entry of OpenFlow 1.0 that drops what comes from a switch and no entry knows, uncounted."""
    return [_rule(0, PRIORITY_UNTAGGED_MISS, Match(port_no, tagged=True), ())]


def old_edge_rules(port_no: int, port: PortVlans, vlans: Iterable[int]) -> list[FlowEntry]:
    """Return the entries of OpenFlow 1.0 that have ARP of a port's VLANs go to the controller, and drop the rest.

    Where frames without a tag are of the fabric's own domain they go on to its entries, and each of `vlans`, which
    are all of the fabric, is dropped by itself.
    """
    arp = Match(port_no, eth_type=ETHERTYPE_ARP)
    tags: list[int | None] = sorted(port.tagged)  # type: ignore[assignment]
    if port.untagged:
        tags.append(None)
    priority = at_port(PRIORITY_ADDRESS_RESOLUTION)
    rules = [_rule(0, priority, arp._replace(vlan_id=tag), (Output(OFPP_CONTROLLER),)) for tag in tags]
    rules += [_rule(0, PRIORITY_PORT_CLOSED + 1, Match(port_no, vlan_id=tag), ()) for tag in sorted(port.tagged)]
    if port.untagged == 0:
        others = sorted(set(vlans) - port.tagged)
        return rules + [_counted(0, PRIORITY_PORT_CLOSED, Match(port_no, vlan_id=vlan_id)) for vlan_id in others]
    rules.append(_rule(0, PRIORITY_PORT_CLOSED + 1, Match(port_no), ()))
    return [*rules, _counted(0, PRIORITY_PORT_CLOSED, Match(port_no, tagged=True))]


def _counted(table: int, priority: int, match: Match) -> FlowEntry:
    return FlowEntry(FlowKey(table, priority, match), (), VLAN_TAGGED_COOKIE)


def entry_keys(port_no: int) -> list[FlowKey]:
    """Return the keys of the entries that say where all frames of a port go, with a tag and without."""
    return [
        FlowKey(INGRESS, PRIORITY_PORT_TAGGED, Match(port_no, tagged=True)),
        FlowKey(INGRESS, PRIORITY_PORT_UNTAGGED, Match(port_no)),
    ]


def old_entry_keys(port_no: int, vlans: Iterable[int]) -> list[FlowKey]:
    """Return the keys of the entries of OpenFlow 1.0 that drop frames of a port, which may be of `vlans`."""
    anywhere = (Match(port_no), Match(port_no, tagged=True), *(Match(port_no, vlan_id=vlan_id) for vlan_id in vlans))
    return [
        FlowKey(0, PRIORITY_UNTAGGED_MISS, Match(port_no, tagged=True)),
        *(FlowKey(0, PRIORITY_PORT_CLOSED + above, match) for match in anywhere for above in (0, 1)),
    ]


def _rule(table: int, priority: int, match: Match, actions: tuple[Action, ...]) -> FlowEntry:
    origin = ("vlan", table, priority, match.in_port, match.vlan_id)
    return FlowEntry(FlowKey(table, priority, match), actions, cookie_of(DISCOVERY_TAG, origin))
