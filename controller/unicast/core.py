"""The unicast core: topology events and packets in; flow entries per host, answers and relayed frames out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from enum import IntEnum
from typing import Any, NamedTuple

from controller.datapath.lanes import Urgency
from controller.discovery.deadlines import Deadlines
from controller.discovery.ports import End
from controller.discovery.probes import link_local
from controller.discovery.tokens import TokenBucket
from controller.effects import Effect, Notice, Put, Remove, SendPacket
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
)
from controller.rules.inspection import Inspection
from controller.rules.installer import Installer
from controller.rules.model import Output
from controller.rules.pipeline import UNICAST_TAG
from controller.unicast.base_rules import base_rules, guard_rule
from controller.unicast.resolution import Resolver
from controller.unicast.routes import Plan, Routes, host_rule
from controller.unicast.settings import UnicastChanged, UnicastSettings
from controller.wire.addresses import BROADCAST_MAC, UNSPECIFIED_V4
from controller.wire.arp import arp_request, encode_arp
from controller.wire.ethernet import ETHERTYPE_IPV4
from controller.wire.frame import decode
from controller.wire.nd import encode_neighbour, neighbour_solicitation
from controller.wire.packets import Arp, Ignored, Malformed, Neighbour, Packet, Unicast
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
from topology.live import LiveFabric

NOTICE_INTERVAL_S = 10.0
MAX_NOTICED_COUNT = 65536
RELAY_HOME_S = 10.0
MAX_HOMES_COUNT = 16384
RELAY_FEW_SHARE, RELAY_KEPT_SHARE = 0.1, 0.5
"""A share of what one port may relay counts as few; for those that relay so few a share of what all may is kept."""

_IPV4 = ETHERTYPE_IPV4.to_bytes(2, "big")
_IPV4_GROUP = b"\x01\x00\x5e"
_LLDP_GROUP = b"\x01\x80\xc2"
_IPV6_GROUP = b"\x33\x33"
_ICMPV6 = b"\x3a"


class _Kind(IntEnum):
    FLUSH = 1
    GUARD = 2  # end
    SEARCH = 3  # IP address
    HOME = 4  # MAC address
    RELEASE = 5


class _Timer(NamedTuple):
    kind: _Kind
    subject: Any = None


_TOPOLOGY_EVENTS = frozenset((SwitchUp, SwitchDown, LinkUp, LinkDown, PortRoleChanged, HostLearnt, HostGone))
_FLUSH = _Timer(_Kind.FLUSH)


class UnicastCore:
    """Forwards between hosts by destination MAC address, and answers for them.

    Nothing is ever flooded by a switch: what many are to hear goes from the controller to edge ports, and what comes
    back from one of them does not count as its sender lives elsewhere.
    """

    def __init__(self, settings: UnicastSettings) -> None:
        self._settings = settings
        self.counters: Counter[str] = Counter()
        self.fabric = LiveFabric()
        self._routes = Routes(self._held)
        self._unsure: dict[int, set[bytes]] = {}
        self._again: set[bytes] = set()
        self._installer = Installer(UNICAST_TAG, hold_unknown=True)
        self._installer.use_policy(settings.check_interval_s, settings.edits)
        self._resolver = Resolver(self.fabric, settings, self)
        self._deadlines: Deadlines[_Timer] = Deadlines()
        self._out: list[Effect] = []
        self._now = 0.0
        self._changed_hosts: dict[bytes, None] = {}
        self._base: dict[int, int] = {}
        self._searches_count = 0
        self._rewired = self._broken = self._begun = False
        self._guarded: set[End] = set()
        self._relays: dict[End, tuple[TokenBucket, TokenBucket]] = {}
        self._misses: dict[End, TokenBucket] = {}
        self._questions: dict[End, TokenBucket] = {}
        self._total_relays = TokenBucket(settings.relay_total_burst_count, settings.relay_total_rate_per_s, 0.0)
        self._homes: dict[bytes, End] = {}
        self._noticed: dict[tuple[str, End], float] = {}
        self._handle: dict[type, Callable[[Any, float], None]] = {
            PacketReceived: lambda event, now: self._frame_received((event.dpid, event.in_port), event.data, now),
            SwitchConnected: self._switch_connected,
            SwitchDisconnected: self._switch_disconnected,
            PortChanged: lambda _event, _now: None,
            BarrierReplied: self._installer_event,
            EditFailed: self._installer_event,
            FlowStatsReceived: self._installer_event,
            CheckRequested: self._installer_event,
            DeadlineReached: self._deadline_reached,
            UnicastChanged: self._settings_changed,
            SwitchUp: self._switch_up,
            SwitchDown: self._switch_down,
            LinkUp: self._link_changed,
            LinkDown: self._link_changed,
            PortRoleChanged: lambda _event, _now: None,
            HostLearnt: self._host_learnt,
            HostGone: self._host_gone,
        }

    def handle(self, event: object, now: float) -> tuple[Effect, ...]:
        """Take one event of `controller.events` or `topology.events`; KeyError for any other."""
        self._now = now
        kind = type(event)
        if kind not in _TOPOLOGY_EVENTS or self.fabric.apply(event):  # type: ignore[arg-type]
            self._handle[kind](event, now)
        return self._outputs()

    def packet_received(self, dpid: int, in_port: int, packet: Packet, data: bytes, now: float) -> tuple[Effect, ...]:
        """Take in a packet that a switch sent to the controller, decoded and as it came."""
        self._now = now
        self._packet_received((dpid, in_port), packet, data, now)
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
        deadlines = (self._deadlines.next(), self._resolver.next_deadline(), self._installer.next_deadline())
        return min((deadline for deadline in deadlines if deadline is not None), default=None)

    def port_to(self, dpid: int, mac: bytes) -> int | None:
        """Return the port that leads from a switch towards a host, None where there is none."""
        return self._routes.port_to(dpid, mac)

    # What the resolver needs of the core

    def send(self, end: End, data: bytes) -> None:
        """Send a frame out of one port."""
        self._out.append(SendPacket(end[0], (end[1],), data))

    def ask(self, end: End, data: bytes, now: float) -> None:
        """Send a host's question out of the port of the one that is to answer, as far as that port's bound allows.

        Else those who ask could make it answer so often that its own ARP and ND are dropped.
        """
        bucket = self._questions.get(end)
        if bucket is None:
            settings = self._settings
            bucket = TokenBucket(settings.question_burst_count, settings.question_rate_per_s, now)
            self._questions[end] = bucket
        if bucket.take(now):
            self.send(end, data)
        else:
            self.counted("question-limit", end, "too many ARP or ND questions to the hosts at this port")

    def relay(self, origin: End, data: bytes, now: float) -> None:
        """Send a frame out of all edge ports but `origin`, as far as the bounds on its port and on all allow.

        A part of what all may is kept for ports that relay few, so that those that relay many do not silence them.
        """
        mac = data[6:12]
        if mac != self._settings.controller_mac and not self._is_at_home(mac, origin):
            self.counted("relay-returned", origin, "receives a broadcast from a host of another port: it is dropped")
            return
        settings = self._settings
        buckets = self._relays.get(origin)
        if buckets is None:
            burst, rate_per_s = settings.relay_burst_count, settings.relay_rate_per_s
            few = TokenBucket(RELAY_FEW_SHARE * burst, RELAY_FEW_SHARE * rate_per_s, now)
            buckets = self._relays[origin] = (TokenBucket(burst, rate_per_s, now), few)
        any_number, few = buckets
        if not any_number.take(now):
            self.counted("relay-limit", origin, "receives too many broadcasts: those beyond the limit are dropped")
            return
        packets = []
        for dpid in self.fabric.switches():
            ports = tuple(port_no for port_no in self.fabric.edge_ports(dpid) if (dpid, port_no) != origin)
            if ports:
                packets.append(SendPacket(dpid, ports, data))
        kept = 0.0 if few.take(now) else RELAY_KEPT_SHARE * settings.relay_total_burst_count
        if not self._total_relays.take(now, len(packets), kept):
            self.counted(
                "relay-limit",
                origin,
                "receives a broadcast that is dropped: all ports together are over the limit",
            )
            return
        if mac != self._settings.controller_mac and self.fabric.host(mac) is None:
            self._homes[mac] = origin
            self._deadlines.set(_Timer(_Kind.HOME, mac), now + RELAY_HOME_S)
        self._out += packets

    def _is_at_home(self, mac: bytes, origin: End) -> bool:
        """Tell whether a sender is where it is known to live, or where its frames were relayed from of late."""
        host = self.fabric.host(mac)
        if host is not None:
            return (host.dpid, host.port_no) == origin
        home = self._homes.get(mac)
        return home == origin or (home is None and len(self._homes) < MAX_HOMES_COUNT)

    def unready(self, one: HostLearnt, other: HostLearnt) -> int | None:
        """Return a switch that cannot yet forward between two hosts, None where all can."""
        found = None
        for source, target in ((one, other), (other, one)):
            switches = tuple(self._routes.path(source.dpid, target.mac))
            if not switches:
                return source.dpid
            for dpid in switches:
                rule = self._routes.rule_to(dpid, target.mac)
                if rule is None or self._installer.installed(dpid).get(rule.key) != rule:
                    found = dpid if found is None else found
                    if rule is not None:
                        self._installer.hurry(dpid, rule.key)
        return found

    def counted(self, kind: str, end: End, does: str) -> None:
        """Count, and give notice of what a port does at most once per kind and port in `NOTICE_INTERVAL_S`."""
        self.counters[kind] += 1
        key = (kind, end)
        if self._now - self._noticed.get(key, float("-inf")) >= NOTICE_INTERVAL_S:
            if len(self._noticed) >= MAX_NOTICED_COUNT:
                self._noticed.clear()
            self._noticed[key] = self._now
            text = f"Port {end[0]}:{end[1]} {does}."
            self._out.append(Notice(kind, text, (("dpid", end[0]), ("port_no", end[1]))))

    # Topology

    def _switch_up(self, event: SwitchUp, now: float) -> None:
        self._base[event.dpid] = event.ofp_version
        self._change([[(event.dpid, Put(rule)) for rule in base_rules(event.ofp_version)]], now)
        self._rewired = True
        self._flush_soon(now)

    def _switch_down(self, event: SwitchDown, now: float) -> None:
        dpid = event.dpid
        self._changed_hosts.update(dict.fromkeys(self._routes.hosts_at(dpid)))
        self._rewired = self._broken = True
        self._is_back(dpid)
        self._flush(now)
        version = self._base.pop(dpid, None)
        if version is None:
            return
        self._change([[(dpid, Remove(rule.key)) for rule in base_rules(version)]], now, Urgency.BULK)
        for buckets in (self._relays, self._misses, self._questions):
            for end in [end for end in buckets if end[0] == dpid]:
                del buckets[end]

    def _link_changed(self, event: LinkUp | LinkDown, now: float) -> None:
        self._rewired = True
        self._broken |= isinstance(event, LinkDown)
        self._flush_soon(now)

    def _host_learnt(self, host: HostLearnt, now: float) -> None:
        if self._routes.location(host.mac) != (host.dpid, host.port_no):
            self._changed_hosts[host.mac] = None
            self._flush_soon(now)
        self._resolver.host_learnt(host, now)

    def _host_gone(self, event: HostGone, now: float) -> None:
        self._changed_hosts[event.mac] = None
        self._flush_soon(now)

    def _flush_soon(self, now: float) -> None:
        if _FLUSH not in self._deadlines:
            self._deadlines.set(_FLUSH, now + self._settings.settle_s)

    def _flush(self, now: float) -> None:
        """Let the entries follow what has changed since the last time."""
        self._deadlines.cancel(_FLUSH)
        hosts = [(mac, self.fabric.host(mac)) for mac in sorted(self._changed_hosts)]
        rewired, self._rewired = self._rewired, False
        urgency = Urgency.PROMPT if self._broken or hosts else Urgency.BULK
        self._broken = False
        self._changed_hosts.clear()
        again, self._again = self._again, set()
        versions = self.fabric.ofp_versions()
        for plan, plan_urgency in self._routes.update(self.fabric.graph, versions, hosts, rewired, again, urgency):
            self._change(plan, now, plan_urgency)

    def _settings_changed(self, event: UnicastChanged, _now: float) -> None:
        self._installer.use_policy(event.settings.check_interval_s, event.settings.edits)

    # Switches

    def _switch_connected(self, event: SwitchConnected, now: float) -> None:
        if not self._begun:
            self._begun = True
            self._deadlines.set(_Timer(_Kind.RELEASE), now + self._settings.restart_grace_s)
        self._out += self._installer.switch_connected(event.dpid, event.ofp_version, now)

    def _switch_disconnected(self, event: SwitchDisconnected, now: float) -> None:
        dpid = event.dpid
        if dpid in self._base and dpid not in self._routes.away:
            self._routes.away.add(dpid)
            self._unsure[dpid] = self._unconfirmed(dpid)
            if self._unsure[dpid]:
                self._again |= self._unsure[dpid]
                self._broken = True
                self._flush(now)
        self._out += self._installer.switch_disconnected(dpid, now)

    def _installer_event(
        self, event: BarrierReplied | EditFailed | FlowStatsReceived | CheckRequested, now: float
    ) -> None:
        self._out += self._installer.handle(event, now)
        if event.dpid in self._routes.away and self._installer.is_read(event.dpid):
            self._unsure[event.dpid].clear()
            if self._installer.in_sync(event.dpid):
                self._is_back(event.dpid)
                self._flush(now)
        self._resolver.installed(event.dpid, now)

    def _unconfirmed(self, dpid: int) -> set[bytes]:
        """Return the hosts for which a switch may hold one entry or another, or none: edits were under way."""
        desired, installed = self._installer.desired(dpid), self._installer.installed(dpid)
        keys = (key for key in desired.keys() | installed.keys() if desired.get(key) != installed.get(key))
        return {key.match.eth_dst for key in keys if key.match.eth_dst is not None}

    def _held(self, dpid: int, mac: bytes) -> int | None:
        """Return the port by which a switch that is away sends to a host, None where that is none or not certain."""
        version = self.fabric.ofp_version(dpid)
        if version is None or mac in self._unsure[dpid]:
            return None
        rule = self._installer.installed(dpid).get(host_rule(version, mac, 0).key)
        return rule.actions[0].port_no if rule is not None and isinstance(rule.actions[0], Output) else None

    def _is_back(self, dpid: int) -> None:
        """Take in that a switch holds what it should again, or is no part of the fabric any more."""
        if dpid in self._routes.away:
            self._routes.away.discard(dpid)
            del self._unsure[dpid]
            self._again.update(self._routes.detoured())

    def _change(self, plan: Plan, now: float, urgency: Urgency = Urgency.PROMPT) -> None:
        self._out += self._installer.change(plan, now, urgency=urgency)

    # Packets

    def _frame_received(self, end: End, data: bytes, now: float) -> None:
        """Decode what may concern this core: neither membership nor the data of groups does."""
        first = data[:3]
        if first in (_IPV4_GROUP, _LLDP_GROUP) or (first[:2] == _IPV6_GROUP and data[20:21] != _ICMPV6):
            return
        self._packet_received(end, decode(data), data, now)

    def _packet_received(self, end: End, packet: Packet, data: bytes, now: float) -> None:
        if data[6:12] == self._settings.controller_mac:
            self.counters["own-frame"] += 1
            self._count_towards_guard(end, now)
        elif isinstance(packet, Unicast):
            self._missed(end, packet, data, now)
        elif isinstance(packet, Arp | Neighbour):
            self._resolver.received(end, packet, data, now)
        elif data[:6] == BROADCAST_MAC and data[12:14] == _IPV4:
            self._broadcast(end, data, now)
        elif isinstance(packet, Malformed | Ignored):
            self._count_towards_guard(end, now)

    def _missed(self, end: End, packet: Unicast, data: bytes, now: float) -> None:
        """Deliver a packet for which its switch had no entry yet, or look for the host that it is meant for."""
        role = self.fabric.role(*end)
        if not self._count_towards_guard(end, now) or role not in (PortRole.EDGE, PortRole.TRUNK):
            return
        at_edge = role is PortRole.EDGE
        if at_edge and self.fabric.binding_conflict(packet.eth_src, packet.source, *end):
            self.counted("unicast-spoofed", end, "receives packets with another host's addresses: they are dropped")
            return
        host = self.fabric.host(packet.eth_dst)
        if host is not None:
            self.counters["unicast-delivered"] += 1
            if (host.dpid, host.port_no) != end:
                self.send((host.dpid, host.port_no), data)
            return
        self.counters["unicast-unknown"] += 1
        if at_edge and self.fabric.host_by_ip(packet.destination) is None:
            self._search(end, packet.destination, now)

    def _search(self, end: End, address: bytes, now: float) -> None:
        """Ask everywhere for the holder of an address, now and then."""
        timer = _Timer(_Kind.SEARCH, address)
        if timer in self._deadlines:
            return
        if self._searches_count >= self._settings.searches:
            self.counted(
                "search-limit", end, "receives packets to more unknown hosts than are looked for: they are dropped"
            )
            return
        self._searches_count += 1
        self._deadlines.set(timer, now + self._settings.search_interval_s)
        mac = self._settings.controller_mac
        if len(address) == 4:
            frame = encode_arp(arp_request(mac, UNSPECIFIED_V4, address))
        else:
            frame = encode_neighbour(neighbour_solicitation(mac, link_local(mac), address))
        self.relay(end, frame, now)

    def _broadcast(self, end: End, data: bytes, now: float) -> None:
        if self.fabric.role(*end) is PortRole.EDGE and self._count_towards_guard(end, now):
            self.relay(end, data, now)

    def _count_towards_guard(self, end: End, now: float) -> bool:
        """Tell whether a port may have this packet looked at; keep its packets away for a while once it may not."""
        version = self.fabric.ofp_version(end[0])
        if version is None:
            return False
        settings = self._settings
        bucket = self._misses.get(end)
        if bucket is None:
            bucket = self._misses[end] = TokenBucket(settings.miss_burst_count, settings.miss_rate_per_s, now)
        if bucket.take(now):
            return True
        if end not in self._guarded:
            self._guarded.add(end)
            text = f"receives too many packets to unknown hosts: its switch drops them for {settings.guard_s:g} s"
            self.counted("port-guarded", end, text)
            self._out += self._installer.transient(end[0], guard_rule(version, end[1], settings.guard_s))
            self._deadlines.set(_Timer(_Kind.GUARD, end), now + settings.guard_s)
        return False

    # Deadlines

    def _deadline_reached(self, _event: DeadlineReached, now: float) -> None:
        for timer in self._deadlines.due(now):
            if timer.kind is _Kind.FLUSH:
                self._flush(now)
            elif timer.kind is _Kind.GUARD:
                self._guarded.discard(timer.subject)
            elif timer.kind is _Kind.RELEASE:
                self._out += self._installer.release_unknown(now)
            elif timer.kind is _Kind.SEARCH:
                self._searches_count -= 1
            else:
                self._homes.pop(timer.subject, None)
        self._resolver.on_deadline(now)
        self._out += self._installer.on_deadline(now)

    def _outputs(self) -> tuple[Effect, ...]:
        if not self._out:
            return ()
        out = tuple(self._out)
        self._out.clear()
        return out
