"""The discovery core: switch events and packets in; topology events, LLDP frames and first flow entries out."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from controller.datapath.core import DatapathCore
from controller.discovery.backup_legs import BackupLegs
from controller.discovery.base_rules import first_rules, hold_rule, is_tour, policer_rules
from controller.discovery.detection import ProbingPace
from controller.discovery.graces import Graces
from controller.discovery.hosts import HostTable
from controller.discovery.intake import DiscoveryIntake, Output
from controller.discovery.journal import FormerRun, HostJournal, HostsFollowed, HostsRead
from controller.discovery.lacp_legs import LacpLegs
from controller.discovery.leg_fabrics import LegFabrics
from controller.discovery.legs import HostLegs
from controller.discovery.moved import AGAIN_S, moved_frames
from controller.discovery.port_table import PortTable, SwitchPresence
from controller.discovery.ports import PortState
from controller.discovery.remembered import RememberedHosts
from controller.discovery.settings import DiscoveryChanged, DiscoverySettings, SecretGiven
from controller.discovery.timers import RESTART_GRACE_S, Timer, TimerKind
from controller.discovery.vlan_access import VlanAccess
from controller.effects import Edit, Notice, Put, Remove, SendPacket
from controller.events import (
    BarrierReplied,
    CheckRequested,
    DeadlineReached,
    EditFailed,
    FlowStatsReceived,
    JournalLost,
    PacketReceived,
    Port,
    PortChanged,
    SwitchConnected,
    SwitchDisconnected,
    TableChanged,
)
from controller.kernel.aggregations import aggregations_of, concerned
from controller.kernel.deadlines import Deadlines
from controller.kernel.notices import PortNotices
from controller.kernel.ports import End
from controller.rules.inspection import Inspection
from controller.rules.installer import Installer
from controller.rules.model import FlowEntry
from controller.rules.pipeline import DISCOVERY_TAG
from controller.wire.packets import Packet
from topology.events import HostGone, HostLearnt, PortRole, SwitchDown, SwitchUp, TopologyEvent
from topology.live import LiveFabric

COST_AT_ONCE, TOUR_COST = 128, 8
"""Timers and effects of one turn; a tour whose frame may be missed, or a hub's tours, cost as much as so many."""

_OF_TOURS = frozenset((TimerKind.TOUR_CHECK, TimerKind.HUB))

SEGMENT_LOOPED, SEGMENT_RELEASED = "segment-looped", "segment-released"
"""A port is held, or is not any more, for a segment behind somebody else's switch; each is told every time."""


class DiscoveryCore:
    """Finds switches, links and hosts.

    Parameters
    ----------
    settings : DiscoverySettings
        Timers and bounds; ValueError where they contradict each other.
    secret : bytes
        16 to 64 bytes that hosts cannot know; proves our LLDP frames to be ours. ValueError for another length.
    datapath : DatapathCore, optional
        What it shares with other cores of each switch; see `Installer`.
    """

    def __init__(self, settings: DiscoverySettings, secret: bytes, datapath: DatapathCore | None = None) -> None:
        if (problem := settings.problem()) is not None:
            raise ValueError(problem)
        self._settings = settings
        self.fabric = LiveFabric(aggregations_of(settings.link_aggregations))
        self._out: list[Output] = []
        self._notices = PortNotices(lambda notice: self._out.append(notice))
        self.counters = self._notices.counters
        self._remembered = RememberedHosts()
        self._deadlines: Deadlines[Timer] = Deadlines()
        self._installer = Installer(DISCOVERY_TAG, hold_unknown=settings.vlans.is_used or is_tour, datapath=datapath)
        self._installer.use_policy(settings.check_interval_s, settings.edits)
        self.is_open = self._installer.is_open
        self._table = PortTable(settings, secret, self._deadlines, self)
        self._switches, self._ports = self._table.switches, self._table.ports
        self._graces = Graces(self._switches, self._deadlines, self.tell)
        self._vlans = VlanAccess(settings.vlans, self._switches, self._ports, self)
        self._legs = HostLegs(self.fabric, self.emit, settings.link_aggregations, lambda end: self._backups.able(end))
        around = self._legs.told, self.counted, self._was_heard, self._vlans.framed, self.fabric.fabrics.is_one
        self._hosts = HostTable(settings, self._deadlines, *around)
        self.lacp_legs = LacpLegs(settings.link_aggregations, self._ports, self._deadlines, self)
        self._backups = BackupLegs(settings.link_aggregations, self._ports, self, self._hosts.ask)
        legs = self.fabric.fabrics, settings.link_aggregations, self._ports, self._deadlines, self
        followed = self.lacp_legs.lacp, self._hosts.fabrics_joined, self._backups.follow
        self._leg_fabrics = LegFabrics(*legs, *followed)
        known = self._ports, self._table, self._hosts, self._vlans, self._legs, self.lacp_legs, self._backups
        self._intake = DiscoveryIntake(self, settings, *known, self.counters, self.counted)
        kept = self._hosts.hosts, self._remembered.by_port, self._table.neighbours
        self.packets_received = self._intake.packets_received
        self._former, self._journal = FormerRun(), HostJournal(*kept)
        self._due: dict[TimerKind, Callable[[Any, float], None]] = {
            **self._table.due,
            TimerKind.READY: self._switch_ready,
            TimerKind.GRACE: self._remove_switch,
            TimerKind.REMEMBERED: self._forget_remembered,
            TimerKind.HOST: self._hosts.host_due,
            TimerKind.CHALLENGE: self._hosts.challenge_due,
            TimerKind.MOVED: self._tell_moved,
            TimerKind.LACP: self.lacp_legs.lacp.due,
            TimerKind.LEG_FABRICS: self._leg_fabrics.due,
            TimerKind.CARRIER: self._carrier_due,
            TimerKind.RELEASE: lambda _none, now: self._out.extend(self._installer.release_unknown(now)),
        }
        self.handlers: dict[type, Callable[[Any, float], tuple[Output, ...]]] = {
            PacketReceived: self._intake.frame_received,
            SwitchConnected: lambda event, now: self.switch_connected(
                event.dpid, event.ofp_version, event.ports, now
            ),
            SwitchDisconnected: lambda event, now: self.switch_disconnected(event.dpid, now),
            PortChanged: lambda event, now: self.port_changed(event.dpid, event.port, event.deleted, now),
            **dict.fromkeys((BarrierReplied, EditFailed, FlowStatsReceived, CheckRequested), self._installer_event),
            TableChanged: self._table_changed,
            DeadlineReached: lambda _event, now: self.on_deadline(now),
            **dict.fromkeys((HostsRead, HostsFollowed), self._hosts_read),
            JournalLost: self._journal_lost,
            DiscoveryChanged: lambda event, now: self.settings_changed(event.settings, now),
            SecretGiven: self._table.frames.secret_given,
        }

    def handle(self, event: object, now: float) -> tuple[Output, ...]:
        """Take one event of `controller.events` and return what it leads to, in order; KeyError for any other."""
        return self.handlers[type(event)](event, now)

    @property
    def xid_tag(self) -> int:
        """The upper 8 bits of the transaction ids of this core's messages."""
        return self._installer.xid_tag

    @property
    def entries(self) -> Inspection:
        """What switches hold of the flow entries that this core wants."""
        return self._installer

    @property
    def pace(self) -> ProbingPace:
        """How discovery fares with its budget of frames."""
        return self._table.detection.pace

    def snapshot(self) -> tuple[TopologyEvent, ...]:
        """Return the events that tell all of the present state to somebody who heard none of it."""
        return self.fabric.snapshot()

    def binding_conflict(self, mac: bytes, address: bytes, dpid: int, port_no: int) -> bool:
        """Tell whether a source is false at this port: see `LiveFabric.binding_conflict`."""
        return self.fabric.binding_conflict(mac, address, dpid, port_no)

    def next_deadline(self) -> float | None:
        """Return when `on_deadline` is due, None for never."""
        deadlines = (self._deadlines.next(), self._installer.next_deadline(), self._journal.due_s)
        return min((deadline for deadline in deadlines if deadline is not None), default=None)

    def on_deadline(self, now: float) -> tuple[Output, ...]:
        """Do some of what has come due; where there is more, the next deadline is not later than now."""
        due = self._deadlines.next()
        self._table.behind_s = 0.0 if due is None else max(0.0, now - due)
        cost = 0
        for timer in self._deadlines.due(now):
            self._due[timer.kind](timer.subject, now)
            cost += TOUR_COST if timer.kind in _OF_TOURS else 1
            if cost + len(self._out) >= COST_AT_ONCE:
                break
        self._out += self._installer.on_deadline(now)
        self._out += self._journal.on_deadline(now)
        return self.outputs(now)

    def settings_changed(self, settings: DiscoverySettings, now: float) -> tuple[Output, ...]:
        """Go by other settings: link capacities at once, times from their next use on, bounds for what comes.

        ValueError where they contradict each other; those in force stay then.
        """
        if (problem := settings.problem()) is not None:
            raise ValueError(problem)
        self._settings = settings
        self._hosts.settings_changed(settings)
        self._table.settings_changed(settings, now)
        self._aggregate(settings, now)
        self._intake.settings_changed(settings)
        if self._vlans.use(settings.vlans, now):
            for end in self._ports:
                self._hosts.keep_domains(self._legs.home(end), self._vlans.of(end).vlans(), now)
        self._installer.use_policy(settings.check_interval_s, settings.edits)
        return self.outputs(now)

    def switch_connected(self, dpid: int, ofp_version: int, ports: Iterable[Port], now: float) -> tuple[Output, ...]:
        """Take in a switch that finished its handshake, or did so again before its disconnection was noticed."""
        if not self._switches:
            self._deadlines.set(Timer(TimerKind.RELEASE, None), now + RESTART_GRACE_S)
        self._graces.connects(dpid, self._settings.switch_grace_s, now)
        switch = self._switches.get(dpid)
        if switch is not None and switch.ofp_version != ofp_version:
            self._remove_switch(dpid, now)
            switch = None
        if switch is None:
            switch = self._switches[dpid] = SwitchPresence(ofp_version)
            self.emit(SwitchUp(dpid, ofp_version))
        elif not switch.connected:
            self._graces.over(dpid)
            self._table.found_again(dpid)
        if not switch.ready:
            self._deadlines.set(Timer(TimerKind.READY, dpid), now + self._settings.base_rules_latest_s)
        # Ports may have a role as soon as they are described, and then their entries for VLANs.
        self._vlans.switch_connected(dpid, now)
        self._table.describe(dpid, tuple(ports), now)
        self.install(dpid, [Put(rule) for rule in first_rules(ofp_version, dpid)], now)
        self.lacp_legs.follow_switch(dpid, now)
        self._out += self._installer.switch_connected(dpid, ofp_version, now)
        return self.outputs(now)

    def switch_disconnected(self, dpid: int, now: float) -> tuple[Output, ...]:
        """Take in that a switch has no connection: after a grace, or with its last link, it is taken out."""
        switch = self._switches.get(dpid)
        if switch is not None and switch.connected:
            grace_s = self._settings.switch_grace_s
            text = f"has lost its connection: while it forwards it stays in the fabric, for {grace_s:g} s at most"
            self.counted("switch-lost", (dpid, 0), text, now)
            self._deadlines.cancel(Timer(TimerKind.READY, dpid))
            self._table.lost(dpid, now)
            self._graces.lost(dpid, grace_s, now)
            self._out += self._installer.switch_disconnected(dpid, now)
            if grace_s == 0:
                self._remove_switch(dpid, now)
        return self.outputs(now)

    def port_changed(self, dpid: int, port: Port, deleted: bool, now: float) -> tuple[Output, ...]:
        """Take in a port status message."""
        if dpid in self._switches:
            if deleted:
                self._table.delete(dpid, port.port_no, now)
                self.suspect_table(dpid, now)
            else:
                self._table.update(dpid, port, now)
            self.lacp_legs.follow((dpid, port.port_no), now)
        return self.outputs(now)

    def packet_received(
        self, dpid: int, in_port: int, packet: Packet, now: float, vlan_id: int = 0
    ) -> tuple[Output, ...]:
        """Learn from a packet that a switch sent to the controller, in a VLAN, 0 for the fabric's own domain."""
        return self._intake.packet_received(dpid, in_port, packet, now, vlan_id)

    def restore(self, hosts: Iterable[HostLearnt], now: float) -> tuple[Output, ...]:
        """Take hosts known from before a restart; each is announced, and asked, once its port proves to be one."""
        for host in hosts:
            end = self._legs.home((host.dpid, host.port_no))
            self._remember(end, [(host.mac, host.addresses)], now)
            if self.fabric.working_legs(end):
                self._recall(end, now)
        return self.outputs(now)

    def _journal_lost(self, _event: JournalLost, now: float) -> tuple[Output, ...]:
        self._journal.begin_anew(now)
        return ()

    def _hosts_read(self, event: HostsRead | HostsFollowed, now: float) -> tuple[Output, ...]:
        self._former.take(event.records)
        if isinstance(event, HostsFollowed):
            return ()
        former, self._former = self._former, FormerRun()
        self._journal.was_read(former.record_count)
        self._out += former.faults_told()
        self._table.neighbours.restore(former.neighbours, now + self._settings.host_timeout_s)
        return self.restore(former.hosts.values(), now)

    def outputs(self, now: float) -> tuple[Output, ...]:
        """Return what has followed since it was last asked."""
        while (cut_off := self._table.cut_off()) is not None:
            self._remove_switch(cut_off, now)
        if not self._out:
            return ()
        self._leg_fabrics.look(now)
        out = tuple(self._out)
        self._out.clear()
        for output in out:
            if isinstance(output, HostLearnt | HostGone):
                self._journal.touch(output.mac, now)
        return out

    def emit(self, output: TopologyEvent | SendPacket) -> None:
        """Take an event or frame; what is told to others holds here first."""
        if not isinstance(output, SendPacket):
            self.fabric.apply(output)
        self._out.append(output)

    def counted(self, kind: str, end: End, does: str, now: float) -> None:
        """Count, and give notice of what a port (0 stands for its switch) does, now and then."""
        self._notices.counted(kind, end, does, now)

    def request_barrier(self, dpid: int) -> int:
        """Have a switch say that it has done all it was sent."""
        effect = self._installer.barrier(dpid)
        self._out.append(effect)
        return effect.first_xid

    def suspect_table(self, dpid: int, now: float) -> None:
        """Have a switch's flow entries looked at, which may be gone."""
        self._out += self._installer.table_suspected(dpid, now)

    def install(self, dpid: int, edits: list[Edit], now: float) -> None:
        """Have flow entries put and removed."""
        self._out += self._installer.change([[(dpid, edit) for edit in edits]], now)

    def in_sync(self, dpid: int) -> bool:
        """Tell whether a switch holds the flow entries that it shall."""
        return self._installer.in_sync(dpid)

    def has_hosts(self, end: End) -> bool:
        """Tell whether hosts are known at a port."""
        return self._hosts.has_some(self._legs.home(end))

    def _was_heard(self, end: End, since_s: float) -> bool:
        """Tell whether all would have been heard that hosts at a port, or at a group's legs, said since a time."""
        return self._legs.heard(end, lambda leg: self._table.was_heard(leg, since_s))

    def _aggregate(self, settings: DiscoverySettings, now: float) -> None:
        """Go by other link aggregation groups: hosts at their ports are found anew when they send."""
        before, after = self.fabric.aggregations, aggregations_of(settings.link_aggregations)
        ends = list(concerned(before, after))
        for end in ends:
            self._forget_remembered(end, now)
            self._hosts.leave(end, now)
            over = self._legs.forget(end)
            if over is not None:
                self.tell(over)
        if ends:
            self.fabric.aggregate(after)
        self._legs.name(settings.link_aggregations)
        for end in ends:
            self._review_legs(end)
        self.lacp_legs.use(settings.link_aggregations, now)
        self._backups.use(settings.link_aggregations, now)
        self._leg_fabrics.use(settings.link_aggregations, now)

    def _review_legs(self, end: End) -> None:
        """Tell of a link aggregation group that lacks legs, or does no longer."""
        if end in self.fabric.aggregations.homes and (notice := self._legs.review(end)) is not None:
            self.tell(notice)

    def _carrier_due(self, end: End, now: float) -> None:
        self._table.due[TimerKind.CARRIER](end, now)
        self.lacp_legs.follow(end, now)

    def role_may_differ(self, port: PortState, now: float) -> None:
        """Announce the role of a port, if it has changed."""
        self._table.set_role(port, now)

    def tell(self, notice: Notice) -> None:
        """Count and give a notice that is to be told each time."""
        self.counters[notice.kind] += 1
        self._out.append(notice)

    def _installer_event(self, event: Any, now: float) -> tuple[Output, ...]:
        self._out += self._installer.handle(event, now)
        if isinstance(event, BarrierReplied):
            self._table.liveness.barrier_replied(event.dpid, event.xid, now)
            self._table.tours.barrier_replied(event.dpid, event.xid, now)
        return self._table_changed(event, now)

    def _table_changed(self, event: Any, now: float) -> tuple[Output, ...]:
        switch = self._switches.get(event.dpid)
        if switch is not None and not switch.ready and self._installer.in_sync(event.dpid):
            self._switch_ready(event.dpid, now)
        return self.outputs(now)

    def _switch_ready(self, dpid: int, now: float) -> None:
        self._deadlines.cancel(Timer(TimerKind.READY, dpid))
        self._table.ready(dpid, now)

    def _remove_switch(self, dpid: int, now: float) -> None:
        switch = self._switches[dpid]
        ends = list(switch.ports.values())
        self._backups.switch_lost(dpid, now)
        shared = [port.end for port in ends if self._legs.others(port.end, without_switch=True)]
        for port in ends:
            if port.end not in shared:
                home = self._legs.home(port.end)
                hosts = self._hosts.at(home)
                self._hosts.leave(home, now)
                self._remember(home, hosts, now)
        self._table.remove_switch(dpid, now)
        self.lacp_legs.follow_switch(dpid, now)
        self._deadlines.cancel(Timer(TimerKind.READY, dpid))
        self._graces.over(dpid)
        self.install(dpid, [Remove(rule.key) for rule in first_rules(switch.ofp_version, dpid)], now)
        self._vlans.switch_removed(dpid, now)
        self._out += self._installer.switch_disconnected(dpid, now)
        self.emit(SwitchDown(dpid))
        for end in shared:
            self._legs.moved(end, self._hosts)
        for port in ends:
            self._review_legs(port.end)

    def neighbour_changed(self, end: End, now: float) -> None:
        """Keep for a restart which switch a port leads to."""
        self._journal.touch(end, now)

    def role_left(self, port: PortState, former: PortRole, now: float) -> None:
        """Let the hosts of a port go that leads to hosts no more."""
        self._leg_fabrics.role_left(port.end, now)
        self._backups.lost(port, now)
        if self._legs.others(port.end):
            return
        home = self._legs.home(port.end)
        if port.role in (PortRole.DOWN, PortRole.TRUNK):
            self._forget_remembered(home, now)
        if former is PortRole.EDGE:
            count = len(self._hosts.at(home))
            if count and port.role is PortRole.TRUNK:
                text = f"leads to a switch now: the {count} hosts that were heard there are forgotten"
                self.counted("edge-became-trunk", port.end, text, now)
            self._hosts.leave(home, now, is_down=port.role is PortRole.DOWN)

    def role_taken(self, port: PortState, now: float) -> None:
        """Let in what the port may have; learn the hosts that it showed before it was known to lead to hosts."""
        self._vlans.port_changed(port, now)
        early, port.early = port.early, {}
        home = self._legs.home(port.end)
        if port.role is PortRole.EDGE:
            self._recall(home, now)
            for (mac, address), seen_s in early.items():
                if self._vlans.lets_in(port.end, mac):
                    self._hosts.seen(mac, address, home, seen_s)
        self._review_legs(port.end)
        if port.role is not PortRole.EDGE and port.end in self.fabric.aggregations.homes:
            self._legs.moved(port.end, self._hosts)
            if port.role is PortRole.TRUNK:
                does = "leads to a switch of the fabric, and is in a link aggregation group: it is no leg of it"
                self.counted("aggregation-leg-trunk", port.end, does, now)
            self._backups.follow(port, now)

    def hold_changed(self, port: PortState, now: float) -> None:
        """Have what arrives at a held port dropped, and tell the operator."""
        dpid, port_no = port.end
        rule = hold_rule(self._switches[dpid].ofp_version, port_no)
        self.install(dpid, [Put(rule) if port.held else Remove(rule.key)], now)
        self._vlans.port_changed(port, now)
        if port.held:
            low = min(port.lower)
            self._tell_moved(port.end, now)
            self._deadlines.set(Timer(TimerKind.MOVED, port.end), now + AGAIN_S)
            text = (
                f"Port {low[0]}:{low[1]} and port {dpid}:{port_no} lead to one segment behind a foreign switch: "
                f"port {dpid}:{port_no} is held discarding, so that there is no loop, while the other one is up."
            )
        else:
            text = f"Port {dpid}:{port_no} is held no longer: no other port leads to its segment."
        kind = SEGMENT_LOOPED if port.held else SEGMENT_RELEASED
        self.tell(Notice(kind, text, (("dpid", dpid), ("port_no", port_no))))

    def _tell_moved(self, end: End, _now: float) -> None:
        port = self._ports.get(end)
        if port is not None and port.held:
            low, is_one = min(port.lower), self.fabric.fabrics.is_one
            hosts = [host for host in self._hosts.hosts.values() if is_one(host.end[0], low[0])]
            self._out += moved_frames(low, {end, *port.lower}, hosts, self._vlans)

    def guard(self, port: PortState, now: float) -> None:
        """Keep a port's LLDP, ARP and ND from the controller for a while."""
        port.guarded_until_s = now + self._settings.guard_s
        text = f"receives too much LLDP, ARP or ND: its switch drops all of it for {self._settings.guard_s:g} s"
        self.counted("port-guarded", port.end, text, now)
        (dpid, port_no), vlans = port.end, self._vlans.of(port.end) if self._vlans.is_used else None
        for rule in policer_rules(self._switches[dpid].ofp_version, port_no, self._settings.guard_s, vlans):
            self.install_for_a_while(dpid, rule)

    def install_for_a_while(self, dpid: int, rule: FlowEntry) -> None:
        """Have a flow entry put that ends by itself."""
        self._out += self._installer.transient(dpid, rule)

    def _remember(self, end: End, hosts: list[tuple[bytes, tuple[bytes, ...]]], now: float) -> None:
        if (kept := self._remembered.keep(end, hosts, self._settings.remembered_hosts)) < len(hosts):
            text = "had more hosts than there is room to remember: some are found when they send"
            self.counted("remembered-limit", end, text, now)
        if kept:
            self._deadlines.set(Timer(TimerKind.REMEMBERED, end), now + self._settings.host_timeout_s)

    def _recall(self, end: End, now: float) -> None:
        self._deadlines.cancel(Timer(TimerKind.REMEMBERED, end))
        for mac, addresses in self._remembered.take(end):
            if self._vlans.lets_in(end, mac):
                self._hosts.remembered(mac, addresses, end, now)

    def _forget_remembered(self, end: End, _now: float) -> None:
        self._deadlines.cancel(Timer(TimerKind.REMEMBERED, end))
        self._remembered.take(end)
