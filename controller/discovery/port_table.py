"""The ports of connected switches: up and down, probed by LLDP, and the role that follows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from hmac import compare_digest
from typing import Protocol

from controller.discovery.deadlines import Deadlines
from controller.discovery.links import Links
from controller.discovery.ports import MAX_PORT_NO, End, PortState
from controller.discovery.settings import DiscoverySettings
from controller.discovery.timers import Timer, TimerKind
from controller.discovery.tokens import TokenBucket, fraction, lldp_token
from controller.effects import SendPacket
from controller.events import Port
from controller.wire.lldp import encode_lldp
from controller.wire.packets import Lldp
from topology.events import LinkDown, LinkUp, PortRole, PortRoleChanged

_PORT_TIMERS = (TimerKind.CARRIER, TimerKind.CABLE, TimerKind.PROBE, TimerKind.EDGE)


class PortOwner(Protocol):
    """What the port table tells the core around it."""

    def emit(self, output: LinkUp | LinkDown | PortRoleChanged | SendPacket) -> None:
        """Take an event or frame."""

    def counted(self, kind: str, end: End, text: str, now: float) -> None:
        """Count something odd."""

    def role_left(self, port: PortState, former: PortRole, now: float) -> None:
        """Act on the end of a role, before the new one is announced."""

    def role_taken(self, port: PortState, now: float) -> None:
        """Act on a role that was just announced."""

    def port_discarded(self, port: PortState, now: float) -> None:
        """Act on the end of a port."""


@dataclass(slots=True)
class SwitchState:
    """A switch; it is `ready`, and LLDP frames are sent, once its first entries are in place.

    One that is not `connected` was lost a moment ago and may come back; `linked` tells whether a link ever led to it.
    """

    ofp_version: int
    ready: bool = False
    connected: bool = True
    linked: bool = False
    ports: dict[int, PortState] = field(default_factory=dict)


class PortTable:
    """Every port, what it hears, and when it is to be probed next.

    Parameters
    ----------
    settings : DiscoverySettings
        Timers and bounds.
    secret : bytes
        The key of the LLDP tokens.
    deadlines : Deadlines
        Where the table sets its timers; the owner calls the methods in `due` for them.
    owner : PortOwner
        The core around the table.
    """

    def __init__(
        self, settings: DiscoverySettings, secret: bytes, deadlines: Deadlines[Timer], owner: PortOwner
    ) -> None:
        self._settings = settings
        self._secret = secret
        self._deadlines = deadlines
        self._owner = owner
        self.switches: dict[int, SwitchState] = {}
        self.ports: dict[End, PortState] = {}
        self._lost: set[int] = set()
        self._leaving: int | None = None
        self._last_ready = float("-inf")
        self._links = Links(self.ports, owner.emit, self._touched, self._hold_cable)
        self.due: dict[TimerKind, Callable[[End, float], None]] = {
            TimerKind.CARRIER: lambda end, now: self._raise(self.ports[end], now),
            TimerKind.CABLE: self._links.retry,
            TimerKind.PROBE: lambda end, now: self._probe(self.ports[end], now),
            TimerKind.EDGE: lambda end, now: self._decide_edge(self.ports[end], now),
        }

    def settings_changed(self, settings: DiscoverySettings) -> None:
        """Go by these settings from now on."""
        self._settings = settings
        for port in self.ports.values():
            self._set_speed(port)

    def describe(self, dpid: int, ports: tuple[Port, ...], now: float) -> None:
        """Take in the list of all ports of a connected switch."""
        switch = self.switches[dpid]
        described = {port.port_no: port for port in ports}
        for port_no in sorted(switch.ports.keys() - described.keys()):
            self.delete(dpid, port_no, now)
        for port_no in sorted(described):
            self.update(dpid, described[port_no], now)

    def update(self, dpid: int, described: Port, now: float) -> None:
        """Take in the state of one port of a connected switch; reserved ports are none of ours."""
        switch = self.switches[dpid]
        if not 0 < described.port_no < MAX_PORT_NO[switch.ofp_version]:
            return
        port = switch.ports.get(described.port_no)
        if port is None:
            port = self._new_port((dpid, described.port_no), now)
            switch.ports[described.port_no] = self.ports[port.end] = port
            if not described.up:
                self._set_role(port, now)
        port.described_bps = described.speed_bps
        self._set_speed(port)
        if described.up and not port.carrier:
            self._raise(port, now)
        elif port.carrier and not described.up:
            self._lower(port, now)
        port.carrier = described.up

    def delete(self, dpid: int, port_no: int, now: float) -> None:
        """Take out a port that its switch has no more."""
        port = self.switches[dpid].ports.get(port_no)
        if port is not None:
            self._lower(port, now)
            self._discard(port, now)
            del self.switches[dpid].ports[port_no]

    def ready(self, dpid: int, now: float) -> None:
        """Begin to probe the ports of a switch: it will hand over what arrives."""
        switch = self.switches[dpid]
        switch.ready = True
        self._last_ready = now
        for port in switch.ports.values():
            if port.up:
                self._start_probing(port, now)

    def lost(self, dpid: int) -> None:
        """Take in that a switch has no connection: its ports stay as they are, and nothing is expected of them."""
        switch = self.switches[dpid]
        switch.connected = switch.ready = False
        self._lost.add(dpid)
        for port in switch.ports.values():
            self._deadlines.cancel(Timer(TimerKind.PROBE, port.end))
            self._deadlines.cancel(Timer(TimerKind.EDGE, port.end))

    def found_again(self, dpid: int) -> None:
        """Take in that a lost switch has a connection again; `describe` and `ready` follow."""
        self.switches[dpid].connected = True
        self._lost.discard(dpid)

    def cut_off(self) -> int | None:
        """Return a lost switch whose last link is gone, None where there is none."""
        for dpid in sorted(self._lost):
            switch = self.switches[dpid]
            heard = {end[0] for port in switch.ports.values() for end in port.peers()}
            if switch.linked and not heard - {dpid}:
                return dpid
        return None

    def is_connected(self, dpid: int) -> bool:
        """Tell whether a switch is there to be asked."""
        switch = self.switches.get(dpid)
        return switch is not None and switch.connected

    def remove_switch(self, dpid: int, now: float) -> None:
        """Take out a switch with its ports and links. The ports at the other ends keep their role meanwhile."""
        switch = self.switches[dpid]
        self._leaving = dpid
        self._links.isolate(switch.ports.values(), now, switch_gone=True)
        self._leaving = None
        for port in switch.ports.values():
            self._discard(port, now)
        self._lost.discard(dpid)
        del self.switches[dpid]

    def lldp_received(self, sink: PortState, packet: Lldp, now: float) -> bool:
        """Take in one of our frames, or one made to look so, and tell whether it was genuine."""
        source = self.ports.get((packet.dpid, packet.port_no))
        expected = lldp_token(self._secret, packet.dpid, packet.port_no) if source is None else source.token
        if not compare_digest(packet.token, expected):
            return False
        if source is not None and source.up:
            source.unanswered_count = 0
            if self._links.sighted(source, sink, now):
                for end in (source.end, sink.end):
                    self.switches[end[0]].linked |= not source.looped()
                if sink.heard_by is None:
                    self._send_lldp(sink)
        return True

    def _set_speed(self, port: PortState) -> None:
        speed_bps = self._settings.link_capacity_bps or port.described_bps
        if speed_bps != port.speed_bps:
            port.speed_bps = speed_bps
            self._links.speed_changed(port)

    def _new_port(self, end: End, now: float) -> PortState:
        settings = self._settings
        token = lldp_token(self._secret, *end)
        flaps = TokenBucket(settings.flap_burst_count, settings.flap_refill_per_s, now)
        guard = TokenBucket(settings.guard_burst_count, settings.guard_refill_per_s, now)
        return PortState(end, token, encode_lldp(*end, token), flaps, guard)

    def _discard(self, port: PortState, now: float) -> None:
        for kind in _PORT_TIMERS:
            self._deadlines.cancel(Timer(kind, port.end))
        self._owner.port_discarded(port, now)
        del self.ports[port.end]

    def _raise(self, port: PortState, now: float) -> None:
        """Bring a port with carrier up, unless it flaps."""
        if not port.flaps.take(now):
            self._deadlines.set(Timer(TimerKind.CARRIER, port.end), now + port.flaps.wait_s(now))
            text = "the port goes up and down too often; it is held down"
            self._owner.counted("port-flapping", port.end, text, now)
            return
        port.up = True
        port.silent = False
        self._set_role(port, now)
        if self.switches[port.end[0]].ready:
            self._start_probing(port, now)

    def _lower(self, port: PortState, now: float) -> None:
        """Take a port down at once."""
        for kind in _PORT_TIMERS:
            self._deadlines.cancel(Timer(kind, port.end))
        port.was_trunk = None
        if port.up:
            port.up = False
            self._links.isolate((port,), now)

    def _touched(self, port: PortState, now: float) -> None:
        """Follow up a change of what a port hears or where it is heard."""
        if port.end[0] == self._leaving:
            return
        if port.up and not port.silent and not port.peers() and port.was_trunk is None:
            self._start_probing(port, now)
        self._set_role(port, now)

    def _set_role(self, port: PortState, now: float) -> None:
        role, former = port.current_role(), port.role
        if port.peers():
            port.silent = False
            self._deadlines.cancel(Timer(TimerKind.EDGE, port.end))
            if port.looped():
                text = "a cable leads from this port back to its own switch"
                self._owner.counted("port-looped", port.end, text, now)
        if role is not former:
            port.role = role
            self._owner.role_left(port, former, now)
            self._owner.emit(PortRoleChanged(*port.end, role))
            self._owner.role_taken(port, now)

    def _start_probing(self, port: PortState, now: float) -> None:
        if not self.switches[port.end[0]].ready:
            return
        port.probing_since = now
        port.probe_count = port.unanswered_count = 0
        self._deadlines.set(Timer(TimerKind.EDGE, port.end), now + self._settings.edge_after_s)
        if self._settings.probe_offsets_s[0] > 0:
            self._deadlines.set(Timer(TimerKind.PROBE, port.end), now + self._settings.probe_offsets_s[0])
        else:
            self._probe(port, now)

    def _probe(self, port: PortState, now: float) -> None:
        """Send the LLDP frame that is due: some in quick succession, then one an interval."""
        settings = self._settings
        timer = Timer(TimerKind.PROBE, port.end)
        offsets_s = settings.probe_offsets_s
        if port.probe_count < len(offsets_s):
            if port.heard is not None and port.heard_by is not None:
                port.probe_count = len(offsets_s)
            else:
                port.probe_count += 1
                self._send_lldp(port)
            if port.probe_count < len(offsets_s):
                self._deadlines.set(timer, port.probing_since + offsets_s[port.probe_count])
            else:
                self._deadlines.set(timer, now + settings.lldp_interval_s * (0.5 + 0.5 * fraction(*port.end)))
            return
        if any(not self.switches[end[0]].connected for end in port.peers()):
            port.unanswered_count = 0
        if port.unanswered_count >= settings.missed_count and self._give_up(port, now):
            return
        self._deadlines.set(timer, now + settings.lldp_interval_s)
        port.unanswered_count += 1
        self._send_lldp(port)

    def _give_up(self, port: PortState, now: float) -> bool:
        """Take in that a port is heard nowhere, and tell whether it was put to the first probes again for that."""
        if port.heard_by is not None:
            self._owner.counted("link-timeout", port.end, "LLDP frames of this port do not arrive any more", now)
            self._links.unheard(port, now)
        elif port.was_trunk is not None and port.was_trunk in self.switches and self.switches[port.was_trunk].ready:
            port.was_trunk = None
            self._touched(port, now)
        return Timer(TimerKind.PROBE, port.end) in self._deadlines

    def _send_lldp(self, port: PortState) -> None:
        self._owner.emit(SendPacket(port.end[0], (port.end[1],), port.frame))

    def _decide_edge(self, port: PortState, now: float) -> None:
        """Let a port that heard nothing lead to hosts, once switches that have just connected had their chance."""
        quiet_at = self._last_ready + self._settings.edge_after_s
        decide_at = min(quiet_at, port.probing_since + self._settings.edge_latest_s)
        if now < decide_at:
            self._deadlines.set(Timer(TimerKind.EDGE, port.end), decide_at)
        elif port.was_trunk is None:
            port.silent = True
            self._set_role(port, now)

    def _hold_cable(self, end: End, until: float) -> None:
        self._deadlines.set(Timer(TimerKind.CABLE, end), until)
