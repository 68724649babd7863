"""The multicast core: frozen events in, frozen effects out.

frame -> wire -> membership -> admission -> groups (trees, flow entries) -> installer -> edits
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from enum import Enum, auto
from typing import Any, TypeAlias

from controller.config.policy import Policy
from controller.datapath.core import DatapathCore
from controller.datapath.lanes import Urgency
from controller.effects import ActionRefused, ActionTaken, Effect, Notice
from controller.events import (
    BarrierReplied,
    CheckRequested,
    DeadlineReached,
    EditFailed,
    FlowStatsReceived,
    PacketReceived,
    PortChanged,
    SwitchConnected,
    SwitchDisconnected,
    TableChanged,
)
from controller.kernel.aggregations import aggregations_of
from controller.kernel.domains import domain_of
from controller.kernel.vlan_ports import VlanPorts
from controller.log import WriteLog
from controller.membership.core import MembershipCore
from controller.multicast.alias_control import AliasControl
from controller.multicast.edge_ports import EdgePorts
from controller.multicast.effects import Audit
from controller.multicast.events import LoadsMeasured, PolicyLoaded
from controller.multicast.fabric import FabricFollower
from controller.multicast.fabric_names import FabricNames
from controller.multicast.flood import FloodPlane
from controller.multicast.flood_guard import FloodGuard
from controller.multicast.frames import MulticastIntake
from controller.multicast.gate import Gate
from controller.multicast.group import Sender
from controller.multicast.groups import GroupPlane
from controller.multicast.journal import MulticastJournal
from controller.multicast.legs import MemberLegs
from controller.multicast.membership_effects import MembershipEffects
from controller.multicast.memberships import Memberships
from controller.multicast.operator import Operator
from controller.multicast.places import HostPlaces
from controller.multicast.policy_change import PolicyFollower
from controller.multicast.proxy import MembershipProxy
from controller.multicast.registered import RegisteredGroups
from controller.multicast.restart import Restart
from controller.multicast.sections import MulticastSections
from controller.multicast.senders import SenderTable
from controller.multicast.settings import membership_limits, membership_settings
from controller.multicast.tagged import TaggedFrames
from controller.multicast.vlan_gate import membership_of
from controller.multicast.waiting import WaitingGroups
from controller.rules.installer import Installer
from controller.rules.pipeline import MULTICAST_TAG
from controller.trees.forest import Forest
from controller.trees.islands import group_of
from topology.events import TOPOLOGY_EVENTS, TopologyEvent
from topology.graph import Graph
from topology.live import LiveFabric

Output: TypeAlias = Effect | Audit | WriteLog | ActionTaken | ActionRefused

RESTART_GRACE_S, RESTART_GRACE_LONGEST_S = 12.0, 60.0
"""After a start, entries that no member accounts for stay this long, or until hosts had time to answer."""

PURGE_AFTER_S = 1.0
"""How long after that groups have to move to entries of their own before the old ones go."""

FABRICS_SETTLE_S = 1.0
"""How long after fabrics are joined or split that is told and queriers follow: a link that blinks changes none."""

ROOM_INTERVAL_S = 10.0
"""How often it is told that groups are refused for want of room, and looked for those that are not remembered."""


class Due(Enum):
    """What the core does by itself at a time."""

    RELEASE = auto()
    PURGE = auto()
    REBALANCE = auto()
    ROOM = auto()
    FABRICS = auto()
    JUDGE = auto()


class MulticastCore:
    """Membership, admission, trees and flow entries of one controller, without clock or socket.

    `policy` is the operator's, `now` the current time in seconds; every later time is on the same clock. `datapath`
    is what the core shares with others of each switch (see `Installer`).
    """

    def __init__(self, policy: Policy, now: float, datapath: DatapathCore | None = None) -> None:
        self.counters: Counter[str] = Counter()
        self.policy = policy
        self.sections = MulticastSections(self, now)
        self.installer = Installer(MULTICAST_TAG, hold_unknown=True, datapath=datapath)
        self.installer.use_policy(policy.check.interval_s, policy.edits)
        self.fabric = LiveFabric(aggregations_of(policy.link_aggregations))
        self.fabric_names = FabricNames(self.fabric.fabrics, policy.fabrics)
        self.vlan_ports = VlanPorts(policy.vlans, self.fabric)
        self.plane = GroupPlane(
            self._forest(Graph()), self.installer, self.fabric.graph, self.sections.groups.touch, self.vlan_ports
        )
        self.registered = RegisteredGroups(policy.registrations, self.plane)
        self.proxy = MembershipProxy(
            self.counters, lambda: self.policy, self.fabric, self.plane, self.sections, self.vlan_ports, self.perform
        )
        self.flood = FloodPlane(self.installer)
        self.topology = FabricFollower(self)
        self.legs = MemberLegs(
            self.fabric, self.registered, self.flood, self.topology, self.perform, self.group_changed
        )
        self.installer.listens = self.topology.waits_for
        self.operator = Operator(self)
        self.gate = Gate(policy, self.plane, self.registered, self.fabric, self._audited, self._group_refused)
        self.admission = self.gate.admission
        self.aliases = AliasControl(self.plane.aliases, self.plane, self.gate)
        self.aliases.use(policy, now)
        self.plane.aliases.changed = self.group_changed
        self.membership = self._new_membership(0)
        self.memberships = Memberships(self.membership, self._new_membership)
        limits = policy.limits
        self.senders = SenderTable(
            self.plane,
            self.installer,
            self.gate,
            self.group_changed,
            self.vlan_ports,
            self.legs,
            self.fabric.fabrics,
            senders_per_port=limits.senders_per_port,
            unknown_packets_per_s=limits.unknown_packets_per_second_per_port,
            timeout_s=policy.multicast.sender_timeout_s,
        )
        self.waiting = WaitingGroups(
            self.gate.room,
            self.registered,
            self.memberships,
            self.senders,
            self.operator.static,
            self.apply,
            self.perform,
        )
        self.tagged = TaggedFrames(self.installer, self.counters)
        self.tagged.use_check_interval(policy.check.interval_s, now)
        self.places = HostPlaces(self.fabric.fabrics.is_one)
        told = (self.operator.settings, self.operator.is_set, self.legs)
        self.journal: MulticastJournal = MulticastJournal(
            self.fabric, self.plane, self.registered, self.flood, self.memberships, *told
        )
        self.flood_guard = FloodGuard(self.installer, self.counters, limits, self.vlan_ports)
        self.following = PolicyFollower(self)
        self.following_members = MembershipEffects(self)
        self.frames = MulticastIntake(self, self.following_members.apply)
        self.edge_ports = EdgePorts(
            self.frames,
            self.places,
            self.fabric,
            self.flood_guard,
            self.legs,
            self.memberships,
            self.operator.static,
            self.plane,
            self.proxy,
            self.senders,
            self.topology,
            self.vlan_ports,
            self.following_members,
            self.perform,
        )
        self.restart = Restart(self)
        self._now = now
        self._effects: list[Output] = []
        self._due: dict[Due, float] = {Due.RELEASE: now + RESTART_GRACE_S}
        self._own_due_s: float | None = now + RESTART_GRACE_S
        self._release_latest_s = now + RESTART_GRACE_LONGEST_S
        self._last_rebalance_s = now
        self._fabrics_version = 0
        self._room_told_s = now - ROOM_INTERVAL_S
        self._handlers: dict[type, Callable[[Any, float], None]] = {
            PacketReceived: self.frames.packet_received,
            DeadlineReached: self._deadline_reached,
            **dict.fromkeys((BarrierReplied, EditFailed, CheckRequested), self._installer_event),
            FlowStatsReceived: self._flow_stats_received,
            TableChanged: self._table_changed,
            SwitchConnected: self._switch_connected,
            SwitchDisconnected: self._switch_disconnected,
            PortChanged: self._port_changed,
            PolicyLoaded: self.following.policy_loaded,
            **self.restart.handlers,
            LoadsMeasured: self._loads_measured,
            **dict.fromkeys(TOPOLOGY_EVENTS, self._topology_changed),
            **self.operator.handlers,
        }
        self._due_handlers: dict[Due, Callable[[float], None]] = {
            Due.RELEASE: self._release,
            Due.PURGE: self._purge,
            Due.REBALANCE: self._rebalance,
            Due.ROOM: self._look_for_room,
            Due.FABRICS: self._fabrics_changed,
            Due.JUDGE: self.following.advance,
        }

    def handle(self, event: Any, now: float) -> list[Output]:
        """Take one event and return what is to be done, in order; KeyError for an event of unknown type."""
        self._now = now = self.restart.time(now)
        self._effects = []
        self._handlers[type(event)](event, now)
        if not self.gate.room.is_quiet():
            self._serve_waiting(now)
        return self.restart.told(self._effects)

    @property
    def forest(self) -> Forest:
        """The trees."""
        return self.plane.forest

    @property
    def xid_tag(self) -> int:
        """The upper 8 bits of this core's transaction ids."""
        return self.installer.xid_tag

    def next_deadline(self) -> float | None:
        """Return when `DeadlineReached` is due next, None where nothing waits."""
        if self.restart.follows:
            return self.restart.due_s
        soonest = self.memberships.next_deadline()
        for due_s in (
            self.installer.next_deadline(),
            self.journal.due_s,
            self.senders.next_deadline(),
            self.tagged.next_deadline(),
            self.flood_guard.next_deadline(),
            self.proxy.next_deadline(),
            self.aliases.next_deadline(),
            self.topology.next_deadline(),
            self.restart.due_s,
            self._own_due_s,
        ):
            if due_s is not None and (soonest is None or due_s < soonest):
                soonest = due_s
        return soonest

    def _set_due(self, what: Due, due_s: float | None) -> None:
        """Have something of the core's own done at a time, or not at all."""
        if due_s is None:
            self._due.pop(what, None)
        else:
            self._due[what] = due_s
        self._own_due_s = min(self._due.values(), default=None)

    # Admission

    def _audited(self, audit: Audit) -> None:
        self._effects.append(audit)
        if not audit[0][0]:
            self.sections.refused(audit, self._now)

    def _group_refused(self, _group: bytes) -> None:
        """Count it; one notice stands for all refused in an interval."""
        self.counters["groups-bound"] += 1
        if self._now >= self._room_told_s + ROOM_INTERVAL_S:
            self._room_told_s = self._now
            bound = self.policy.limits.groups
            text = f"{bound} groups have a tree, the limit: members and senders of other groups are refused."
            self._effects.append(Notice("groups-bound", text, (("bound", bound),)))

    def group_changed(self, group: bytes, now: float, dpid: int | None = None) -> None:
        """Take note that a group changed, and who is known of it at a switch."""
        self.journal.touch(group, now, dpid)
        self.sections.groups.touch(group)
        if self.registered.is_used and (carrier := self.registered.carrier(group)) != group:
            self.journal.touch(carrier, now)
            self.sections.groups.touch(carrier)

    def _groups_changed(self, groups: Iterable[bytes], now: float) -> None:
        for group in groups:
            self.group_changed(group, now)

    def trees_wanted(self, now: float) -> None:
        """Build all trees anew as the policy wants them now."""
        self.topology.finish_repairs(now)
        self._effects += self.plane.use_forest(self._forest(self.forest.graph), now)
        self._groups_changed(self.plane.groups, now)
        self.restart.adopt_again()

    def judge_on(self, now: float) -> None:
        """Have the policy's next slice of members and senders judged when what else waits has had its turn."""
        self._set_due(Due.JUDGE, now)

    def settle_room(self, now: float) -> None:
        """Count what has a tree from now on, and take the trees of groups that gave way."""
        self.waiting.settle(now)

    def _serve_waiting(self, now: float) -> None:
        """Serve groups that were refused for want of room, as far as there is some now."""
        room = self.gate.room
        self.waiting.serve(now)
        if room.waits():
            self._set_due(Due.ROOM, now)
        elif room.overflowed and not room.waiting_count and Due.ROOM not in self._due:
            self._set_due(Due.ROOM, now + ROOM_INTERVAL_S)

    # Membership

    def apply(self, effects: Iterable[Any], now: float, urgency: Urgency = Urgency.PROMPT, vlan_id: int = 0) -> None:
        """Take what followed in the membership of a domain, and have it done."""
        self.following_members.apply(effects, now, urgency, vlan_id)

    def router_port_declared(self, dpid: int, port_no: int, family: int, declared: bool, now: float) -> None:
        """Follow the operator's word about a router port."""
        self.apply(self.membership.declare_router_port(dpid, port_no, family, declared, now), now)
        self.sections.router_port_changed(dpid, port_no, family)

    # Topology

    def _topology_changed(self, event: TopologyEvent, now: float) -> None:
        if self.journal.assumes:
            if not self.journal.confirm(event):
                return
            self.topology.confirmed(event, now)
        self.follow(event, now)

    def follow(self, event: TopologyEvent, now: float) -> None:
        """Follow a topology event."""
        if self.topology.apply(event, now):
            self.sections.topology_changed(event, now)
        if self.fabric.fabrics.version != self._fabrics_version:
            self.look_at_fabrics(now)

    def look_at_fabrics(self, now: float) -> None:
        """Have fabrics looked at soon, which are others than before or called otherwise."""
        if Due.FABRICS not in self._due:
            self._set_due(Due.FABRICS, now + FABRICS_SETTLE_S)

    def _fabrics_changed(self, now: float) -> None:
        """Have each fabric go by queriers of its own, as fabrics are now."""
        self._fabrics_version = self.fabric.fabrics.version
        for vlan_id, membership in self.memberships.all():
            self.apply(membership.fabrics_changed(now), now, vlan_id=vlan_id)
        self.proxy.fabrics_changed(now)
        self._effects += self.fabric_names.changes(Due.RELEASE in self._due)

    def topology_changed(self, event: TopologyEvent, now: float) -> None:
        """Take note of what became of a switch, link or port."""
        self.journal.topology_changed(event, now)

    def trees_changed(self, changes: Iterable[Any], now: float, urgency: Urgency = Urgency.PROMPT) -> None:
        """Follow changes of trees."""
        changes = [*changes, *self.plane.islands.review()]
        self._effects += self.plane.trees_changed(changes, now, urgency)
        for group in dict.fromkeys(group_of(change.key) for change in changes):
            self.group_changed(group, now)  # type: ignore[arg-type]

    def perform(self, effects: Iterable[Output]) -> None:
        """Take effects that followed from an event."""
        self._effects += effects

    def port_added(self, dpid: int, port_no: int, now: float) -> None:
        """Serve an edge port; what is unknown on the switches waits until its hosts had time to answer."""
        self.edge_ports.added(dpid, port_no, now)
        due_s = self._due.get(Due.RELEASE)
        if due_s is not None:
            answered_s = now + self.policy.multicast.querier.response_interval_s + 2.0
            self._set_due(Due.RELEASE, min(max(due_s, answered_s), self._release_latest_s))

    # Switches

    def _switch_connected(self, event: SwitchConnected, now: float) -> None:
        self.topology.switch_connected(event, now, Due.RELEASE in self._due)
        self.senders.switch_version(event.dpid, event.ofp_version)
        self.tagged.switch_connected(event.dpid, now)
        self.flood_guard.switch_connected(event.dpid, event.ofp_version)
        self.sections.switch_connected(event, now)
        self._effects += self.installer.switch_connected(event.dpid, event.ofp_version, now)
        self.restart.switch_connected(event.dpid, now)

    def _switch_disconnected(self, event: SwitchDisconnected, now: float) -> None:
        self.topology.switch_disconnected(event.dpid)
        self.tagged.switch_disconnected(event.dpid)
        self._effects += self.installer.switch_disconnected(event.dpid, now)
        self.sections.switch_disconnected(event.dpid, now)

    def _port_changed(self, event: PortChanged, now: float) -> None:
        self.topology.port_changed(event, now)
        self.sections.port_changed(event)

    def _installer_event(self, event: Any, now: float) -> None:
        self._effects += self.installer.handle(event, now)
        self.topology.entries_confirmed(event.dpid, now)

    def _table_changed(self, event: TableChanged, now: float) -> None:
        self.topology.entries_confirmed(event.dpid, now)
        if event.was_read:
            self._switch_read(event.dpid, now)

    def _switch_read(self, dpid: int, now: float) -> None:
        """Take over what a switch holds after a start of the controller."""
        if Due.RELEASE in self._due and self.installer.is_read(dpid):
            if not self.installer.installed(dpid):
                self.topology.disinherit(dpid, now)
            for group, key in self.plane.found.take(dpid, self.installer.unknown(dpid)):
                if self.vlan_ports.has(key.dpid, key.port_no, domain_of(group)):
                    self._effects += self.senders.restore(group, key, Sender(False, "", now), now)

    def _flow_stats_received(self, event: FlowStatsReceived, now: float) -> None:
        if self.tagged.owns_poll(event):
            self._effects += self.tagged.flow_stats_received(event, now)
        elif not self.senders.owns_poll(event):
            self._installer_event(event, now)
            self._switch_read(event.dpid, now)
        elif self.senders.flow_stats_received(event, now):
            self._rebalance_soon(now)

    def _loads_measured(self, event: LoadsMeasured, now: float) -> None:
        if self.forest.loads.measured(event.loads):
            self._rebalance_soon(now)

    # Time

    def _deadline_reached(self, _event: DeadlineReached, now: float) -> None:
        if self.restart.is_under_way:
            self.restart.advance()  # what follows from the half of what there was would have to be undone
            return
        for vlan_id, effects in self.memberships.on_deadline(now):
            self.apply(effects, now, vlan_id=vlan_id)
        self._effects += self.installer.on_deadline(now)
        self._effects += self.senders.on_deadline(now)
        self._effects += self.tagged.on_deadline(now)
        for (dpid, port_no), family, notice in self.flood_guard.released(now):
            self._effects.append(notice)
            self.apply(self.membership.ask(*self.legs.home((dpid, port_no)), family, now), now)
        self._effects += self.topology.on_deadline(now)
        self._effects += self.aliases.on_deadline(now)
        self.proxy.on_deadline(now)
        if self._own_due_s is not None and now >= self._own_due_s:
            for what in [what for what, due_s in self._due.items() if due_s <= now]:
                self._set_due(what, None)
                self._due_handlers[what](now)
        self._effects += self.journal.on_deadline(now)

    def _rebalance_soon(self, now: float) -> None:
        interval_s = self.policy.multicast.rebalance_interval_s
        if interval_s > 0 and Due.REBALANCE not in self._due:
            self._set_due(Due.REBALANCE, max(now, self._last_rebalance_s + interval_s))

    def _rebalance(self, now: float) -> None:
        self._last_rebalance_s = now
        self.topology.finish_repairs(now)
        self.trees_changed(self.forest.rebalance(), now, Urgency.BULK)

    def _look_for_room(self, now: float) -> None:
        """Ask anew about everybody where not all that wait are remembered; `handle` serves those that are."""
        room = self.gate.room
        if room.overflowed and not room.waiting_count:
            room.overflowed = False
            self.following.judge_all(now)

    def restored(self, now: float) -> None:
        """Begin the time of grace: all that an earlier run left is put back."""
        self._release_latest_s = now + RESTART_GRACE_LONGEST_S
        self._set_due(Due.RELEASE, now + RESTART_GRACE_S)

    def _release(self, now: float) -> None:
        """End the time of grace: what nobody confirmed or accounts for goes."""
        for event in self.journal.unconfirmed():
            self.follow(event, now)
        for dpid in list(self.topology.inherited):
            self.topology.disinherit(dpid, now)
        self._effects += self.plane.release(now)
        self.proxy.started(now)
        self._set_due(Due.PURGE, now + PURGE_AFTER_S)

    def _purge(self, now: float) -> None:
        self._effects += self.installer.release_unknown(now)

    def _new_membership(self, vlan_id: int) -> MembershipCore:
        values = membership_settings(self.policy), membership_limits(self.policy), self.sections.groups.touch
        return membership_of(vlan_id, self.gate, *values, self.fabric.fabrics.is_one)

    def _forest(self, graph: Graph) -> Forest:
        multicast = self.policy.multicast
        return Forest(graph, multicast.tree, multicast.seed, multicast.default_rate_bps)
