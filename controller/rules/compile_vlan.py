"""From what switches do for a group of a VLAN to flow entries, for OpenFlow 1.0 and 1.3.

Inside the fabric frames of a VLAN have its tag, and at ports to hosts that are in it tagged. So a switch sends to
those first, then with the tags of the VLANs that get the group by registration, and takes the tag off for the others.
A receiver by registration at the very port of a sender gets its copies by the sender's own entry, which sends them
back where they came from with the receiver's tag: to the number of that port a switch would send nothing.
In OpenFlow 1.3 the entries have tables of their own, in which every frame has its tag. In 1.0 a sender's entry asks
for the tag that its port has, or for none, and gives the frame its tag itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from controller.kernel.domains import IPV4_NAME_BYTES, address_of, domain_of
from controller.kernel.oifs import HIGHEST_PORT, port_of_oif, vlan_of_oif
from controller.rules.compile import (
    ChannelDuty,
    PartEntry,
    RuleSet,
    SenderEntry,
    Source,
    SwitchDuty,
    entered,
    marked,
    output_to,
    part_rule,
    versioned_mac,
)
from controller.rules.group_match import GroupMatch
from controller.rules.model import (
    OFPP_IN_PORT,
    Action,
    FlowEntry,
    FlowKey,
    Match,
    Output,
    PopVlan,
    PushVlan,
    SetEthDst,
    SetVlan,
)
from controller.rules.pipeline import (
    ETH_TYPE_IPV4,
    ETH_TYPE_IPV6,
    OPENFLOW_1_0,
    OPENFLOW_1_3,
    PRIORITY_CHANNEL,
    PRIORITY_GROUP,
    PRIORITY_SENDER,
    SENDER_COOKIE_BIT,
    VLAN_ADMIT,
    VLAN_FORWARD,
    at_port,
)
from controller.wire.addresses import group_mac

_POP = PopVlan()

_new = tuple.__new__  # what a named tuple's own constructor does, for a third of its time


def lower_in_vlan_to_1_3(name: bytes, untagged_oifs: tuple[int, ...], duty: SwitchDuty, cookie: int) -> RuleSet:
    """Lower to two tables of OpenFlow 1.3, as `compile` does outside VLANs.

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
        has_returns = False
        for _, _, host_ports in channels:
            if host_ports and host_ports[-1] > HIGHEST_PORT:
                has_returns = True
        for sender in senders:
            if type(sender) is PartEntry:
                rule = part_rule(address_of(name), domain_of(name), sender, version, cookie)
                rules[rule.key] = rule
                continue
            assert type(sender) is SenderEntry
            key = _sender_key(name, sender)
            actions = entered(address_of(name), sender, version, VLAN_FORWARD)
            if has_returns:
                returned = _returned(untagged_oifs, channels, sender, domain_of(name))
                marks = marked(sender)
                actions = (*marks, *returned, *actions[len(marks) :])
            rules[key] = FlowEntry(key, actions if sender.admitted else (), cookie | SENDER_COOKIE_BIT)
    for channel in channels:
        source, trunk_ports, host_ports = channel
        key = channel_key_in_vlan(OPENFLOW_1_3, name, version, source)
        outputs = (
            outputs_in_vlan(name, untagged_oifs, channel, version)
            if version
            else tagged_outputs(trunk_ports, host_ports, untagged_oifs)
        )
        rules[key] = _new(FlowEntry, (key, outputs, cookie, 0, 0))
    return rules


def lower_in_vlan_to_1_0(name: bytes, untagged_oifs: tuple[int, ...], duty: SwitchDuty, cookie: int) -> RuleSet:
    """Lower to the one table of OpenFlow 1.0, in which an IPv6 group cannot be said (`compile.supports`).

    The parameters are those of `lower_in_vlan_to_1_3`; `untagged_oifs` has the ports of the senders too.
    """
    version, channels, senders = duty
    rules: RuleSet = {}
    for sender in senders:
        assert type(sender) is SenderEntry  # switches of this version divide no flows
        is_untagged = sender.port_no in untagged_oifs
        match = _sender_key(name, sender).match
        key = FlowKey(0, at_port(PRIORITY_SENDER), match._replace(vlan_id=None) if is_untagged else match)
        channel = _channel_of(channels, sender)
        actions: tuple[Action, ...] = ()
        if sender.admitted and channel is not None:
            returned = _returned(untagged_oifs, channels, sender, 0 if is_untagged else domain_of(name))
            outputs = (*returned, *_outputs_of_sender(name, untagged_oifs, channel, version, is_untagged))
            actions = (*marked(sender), *outputs) if outputs else ()
        rules[key] = FlowEntry(key, actions, cookie | SENDER_COOKIE_BIT)
    for channel in channels:
        key = channel_key_in_vlan(OPENFLOW_1_0, name, version, channel.source)
        rules[key] = FlowEntry(key, outputs_in_vlan(name, untagged_oifs, channel, version), cookie)
    return rules


def _returned(
    untagged_oifs: Sequence[int], channels: Sequence[ChannelDuty], sender: SenderEntry, tag: int
) -> tuple[Action, ...]:
    """Return what sends copies back to receivers of other VLANs at a sender's port; frames are then as they came.

    They come with this tag, 0 for none.
    """
    channel = _channel_of(channels, sender)
    if channel is None or max(channel[2], default=0) <= HIGHEST_PORT:
        return ()
    actions: list[Action] = []
    now = tag
    for oif in channel.host_ports:
        if oif > HIGHEST_PORT and port_of_oif(oif) == sender.port_no:
            wanted = 0 if oif in untagged_oifs else vlan_of_oif(oif, 0)
            actions += [*_retagged(now, wanted), Output(OFPP_IN_PORT)]
            now = wanted
    return (*actions, *_retagged(now, tag))


def _channel_of(channels: Sequence[ChannelDuty], sender: SenderEntry) -> ChannelDuty | None:
    """Return the channel of a sender: its own where it has one, else that of all others."""
    found: ChannelDuty | None = None
    for channel in channels:
        if channel[0] == sender.address:
            return channel
        if channel[0] is None:
            found = channel
    return found


def _retagged(tag: int, wanted: int) -> tuple[Action, ...]:
    """Return what gives a frame another tag, 0 for none."""
    if tag == wanted:
        return ()
    return (PopVlan(),) if not wanted else (SetVlan(wanted),) if tag else (PushVlan(wanted),)


def _outputs_of_sender(
    name: bytes, untagged_oifs: tuple[int, ...], channel: ChannelDuty, tree_version: int, is_untagged: bool
) -> tuple[Action, ...]:
    """Return the output list for packets as a host sends them, whose port has the VLAN with the tag or without."""
    outputs = outputs_in_vlan(name, untagged_oifs, channel, tree_version)
    tagged: tuple[Action, ...] = (PushVlan(domain_of(name)),) if is_untagged else ()
    if channel.trunk_ports:
        entered = (SetEthDst(versioned_mac(address_of(name), tree_version)),) if tree_version else ()
        return (*tagged, *entered, *outputs)
    outputs = tuple([action for action in outputs if not isinstance(action, SetEthDst)])
    if is_untagged and isinstance(next(iter(outputs), None), PopVlan):
        return outputs[1:]
    return (*tagged, *outputs) if outputs else ()


def outputs_in_vlan(
    name: bytes, untagged_oifs: tuple[int, ...], channel: ChannelDuty, tree_version: int
) -> tuple[Action, ...]:
    """Return the output list for packets that carry the tag of their VLAN and the MAC address of a tree version."""
    _, trunk_ports, host_ports = channel
    if not tree_version or not host_ports:
        return tagged_outputs(trunk_ports, host_ports, untagged_oifs)
    restored = SetEthDst(versioned_mac(address_of(name), 0))
    return (*tagged_outputs(trunk_ports, (), ()), restored, *tagged_outputs((), host_ports, untagged_oifs))


@lru_cache(maxsize=16384)
def tagged_outputs(
    trunk_ports: tuple[int, ...], oifs: tuple[int, ...], untagged_oifs: tuple[int, ...]
) -> tuple[Action, ...]:
    """Return outputs to switches, then to OIFs with tags, in ascending order, and then to those without, by port."""
    tagged = (*trunk_ports, *(oif for oif in oifs if oif not in untagged_oifs))
    untagged = [port_of_oif(oif) for oif in oifs if oif in untagged_oifs]
    actions: list[Action] = []
    vlan_id = 0
    for oif in tagged:
        if oif > HIGHEST_PORT and vlan_of_oif(oif, 0) != vlan_id:
            vlan_id = vlan_of_oif(oif, 0)
            actions.append(SetVlan(vlan_id))
        actions.append(output_to(port_of_oif(oif)))
    if untagged:
        actions += [_POP, *map(output_to, untagged)]
    return tuple(actions)


def common_key_in_vlan(name: bytes, vlan_id: int) -> FlowKey:
    """Return `common_key` of a group in a VLAN, by its name."""
    if len(name) != IPV4_NAME_BYTES:
        return _new(FlowKey, (VLAN_FORWARD, PRIORITY_GROUP, _match(name, 0, None)))
    group = name[:4]
    mac = group_mac(group)
    fields = (None, mac, None, ETH_TYPE_IPV4, None, None, None, group, 32, None, None, False, vlan_id, None)
    return _new(FlowKey, (VLAN_FORWARD, PRIORITY_GROUP, _new(GroupMatch, fields)))


@lru_cache(maxsize=16384)
def channel_key_in_vlan(ofp_version: int, name: bytes, tree_version: int, source: Source) -> FlowKey:
    """Return the key of the entry of a channel, None being every source that no member names."""
    table = 0 if ofp_version == OPENFLOW_1_0 else VLAN_FORWARD
    priority = PRIORITY_GROUP if source is None else PRIORITY_CHANNEL
    return _new(FlowKey, (table, priority, _match(name, tree_version, source)))


def _match(name: bytes, tree_version: int, source: Source) -> Match:
    address = address_of(name)
    bits = 8 * len(address)
    eth_type = ETH_TYPE_IPV4 if bits == 32 else ETH_TYPE_IPV6
    source_bits = None if source is None else bits
    mac, vlan_id = versioned_mac(address, tree_version), domain_of(name)
    return _new(
        Match, (None, mac, None, eth_type, None, source, source_bits, address, bits, None, None, False, vlan_id, None)
    )


@lru_cache(maxsize=16384)
def _sender_key(name: bytes, sender: SenderEntry) -> FlowKey:
    match = _match(name, 0, sender.address)._replace(in_port=sender.port_no, eth_src=sender.mac)
    return FlowKey(VLAN_ADMIT, PRIORITY_SENDER, match)
