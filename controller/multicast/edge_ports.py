"""Ports that lead to hosts, in each domain that they are in: what comes and goes with them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Protocol

from controller.datapath.lanes import Urgency
from controller.kernel.domains import address_of, domain_of
from controller.kernel.vlan_ports import VlanPorts
from controller.membership.events import RouterPortChanged
from controller.multicast.flood_guard import FloodGuard
from controller.multicast.frames import FrameIntake
from controller.multicast.group import Place
from controller.multicast.groups import GroupPlane
from controller.multicast.membership_effects import MembershipEffects
from controller.multicast.memberships import Memberships
from controller.multicast.operator import Operator
from controller.multicast.senders import SenderTable


class Owner(Protocol):
    """What the core around has for its ports."""

    frames: FrameIntake
    flood_guard: FloodGuard
    memberships: Memberships
    following_members: MembershipEffects
    operator: Operator
    plane: GroupPlane
    senders: SenderTable
    vlan_ports: VlanPorts

    def perform(self, effects: Iterable[Any]) -> None:
        """Take effects that followed."""


class EdgePorts:
    """Serves ports in the domains that the policy puts them in."""

    def __init__(self, core: Owner) -> None:
        self._core = core

    def added(self, dpid: int, port_no: int, now: float) -> None:
        """Serve a port."""
        core = self._core
        core.vlan_ports.ports_changed(dpid)
        for vlan_id in self._domains(dpid, port_no):
            effects = core.memberships.of(vlan_id).port_added(dpid, port_no, now)
            core.following_members.apply(effects, now, vlan_id=vlan_id)
        core.operator.static.port_added(dpid, port_no, now)

    def removed(self, dpid: int, port_no: int, now: float) -> None:
        """Forget what was at a port that leads to hosts no more."""
        core = self._core
        core.vlan_ports.ports_changed(dpid)
        core.operator.static.port_removed(dpid, port_no, now)
        self._left(dpid, port_no, (0, *core.memberships.vlans_at(dpid, port_no)), now)
        core.perform(core.senders.port_gone(dpid, port_no, now))
        core.frames.port_removed(dpid, port_no)
        core.flood_guard.port_removed(dpid, port_no)

    def suspended(self, dpid: int, port_no: int, now: float) -> None:
        """Keep what is at a port whose switch is gone; it ages until the switch is back."""
        core = self._core
        for vlan_id in (0, *core.memberships.vlans_at(dpid, port_no)):
            effects = core.memberships.of(vlan_id).port_suspended(dpid, port_no, now)
            core.following_members.apply(effects, now, vlan_id=vlan_id)

    def host_left(self, mac: bytes, dpid: int, port_no: int, now: float) -> None:
        """Forget the memberships and senders of a host, by its name, at a port where it is no more."""
        core, vlan_id = self._core, domain_of(mac)
        effects = core.memberships.of(vlan_id).host_removed(address_of(mac), dpid, port_no, now)
        core.following_members.apply(effects, now, vlan_id=vlan_id)
        core.perform(core.senders.port_gone(dpid, port_no, now, mac))

    def moved_to_other_vlans(self, places: Iterable[Place], now: float) -> None:
        """Have ports leave the domains that the policy does not put them in any more, and be served in others."""
        core = self._core
        for dpid, port_no in places:
            before = {vlan_id for vlan_id, own in core.memberships.all() if (dpid, port_no) in own.ports}
            wanted = self._domains(dpid, port_no)
            if before == wanted:
                continue
            core.operator.static.port_removed(dpid, port_no, now)
            left = sorted(before - wanted)
            if left:
                self._left(dpid, port_no, left, now)
                core.perform(core.senders.port_gone(dpid, port_no, now))
            for vlan_id in sorted(wanted - before):
                effects = core.memberships.of(vlan_id).port_added(dpid, port_no, now)
                core.following_members.apply(effects, now, vlan_id=vlan_id)
            core.operator.static.port_added(dpid, port_no, now)

    def _domains(self, dpid: int, port_no: int) -> frozenset[int]:
        return self._core.vlan_ports.of(dpid, port_no).vlans()

    def _left(self, dpid: int, port_no: int, vlans: Iterable[int], now: float) -> None:
        """Forget a port's members, and that a router is there, in some domains."""
        core = self._core
        for vlan_id in vlans:
            effects = core.memberships.of(vlan_id).port_removed(dpid, port_no, now)
            core.following_members.apply(effects, now, Urgency.BULK, vlan_id)
            for family in self._router_families(dpid, port_no, vlan_id):
                gone = RouterPortChanged(dpid, port_no, family, False)
                core.following_members.router_port_changed(gone, now, vlan_id)

    def _router_families(self, dpid: int, port_no: int, vlan_id: int) -> Iterator[int]:
        for family in (4, 6):
            if self._core.plane.is_router_port(dpid, port_no, family, vlan_id):
                yield family
