"""Senders: learnt from their first packet, admitted or dropped at their own port, measured, aged out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from controller.admission.host import Decision
from controller.effects import Effect, Notice, SendPacket
from controller.events import FlowStatsReceived
from controller.kernel.domains import domain_of, in_domain
from controller.kernel.oifs import port_of_oif, vlan_of_oif
from controller.kernel.vlan_ports import VlanPorts
from controller.multicast.gate import NO_ROOM, SPOOFED, Gate
from controller.multicast.group import Group, Sender, SenderKey
from controller.multicast.groups import GroupPlane
from controller.multicast.legs import MemberLegs
from controller.multicast.port_buckets import PortBuckets
from controller.multicast.rate_meter import CounterReading, RateMeter
from controller.multicast.sender_polls import SenderPolls
from controller.multicast.swapping import Swapping
from controller.rules.cookies import cookie_of
from controller.rules.installer import Installer
from controller.rules.lowering import LOWERINGS
from controller.rules.model import FlowEntry, Match
from controller.rules.pipeline import (
    ETH_TYPE_IPV4,
    ETH_TYPE_IPV6,
    MULTICAST_TAG,
    OPENFLOW_1_0,
    PRIORITY_UNKNOWN_PENALTY,
    SENDER_COOKIE_BIT,
)
from controller.rules.port_drops import drop_keys
from controller.wire.addresses import format_ip, format_mac, group_mac
from controller.wire.dscp import with_dscp
from controller.wire.packets import Data
from topology.aggregations import Place
from topology.fabrics import Fabrics

PENALTY_S = 1
"""How long a port that exceeds its budget of unknown packets is cut off from sending to unknown groups."""

COUNTER_INTERVAL_S = 2.0
RATE_CHANGE = 0.2
"""A measured rate is news to the trees when it differs by this fraction."""

SHORT_AGEING = 4.0
"""How many times as fast senders age whose group has entries in a flow table that is short of free ones."""

Entry = tuple[bytes, SenderKey]
"""A group and a sender of it."""


class SenderTable:
    """Senders of all groups, in the `GroupPlane`; this table admits, limits, measures and forgets them.

    `changed` is told of every group whose senders changed, and at which switch.
    """

    def __init__(
        self,
        plane: GroupPlane,
        installer: Installer,
        gate: Gate,
        changed: Callable[[bytes, float, int], None],
        vlan_ports: VlanPorts,
        legs: MemberLegs,
        fabrics: Fabrics,
        swapping: Swapping,
        *,
        senders_per_port: int,
        unknown_packets_per_s: float,
        timeout_s: float,
    ) -> None:
        self.counters: Counter[str] = Counter()
        self._plane = plane
        self._installer = installer
        self._gate = gate
        self._changed = changed
        self._vlan_ports = vlan_ports
        self._legs = legs
        self._fabrics = fabrics
        self._swapping = swapping
        self._buckets = PortBuckets(unknown_packets_per_s, max(2 * unknown_packets_per_s, 1.0))
        self.set_limits(senders_per_port, unknown_packets_per_s, timeout_s)
        self._by_port: dict[Place, dict[Entry, None]] = {}
        self._by_address: dict[bytes, dict[Entry, None]] = {}
        self._versions: dict[int, int] = {}
        self._polls = SenderPolls()
        self._next_poll_s = 0.0

    def set_limits(self, senders_per_port: int, unknown_packets_per_s: float, timeout_s: float) -> None:
        """Take other bounds; what is above a lower one stays."""
        self._senders_per_port = senders_per_port
        self._timeout_s = timeout_s
        self._buckets.set_rate(unknown_packets_per_s, max(2 * unknown_packets_per_s, 1.0))

    def switch_version(self, dpid: int, ofp_version: int) -> None:
        """Note which OpenFlow version a datapath speaks that has connected."""
        self._versions[dpid] = ofp_version
        self._polls.connected_anew(dpid)

    # Packets

    def data_received(self, dpid: int, port_no: int, data: Data, frame: bytes, now: float) -> list[Effect]:
        """Take a packet to a group that no flow entry of its port knew."""
        key = SenderKey(dpid, port_no, data.eth_src, data.source)
        is_sound = frame[:6] == group_mac(data.group)
        if is_sound and self._swapping.is_used and (sender := self._known(data.group, key)) is not None:
            return self._fault(data, key, frame, sender, now)
        if not self._buckets.take(dpid, port_no, now):
            self.counters["unknown-packets-over-limit"] += 1
            return self._penalise(dpid, port_no, data.family, now, "more packets of unknown senders than its limit")
        if not is_sound:
            self.counters["data-mac-mismatch"] += 1
            return []
        group = self._plane.groups.get(data.group)
        known = group.senders.get(key) if group is not None else None
        if known is not None:
            known.seen_s = now
            return self._relay(data, dpid, port_no, frame, known) if known.admitted else []
        sender, effects = self._judge(data.group, key, now)
        room, more = self._make_room(dpid, port_no, sender.admitted, now)
        effects += more
        if not room:
            self.counters["senders-per-port"] += 1
            return effects + self._penalise(dpid, port_no, data.family, now, "packets of more senders than its limit")
        effects += self._add(data.group, key, sender, now)
        for other in self._legs.other_keys(key):
            if group is None or other not in group.senders:
                effects += self._add(data.group, other, replace(sender, meter=RateMeter()), now)
        if sender.admitted:
            effects += self._relay(data, dpid, port_no, frame, sender)
            effects += self._swapping.fault(data.group, now)
        return effects

    def _known(self, group: bytes, key: SenderKey) -> Sender | None:
        """Return a sender that is known and admitted, to a group that switches may forward; None for others."""
        known = self._plane.groups.get(group)
        sender = known.senders.get(key) if known is not None and known.unsupported is None else None
        return sender if sender is not None and sender.admitted else None

    def _fault(self, data: Data, key: SenderKey, frame: bytes, sender: Sender, now: float) -> list[Effect]:
        """Hand on a packet to a group that is out of the tables, or on its way in, within a budget of its own."""
        if not self._swapping.may_carry(key.dpid, data.group, now):
            return []
        sender.seen_s = now
        return self._relay(data, key.dpid, key.port_no, frame, sender) + self._swapping.fault(data.group, now)

    def unreadable(self, dpid: int, port_no: int, family: int, now: float) -> list[Effect]:
        """Count what a switch hands over as data of a group and is none (`family` 0: what it hands over for else)."""
        if not family or self._buckets.take(dpid, port_no, now):
            return []
        self.counters["unknown-packets-over-limit"] += 1
        why = "more packets that cannot be read than allowed"
        return self._penalise(dpid, port_no, family, now, why)

    def _judge(self, group: bytes, key: SenderKey, now: float) -> tuple[Sender, list[Effect]]:
        if not self._gate.is_sender_spoofed(key, domain_of(group)):
            decision = self._gate.decide_sender(key, group)
            return Sender(decision.admit, decision.rule, now), []
        self.counters["spoofed-sender"] += 1
        sender = f"{format_mac(key.mac)} as {format_ip(key.address)}"
        text = f"Port {key.dpid}:{key.port_no} receives data from {sender}, another host's address: it is dropped."
        fields = (("dpid", key.dpid), ("port_no", key.port_no))
        return Sender(False, SPOOFED, now), [Notice("spoofed-sender", text, fields)]

    def _make_room(self, dpid: int, port_no: int, admitted: bool, now: float) -> tuple[bool, list[Effect]]:
        """Tell whether a port may have one more sender; a refused one gives way to an admitted one."""
        at_port = self._by_port.get((dpid, port_no), {})
        if len(at_port) < self._senders_per_port:
            return True, []
        if admitted:
            for group, key in at_port:
                if not self._plane.groups[group].senders[key].admitted:
                    return True, self._remove(group, key, now)
        return False, []

    def _relay(self, data: Data, dpid: int, port_no: int, frame: bytes, sender: Sender) -> list[Effect]:
        """Hand a packet that came before its flow entries, without tag, to every receiver of its fabric directly."""
        if sender.mark.dscp is not None:
            frame = with_dscp(frame, sender.mark.dscp)
        vlan_id = domain_of(data.group)
        ports: dict[tuple[int, int], list[int]] = {}
        for to_dpid, oif in self._plane.receiving_ports(data.group, data.source):
            to_port, to_vlan = port_of_oif(oif), vlan_of_oif(oif, vlan_id)
            if (to_dpid, to_port) == (dpid, port_no):
                is_wanted = to_vlan != vlan_id
            else:
                is_wanted = not self._legs.is_one_port((to_dpid, to_port), (dpid, port_no))
            if is_wanted and self._fabrics.is_one(to_dpid, dpid):
                ports.setdefault((to_dpid, to_vlan), []).append(to_port)
        if not vlan_id:
            return [SendPacket(to_dpid, tuple(to_ports), frame) for (to_dpid, _), to_ports in ports.items()]
        sent = self._vlan_ports.sent
        return [packet for (at, to), to_ports in ports.items() for packet in sent(at, to_ports, frame, to)]

    def _penalise(self, dpid: int, port_no: int, family: int, now: float, why: str) -> list[Effect]:
        """Drop what a port sends to unknown groups for a while, at the switch."""
        if not self._buckets.cut_off(dpid, port_no, now, PENALTY_S):
            return []
        if family == 4:
            match = Match(port_no, eth_type=ETH_TYPE_IPV4, ip_dst=b"\xe0\0\0\0", ip_dst_prefix=4)
        else:
            match = Match(port_no, eth_type=ETH_TYPE_IPV6, ip_dst=b"\xff" + bytes(15), ip_dst_prefix=8)
        text = f"Port {dpid}:{port_no} receives {why}: those without a flow entry are dropped for {PENALTY_S} s."
        notice = Notice("sender-penalty", text, (("dpid", dpid), ("port_no", port_no)))
        effects: list[Effect] = [notice]
        version = self._versions.get(dpid, OPENFLOW_1_0)
        vlans = self._vlan_ports.of(dpid, port_no) if self._vlan_ports.is_used else None
        for key in drop_keys(version, vlans, PRIORITY_UNKNOWN_PENALTY, match):
            rule = FlowEntry(key, (), cookie_of(MULTICAST_TAG, "penalty"), hard_timeout_s=PENALTY_S)
            effects += self._installer.transient(dpid, rule)
        return effects

    # What else changes senders

    def reconsider(self, is_concerned: Callable[[bytes], bool], now: Callable[[], float]) -> Iterator[list[Effect]]:
        """Decide anew about the senders of groups that are concerned, after the policy changed, one at a step.

        Yields the effects of each step, which is done at the time that `now` tells; anything may happen in between.
        """
        for place in list(self._by_port):
            for entry in list(self._by_port.get(place, ())):
                if is_concerned(entry[0]) and entry in self._by_port.get(place, ()):
                    yield self._judge_otherwise(*entry, now())
                else:
                    yield []

    def _judge_otherwise(self, group: bytes, key: SenderKey, now: float) -> list[Effect]:
        """Decide anew about a sender whose verdict is another one now; where only its rule is, take note of that."""
        sender = self._plane.groups[group].senders[key]
        is_false = sender.rule == SPOOFED
        if not self._is_false(key, sender, domain_of(group)):
            decision = self._gate.sender_decision(key, group)
            if not is_false and decision.admit == sender.admitted:
                if decision.rule != sender.rule:
                    sender.rule = decision.rule
                    self._changed(group, now, key.dpid)
                return self._mark(group, key, sender, now)
        elif is_false:
            return []
        legs = [leg for leg in self._legs.other_keys(key) if leg in self._plane.groups[group].senders]
        return self._reconsider([(group, leg) for leg in (key, *legs)], now, only_spoofed=False)

    def _mark(self, group: bytes, key: SenderKey, sender: Sender, now: float) -> list[Effect]:
        """Have a sender's packets get the code point that the policy gives them now."""
        mark = self._gate.mark_of(key, group)
        if mark == sender.mark:
            return []
        self._changed(group, now, key.dpid)
        return self._plane.sender_set(group, key, replace(sender, mark=mark), now)

    def give_way(self, group: bytes, now: float) -> list[Effect]:
        """Refuse the senders of a group that nobody receives, for the room that its tree takes."""
        effects: list[Effect] = []
        told: set[SenderKey] = set()
        for key, sender in list(self._plane.groups[group].senders.items()):
            if sender.admitted:
                if (host := self._legs.host_of(key)) not in told:
                    told.add(host)
                    self._gate.gave_way(key, group)
                refused = replace(sender, admitted=False, rule=NO_ROOM.rule)
                effects += self._plane.sender_set(group, key, refused, now)
                self._changed(group, now, key.dpid)
        return effects

    def room_made(self, group: bytes, now: float) -> list[Effect]:
        """Decide anew about the senders of a group that were refused for want of room."""
        known = self._plane.groups.get(group)
        senders = known.senders.items() if known is not None else ()
        waiting = sorted((group, key) for key, sender in senders if sender.rule == NO_ROOM.rule)
        return self._reconsider(waiting, now, only_spoofed=False)

    def addresses_moved(self, addresses: Iterable[bytes], now: float) -> list[Effect]:
        """Look again at the senders that use these MAC and IP addresses, whose place is another one now."""
        entries = {entry for address in addresses for entry in self._by_address.get(address, ())}
        return self._reconsider(sorted(entries), now, only_spoofed=True)

    def port_reconsidered(self, dpid: int, port_no: int, now: float) -> list[Effect]:
        """Look again at the senders of a port that became a router port, or is none any more."""
        return self._reconsider(sorted(self._by_port.get((dpid, port_no), ())), now, only_spoofed=True)

    def port_gone(self, dpid: int, port_no: int, now: float, mac: bytes | None = None) -> list[Effect]:
        """Forget the senders at a port, or only those of one host, by the name of its MAC address."""
        effects: list[Effect] = []
        for group, key in sorted(self._by_port.get((dpid, port_no), ())):
            if mac is None or in_domain(key.mac, domain_of(group)) == mac:
                effects += self._remove(group, key, now)
        if mac is None:
            self._buckets.forget(dpid, port_no)
        return effects

    def leg_added(self, leg: Place, now: float) -> list[Effect]:
        """Let the senders behind a link aggregation group send by one more leg of it."""
        effects: list[Effect] = []
        for other in self._legs.other_legs(leg):
            for group, key in sorted(self._by_port.get(other, ())):
                own = key._replace(dpid=leg[0], port_no=leg[1])
                senders = self._plane.groups[group].senders
                if own not in senders:
                    same = replace(senders[key], rate_bps=0.0, placed_bps=0.0, meter=RateMeter())
                    effects += self._add(group, own, same, now)
        return effects

    def restore(self, group: bytes, key: SenderKey, sender: Sender, now: float) -> list[Effect]:
        """Put a sender of an earlier run back, as the policy has it now, where there is room."""
        at_port = self._by_port.get((key.dpid, key.port_no), {})
        if len(at_port) >= self._senders_per_port or (group, key) in at_port:
            return []
        known = self._plane.groups[group].senders if group in self._plane.groups else {}
        twin = next((known[leg] for leg in self._legs.other_keys(key) if leg in known), None)
        if twin is not None:
            sender = replace(sender, admitted=twin.admitted, rule=twin.rule)
        elif sender.rule != SPOOFED:
            decision = self._gate.decide_sender(key, group)
            sender = replace(sender, admitted=decision.admit, rule=decision.rule)
        return self._add(group, key, replace(sender, seen_s=now), now)

    def forget(self, group: bytes, key: SenderKey, now: float) -> list[Effect]:
        """Forget a sender, as far as it is known."""
        return self._remove(group, key, now) if (group, key) in self._by_port.get((key.dpid, key.port_no), ()) else []

    def postpone(self, by_s: float) -> None:
        """Take it that all senders were seen so much later."""
        for group, key in self._entries():
            self._plane.groups[group].senders[key].seen_s += by_s

    def _reconsider(self, entries: Iterable[Entry], now: float, *, only_spoofed: bool) -> list[Effect]:
        effects: list[Effect] = []
        decided: dict[Entry, Decision] = {}
        for group, key in entries:
            sender = self._plane.groups[group].senders[key]
            spoofed = self._is_false(key, sender, domain_of(group))
            if only_spoofed and spoofed == (sender.rule == SPOOFED):
                continue
            if spoofed:
                admit, rule = False, SPOOFED
            else:
                host = (group, self._legs.host_of(key))
                if host not in decided:
                    decided[host] = self._gate.decide_sender(key, group)
                admit, rule, _ = decided[host]
            if admit == sender.admitted:
                sender.rule = rule
                continue
            changed = replace(sender, admitted=admit, rule=rule, mark=self._gate.mark_of(key, group))
            effects += self._plane.sender_set(group, key, changed, now)
            self._changed(group, now, key.dpid)
        return effects

    def _is_false(self, key: SenderKey, sender: Sender, vlan_id: int) -> bool:
        """Tell whether a sender's address is another's, or was and is not known to be its own."""
        gate = self._gate
        if gate.is_sender_spoofed(key, vlan_id):
            return True
        return sender.rule == SPOOFED and not gate.is_sender_bound(key, vlan_id)

    def _add(self, group: bytes, key: SenderKey, sender: Sender, now: float) -> list[Effect]:
        entry = (group, key)
        self._by_port.setdefault((key.dpid, key.port_no), {})[entry] = None
        for name in _names(group, key):
            self._by_address.setdefault(name, {})[entry] = None
        sender.mark, sender.since_s = self._gate.mark_of(key, group), now
        self._changed(group, now, key.dpid)
        self._legs.sends(group, key, now)
        return self._plane.sender_set(group, key, sender, now)

    def _remove(self, group: bytes, key: SenderKey, now: float) -> list[Effect]:
        entry = (group, key)
        place = (key.dpid, key.port_no)
        del self._by_port[place][entry]
        if not self._by_port[place]:
            del self._by_port[place]
        for name in _names(group, key):
            del self._by_address[name][entry]
            if not self._by_address[name]:
                del self._by_address[name]
        self._changed(group, now, key.dpid)
        effects = self._plane.sender_removed(group, key, now)
        self._legs.sends_no_more(group, key, now)
        return effects

    def _entries(self) -> Iterator[Entry]:
        for entries in self._by_port.values():
            yield from entries

    # Counters and age

    def next_deadline(self) -> float | None:
        """Return when the counters of sender entries are read next."""
        if not self._by_port:
            return None
        reading_s = self._swapping.readings.reading_s
        return reading_s if reading_s < self._next_poll_s else self._next_poll_s

    def on_deadline(self, now: float) -> list[Effect]:
        """Ask each switch with senders for the counters of their entries, and age out the silent ones.

        Silent is a sender whose counter a reading found as it was, `timeout_s` after it was last seen (a quarter of
        that where tables are short); where a switch does not answer, nothing is known of its senders.
        """
        if not self._by_port or now < min(self._next_poll_s, self._swapping.readings.reading_s):
            return []
        self._next_poll_s = now + COUNTER_INTERVAL_S
        if self._polls.are_open:
            self._swapping.readings.told(self._polls.round_s, self._polls.late(self._by_port))
        self._swapping.readings.asked(now)
        effects: list[Effect] = []
        old = [entry for entry in self._entries() if self._is_silent(*entry)]
        for group, key in sorted(old):
            effects += self._remove(group, key, now)
        cookie = MULTICAST_TAG << 48 | SENDER_COOKIE_BIT
        mask = 0xFFFF << 48 | SENDER_COOKIE_BIT
        dpids = {dpid for dpid, _ in self._by_port}
        self._polls.begin(dpids, now)
        for dpid in sorted(dpids):
            request = self._installer.read_flows(dpid, cookie, mask) if self._polls.may_ask(dpid, now) else None
            if request is not None:
                self._polls.asked(dpid, request.xid, now)
                effects.append(request)
        return effects

    def _is_silent(self, group: bytes, key: SenderKey) -> bool:
        senders, timeout_s = self._plane.groups[group].senders, self._timeout_s
        tables = self._swapping.accounts.tables
        if tables.short and tables.is_in_short(group):
            timeout_s /= SHORT_AGEING
        if senders[key].seen_s + timeout_s >= self._polls.read_s(key.dpid):
            return False
        others = (other for other in self._legs.other_keys(key) if other in senders)
        return all(senders[other].seen_s + timeout_s < self._polls.read_s(other.dpid) for other in others)

    def flow_stats_received(self, event: FlowStatsReceived, now: float) -> bool:
        """Take the counters of sender entries; True where a rate changed enough to matter to the trees."""
        if not self._polls.owns(event.dpid, event.xid):
            return False
        cookie = MULTICAST_TAG << 48 | SENDER_COOKIE_BIT
        mask = 0xFFFF << 48 | SENDER_COOKIE_BIT
        reply = LOWERINGS[event.ofp_version].decode_flow_stats(event.message, cookie, mask)
        news = False
        for entry in reply.entries:
            match = entry.rule.key.match
            port_no, mac, address, to = match.in_port, match.eth_src, match.ip_src, match.ip_dst
            if entry.byte_count is None or port_no is None or mac is None or address is None or to is None:
                news = self._plane.aliases.flows.counted(event.dpid, entry, now) or news
                continue
            to = in_domain(to, self._vlan_ports.domain_of_sender(event.dpid, entry.rule.key))
            group = self._plane.groups.get(to)
            sender = group.senders.get(SenderKey(event.dpid, port_no, mac, address)) if group is not None else None
            if group is None or sender is None:
                continue
            if not group.is_out:
                self._count(group, sender, entry.packet_count or 0, event.dpid, now)
            before_bps = sender.rate_bps
            if self._measure(sender, CounterReading(now, entry.duration_s, entry.byte_count)):
                news = True
                self._plane.sender_measured(to, event.dpid)
            elif round(sender.rate_bps) != round(before_bps):
                self._plane.changed(to)
        if not reply.more:
            self._polls.answered(event.dpid, whole=reply.fault is None)
            if not self._polls.are_open:
                self._swapping.readings.told(self._polls.round_s, self._polls.late(self._by_port))
        return news

    def _count(self, group: Group, sender: Sender, packet_count: int, dpid: int, now: float) -> None:
        """Have it known how many packets of a group came to a switch since its senders were read last."""
        if self._swapping.is_used:
            self._swapping.readings.counted(group.address, sender, packet_count, dpid, now)

    def owns_poll(self, event: FlowStatsReceived) -> bool:
        """Tell whether a statistics reply answers this table's own request."""
        return self._polls.owns(event.dpid, event.xid)

    @staticmethod
    def _measure(sender: Sender, reading: CounterReading) -> bool:
        """Take in a reading; True where the rate is news to the trees."""
        meter = sender.meter
        if reading.byte_count != (meter.byte_count or 0):
            sender.seen_s = reading.now_s
        meter.take(reading)
        if not sender.admitted or meter.rate_bps is None:
            return False
        sender.rate_bps = meter.rate_bps
        if abs(sender.rate_bps - sender.placed_bps) <= RATE_CHANGE * max(sender.placed_bps, 1.0):
            return False
        sender.placed_bps = sender.rate_bps
        return True


def _names(group: bytes, key: SenderKey) -> tuple[bytes, bytes]:
    """Return the names of a sender's MAC and IP addresses in the domain of its group."""
    vlan_id = domain_of(group)
    return in_domain(key.mac, vlan_id), in_domain(key.address, vlan_id)
