"""Ports that lead to hosts, in each domain that they are in: what comes and goes with them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Protocol

from controller.datapath.lanes import Urgency
from controller.kernel.aggregations import concerned
from controller.kernel.domains import address_of, domain_of
from controller.kernel.vlan_ports import VlanPorts
from controller.membership.events import RouterPortChanged
from controller.multicast.fabric import FabricFollower
from controller.multicast.flood_guard import FloodGuard
from controller.multicast.frames import MulticastIntake
from controller.multicast.group import Place
from controller.multicast.groups import GroupPlane
from controller.multicast.legs import MemberLegs
from controller.multicast.membership_effects import MembershipEffects
from controller.multicast.memberships import Memberships
from controller.multicast.operator import Operator
from controller.multicast.proxy import MembershipProxy
from controller.multicast.senders import SenderTable
from topology.aggregations import Aggregations
from topology.events import PortRole
from topology.live import LiveFabric

MOVED_REPEAT_S = 2.0
"""After which hosts at a port that is in another VLAN are asked once more: until discovery has told the switch, what
they answer is still of the VLAN before."""


class Owner(Protocol):
    """What the core around has for its ports."""

    frames: MulticastIntake
    fabric: LiveFabric
    flood_guard: FloodGuard
    legs: MemberLegs
    memberships: Memberships
    following_members: MembershipEffects
    operator: Operator
    plane: GroupPlane
    proxy: MembershipProxy
    senders: SenderTable
    topology: FabricFollower
    vlan_ports: VlanPorts

    def perform(self, effects: Iterable[Any]) -> None:
        """Take effects that followed."""


class EdgePorts:
    """Serves ports in the domains that the policy puts them in."""

    def __init__(self, core: Owner) -> None:
        self._core = core

    def added(self, dpid: int, port_no: int, now: float) -> None:
        """Serve a port, or a leg of a link aggregation group."""
        core = self._core
        core.vlan_ports.ports_changed(dpid)
        if (dpid, port_no) in core.fabric.aggregations.homes:
            core.legs.changed((dpid, port_no), now)
            core.perform(core.senders.leg_added((dpid, port_no), now))
            dpid, port_no = core.legs.home((dpid, port_no))
        for vlan_id in self._domains(dpid, port_no):
            effects = core.memberships.of(vlan_id).port_added(dpid, port_no, now)
            core.following_members.apply(effects, now, vlan_id=vlan_id)
            core.proxy.port_ready(dpid, port_no, vlan_id, now)
        core.operator.static.port_added(dpid, port_no, now)

    def removed(self, dpid: int, port_no: int, now: float) -> None:
        """Forget what was at a port that leads to hosts no more."""
        core = self._core
        core.vlan_ports.ports_changed(dpid)
        if (dpid, port_no) in core.fabric.aggregations.homes:
            self._leg_removed((dpid, port_no), now)
        else:
            self._all_left(dpid, port_no, now)
            core.perform(core.senders.port_gone(dpid, port_no, now))
        core.frames.port_removed(dpid, port_no)
        core.flood_guard.port_removed(dpid, port_no)

    def _leg_removed(self, leg: Place, now: float) -> None:
        """Go on by other legs; what hosts send by one that works no more may come by it again at any moment."""
        core = self._core
        core.legs.changed(leg, now)
        if core.fabric.working_legs(leg):
            gone = [leg] if core.fabric.role(*leg) is PortRole.TRUNK else []
        else:
            gone = list(core.fabric.aggregations.legs(leg))
            self._all_left(*core.legs.home(leg), now)
        for place in gone:
            core.perform(core.senders.port_gone(*place, now))

    def aggregate(self, aggregations: Aggregations, now: float) -> None:
        """Go by other link aggregation groups: at ports that are in others than before, all begins anew."""
        core = self._core
        places = list(concerned(core.fabric.aggregations, aggregations))
        for place in places:
            self._all_left(*core.legs.home(place), now)
            core.perform(core.senders.port_gone(*place, now))
        if places:
            core.fabric.aggregate(aggregations)
            core.topology.flood_soon(now, *(dpid for dpid, _ in places))
        for place in places:
            if place in core.topology.edges:
                self.added(*place, now)

    def suspended(self, dpid: int, port_no: int, now: float) -> None:
        """Keep what is at a port whose switch is gone; it ages until the switch is back."""
        core = self._core
        if (dpid, port_no) in core.fabric.aggregations.homes:
            core.legs.changed((dpid, port_no), now)
            if core.fabric.working_legs((dpid, port_no)):
                return
            dpid, port_no = core.legs.home((dpid, port_no))
        for vlan_id in (0, *core.memberships.vlans_at(dpid, port_no)):
            effects = core.memberships.of(vlan_id).port_suspended(dpid, port_no, now)
            core.following_members.apply(effects, now, vlan_id=vlan_id)

    def host_left(self, mac: bytes, dpid: int, port_no: int, now: float) -> None:
        """Forget the memberships and senders of a host, by its name, at a port where it is no more."""
        core, vlan_id = self._core, domain_of(mac)
        home = core.legs.home((dpid, port_no))
        effects = core.memberships.of(vlan_id).host_removed(address_of(mac), *home, now)
        core.following_members.apply(effects, now, vlan_id=vlan_id)
        for leg in core.fabric.aggregations.legs(home):
            core.perform(core.senders.port_gone(*leg, now, mac))

    def moved_to_other_vlans(self, places: Iterable[Place], now: float) -> None:
        """Have ports leave the domains that the policy does not put them in any more, and be served in others."""
        core = self._core
        for dpid, port_no in sorted({core.legs.home(place) for place in places}):
            before = {vlan_id for vlan_id, own in core.memberships.all() if (dpid, port_no) in own.ports}
            wanted = self._domains(dpid, port_no)
            if before == wanted:
                continue
            core.operator.static.port_removed(dpid, port_no, now)
            left = sorted(before - wanted)
            if left:
                self._left(dpid, port_no, left, now)
                for leg in core.fabric.aggregations.legs((dpid, port_no)):
                    core.perform(core.senders.port_gone(*leg, now))
            for vlan_id in sorted(wanted - before):
                effects = core.memberships.of(vlan_id).port_added(dpid, port_no, now, MOVED_REPEAT_S)
                core.following_members.apply(effects, now, vlan_id=vlan_id)
            core.operator.static.port_added(dpid, port_no, now)

    def _domains(self, dpid: int, port_no: int) -> frozenset[int]:
        return self._core.vlan_ports.of(dpid, port_no).vlans()

    def _all_left(self, dpid: int, port_no: int, now: float) -> None:
        """Forget a port's members in all domains, and what it is given."""
        core = self._core
        core.operator.static.port_removed(dpid, port_no, now)
        self._left(dpid, port_no, (0, *core.memberships.vlans_at(dpid, port_no)), now)

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
            if self._core.plane.routers.has(dpid, port_no, family, vlan_id):
                yield family
