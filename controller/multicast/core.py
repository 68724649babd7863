"""The multicast core: frozen events in, frozen effects out.

frame -> wire -> membership -> admission -> groups (trees, flow entries) -> installer -> edits
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from enum import Enum, auto
from typing import Any, TypeAlias

from controller.config.policy import Policy
from controller.effects import Effect, Notice, SendPacket
from controller.events import (
    BarrierReplied,
    DeadlineReached,
    EditFailed,
    FlowStatsReceived,
    PacketReceived,
    PortChanged,
    SwitchConnected,
    SwitchDisconnected,
)
from controller.membership.core import MembershipCore
from controller.membership.events import ANY_SOURCE, InterestChanged, MembershipRefused, RouterPortChanged, SendQuery
from controller.multicast.effects import ActionRefused, ActionTaken, Audit, WriteJournal
from controller.multicast.events import JournalRead, LoadsMeasured, PolicyLoaded
from controller.multicast.fabric import FabricFollower
from controller.multicast.flood import FloodPlane
from controller.multicast.gate import Gate
from controller.multicast.group import Sender
from controller.multicast.groups import GroupPlane
from controller.multicast.guard import PortBuckets
from controller.multicast.journal import Journal, read_records
from controller.multicast.operator import Operator
from controller.multicast.places import EarlyReport, HostPlaces
from controller.multicast.queries import passed_on, sent
from controller.multicast.sections import MulticastSections
from controller.multicast.senders import SenderTable
from controller.multicast.settings import membership_limits, membership_settings
from controller.rules.installer import Installer
from controller.rules.pipeline import MULTICAST_TAG
from controller.trees.forest import Forest
from controller.wire.addresses import is_link_scope_group
from controller.wire.frame import decode
from controller.wire.packets import Data, Malformed, PimHello, Query, Report
from topology.events import TOPOLOGY_EVENTS, PortRole, TopologyEvent
from topology.graph import Graph
from topology.live import LiveFabric

Output: TypeAlias = Effect | Audit | WriteJournal | ActionTaken | ActionRefused

RESTART_GRACE_S, RESTART_GRACE_LONGEST_S = 12.0, 60.0
"""After a start, entries that no member accounts for stay this long, or until hosts had time to answer."""

PURGE_AFTER_S = 1.0
"""How long after that groups have to move to entries of their own before the old ones go."""

QUERIES_PER_S, QUERIES_BURST = 10.0, 20.0
"""Queries of another router that are passed on from one port."""

ROOM_INTERVAL_S = 10.0
"""How often members that were refused for want of room are looked at again."""


class Due(Enum):
    """What the core does by itself at a time."""

    RELEASE = auto()
    PURGE = auto()
    REBALANCE = auto()
    ROOM = auto()


class MulticastCore:
    """Membership, admission, trees and flow entries of one controller, without clock or socket.

    Parameters
    ----------
    policy
        The operator's policy.
    now
        The current time in seconds; every later time is on the same clock.
    """

    def __init__(self, policy: Policy, now: float) -> None:
        self.counters: Counter[str] = Counter()
        self.policy = policy
        self.sections = MulticastSections(self, now)
        self.installer = Installer(MULTICAST_TAG, hold_unknown=True)
        self.fabric = LiveFabric()
        self.plane = GroupPlane(self._forest(Graph()), self.installer, self.fabric.graph, self.sections.groups.touch)
        self.flood = FloodPlane(self.installer)
        self.topology = FabricFollower(self)
        self.operator = Operator(self)
        self.gate = Gate(policy, self.plane, self.fabric, self._audited, self._group_refused)
        self.admission = self.gate.admission
        self.membership = MembershipCore(
            membership_settings(policy), membership_limits(policy), self.gate.admit, self.sections.groups.touch
        )
        limits = policy.limits
        self.senders = SenderTable(
            self.plane,
            self.installer,
            self.gate,
            self.group_changed,
            senders_per_port=limits.senders_per_port,
            unknown_packets_per_s=limits.unknown_packets_per_second_per_port,
            timeout_s=policy.multicast.sender_timeout_s,
        )
        self.places = HostPlaces()
        self.journal = Journal(self.fabric, self.plane, self.flood, self.membership, self.operator.record)
        self._queries = PortBuckets(QUERIES_PER_S, QUERIES_BURST)
        self._now = now
        self._effects: list[Output] = []
        self._due: dict[Due, float] = {Due.RELEASE: now + RESTART_GRACE_S}
        self._own_due_s: float | None = now + RESTART_GRACE_S
        self._release_latest_s = now + RESTART_GRACE_LONGEST_S
        self._last_rebalance_s = now
        self._handlers: dict[type, Callable[[Any, float], None]] = {
            PacketReceived: self._packet_received,
            BarrierReplied: self._barrier_replied,
            DeadlineReached: self._deadline_reached,
            EditFailed: self._edit_failed,
            FlowStatsReceived: self._flow_stats_received,
            SwitchConnected: self._switch_connected,
            SwitchDisconnected: self._switch_disconnected,
            PortChanged: self._port_changed,
            PolicyLoaded: self._policy_loaded,
            JournalRead: self._journal_read,
            LoadsMeasured: self._loads_measured,
            **dict.fromkeys(TOPOLOGY_EVENTS, self._topology_changed),
            **self.operator.handlers,
        }
        self._due_handlers: dict[Due, Callable[[float], None]] = {
            Due.RELEASE: self._release,
            Due.PURGE: self._purge,
            Due.REBALANCE: self._rebalance,
            Due.ROOM: self._look_for_room,
        }
        self._packet_handlers: dict[type, Callable[[int, int, Any, bytes, float], None]] = {
            Report: self._report_received,
            Query: self._query_received,
            PimHello: self._pim_hello_received,
            Data: self._data_received,
            Malformed: self._malformed_received,
        }

    def handle(self, event: Any, now: float) -> list[Output]:
        """Take one event and return what is to be done, in order; KeyError for an event of unknown type."""
        self._now = now
        self._effects = []
        self._handlers[type(event)](event, now)
        return self._effects

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
        soonest = self.membership.next_deadline()
        for due_s in (
            self.installer.next_deadline(),
            self.journal.due_s,
            self.senders.next_deadline(),
            self.topology.flood_due_s,
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

    # Frames

    def _packet_received(self, event: PacketReceived, now: float) -> None:
        dpid, port_no, frame = event
        packet = decode(frame)
        handler = self._packet_handlers.get(type(packet))
        if handler is not None:
            handler(dpid, port_no, packet, frame, now)

    def _report_received(self, dpid: int, port_no: int, report: Report, frame: bytes, now: float) -> None:
        mac = report.eth_src
        if (dpid, port_no) not in self.topology.edges:
            self.counters["report-not-at-edge"] += 1
            if self.fabric.role(dpid, port_no) is PortRole.UNKNOWN:
                self.places.keep(mac, EarlyReport(dpid, port_no, frame, now))
            return
        host = self.fabric.host(mac)
        if host is None:
            self.places.note(mac, dpid, port_no)
        elif host.port_no != port_no or host.dpid != dpid:
            self.counters["report-elsewhere"] += 1
            self.places.keep(mac, EarlyReport(dpid, port_no, frame, now))
            return
        if not self.plane.has_routers:
            effects = self.membership.report_received(dpid, port_no, report, now)
            if effects:
                self._apply(effects, now)
            return
        is_admitted = self.membership.is_admitted
        before = {record.group for record in report.records if is_admitted(dpid, port_no, mac, record.group)}
        self._apply(self.membership.report_received(dpid, port_no, report, now), now)
        if all(r.group in before or is_admitted(dpid, port_no, mac, r.group) for r in report.records):
            self._effects += [
                SendPacket(to_dpid, (to_port,), frame)
                for to_dpid, to_port in self.plane.router_ports(report.family)
                if (to_dpid, to_port) != (dpid, port_no)
            ]

    def _query_received(self, dpid: int, port_no: int, query: Query, frame: bytes, now: float) -> None:
        if (dpid, port_no) not in self.topology.edges:
            self.counters["query-not-at-edge"] += 1
            return
        self._apply(self.membership.query_received(dpid, port_no, query, now), now)
        querier = self.membership.querier(query.family)
        if (querier.address, querier.dpid, querier.port_no) != (query.source, dpid, port_no):
            return
        self.journal.routers_touched(now)
        if self._queries.take(dpid, port_no, now):
            self._effects += passed_on(self.plane, self.fabric, dpid, port_no, query, frame)
        else:
            self.counters["queries-over-limit"] += 1

    def _pim_hello_received(self, dpid: int, port_no: int, hello: PimHello, _frame: bytes, now: float) -> None:
        if (dpid, port_no) in self.topology.edges:
            self._apply(self.membership.pim_hello_received(dpid, port_no, hello, now), now)

    def _data_received(self, dpid: int, port_no: int, data: Data, frame: bytes, now: float) -> None:
        if is_link_scope_group(data.group) or (dpid, port_no) not in self.topology.edges:
            self.counters["data-not-expected"] += 1
            return
        self._effects += self.senders.data_received(dpid, port_no, data, frame, now)

    def _malformed_received(self, _dpid: int, _port_no: int, packet: Malformed, _frame: bytes, _now: float) -> None:
        self.counters[packet.reason] += 1

    # Admission

    def _audited(self, audit: Audit) -> None:
        self._effects.append(audit)
        if not audit[0][0]:
            self.sections.refused(audit, self._now)

    def _group_refused(self, _group: bytes) -> None:
        """Look again for room later; one notice stands for all refused until then."""
        self.counters["groups-bound"] += 1
        if Due.ROOM not in self._due:
            self._set_due(Due.ROOM, self._now + ROOM_INTERVAL_S)
            bound = self.policy.limits.groups
            text = f"{bound} groups have a tree; members and senders of others are refused"
            self._effects.append(Notice("groups-bound", text, (("bound", bound),)))

    def group_changed(self, group: bytes, now: float) -> None:
        """Take note that a group changed."""
        self.journal.touch(group, now)
        self.sections.groups.touch(group)

    def _groups_changed(self, groups: Iterable[bytes], now: float) -> None:
        for group in groups:
            self.group_changed(group, now)

    def _policy_loaded(self, event: PolicyLoaded, now: float) -> None:
        before, self.policy = self.policy, event.policy
        limits, multicast = event.policy.limits, event.policy.multicast
        self.gate.replace(event.policy)
        self._apply(
            self.membership.set_settings(membership_settings(event.policy), membership_limits(event.policy), now), now
        )
        self.senders.set_limits(
            limits.senders_per_port, limits.unknown_packets_per_second_per_port, multicast.sender_timeout_s
        )
        built = ("tree", "seed", "default_rate_bps")
        if any(getattr(multicast, name) != getattr(before.multicast, name) for name in built):
            self._effects += self.plane.use_forest(self._forest(self.forest.graph), now)
            self._groups_changed(self.plane.groups, now)
        self._reconsider(now)

    def _reconsider(self, now: float) -> None:
        """Judge all members and senders anew."""
        self._apply(self.membership.reconsider(self.gate.admit, now), now)
        self._effects += self.senders.reconsider(now)

    # Membership

    def _apply(self, effects: Iterable[Any], now: float) -> None:
        for effect in effects:
            kind = type(effect)
            if kind is InterestChanged:
                self._interest_changed(effect, now)
            elif kind is SendQuery:
                self._effects.append(sent(effect, self.policy.multicast.querier))
            elif kind is RouterPortChanged:
                self._router_port_changed(effect, now)
            elif kind is MembershipRefused:
                self.counters["membership-refused"] += 1
            else:
                self._effects.append(effect)
        self.gate.settled()

    def _interest_changed(self, effect: InterestChanged, now: float) -> None:
        dpid, port_no, group, interest = effect
        if self.operator.served and (dpid, port_no, group) in self.operator.served:
            interest = ANY_SOURCE
        if is_link_scope_group(group):
            self._effects += self.flood.interest_changed(dpid, port_no, group, interest is not None)
            self.topology.flood_soon(now)
        else:
            self._effects += self.plane.interest_changed(dpid, port_no, group, interest, now)
        self.group_changed(group, now)

    def router_port_declared(self, dpid: int, port_no: int, family: int, declared: bool, now: float) -> None:
        """Follow the operator's word about a router port."""
        self._apply(self.membership.declare_router_port(dpid, port_no, family, declared, now), now)
        self.sections.router_port_changed(dpid, port_no, family)

    def _router_port_changed(self, effect: RouterPortChanged, now: float) -> None:
        dpid, port_no, family, present = effect
        self._effects += self.plane.router_port_changed(dpid, port_no, family, present, now)
        self._effects += self.senders.port_reconsidered(dpid, port_no, now)
        self.journal.routers_touched(now)
        self.sections.router_port_changed(dpid, port_no, family)
        self._groups_changed((a for a, group in self.plane.groups.items() if group.family == family), now)

    # Topology

    def _topology_changed(self, event: TopologyEvent, now: float) -> None:
        if self.journal.assumes:
            if not self.journal.confirm(event):
                return
            self.topology.confirmed(event, now)
        self._follow(event, now)

    def _follow(self, event: TopologyEvent, now: float) -> None:
        if self.topology.apply(event, now):
            self.sections.topology_changed(event, now)

    def topology_changed(self, now: float) -> None:
        """Take note that switches, links or ports changed."""
        self.journal.topology_touched(now)

    def trees_changed(self, changes: Iterable[Any], now: float) -> None:
        """Follow changes of trees."""
        changes = list(changes)
        self._effects += self.plane.trees_changed(changes, now)
        self._groups_changed((change.key for change in changes), now)

    def perform(self, effects: Iterable[Output]) -> None:
        """Take effects that followed from an event."""
        self._effects += effects

    def port_added(self, dpid: int, port_no: int, now: float) -> None:
        """Serve an edge port; what is unknown on the switches waits until its hosts had time to answer."""
        self._apply(self.membership.port_added(dpid, port_no, now), now)
        self.operator.port_added(dpid, port_no, now)
        due_s = self._due.get(Due.RELEASE)
        if due_s is not None:
            answered_s = now + self.policy.multicast.querier.response_interval_s + 2.0
            self._set_due(Due.RELEASE, min(max(due_s, answered_s), self._release_latest_s))

    def port_removed(self, dpid: int, port_no: int, now: float) -> None:
        """Forget the members and senders of a port that leads to hosts no more."""
        self.operator.port_removed(dpid, port_no, now)
        self._apply(self.membership.port_removed(dpid, port_no, now), now)
        self._effects += self.senders.port_gone(dpid, port_no, now)
        self._queries.forget(dpid, port_no)
        for family in (4, 6):
            if self.plane.is_router_port(dpid, port_no, family):
                self._router_port_changed(RouterPortChanged(dpid, port_no, family, False), now)

    def port_suspended(self, dpid: int, port_no: int, now: float) -> None:
        """Keep the members and senders of a port whose switch is gone; they age until it is back."""
        self._apply(self.membership.port_suspended(dpid, port_no, now), now)

    def host_left(self, mac: bytes, dpid: int, port_no: int, now: float) -> None:
        """Forget the memberships and senders of a host at a place where it is no more."""
        self._apply(self.membership.host_removed(mac, dpid, port_no, now), now)
        self._effects += self.senders.port_gone(dpid, port_no, now, mac)

    def host_placed(self, mac: bytes, dpid: int, port_no: int, addresses: Iterable[bytes], now: float) -> None:
        """Look again at what a host said before it was known to be at a port, and at senders with its addresses."""
        for frame in self.places.early_reports(mac, dpid, port_no, now):
            self._packet_received(PacketReceived(dpid, port_no, frame), now)
        self._effects += self.senders.addresses_moved(addresses, now)

    # Switches

    def _switch_connected(self, event: SwitchConnected, now: float) -> None:
        self.topology.switch_connected(event, now)
        self.senders.switch_version(event.dpid, event.ofp_version)
        self.sections.switch_changed(event.dpid)
        self._effects += self.installer.switch_connected(event.dpid, event.ofp_version, now)

    def _switch_disconnected(self, event: SwitchDisconnected, now: float) -> None:
        self.topology.switch_disconnected(event.dpid)
        self._effects += self.installer.switch_disconnected(event.dpid, now)
        self.sections.switch_changed(event.dpid)

    def _port_changed(self, event: PortChanged, now: float) -> None:
        self.topology.port_changed(event, now)
        self.sections.switch_changed(event.dpid)

    def _barrier_replied(self, event: BarrierReplied, now: float) -> None:
        self._effects += self.installer.barrier_replied(event[0], event[1], now)

    def _edit_failed(self, event: EditFailed, now: float) -> None:
        self._effects += self.installer.edit_failed(*event, now)

    def _flow_stats_received(self, event: FlowStatsReceived, now: float) -> None:
        if not self.senders.owns_poll(event.xid):
            self._effects += self.installer.handle(event, now)
            if Due.RELEASE in self._due and self.installer.is_read(event.dpid):
                unknown = self.installer.unknown(event.dpid)
                for group, key in self.plane.entries_found(event.dpid, unknown):
                    self._effects += self.senders.restore(group, key, Sender(False, "", now), now)
        elif self.senders.flow_stats_received(event, now):
            self._rebalance_soon(now)

    def _loads_measured(self, event: LoadsMeasured, now: float) -> None:
        if self.forest.loads.measured(event.loads):
            self._rebalance_soon(now)

    # Time

    def _deadline_reached(self, _event: DeadlineReached, now: float) -> None:
        self._apply(self.membership.on_deadline(now), now)
        self._effects += self.installer.on_deadline(now)
        self._effects += self.senders.on_deadline(now)
        self._effects += self.topology.on_deadline(now)
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
        self.trees_changed(self.forest.rebalance(), now)

    def _look_for_room(self, now: float) -> None:
        if len(self.forest) < self.policy.limits.groups:
            self._reconsider(now)
        else:
            self._set_due(Due.ROOM, now + ROOM_INTERVAL_S)

    def _release(self, now: float) -> None:
        """End the time of grace: what nobody confirmed or accounts for goes."""
        for event in self.journal.unconfirmed():
            self._follow(event, now)
        self._effects += self.plane.release(now)
        self._set_due(Due.PURGE, now + PURGE_AFTER_S)

    def _purge(self, now: float) -> None:
        self._effects += self.installer.release_unknown(now)

    # Journal

    def _journal_read(self, event: JournalRead, now: float) -> None:
        restored = read_records(event.records)
        self.operator.restore(restored.operator, now)
        self.topology.assume(restored.topology, now)
        self.journal.assume(restored.topology)
        self._apply(self.membership.restore(restored.routers, now), now)
        for group in restored.groups:
            self._apply(self.membership.restore(group.members, now), now)
            for key, sender in group.senders:
                self._effects += self.senders.restore(group.address, key, sender, now)
            self._effects += self.plane.adopt(group.address, group.links, group.tree_version, now)
        if restored.faults:
            text = f"{restored.faults} records of the journal could not be read and were left out"
            self._effects.append(Notice("journal-faulty", text, (("records", restored.faults),)))

    def _forest(self, graph: Graph) -> Forest:
        multicast = self.policy.multicast
        return Forest(graph, multicast.tree, multicast.seed, multicast.default_rate_bps)
