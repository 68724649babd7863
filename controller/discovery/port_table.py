"""The ports of connected switches: up and down, probed by LLDP, and the role that follows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from controller.discovery.budget import FrameBudget, FramePurpose, FrameUrgency
from controller.discovery.detection import Detection
from controller.discovery.frames import MICROSECONDS, FrameKind, Frames
from controller.discovery.links import Links
from controller.discovery.liveness import Liveness, LivenessAsker
from controller.discovery.neighbours import Neighbours
from controller.discovery.ports import MAX_PORT_NO, PortState
from controller.discovery.probing import Probing
from controller.discovery.segments import Segments
from controller.discovery.settings import DiscoverySettings
from controller.discovery.timers import Timer, TimerKind
from controller.discovery.tours import Tours
from controller.effects import Edit, Notice, SendPacket
from controller.events import Port
from controller.kernel.deadlines import Deadlines
from controller.kernel.ports import End
from controller.kernel.token_bucket import TokenBucket
from controller.wire.packets import Lldp
from topology.events import LinkDown, LinkUp, PortRole, PortRoleChanged

LLDP_LIFETIME_S, AHEAD_S = 2.0, 1.0
"""How long after it was sent an LLDP frame shows a cable that was not known, beside what answers take as it is; how
much later than now one of ours may have left: of one microsecond several do."""

_PORT_TIMERS = (TimerKind.CARRIER, TimerKind.CABLE, TimerKind.PROBE, TimerKind.EDGE, TimerKind.AWAITED)


class PortOwner(LivenessAsker, Protocol):
    """What the port table tells the core around it."""

    def emit(self, output: LinkUp | LinkDown | PortRoleChanged | SendPacket) -> None:
        """Take an event or frame."""

    def counted(self, kind: str, end: End, does: str, now: float) -> None:
        """Count something odd."""

    def install(self, dpid: int, edits: list[Edit], now: float) -> None:
        """Have flow entries put and removed."""

    def in_sync(self, dpid: int) -> bool:
        """Tell whether a switch holds the flow entries that it shall."""

    def has_hosts(self, end: End) -> bool:
        """Tell whether hosts are known at a port."""

    def tell(self, notice: Notice) -> None:
        """Give a notice that is to be told each time."""

    def neighbour_changed(self, end: End, now: float) -> None:
        """Act on a port that leads to another switch than before, or to none."""

    def role_left(self, port: PortState, former: PortRole, now: float) -> None:
        """Act on the end of a role, before the new one is announced."""

    def role_taken(self, port: PortState, now: float) -> None:
        """Act on a role that was just announced."""

    def hold_changed(self, port: PortState, now: float) -> None:
        """Act on a port that is held, or is not any more, before its role changes."""


@dataclass(slots=True)
class SwitchPresence:
    """A switch; it is `ready`, and LLDP frames are sent, once its first entries are in place.

    One that is not `connected` was lost a moment ago and may come back; `linked` tells whether a link ever led to it.
    `trunk_count` of its ports are trunks.
    """

    ofp_version: int
    ready: bool = False
    connected: bool = True
    linked: bool = False
    trunk_count: int = 0
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
        self._legs, self._waiting_legs = settings.legs(), settings.waiting_legs()
        self._deadlines = deadlines
        self._owner = owner
        self.switches: dict[int, SwitchPresence] = {}
        self.ports: dict[End, PortState] = {}
        self.neighbours = Neighbours(deadlines, owner.neighbour_changed)
        self._lost: set[int] = set()
        self._severed: set[int] = set()
        self._leaving: int | None = None
        self.behind_s = 0.0
        """How late the controller came to what was due, as the last deadline showed."""
        self.counters, self.request_barrier = owner.counters, owner.request_barrier
        self.suspect_table, self.is_open = owner.suspect_table, owner.is_open
        self.install, self.in_sync, self.has_hosts = owner.install, owner.in_sync, owner.has_hosts
        self.frames = Frames(secret, owner.emit)
        self.budget = FrameBudget(settings.frames_per_s, settings.idle_frames_per_s, deadlines)
        self._links = Links(self.ports, owner.emit, self._touched, self._hold_cable)
        around = (self.ports, self.switches, deadlines, self.frames, self.budget)
        self.liveness = Liveness(settings, *around, self, self._failed)
        self.doubt = self.liveness.doubt
        self.tours = Tours(*around, self, lambda: self._settings.lldp_interval_s)
        self.segments = Segments(self.ports, deadlines, self, lambda: self.probing.segment_lifetime_s)
        self.probing = Probing(settings, *around, self.liveness, self.segments, self.tours, self)
        self.detection = Detection(settings, deadlines, self.budget, self.liveness, self.tours, owner.tell)
        self.budget.granted[FramePurpose.REPLY] = lambda end, now: self._send_now(FrameKind.LLDP, end, now)
        self.budget.granted[FramePurpose.SEGMENT] = lambda end, now: self._send_now(FrameKind.SEGMENT, end, now)
        self.due: dict[TimerKind, Callable[[Any, float], None]] = {
            TimerKind.CARRIER: lambda end, now: self._raise(self.ports[end], now),
            TimerKind.CABLE: self._links.retry,
            TimerKind.PROBE: self.probing.due,
            TimerKind.EDGE: self.probing.decide_edge,
            TimerKind.CHECK: self.liveness.check,
            TimerKind.SEGMENT: self.segments.review,
            TimerKind.FRAMES: self.budget.on_deadline,
            TimerKind.DETECTION: self.detection.tell_due,
            TimerKind.AWAITED: self._awaited_due,
            TimerKind.FORMER: self.neighbours.forget,
            **self.tours.due,
        }
        self._received: dict[FrameKind, Callable[[PortState, Lldp, int, float], str | None]] = {
            FrameKind.LLDP: self._lldp_received,
            FrameKind.ECHO: self._echo_received,
            FrameKind.SEGMENT: self._segment_frame_received,
            FrameKind.TOUR: lambda sink, packet, sent_us, now: self.tours.received(
                sink, packet.dpid, packet.port_no, sent_us, now
            ),
        }

    def settings_changed(self, settings: DiscoverySettings, now: float) -> None:
        """Go by these settings from now on."""
        self._legs, self._waiting_legs = settings.legs(), settings.waiting_legs()
        self._settings = self.liveness.settings = self.probing.settings = self.detection.settings = settings
        self.budget.change(settings.frames_per_s, settings.idle_frames_per_s)
        for port in self.ports.values():
            self._set_speed(port)
        self.detection.review(now)

    def describe(self, dpid: int, ports: tuple[Port, ...], now: float) -> None:
        """Take in the list of all ports of a connected switch."""
        switch = self.switches[dpid]
        if not switch.ready:
            self.probing.getting_ready.add(dpid)
        self.liveness.connected(dpid)
        self.tours.connected(dpid, now)
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
            if self._settings.switch_grace_s > 0:
                self.neighbours.found(port, described.up, now + self._settings.switch_grace_s)
            if not described.up:
                self.set_role(port, now)
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
        self.probing.getting_ready.discard(dpid)
        self.probing.last_ready_s = now
        for port in switch.ports.values():
            if port.up:
                self.probing.start(port, now)
        self.tours.ready(dpid, now)

    def lost(self, dpid: int, now: float) -> None:
        """Take in that a switch has no connection: its neighbours ask it whether it forwards."""
        switch = self.switches[dpid]
        switch.connected = switch.ready = False
        self.probing.getting_ready.discard(dpid)
        self._lost.add(dpid)
        self._severed.add(dpid)
        for port in switch.ports.values():
            self._deadlines.cancel(Timer(TimerKind.PROBE, port.end))
            self._deadlines.cancel(Timer(TimerKind.EDGE, port.end))
            self.liveness.forget(port)
        for port in switch.ports.values():
            source = None if port.heard is None else self.ports[port.heard]
            if source is not None and self.switches[source.end[0]].connected:
                self.liveness.peer_lost(source, now)
        self.tours.lost(dpid, now)

    def found_again(self, dpid: int) -> None:
        """Take in that a lost switch has a connection again; `describe` and `ready` follow."""
        self.switches[dpid].connected = True
        self._lost.discard(dpid)

    def cut_off(self) -> int | None:
        """Return a lost switch whose last link is gone, None where there is none."""
        while self._severed:
            dpid = min(self._severed)
            self._severed.discard(dpid)
            switch = self.switches.get(dpid)
            if switch is None or dpid not in self._lost or not switch.linked:
                continue
            if not any(port.heard is not None and port.heard == port.heard_by for port in switch.ports.values()):
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
        self.probing.getting_ready.discard(dpid)
        self.tours.removed(dpid, now)
        self._links.isolate(switch.ports.values(), now, switch_gone=True)
        for port in switch.ports.values():
            self._discard(port, now)
        self._leaving = None
        self._lost.discard(dpid)
        del self.switches[dpid]

    def lldp_received(self, sink: PortState, packet: Lldp, now: float) -> str | None:
        """Take in one of our frames, or one made to look so; return the kind of its fault, None for a genuine one.

        A frame counts once. One that waited for long, and may have been recorded, shows no cable that was not known;
        its port is asked again. One that left later than now is of another controller with our key, by its clock.
        """
        read = self.frames.read(packet)
        if read is None:
            return "lldp-forged"
        kind, sent_us = read
        if sent_us > (now + AHEAD_S) * MICROSECONDS:
            return "lldp-replayed"
        self.tours.heard_us = max(self.tours.heard_us, sent_us)
        return self._received[kind](sink, packet, sent_us, now)

    @property
    def _lldp_lifetime_s(self) -> float:
        return LLDP_LIFETIME_S + max(self.behind_s, self.liveness.answer_s)

    def _lldp_received(self, sink: PortState, packet: Lldp, sent_us: int, now: float) -> str | None:
        source = self.ports.get((packet.dpid, packet.port_no))
        if source is None or not source.up:
            return None
        waited_s = now - sent_us / MICROSECONDS
        if sent_us <= source.arrived_us:
            return "lldp-replayed"
        source.arrived_us = sent_us
        if source.heard_by != sink.end and waited_s > self._lldp_lifetime_s:
            if source.heard_by is None:
                source.unanswered_count = 0  # it leads somewhere as far as is known: answers are late
                self.budget.ask(FrameUrgency.AGAIN, FramePurpose.REPLY, source.end, now)
            return "lldp-replayed"
        source.unanswered_count = 0
        self.liveness.answered(source, waited_s, now, echoed=False)
        if self._links.sighted(source, sink, now):
            for end in (source.end, sink.end):
                self.switches[end[0]].linked |= not source.looped()
            for port in (source, sink):
                port.echoes, port.echo_tries = False, 0
                self.tours.link_touched(port, now)
            if sink.heard_by is None:
                if not self.probing.is_asking(sink, source, now):
                    self.send_lldp(sink, now)
            elif sink.heard_by == source.end and not source.looped():
                for port in (source, sink):
                    self.liveness.try_echo(port, now)
        return None

    def _echo_received(self, sink: PortState, packet: Lldp, sent_us: int, now: float) -> str | None:
        """Take in an echo frame: it came back, or its switch has no entry that would have sent it back."""
        if sink.end != (packet.dpid, packet.port_no) or sink.heard_by is None:
            return None
        if sent_us <= sink.echoed_us:
            return "lldp-replayed"
        sink.echoed_us = sent_us
        self.liveness.answered(sink, now - sent_us / MICROSECONDS, now, echoed=True)
        if not sink.echoes:
            sink.echoes = True
            self.tours.link_touched(sink, now)
        return None

    def _segment_frame_received(self, sink: PortState, packet: Lldp, sent_us: int, now: float) -> str | None:
        """Take in a segment frame, which may arrive at every port of its segment, at each once."""
        source = self.ports.get((packet.dpid, packet.port_no))
        seen = ((packet.dpid, packet.port_no), sent_us)
        if seen == sink.segment_seen or now - sent_us / MICROSECONDS > self._lldp_lifetime_s:
            return "lldp-replayed"
        sink.segment_seen = seen
        if source is not None and source.up:
            self.segments.crossed(source, sink, now)
        return None

    def _set_speed(self, port: PortState) -> None:
        speed_bps = self._settings.link_capacity_bps or port.described_bps
        if speed_bps != port.speed_bps:
            port.speed_bps = speed_bps
            self._links.speed_changed(port)

    def _new_port(self, end: End, now: float) -> PortState:
        settings = self._settings
        flaps = TokenBucket(settings.flap_burst_count, settings.flap_refill_per_s, now)
        guard = TokenBucket(settings.guard_burst_count, settings.guard_refill_per_s, now)
        return PortState(end, flaps, guard, arrived_us=int(now * MICROSECONDS))

    def _discard(self, port: PortState, now: float) -> None:
        self.liveness.forget(port)
        self.segments.forget(port, now)
        for kind in _PORT_TIMERS:
            self._deadlines.cancel(Timer(kind, port.end))
        self.detection.up_count -= port.up
        self._count_trunk(port, port.role, PortRole.DOWN)
        self.neighbours.known.pop(port.end, None)
        del self.ports[port.end]

    def _raise(self, port: PortState, now: float) -> None:
        """Bring a port with carrier up, unless it flaps."""
        if not port.flaps.take(now):
            self._deadlines.set(Timer(TimerKind.CARRIER, port.end), now + port.flaps.wait_s(now))
            text = "goes up and down too often: it is not used until it is steady"
            self._owner.counted("port-flapping", port.end, text, now)
            return
        port.up, port.is_bundled = True, port.end not in self._waiting_legs
        port.silent = port.end in self._legs
        self.detection.up_count += 1
        self.set_role(port, now)
        self.probing.start(port, now)

    def _lower(self, port: PortState, now: float) -> None:
        """Take a port down at once."""
        for kind in _PORT_TIMERS:
            self._deadlines.cancel(Timer(kind, port.end))
        port.was_trunk = None
        if port.up:
            port.up = False
            self.detection.up_count -= 1
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
        if port.end[0] in self._lost:
            self._severed.add(port.end[0])
        self.tours.link_touched(port, now)
        self.neighbours.review(port, now)
        if port.up and not port.silent and not port.peers() and port.was_trunk is None:
            self.probing.start(port, now)
        self.set_role(port, now)

    def settled(self, port: PortState, now: float) -> None:
        """Act on a port that led to a switch which is back elsewhere."""
        self._touched(port, now)

    def set_role(self, port: PortState, now: float) -> None:
        """Announce the role of a port, if it has changed."""
        role, former = port.current_role(), port.role
        if port.peers():
            port.silent = False
            for kind in (TimerKind.EDGE, TimerKind.AWAITED):
                self._deadlines.cancel(Timer(kind, port.end))
            if port.looped():
                text = "is cabled back to its own switch"
                self._owner.counted("port-looped", port.end, text, now)
        if role is not former:
            port.role = role
            self._count_trunk(port, former, role)
            self._owner.role_left(port, former, now)
            self._owner.emit(PortRoleChanged(*port.end, role))
            self._owner.role_taken(port, now)
            self.detection.review(now)

    def _count_trunk(self, port: PortState, former: PortRole, role: PortRole) -> None:
        change = (role is PortRole.TRUNK) - (former is PortRole.TRUNK)
        self.switches[port.end[0]].trunk_count += change
        self.detection.trunk_count += change

    def _awaited_due(self, end: End, now: float) -> None:
        """Have a port probed anew whose neighbour of before a restart did not connect, once no others come."""
        port = self.ports[end]
        is_due = port.was_trunk is not None and not self.is_connected(port.was_trunk)
        if is_due and not self.neighbours.awaits_on(end, now):
            port.was_trunk = None
            self._touched(port, now)

    def coverage_changed(self, ends: list[End], is_covered: bool, now: float) -> None:
        """Act on ports of hubs whose links are proven by a tour, or are not any more."""
        if not is_covered:
            self.probing.coverage_lost(ends, now)
        self.detection.review(now)

    def strayed(self, end: End, now: float) -> None:
        """Find out what a port leads to where a tour frame came back otherwise than it should, and why."""
        self.suspect_table(end[0], now)
        self.send_lldp(self.ports[end], now)

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
        self.budget.ask(FrameUrgency.NEW, FramePurpose.REPLY, port.end, now)

    def send_segment_frame(self, port: PortState, now: float) -> None:
        """Send a frame out of a port that reaches all other ports of its segment, through whatever bridges."""
        self.budget.ask(FrameUrgency.NEW, FramePurpose.SEGMENT, port.end, now)

    def _send_now(self, kind: FrameKind, end: End, now: float) -> int:
        port = self.ports.get(end)
        if port is None or not port.up:
            return 0
        self.frames.send(kind, port, now)
        return 1

    def hold_changed(self, port: PortState, now: float) -> None:
        """Take a port that is held out of use; probe one that is not any more as if it had just come up."""
        self._owner.hold_changed(port, now)
        port.silent = False
        if port.end[0] == self._leaving or not port.up:
            return
        if not port.held and not port.peers():
            self.probing.start(port, now)
        self.set_role(port, now)

    def _hold_cable(self, end: End, until: float) -> None:
        self._deadlines.set(Timer(TimerKind.CABLE, end), until)
