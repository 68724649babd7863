"""Ports that lead to hosts, in each domain that they are in: what comes and goes with them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from controller.datapath.lanes import Urgency
from controller.events import PacketReceived
from controller.kernel.aggregations import concerned
from controller.kernel.domains import address_of, domain_of
from controller.kernel.vlan_ports import VlanPorts
from controller.membership.events import RouterPortChanged
from controller.multicast.callbacks import Perform
from controller.multicast.due import Grace
from controller.multicast.flood_schedule import FloodSchedule
from controller.multicast.frames import MulticastIntake
from controller.multicast.groups import GroupPlane
from controller.multicast.legs import MemberLegs
from controller.multicast.membership_effects import MembershipEffects
from controller.multicast.membership_policer import MembershipPolicer
from controller.multicast.memberships import Memberships
from controller.multicast.places import HostPlaces
from controller.multicast.proxy import MembershipProxy
from controller.multicast.senders import SenderTable
from controller.multicast.static_members import StaticMembers
from controller.multicast.switches import Switches
from topology.aggregations import Aggregations, Place
from topology.events import PortRole
from topology.live import LiveFabric

MOVED_REPEAT_S = 2.0
"""After which hosts at a port that is in another VLAN are asked once more: until discovery has told the switch, what
they answer is still of the VLAN before."""


class EdgePorts:
    """Serves ports in the domains that the policy puts them in."""

    def __init__(
        self,
        frames: MulticastIntake,
        places: HostPlaces,
        fabric: LiveFabric,
        membership_policer: MembershipPolicer,
        legs: MemberLegs,
        memberships: Memberships,
        static: StaticMembers,
        plane: GroupPlane,
        proxy: MembershipProxy,
        senders: SenderTable,
        switches: Switches,
        flooding: FloodSchedule,
        vlan_ports: VlanPorts,
        following_members: MembershipEffects,
        grace: Grace,
        perform: Perform,
    ) -> None:
        self._frames = frames
        self._places = places
        self._fabric = fabric
        self._membership_policer = membership_policer
        self._legs = legs
        self._memberships = memberships
        self._static = static
        self._plane = plane
        self._proxy = proxy
        self._senders = senders
        self._switches = switches
        self._flooding = flooding
        self._vlan_ports = vlan_ports
        self._following_members = following_members
        self._grace = grace
        self._perform = perform

    def added(self, dpid: int, port_no: int, now: float) -> None:
        """Serve a port, or a leg of a link aggregation group; what is unknown on switches waits for its hosts."""
        self._vlan_ports.ports_changed(dpid)
        if (dpid, port_no) in self._fabric.aggregations.homes:
            self._legs.changed((dpid, port_no), now)
            self._perform(self._senders.leg_added((dpid, port_no), now))
            dpid, port_no = self._legs.home((dpid, port_no))
        for vlan_id in self._domains(dpid, port_no):
            effects = self._memberships.of(vlan_id).port_added(dpid, port_no, now)
            self._following_members.apply(effects, now, vlan_id=vlan_id)
            self._proxy.port_ready(dpid, port_no, vlan_id, now)
        self._static.port_added(dpid, port_no, now)
        self._grace.port_served(now)

    def removed(self, dpid: int, port_no: int, now: float) -> None:
        """Forget what was at a port that leads to hosts no more."""
        self._vlan_ports.ports_changed(dpid)
        if (dpid, port_no) in self._fabric.aggregations.homes:
            self._leg_removed((dpid, port_no), now)
        else:
            self._all_left(dpid, port_no, now)
            self._perform(self._senders.port_gone(dpid, port_no, now))
        self._frames.port_removed(dpid, port_no)
        self._membership_policer.port_removed(dpid, port_no)

    def _leg_removed(self, leg: Place, now: float) -> None:
        """Go on by other legs; what hosts send by one that works no more may come by it again at any moment."""
        self._legs.changed(leg, now)
        if self._fabric.working_legs(leg):
            gone = [leg] if self._fabric.role(*leg) is PortRole.TRUNK else []
        else:
            gone = list(self._fabric.aggregations.legs(leg))
            self._all_left(*self._legs.home(leg), now)
        for place in gone:
            self._perform(self._senders.port_gone(*place, now))

    def aggregate(self, aggregations: Aggregations, now: float) -> None:
        """Go by other link aggregation groups: at ports that are in others than before, all begins anew."""
        places = list(concerned(self._fabric.aggregations, aggregations))
        for place in places:
            self._all_left(*self._legs.home(place), now)
            self._perform(self._senders.port_gone(*place, now))
        if places:
            self._fabric.aggregate(aggregations)
            self._flooding.soon(now, *(dpid for dpid, _ in places))
        for place in places:
            if place in self._switches.edges:
                self.added(*place, now)

    def suspended(self, dpid: int, port_no: int, now: float) -> None:
        """Keep what is at a port whose switch is gone; it ages until the switch is back."""
        self._vlan_ports.switch_gone(dpid)
        if (dpid, port_no) in self._fabric.aggregations.homes:
            self._legs.changed((dpid, port_no), now)
            if self._fabric.working_legs((dpid, port_no)):
                return
            dpid, port_no = self._legs.home((dpid, port_no))
        for vlan_id in (0, *self._memberships.vlans_at(dpid, port_no)):
            effects = self._memberships.of(vlan_id).port_suspended(dpid, port_no, now)
            self._following_members.apply(effects, now, vlan_id=vlan_id)

    def host_left(self, mac: bytes, dpid: int, port_no: int, now: float) -> None:
        """Forget the memberships and senders of a host, by its name, at a port where it is no more."""
        vlan_id = domain_of(mac)
        home = self._legs.home((dpid, port_no))
        effects = self._memberships.of(vlan_id).host_removed(address_of(mac), *home, now)
        self._following_members.apply(effects, now, vlan_id=vlan_id)
        for leg in self._fabric.aggregations.legs(home):
            self._perform(self._senders.port_gone(*leg, now, mac))

    def moved_to_other_vlans(self, places: Iterable[Place], now: float) -> None:
        """Have ports leave the domains that the policy does not put them in any more, and be served in others."""
        for dpid, port_no in sorted({self._legs.home(place) for place in places}):
            before = {vlan_id for vlan_id, own in self._memberships.all() if (dpid, port_no) in own.ports}
            wanted = self._domains(dpid, port_no)
            if before == wanted:
                continue
            self._static.port_removed(dpid, port_no, now)
            left = sorted(before - wanted)
            if left:
                self._left(dpid, port_no, left, now)
                for leg in self._fabric.aggregations.legs((dpid, port_no)):
                    self._perform(self._senders.port_gone(*leg, now))
            for vlan_id in sorted(wanted - before):
                effects = self._memberships.of(vlan_id).port_added(dpid, port_no, now, MOVED_REPEAT_S)
                self._following_members.apply(effects, now, vlan_id=vlan_id)
            self._static.port_added(dpid, port_no, now)

    def _domains(self, dpid: int, port_no: int) -> frozenset[int]:
        return self._vlan_ports.of(dpid, port_no).vlans()

    def _all_left(self, dpid: int, port_no: int, now: float) -> None:
        """Forget a port's members in all domains, and what it is given."""
        self._static.port_removed(dpid, port_no, now)
        self._left(dpid, port_no, (0, *self._memberships.vlans_at(dpid, port_no)), now)

    def _left(self, dpid: int, port_no: int, vlans: Iterable[int], now: float) -> None:
        """Forget a port's members, and that a router is there, in some domains."""
        for vlan_id in vlans:
            effects = self._memberships.of(vlan_id).port_removed(dpid, port_no, now)
            self._following_members.apply(effects, now, Urgency.BULK, vlan_id)
            for family in self._router_families(dpid, port_no, vlan_id):
                gone = RouterPortChanged(dpid, port_no, family, False)
                self._following_members.router_port_changed(gone, now, vlan_id)

    def _router_families(self, dpid: int, port_no: int, vlan_id: int) -> Iterator[int]:
        for family in (4, 6):
            if self._plane.routers.has(dpid, port_no, family, vlan_id):
                yield family

    def host_placed(self, mac: bytes, dpid: int, port_no: int, addresses: Iterable[bytes], now: float) -> None:
        """Look again at what a host said before it was known to be at a port, and at who uses its addresses."""
        for frame in self._places.early_reports(mac, *self._legs.home((dpid, port_no)), now):
            self._frames.packet_received(PacketReceived(dpid, port_no, frame), now)
        names, vlan_id = tuple(addresses), domain_of(mac)
        membership, moved = self._memberships.of(vlan_id), tuple(address_of(name) for name in names)
        self._following_members.apply(membership.addresses_moved(moved, now), now, vlan_id=vlan_id)
        if membership.router_ports.speak_for((address_of(mac), *moved)):
            self._following_members.apply(membership.reconsider_routers(now), now, vlan_id=vlan_id)
        self._perform(self._senders.addresses_moved(names, now))
