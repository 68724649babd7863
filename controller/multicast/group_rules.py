"""The flow entries of what switches do for a group, by the OpenFlow version and the VLANs of the ports of each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from controller.kernel.vlan_ports import VlanPorts
from controller.multicast.group import Group
from controller.rules.compile import LOWER, ChannelDuty, RuleSet, SwitchDuty
from controller.rules.compile_vlan import default_rule_in_vlan, lower_in_vlan
from controller.rules.model import FlowEntry
from controller.rules.pipeline import OPENFLOW_1_3


class GroupRules:
    """Lowers what a switch does for a group; `ofp_versions` are those of the switches, which their owner keeps."""

    def __init__(self, vlan_ports: VlanPorts, ofp_versions: Mapping[int, int]) -> None:
        self._vlan_ports = vlan_ports
        self._ofp_versions = ofp_versions

    def lower(self, group: Group, dpid: int, duty: SwitchDuty) -> RuleSet:
        """Return the entries of a switch; none where its version is not known."""
        ofp_version = self._ofp_versions.get(dpid, 0)
        lower = LOWER.get(ofp_version)
        if lower is None:
            return {}
        if not group.vlan_id:
            return lower(group.address, duty, group.cookie)
        oifs: Iterable[int] = group.interests.get(dpid, ())
        if ofp_version != OPENFLOW_1_3:
            oifs = {*oifs, *(sender.port_no for sender in duty.senders)}
        untagged = self._vlan_ports.untagged_oifs(dpid, group.vlan_id, oifs)
        return lower_in_vlan(ofp_version, group.address, untagged, duty, group.cookie)

    def default_in_vlan(self, group: Group, dpid: int, channel: ChannelDuty) -> FlowEntry:
        """Return the only entry of a switch without senders for a group of a VLAN of which all want every source."""
        oifs = channel.host_ports
        untagged = self._vlan_ports.untagged_oifs(dpid, group.vlan_id, oifs) if oifs else ()
        version = self._ofp_versions[dpid]
        return default_rule_in_vlan(version, group.address, untagged, group.tree_version, channel, group.cookie)
