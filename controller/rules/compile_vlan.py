"""From what switches do for a group of a VLAN to flow entries, in tables of their own (OpenFlow 1.3).

Inside the fabric frames of a VLAN have its tag, and at ports to hosts that are in it tagged. So a switch sends to
those first, and takes the tag off for the others.
"""

from __future__ import annotations

from collections.abc import Sequence

from controller.kernel.domains import address_of, domain_of
from controller.rules.compile import ChannelDuty, RuleSet, SenderEntry, Source, SwitchDuty, versioned_mac
from controller.rules.model import Action, Goto, Match, Output, PopVlan, Rule, RuleKey, SetEthDst
from controller.rules.pipeline import (
    ETH_TYPE_IPV4,
    ETH_TYPE_IPV6,
    PRIORITY_CHANNEL,
    PRIORITY_GROUP,
    PRIORITY_SENDER,
    SENDER_COOKIE_BIT,
    VLAN_ADMIT,
    VLAN_FORWARD,
)


def lower_in_vlan(name: bytes, untagged_ports: Sequence[int], duty: SwitchDuty, cookie: int) -> RuleSet:
    """Lower to two tables, as `compile.lower_to_1_3` does outside VLANs.

    Parameters
    ----------
    name
        The group in its VLAN.
    untagged_ports
        The host ports of the switch that have frames of the VLAN without its tag.
    duty, cookie
        What the switch does, and the cookie of its entries.
    """
    address, vlan_id, version = address_of(name), domain_of(name), duty.tree_version
    rules: RuleSet = {}
    enter: tuple[Action, ...] = (Goto(VLAN_FORWARD),)
    if version:
        enter = (SetEthDst(versioned_mac(address, version)), Goto(VLAN_FORWARD))
    for sender in duty.senders:
        key = RuleKey(VLAN_ADMIT, PRIORITY_SENDER, _sender_match(address, vlan_id, sender))
        rules[key] = Rule(key, enter if sender.admitted else (), cookie | SENDER_COOKIE_BIT)
    for channel in duty.channels:
        priority = PRIORITY_GROUP if channel.source is None else PRIORITY_CHANNEL
        key = RuleKey(VLAN_FORWARD, priority, _match(address, vlan_id, version, channel.source))
        rules[key] = Rule(key, outputs_in_vlan(address, untagged_ports, channel, version), cookie)
    return rules


def outputs_in_vlan(
    address: bytes, untagged_ports: Sequence[int], channel: ChannelDuty, tree_version: int
) -> tuple[Action, ...]:
    """Return the output list for packets that carry the tag of their VLAN and the MAC address of a tree version."""
    tagged = [port_no for port_no in channel.host_ports if port_no not in untagged_ports]
    untagged = [port_no for port_no in channel.host_ports if port_no in untagged_ports]
    actions: list[Action] = [Output(port_no) for port_no in channel.trunk_ports]
    if tree_version and channel.host_ports:
        actions.append(SetEthDst(versioned_mac(address, 0)))
    actions += map(Output, tagged)
    if untagged:
        actions += [PopVlan(), *map(Output, untagged)]
    return tuple(actions)


def _match(address: bytes, vlan_id: int, tree_version: int, source: Source) -> Match:
    bits = 8 * len(address)
    return Match(
        eth_dst=versioned_mac(address, tree_version),
        eth_type=ETH_TYPE_IPV4 if bits == 32 else ETH_TYPE_IPV6,
        ip_src=source,
        ip_src_prefix=None if source is None else bits,
        ip_dst=address,
        ip_dst_prefix=bits,
        vlan_id=vlan_id,
    )


def _sender_match(address: bytes, vlan_id: int, sender: SenderEntry) -> Match:
    match = _match(address, vlan_id, 0, sender.address)
    return match._replace(in_port=sender.port_no, eth_src=sender.mac)
