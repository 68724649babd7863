"""The entries that every switch has from the start: the order of the tables, and what goes to the controller.

LLDP, LACP, ARP and neighbour discovery go to the controller from every port, and never from switch to switch: a host
can be seen at its own port only. Echo frames return by the port where they came, without the controller, and changed
so that they return once: a neighbour learns that this switch forwards, and nobody else hears of it. Tour frames
return alike, under an address that tells which switch returned them; the switch that sent them out sends them on by
the next port of its tour (`tour_rule`). OpenFlow 1.0 cannot tell neighbour discovery from other IPv6, so it has none
of it.

Frames with a VLAN tag are dropped at every port (but see `vlan_rules`): in OpenFlow 1.3 by one entry before all
others, in 1.0, whose other entries are for untagged frames, by the last one. A 1.0 switch that knows no 802.1ad takes
its tag for an EtherType.
"""

from __future__ import annotations

from functools import lru_cache

from controller.config.vlans import PortVlans
from controller.rules.cookies import VLAN_TAGGED_COOKIE, cookie_of
from controller.rules.model import (
    OFPP_CONTROLLER,
    OFPP_IN_PORT,
    Action,
    FlowEntry,
    FlowKey,
    Goto,
    Key,
    Match,
    Output,
    SetEthDst,
)
from controller.rules.pipeline import (
    ADMIT,
    DISCOVERY_TAG,
    ETH_TYPE_IPV4,
    ETH_TYPE_IPV6,
    FORWARD,
    INGRESS,
    IPPROTO_ICMPV6,
    OPENFLOW_1_0,
    PRIORITY_ADDRESS_RESOLUTION,
    PRIORITY_ECHO,
    PRIORITY_HELD,
    PRIORITY_LLDP,
    PRIORITY_MISS,
    PRIORITY_OTHER_MULTICAST,
    PRIORITY_UNTAGGED_MISS,
    PRIORITY_VLAN_TAGGED,
    UNICAST,
)
from controller.rules.port_drops import drop_keys
from controller.wire.ethernet import ETHERTYPE_ARP, ETHERTYPE_LLDP, ETHERTYPE_QINQ, ETHERTYPE_SLOW
from controller.wire.lacp import SLOW_PROTOCOLS_MAC
from controller.wire.lldp import ECHO_MAC, NEAREST_BRIDGE_MAC, TOUR_MAC, return_mac
from controller.wire.nd import ADVERTISEMENT, SOLICITATION

_TO_CONTROLLER: tuple[Action, ...] = (Output(OFPP_CONTROLLER),)
_LLDP = Match(eth_type=ETHERTYPE_LLDP)
_ECHO = Match(eth_dst=ECHO_MAC, eth_type=ETHERTYPE_LLDP)
_ECHO_BACK: tuple[Action, ...] = (SetEthDst(NEAREST_BRIDGE_MAC), Output(OFPP_IN_PORT))
_LACP = Match(eth_dst=SLOW_PROTOCOLS_MAC, eth_type=ETHERTYPE_SLOW)
_PRIORITY_LACP = PRIORITY_LLDP - 2
"""For any port. One more keeps away that of a port which no group names, and the leg of a group goes before that."""

_ARP = Match(eth_type=ETHERTYPE_ARP)
_NEIGHBOUR = tuple(
    Match(eth_type=ETH_TYPE_IPV6, ip_proto=IPPROTO_ICMPV6, icmpv6_type=kind) for kind in (SOLICITATION, ADVERTISEMENT)
)
_IPV4_GROUPS = Match(eth_type=ETH_TYPE_IPV4, ip_dst=b"\xe0" + bytes(3), ip_dst_prefix=4)
_IPV6_GROUPS = Match(eth_type=ETH_TYPE_IPV6, ip_dst=b"\xff" + bytes(15), ip_dst_prefix=8)


def _punts(ofp_version: int) -> list[tuple[int, Match]]:
    resolution = (_ARP,) if ofp_version == OPENFLOW_1_0 else (_ARP, *_NEIGHBOUR)
    return [(PRIORITY_LLDP, _LLDP), *((PRIORITY_ADDRESS_RESOLUTION, match) for match in resolution)]


def base_rules(ofp_version: int) -> list[FlowEntry]:
    """Return the entries of discovery for a switch that speaks OpenFlow 1.0 (1) or 1.3 (4)."""
    if ofp_version == OPENFLOW_1_0:
        drops = ((PRIORITY_OTHER_MULTICAST, _IPV4_GROUPS), (PRIORITY_UNTAGGED_MISS, Match()))
        return [
            _tagged_drop(0, PRIORITY_VLAN_TAGGED, Match(eth_type=ETHERTYPE_QINQ)),
            _rule(0, PRIORITY_ECHO, _ECHO, _ECHO_BACK),
            *(_rule(0, priority, match, _TO_CONTROLLER) for priority, match in _punts(ofp_version)),
            _rule(INGRESS, _PRIORITY_LACP, _LACP, _TO_CONTROLLER),
            *(_rule(0, priority, match, ()) for priority, match in drops),
            _tagged_drop(0, PRIORITY_MISS, Match(tagged=True)),
        ]
    return [
        _rule(INGRESS, PRIORITY_MISS, Match(), (Goto(ADMIT),)),
        _tagged_drop(ADMIT, PRIORITY_VLAN_TAGGED, Match(tagged=True)),
        _rule(ADMIT, PRIORITY_ECHO, _ECHO, _ECHO_BACK),
        *(_rule(ADMIT, priority, match, _TO_CONTROLLER) for priority, match in _punts(ofp_version)),
        _rule(INGRESS, _PRIORITY_LACP, _LACP, _TO_CONTROLLER),
        _rule(ADMIT, PRIORITY_MISS, Match(), (Goto(FORWARD),)),
        _rule(FORWARD, PRIORITY_OTHER_MULTICAST, _IPV4_GROUPS, ()),
        _rule(FORWARD, PRIORITY_OTHER_MULTICAST, _IPV6_GROUPS, ()),
        _rule(FORWARD, PRIORITY_MISS, Match(), (Goto(UNICAST),)),
        _rule(UNICAST, PRIORITY_MISS, Match(), ()),
    ]


def first_rules(ofp_version: int, dpid: int) -> list[FlowEntry]:
    """Return all entries that a switch is to hold before LLDP leaves its ports."""
    return [*base_rules(ofp_version), turn_rule(ofp_version, dpid)]


def turn_rule(ofp_version: int, dpid: int) -> FlowEntry:
    """Return the entry by which a switch sends tour frames of its neighbours back."""
    match = Match(eth_dst=TOUR_MAC, eth_type=ETHERTYPE_LLDP)
    return _tour_rule(ofp_version, match, (SetEthDst(return_mac(dpid)), Output(OFPP_IN_PORT)))


def tour_rule(ofp_version: int, port_no: int, neighbour: int, next_port_no: int) -> FlowEntry:
    """Return the entry that sends a tour frame, which the switch `neighbour` returned, on by the tour's next port."""
    match = Match(in_port=port_no, eth_dst=return_mac(neighbour), eth_type=ETHERTYPE_LLDP)
    return _tour_rule(ofp_version, match, (SetEthDst(TOUR_MAC), Output(next_port_no)))


def is_tour(key: Key) -> bool:
    """Tell whether an entry, by its key, sends tour frames on by another port than they came by."""
    return type(key) is FlowKey and key.priority == PRIORITY_ECHO and key.match.in_port is not None


def lacp_rules(port_no: int, seconds: int = 0) -> list[FlowEntry]:
    """Return the entry that has LACP at a port go to the controller or, for some seconds, the one that keeps it away.

    It is in the first table, before frames without a tag get that of their port.
    """
    match = _LACP._replace(in_port=port_no)
    if seconds:
        return [_rule(INGRESS, PRIORITY_LLDP + 1, match, ())._replace(hard_timeout_s=seconds)]
    return [_rule(INGRESS, PRIORITY_LLDP, match, _TO_CONTROLLER)]


def undeclared_rule(port_no: int, seconds: int) -> FlowEntry:
    """Return the entry that keeps away the LACP of a port which no group names, a while."""
    match = _LACP._replace(in_port=port_no)
    return _rule(INGRESS, _PRIORITY_LACP + 1, match, ())._replace(hard_timeout_s=seconds)


def policer_rules(ofp_version: int, port_no: int, seconds: int, port: PortVlans | None) -> list[FlowEntry]:
    """Return the entries that keep what `base_rules` sends to the controller away from it, for one port, a while."""
    rules = []
    for priority, match in _punts(ofp_version):
        own = match._replace(in_port=port_no)
        if ofp_version == OPENFLOW_1_0 and priority == PRIORITY_LLDP:
            keys = [FlowKey(0, priority + 1, own)]
        else:
            keys = drop_keys(ofp_version, port, priority + 1, own)
        rules += [_rule(*key, ())._replace(hard_timeout_s=seconds) for key in keys]
    return rules + lacp_rules(port_no, seconds)


def hold_rule(ofp_version: int, port_no: int) -> FlowEntry:
    """Return the entry that drops all that arrives at a port but LLDP, in OpenFlow 1.0 with tags or without."""
    if ofp_version == OPENFLOW_1_0:
        return _rule(0, PRIORITY_HELD, Match(in_port=port_no, tagged=True), ())
    return _rule(ADMIT, PRIORITY_HELD, Match(in_port=port_no), ())


def _tour_rule(ofp_version: int, match: Match, actions: tuple[Action, ...]) -> FlowEntry:
    table = 0 if ofp_version == OPENFLOW_1_0 else ADMIT
    return FlowEntry(FlowKey(table, PRIORITY_ECHO, match), actions, _cookie(("tour", match.in_port)))


def _tagged_drop(table: int, priority: int, match: Match) -> FlowEntry:
    return FlowEntry(FlowKey(table, priority, match), (), VLAN_TAGGED_COOKIE)


def _rule(table: int, priority: int, match: Match, actions: tuple[Action, ...]) -> FlowEntry:
    return FlowEntry(FlowKey(table, priority, match), actions, _cookie(("base", table, priority)))


@lru_cache(maxsize=4096)
def _cookie(origin: tuple[str | int | None, ...]) -> int:
    return cookie_of(DISCOVERY_TAG, origin)
