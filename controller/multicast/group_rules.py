"""The flow entries of what switches do for a group, by the OpenFlow version and the VLANs of the ports of each.

All packets of a group wait in one queue, since one entry sends those of all its senders: that of the most important
class among its admitted senders, or of its own class while there are none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from controller.kernel.domains import address_of
from controller.kernel.vlan_ports import NO_OIFS, VlanOifs, VlanPorts
from controller.multicast.flow_parts import PartKey
from controller.multicast.group import FlowName, Group, Sender
from controller.rules.compile import (
    LOWER,
    ChannelDuty,
    PartEntry,
    RuleSet,
    SwitchDuty,
    common_key,
    default_rule,
    outputs_alike,
    part_of,
    queued,
    queued_rule,
    supports,
    versioned_mac,
)
from controller.rules.compile_cover import STAND_IN_VERSION, CoverDuty, cover_rule, in_covered_form, is_covered
from controller.rules.compile_shared import ApartDuty, GroupDuty, SharedDuty, in_shared_form, shared_rules, shares
from controller.rules.compile_vlan import (
    channel_key_in_vlan,
    common_key_in_vlan,
    lower_in_vlan_to_1_0,
    lower_in_vlan_to_1_3,
    outputs_in_vlan,
    tagged_outputs,
)
from controller.rules.model import Action, FlowEntry, FlowKey
from controller.rules.pipeline import OPENFLOW_1_0, OPENFLOW_1_3, SENDER_COOKIE_BIT

_new = tuple.__new__  # what a named tuple's own constructor does, for a third of its time

OUTPUTS_KEPT = 16384
"""Output lists of channels in VLANs that are kept."""


class Needs(NamedTuple):
    """What switches do for a group that is in, by dpid, and the entries that say so."""

    duties: dict[int, GroupDuty]
    rules: dict[int, RuleSet]


class GroupRules:
    """Lowers what a switch does for a group.

    `ofp_versions` are those of the switches, and `masking` has those that match a part of an address; their owner
    keeps both.
    `queue_of_group` returns the queue of a group (its address) to which nobody sends; None where there are no queues.
    """

    def __init__(self, vlan_ports: VlanPorts, ofp_versions: Mapping[int, int], masking: AbstractSet[int]) -> None:
        self._vlan_ports = vlan_ports
        self._oifs_at = vlan_ports.known
        self._ofp_versions = ofp_versions
        self._masking = masking
        self._own_outputs: dict[tuple[ChannelDuty, int], tuple[Action, ...]] = {}
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
        queue_id = None
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
        if isinstance(duty, ApartDuty):
            rules = {} if duty.own is None else dict(self.lower(group, dpid, duty.own))
            for part in duty.apart:
                rules |= self.lower(group, dpid, part)
            return rules
        address = address_of(group.address) if group.vlan_id else group.address
        if isinstance(duty, SharedDuty):
            return shared_rules(address, bool(group.vlan_id), duty)
        if isinstance(duty, CoverDuty):
            rule = cover_rule(duty.tree_version, duty.ports, bool(group.vlan_id))
            return queued({rule.key: rule}, group.queue_id)
        if is_covered(duty.tree_version):
            stand_in = SwitchDuty(STAND_IN_VERSION, duty.channels, duty.senders)
            carried = versioned_mac(address, STAND_IN_VERSION)
            return in_covered_form(duty.tree_version, carried, self._lower(group, dpid, stand_in))
        rules = self._lower(group, dpid, SwitchDuty(*duty[:3]))
        return in_shared_form(address, duty, rules) if dpid in self._masking else rules

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
                    _, untagged, both, _ = by_vlan.get(vlan_id, NO_OIFS)
                    if not both.issuperset(oifs):
                        untagged = self._vlan_ports.untagged_oifs(dpid, vlan_id, oifs)
                    break
            return queued(lower_in_vlan_to_1_3(group.address, untagged, duty, group.cookie), group.queue_id)
        if ofp_version != OPENFLOW_1_0:
            return {}
        ports = (sender[0] for sender in duty.senders)  # parts of flows are none here
        oifs = {*group.interests.get(dpid, ()), *ports}
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
                key = common_key_in_vlan(group.address, vlan_id) if vlan_id else common_key(group.address)
                group.common_key = key
            if vlan_id and channel[2]:
                by_vlan = self._oifs_at.get(dpid) or self._vlan_ports.at(dpid)
                own = by_vlan.get(vlan_id, NO_OIFS)
                actions = self._own_outputs.get((channel, own[3])) or self._outputs_at(group, dpid, channel, own)
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

    def _outputs_at(self, group: Group, dpid: int, channel: ChannelDuty, own: VlanOifs) -> tuple[Action, ...]:
        """Return the output list of a channel, which is kept where its OIFs are among its VLAN's `own` there."""
        if not own.both.issuperset(channel.host_ports):
            return self._outputs_in_vlan(group, dpid, channel)
        if len(self._own_outputs) >= OUTPUTS_KEPT:
            self._own_outputs.clear()
        actions = tagged_outputs(channel.trunk_ports, channel.host_ports, own.untagged)
        self._own_outputs[channel, own.number] = actions
        return actions

    def _outputs_in_vlan(self, group: Group, dpid: int, channel: ChannelDuty) -> tuple[Action, ...]:
        untagged = self._vlan_ports.untagged_oifs(dpid, group.vlan_id, channel.host_ports)
        return outputs_in_vlan(group.address, untagged, channel, group.tree_version)

    def take_flow(self, tree: Group, flow: FlowName) -> set[FlowKey]:
        """Take a sender, or a part of flows, off what its switch does for a tree; return the keys of its entries.

        These are another tree's now. Nothing else of what the switch does changes by it.
        """
        dpid = flow.dpid
        duty = tree.duties.get(dpid)
        if duty is None:
            return set()
        entry: tuple[object, ...] = PartEntry(flow.part) if isinstance(flow, PartKey) else flow[1:]
        duty = duty._replace(senders=tuple([one for one in duty.senders if one[:3] != entry]))  # type: ignore[misc]
        before = {rule.key for rule in tree.rules.get(dpid, ())}
        left = self.lower(tree, dpid, duty)
        tree.set_duty(dpid, duty if duty.channels or duty.senders else None, tuple(left.values()))
        return before - left.keys()

    def entry_keys(self, tree: Group, dpid: int) -> tuple[set[FlowKey], set[FlowKey]]:
        """Return the keys of the entries of senders of a tree at a switch, and those of its parts of flows."""
        senders, parts = set[FlowKey](), set[FlowKey]()
        for rule in tree.rules.get(dpid, ()):
            if rule.cookie & SENDER_COOKIE_BIT:
                (senders if part_of(rule.key.match) is None else parts).add(rule.key)
        return senders, parts

    def may_divide(self, dpid: int) -> bool:
        """Tell whether a switch speaks a version of OpenFlow in which flows can be divided."""
        return self._ofp_versions.get(dpid) == OPENFLOW_1_3

    def ofp_version(self, dpid: int) -> int:
        """Return the version of OpenFlow that a switch speaks, 0 where that is not known."""
        return self._ofp_versions.get(dpid, 0)

    def serves_everywhere(self, address: bytes) -> bool:
        """Tell whether every switch that is known has entries for a group, whatever its tree."""
        return all(supports(version, address) is None for version in set(self._ofp_versions.values()))


def _queue_of(sender: Sender | None) -> int | None:
    return sender.mark.queue_id if sender is not None and sender.admitted else None
