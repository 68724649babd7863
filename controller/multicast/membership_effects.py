"""What follows from membership, domain by domain: trees, flooding, queries, router ports and decisions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from controller.admission.host import Decision
from controller.config.policy import Role
from controller.datapath.lanes import Urgency
from controller.kernel.domains import SUFFIXES, family_of, in_domain
from controller.kernel.vlan_ports import VlanPorts
from controller.membership.events import (
    ANY_SOURCE,
    InterestChanged,
    MembershipRefused,
    RouterAsked,
    RouterJoined,
    RouterJudged,
    RouterPortChanged,
    SendQuery,
)
from controller.multicast.callbacks import GroupChanged, Perform, PolicyInForce
from controller.multicast.change_feed import ChangeFeed
from controller.multicast.effects import Audit
from controller.multicast.flood_schedule import FloodSchedule
from controller.multicast.groups import GroupPlane
from controller.multicast.legs import MemberLegs
from controller.multicast.memberships import Memberships
from controller.multicast.pending_writes import PendingWrites
from controller.multicast.preemption import Preemption
from controller.multicast.proxy import MembershipProxy
from controller.multicast.queries import sent
from controller.multicast.senders import SenderTable
from controller.multicast.static_members import StaticMembers
from topology.live import LiveFabric


class MembershipEffects:
    """Has done what a membership core answers."""

    def __init__(
        self,
        counters: Counter[str],
        policy: PolicyInForce,
        fabric: LiveFabric,
        flooding: FloodSchedule,
        vlan_ports: VlanPorts,
        plane: GroupPlane,
        memberships: Memberships,
        static: StaticMembers,
        legs: MemberLegs,
        senders: SenderTable,
        proxy: MembershipProxy,
        preemption: Preemption,
        pending_writes: PendingWrites,
        feed: ChangeFeed,
        group_changed: GroupChanged,
        perform: Perform,
    ) -> None:
        self._counters = counters
        self._policy = policy
        self._fabric = fabric
        self._flooding = flooding
        self._vlan_ports = vlan_ports
        self._plane = plane
        self._memberships = memberships
        self._static = static
        self._legs = legs
        self._senders = senders
        self._proxy = proxy
        self._preemption = preemption
        self._pending_writes = pending_writes
        self._feed = feed
        self._group_changed = group_changed
        self._perform = perform

    def apply(self, effects: Iterable[Any], now: float, urgency: Urgency = Urgency.PROMPT, vlan_id: int = 0) -> None:
        """Take what followed in the membership of a domain, and have it done."""
        for effect in effects:
            kind = type(effect)
            if kind is InterestChanged:
                dpid, port_no, address, interest = effect
                group = address + SUFFIXES[vlan_id] if vlan_id else address
                served = self._static.served
                if served and (dpid, port_no, group) in served:
                    interest = ANY_SOURCE
                self._legs.interest_changed((dpid, port_no), group, interest, now, urgency)
                self._group_changed(group, now, dpid)
            elif kind is SendQuery:
                self._send_query(effect, now, vlan_id)
            elif kind is RouterPortChanged:
                self.router_port_changed(effect, now, vlan_id)
            elif kind is RouterJoined:
                self._router_joined(effect, now, vlan_id)
            elif kind is RouterAsked:
                self._proxy.router_asked(effect, vlan_id, now)
            elif kind is RouterJudged:
                self._router_judged(effect, now, vlan_id)
            elif kind is MembershipRefused:
                self._counters["membership-refused"] += 1
            else:
                self._perform((effect,))
        if vlan_id:
            self._memberships.touched[vlan_id] = None
        self._preemption.settle(now)

    def _send_query(self, effect: SendQuery, now: float, vlan_id: int) -> None:
        """Ask the hosts at a port: those behind a link aggregation group by the leg that gets what all get."""
        place = (effect.dpid, effect.port_no)
        self._proxy.own_query_sent(effect, vlan_id, now)
        leg = self._fabric.flooded_leg(place)
        if leg is None:
            return
        if leg != place:
            effect = effect._replace(dpid=leg[0], port_no=leg[1])
        is_tagged = self._vlan_ports.is_tagged(*leg, vlan_id)
        self._perform((sent(effect, self._policy().multicast.querier, vlan_id if is_tagged else 0),))

    def _router_joined(self, effect: RouterJoined, now: float, vlan_id: int) -> None:
        """Follow what routers join of each other, and what they take back."""
        dpid, port_no, address, interest = effect
        name = in_domain(address, vlan_id)
        self._perform(self._plane.routed.joined((dpid, port_no), name, interest, now))
        self._pending_writes.routers_changed(now, vlan_id)
        self._feed.router_port_changed(dpid, port_no, family_of(address), vlan_id)
        if name in self._plane.groups:
            self._group_changed(name, now)

    def _router_judged(self, effect: RouterJudged, now: float, vlan_id: int) -> None:
        host, verdict = effect
        self._perform((Audit(Decision(*verdict[:3]), host, None, Role.ROUTER, None),))
        if verdict.admit:
            self._pending_writes.routers_changed(now, vlan_id)
            self._feed.router_port_changed(host.dpid, host.port_no, family_of(host.ip), vlan_id)

    def router_port_changed(self, effect: RouterPortChanged, now: float, vlan_id: int = 0) -> None:
        """Follow a router port that came or went."""
        dpid, port_no, family, *_ = effect
        self._perform(self._plane.routed.port_changed(effect, now, vlan_id))
        self._proxy.router_port_changed(effect, vlan_id, now)
        for leg in self._fabric.aggregations.legs((dpid, port_no)):
            self._perform(self._senders.port_reconsidered(*leg, now))
        self._flooding.soon(now, dpid)
        self._pending_writes.routers_changed(now, vlan_id)
        self._feed.router_port_changed(dpid, port_no, family, vlan_id)
        for name, group in self._plane.groups.items():
            if group.family == family and group.vlan_id == vlan_id:
                self._group_changed(name, now)
