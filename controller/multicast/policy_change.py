"""What another policy changes in a running core: settings at once, members and senders in slices."""

from __future__ import annotations

from controller.config.marking import marking_of
from controller.config.policy import Policy, Role
from controller.datapath.lanes import Urgency
from controller.kernel.aggregations import aggregations_of
from controller.kernel.deadlines import Deadlines
from controller.kernel.vlan_ports import VlanPorts
from controller.multicast.alias_control import AliasControl
from controller.multicast.callbacks import Perform
from controller.multicast.due import FABRICS_SETTLE_S, Due
from controller.multicast.edge_ports import EdgePorts
from controller.multicast.events import PolicyLoaded
from controller.multicast.fabric import FabricFollower
from controller.multicast.fabric_names import FabricNames
from controller.multicast.flood_schedule import FloodSchedule
from controller.multicast.gate import Gate
from controller.multicast.group_changes import GroupChanges
from controller.multicast.groups import GroupPlane
from controller.multicast.legs import MemberLegs
from controller.multicast.membership_effects import MembershipEffects
from controller.multicast.membership_policer import MembershipPolicer
from controller.multicast.memberships import Memberships
from controller.multicast.pool_addresses import PoolAddresses
from controller.multicast.preemption import Preemption
from controller.multicast.reconsideration import Reconsideration
from controller.multicast.registered import RegisteredGroups
from controller.multicast.restart import Restart
from controller.multicast.sections import MulticastSections
from controller.multicast.senders import SenderTable
from controller.multicast.settings import LoadedPolicy, forest_of, membership_limits, membership_settings
from controller.multicast.stale_versions import StaleVersions
from controller.multicast.static_members import StaticMembers
from controller.multicast.swapping import Swapping
from controller.multicast.switches import Switches
from controller.multicast.tagged import TaggedFrames
from controller.rules.installer import Installer
from topology.live import LiveFabric

BUILT_BY = ("tree", "seed", "default_rate_bps")
"""Settings that all trees are built anew for."""


class PolicyFollower:
    """Has a core go by another policy."""

    def __init__(
        self,
        in_force: LoadedPolicy,
        installer: Installer,
        fabric: LiveFabric,
        fabric_names: FabricNames,
        vlan_ports: VlanPorts,
        switches: Switches,
        topology: FabricFollower,
        flooding: FloodSchedule,
        plane: GroupPlane,
        aliases: AliasControl,
        registered: RegisteredGroups,
        gate: Gate,
        memberships: Memberships,
        static: StaticMembers,
        legs: MemberLegs,
        swapping: Swapping,
        senders: SenderTable,
        tagged: TaggedFrames,
        stale: StaleVersions,
        membership_policer: MembershipPolicer,
        edge_ports: EdgePorts,
        following_members: MembershipEffects,
        preemption: Preemption,
        group_changes: GroupChanges,
        addresses: PoolAddresses,
        sections: MulticastSections,
        reconsideration: Reconsideration,
        restart: Restart,
        due: Deadlines[Due],
        perform: Perform,
    ) -> None:
        self._in_force = in_force
        self._installer = installer
        self._fabric = fabric
        self._fabric_names = fabric_names
        self._vlan_ports = vlan_ports
        self._switches = switches
        self._topology = topology
        self._flooding = flooding
        self._plane = plane
        self._aliases = aliases
        self._registered = registered
        self._gate = gate
        self._memberships = memberships
        self._static = static
        self._legs = legs
        self._swapping = swapping
        self._senders = senders
        self._tagged = tagged
        self._stale = stale
        self._membership_policer = membership_policer
        self._edge_ports = edge_ports
        self._following_members = following_members
        self._preemption = preemption
        self._group_changes = group_changes
        self._addresses = addresses
        self._sections = sections
        self._reconsideration = reconsideration
        self._restart = restart
        self._due = due
        self._perform = perform

    def policy_loaded(self, event: PolicyLoaded, now: float) -> None:
        """Take another policy."""
        policy = event.policy
        self._sections.policy_loaded(policy, now)
        before, self._in_force.policy = self._in_force.policy, policy
        limits, multicast = policy.limits, policy.multicast
        reworded = self._gate.replace(policy, self._reconsideration.concern.add(before, policy))
        marks_otherwise = self._gate.mark_by(marking_of(policy))
        if marks_otherwise:
            self._reconsideration.concern.add_role(Role.SENDER)
        self._installer.use_policy(policy.check.interval_s, policy.edits)
        for drops in (self._tagged, self._stale):
            drops.use_check_interval(policy.check.interval_s, now)
        self._membership_policer.set_limits(limits)
        had_aliases = self._aliases.trees.is_used
        self._aliases.use(policy, now)
        if self._aliases.trees.is_used is not had_aliases:
            self._follow_use_of_aliases(now)
        self._swapping.use(policy.overcommit, policy.tenants, now)
        self._perform(self._swapping.questions.ask_all(now))
        self._set_membership(before, reworded, now)
        self._senders.set_limits(
            limits.senders_per_port, limits.unknown_packets_per_second_per_port, multicast.sender_timeout_s
        )
        if any(getattr(multicast, name) != getattr(before.multicast, name) for name in BUILT_BY):
            self._build_trees_anew(now)
        if policy.fabrics != before.fabrics:
            self._fabric_names.use(policy.fabrics)
            self._due.set_sooner(Due.FABRICS, now + FABRICS_SETTLE_S)
        if policy.pools != before.pools:
            self._addresses.use(policy.pools, now)
        self._edge_ports.aggregate(aggregations_of(policy.link_aggregations), now)
        if policy.registrations != before.registrations:
            self._follow_registrations(now)
        if self._vlan_ports.policy_loaded(policy.vlans):
            self._follow_vlans(now)
        self._static.policy_loaded(policy.static_members, now)
        if reworded or marks_otherwise or policy.registrations != before.registrations:
            self._reconsideration.begin(now)

    def _follow_use_of_aliases(self, now: float) -> None:
        """Have switches count packets of trees that they do not know, or not any more."""
        self._flooding.soon(now, *self._fabric.ofp_versions())
        for dpid in sorted(self._switches.connected):
            self._stale.switch_connected(dpid, now)

    def _build_trees_anew(self, now: float) -> None:
        """Build all trees anew as the policy wants them now."""
        self._topology.finish_repairs(now)
        forest = forest_of(self._in_force.policy, self._plane.forest.graph)
        self._perform(self._plane.use_forest(forest, now))
        self._group_changes.all_changed(self._plane.groups, now)
        self._restart.adopt_again()

    def _set_membership(self, before: Policy, reworded: bool, now: float) -> None:
        policy = self._in_force.policy
        settings, limits = membership_settings(policy), membership_limits(policy)
        is_set_otherwise = (settings, limits) != (membership_settings(before), membership_limits(before))
        for vlan_id, membership in self._memberships.all():
            if is_set_otherwise:
                self._following_members.apply(membership.set_settings(settings, limits, now), now, vlan_id=vlan_id)
            elif reworded:
                self._following_members.apply(membership.reconsider_routers(now), now, vlan_id=vlan_id)

    def _follow_registrations(self, now: float) -> None:
        """Have receivers get groups from the VLANs that the policy gives them from now."""
        effects, moved = self._registered.use(self._in_force.policy.registrations, now)
        self._perform(effects)
        self._legs.registrations_changed(now)
        for dpid, name, carrier in moved:
            self._group_changes.changed(name, now, dpid)
            self._group_changes.changed(carrier, now)
        if moved:
            self._preemption.settle(now)

    def _follow_vlans(self, now: float) -> None:
        """Have ports to hosts be in the VLANs that the policy puts them in now, and their entries say so."""
        self._edge_ports.moved_to_other_vlans(sorted(self._switches.edges), now)
        dpids = sorted({dpid for dpid, _ in self._switches.edges})
        for dpid in dpids:
            self._perform(self._plane.recompile(dpid, now, Urgency.BULK))
        self._flooding.soon(now, *self._fabric.ofp_versions())
