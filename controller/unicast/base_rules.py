"""The entries of the unicast core that name no host: what goes to the controller, and what is kept from it.

What is for an unknown host and an IPv4 broadcast go to the controller. OpenFlow 1.3 leaves out group addresses; 1.0
cannot, so there it is IPv4 packets alone. An entry per port and table drops both for a while when a port sends too
many of them; entries for known hosts come before it. In 1.0 what a port may send in VLANs has entries of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from controller.config.vlans import PortVlans
from controller.kernel.vlan_ports import Ingress
from controller.rules.cookies import cookie_of
from controller.rules.model import OFPP_CONTROLLER, Action, FlowEntry, FlowKey, Match, Output
from controller.rules.pipeline import (
    ETH_TYPE_IPV4,
    LOCATION,
    OPENFLOW_1_0,
    PRIORITY_UNTAGGED_MISS,
    UNICAST,
    UNICAST_TAG,
    VLAN_UNICAST,
    at_port,
)
from controller.rules.port_drops import old_drop_keys
from controller.unicast.entries import trunk_rules
from controller.wire.addresses import BROADCAST_MAC

_PRIORITY_UNKNOWN = PRIORITY_UNTAGGED_MISS + 1
_PRIORITY_GROUP = PRIORITY_UNTAGGED_MISS + 2
_PRIORITY_BROADCAST = PRIORITY_UNTAGGED_MISS + 3
_PRIORITY_GUARD = PRIORITY_UNTAGGED_MISS + 4

_TO_CONTROLLER: tuple[Action, ...] = (Output(OFPP_CONTROLLER),)
_BROADCAST = Match(eth_dst=BROADCAST_MAC, eth_type=ETH_TYPE_IPV4)
_GROUP_BIT = b"\x01" + bytes(5)


def base_rules(ofp_version: int, has_vlans: bool = False) -> list[FlowEntry]:
    """Return the entries for a switch that speaks OpenFlow 1.0 (1) or 1.3 (4), in a fabric with VLANs or without."""
    if ofp_version == OPENFLOW_1_0:
        return [
            _rule(0, _PRIORITY_UNKNOWN, Match(eth_type=ETH_TYPE_IPV4), _TO_CONTROLLER),
            _rule(0, _PRIORITY_BROADCAST, _BROADCAST, _TO_CONTROLLER),
        ]
    vlan_rules = _host_rules(VLAN_UNICAST) if has_vlans else []
    return [*_host_rules(UNICAST), _rule(LOCATION, _PRIORITY_UNKNOWN, Match(), _TO_CONTROLLER), *vlan_rules]


def standing_rules(ofp_version: int, trunks: Iterable[int], has_vlans: bool) -> list[FlowEntry]:
    """Return the entries of a switch that name no host, with those of the ports that lead to switches."""
    rules = base_rules(ofp_version, has_vlans)
    if ofp_version != OPENFLOW_1_0:
        for port_no in sorted(trunks):
            rules += trunk_rules(port_no, has_vlans)
    return rules


def _host_rules(table: int) -> list[FlowEntry]:
    """Return the entries of a table that takes what hosts send."""
    return [
        _rule(table, _PRIORITY_UNKNOWN, Match(), _TO_CONTROLLER),
        _rule(table, _PRIORITY_GROUP, Match(eth_dst=_GROUP_BIT, eth_dst_mask=_GROUP_BIT), ()),
        _rule(table, _PRIORITY_BROADCAST, _BROADCAST, _TO_CONTROLLER),
    ]


def old_vlan_rules(vlans: Iterable[int], entered: Mapping[int, Iterable[Ingress]]) -> list[FlowEntry]:
    """Return what an OpenFlow 1.0 switch has beside its `base_rules` for the VLANs of the fabric.

    `entered` are, by VLAN, its ports to hosts with the tag that frames have there.
    """
    unknown = Match(eth_type=ETH_TYPE_IPV4)
    rules = [_rule(0, _PRIORITY_UNKNOWN, unknown._replace(vlan_id=vlan_id), _TO_CONTROLLER) for vlan_id in vlans]
    for vlan_id in sorted(entered):
        for port_no, tag in entered[vlan_id]:
            for priority, match in ((_PRIORITY_UNKNOWN, unknown), (_PRIORITY_BROADCAST, _BROADCAST)):
                own = match._replace(in_port=port_no, vlan_id=tag)
                rules.append(_rule(0, at_port(priority), own, _TO_CONTROLLER))
    return rules


def policer_rules(ofp_version: int, port_no: int, seconds: int, port: PortVlans | None = None) -> list[FlowEntry]:
    """Return the entries that keep what `base_rules` sends to the controller away from it, for one port, a while.

    `port` are the VLANs that it has where it leads to hosts, None where no port of the fabric is in one.
    """
    guarded = Match(in_port=port_no)
    if ofp_version != OPENFLOW_1_0:
        tables = (UNICAST, LOCATION) if port is None else (UNICAST, LOCATION, VLAN_UNICAST)
        keys = [FlowKey(table, _PRIORITY_GUARD, guarded) for table in tables]
    else:
        keys = [FlowKey(0, _PRIORITY_GUARD, guarded._replace(tagged=port is not None))]
        keys += [] if port is None else old_drop_keys(port, _PRIORITY_GUARD, guarded)
    return [_rule(*key, ())._replace(hard_timeout_s=seconds) for key in keys]


def _rule(table: int, priority: int, match: Match, actions: tuple[Action, ...]) -> FlowEntry:
    return FlowEntry(FlowKey(table, priority, match), actions, cookie_of(UNICAST_TAG, ("base", table, priority)))
