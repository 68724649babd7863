"""From LLDP frames heard to links: a cable counts when both ends hear each other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from controller.discovery.ports import PortState
from controller.kernel.ports import End
from topology.events import LinkDown, LinkUp
from topology.graph import DEFAULT_CAPACITY_BPS


class Links:
    """The cables in service, each a link of its own whatever other cables join the same switches.

    A cable that comes up takes a token from its lower end's flap bucket; without one it waits for `retry`.

    Parameters
    ----------
    ports : Mapping
        The ports of connected switches, which the owner adds and removes (after `isolate`).
    emit : Callable
        Takes each LinkUp and LinkDown.
    touched : Callable
        Told each port at which something changed.
    wait : Callable
        Told the lower end of a cable that is held down, and when to call `retry` for it.
    """

    def __init__(
        self,
        ports: Mapping[End, PortState],
        emit: Callable[[LinkUp | LinkDown], None],
        touched: Callable[[PortState, float], None],
        wait: Callable[[End, float], None],
    ) -> None:
        self._ports = ports
        self._emit = emit
        self._touched = touched
        self._wait = wait
        self._other_end: dict[End, End] = {}
        self._announced: dict[End, LinkUp] = {}

    def sighted(self, source: PortState, sink: PortState, now: float) -> bool:
        """Note that a frame of `source` arrived at `sink` and tell whether that is news."""
        if sink.heard == source.end and source.heard_by == sink.end:
            return False
        changed = [source, sink]
        if sink.heard is not None and sink.heard != source.end:
            former = self._ports[sink.heard]
            former.heard_by = None
            changed.append(former)
        if source.heard_by is not None and source.heard_by != sink.end:
            former = self._ports[source.heard_by]
            former.heard = None
            changed.append(former)
        sink.heard, source.heard_by = source.end, sink.end
        sink.was_trunk = source.was_trunk = None
        self._reconsider(changed, now)
        return True

    def unheard(self, source: PortState, now: float) -> None:
        """Note that the frames of `source` arrive nowhere any more."""
        if source.heard_by is not None:
            sink = self._ports[source.heard_by]
            source.heard_by = sink.heard = None
            self._reconsider((source, sink), now)

    def isolate(self, ports: Iterable[PortState], now: float, switch_gone: bool = False) -> None:
        """Note that some ports hear nothing and are heard nowhere any more; `switch_gone` says why."""
        changed: dict[End, PortState] = {}
        for port in ports:
            changed[port.end] = port
            for end in port.peers():
                peer = changed[end] = self._ports[end]
                peer.was_trunk = port.end[0] if switch_gone and end[0] != port.end[0] else None
                peer.heard = None if peer.heard == port.end else peer.heard
                peer.heard_by = None if peer.heard_by == port.end else peer.heard_by
            port.heard = port.heard_by = None
        self._reconsider(changed.values(), now)

    def retry(self, end: End, now: float) -> None:
        """Put a cable into service that had to wait, if both ends still hear each other."""
        if end in self._ports:
            self._reconsider((self._ports[end],), now)

    def speed_changed(self, port: PortState) -> None:
        """Announce the link of a port anew where its capacity changed."""
        other = self._other_end.get(port.end)
        if other is not None:
            self._announce(min(port.end, other))

    def _reconsider(self, changed: Iterable[PortState], now: float) -> None:
        lower_ends: dict[End, None] = {}
        changed = tuple(changed)
        for port in changed:
            end = port.end
            mutual = port.heard if port.heard == port.heard_by and not port.looped() else None
            other = self._other_end.get(end)
            if other == mutual:
                continue
            if other is not None:
                del self._other_end[end], self._other_end[other]
                lower_ends[min(end, other)] = None
            if mutual is not None:
                low = min(end, mutual)
                if self._ports[low].flaps.take(now):
                    self._other_end[end], self._other_end[mutual] = mutual, end
                    lower_ends[low] = None
                else:
                    self._wait(low, now + self._ports[low].flaps.wait_s(now))
        for low in sorted(lower_ends):
            self._withdraw(low)
        for port in changed:
            self._touched(port, now)
        for low in sorted(lower_ends):
            self._announce(low)

    def _withdraw(self, low: End) -> None:
        """Tell of a cable by its lower end that it is there no more, where that was told and is so."""
        link = self._announced.get(low)
        if link is not None and self._other_end.get(low) != (link.dpid_b, link.port_b):
            del self._announced[low]
            self._emit(LinkDown(*link[:4]))

    def _announce(self, low: End) -> None:
        """Tell of the cable at a lower end, where it is there and not known as it is."""
        other = self._other_end.get(low)
        if other is None or low > other:
            return
        link = self._link(low, other)
        if link != self._announced.get(low):
            self._announced[low] = link
            self._emit(link)

    def _link(self, a: End, b: End) -> LinkUp:
        speeds = [port.speed_bps for port in (self._ports[a], self._ports[b]) if port.speed_bps > 0]
        return LinkUp(*a, *b, min(speeds, default=DEFAULT_CAPACITY_BPS))
