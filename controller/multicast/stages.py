"""The stages of the multicast core, built and connected: what each is given is all that it may read and edit.

frame -> wire -> membership -> admission -> groups (trees, flow entries) -> installer -> edits
"""

from __future__ import annotations

from collections import Counter
from functools import partial

from controller.config.policy import Policy
from controller.datapath.core import DatapathCore
from controller.kernel.aggregations import aggregations_of
from controller.kernel.deadlines import Deadlines
from controller.kernel.vlan_ports import VlanPorts
from controller.membership.core import MembershipCore
from controller.multicast.admission_reports import AdmissionReports
from controller.multicast.alias_control import AliasControl
from controller.multicast.campaigns import Campaigns, MaintenanceView
from controller.multicast.change_feed import ChangeFeed
from controller.multicast.due import Due, Grace
from controller.multicast.edge_ports import EdgePorts
from controller.multicast.fabric import FabricFollower
from controller.multicast.fabric_names import FabricNames
from controller.multicast.figures import FiguresView
from controller.multicast.findings import Findings
from controller.multicast.flood import FloodPlane
from controller.multicast.flood_schedule import FloodSchedule
from controller.multicast.following import Following
from controller.multicast.found_swaps import FoundSwaps
from controller.multicast.frames import MulticastIntake
from controller.multicast.gate import Gate
from controller.multicast.group_changes import GroupChanges
from controller.multicast.group_view import GroupView
from controller.multicast.groups import GroupPlane
from controller.multicast.idle_members import IdleMembers
from controller.multicast.journal import MulticastJournal
from controller.multicast.journal_check import JournalCheck
from controller.multicast.legs import MemberLegs
from controller.multicast.membership_effects import MembershipEffects
from controller.multicast.membership_policer import MembershipPolicer
from controller.multicast.memberships import Memberships
from controller.multicast.operator import Operator
from controller.multicast.operator_labels import OperatorLabels
from controller.multicast.operator_records import OperatorRecords
from controller.multicast.outbox import Outbox
from controller.multicast.pending_writes import PendingWrites
from controller.multicast.places import HostPlaces
from controller.multicast.policy_change import PolicyFollower
from controller.multicast.pool_addresses import PoolAddresses
from controller.multicast.port_view import PortView
from controller.multicast.preemption import Preemption
from controller.multicast.proxy import MembershipProxy
from controller.multicast.reconsideration import Reconsideration
from controller.multicast.registered import RegisteredGroups
from controller.multicast.restart import Restart
from controller.multicast.returning import ReturningLinks
from controller.multicast.router_view import RouterView
from controller.multicast.sections import MulticastSections
from controller.multicast.senders import SenderTable
from controller.multicast.settings import LoadedPolicy, forest_of, membership_limits, membership_settings
from controller.multicast.stale_versions import StaleVersions
from controller.multicast.static_members import StaticMembers
from controller.multicast.status_view import StatusView
from controller.multicast.swap_slots import SwapSlots
from controller.multicast.swapping import Swapping
from controller.multicast.switches import Switches
from controller.multicast.table_view import TableView
from controller.multicast.tagged import TaggedFrames
from controller.multicast.tree_changes import TreeChanges
from controller.multicast.version_view import VersionView
from controller.multicast.vlan_gate import membership_of
from controller.multicast.waiting import WaitingGroups
from controller.rules.installer import Installer
from controller.rules.pipeline import MULTICAST_TAG
from controller.trees.forest import Forest
from topology.graph import Graph
from topology.live import LiveFabric


class MulticastStages:
    """The stages, in the order in which they are built: each knows only those before it.

    Those that follow from others without an end (a tree changes, so a link is released, so a tree changes) are joined
    by `outbox`, `feed`, `pending_writes` and `due`, which take what stages say and know none of them.
    """

    def __init__(self, policy: Policy, now: float, datapath: DatapathCore | None = None) -> None:
        self._in_force = in_force = LoadedPolicy(policy)
        limits = policy.limits

        # What stages say
        self.counters: Counter[str] = Counter()
        self.outbox = Outbox(now)
        perform = self.outbox.perform
        self.feed = ChangeFeed(policy)
        self.pending_writes = PendingWrites()
        self.due: Deadlines[Due] = Deadlines()
        self.grace = Grace(in_force, self.due, now)

        # Switches and the fabric
        self.installer = Installer(MULTICAST_TAG, hold_unknown=True, datapath=datapath)
        self.installer.use_policy(policy.check.interval_s, policy.edits)
        self.fabric = LiveFabric(aggregations_of(policy.link_aggregations))
        self.fabric_names = FabricNames(self.fabric.fabrics, policy.fabrics)
        self.vlan_ports = VlanPorts(policy.vlans, self.fabric)
        self.switches = Switches(self.fabric)
        self.places = HostPlaces(self.fabric.fabrics.is_one)
        returning = ReturningLinks(self.installer, self.fabric.graph)

        # Groups and their trees, and flooding
        self.plane = GroupPlane(
            forest_of(policy, Graph()), self.installer, self.fabric.graph, self.feed.groups.touch, self.vlan_ports
        )
        self.registered = RegisteredGroups(policy.registrations, self.plane)
        self.group_changes = GroupChanges(self.registered, self.pending_writes, self.feed)
        self.trees = TreeChanges(self.plane, self.group_changes, perform)
        self.flood = FloodPlane(self.installer)
        self.flooding = FloodSchedule(self.fabric, self.switches, self.vlan_ports, self.plane, returning, self.flood)
        self.legs = MemberLegs(
            self.fabric, self.registered, self.flood, self.flooding, perform, self.group_changes.changed
        )

        # Admission
        reports = self.admission_reports = AdmissionReports(
            self.counters, in_force, self.registered, self.feed.events, self.outbox
        )
        self.slots = SwapSlots(self.plane, reports.slot_refused)
        self.gate = Gate(
            policy, self.plane, self.registered, self.fabric, self.slots, reports.audited, reports.group_refused
        )
        self.admission = self.gate.admission
        self.aliases = AliasControl(self.plane.aliases, self.plane, self.gate, self.feed.groups)
        self.aliases.use(policy, now)
        self.plane.aliases.changed = self.group_changes.changed

        self.swapping = Swapping(self.plane, self.installer, self.group_changes, self.slots, self.gate.host)
        self.swapping.use(policy.overcommit, policy.tenants, now)
        self.installer.listens = partial(_listens, returning, self.swapping)
        self.found_swaps = FoundSwaps(self.plane, self.installer, self.swapping, self.grace, self.due)
        self.installer.withholds = self.found_swaps.withheld

        # Members and senders
        make_membership = partial(_membership, in_force, self.gate, self.feed, self.fabric)
        self.membership = make_membership(0)
        self.memberships = Memberships(self.membership, make_membership)
        self.senders = SenderTable(
            self.plane,
            self.installer,
            self.gate,
            self.group_changes.changed,
            self.vlan_ports,
            self.legs,
            self.fabric.fabrics,
            self.swapping,
            senders_per_port=limits.senders_per_port,
            unknown_packets_per_s=limits.unknown_packets_per_second_per_port,
            timeout_s=policy.multicast.sender_timeout_s,
        )
        self.tagged = TaggedFrames(self.installer, self.counters)
        self.stale = StaleVersions(self.installer, self.counters, self.plane.aliases)
        for drops in (self.tagged, self.stale):
            drops.use_check_interval(policy.check.interval_s, now)
        self.membership_policer = MembershipPolicer(self.installer, self.counters, limits, self.vlan_ports)
        self.preemption = Preemption(self.gate.room, self.senders, perform)
        self.static = StaticMembers(
            in_force,
            self.fabric,
            self.switches,
            self.vlan_ports,
            self.registered,
            self.gate.room,
            self.memberships,
            self.legs,
            self.preemption,
            self.group_changes,
            self.feed,
        )
        self.swapping.always_in = partial(_is_static, self.static, self.registered)
        self.proxy = MembershipProxy(
            self.counters, in_force, self.fabric, self.plane, self.feed, self.vlan_ports, perform
        )
        self.following_members = MembershipEffects(
            self.counters,
            in_force,
            self.fabric,
            self.flooding,
            self.vlan_ports,
            self.plane,
            self.memberships,
            self.static,
            self.legs,
            self.senders,
            self.proxy,
            self.preemption,
            self.pending_writes,
            self.feed,
            self.group_changes.changed,
            perform,
        )
        self.idle_members = IdleMembers(
            self.swapping, self.memberships, self.registered, self.following_members.apply
        )
        self.waiting = WaitingGroups(
            self.gate.room,
            self.slots,
            self.registered,
            self.memberships,
            self.senders,
            self.static,
            self.preemption,
            self.following_members.apply,
            perform,
        )
        self.frames = MulticastIntake(
            self.counters,
            self.fabric,
            self.switches,
            self.vlan_ports,
            self.plane,
            self.registered,
            self.gate,
            self.memberships,
            self.places,
            self.senders,
            self.pending_writes,
            self.membership_policer,
            self.proxy,
            self.following_members.apply,
            perform,
        )

        # What operators are shown
        self.status_view = StatusView(
            self.counters,
            self.fabric,
            self.switches,
            self.feed.names,
            self.installer,
            self.plane,
            self.memberships,
            self.senders,
            self.swapping,
            self.static,
        )
        self.group_view = GroupView(
            in_force,
            self.fabric,
            self.plane,
            self.aliases,
            self.registered,
            self.memberships,
            self.static,
            self.gate,
            self.feed.events,
        )
        self.table_view = TableView(self.plane, self.swapping)
        self.version_view = VersionView(self.switches, self.memberships)
        self.port_view = PortView(in_force, self.fabric, self.vlan_ports)
        self.router_view = RouterView(self.fabric, self.fabric_names, self.feed.names, self.memberships, self.proxy)
        self.sections = MulticastSections(
            self.feed,
            in_force,
            self.fabric,
            self.switches,
            self.installer,
            self.gate,
            self.memberships,
            self.plane,
            self.static,
            self.status_view,
            self.group_view,
            self.table_view,
            self.port_view,
            self.router_view,
            self.version_view,
            now,
        )

        # What the fabric, operators and the policy change
        self.edge_ports = EdgePorts(
            self.frames,
            self.places,
            self.fabric,
            self.membership_policer,
            self.legs,
            self.memberships,
            self.static,
            self.plane,
            self.proxy,
            self.senders,
            self.switches,
            self.flooding,
            self.vlan_ports,
            self.following_members,
            self.grace,
            perform,
        )
        self.topology = FabricFollower(
            self.counters,
            self.fabric,
            self.switches,
            self.plane,
            returning,
            self.flood,
            self.flooding,
            self.places,
            self.edge_ports,
            self.trees,
            self.group_changes,
            self.pending_writes,
            self.due,
            self.sections.topology_changed,
            perform,
        )
        self.operator = Operator(
            self.counters,
            in_force,
            self.fabric,
            self.switches,
            self.topology,
            self.plane,
            self.aliases,
            self.swapping,
            self.registered,
            self.gate,
            self.memberships,
            self.static,
            self.senders,
            self.installer,
            self.following_members,
            self.trees,
            self.pending_writes,
            self.sections,
            self.feed,
            perform,
        )
        self.labels = OperatorLabels(in_force, self.switches, self.pending_writes, self.feed, perform)
        self.addresses = PoolAddresses(policy, self.plane, self.memberships, self.pending_writes, self.feed, perform)
        self.records = OperatorRecords(self.labels, self.addresses)
        self.campaigns = Campaigns(
            in_force,
            MaintenanceView(in_force, self.fabric, self.switches, self.plane, self.installer),
            self.operator,
            self.pending_writes,
            self.feed,
            perform,
        )
        self.operator.in_maintenance = self.campaigns.holds

        # The log, and what an earlier run or another controller wrote to it
        self.journal = MulticastJournal(
            self.pending_writes,
            self.fabric,
            self.plane,
            self.registered,
            self.flood,
            self.memberships,
            self.operator.settings,
            self.operator.is_set,
            self.records,
            self.campaigns,
            self.legs,
        )
        make_following = partial(
            Following,
            self.fabric,
            self.topology,
            self.vlan_ports,
            self.plane,
            self.swapping,
            self.registered,
            self.memberships,
            self.static,
            self.records,
            self.campaigns,
            self.senders,
            self.edge_ports,
            self.following_members,
            self.journal,
            self.pending_writes,
            perform,
        )
        self.restart = Restart(
            make_following,
            self.fabric,
            self.switches,
            self.topology,
            self.vlan_ports,
            self.plane,
            self.swapping,
            self.registered,
            self.memberships,
            self.operator,
            self.records,
            self.campaigns,
            self.senders,
            self.edge_ports,
            self.following_members,
            self.journal,
            self.pending_writes,
            self.grace,
            perform,
        )

        # Another policy
        self.reconsideration = Reconsideration(
            self.gate, self.memberships, self.senders, self.plane, self.following_members, self.due
        )
        self.following = PolicyFollower(
            in_force,
            self.installer,
            self.fabric,
            self.fabric_names,
            self.vlan_ports,
            self.switches,
            self.topology,
            self.flooding,
            self.plane,
            self.aliases,
            self.registered,
            self.gate,
            self.memberships,
            self.static,
            self.legs,
            self.swapping,
            self.senders,
            self.tagged,
            self.stale,
            self.membership_policer,
            self.edge_ports,
            self.following_members,
            self.preemption,
            self.group_changes,
            self.addresses,
            self.sections,
            self.reconsideration,
            self.restart,
            self.due,
            perform,
        )

        # What is counted, and what does not fit together
        self.figures = FiguresView(
            in_force,
            self.installer,
            self.fabric,
            self.vlan_ports,
            self.switches,
            self.feed.names,
            self.plane,
            self.admission,
            self.aliases,
            self.swapping,
            self.memberships,
            self.router_view,
            self.topology,
        )
        self.journal_check = partial(JournalCheck, self.journal, self.pending_writes, self.feed.names)
        self.findings = Findings(
            self.feed.names,
            in_force,
            self.fabric,
            self.fabric_names,
            self.switches,
            self.plane,
            self.membership,
            self.static,
            self.labels,
            self.legs,
        )

    @property
    def policy(self) -> Policy:
        """The policy in force."""
        return self._in_force.policy

    @property
    def forest(self) -> Forest:
        """The trees."""
        return self.plane.forest


def _membership(
    in_force: LoadedPolicy, gate: Gate, feed: ChangeFeed, fabric: LiveFabric, vlan_id: int
) -> MembershipCore:
    policy = in_force.policy
    values = membership_settings(policy), membership_limits(policy), feed.groups
    return membership_of(vlan_id, gate, *values, fabric.fabrics.is_one)


def _is_static(static: StaticMembers, registered: RegisteredGroups, address: bytes) -> bool:
    """Tell whether a group, or one that has its packets from it, has static members."""
    groups = static.groups()
    return address in groups or (registered.is_used and any(registered.carrier(group) == address for group in groups))


def _listens(returning: ReturningLinks, swapping: Swapping, dpid: int) -> bool:
    """Tell whether the core is to hear of what a switch confirms."""
    return swapping.is_used or returning.waits_for(dpid)
