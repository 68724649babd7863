"""The multicast core: frozen events in, frozen effects out.

frame -> wire -> membership -> admission -> groups (trees, flow entries) -> installer -> edits
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from controller.config.policy import Policy
from controller.datapath.core import DatapathCore
from controller.datapath.lanes import Urgency
from controller.effects import ActionRefused, ActionTaken, Effect
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
    TablesReceived,
)
from controller.kernel.domains import domain_of
from controller.log import WriteLog
from controller.multicast.admission_reports import ROOM_INTERVAL_S
from controller.multicast.due import Due
from controller.multicast.effects import Audit
from controller.multicast.events import LoadsMeasured, PolicyLoaded
from controller.multicast.group import Sender
from controller.multicast.stages import MulticastStages
from controller.service_classes.pool import FlowsUsed
from topology.events import TOPOLOGY_EVENTS, TopologyEvent

Output: TypeAlias = Effect | Audit | WriteLog | ActionTaken | ActionRefused

PURGE_AFTER_S = 1.0
"""How long after that groups have to move to entries of their own before the old ones go."""


class MulticastCore(MulticastStages):
    """Hands each event to the stages that it concerns, and what follows back.

    `policy` is the operator's, `now` the current time in seconds; every later time is on the same clock. `datapath`
    is what the core shares with others of each switch (see `Installer`).
    """

    def __init__(self, policy: Policy, now: float, datapath: DatapathCore | None = None) -> None:
        super().__init__(policy, now, datapath)
        self._last_rebalance_s = now
        self.handlers: dict[type, Callable[[Any, float], None]] = {
            PacketReceived: self.frames.packet_received,
            DeadlineReached: self._deadline_reached,
            **dict.fromkeys((BarrierReplied, CheckRequested), self._installer_event),
            EditFailed: self._edit_failed,
            TablesReceived: self._tables_received,
            FlowStatsReceived: self._flow_stats_received,
            TableChanged: self._table_changed,
            SwitchConnected: self._switch_connected,
            SwitchDisconnected: self._switch_disconnected,
            PortChanged: self._port_changed,
            PolicyLoaded: self.following.policy_loaded,
            **self.restart.handlers,
            LoadsMeasured: self._loads_measured,
            FlowsUsed: lambda event, _now: self.aliases.pool_used(event),
            **dict.fromkeys(TOPOLOGY_EVENTS, self._topology_changed),
            **self.operator.handlers,
            **self.labels.handlers,
            **self.addresses.handlers,
            **self.campaigns.handlers,
        }
        self._due_handlers: dict[Due, Callable[[float], None]] = {
            Due.READ: self._others_late,
            Due.RELEASE: self._release,
            Due.PURGE: self._purge,
            Due.REBALANCE: self._rebalance,
            Due.ROOM: self._look_for_room,
            Due.FABRICS: self._fabrics_changed,
            Due.JUDGE: self.reconsideration.advance,
        }

        self.flood.brought = self._flood_brought

    def handle(self, event: Any, now: float) -> list[Output]:
        """Take one event and return what is to be done, in order; KeyError for an event of unknown type."""
        restart, outbox = self.restart, self.outbox
        restart.now = now
        if restart.follows:
            now = restart.stands_at_s
        outbox.now, outbox.effects = now, []
        self.handlers[type(event)](event, now)
        if (self.slots.is_due and not self.slots.settles_alone()) or not self.gate.room.is_quiet():
            self._serve_waiting(now)
        return restart.told(outbox.effects) if restart.follows else outbox.effects

    def packets_received(self, events: Iterator[PacketReceived], now: float, effects: list[Output]) -> None:
        """Take packet-ins that came together, as `handle` would one after the other, and add what is to be done.

        Groups that wait for room are served after the last. Where one raises, which is a defect, the iterator stands
        behind it, and so much of what followed is added.
        """
        if self.restart.follows:
            for event in events:
                effects += self.handle(event, now)
            return
        self.restart.now = now
        outbox, take = self.outbox, self.frames.packet_received
        outbox.now, outbox.effects = now, effects
        for event in events:
            take(event, now)
        if (self.slots.is_due and not self.slots.settles_alone()) or not self.gate.room.is_quiet():
            self._serve_waiting(now)

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
            self.pending_writes.due_s,
            self.senders.next_deadline(),
            self.tagged.next_deadline(),
            self.stale.next_deadline(),
            self.membership_policer.next_deadline(),
            self.proxy.next_deadline(),
            self.aliases.next_deadline(),
            self.swapping.next_deadline(),
            self.idle_members.next_deadline(),
            self.topology.next_deadline(),
            self.restart.due_s,
            self.due.next(),
        ):
            if due_s is not None and (soonest is None or due_s < soonest):
                soonest = due_s
        return soonest

    def _serve_waiting(self, now: float) -> None:
        """Serve groups that were refused for want of room, as far as there is some now."""
        waiting = self.waiting
        waiting.serve(now)
        if waiting.is_going_on():
            self.due.set(Due.ROOM, now)
        elif waiting.is_forgetful():
            self.due.set_sooner(Due.ROOM, now + ROOM_INTERVAL_S)

    # Topology

    def _topology_changed(self, event: TopologyEvent, now: float) -> None:
        if self.journal.assumes:
            if not self.journal.confirm(event):
                return
            self.topology.confirmed(event, now)
        self.topology.follow(event, now)

    def _fabrics_changed(self, now: float) -> None:
        """Have each fabric go by queriers of its own, as fabrics are now."""
        for vlan_id, membership in self.memberships.all():
            self.following_members.apply(membership.fabrics_changed(now), now, vlan_id=vlan_id)
        self.proxy.fabrics_changed(now)
        self.outbox.effects += self.fabric_names.changes(self.grace.is_running)

    # Switches

    def _flood_brought(self, dpid: int) -> None:
        """Have it counted how many entries of a switch stay whatever groups do: others than before, by now."""
        if self.swapping.is_used:
            self.swapping.accounts.limits.count_later((dpid,))

    def _switch_connected(self, event: SwitchConnected, now: float) -> None:
        self.switches.switch_connected(event, self.grace.is_running)
        self.outbox.effects += self.plane.switch_version(event.dpid, event.ofp_version, now)
        self.flooding.soon(now, event.dpid)
        self.senders.switch_version(event.dpid, event.ofp_version)
        self.swapping.switch_connected(event.dpid)
        self.tagged.switch_connected(event.dpid, now)
        self.stale.switch_connected(event.dpid, now)
        self.membership_policer.switch_connected(event.dpid, event.ofp_version)
        self.sections.switch_connected(event, now)
        self.outbox.effects += self.installer.switch_connected(event.dpid, event.ofp_version, now)
        self.restart.switch_connected(event.dpid, now)

    def _switch_disconnected(self, event: SwitchDisconnected, now: float) -> None:
        self.switches.connected.discard(event.dpid)
        self.campaigns.switch_disconnected(event.dpid)
        self.flooding.switch_disconnected(event.dpid)
        self.tagged.switch_disconnected(event.dpid)
        self.stale.switch_disconnected(event.dpid)
        self.outbox.effects += self.installer.switch_disconnected(event.dpid, now)
        self.sections.switch_disconnected(event.dpid, now)

    def _port_changed(self, event: PortChanged, now: float) -> None:
        if self.switches.port_changed(event):
            self.flooding.soon(now, event.dpid)
        self.sections.port_changed(event)

    def _installer_event(self, event: Any, now: float) -> None:
        self.outbox.effects += self.installer.handle(event, now)
        self.topology.entries_confirmed(event.dpid, now)

    def _edit_failed(self, event: EditFailed, now: float) -> None:
        if not self.swapping.questions.refused(event):
            self._installer_event(event, now)

    def _tables_received(self, event: TablesReceived, _now: float) -> None:
        self.outbox.perform(self.swapping.questions.told(event))

    def _table_changed(self, event: TableChanged, now: float) -> None:
        self.topology.entries_confirmed(event.dpid, now)
        if event.was_read:
            self._switch_read(event.dpid, now)

    def _switch_read(self, dpid: int, now: float) -> None:
        """Ask a switch what its tables have room for; take over what it holds after a start of the controller."""
        self.outbox.perform(self.swapping.questions.ask(dpid, now))
        if self.grace.is_running and self.installer.is_read(dpid):
            if not self.installer.installed(dpid):
                self.flooding.disinherit(dpid, now)
            for group, key in self.plane.found.take(dpid, self.installer.unknown(dpid)):
                if self.vlan_ports.has(key.dpid, key.port_no, domain_of(group)):
                    self.outbox.effects += self.senders.restore(group, key, Sender(False, "", now), now)
            self.outbox.effects += self.found_swaps.switch_read(dpid, now)

    def _flow_stats_received(self, event: FlowStatsReceived, now: float) -> None:
        if self.tagged.owns_poll(event):
            self.outbox.effects += self.tagged.flow_stats_received(event, now)
        elif self.stale.owns_poll(event):
            self.outbox.effects += self.stale.flow_stats_received(event, now)
        elif not self.senders.owns_poll(event):
            self._installer_event(event, now)
            self._switch_read(event.dpid, now)
        elif self.senders.flow_stats_received(event, now):
            self._rebalance_soon(now)

    def _loads_measured(self, event: LoadsMeasured, now: float) -> None:
        self.campaigns.view.loads_measured(event)
        self.aliases.drops_measured(event)
        if self.plane.forest.loads.measured(event.loads):
            self._rebalance_soon(now)

    # Time

    def _deadline_reached(self, _event: DeadlineReached, now: float) -> None:
        if self.restart.is_under_way:
            self.restart.advance()  # what follows from the half of what there was would have to be undone
            return
        for vlan_id, effects in self.memberships.on_deadline(now):
            self.following_members.apply(effects, now, vlan_id=vlan_id)
        self.outbox.effects += self.installer.on_deadline(now)
        self.outbox.effects += self.senders.on_deadline(now)
        self.outbox.effects += self.tagged.on_deadline(now)
        self.outbox.effects += self.stale.on_deadline(now)
        for (dpid, port_no), family, notice in self.membership_policer.released(now):
            self.outbox.effects.append(notice)
            self.following_members.apply(self.membership.ask(*self.legs.home((dpid, port_no)), family, now), now)
        self.outbox.effects += self.topology.on_deadline(now)
        self.outbox.effects += self.aliases.on_deadline(now)
        self.outbox.effects += self.swapping.on_deadline(now)
        self.idle_members.on_deadline(now)
        self.proxy.on_deadline(now)
        for what in self.due.due(now):
            self._due_handlers[what](now)
        self.outbox.effects += self.journal.on_deadline(now)

    def _rebalance_soon(self, now: float) -> None:
        interval_s = self.policy.multicast.rebalance_interval_s
        if interval_s > 0 and Due.REBALANCE not in self.due:
            self.due.set(Due.REBALANCE, max(now, self._last_rebalance_s + interval_s))

    def _rebalance(self, now: float) -> None:
        self._last_rebalance_s = now
        self.topology.finish_repairs(now)
        self.trees.follow(self.plane.forest.rebalance(), now, Urgency.BULK)

    def _look_for_room(self, now: float) -> None:
        """Ask anew about everybody where not all that wait are remembered; `handle` serves those that are."""
        if self.waiting.take_forgotten():
            self.reconsideration.judge_all(now)

    def _others_late(self, now: float) -> None:
        """Wait no longer for switches that were not read to tell which groups are in."""
        self.outbox.effects += self.found_swaps.others_late(now)

    def _release(self, now: float) -> None:
        """End the time of grace: what nobody confirmed or accounts for goes."""
        for event in self.journal.unconfirmed():
            self.topology.follow(event, now)
        for dpid in list(self.switches.inherited):
            self.flooding.disinherit(dpid, now)
        self.outbox.effects += self.found_swaps.end(now)
        self.outbox.effects += self.plane.release(now)
        self.swapping.touch_all()
        self.proxy.started(now)
        self.due.set(Due.PURGE, now + PURGE_AFTER_S)

    def _purge(self, now: float) -> None:
        self.outbox.effects += self.installer.release_unknown(now)
