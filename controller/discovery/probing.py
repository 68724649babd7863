"""When a port is asked what it leads to: some frames when it comes up, then one now and then."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from controller.discovery.budget import FrameBudget, FramePurpose, FrameUrgency, slots_later
from controller.discovery.frames import MICROSECONDS, FrameKind, Frames
from controller.discovery.liveness import Liveness
from controller.discovery.ports import PortState
from controller.discovery.segments import Segments
from controller.discovery.settings import DiscoverySettings
from controller.discovery.timers import Timer, TimerKind
from controller.discovery.tours import Tours
from controller.kernel.deadlines import Deadlines
from controller.kernel.ports import End
from controller.kernel.spread import fraction
from topology.events import PortRole

EDGE_INTERVAL_S = 10.0
"""Where tours ask the links: how often a port is asked that shows no host, and may come to lead to a switch."""

SLOW_INTERVAL_S = 30.0
"""Likewise, how often one is asked where hosts are, or whose link a tour asks."""

UNDER_WAY_S = 0.05
"""How long a port's frame may be under way to the other end, and back to the controller."""

READY_S = 0.001
"""A frame that left so long after the switch at the other end was ready finds it so."""

_SEGMENT_ROUNDS = 2
"""Of how many rounds one, where nothing is heard, is that of a segment frame."""


class ProbedSwitch(Protocol):
    """What has to be known of a switch."""

    ready: bool


class ProbingOwner(Protocol):
    """What `Probing` needs of the port table."""

    def has_hosts(self, end: End) -> bool:
        """Tell whether hosts are known at a port."""

    def settled(self, port: PortState, now: float) -> None:
        """Act on a port that led to a switch which is back elsewhere."""

    def set_role(self, port: PortState, now: float) -> None:
        """Announce a role that has changed."""


class Probing:
    """Asks ports, as their states and the budget have it.

    The parameters are parts of the port table; the owner calls `due` and `decide_edge` for their deadlines.
    """

    def __init__(
        self,
        settings: DiscoverySettings,
        ports: Mapping[End, PortState],
        switches: Mapping[int, ProbedSwitch],
        deadlines: Deadlines[Timer],
        frames: Frames,
        budget: FrameBudget,
        liveness: Liveness,
        segments: Segments,
        tours: Tours,
        owner: ProbingOwner,
    ) -> None:
        self.settings = settings
        self._ports = ports
        self._switches = switches
        self._deadlines = deadlines
        self._frames = frames
        self._budget = budget
        self._liveness = liveness
        self._segments = segments
        self._tours = tours
        self._owner = owner
        self.last_ready_s = float("-inf")
        """When a switch was last found to hand over what arrives."""
        self.getting_ready: set[int] = set()
        """Switches that are connected and not found to do so yet."""
        budget.granted[FramePurpose.PROBE] = self._probe

    @property
    def segment_lifetime_s(self) -> float:
        """The time in which three segment frames leave a port that is held, or holds another."""
        interval_s = self.settings.lldp_interval_s + self._budget.waited_s[FrameUrgency.QUICK]
        return 3 * _SEGMENT_ROUNDS * interval_s

    def start(self, port: PortState, now: float) -> None:
        """Ask a port as one that has just come up, if its switch hands over what arrives."""
        if not self._switches[port.end[0]].ready:
            return
        port.probing_since = now
        port.probe_count = port.unanswered_count = 0
        self._deadlines.cancel(Timer(TimerKind.EDGE, port.end))
        if self.settings.probe_offsets_s[0] > 0:
            self._deadlines.set(Timer(TimerKind.PROBE, port.end), now + self.settings.probe_offsets_s[0])
        else:
            self.due(port.end, now)

    def due(self, end: End, now: float) -> None:
        """Have a port asked whose time has come."""
        port = self._ports[end]
        if port.probe_count < len(self.settings.probe_offsets_s):
            urgency = FrameUrgency.AGAIN if port.probe_count else FrameUrgency.NEW
        else:
            urgency = (
                FrameUrgency.QUICK if self._interval_s(port) <= self.settings.lldp_interval_s else FrameUrgency.SLOW
            )
        self._budget.ask(urgency, FramePurpose.PROBE, end, now)

    def host_heard(self, port: PortState, now: float) -> None:
        """Ask a port at once where somebody is heard who is new there, while its first frames alone went unanswered.

        What is behind it may be a switch that was not there yet.
        """
        if port.probe_count == len(self.settings.probe_offsets_s):
            self._budget.ask(FrameUrgency.AGAIN, FramePurpose.REPLY, port.end, now)

    def is_asking(self, port: PortState, other: PortState, now: float) -> bool:
        """Tell whether a port's own frame waits or is under way to another, which is there: it needs no other one."""
        if self._budget.waits(FrameUrgency.NEW, FramePurpose.PROBE, port.end):
            return True
        sent_s = port.sent_us / MICROSECONDS
        is_followed = 0 < port.probe_count < len(self.settings.probe_offsets_s)
        return is_followed and now - UNDER_WAY_S < sent_s and sent_s - other.probing_since > READY_S

    def coverage_lost(self, ends: Iterable[End], now: float) -> None:
        """Ask both ends of links singly again that a tour asked."""
        for end in ends:
            port = self._ports[end]
            for asked in (end, *port.peers()):
                timer = Timer(TimerKind.PROBE, asked)
                if timer in self._deadlines:
                    after_s = self.settings.lldp_interval_s * fraction(*asked)
                    self._deadlines.set(timer, slots_later(now, after_s))
                else:
                    self._budget.ask(FrameUrgency.QUICK, FramePurpose.PROBE, asked, now)

    def decide_edge(self, end: End, now: float) -> None:
        """Let a port that heard nothing lead to hosts, once switches that have just connected had their chance."""
        port = self._ports[end]
        settings = self.settings
        waits_from_s = now if self.getting_ready else self.last_ready_s
        decide_at = min(waits_from_s + settings.edge_after_s, port.probing_since + settings.edge_latest_s)
        if now < decide_at:
            self._deadlines.set(Timer(TimerKind.EDGE, end), decide_at)
        elif port.was_trunk is None:
            port.silent = True
            self._owner.set_role(port, now)

    def _interval_s(self, port: PortState) -> float:
        """Return the time between two frames of a port that has been up for a while."""
        interval_s = self.settings.lldp_interval_s
        if not self._tours.wanted:
            return interval_s
        if self._tours.covers(port):
            return max(interval_s, SLOW_INTERVAL_S)
        if port.role is not PortRole.EDGE or self._segments.is_lower(port.end):
            return interval_s
        return max(interval_s, SLOW_INTERVAL_S if self._owner.has_hosts(port.end) else EDGE_INTERVAL_S)

    def _probe(self, end: End, now: float) -> int:
        """Send the frame that is due: some in quick succession, then one an interval; return how many were sent."""
        port = self._ports.get(end)
        if port is None or not port.up or not self._switches[end[0]].ready:
            return 0
        if port.probe_count < len(self.settings.probe_offsets_s):
            return self._probe_new(port, now)
        if port.unanswered_count >= self.settings.missed_count and self._is_settled(port, now):
            return 0
        interval_s = self._interval_s(port)
        if interval_s > self.settings.lldp_interval_s:
            interval_s *= 0.75 + 0.5 * fraction(*end, port.probe_count)
        self._deadlines.set(Timer(TimerKind.PROBE, end), slots_later(now, interval_s))
        port.unanswered_count += 1
        port.probe_count += 1
        if port.probe_count % _SEGMENT_ROUNDS == 0 and not port.peers() and port.was_trunk is None:
            self._frames.send(FrameKind.SEGMENT, port, now)
            return 1
        return self._liveness.round_begun(port, now)

    def _probe_new(self, port: PortState, now: float) -> int:
        settings = self.settings
        offsets_s = settings.probe_offsets_s
        timer = Timer(TimerKind.PROBE, port.end)
        count = 0
        if port.heard is not None and port.heard_by is not None:
            port.probe_count = len(offsets_s)
        else:
            port.probe_count += 1
            self._frames.send(FrameKind.LLDP, port, now)
            count += 1
        if port.probe_count < len(offsets_s):
            self._deadlines.set(timer, now + offsets_s[port.probe_count] - offsets_s[port.probe_count - 1])
            return count
        if not port.peers():
            self._frames.send(FrameKind.SEGMENT, port, now)
            count += 1
            self._deadlines.set(Timer(TimerKind.EDGE, port.end), now + settings.edge_after_s - offsets_s[-1])
        self._deadlines.set(timer, slots_later(now, settings.lldp_interval_s * (0.5 + 0.5 * fraction(*port.end))))
        return count

    def _is_settled(self, port: PortState, now: float) -> bool:
        """Tell whether a trunk to a switch that is back elsewhere was put to the first probes again."""
        if port.was_trunk is None or port.was_trunk not in self._switches:
            return False
        if not self._switches[port.was_trunk].ready:
            return False
        port.was_trunk = None
        self._owner.settled(port, now)
        return port.probe_count < len(self.settings.probe_offsets_s)
