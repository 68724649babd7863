"""One simulated switch: its connection, what it answers, and what it forwards."""

from __future__ import annotations

import socket
import time
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from apps.simulated_fabric import messages
from apps.simulated_fabric.frames import LLDP, changed, fields_of
from apps.simulated_fabric.ports import PortCounters
from apps.simulated_fabric.table import Entry, HeldTable, Key
from apps.simulated_fabric.watch import SwitchWatch
from controller.rules.pipeline import OPENFLOW_1_3

HOPS = 64
"""What travels further goes in a circle."""

_FLOW_MOD, _PACKET_OUT = messages.FLOW_MOD, messages.PACKET_OUT
_BARRIER, _MULTIPART = messages.BARRIER_REQUEST, messages.MULTIPART_REQUEST
_header, _body = messages.HEADER.unpack_from, messages.FLOW_MOD_BODY.unpack_from
_u16, _u32 = messages.U16.unpack_from, messages.U32.unpack_from
_NO_TIMES = (0, 0)


class Service(NamedTuple):
    """How a switch does what it is told, in order: `edits_per_s`, `barrier_s` and `reading_s` for each request.

    The former is what a barrier takes, the latter what statistics do.

    Beyond `held_edits` that wait it drops its connection, and forgets them. None stands for no limit.
    """

    edits_per_s: float | None = None
    barrier_s: float = 0.0
    held_edits: int | None = None
    reading_s: float = 0.0

    @property
    def limited(self) -> bool:
        """Whether anything has to wait."""
        return self.edits_per_s is not None or self.barrier_s > 0 or self.reading_s > 0


class Surroundings(Protocol):
    """What a switch asks of the fabric that it is part of.

    Attributes
    ----------
    watch
        Counts what switches see.
    interned
        Keys and instructions of entries, each once for all switches.
    reached_host
        Takes a frame that leaves by a port to a host: datapath id, port and frame.
    entry_changed
        Told of each edit that is done: datapath id, match and instructions, none of these of what is deleted.
    """

    watch: SwitchWatch
    interned: dict[Any, Any]
    reached_host: Callable[[int, int, bytes], None]
    entry_changed: Callable[[int, bytes, bytes], None] | None

    def at(self, time_s: float, action: Callable[[float], None]) -> None:
        """Have `action` called with the time when it has come."""

    def flush_soon(self, switch: SimulatedSwitch) -> None:
        """Send what a switch has to say at the end of this turn."""

    def drop(self, switch: SimulatedSwitch) -> None:
        """End a switch's connection."""


class SimulatedSwitch:
    """A switch with `ports` by number (speed in kbit/s); `far` tells by port number what a cable leads to.

    `far` has no key for a port that leads to hosts, and None for one that leads to a switch and carries nothing now.
    `cable_s` is how long a frame takes that leaves by a port, in seconds; nothing where it has no key.
    """

    def __init__(self, fabric: Surroundings, dpid: int, ports: dict[int, int], capacity: int | None) -> None:
        self.fabric = fabric
        self.dpid = dpid
        self.ports = ports
        self.down: set[int] = set()
        self.far: dict[int, tuple[SimulatedSwitch, int] | None] = {}
        self.cable_s: dict[int, float] = {}
        self.table = HeldTable(capacity)
        self.service = Service()
        self.alive = True
        self.wanted = True
        self.reading = True
        self.socket: socket.socket | None = None
        self.out = bytearray()
        self.watching_writes = False
        self.drops = self.readings = 0
        self.role = messages.EQUAL
        self.generation_id: int | None = None
        self.is_answered = True
        """Whether the controller has answered the last echo request, and so taken all that was said before it."""
        self._in = b""
        self._held: deque[tuple[float, int, int, bytes]] = deque()
        self._held_edits = 0
        self._free_s = 0.0
        self._matches = {port_no: messages.match_of_port(port_no) for port_no in ports}
        self._counters: PortCounters | None = None

    def begin(self) -> None:
        """Begin a connection that stands."""
        self._in = b""
        self.role = messages.EQUAL
        self.out = bytearray(messages.hello())

    def end(self) -> None:
        """Forget what was under way on a connection that has ended."""
        self._in = b""
        self.out.clear()
        self._held.clear()
        self._held_edits = 0
        self.is_answered = True
        self.fabric.watch.forget(self.dpid)

    def ask(self) -> None:
        """Ask the controller for an echo."""
        self.is_answered = False
        self.out += messages.message(messages.ECHO_REQUEST, 0)

    def take(self, data: bytes, now: float) -> None:
        """Do what has come, or have it wait for its turn."""
        buffer = self._in + data if self._in else data
        offset, end = 0, len(buffer)
        watch, limited = self.fabric.watch, self.service.limited or bool(self._held)
        while end - offset >= 8:
            _, kind, length, xid = _header(buffer, offset)
            stop = offset + length
            if stop > end:
                break
            if kind == _PACKET_OUT:
                self._packet_out(buffer, offset, stop)
            elif limited and kind in (_FLOW_MOD, _BARRIER, _MULTIPART):
                self._hold(kind, xid, buffer[offset:stop], now)
                if self.socket is None:
                    return
            elif kind == _FLOW_MOD:
                self._flow_mod(xid, buffer, offset, stop, now)
            elif kind == _BARRIER:
                watch.confirmed(self.dpid, now)
                self.out += messages.HEADER.pack(4, messages.BARRIER_REPLY, 8, xid)
            elif kind == _MULTIPART:
                self._multipart(xid, buffer[offset:stop], now)
            else:
                self._other(kind, xid, buffer[offset:stop])
            watch.received[kind] += 1
            offset = stop
        self._in = buffer[offset:]

    def _other(self, kind: int, xid: int, message: bytes) -> None:
        if kind == messages.ECHO_REQUEST:
            self.out += messages.message(messages.ECHO_REPLY, xid, message[8:])
        elif kind == messages.ECHO_REPLY:
            self.is_answered = True
        elif kind == messages.FEATURES_REQUEST:
            self.out += messages.features(xid, self.dpid, 254)
        elif kind == messages.GET_CONFIG_REQUEST:
            self.out += messages.config(xid)
        elif kind == messages.ROLE_REQUEST:
            self._role_wanted(xid, message)

    def _role_wanted(self, xid: int, message: bytes) -> None:
        """Take a role in a generation that is not older than what the switch knows (OpenFlow 1.3.5, 6.3.4)."""
        role, generation_id = messages.ROLE.unpack_from(message, 8)
        if role in (messages.MASTER, messages.SLAVE):
            former = self.generation_id
            if former is not None and (generation_id - former) & messages.GENERATION_SIGN:
                self.out += messages.error(xid, messages.STALE, message)
                return
            self.generation_id = generation_id
        if role != messages.NOCHANGE:
            self.role = role
        known = messages.GENERATION_MASK if self.generation_id is None else self.generation_id
        self.out += messages.message(messages.ROLE_REPLY, xid, messages.ROLE.pack(self.role, known))

    def _hold(self, kind: int, xid: int, message: bytes, now: float) -> None:
        self.serve(now)
        service = self.service
        cost_s = service.barrier_s if kind == _BARRIER else service.reading_s
        if kind == _FLOW_MOD:
            self._held_edits += 1
            if service.held_edits is not None and self._held_edits > service.held_edits:
                self.drops += 1
                self.fabric.drop(self)
                return
            cost_s = 1.0 / service.edits_per_s if service.edits_per_s is not None else 0.0
        self._free_s = max(now, self._free_s) + cost_s
        self._held.append((self._free_s, kind, xid, message))
        if kind != _FLOW_MOD:
            self.fabric.at(self._free_s, self.serve)

    def serve(self, now: float) -> None:
        """Do what has had its time."""
        held = self._held
        while held and held[0][0] <= now:
            _, kind, xid, message = held.popleft()
            if kind == _FLOW_MOD:
                self._held_edits -= 1
                self._flow_mod(xid, message, 0, len(message), now)
            elif kind == _BARRIER:
                self.fabric.watch.confirmed(self.dpid, now)
                self.out += messages.HEADER.pack(4, messages.BARRIER_REPLY, 8, xid)
            else:
                self._multipart(xid, message, now)
        self.fabric.flush_soon(self)

    def _flow_mod(self, xid: int, buffer: bytes, offset: int, stop: int, now: float) -> None:
        if self.role == messages.SLAVE:
            self.out += messages.error(xid, messages.IS_SLAVE, buffer[offset:stop])
            return
        cookie, mask, table, command, idle_s, hard_s, priority, *_ = _body(buffer, offset + 8)
        match_end = offset + 48 + (_u16(buffer, offset + 50)[0] + 7 & ~7)
        match, instructions = buffer[offset + 48 : match_end], buffer[match_end:stop]
        kept, interned = self.table, self.fabric.interned
        key: Key = (table, priority, match)
        key = interned.setdefault(key, key)
        former = kept.held.get(key)
        self.fabric.watch.edited(cookie or (former.cookie if former is not None else 0), self.dpid, match, now)
        if self.fabric.entry_changed is not None:
            is_deleted = command in (messages.DELETE, messages.DELETE_STRICT)
            self.fabric.entry_changed(self.dpid, match, b"" if is_deleted else instructions)
        if command == messages.ADD:
            instructions = interned.setdefault(instructions, instructions)
            times = (idle_s, hard_s) if idle_s or hard_s else _NO_TIMES
            if not kept.add(key, Entry(cookie, times, now, instructions)):
                self.out += messages.error(xid, messages.TABLE_FULL, buffer[offset:stop])
            elif hard_s:
                added = kept.held[key]
                self.fabric.at(now + hard_s, lambda _now: self._expire(key, added))
        elif command == messages.DELETE_STRICT:
            kept.delete(key)
        elif command == messages.MODIFY_STRICT:
            kept.modify(key, instructions)
        else:
            for each in list(kept.chosen(table, match, cookie, mask)):
                if command == messages.DELETE:
                    kept.delete(each)
                else:
                    kept.modify(each, instructions)

    def _expire(self, key: Key, added: Entry) -> None:
        if self.table.held.get(key) is added:
            self.table.delete(key)

    def _multipart(self, xid: int, message: bytes, now: float) -> None:
        (kind,) = _u16(message, 8)
        if kind == messages.FLOW:
            self.fabric.watch.readings += 1
            self.readings += 1
            cookie, mask = int.from_bytes(message[32:40], "big"), int.from_bytes(message[40:48], "big")
            pieces = self.table.statistics(list(self.table.chosen(message[16], message[48:], cookie, mask)), now)
        elif kind == messages.PORT_DESC:
            pieces = [self.description(port_no) for port_no in self.ports]
        elif kind == messages.PORT_STATS:
            self.fabric.watch.port_readings += 1
            if self._counters is None:
                self._counters = PortCounters(self.dpid, list(self.ports))
            pieces = self._counters.read(now, _u32(message, 16)[0])
        elif kind == messages.DESC:
            self.out += messages.description(xid, self.dpid)
            return
        else:
            self.out += messages.error(xid, messages.BAD_MULTIPART, message)
            return
        self.out += messages.multipart(xid, kind, pieces)

    def description(self, port_no: int) -> bytes:
        """Describe a port as it is."""
        return messages.port(self.dpid, port_no, port_no not in self.down, self.ports[port_no])

    def set_carrier(self, port_no: int, up: bool) -> None:
        """Tell the controller that a port has a carrier, or has none any more."""
        (self.down.discard if up else self.down.add)(port_no)
        self.say(messages.port_status(self.description(port_no)))

    def say(self, message: bytes) -> None:
        """Send messages to the controller, where there is a connection."""
        if self.socket is not None:
            self.out += message
            self.fabric.flush_soon(self)

    def _packet_out(self, buffer: bytes, offset: int, stop: int) -> None:
        at = offset + 24
        end = at + _u16(buffer, offset + 16)[0]
        frame = buffer[end:stop]
        while at < end:
            kind, size = buffer[at : at + 2], _u16(buffer, at + 2)[0]
            if kind == b"\0\0":
                self.transmit(_u32(buffer, at + 4)[0], frame, 0)
            at += size
        if frame[12:14] == LLDP:
            self.fabric.watch.lldp_frames += 1

    def transmit(self, port_no: int, frame: bytes, hops: int) -> None:
        """Send a frame out of a port."""
        if port_no in self.far:
            far = self.far[port_no]
            if far is None:
                return
            if port_no in self.cable_s:
                arrives_s = time.monotonic() + self.cable_s[port_no]
                self.fabric.at(arrives_s, lambda _now: far[0].arrive(far[1], frame, hops + 1))
            else:
                far[0].arrive(far[1], frame, hops + 1)
        elif port_no not in self.down:
            self.fabric.reached_host(self.dpid, port_no, frame)

    def arrive(self, in_port: int, frame: bytes, hops: int = 0) -> None:
        """Take a frame in at a port, and do with it what the entries say."""
        if not self.alive or in_port in self.down:
            return
        if hops > HOPS:
            self.fabric.watch.circles += 1
            return
        if frame[12:14] == LLDP:
            verdict = self.table.lldp(in_port, frame[:6])
            as_it_came: tuple[bytes, tuple[int, ...], int] = (frame[:6], (), 0)
        else:
            fields = fields_of(frame)
            verdict = self.table.process(OPENFLOW_1_3, fields, in_port, len(frame))
            as_it_came = (fields.eth_dst, fields.vlan_ids, fields.dscp)
        for port_no, eth_dst, vlan_ids, dscp, _queue_id in verdict.sent:
            now = (eth_dst, vlan_ids, dscp)
            copy = frame if now == as_it_came else changed(frame, *now)
            if port_no == messages.CONTROLLER:
                rule = verdict.met[-1]
                self._punt(in_port, copy, rule.key.table, rule.cookie)
            else:
                self.transmit(port_no, copy, hops)

    def _punt(self, in_port: int, frame: bytes, table: int, cookie: int) -> None:
        if self.socket is not None:
            self.fabric.watch.packet_ins += 1
            self.out += messages.packet_in(self._matches[in_port], frame, table, cookie)
            self.fabric.flush_soon(self)
