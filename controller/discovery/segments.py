"""Finds segments behind somebody else's switch that two of our ports lead to, and holds all but one of the ports.

Bridges keep LLDP to themselves (IEEE 802.1D, 7.12.6), so a port that leads to one looks as if it led to hosts. A
segment frame, which bridges flood, leaves every such port now and then: where one arrives, its port and the one it
left lead to one segment. Of two such ports the higher (by datapath id, then number) is held while the other is up and
frames go on crossing the segment.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from controller.discovery.ports import PortState
from controller.discovery.timers import Timer, TimerKind
from controller.kernel.deadlines import Deadlines
from controller.kernel.ports import End
from topology.events import PortRole

CABLE_WAIT_S = 0.1
"""How long LLDP has, once a segment frame arrived, to show that the two ports are joined by a mere cable."""

ASK_INTERVAL_S = 1.0
"""How often a port is asked at most because a host was heard at two ports."""

LOWER_PORTS = 16
"""How many ports are kept that hold one port."""


class SegmentOwner(Protocol):
    """What `Segments` needs of the port table."""

    def send_lldp(self, port: PortState, now: float) -> None:
        """Send an LLDP frame out of a port."""

    def send_segment_frame(self, port: PortState, now: float) -> None:
        """Send a segment frame out of a port."""

    def is_connected(self, dpid: int) -> bool:
        """Tell whether a switch is there to be asked."""

    def hold_changed(self, port: PortState, now: float) -> None:
        """Act on a port that is held, or is not any more."""


class Segments:
    """Which ports lead to segments that a lower port leads to as well.

    Parameters
    ----------
    ports : Mapping
        Kept by the owner.
    deadlines : Deadlines
        Where a review is set; the owner calls `review` for it.
    owner : SegmentOwner
        Sends frames, and acts on what is held.
    lifetime_s : Callable
        Returns the time without a segment frame after which the loop is taken to be gone.
    """

    def __init__(
        self,
        ports: Mapping[End, PortState],
        deadlines: Deadlines[Timer],
        owner: SegmentOwner,
        lifetime_s: Callable[[], float],
    ) -> None:
        self._ports = ports
        self._deadlines = deadlines
        self._owner = owner
        self._lifetime_s = lifetime_s
        self._above: dict[End, set[End]] = {}

    def is_lower(self, end: End) -> bool:
        """Tell whether a port holds others."""
        return end in self._above

    def crossed(self, source: PortState, sink: PortState, now: float) -> None:
        """Take in that a frame of one port arrived at another through a segment."""
        if source.peers() or sink.peers() or source.end == sink.end:
            return
        low, high = (source, sink) if source.end < sink.end else (sink, source)
        if low.end not in high.lower:
            if len(high.lower) >= LOWER_PORTS:
                return
            self._above.setdefault(low.end, set()).add(high.end)
            at_edge = high.role is PortRole.EDGE
            if not high.lower:
                self._deadlines.set(Timer(TimerKind.SEGMENT, high.end), now + (CABLE_WAIT_S if at_edge else 0.0))
            for port in (low, high):
                self._owner.send_lldp(port, now)
        if not (source.peers() or sink.peers()):
            high.lower[low.end] = now

    def host_heard_elsewhere(self, port: PortState, now: float) -> None:
        """Ask at once whether a host was heard at two ports because both lead to its segment."""
        if now - port.segment_asked_s >= ASK_INTERVAL_S:
            port.segment_asked_s = now
            self._owner.send_segment_frame(port, now)

    def review(self, end: End, now: float) -> None:
        """Hold a port, or let it go, by what crossed its segment of late."""
        port = self._ports[end]
        lifetime_s = self._lifetime_s()
        for low, crossed_s in list(port.lower.items()):
            if not (self._owner.is_connected(low[0]) and self._owner.is_connected(end[0])):
                port.lower[low] = now  # nothing could be heard; it may go on forwarding
            elif now - crossed_s >= lifetime_s:
                self._let_go(port, low)
        if port.lower:
            self._deadlines.set(Timer(TimerKind.SEGMENT, end), min(port.lower.values()) + lifetime_s)
        self._settle(port, now)

    def forget(self, port: PortState, now: float) -> None:
        """Take in that a port is down, or leads to a switch of ours: it holds no other, and is not held."""
        for low in tuple(port.lower):
            self._let_go(port, low)
        self._deadlines.cancel(Timer(TimerKind.SEGMENT, port.end))
        self._settle(port, now)
        for high in sorted(self._above.pop(port.end, ())):
            other = self._ports[high]
            other.lower.pop(port.end, None)
            self._settle(other, now)

    def _let_go(self, port: PortState, low: End) -> None:
        port.lower.pop(low, None)
        above = self._above.get(low)
        if above is not None:
            above.discard(port.end)
            if not above:
                del self._above[low]

    def _settle(self, port: PortState, now: float) -> None:
        if bool(port.lower) != port.held:
            port.held = not port.held
            self._owner.hold_changed(port, now)
