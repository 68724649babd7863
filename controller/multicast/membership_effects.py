"""What follows from membership, domain by domain: trees, flooding, queries, router ports and decisions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, Protocol

from controller.admission.host import Decision
from controller.config.policy import Policy, Role
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
from controller.multicast.effects import Audit
from controller.multicast.fabric import FabricFollower
from controller.multicast.groups import GroupPlane
from controller.multicast.journal import MulticastJournal
from controller.multicast.legs import MemberLegs
from controller.multicast.memberships import Memberships
from controller.multicast.operator import Operator
from controller.multicast.proxy import MembershipProxy
from controller.multicast.queries import sent
from controller.multicast.sections import MulticastSections
from controller.multicast.senders import SenderTable
from controller.multicast.waiting import WaitingGroups
from topology.live import LiveFabric


class EffectsOwner(Protocol):
    """What the core around has for what follows."""

    counters: Counter[str]
    policy: Policy
    fabric: LiveFabric
    legs: MemberLegs
    plane: GroupPlane
    topology: FabricFollower
    operator: Operator
    proxy: MembershipProxy
    journal: MulticastJournal
    sections: MulticastSections
    senders: SenderTable
    memberships: Memberships
    vlan_ports: VlanPorts
    waiting: WaitingGroups

    def perform(self, effects: Iterable[Any]) -> None:
        """Take effects that followed."""

    def group_changed(self, group: bytes, now: float, dpid: int | None = None) -> None:
        """Take note that a group changed."""


class MembershipEffects:
    """Has done what a membership core answers."""

    def __init__(self, core: EffectsOwner) -> None:
        self._core = core

    def apply(self, effects: Iterable[Any], now: float, urgency: Urgency = Urgency.PROMPT, vlan_id: int = 0) -> None:
        """Take what followed in the membership of a domain, and have it done."""
        core = self._core
        for effect in effects:
            kind = type(effect)
            if kind is InterestChanged:
                dpid, port_no, address, interest = effect
                group = address + SUFFIXES[vlan_id] if vlan_id else address
                served = core.operator.static.served
                if served and (dpid, port_no, group) in served:
                    interest = ANY_SOURCE
                core.legs.interest_changed((dpid, port_no), group, interest, now, urgency)
                core.group_changed(group, now, dpid)
            elif kind is SendQuery:
                self._send_query(effect, now, vlan_id)
            elif kind is RouterPortChanged:
                self.router_port_changed(effect, now, vlan_id)
            elif kind is RouterJoined:
                self._router_joined(effect, now, vlan_id)
            elif kind is RouterAsked:
                core.proxy.router_asked(effect, vlan_id, now)
            elif kind is RouterJudged:
                self._router_judged(effect, now, vlan_id)
            elif kind is MembershipRefused:
                core.counters["membership-refused"] += 1
            else:
                core.perform((effect,))
        if vlan_id:
            core.memberships.touched[vlan_id] = None
        core.waiting.settle(now)

    def _send_query(self, effect: SendQuery, now: float, vlan_id: int) -> None:
        """Ask the hosts at a port: those behind a link aggregation group by the leg that gets what all get."""
        core, place = self._core, (effect.dpid, effect.port_no)
        core.proxy.own_query_sent(effect, vlan_id, now)
        leg = core.fabric.flooded_leg(place)
        if leg is None:
            return
        if leg != place:
            effect = effect._replace(dpid=leg[0], port_no=leg[1])
        is_tagged = core.vlan_ports.is_tagged(*leg, vlan_id)
        core.perform((sent(effect, core.policy.multicast.querier, vlan_id if is_tagged else 0),))

    def _router_joined(self, effect: RouterJoined, now: float, vlan_id: int) -> None:
        """Follow what routers join of each other, and what they take back."""
        core, (dpid, port_no, address, interest) = self._core, effect
        name = in_domain(address, vlan_id)
        core.perform(core.plane.routed.joined((dpid, port_no), name, interest, now))
        core.journal.routers_touched(now, vlan_id)
        core.sections.router_port_changed(dpid, port_no, family_of(address), vlan_id)
        if name in core.plane.groups:
            core.group_changed(name, now)

    def _router_judged(self, effect: RouterJudged, now: float, vlan_id: int) -> None:
        host, verdict = effect
        core = self._core
        core.perform((Audit(Decision(*verdict[:3]), host, None, Role.ROUTER, None),))
        if verdict.admit:
            core.journal.routers_touched(now, vlan_id)
            core.sections.router_port_changed(host.dpid, host.port_no, family_of(host.ip), vlan_id)

    def router_port_changed(self, effect: RouterPortChanged, now: float, vlan_id: int = 0) -> None:
        """Follow a router port that came or went."""
        core = self._core
        dpid, port_no, family, *_ = effect
        core.perform(core.plane.routed.port_changed(effect, now, vlan_id))
        core.proxy.router_port_changed(effect, vlan_id, now)
        for leg in core.fabric.aggregations.legs((dpid, port_no)):
            core.perform(core.senders.port_reconsidered(*leg, now))
        core.topology.flood_soon(now, dpid)
        core.journal.routers_touched(now, vlan_id)
        core.sections.router_port_changed(dpid, port_no, family, vlan_id)
        for name, group in core.plane.groups.items():
            if group.family == family and group.vlan_id == vlan_id:
                core.group_changed(name, now)
