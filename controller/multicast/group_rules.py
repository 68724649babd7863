"""The flow entries of what switches do for a group, by the OpenFlow version and the VLANs of the ports of each.

All packets of a group wait in one queue, since one entry sends those of all its senders: that of the most important
class among its admitted senders, or of its own class while there are none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple

from controller.kernel.domains import address_of
from controller.kernel.vlan_ports import NO_OIFS, VlanOifs, VlanPorts
from controller.multicast.duties import sender_entry
from controller.multicast.group import Group, Sender, SenderKey
from controller.rules.compile import (
    LOWER,
    ChannelDuty,
    RuleSet,
    SwitchDuty,
    common_key,
    default_rule,
    outputs_alike,
    queued,
    queued_rule,
    supports,
    versioned_mac,
)
from controller.rules.compile_cover import STAND_IN_VERSION, CoverDuty, cover_rule, in_covered_form, is_covered
from controller.rules.compile_shared import GroupDuty, SharedDuty, in_shared_form, shared_rules, shares
from controller.rules.compile_vlan import (
    channel_key_in_vlan,
    common_key_in_vlan,
    lower_in_vlan_to_1_0,
    lower_in_vlan_to_1_3,
    outputs_in_vlan,
    tagged_outputs,
)
from controller.rules.model import Action, FlowEntry, FlowKey
from controller.rules.pipeline import OPENFLOW_1_0, OPENFLOW_1_3

_new = tuple.__new__  # what a named tuple's own constructor does, for a third of its time


class Needs(NamedTuple):
    """What switches do for a group that is in, by dpid, and the entries that say so."""

    duties: dict[int, GroupDuty]
    rules: dict[int, RuleSet]


class GroupRules:
    """Lowers what a switch does for a group; `ofp_versions` are those of the switches, which their owner keeps.

    `queue_of_group` returns the queue of a group (its address) to which nobody sends; None where there are no queues.
    """

    def __init__(self, vlan_ports: VlanPorts, ofp_versions: Mapping[int, int]) -> None:
        self._vlan_ports = vlan_ports
        self._oifs_at = vlan_ports.known
        self._ofp_versions = ofp_versions
        self.queue_of_group: Callable[[bytes], int | None] | None = None

    def sender_changed(self, group: Group, before: Sender | None, after: Sender | None) -> bool:
        """Take note of what a group has for a sender of before, None being nobody; tell whether its queue changes."""
        had, has = _queue_of(before), _queue_of(after)
        if had != has:
            counts = group.queues = Counter[int]() if group.queues is None else group.queues
            counts.update(() if has is None else (has,))
            counts.subtract(() if had is None else (had,))
            group.queues = +counts or None
        return self.set_queue(group)

    def set_queue(self, group: Group) -> bool:
        """Give a group the queue that follows from its senders; tell whether it is another one than before."""
        queue_id = group.queue_id
        if group.queues is not None:
            queue_id = max(group.queues)
        elif self.queue_of_group is not None:
            queue_id = self.queue_of_group(address_of(group.address) if group.vlan_id else group.address)
        if queue_id == group.queue_id:
            return False
        group.queue_id = queue_id
        for alias in group.trees or ():
            alias.queue_id = queue_id
        return True

    def lower(self, group: Group, dpid: int, duty: GroupDuty) -> RuleSet:
        """Return the entries of a switch; none where its version is not known."""
        if not shares(duty.tree_version):
            return self._lower(group, dpid, duty)  # type: ignore[arg-type]
        address = address_of(group.address) if group.vlan_id else group.address
        if isinstance(duty, SharedDuty):
            return shared_rules(address, bool(group.vlan_id), duty)
        if isinstance(duty, CoverDuty):
            rule = cover_rule(duty.tree_version, duty.ports)
            return {rule.key: rule}
        if is_covered(duty.tree_version):
            stand_in = SwitchDuty(STAND_IN_VERSION, duty.channels, duty.senders)
            carried = versioned_mac(address, STAND_IN_VERSION)
            return in_covered_form(duty.tree_version, carried, self._lower(group, dpid, stand_in))
        rules = self._lower(group, dpid, SwitchDuty(*duty[:3]))
        return in_shared_form(address, duty, rules) if self._ofp_versions.get(dpid) == OPENFLOW_1_3 else rules

    def _lower(self, group: Group, dpid: int, duty: SwitchDuty) -> RuleSet:
        """Return the entries of a switch on a tree on which none shares its own."""
        vlan_id = group.vlan_id
        if not vlan_id:
            lower = LOWER.get(self._ofp_versions.get(dpid, 0))
            return {} if lower is None else queued(lower(group.address, duty, group.cookie), group.queue_id)
        ofp_version = self._ofp_versions.get(dpid, 0)
        if ofp_version == OPENFLOW_1_3:
            untagged: tuple[int, ...] = ()
            for _, _, host_ports in duty[1]:
                if host_ports:
                    oifs: Iterable[int] = group.interests.get(dpid, ())
                    by_vlan = self._oifs_at.get(dpid) or self._vlan_ports.at(dpid)
                    _, untagged, both = by_vlan.get(vlan_id, NO_OIFS)
                    if not both.issuperset(oifs):
                        untagged = self._vlan_ports.untagged_oifs(dpid, vlan_id, oifs)
                    break
            return queued(lower_in_vlan_to_1_3(group.address, untagged, duty, group.cookie), group.queue_id)
        if ofp_version != OPENFLOW_1_0:
            return {}
        oifs = {*group.interests.get(dpid, ()), *(sender.port_no for sender in duty.senders)}
        untagged = self._vlan_ports.untagged_oifs(dpid, vlan_id, oifs)
        return queued(lower_in_vlan_to_1_0(group.address, untagged, duty, group.cookie), group.queue_id)

    def default(self, group: Group, dpid: int, channel: ChannelDuty) -> FlowEntry:
        """Return the only entry of a switch without senders for a group of which all want every source."""
        ofp_version, version, vlan_id = self._ofp_versions[dpid], group.tree_version, group.vlan_id
        if version or ofp_version != OPENFLOW_1_3:
            rule = self._default_otherwise(group, dpid, channel, ofp_version)
        else:
            key = group.common_key
            if key is None:
                key = common_key_in_vlan(group.address) if vlan_id else common_key(group.address)
                group.common_key = key
            if vlan_id and channel[2]:
                by_vlan = self._oifs_at.get(dpid) or self._vlan_ports.at(dpid)
                actions = own_outputs(channel, by_vlan.get(vlan_id, NO_OIFS))
                if actions is None:
                    actions = self._outputs_in_vlan(group, dpid, channel)
            else:
                actions = outputs_alike(channel)
            rule = _new(FlowEntry, (key, actions, group.cookie, 0, 0))
        return rule if group.queue_id is None else queued_rule(rule, group.queue_id)

    def _default_otherwise(self, group: Group, dpid: int, channel: ChannelDuty, ofp_version: int) -> FlowEntry:
        """Return the only entry where it is of a further tree version, or the switch does not speak OpenFlow 1.3."""
        name, version = group.address, group.tree_version
        if not group.vlan_id:
            return default_rule(ofp_version, name, version, channel, group.cookie)
        key = channel_key_in_vlan(ofp_version, name, version, None)
        return FlowEntry(key, self._outputs_in_vlan(group, dpid, channel), group.cookie)

    def _outputs_in_vlan(self, group: Group, dpid: int, channel: ChannelDuty) -> tuple[Action, ...]:
        untagged = self._vlan_ports.untagged_oifs(dpid, group.vlan_id, channel.host_ports)
        return outputs_in_vlan(group.address, untagged, channel, group.tree_version)

    def take_sender(self, tree: Group, key: SenderKey) -> set[FlowKey]:
        """Take a sender off what its switch does for a tree; return the keys of its entries, which are another's now.

        Nothing else of what the switch does changes by it.
        """
        duty = tree.duties.get(key.dpid)
        if duty is None:
            return set()
        entry = sender_entry(key, tree.senders[key])
        duty = duty._replace(senders=tuple(one for one in duty.senders if one[:3] != entry[:3]))
        before = {rule.key for rule in tree.rules.get(key.dpid, ())}
        left = self.lower(tree, key.dpid, duty)
        tree.set_duty(key.dpid, duty if duty.channels or duty.senders else None, tuple(left.values()))
        return before - left.keys()

    def serves_everywhere(self, address: bytes) -> bool:
        """Tell whether every switch that is known has entries for a group, whatever its tree."""
        return all(supports(version, address) is None for version in set(self._ofp_versions.values()))


@lru_cache(maxsize=16384)
def own_outputs(channel: ChannelDuty, own: VlanOifs) -> tuple[Action, ...] | None:
    """Return the output list of a channel for packets of tree version 0, where its OIFs are ports of its VLAN alone.

    None where one is not, so that more is to be looked at; `own` are the ports that the VLAN has at the switch.
    """
    return (
        tagged_outputs(channel.trunk_ports, channel.host_ports, own.untagged)
        if own.both.issuperset(channel.host_ports)
        else None
    )


def _queue_of(sender: Sender | None) -> int | None:
    return sender.mark.queue_id if sender is not None and sender.admitted else None
