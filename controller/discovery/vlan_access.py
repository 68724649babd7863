"""Keeps the entries by which ports let VLANs in, in step with what ports lead to and with the policy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from controller.config.vlans import Vlans
from controller.discovery.ports import PortState
from controller.discovery.vlan_rules import edge_rules, link_rules, vlan_base_rules
from controller.effects import Edit, Put, Remove
from controller.kernel.ports import End
from controller.rules.model import Rule
from controller.rules.pipeline import OPENFLOW_1_3
from topology.events import PortRole
from topology.graph import Kind


class Switch(Protocol):
    """What is asked of a switch."""

    ofp_version: int


class Owner(Protocol):
    """What installs entries."""

    def install(self, dpid: int, edits: list[Edit], now: float) -> None:
        """Have flow entries put and removed."""


class VlanAccess:
    """What every switch and port has of them; nothing where no port is in a VLAN, and at OpenFlow 1.0.

    `switches` and `ports` are kept by the owner. A port that is held lets no VLAN in.
    """

    def __init__(
        self, vlans: Vlans, switches: Mapping[int, Switch], ports: Mapping[End, PortState], owner: Owner
    ) -> None:
        self._vlans = vlans
        self._switches = switches
        self._ports = ports
        self._owner = owner
        self._based: set[int] = set()
        self._entries: dict[End, list[Rule]] = {}

    @property
    def is_used(self) -> bool:
        """Whether any port is in a VLAN."""
        return self._vlans.is_used

    def switch_connected(self, dpid: int, now: float) -> None:
        """Have a switch know the tables of VLANs, or no longer."""
        is_wanted = self._vlans.is_used and self._switches[dpid].ofp_version == OPENFLOW_1_3
        if is_wanted is (dpid in self._based):
            return
        if is_wanted:
            self._based.add(dpid)
            edits: list[Edit] = [Put(rule) for rule in vlan_base_rules()]
        else:
            self._based.discard(dpid)
            edits = [Remove(rule.key) for rule in vlan_base_rules()]
        self._owner.install(dpid, edits, now)

    def switch_removed(self, dpid: int, now: float) -> None:
        """Forget a switch that is gone for good."""
        removed: list[Edit] = [Remove(rule.key) for rule in vlan_base_rules()] if dpid in self._based else []
        self._based.discard(dpid)
        for end in [end for end in self._entries if end[0] == dpid]:
            removed += [Remove(rule.key) for rule in self._entries.pop(end)]
        if removed:
            self._owner.install(dpid, removed, now)

    def port_changed(self, port: PortState, now: float) -> None:
        """Follow what a port leads to, and whether it is held."""
        wanted, had = self._wanted(port), self._entries.get(port.end, [])
        if wanted == had:
            return
        keys = {rule.key for rule in wanted}
        edits: list[Edit] = [Remove(rule.key) for rule in had if rule.key not in keys]
        edits += [Put(rule) for rule in wanted if rule not in had]
        if wanted:
            self._entries[port.end] = wanted
        else:
            del self._entries[port.end]
        self._owner.install(port.end[0], edits, now)

    def use(self, vlans: Vlans, now: float) -> None:
        """Go by another policy."""
        if vlans == self._vlans:
            return
        self._vlans = vlans
        for dpid in self._switches:
            self.switch_connected(dpid, now)
        for port in self._ports.values():
            self.port_changed(port, now)

    def _wanted(self, port: PortState) -> list[Rule]:
        dpid, port_no = port.end
        if dpid not in self._based or port.held:
            return []
        if port.role is PortRole.TRUNK:
            return link_rules(port_no)
        if port.role is PortRole.EDGE:
            return edge_rules(port_no, self._vlans.of(dpid, port_no, Kind.TOR.value))
        return []
