"""What switches send, as events for the apps that share the loop of their connections.

Packet-ins, barrier replies, errors and flow statistics go to the apps as the cores' own events, without an object of
the framework's in between. Everything else, and what an app of somebody else's observes, goes by the framework too.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from struct import Struct
from typing import Any, Protocol, TypeAlias

from apps.openflow.connection import HEADER, HEADER_BYTES, PACKET_IN, UPKEEP_S, Connection
from apps.openflow.reactor import Reactor
from controller.events import (
    BarrierReplied,
    EditFailed,
    FlowStatsReceived,
    PacketReceived,
    ResourcesReceived,
    RoleReplied,
    TablesReceived,
)
from controller.kernel.notices import NoticeLimiter
from controller.rules import of10_roles
from controller.rules.lowering import LOWERINGS
from controller.rules.of13_resources import decode_role_reply
from controller.rules.table_capacity import TABLE_KINDS
from controller.wire.ethernet import ETHERTYPE_LLDP

LOGGER = logging.getLogger("vsrt")

OPENFLOW_1_0, OPENFLOW_1_3 = 1, 4

Answer: TypeAlias = BarrierReplied | EditFailed | FlowStatsReceived | ResourcesReceived | RoleReplied | TablesReceived
"""What answers a message of ours."""

_ERROR = 1
_STATS_REPLIES = {OPENFLOW_1_0: 17, OPENFLOW_1_3: 19}
_BARRIER_REPLIES = {version: lowering.barrier_reply for version, lowering in LOWERINGS.items()}
_FLOW_STATS = 1
_RESOURCES = frozenset((7, 10))
"""Multipart replies that tell groups and meters."""
_ROLE_REPLY = 25
_NO_MATCH = 0  # OFPR_NO_MATCH

_PACKET_IN_1_3 = Struct("!4xHB11xHII")
"""total_len and reason; the match's length; its first field, where a port."""
_PACKET_IN_1_0 = Struct("!IHHBx")
"""buffer_id, total_len, in_port, reason."""
_read_1_3, _BYTES_1_3 = _PACKET_IN_1_3.unpack_from, HEADER_BYTES + _PACKET_IN_1_3.size
_IN_PORT_FIELD = 0x80000004
_MATCH_OFFSET = HEADER.size + 16

_USUAL_1_3 = Struct("!HH8xHB9xQI6x3s")
"""A packet-in whose match is its port alone: version and type, the message's length, total_len, reason; the match's
type, length and field; the port, and the first three bytes of the frame."""
_read_usual_1_3, _USUAL_BYTES_1_3 = _USUAL_1_3.unpack_from, _USUAL_1_3.size
_USUAL_HEAD, _USUAL_MATCH = OPENFLOW_1_3 << 8 | PACKET_IN, 1 << 48 | 12 << 32 | _IN_PORT_FIELD
_FRAME_OFFSET = _USUAL_BYTES_1_3 - 3
_TWO = Struct("!HH")

_LLDP = ETHERTYPE_LLDP.to_bytes(2, "big")
_IPV4_GROUP = b"\x01\x00\x5e"

_new = tuple.__new__

PACKETS_AT_ONCE = 16
"""Packet-ins that an app takes in one turn at most, where they came together."""


class MessageAsker(Protocol):
    """Somebody who sends switches messages that they answer."""

    def answered(self, event: Answer) -> None:
        """Take the answer to a message."""


class Taker(MessageAsker, Protocol):
    """An app on the loop of the connections."""

    takes_lldp: bool
    """Whether it is handed LLDP frames too."""
    takes_ipv4_groups: bool
    """Whether it is handed frames to IPv4 groups too, membership reports among them."""

    def packets_received(self, events: Sequence[PacketReceived]) -> None:
        """Take packet-ins that came together, in their order."""

    def switch_refused(self, host: str, reason: str) -> None:
        """Take note that a switch was not let in, or did not let us."""


class SwitchGate(Protocol):
    """Who decides when the apps are to know of a switch, where several controllers share the fabric."""

    def is_shut(self, datapath: Any) -> bool:
        """Tell whether the apps do not know of a connection yet."""

    def withholds(self, event: PacketReceived) -> bool:
        """Take a packet-in; False where it is for the apps."""

    def refusal(self) -> Exception | None:
        """Return why operators can set nothing here now, None where they can."""


class Southbound:
    """Hands what connected switches send to the apps on the loop, by the transaction ids of what it answers.

    `observed` tells whether somebody beside these apps observes an event of the framework of this name.
    """

    def __init__(self, reactor: Reactor, observed: Callable[[str], bool]) -> None:
        self.reactor = reactor
        self._observed = observed
        self._takers: tuple[Taker, ...] = ()
        self._lldp_takers: tuple[Taker, ...] = ()
        self._ipv4_group_takers: tuple[Taker, ...] = ()
        self._by_tag: dict[int, MessageAsker] = {}
        self._packets: list[PacketReceived] = []
        self._packets_for: tuple[Taker, ...] = ()
        self._packets_observed: bool | None = None
        """Whether somebody beside the apps observes packet-ins; asked once for those that come together."""
        self._connections: set[Connection] = set()
        self._refusals = NoticeLimiter()
        self._echo_interval_s, self._unanswered = 1.0, 0
        self.deadline_s: float | None = None
        self._waiting: list[Callable[[], None]] | None = None
        self.gate: SwitchGate | None = None
        """Set before the loop begins, where there is one."""
        reactor.add(self)

    def add(self, taker: Taker, xid_tag: int) -> None:
        """Have an app take packet-ins, and the answers to its messages."""
        self._use((*self._takers, taker))
        self.add_asker(taker, xid_tag)

    def remove(self, taker: Taker) -> None:
        """Have an app take nothing more; on the loop."""
        self._use(tuple(other for other in self._takers if other is not taker))
        self.remove_asker(taker)

    def add_asker(self, asker: MessageAsker, xid_tag: int) -> None:
        """Hand the answers to messages with this tag to who sends them."""
        self._by_tag[xid_tag] = asker

    def remove_asker(self, asker: MessageAsker) -> None:
        """Hand somebody no more answers; on the loop."""
        self._by_tag = {tag: other for tag, other in self._by_tag.items() if other is not asker}

    def _use(self, takers: tuple[Taker, ...]) -> None:
        self._takers = takers
        self._lldp_takers = tuple(taker for taker in takers if taker.takes_lldp)
        self._ipv4_group_takers = tuple(taker for taker in takers if taker.takes_ipv4_groups)

    def take(self, datapath: Any, version: int, kind: int, xid: int, message: bytes) -> bool:
        """Take a message; False where the framework is to have it.

        Packet-ins are kept until others have other takers, something else comes, or `hand_over` is called.
        """
        if kind == PACKET_IN:
            event = packet_in(datapath.id, version, message)
            if event is not None:
                if self.gate is None or not self.gate.withholds(event):
                    self._gather(event)
                if self._packets_observed is None:
                    self._packets_observed = self._observed("EventOFPPacketIn")
                if not self._packets_observed:
                    return True
            self.hand_over()
            return False
        self.hand_over()
        asker = self._by_tag.get(xid >> 24)
        if asker is None:
            return False
        if kind == _BARRIER_REPLIES.get(version):
            asker.answered(_new(BarrierReplied, (datapath.id, xid)))
            return not self._observed("EventOFPBarrierReply")
        if len(message) < HEADER.size + _TWO.size:
            return False
        one, other = _TWO.unpack_from(message, HEADER.size)
        if kind == _ERROR:
            asker.answered(EditFailed(datapath.id, xid, one, other))
            return not self._observed("EventOFPErrorMsg")
        if kind == _STATS_REPLIES.get(version) and one == _FLOW_STATS:
            asker.answered(FlowStatsReceived(datapath.id, version, xid, message))
            return not self._observed("EventOFPFlowStatsReply")
        if kind == _STATS_REPLIES.get(version) and one == TABLE_KINDS[version]:
            asker.answered(TablesReceived(datapath.id, version, xid, message))
            return True
        if version == OPENFLOW_1_3:
            return self._take_1_3(asker, datapath, kind, one, xid, message)
        answer = of10_roles.decode_role_reply(message)
        if answer is None:
            return False
        asker.answered(RoleReplied(datapath.id, xid, answer.role, None))
        return True

    def take_packets(self, datapath: Any, data: bytes, at: int) -> int:
        """Take the packet-ins that stand at a place in what was read, as `take` would each; return where they end.

        Of OpenFlow 1.3, laid out as usual, which nobody else observes or withholds: none elsewhere. No more are taken
        than are handed over together, so that the connection may end between.
        """
        if self._packets_observed is None:
            self._packets_observed = self._observed("EventOFPPacketIn")
        if self._packets_observed or self.gate is not None:
            return at
        dpid, size, began, packets = datapath.id, len(data), at, self._packets
        while size - at >= _USUAL_BYTES_1_3:
            head, length, frame_bytes, reason, match, port_no, beginning = _read_usual_1_3(data, at)
            following = at + length
            if head != _USUAL_HEAD or match != _USUAL_MATCH or length < _USUAL_BYTES_1_3 or following > size:
                break
            start = at + _FRAME_OFFSET
            end = start + frame_bytes
            frame = data[start : end if end < following else following]
            takers = self._ipv4_group_takers if beginning == _IPV4_GROUP else self._takers_of(frame)
            if takers is not self._packets_for or len(packets) >= PACKETS_AT_ONCE:
                if at != began:
                    break
                self.hand_over()
                self._packets_for, packets = takers, self._packets
            packets.append(_new(PacketReceived, (dpid, port_no, frame, reason == _NO_MATCH)))
            at = following
        return at

    def hand(self, event: PacketReceived) -> None:
        """Hand a packet-in to the apps that take its like."""
        self._gather(event)
        self.hand_over()

    def hand_over(self) -> None:
        """Hand the packet-ins that were taken to the apps that take their like, to each all that came together.

        One that fails is left to itself: the others are handed them all the same.
        """
        self._packets_observed = None
        if self._packets:
            packets, self._packets = self._packets, []
            for taker in self._packets_for:
                try:
                    taker.packets_received(packets)
                except Exception:
                    LOGGER.exception("An app did not handle %d packet-ins to their end.", len(packets))

    def _gather(self, event: PacketReceived) -> None:
        takers = self._takers_of(event.data)
        if takers is not self._packets_for or len(self._packets) >= PACKETS_AT_ONCE:
            self.hand_over()
            self._packets_for = takers
        self._packets.append(event)

    def _takers_of(self, frame: bytes) -> tuple[Taker, ...]:
        """Return the apps that take a frame."""
        if frame[:3] == _IPV4_GROUP:
            return self._ipv4_group_takers
        return self._lldp_takers if frame[12:14] == _LLDP else self._takers

    def _take_1_3(self, asker: MessageAsker, datapath: Any, kind: int, what: int, xid: int, message: bytes) -> bool:
        """Take what only OpenFlow 1.3 has: groups, meters and roles."""
        if kind == _STATS_REPLIES[OPENFLOW_1_3] and what in _RESOURCES:
            asker.answered(ResourcesReceived(datapath.id, OPENFLOW_1_3, xid, message))
            return True
        reply = decode_role_reply(message) if kind == _ROLE_REPLY else None
        if reply is None:
            return False
        asker.answered(RoleReplied(datapath.id, xid, reply.role, reply.generation_id))
        return not self._observed("EventOFPRoleReply")

    # Connections

    def hold(self) -> None:
        """Let no switch in until `open`; before the loop begins."""
        self._waiting = []

    def when_open(self, begin: Callable[[], None]) -> None:
        """Begin to let switches in, as soon as nobody has that wait; on the loop."""
        if self._waiting is None:
            begin()
        else:
            self._waiting.append(begin)

    def open(self) -> None:
        """Let switches in; on the loop."""
        waiting, self._waiting = self._waiting, None
        for begin in waiting or ():
            begin()

    def connected(self, connection: Connection) -> None:
        """Look after a connection from now on; on the loop."""
        self._connections.add(connection)
        if self.deadline_s is None:
            self.deadline_s = self.reactor.now_s + UPKEEP_S

    def refused(self, connection: Connection, reason: str) -> None:
        """Have one of the apps tell of a connection that came to nothing, or the log without any; on the loop."""
        host = str(connection.address[0])
        if self._takers:
            self._takers[0].switch_refused(host, reason)
        elif self._refusals.passes((host, reason), self.reactor.now_s):
            LOGGER.warning("A switch that connected from %s was refused: %s.", host, reason)

    def ended(self, connection: Connection) -> None:
        """Look after a connection no more; on the loop."""
        self._connections.discard(connection)

    def ask_echoes(self, xid: int, answered: Callable[[int, int], None] | None) -> list[int]:
        """Ask every switch for an echo, and return their datapath ids; on the loop.

        `answered` is told of each answer by datapath id and `xid`, from 1; None has nobody told any more, and nobody
        asked.
        """
        asked = []
        for connection in tuple(self._connections):
            connection.echo_answered = answered
            if answered is not None and connection.ask_echo(xid):
                asked.append(connection.datapath.id)
        return asked

    def ask_silent(self, echo_interval_s: float, unanswered: int) -> None:
        """Have switches that are silent for so long asked whether they are there, at most so often in vain."""
        self._echo_interval_s, self._unanswered = echo_interval_s, unanswered

    def due(self) -> None:
        """Look after all connections."""
        now, interval_s, unanswered = self.reactor.now_s, self._echo_interval_s, self._unanswered
        silent_s = now - interval_s
        for connection in tuple(self._connections):
            if connection.heard_s <= silent_s or connection.blocked_s is not None:
                connection.look_after(now, interval_s, unanswered)
        self.deadline_s = now + UPKEEP_S if self._connections else None


def packet_in(dpid: int, version: int, message: bytes) -> PacketReceived | None:
    """Read a packet-in; None where it is not laid out as usual, or cut off."""
    if version == OPENFLOW_1_3:
        if len(message) < _BYTES_1_3:
            return None
        size_bytes, reason, match_bytes, field, port_no = _read_1_3(message, HEADER_BYTES)
        if field != _IN_PORT_FIELD:
            return None
        start = _MATCH_OFFSET + match_bytes + -match_bytes % 8 + 2
    elif version == OPENFLOW_1_0:
        if len(message) < HEADER.size + _PACKET_IN_1_0.size:
            return None
        _, size_bytes, port_no, reason = _PACKET_IN_1_0.unpack_from(message, HEADER.size)
        start = HEADER.size + _PACKET_IN_1_0.size
    else:
        return None
    data = message[start : start + size_bytes]
    return _new(PacketReceived, (dpid, port_no, data, reason == _NO_MATCH))
