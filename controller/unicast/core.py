"""The unicast core: topology events and packets in; flow entries, answers and relayed frames out."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

from controller.datapath.core import DatapathCore
from controller.datapath.lanes import Urgency
from controller.effects import Edit, Effect, Put, Remove, SendPacket
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
    SwitchesDrained,
    TableChanged,
)
from controller.kernel.aggregations import aggregations_of
from controller.kernel.deadlines import Deadlines
from controller.kernel.domains import OWN_DOMAIN, domain_of
from controller.kernel.notices import PortNotices
from controller.kernel.ports import End
from controller.kernel.vlan_ports import VlanPorts, ingresses
from controller.multicast.events import LoadsMeasured
from controller.rules.inspection import Inspection
from controller.rules.installer import Installer
from controller.rules.model import FlowEntry
from controller.rules.pipeline import OPENFLOW_1_0, UNICAST_TAG
from controller.rules.plans import DRAIN_S
from controller.service_classes.pool import AliasesUsed, FlowsUsed
from controller.unicast.base_rules import old_vlan_rules, standing_rules
from controller.unicast.changed_hosts import ChangedHosts
from controller.unicast.entries import trunk_rules
from controller.unicast.holdings import AwaitedLinks, FormerEntries, is_held, port_held, unconfirmed
from controller.unicast.intake import UnicastIntake
from controller.unicast.large_flows import LargeFlowControl
from controller.unicast.marks import Stage, UnicastMarks
from controller.unicast.policer import PacketInPolicer
from controller.unicast.readiness import Readiness
from controller.unicast.relays import Relays
from controller.unicast.resolution import Resolver
from controller.unicast.routes import Plan, Routes
from controller.unicast.settings import UnicastChanged, UnicastSettings
from controller.unicast.timers import UnicastDue, UnicastTimer
from controller.unicast.weights import PortsWeighed
from controller.wire.packets import Packet
from topology.events import (
    HostGone,
    HostLearnt,
    LinkDown,
    LinkUp,
    PortRole,
    PortRoleChanged,
    SwitchDown,
    SwitchUp,
)
from topology.host_names import shared_name
from topology.live import LiveFabric

ASKED_KEPT_S = 300.0
MAX_GONE_COUNT = 16384
"""Hosts that are gone of which it is remembered, for so long, which switches have entries for them."""


Output: TypeAlias = Effect | FlowsUsed

_TOPOLOGY_EVENTS = frozenset((SwitchUp, SwitchDown, LinkUp, LinkDown, PortRoleChanged, HostLearnt, HostGone))
_FLUSH, _RELEASE = UnicastTimer(UnicastDue.FLUSH), UnicastTimer(UnicastDue.RELEASE)


class UnicastCore:
    """Forwards between hosts by destination MAC address, and answers for them.

    Nothing is ever flooded by a switch: what many are to hear goes from the controller to edge ports, and what comes
    back from one of them does not count as its sender lives elsewhere. Hosts and addresses go by their names in
    domains (`controller.kernel.domains`), and each domain is a world of its own.
    """

    def __init__(self, settings: UnicastSettings, datapath: DatapathCore | None = None) -> None:
        self._settings = settings
        self.fabric = LiveFabric(aggregations_of(settings.link_aggregations))
        self._again: set[int] = set()
        self._installer = Installer(UNICAST_TAG, hold_unknown=is_held, datapath=datapath)
        self._installer.use_policy(settings.check_interval_s, settings.edits)
        self._vlan_ports = VlanPorts(settings.vlans, self.fabric)
        fabrics = self.fabric.fabrics
        self._routes = Routes(partial(port_held, self._installer), self._vlan_ports.is_tagged, fabrics)
        self._resolver = Resolver(self.fabric, settings, self)
        self._deadlines: Deadlines[UnicastTimer] = Deadlines()
        self._out: list[Output] = []
        self._now = 0.0
        self._changed_hosts = ChangedHosts(self.fabric, self._routes)
        self._base: dict[int, int] = {}
        self._by_port: dict[int, list[FlowEntry]] = {}
        self._urgent = self._begun = False
        self._former, self._awaited = FormerEntries(self._installer), AwaitedLinks()
        self._touched: set[int] = set()
        self._first: dict[End, None] = {}
        self._trunks: dict[int, set[int]] = {}
        self._gone_count = self._fabrics_version = 0
        self._relays = Relays(self.fabric, settings, self._vlan_ports, self.counted)
        self._policer = PacketInPolicer(self.fabric, settings, self._vlan_ports, self.counted, self._put_transient)
        self._notices = PortNotices(lambda notice: self._out.append(notice))
        self.counters = self._notices.counters
        self._readiness = Readiness(self.fabric, self._routes, self._installer, self._base, self.asked_for)
        self._large = LargeFlowControl(self.fabric, self._routes, self._installer, self.counters)
        self._large.use(settings.large_flows, 0.0)
        self._marks = UnicastMarks(settings.marking, self.fabric, self._vlan_ports)
        parts = self._routes, self._resolver, self._policer, self._vlan_ports, self._marks
        self._intake = UnicastIntake(self, self.fabric, settings, *parts, self.counters, self.counted)
        self.handlers: dict[type, Callable[[Any, float], None]] = {
            PacketReceived: lambda event, now: self._intake.frame_received(
                (event.dpid, event.in_port), event.data, now
            ),
            SwitchConnected: self._switch_connected,
            SwitchDisconnected: self._switch_disconnected,
            PortChanged: lambda _event, _now: None,
            **dict.fromkeys((BarrierReplied, EditFailed, CheckRequested), self._installer_event),
            FlowStatsReceived: self._flow_stats_received,
            LoadsMeasured: lambda event, _now: self._large.loads_measured(event),
            AliasesUsed: lambda event, _now: self._large.aliases_used(event.number),
            TableChanged: self._table_changed,
            DeadlineReached: self._deadline_reached,
            UnicastChanged: self._settings_changed,
            **dict.fromkeys((SwitchesDrained, PortsWeighed), self._ways_changed),
            SwitchUp: self._switch_up,
            SwitchDown: self._switch_down,
            LinkUp: self._link_changed,
            LinkDown: self._link_changed,
            PortRoleChanged: self._role_changed,
            HostLearnt: self._host_learnt,
            HostGone: self._host_gone,
        }

    def handle(self, event: object, now: float) -> tuple[Output, ...]:
        """Take one event of `controller.events` or `topology.events`; KeyError for any other."""
        self._now = now
        kind = type(event)
        if kind not in _TOPOLOGY_EVENTS:
            self.handlers[kind](event, now)
        elif self.fabric.apply(event):  # type: ignore[arg-type]
            self._awaited.follow(event, now)  # type: ignore[arg-type]
            self.handlers[kind](event, now)
        return self._outputs()

    def packet_received(self, dpid: int, in_port: int, packet: Packet, data: bytes, now: float) -> tuple[Output, ...]:
        """Take in a packet of the fabric's own domain that a switch sent here, decoded and as it came."""
        self._now = now
        self._intake.packet_received((dpid, in_port), packet, data, now)
        return self._outputs()

    @property
    def xid_tag(self) -> int:
        """The upper 8 bits of the transaction ids of this core's messages."""
        return self._installer.xid_tag

    @property
    def entries(self) -> Inspection:
        """What switches hold of the flow entries that this core wants."""
        return self._installer

    def in_sync(self, dpid: int) -> bool:
        """Tell whether a switch holds all entries that it shall, as far as is known."""
        return self._installer.in_sync(dpid)

    def next_deadline(self) -> float | None:
        """Return when `DeadlineReached` is due, None for never."""
        parts = (self._relays, self._policer, self._resolver, self._intake, self._installer, self._large)
        deadlines = [self._deadlines.next(), *(part.next_deadline() for part in parts)]
        return min((deadline for deadline in deadlines if deadline is not None), default=None)

    def port_to(self, dpid: int, mac: bytes) -> int | None:
        """Return the port that leads from a switch towards a host, by its name, None where there is none."""
        return self._routes.port_to(dpid, mac)

    def location_address(self, mac: bytes) -> bytes | None:
        """Return the address that frames for a host have between switches, by its name; None where it is unknown."""
        place = self._routes.place(mac)
        return None if place is None else place.address

    # What the resolver and the intake of frames need of the core

    def send(self, end: End, data: bytes, vlan_id: int = OWN_DOMAIN) -> None:
        """Send a frame of a domain out of one port, as the port has it; not out of one that is not in the domain."""
        framed = self._vlan_ports.framed(*end, data, vlan_id) if self._vlan_ports.is_used else data
        if framed is not None:
            self._out.append(SendPacket(end[0], (end[1],), framed))

    def ask(self, end: End, data: bytes, now: float, vlan_id: int = OWN_DOMAIN) -> None:
        """Send a host's question out of the port of the one that is to answer, as far as that port's bound allows.

        Else those who ask could make it answer so often that its own ARP and ND are dropped.
        """
        if self._policer.allow_question(end, now):
            self.send(end, data, vlan_id)

    def unready(self, one: HostLearnt, other: HostLearnt) -> int | None:
        """Return a switch that cannot yet forward between two hosts, None where all can."""
        return self._readiness.unready(one, other, self._now)

    def relay(self, origin: End, data: bytes, now: float, vlan_id: int = OWN_DOMAIN) -> None:
        """Send a frame out of all edge ports of its domain but `origin`, as far as the bounds allow."""
        self._out += self._relays.relay(origin, data, now, vlan_id)

    def count(self, kind: str) -> None:
        """Count something of which nobody need be told."""
        self.counters[kind] += 1

    def asked_for(self, dpid: int, mac: bytes, now: float) -> None:
        """Have a switch hold an entry for a host of which one of its own wants something."""
        edits = self._routes.ask(dpid, mac)
        if edits:
            self._change([edits], now)

    def counted(self, kind: str, end: End, does: str) -> None:
        """Count, and give notice of what a port does now and then."""
        self._notices.counted(kind, end, does, self._now)

    # Topology

    def _switch_up(self, event: SwitchUp, now: float) -> None:
        dpid, version = event
        self._base[dpid] = version
        stage: Stage = [(dpid, Put(rule)) for rule in self._standing_rules(dpid)]
        self._change([stage + self._marks.switch_up(dpid)], now)
        self._follow_ports(dpid, now)
        self._touched.add(dpid)
        self._flush_soon(now)

    def _switch_down(self, event: SwitchDown, now: float) -> None:
        dpid = event.dpid
        self._changed_hosts.note(*self._routes.hosts_at(dpid))
        self._touched.add(dpid)
        self._urgent = True
        self._is_back(dpid)
        self._flush(now)
        self._vlan_ports.ports_changed(dpid)
        self._routes.entered_by(dpid, {})
        trunks = self._trunks.pop(dpid, ())
        if dpid not in self._base:
            return
        rules = standing_rules(self._base.pop(dpid), trunks, self._vlan_ports.is_used) + self._by_port.pop(dpid, [])
        stage: Stage = [(dpid, Remove(rule.key)) for rule in rules]
        self._change([stage + self._marks.switch_down(dpid)], now, Urgency.BULK)
        self._relays.switch_down(dpid)
        self._policer.switch_down(dpid)

    def _role_changed(self, event: PortRoleChanged, now: float) -> None:
        """Let frames by location address in where another switch is, and nowhere else."""
        dpid, port_no, role = event
        self._vlan_ports.ports_changed(dpid)
        self._follow_ports(dpid, now)
        self._mark(self._marks.port_changed((dpid, port_no)), now)
        trunks = self._trunks.setdefault(dpid, set())
        if (role is PortRole.TRUNK) == (port_no in trunks):
            return
        trunks.symmetric_difference_update((port_no,))
        if self._base.get(dpid, OPENFLOW_1_0) != OPENFLOW_1_0:
            rules = trunk_rules(port_no, self._vlan_ports.is_used)
            edits: list[Edit] = [Put(rule) if port_no in trunks else Remove(rule.key) for rule in rules]
            self._change([[(dpid, edit) for edit in edits]], now)

    def _mark(self, stage: Stage, now: float) -> None:
        """Have what hosts send marked as it is to be now."""
        if stage:
            self._change([stage], now)

    def _follow_ports(self, dpid: int, now: float) -> None:
        """Bring an OpenFlow 1.0 switch, whose entries for frames of VLANs are by port, to what its ports have now."""
        if self._base.get(dpid) != OPENFLOW_1_0:
            return
        vlan_ports = self._vlan_ports
        entered = {vlan_id: ingresses(oifs, vlan_id) for vlan_id, oifs in vlan_ports.at(dpid).items() if vlan_id}
        had, wanted = self._by_port.get(dpid, []), old_vlan_rules(vlan_ports.all_vlans(), entered)
        keys = {rule.key for rule in wanted}
        self._by_port[dpid] = wanted
        edits: list[Edit] = [Remove(rule.key) for rule in had if rule.key not in keys]
        before = set(had)
        edits += [Put(rule) for rule in wanted if rule not in before]
        stage = [(dpid, edit) for edit in edits] + self._routes.entered_by(dpid, entered)
        if stage:
            self._change([stage], now)

    def _standing_rules(self, dpid: int) -> list[FlowEntry]:
        return standing_rules(self._base[dpid], self._trunks.get(dpid, ()), self._vlan_ports.is_used)

    def _link_changed(self, event: LinkUp | LinkDown, now: float) -> None:
        if isinstance(event, LinkUp):
            self._touched |= {event.dpid_a, event.dpid_b}
            self._first[event.dpid_a, event.port_a] = self._first[event.dpid_b, event.port_b] = None
            if self.fabric.fabrics.version != self._fabrics_version:
                self._fabrics_version = self.fabric.fabrics.version
                self._resolver.fabrics_joined(now)
        else:
            self._touched.update(event)
            self._urgent = True
        self._flush_soon(now)

    def _ways_changed(self, event: SwitchesDrained | PortsWeighed, now: float) -> None:
        self._routes.prefer(event)
        self._flush_soon(now)

    def _host_learnt(self, host: HostLearnt, now: float) -> None:
        self._mark(self._marks.host_learnt(host), now)
        timer = UnicastTimer(UnicastDue.GONE, host.mac)
        if timer in self._deadlines:
            self._deadlines.cancel(timer)
            self._gone_count -= 1
        place = self._routes.place(host.mac)
        if place is None or (place.dpid, place.port_no) != (host.dpid, host.port_no):
            self._changed_hosts.note(host.mac)
            self._flush_soon(now)
        self._resolver.host_learnt(host, now)

    def _host_gone(self, event: HostGone, now: float) -> None:
        self._mark(self._marks.host_gone(event), now)
        self._changed_hosts.note(event.mac)
        self._flush_soon(now)

    def _flush_soon(self, now: float) -> None:
        if _FLUSH not in self._deadlines or self._awaited.until_s(now) is not None:
            self._deadlines.set(_FLUSH, now + self._settings.settle_s)

    def _flush(self, now: float) -> None:
        """Let the entries follow what has changed since the last time; what is left goes on at once."""
        self._deadlines.cancel(_FLUSH)
        until_s = self._awaited.until_s(now)
        if until_s is not None:
            self._deadlines.set(_FLUSH, until_s)
            return
        hosts = self._changed_hosts.take(len(self._base))
        if self._vlan_ports.is_used:
            hosts = [(mac, host if host is None or self._may_be_at(host) else None) for mac, host in hosts]
        self._urgent |= bool(hosts)
        touched, self._touched = self._touched, set()
        again, self._again = self._again, set()
        urgency = Urgency.PROMPT if self._urgent else Urgency.BULK
        versions = self.fabric.ofp_versions()
        first = [
            (dpid, Put(rule))
            for dpid, port_no in self._first
            if port_no in self._trunks.get(dpid, ()) and versions.get(dpid, OPENFLOW_1_0) != OPENFLOW_1_0
            for rule in trunk_rules(port_no, self._vlan_ports.is_used)
        ]
        plans = self._routes.update(self.fabric.graph, versions, hosts, touched, again, urgency, first)
        for plan, plan_urgency, drains in plans:
            self._out += self._installer.change(plan, now, DRAIN_S if drains else 0.0, plan_urgency, drains)
        for mac, host in hosts:
            self._follow_asked(mac, host, now)
            if host is not None:
                self._resolver.host_learnt(host, now)
        if self._routes.is_behind or self._changed_hosts:
            self._deadlines.set(_FLUSH, now)
        else:
            self._urgent = False
            self._first.clear()

    def _may_be_at(self, host: HostLearnt) -> bool:
        """Tell whether the policy lets a host be where it is, which discovery may not have followed yet."""
        return self._vlan_ports.has(host.dpid, host.port_no, domain_of(host.mac))

    def _follow_asked(self, mac: bytes, host: HostLearnt | None, now: float) -> None:
        """Remember for a while who asked for a host that is gone; of one that is found switches may tell it."""
        timer = UnicastTimer(UnicastDue.GONE, mac)
        if host is not None:
            for dpid in self._former.switches_of(shared_name(mac)):
                if self.fabric.fabrics.is_one(dpid, host.dpid):
                    self.asked_for(dpid, mac, now)
        elif self._gone_count >= MAX_GONE_COUNT:
            self._routes.forget(mac)
        elif timer not in self._deadlines:
            self._gone_count += 1
            self._deadlines.set(timer, now + ASKED_KEPT_S)

    def _settings_changed(self, event: UnicastChanged, now: float) -> None:
        self._installer.use_policy(event.settings.check_interval_s, event.settings.edits)
        self._change(self._large.use(event.settings.large_flows, now), now)
        aggregations = aggregations_of(event.settings.link_aggregations)
        if aggregations != self.fabric.aggregations:
            self.fabric.aggregate(aggregations)
        before = {dpid: self._standing_rules(dpid) for dpid in self._base}
        had_vlans = self._vlan_ports.is_used
        are_vlans_others = self._vlan_ports.policy_loaded(event.settings.vlans)
        if stage := self._marks.replace(event.settings.marking):
            self._change([stage], now)
        if not are_vlans_others:
            return
        if self._vlan_ports.is_used != had_vlans:
            for dpid, former in before.items():
                rules = self._standing_rules(dpid)
                stage = [(dpid, Put(rule)) for rule in rules if rule not in former]
                stage += [(dpid, Remove(rule.key)) for rule in former if rule not in rules]
                self._change([stage], now)
        for dpid in self._base:
            self._follow_ports(dpid, now)
        self._changed_hosts.note(*(host.mac for host in self.fabric.hosts()))
        self._flush_soon(now)

    # Switches

    def _switch_connected(self, event: SwitchConnected, now: float) -> None:
        if not self._begun:
            self._begun = True
            self._deadlines.set(_RELEASE, now + self._settings.restart_grace_s)
        self._awaited.connected(event.dpid, now, self._deadlines.at(_RELEASE))
        self._out += self._installer.switch_connected(event.dpid, event.ofp_version, now)
        self._large.switch_connected(event.dpid, now)

    def _switch_disconnected(self, event: SwitchDisconnected, now: float) -> None:
        dpid = event.dpid
        if dpid in self._base and dpid not in self._routes.away:
            self._routes.away.add(dpid)
            found = (self._routes.destination_of(address) for address in unconfirmed(self._installer, dpid))
            unsure = self._routes.unsure[dpid] = {destination for destination in found if destination is not None}
            if unsure:
                self._again |= unsure
                self._urgent = True
                self._flush(now)
        self._former.disconnected(dpid)
        self._awaited.disconnected(dpid)
        self._out += self._installer.switch_disconnected(dpid, now)
        if unpinned := self._large.switch_disconnected(dpid):
            self._change([unpinned], now)

    def _flow_stats_received(self, event: FlowStatsReceived, now: float) -> None:
        if not self._large.owns_poll(event):
            self._installer_event(event, now)
            return
        for plan in self._large.flow_stats_received(event, now):
            self._change(plan, now)

    def _installer_event(
        self, event: BarrierReplied | EditFailed | FlowStatsReceived | CheckRequested, now: float
    ) -> None:
        self._out += self._installer.handle(event, now)
        self._table_changed(event, now)

    def _table_changed(self, event: Any, now: float) -> None:
        if (former := self._former.tables_told(event.dpid)) is not None:
            self._awaited.told(event.dpid, bool(former), now)
        for mac in former or ():
            if (host := self.fabric.host_near(mac, event.dpid)) is not None:
                self.asked_for(event.dpid, host.mac, now)
        if event.dpid in self._routes.away and self._installer.is_read(event.dpid):
            self._routes.unsure[event.dpid].clear()
            if self._installer.in_sync(event.dpid):
                self._is_back(event.dpid)
                self._flush(now)
        self._resolver.installed(event.dpid, now)

    def _is_back(self, dpid: int) -> None:
        """Take in that a switch holds what it should again, or is no part of the fabric any more."""
        if dpid in self._routes.away:
            self._routes.away.discard(dpid)
            self._routes.pinned.switch_back(dpid)
            del self._routes.unsure[dpid]
            self._again.update(self._routes.detoured())

    def _put_transient(self, dpid: int, rule: FlowEntry) -> None:
        self._out += self._installer.transient(dpid, rule)

    def _change(self, plan: Plan, now: float, urgency: Urgency = Urgency.PROMPT) -> None:
        self._out += self._installer.change(plan, now, urgency=urgency)

    # Deadlines

    def _deadline_reached(self, _event: DeadlineReached, now: float) -> None:
        for timer in self._deadlines.due(now):
            if timer.kind is UnicastDue.FLUSH:
                self._flush(now)
            elif timer.kind is UnicastDue.RELEASE:
                self._release(now)
            else:
                self._gone_count -= 1
                self._routes.forget(timer.subject)
        self._relays.on_deadline(now)
        self._policer.on_deadline(now)
        self._resolver.on_deadline(now)
        self._intake.on_deadline(now)
        self._out += self._large.on_deadline(now)
        for plan in self._large.placements(now):
            self._change(plan, now)
        self._out += self._installer.on_deadline(now)

    def _release(self, now: float) -> None:
        """Remove what was found on switches and nobody wants."""
        self._former.release()
        self._out += self._installer.release_unknown(now)

    def _outputs(self) -> tuple[Output, ...]:
        self._out += self._large.told()
        out, self._out = self._out, []
        return tuple(out)
