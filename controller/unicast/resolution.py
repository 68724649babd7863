"""ARP and IPv6 neighbour discovery between hosts that share no wire: answered by proxy, or passed on to who knows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple, Protocol, TypeAlias

from controller.kernel.deadlines import Deadlines
from controller.kernel.domains import OWN_DOMAIN, address_of, domain_of, in_domain
from controller.kernel.ports import End
from controller.unicast.settings import UnicastSettings
from controller.wire.addresses import UNSPECIFIED_V4, UNSPECIFIED_V6
from controller.wire.arp import REQUEST, arp_reply, encode_arp
from controller.wire.ipv6 import ICMPV6
from controller.wire.nd import encode_neighbour, neighbour_advertisement
from controller.wire.packets import Arp, Neighbour
from topology.events import HostLearnt, PortRole
from topology.host_names import shared_name
from topology.live import LiveFabric

MAX_PLAIN_COUNT = 65536

_NEXT_HEADER_OFFSET = 20
_NA_FLAGS_OFFSET = 58
_ROUTER_FLAG = 0x80

AskKey: TypeAlias = tuple[bytes, bytes, End]
"""MAC address of the host that asks, IP address that it asks about, by their names in their domain, and its port."""


class AskKind(IntEnum):
    """What a host wants: an answer, to know whether an address is free, or to be heard by all."""

    RESOLVE = 1
    DETECT_DUPLICATE = 2
    ANNOUNCE = 3


@dataclass(slots=True)
class Resolution:
    """A question or announcement under way; `reply` is the answer of `responder`, held until it can be of use.

    `waits_for` is the switch whose entries are not in place yet. `mac`, `target` and `responder` are names in the
    domain `vlan_id`, as hosts of several fabrics may share them; frames have no tag.
    """

    kind: AskKind
    mac: bytes
    end: End
    target: bytes
    packet: Arp | Neighbour
    data: bytes
    relayed: bool = False
    reply: bytes | None = None
    responder: bytes | None = None
    waits_for: int | None = None
    vlan_id: int = OWN_DOMAIN

    @property
    def key(self) -> AskKey:
        """What the ask is kept under."""
        return (self.mac, self.target, self.end)

    def names(self) -> tuple[bytes, ...]:
        """Return the addresses whose appearance may bring this ask forward."""
        return (self.mac, self.target) if self.responder is None else (self.mac, self.target, self.responder)


class ResolverSurroundings(Protocol):
    """What the resolver needs of the core around it."""

    def send(self, end: End, data: bytes, vlan_id: int = OWN_DOMAIN) -> None:
        """Send a frame of a domain out of one port."""

    def ask(self, end: End, data: bytes, now: float, vlan_id: int = OWN_DOMAIN) -> None:
        """Send a host's question out of the port of the one that is to answer, as far as that port's bound allows."""

    def relay(self, origin: End, data: bytes, now: float, vlan_id: int = OWN_DOMAIN) -> None:
        """Send a frame out of all edge ports of its domain but `origin`, as far as its bounds allow."""

    def unready(self, one: HostLearnt, other: HostLearnt) -> int | None:
        """Return a switch that cannot yet forward between two hosts, None where all can."""

    def count(self, kind: str) -> None:
        """Count something of which nobody need be told."""

    def counted(self, kind: str, end: End, text: str) -> None:
        """Count something that was refused, and tell of it."""


class _Said(NamedTuple):
    """What ARP and neighbour discovery have in common."""

    question: bool
    address: bytes
    target: bytes
    unspecified: bool

    def within(self, vlan_id: int) -> _Said:
        """Return the same with the names of addresses in a VLAN."""
        return self._replace(address=in_domain(self.address, vlan_id), target=in_domain(self.target, vlan_id))


class Resolver:
    """Follows each question from the asker to the answer.

    A host's packets count only where the host is known to live, so nobody can poison a neighbour's cache. A known
    target is answered for by proxy once every switch on the way there and back has its entries in place; an unknown
    one is asked for at all edge ports. Who checks on a neighbour by unicast, or whether an address is free, gets
    through to its holder, so that the dead do not answer. All this is within a domain, and within a fabric: nobody
    hears of a question in another one, and its hosts answer for nobody there.
    """

    def __init__(self, fabric: LiveFabric, settings: UnicastSettings, around: ResolverSurroundings) -> None:
        self._fabric = fabric
        self._settings = settings
        self._around = around
        self._asks: dict[AskKey, Resolution] = {}
        self._asks_at: dict[End, int] = {}
        self._by_name: dict[bytes, dict[AskKey, None]] = {}
        self._waiting: dict[int, dict[AskKey, None]] = {}
        self._expiry: Deadlines[AskKey] = Deadlines()
        self._plain: dict[bytes, bytes] = {}
        self.next_deadline: Callable[[], float | None] = self._expiry.next

    def received(self, end: End, packet: Arp | Neighbour, data: bytes, now: float, vlan_id: int = OWN_DOMAIN) -> None:
        """Take in an ARP or neighbour discovery packet of a domain."""
        role = self._fabric.role(*end)
        if role is PortRole.UNKNOWN:  # a host that speaks while its port is being looked at asks again
            self._around.count("resolution-early")
            return
        if role is not PortRole.EDGE:
            self._around.counted(
                "resolution-off-edge", end, "receives ARP or ND, though it does not lead to hosts: it is ignored"
            )
            return
        if packet.eth_dst == self._settings.controller_mac:
            return
        said, mac, receiver = _said(packet), packet.eth_src, packet.eth_dst
        if vlan_id:
            mac, receiver = in_domain(mac, vlan_id), in_domain(receiver, vlan_id)
            said = None if said is None else said.within(vlan_id)
        if said is not None and said.question and said.address == said.target:
            self._open(Resolution(AskKind.ANNOUNCE, mac, end, said.target, packet, data, vlan_id=vlan_id), now)
        elif said is None or self._fabric.binding_conflict(mac, said.address, *end):
            self._around.counted(
                "resolution-spoofed", end, "receives ARP or ND with another host's addresses: it is ignored"
            )
        elif not said.question:
            self._answered(end, packet, said.address, data, now)
        elif said.unspecified:
            tentative = Resolution(AskKind.DETECT_DUPLICATE, mac, end, said.target, packet, data, vlan_id=vlan_id)
            self._detect_duplicate(tentative, now)
        else:
            holder = None
            if not receiver[0] & 1:
                holder = self._fabric.host_near(receiver, end[0]) or self._fabric.host(receiver)
            if holder is not None:
                self._pass_on(end, holder, data, now)
            else:
                self._open(Resolution(AskKind.RESOLVE, mac, end, said.target, packet, data, vlan_id=vlan_id), now)

    def host_learnt(self, host: HostLearnt, now: float) -> None:
        """Go on with what waited for this host or its addresses."""
        for name in (shared_name(host.mac), *host.addresses):
            for key in tuple(self._by_name.get(name, ())):
                if key in self._asks:
                    self._advance(self._asks[key], now)

    def fabrics_joined(self, now: float) -> None:
        """Go on with what waited for hosts that no link led to."""
        for key in tuple(self._asks):
            if key in self._asks and self._asks[key].relayed:
                self._advance(self._asks[key], now)

    def installed(self, dpid: int, now: float) -> None:
        """Go on with what waited for the entries of a switch."""
        for key in tuple(self._waiting.get(dpid, ())):
            self._advance(self._asks[key], now)

    def on_deadline(self, now: float) -> None:
        """Give up what took too long; an answer that was held goes out all the same."""
        for key in self._expiry.due(now):
            ask = self._asks[key]
            self._close(ask)
            if ask.reply is not None:
                self._around.send(ask.end, ask.reply, ask.vlan_id)

    def _answered(self, end: End, packet: Arp | Neighbour, target: bytes, data: bytes, now: float) -> None:
        """Bring an answer to who asked; one to everybody defends an address or announces it.

        `target` is the name of the address that the answer is about.
        """
        vlan_id = domain_of(target)
        mac = in_domain(packet.eth_src, vlan_id)
        if isinstance(packet, Neighbour) and data[_NEXT_HEADER_OFFSET] == ICMPV6:
            self._note_plain(target, mac, end[0], is_router=bool(data[_NA_FLAGS_OFFSET] & _ROUTER_FLAG))
        if packet.eth_dst[0] & 1:
            asks = [self._asks[key] for key in self._by_name.get(target, ())]
            tentative = [ask for ask in asks if ask.kind is AskKind.DETECT_DUPLICATE and ask.mac != mac]
            for ask in tentative:
                self._close(ask)
                self._around.send(ask.end, data, vlan_id)
            if not tentative:
                self._open(Resolution(AskKind.ANNOUNCE, mac, end, target, packet, data, vlan_id=vlan_id), now)
            return
        asker_mac = in_domain(packet.eth_dst, vlan_id)
        asker = self._fabric.host_near(asker_mac, end[0])
        if asker is not None:
            where = (asker.dpid, asker.port_no)
            answered = Resolution(
                AskKind.RESOLVE, asker_mac, where, target, packet, data, True, data, mac, vlan_id=vlan_id
            )
            self._open(answered, now)

    def _note_plain(self, target: bytes, mac: bytes, dpid: int, *, is_router: bool) -> None:
        """Note of a host's IPv6 address whether it is no router's, so that it can be answered for."""
        if len(self._plain) >= MAX_PLAIN_COUNT:
            self._plain.clear()
        holder = self._fabric.host_near(mac, dpid)
        name = mac if holder is None else holder.mac
        if not is_router:
            self._plain[target] = name
        elif holder is None or self._plain.get(target) == name:
            self._plain.pop(target, None)

    def _detect_duplicate(self, ask: Resolution, now: float) -> None:
        holder = self._fabric.host_by_ip(ask.target, ask.end[0])
        if holder is not None and shared_name(holder.mac) == ask.mac:
            return
        if isinstance(ask.packet, Neighbour):
            self._keep(ask, now)
        if holder is not None:
            self._pass_on(ask.end, holder, ask.data, now)
        else:
            self._around.relay(ask.end, ask.data, now, ask.vlan_id)

    def _pass_on(self, end: End, holder: HostLearnt, data: bytes, now: float) -> None:
        if not self._is_at(holder, end) and self._fabric.fabrics.is_one(holder.dpid, end[0]):
            self._around.ask((holder.dpid, holder.port_no), data, now, domain_of(holder.mac))

    def _is_at(self, host: HostLearnt, end: End) -> bool:
        """Tell whether a host is at a port, or behind another leg of its link aggregation group."""
        return self._fabric.is_one_port((host.dpid, host.port_no), end)

    def _open(self, ask: Resolution, now: float) -> None:
        if self._keep(ask, now):
            self._advance(ask, now)

    def _keep(self, ask: Resolution, now: float) -> bool:
        if ask.key in self._asks:
            self._close(self._asks[ask.key])
        at_port = self._asks_at.get(ask.end, 0)
        if at_port >= self._settings.asks_per_port or len(self._asks) >= self._settings.asks:
            self._around.counted(
                "ask-limit",
                ask.end,
                "has more ARP or ND questions unanswered than its limit: further ones are dropped",
            )
            return False
        self._asks[ask.key] = ask
        self._asks_at[ask.end] = at_port + 1
        for name in ask.names():
            self._by_name.setdefault(name, {})[ask.key] = None
        self._expiry.set(ask.key, now + self._settings.ask_timeout_s)
        return True

    def _close(self, ask: Resolution) -> None:
        del self._asks[ask.key]
        self._asks_at[ask.end] -= 1
        if not self._asks_at[ask.end]:
            del self._asks_at[ask.end]
        for name in ask.names():
            keys = self._by_name.get(name)
            if keys is not None:
                keys.pop(ask.key, None)
                if not keys:
                    del self._by_name[name]
        self._wait(ask, None)
        self._expiry.cancel(ask.key)

    def _wait(self, ask: Resolution, dpid: int | None) -> None:
        """Let an ask wait for a switch in place of the one that it waited for."""
        if ask.waits_for is not None:
            keys = self._waiting[ask.waits_for]
            del keys[ask.key]
            if not keys:
                del self._waiting[ask.waits_for]
        if dpid is not None:
            self._waiting.setdefault(dpid, {})[ask.key] = None
        ask.waits_for = dpid

    def _advance(self, ask: Resolution, now: float) -> None:
        """Do the next step of an ask, if its time has come."""
        asker = self._fabric.host_near(ask.mac, ask.end[0])
        if asker is None or not self._is_at(asker, ask.end):
            return
        if ask.kind is AskKind.ANNOUNCE:
            if ask.target in asker.addresses:
                self._close(ask)
                self._around.relay(ask.end, ask.data, now, ask.vlan_id)
            return
        if ask.kind is AskKind.DETECT_DUPLICATE:
            return
        if ask.responder is not None:
            responder = self._fabric.host_near(ask.responder, ask.end[0])
        else:
            responder = self._fabric.host_by_ip(ask.target, ask.end[0])
        if responder is None or not self._fabric.fabrics.is_one(responder.dpid, ask.end[0]):
            if not ask.relayed and ask.reply is None:
                ask.relayed = True
                self._around.relay(ask.end, ask.data, now, ask.vlan_id)
            return
        if self._is_at(responder, ask.end):
            self._close(ask)
            return
        dpid = self._around.unready(asker, responder)
        if dpid is not None:
            self._wait(ask, dpid)
            return
        self._close(ask)
        if ask.reply is not None:
            self._around.send(ask.end, ask.reply, ask.vlan_id)
        elif isinstance(ask.packet, Arp):
            reply = encode_arp(arp_reply(ask.packet, address_of(responder.mac)))
            self._around.send(ask.end, reply, ask.vlan_id)
        elif self._plain.get(ask.target) == responder.mac:
            advertisement = encode_neighbour(neighbour_advertisement(ask.packet, address_of(responder.mac)))
            self._around.send(ask.end, advertisement, ask.vlan_id)
        else:
            self._pass_on(ask.end, responder, ask.data, now)


def _said(packet: Arp | Neighbour) -> _Said | None:
    """Return what a packet says of its sender, None where it names another MAC address than the frame does."""
    if isinstance(packet, Arp):
        if packet.sender_mac != packet.eth_src:
            return None
        unspecified = packet.sender_ip == UNSPECIFIED_V4
        return _Said(packet.operation == REQUEST, packet.sender_ip, packet.target_ip, unspecified)
    if packet.mac is not None and packet.mac != packet.eth_src:
        return None
    if packet.solicitation:
        return _Said(True, packet.source, packet.target, packet.source == UNSPECIFIED_V6)
    return _Said(False, packet.target, packet.target, False)
