"""From what switches do for a group of a VLAN to flow entries, in tables of their own (OpenFlow 1.3).

Inside the fabric frames of a VLAN have its tag, and at ports to hosts that are in it tagged. So a switch sends to
those first, then with the tags of the VLANs that get the group by registration, and takes the tag off for the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from controller.kernel.domains import address_of, domain_of
from controller.kernel.oifs import HIGHEST_PORT, port_of_oif, vlan_of_oif
from controller.rules.compile import ChannelDuty, RuleSet, SenderEntry, Source, SwitchDuty, versioned_mac
from controller.rules.model import Action, Goto, Match, Output, PopVlan, Rule, RuleKey, SetEthDst, SetVlan
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

_new = tuple.__new__  # what a named tuple's own constructor does, for a third of its time


def lower_in_vlan(name: bytes, untagged_oifs: Sequence[int], duty: SwitchDuty, cookie: int) -> RuleSet:
    """Lower to two tables, as `compile.lower_to_1_3` does outside VLANs.

    Parameters
    ----------
    name
        The group in its VLAN.
    untagged_oifs
        The OIFs to hosts of the switch at which frames have no tag (`controller.kernel.oifs`).
    duty, cookie
        What the switch does, and the cookie of its entries.
    """
    version, channels, senders = duty
    rules: RuleSet = {}
    if senders:
        enter: tuple[Action, ...] = (Goto(VLAN_FORWARD),)
        if version:
            enter = (SetEthDst(versioned_mac(address_of(name), version)), Goto(VLAN_FORWARD))
        for sender in senders:
            key = RuleKey(VLAN_ADMIT, PRIORITY_SENDER, _sender_match(name, sender))
            rules[key] = Rule(key, enter if sender.admitted else (), cookie | SENDER_COOKIE_BIT)
    for channel in channels:
        key = _channel_key(name, version, channel.source)
        rules[key] = _new(Rule, (key, outputs_in_vlan(name, untagged_oifs, channel, version), cookie, 0, 0))
    return rules


def outputs_in_vlan(
    name: bytes, untagged_oifs: Sequence[int], channel: ChannelDuty, tree_version: int
) -> tuple[Action, ...]:
    """Return the output list for packets that carry the tag of their VLAN and the MAC address of a tree version."""
    _, trunk_ports, host_ports = channel
    tagged = tuple([oif for oif in host_ports if oif not in untagged_oifs])
    untagged = tuple([port_of_oif(oif) for oif in host_ports if oif in untagged_oifs])
    if not tree_version or not host_ports:
        return _outputs(trunk_ports + tagged, untagged)
    restored = SetEthDst(versioned_mac(address_of(name), 0))
    return (*_outputs(trunk_ports, ()), restored, *_outputs(tagged, untagged))


@lru_cache(maxsize=16384)
def _outputs(tagged: tuple[int, ...], untagged: tuple[int, ...]) -> tuple[Action, ...]:
    """Return outputs with tags, OIFs in ascending order, and then without, by port."""
    actions: list[Action] = []
    vlan_id = 0
    for oif in tagged:
        if oif > HIGHEST_PORT and vlan_of_oif(oif, 0) != vlan_id:
            vlan_id = vlan_of_oif(oif, 0)
            actions.append(SetVlan(vlan_id))
        actions.append(Output(port_of_oif(oif)))
    if untagged:
        actions += [PopVlan(), *map(Output, untagged)]
    return tuple(actions)


@lru_cache(maxsize=16384)
def _channel_key(name: bytes, tree_version: int, source: Source) -> RuleKey:
    priority = PRIORITY_GROUP if source is None else PRIORITY_CHANNEL
    return RuleKey(VLAN_FORWARD, priority, _match(name, tree_version, source))


def _match(name: bytes, tree_version: int, source: Source) -> Match:
    address = address_of(name)
    bits = 8 * len(address)
    return Match(
        eth_dst=versioned_mac(address, tree_version),
        eth_type=ETH_TYPE_IPV4 if bits == 32 else ETH_TYPE_IPV6,
        ip_src=source,
        ip_src_prefix=None if source is None else bits,
        ip_dst=address,
        ip_dst_prefix=bits,
        vlan_id=domain_of(name),
    )


def _sender_match(name: bytes, sender: SenderEntry) -> Match:
    match = _match(name, 0, sender.address)
    return match._replace(in_port=sender.port_no, eth_src=sender.mac)
