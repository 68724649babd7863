"""The ports of connected switches: up and down, probed by LLDP, and the role that follows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from controller.discovery.deadlines import Deadlines
from controller.discovery.links import Links
from controller.discovery.liveness import Liveness
from controller.discovery.ports import MAX_PORT_NO, End, PortState
from controller.discovery.segments import Segments
from controller.discovery.settings import DiscoverySettings
from controller.discovery.timers import Timer, TimerKind
from controller.discovery.tokens import FrameTokens, TokenBucket, fraction
from controller.effects import SendPacket
from controller.events import Port
from controller.wire.lldp import ECHO_MAC, SEGMENT_MAC, encode_lldp
from controller.wire.packets import Lldp
from topology.events import LinkDown, LinkUp, PortRole, PortRoleChanged

LLDP_LIFETIME_S = 2.0
"""How long after it was sent an LLDP frame shows a cable that was not known."""

_MICROSECONDS = 1e6
_SEGMENT_ROUNDS = 2
"""Of how many rounds one, where nothing is heard, is that of a segment frame."""

_PORT_TIMERS = (TimerKind.CARRIER, TimerKind.CABLE, TimerKind.PROBE, TimerKind.EDGE)


class PortOwner(Protocol):
    """What the port table tells the core around it."""

    counters: Counter[str]

    def emit(self, output: LinkUp | LinkDown | PortRoleChanged | SendPacket) -> None:
        """Take an event or frame."""

    def counted(self, kind: str, end: End, does: str, now: float) -> None:
        """Count something odd."""

    def request_barrier(self, dpid: int) -> int:
        """Have a switch say that it has done all it was sent; return the transaction id of its reply."""

    def suspect_table(self, dpid: int, now: float) -> None:
        """Have a switch's flow entries looked at, which may be gone."""

    def role_left(self, port: PortState, former: PortRole, now: float) -> None:
        """Act on the end of a role, before the new one is announced."""

    def role_taken(self, port: PortState, now: float) -> None:
        """Act on a role that was just announced."""

    def hold_changed(self, port: PortState, now: float) -> None:
        """Act on a port that is held, or is not any more, before its role changes."""


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
        self._tokens = FrameTokens(secret, b"vsrt-lldp")
        self._echo_tokens = FrameTokens(secret, b"vsrt-echo")
        self._segment_tokens = FrameTokens(secret, b"vsrt-segment")
        self._deadlines = deadlines
        self._owner = owner
        self.switches: dict[int, SwitchState] = {}
        self.ports: dict[End, PortState] = {}
        self._lost: set[int] = set()
        self._leaving: int | None = None
        self._last_ready = float("-inf")
        self.behind_s = 0.0
        """How long what arrives waits for the controller, as the last deadline showed."""
        self._links = Links(self.ports, owner.emit, self._touched, self._hold_cable)
        self.liveness = Liveness(settings, self.ports, self.switches, deadlines, self, self._failed)
        self.segments = Segments(self.ports, deadlines, self, self._segment_lifetime_s)
        self.counters, self.request_barrier = owner.counters, owner.request_barrier
        self.suspect_table = owner.suspect_table
        self.due: dict[TimerKind, Callable[[End, float], None]] = {
            TimerKind.CARRIER: lambda end, now: self._raise(self.ports[end], now),
            TimerKind.CABLE: self._links.retry,
            TimerKind.PROBE: lambda end, now: self._probe(self.ports[end], now),
            TimerKind.EDGE: lambda end, now: self._decide_edge(self.ports[end], now),
            TimerKind.CHECK: self.liveness.check,
            TimerKind.SEGMENT: self.segments.review,
        }

    def settings_changed(self, settings: DiscoverySettings) -> None:
        """Go by these settings from now on."""
        self._settings = self.liveness.settings = settings
        for port in self.ports.values():
            self._set_speed(port)

    def describe(self, dpid: int, ports: tuple[Port, ...], now: float) -> None:
        """Take in the list of all ports of a connected switch."""
        switch = self.switches[dpid]
        self.liveness.connected(dpid)
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

    def lost(self, dpid: int, now: float) -> None:
        """Take in that a switch has no connection: its neighbours ask it whether it forwards."""
        switch = self.switches[dpid]
        switch.connected = switch.ready = False
        self._lost.add(dpid)
        for port in switch.ports.values():
            self._deadlines.cancel(Timer(TimerKind.PROBE, port.end))
            self._deadlines.cancel(Timer(TimerKind.EDGE, port.end))
            self.liveness.forget(port)
        for port in switch.ports.values():
            source = None if port.heard is None else self.ports[port.heard]
            if source is not None and self.switches[source.end[0]].connected:
                self.liveness.peer_lost(source, now)

    def found_again(self, dpid: int) -> None:
        """Take in that a lost switch has a connection again; `describe` and `ready` follow."""
        self.switches[dpid].connected = True
        self._lost.discard(dpid)

    def cut_off(self) -> int | None:
        """Return a lost switch whose last link is gone, None where there is none."""
        for dpid in sorted(self._lost):
            switch = self.switches[dpid]
            cabled = any(port.heard is not None and port.heard == port.heard_by for port in switch.ports.values())
            if switch.linked and not cabled:
                return dpid
        return None

    def is_connected(self, dpid: int) -> bool:
        """Tell whether a switch is there to be asked."""
        switch = self.switches.get(dpid)
        return switch is not None and switch.connected

    def was_heard(self, end: End, since_s: float) -> bool:
        """Tell whether the controller heard what hosts at a port have said since a time: no guard dropped it."""
        port = self.ports.get(end)
        return port is not None and self.is_connected(end[0]) and port.guarded_until_s < since_s

    def remove_switch(self, dpid: int, now: float) -> None:
        """Take out a switch with its ports and links. The ports at the other ends keep their role meanwhile."""
        switch = self.switches[dpid]
        self._leaving = dpid
        self._links.isolate(switch.ports.values(), now, switch_gone=True)
        for port in switch.ports.values():
            self._discard(port, now)
        self._leaving = None
        self._lost.discard(dpid)
        del self.switches[dpid]

    def lldp_received(self, sink: PortState, packet: Lldp, now: float) -> str | None:
        """Take in one of our frames, or one made to look so; return the kind of its fault, None for a genuine one.

        A frame counts once. One that waited for long shows no cable that was not known: it may have been recorded.
        """
        sent_us = self._tokens.sent_us(packet.dpid, packet.port_no, packet.token)
        if sent_us is None:
            return self._echo_received(sink, packet, now)
        source = self.ports.get((packet.dpid, packet.port_no))
        if source is None or not source.up:
            return None
        waited_s = now - sent_us / _MICROSECONDS
        if sent_us <= source.arrived_us or (
            source.heard_by != sink.end and waited_s > LLDP_LIFETIME_S + self.behind_s
        ):
            return "lldp-replayed"
        source.arrived_us = sent_us
        source.unanswered_count = 0
        self.liveness.answered(source, waited_s)
        if self._links.sighted(source, sink, now):
            for end in (source.end, sink.end):
                self.switches[end[0]].linked |= not source.looped()
            for port in (source, sink):
                port.echoes, port.echo_tries = False, 0
            if sink.heard_by is None:
                self.send_lldp(sink, now)
            elif sink.heard_by == source.end and not source.looped():
                for port in (source, sink):
                    self.liveness.try_echo(port, now)
        return None

    def _echo_received(self, sink: PortState, packet: Lldp, now: float) -> str | None:
        """Take in an echo frame: it came back, or its switch has no entry that would have sent it back."""
        sent_us = self._echo_tokens.sent_us(packet.dpid, packet.port_no, packet.token)
        if sent_us is None:
            return self._segment_frame_received(sink, packet, now)
        if sink.end != (packet.dpid, packet.port_no) or sink.heard_by is None:
            return None
        if sent_us <= sink.echoed_us:
            return "lldp-replayed"
        sink.echoes = True
        sink.echoed_us = sent_us
        self.liveness.answered(sink, now - sent_us / _MICROSECONDS)
        return None

    def _segment_frame_received(self, sink: PortState, packet: Lldp, now: float) -> str | None:
        """Take in a segment frame, which may arrive at every port of its segment, at each once."""
        sent_us = self._segment_tokens.sent_us(packet.dpid, packet.port_no, packet.token)
        if sent_us is None:
            return "lldp-forged"
        source = self.ports.get((packet.dpid, packet.port_no))
        seen = ((packet.dpid, packet.port_no), sent_us)
        if seen == sink.segment_seen or now - sent_us / _MICROSECONDS > LLDP_LIFETIME_S + self.behind_s:
            return "lldp-replayed"
        sink.segment_seen = seen
        if source is not None and source.up:
            self.segments.crossed(source, sink, now)
        return None

    def _segment_lifetime_s(self) -> float:
        """Return the time in which three segment frames leave a port."""
        return 3 * _SEGMENT_ROUNDS * self._settings.lldp_interval_s

    def _set_speed(self, port: PortState) -> None:
        speed_bps = self._settings.link_capacity_bps or port.described_bps
        if speed_bps != port.speed_bps:
            port.speed_bps = speed_bps
            self._links.speed_changed(port)

    def _new_port(self, end: End, now: float) -> PortState:
        settings = self._settings
        flaps = TokenBucket(settings.flap_burst_count, settings.flap_refill_per_s, now)
        guard = TokenBucket(settings.guard_burst_count, settings.guard_refill_per_s, now)
        return PortState(end, flaps, guard, arrived_us=int(now * _MICROSECONDS))

    def _discard(self, port: PortState, now: float) -> None:
        self.liveness.forget(port)
        self.segments.forget(port, now)
        for kind in _PORT_TIMERS:
            self._deadlines.cancel(Timer(kind, port.end))
        del self.ports[port.end]

    def _raise(self, port: PortState, now: float) -> None:
        """Bring a port with carrier up, unless it flaps."""
        if not port.flaps.take(now):
            self._deadlines.set(Timer(TimerKind.CARRIER, port.end), now + port.flaps.wait_s(now))
            text = "goes up and down too often: it is not used until it is steady"
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
            self.segments.forget(port, now)
            self._links.isolate((port,), now)

    def _touched(self, port: PortState, now: float) -> None:
        """Follow up a change of what a port hears or where it is heard."""
        if port.heard_by is None:
            self.liveness.forget(port)
        if port.peers() and (port.held or port.lower):
            self.segments.forget(port, now)
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
                text = "is cabled back to its own switch"
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
                self.send_lldp(port, now)
            if port.probe_count < len(offsets_s):
                self._deadlines.set(timer, port.probing_since + offsets_s[port.probe_count])
            else:
                if not port.peers():
                    self.send_segment_frame(port, now)
                self._deadlines.set(timer, now + settings.lldp_interval_s * (0.5 + 0.5 * fraction(*port.end)))
            return
        if port.unanswered_count >= settings.missed_count and self._settled(port, now):
            return
        self._deadlines.set(timer, now + settings.lldp_interval_s)
        port.unanswered_count += 1
        port.probe_count += 1
        if port.probe_count % _SEGMENT_ROUNDS == 0 and not port.peers() and port.was_trunk is None:
            self.send_segment_frame(port, now)
            return
        self.liveness.round_begun(port, now)

    def _settled(self, port: PortState, now: float) -> bool:
        """Tell whether a trunk to a switch that is back elsewhere was put to the first probes again."""
        if port.was_trunk is None or port.was_trunk not in self.switches or not self.switches[port.was_trunk].ready:
            return False
        port.was_trunk = None
        self._touched(port, now)
        return Timer(TimerKind.PROBE, port.end) in self._deadlines

    def _failed(self, port: PortState, now: float) -> None:
        """Take in that what leaves a port arrives no more."""
        if port.heard_by is None:
            return
        sink = self.ports[port.heard_by]
        if self.switches[sink.end[0]].connected:
            self._owner.counted(
                "link-timeout",
                port.end,
                "sends LLDP frames that do not arrive any more: its link is taken out of service",
                now,
            )
            self._links.unheard(port, now)
        else:
            text = f"gets nothing through switch {sink.end[0]}, which has no connection: their link is out of service"
            self._owner.counted("link-timeout", port.end, text, now)
            self._links.isolate((sink,), now, switch_gone=True)

    def send_lldp(self, port: PortState, now: float) -> None:
        """Send an LLDP frame out of a port."""
        token = self._tokens.token(*port.end, _stamp(port, now))
        self._owner.emit(SendPacket(port.end[0], (port.end[1],), encode_lldp(*port.end, token)))

    def send_echo(self, port: PortState, now: float) -> None:
        """Send a frame out of a port that the switch at the other end sends back."""
        token = self._echo_tokens.token(*port.end, _stamp(port, now))
        self._owner.emit(SendPacket(port.end[0], (port.end[1],), encode_lldp(*port.end, token, eth_dst=ECHO_MAC)))

    def send_segment_frame(self, port: PortState, now: float) -> None:
        """Send a frame out of a port that reaches all other ports of its segment, through whatever bridges."""
        token = self._segment_tokens.token(*port.end, _stamp(port, now))
        frame = encode_lldp(*port.end, token, eth_dst=SEGMENT_MAC)
        self._owner.emit(SendPacket(port.end[0], (port.end[1],), frame))

    def hold_changed(self, port: PortState, now: float) -> None:
        """Take a port that is held out of use; probe one that is not any more as if it had just come up."""
        self._owner.hold_changed(port, now)
        port.silent = False
        if port.end[0] == self._leaving or not port.up:
            return
        if not port.held and not port.peers():
            self._start_probing(port, now)
        self._set_role(port, now)

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


def _stamp(port: PortState, now: float) -> int:
    """Return the time of a frame that leaves a port, later than that of any other."""
    port.sent_us = max(int(now * _MICROSECONDS), port.sent_us + 1, port.arrived_us + 1)
    return port.sent_us
