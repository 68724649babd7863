"""Which VLANs ports let in, by policy, and the entries for it, in step with what ports lead to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from controller.config.vlans import PortVlans, Vlans
from controller.discovery.native_vlans import (
    NATIVE_VLAN_MISMATCH,
    unlike_cable,
    unlike_neighbour,
    unlike_segment,
)
from controller.discovery.ports import PortState
from controller.discovery.vlan_rules import (
    edge_rules,
    entry_keys,
    link_rules,
    old_base_rules,
    old_edge_rules,
    old_entry_keys,
    old_link_rules,
    vlan_base_rules,
)
from controller.effects import Edit, Put, Remove
from controller.kernel.domains import OWN_DOMAIN, domain_of
from controller.kernel.ports import End
from controller.rules.model import FlowEntry, FlowKey
from controller.rules.pipeline import OPENFLOW_1_3
from controller.wire.ethernet import with_tag, without_tag
from controller.wire.packets import ForeignLldp
from topology.events import PortRole
from topology.graph import NodeKind

VLAN_TAGGED, VLAN_UNTAGGED = "vlan-tagged", "vlan-untagged"
"""The counters of frames with a tag that their port may not have, and without one where it must have one."""


class AccessSwitch(Protocol):
    """What is asked of a switch."""

    ofp_version: int


class AccessOwner(Protocol):
    """What installs entries."""

    def install(self, dpid: int, edits: list[Edit], now: float) -> None:
        """Have flow entries put and removed."""

    def counted(self, kind: str, end: End, does: str, now: float) -> None:
        """Count, and give notice of what a port does, now and then."""


class VlanAccess:
    """What every switch and port has of them; nothing where no port is in a VLAN.

    `switches` and `ports` are kept by the owner. A port that is held lets no VLAN in. One that led to hosts keeps its
    VLANs while it is down, and until it is known to lead to a switch: what comes first is tagged too. `is_used` tells
    whether any port is in a VLAN.
    """

    def __init__(
        self, vlans: Vlans, switches: Mapping[int, AccessSwitch], ports: Mapping[End, PortState], owner: AccessOwner
    ) -> None:
        self.is_used = vlans.is_used
        self._vlans = vlans
        self._switches = switches
        self._ports = ports
        self._owner = owner
        self._based: dict[int, list[FlowEntry]] = {}
        self._entries: dict[End, list[FlowEntry]] = {}
        self._followed: set[End] = set()
        self._edges: set[End] = set()

    @property
    def passes_double_tagged(self) -> bool:
        """Whether frames with a second tag behind that of a VLAN go to others of it."""
        return self._vlans.passes_double_tagged

    def of(self, end: End) -> PortVlans:
        """Return the VLANs of a port, if it leads to hosts."""
        return self._vlans.of(*end, NodeKind.TOR.value)

    def lets_in(self, end: End, name: bytes) -> bool:
        """Tell whether a port may have the domain of an address's name."""
        return domain_of(name) in self.of(end).vlans() if self.is_used else domain_of(name) == OWN_DOMAIN

    def framed(self, end: End, frame: bytes, vlan_id: int) -> bytes:
        """Return a frame as a port has it in a domain: with the tag, or without."""
        return with_tag(frame, vlan_id) if vlan_id and self.of(end).untagged != vlan_id else frame

    def domain_of_frame(self, port: PortState, frame: bytes) -> tuple[int, bytes] | str:
        """Return the domain of a frame and the frame without its tag, or why it does not count.

        What comes before a port is known to lead to hosts has not been given its tag yet. Between switches every
        frame of a VLAN has one.
        """
        tagged = without_tag(frame)
        tag = None if tagged is None else tagged[0]
        if port.role is PortRole.TRUNK:
            return (OWN_DOMAIN, frame) if tagged is None else tagged
        found = self.of(port.end).domain(tag)
        if found is None:
            return VLAN_UNTAGGED if tagged is None else VLAN_TAGGED
        return found, frame if tagged is None else tagged[1]

    def switch_connected(self, dpid: int, now: float) -> None:
        """Have a switch know what is done with frames of VLANs, or no longer."""
        wanted: list[FlowEntry] = []
        if self._vlans.is_used:
            is_new = self._switches[dpid].ofp_version == OPENFLOW_1_3
            passes = self._vlans.passes_double_tagged
            wanted = vlan_base_rules(passes) if is_new else old_base_rules(self._vlans.all_vlans())
        had = self._based.get(dpid, [])
        if wanted == had:
            return
        keys = {rule.key for rule in wanted}
        edits: list[Edit] = [Remove(rule.key) for rule in had if rule.key not in keys]
        edits += [Put(rule) for rule in wanted if rule not in had]
        if wanted:
            self._based[dpid] = wanted
        else:
            del self._based[dpid]
        self._owner.install(dpid, edits, now)

    def switch_removed(self, dpid: int, now: float) -> None:
        """Forget a switch that is gone for good."""
        removed: list[Edit] = [Remove(rule.key) for rule in self._based.pop(dpid, ())]
        self._followed = {end for end in self._followed if end[0] != dpid}
        self._edges = {end for end in self._edges if end[0] != dpid}
        for end in [end for end in self._entries if end[0] == dpid]:
            removed += [Remove(rule.key) for rule in self._entries.pop(end)]
        if removed:
            self._owner.install(dpid, removed, now)

    def port_changed(self, port: PortState, now: float) -> None:
        """Follow what a port leads to, and whether it is held."""
        if port.role is PortRole.EDGE:
            self._edges.add(port.end)
        elif port.role is PortRole.TRUNK:
            self._edges.discard(port.end)
        if self.is_used:
            self._look_at_other_end(port, now)
        wanted, had = self._wanted(port), self._entries.get(port.end, [])
        left = self._left_by_an_earlier_run(port)
        if wanted == had and not left:
            return
        keys = {rule.key for rule in wanted}
        edits: list[Edit] = [Remove(key) for key in (*left, *(rule.key for rule in had)) if key not in keys]
        edits += [Put(rule) for rule in wanted if rule not in had]
        if wanted:
            self._entries[port.end] = wanted
        else:
            self._entries.pop(port.end, None)
        self._owner.install(port.end[0], edits, now)

    def neighbour_heard(self, port: PortState, home: End, heard: ForeignLldp, now: float) -> None:
        """Compare the VLAN that a neighbour has without a tag with that of the port, which `home` stands for."""
        if self.is_used and port.role is PortRole.EDGE:
            does = unlike_neighbour(self._vlans, self.of(home), heard)
            if does is not None:
                self._owner.counted(NATIVE_VLAN_MISMATCH, port.end, does, now)

    def _look_at_other_end(self, port: PortState, now: float) -> None:
        """Compare the VLANs that two ports of the fabric have without a tag which lead to each other."""
        does = None
        if port.held:
            low = min(port.lower)
            does = unlike_segment(self._vlans, self.of(port.end), low, self.of(low))
        elif port.role is PortRole.TRUNK:
            does = unlike_cable(self._vlans, port.end, port.peers())
        if does is not None:
            self._owner.counted(NATIVE_VLAN_MISMATCH, port.end, does, now)

    def use(self, vlans: Vlans, now: float) -> bool:
        """Go by another policy; False where that says the same."""
        if vlans == self._vlans:
            return False
        self._vlans, self.is_used = vlans, vlans.is_used
        for dpid in self._switches:
            self.switch_connected(dpid, now)
        for port in self._ports.values():
            self.port_changed(port, now)
        return True

    def _left_by_an_earlier_run(self, port: PortState) -> list[FlowKey]:
        """Return, once it is known what a port leads to, the entries that it may have had as something else."""
        if port.end in self._followed or port.role not in (PortRole.EDGE, PortRole.TRUNK):
            return []
        dpid, port_no = port.end
        if dpid not in self._based:
            return []
        self._followed.add(port.end)
        is_old = self._switches[dpid].ofp_version != OPENFLOW_1_3
        return old_entry_keys(port_no, self._vlans.all_vlans()) if is_old else entry_keys(port_no)

    def _wanted(self, port: PortState) -> list[FlowEntry]:
        dpid, port_no = port.end
        if port.held or dpid not in self._based:
            return []
        is_old = self._switches[dpid].ofp_version != OPENFLOW_1_3
        if port.role is PortRole.TRUNK:
            return old_link_rules(port_no) if is_old else link_rules(port_no)
        if port.end not in self._edges:
            return []
        own = self.of(port.end)
        return old_edge_rules(port_no, own, self._vlans.all_vlans()) if is_old else edge_rules(port_no, own)
