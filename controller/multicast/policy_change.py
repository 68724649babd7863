"""What another policy changes in a running core: settings at once, members and senders in slices.

Whoever comes meanwhile is judged by the new policy. Members and senders that wait for their slice keep what they
have, so that nobody whom both policies admit is ever cut off.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, Protocol

from controller.admission.concern import Concern
from controller.config.marking import marking_of
from controller.config.policy import Policy, Role
from controller.datapath.lanes import Urgency
from controller.kernel.aggregations import aggregations_of
from controller.kernel.domains import address_of
from controller.kernel.vlan_ports import VlanPorts
from controller.multicast.alias_control import AliasControl
from controller.multicast.edge_ports import EdgePorts
from controller.multicast.events import PolicyLoaded
from controller.multicast.fabric import FabricFollower
from controller.multicast.fabric_names import FabricNames
from controller.multicast.flood_guard import FloodGuard
from controller.multicast.gate import Gate
from controller.multicast.groups import GroupPlane
from controller.multicast.legs import MemberLegs
from controller.multicast.memberships import InDomain, Memberships
from controller.multicast.operator import Operator
from controller.multicast.registered import RegisteredGroups
from controller.multicast.sections import MulticastSections
from controller.multicast.senders import SenderTable
from controller.multicast.settings import membership_limits, membership_settings
from controller.multicast.tagged import TaggedFrames
from controller.multicast.vlan_gate import VlanGate
from controller.rules.installer import Installer

SLICE_STEPS = 256
"""Members, senders and hosts that are looked at in one go, with nothing to change; some 3 ms."""

CHANGE_STEPS = 32
"""What one that changes counts for."""

BUILT_BY = ("tree", "seed", "default_rate_bps")
"""Settings that all trees are built anew for."""


class ReloadOwner(Protocol):
    """What has another policy, as the core around the follower has it."""

    policy: Policy
    sections: MulticastSections
    gate: Gate
    installer: Installer
    flood_guard: FloodGuard
    tagged: TaggedFrames
    senders: SenderTable
    memberships: Memberships
    operator: Operator
    topology: FabricFollower
    plane: GroupPlane
    registered: RegisteredGroups
    legs: MemberLegs
    edge_ports: EdgePorts
    vlan_ports: VlanPorts
    fabric_names: FabricNames
    aliases: AliasControl

    def look_at_fabrics(self, now: float) -> None:
        """Have fabrics looked at soon, which are called otherwise."""

    def perform(self, effects: Iterable[Any]) -> None:
        """Take effects that followed."""

    def apply(self, effects: Iterable[Any], now: float, urgency: Urgency = Urgency.PROMPT, vlan_id: int = 0) -> None:
        """Take what followed in the membership of a domain, and have it done."""

    def group_changed(self, group: bytes, now: float, dpid: int | None = None) -> None:
        """Take note that a group changed, and who is known of it at a switch."""

    def settle_room(self, now: float) -> None:
        """Count what has a tree from now on."""

    def trees_wanted(self, now: float) -> None:
        """Build all trees anew as the policy wants them now."""

    def judge_on(self, now: float) -> None:
        """Go on with the next slice of members and senders when what else waits has had its turn."""


class PolicyFollower:
    """Has a core go by another policy.

    A policy that comes in the midst of another begins anew: what either of them concerns is looked at.
    """

    def __init__(self, core: ReloadOwner) -> None:
        self._core = core
        self._concern = Concern()
        self._steps: Iterator[InDomain] | None = None
        self._now = 0.0

    @property
    def is_under_way(self) -> bool:
        """Tell whether members or senders wait to be judged by the policy in force."""
        return self._steps is not None

    def policy_loaded(self, event: PolicyLoaded, now: float) -> None:
        """Take another policy."""
        core, policy = self._core, event.policy
        core.sections.policy_loaded(policy)
        before, core.policy = core.policy, policy
        limits, multicast = policy.limits, policy.multicast
        reworded = core.gate.replace(policy, self._concern.add(before, policy))
        marks_otherwise = core.gate.marks.replace(marking_of(policy))
        if marks_otherwise:
            self._concern.add_role(Role.SENDER)
        core.installer.use_policy(policy.check.interval_s, policy.edits)
        core.tagged.use_check_interval(policy.check.interval_s, now)
        core.flood_guard.set_limits(limits)
        core.aliases.use(policy, now)
        self._set_membership(before, reworded, now)
        core.senders.set_limits(
            limits.senders_per_port, limits.unknown_packets_per_second_per_port, multicast.sender_timeout_s
        )
        if any(getattr(multicast, name) != getattr(before.multicast, name) for name in BUILT_BY):
            core.trees_wanted(now)
        if policy.fabrics != before.fabrics:
            core.fabric_names.use(policy.fabrics)
            core.look_at_fabrics(now)
        core.edge_ports.aggregate(aggregations_of(policy.link_aggregations), now)
        if policy.registrations != before.registrations:
            self._follow_registrations(now)
        if core.vlan_ports.policy_loaded(policy.vlans):
            self._follow_vlans(now)
        core.operator.static.policy_loaded(policy.static_members, now)
        if reworded or marks_otherwise or policy.registrations != before.registrations:
            self._begin(now)

    def judge_all(self, now: float) -> None:
        """Ask admission anew about everybody."""
        self._concern.add_all()
        self._begin(now)

    def advance(self, now: float) -> None:
        """Do the next slice, and have the one after it done where there is one."""
        core, spent = self._core, 0
        followed: dict[int, list[Any]] = {}
        self._now = now
        while self._steps is not None and spent < SLICE_STEPS:
            step = next(self._steps, None)
            if step is None:
                self._steps, self._concern = None, Concern()
            elif step.effects:
                spent += CHANGE_STEPS
                followed.setdefault(step.vlan_id, []).extend(step.effects)
            spent += 1
        for vlan_id, effects in followed.items():
            core.apply(effects, now, Urgency.BULK, vlan_id)
        if self._steps is not None:
            core.judge_on(now)

    def _begin(self, now: float) -> None:
        self._steps = self._all_steps()
        self.advance(now)

    def _all_steps(self) -> Iterator[InDomain]:
        core, concern = self._core, self._concern
        if concern:
            core.gate.is_judging = True
            yield from self._told_anew()
            for vlan_id, membership in core.memberships.all():
                gate = VlanGate(core.gate, vlan_id) if vlan_id else core.gate
                for effects in membership.reconsider(gate.would_admit, partial(_is_about, concern, Role.RECEIVER)):
                    yield InDomain(vlan_id, effects)
            if concern.of_role(Role.SENDER):
                for done in core.senders.reconsider(partial(_is_about, concern, Role.SENDER), lambda: self._now):
                    yield InDomain(0, done)  # type: ignore[arg-type]
            core.gate.is_judging = False
            for address in list(core.plane.groups):
                yield InDomain(0, core.plane.queues_changed(address, self._now))  # type: ignore[arg-type]
        yield from self._told_anew()

    def _told_anew(self) -> Iterator[InDomain]:
        for vlan_id, membership in self._core.memberships.all():
            for effects in membership.tell_refused_anew():
                yield InDomain(vlan_id, effects)

    def _set_membership(self, before: Policy, reworded: bool, now: float) -> None:
        core, policy = self._core, self._core.policy
        settings, limits = membership_settings(policy), membership_limits(policy)
        is_set_otherwise = (settings, limits) != (membership_settings(before), membership_limits(before))
        for vlan_id, membership in core.memberships.all():
            if is_set_otherwise:
                core.apply(membership.set_settings(settings, limits, now), now, vlan_id=vlan_id)
            elif reworded:
                core.apply(membership.reconsider_routers(now), now, vlan_id=vlan_id)

    def _follow_registrations(self, now: float) -> None:
        """Have receivers get groups from the VLANs that the policy gives them from now."""
        core = self._core
        effects, moved = core.registered.use(core.policy.registrations, now)
        core.perform(effects)
        core.legs.registrations_changed(now)
        for dpid, name, carrier in moved:
            core.group_changed(name, now, dpid)
            core.group_changed(carrier, now)
        if moved:
            core.settle_room(now)

    def _follow_vlans(self, now: float) -> None:
        """Have ports to hosts be in the VLANs that the policy puts them in now, and their entries say so."""
        core = self._core
        core.edge_ports.moved_to_other_vlans(sorted(core.topology.edges), now)
        dpids = sorted({dpid for dpid, _ in core.topology.edges})
        for dpid in dpids:
            core.perform(core.plane.recompile(dpid, now, Urgency.BULK))
        core.topology.flood_soon(now, *core.topology.fabric.ofp_versions())


def _is_about(concern: Concern, role: Role, group: bytes) -> bool:
    return concern.about(address_of(group), role)
