"""Tells soon, and not falsely, when what leaves a port arrives no more.

A frame of LLDP that is not heard makes its port suspect: it is asked at once and at a fast pace, by LLDP and, where
the switch at the other end answers by itself, by echo frames (`base_rules.echo_rule`). Only when all went unanswered,
and the switches in question have answered a barrier since, so that nothing still waits on the way to the controller,
the port has failed. A switch without a connection hears no LLDP and is asked by echo frames alone. A frame may have
ended at a switch whose flow entries somebody deleted, so the table at the other end is looked at meanwhile.

A switch whose slave this controller is takes none of its frames, and says nothing of those that arrive: nothing is
found out by it until it is ours again.

A port whose tour was missed is in doubt: one echo frame decides whether both ends of its link are suspect.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from controller.discovery.budget import FrameBudget, FramePurpose, FrameUrgency
from controller.discovery.frames import FrameKind, Frames
from controller.discovery.ports import PortState
from controller.discovery.settings import DiscoverySettings
from controller.discovery.timers import Timer, TimerKind
from controller.kernel.deadlines import Deadlines
from controller.kernel.ports import End

SHORTEST_WAIT_S = 0.15
LONGEST_WAIT_S = 1.0
LOST_PACE_S = 0.2
LOST_ECHOES = 5
"""What a switch without a connection is asked before it counts as dead."""

ECHO_TRIES = 3
"""How many rounds a port tries whether the switch at its other end answers echo frames."""


class AskedSwitch(Protocol):
    """What has to be known of a switch."""

    ready: bool
    connected: bool


class LivenessAsker(Protocol):
    """What asks switches for `Liveness`, and counts."""

    counters: Counter[str]

    def request_barrier(self, dpid: int) -> int:
        """Have a switch say that it has done all it was sent; return the transaction id of its reply."""

    def is_open(self, dpid: int) -> bool:
        """Tell whether a switch takes what it is sent."""

    def suspect_table(self, dpid: int, now: float) -> None:
        """Have a switch's flow entries looked at, which may be gone."""


class AnswerTime:
    """How long an answer may take: that of RFC 6298 (section 2) over all ports, within bounds."""

    def __init__(self) -> None:
        self.wait_s = SHORTEST_WAIT_S
        self.smoothed_s = 0.0
        self._is_known = False
        self._variation_s = 0.0

    def measured(self, took_s: float) -> None:
        """Take in how long an answer took."""
        if not self._is_known:
            self._is_known = True
            self.smoothed_s, self._variation_s = took_s, took_s / 2
        else:
            self._variation_s += (abs(self.smoothed_s - took_s) - self._variation_s) / 4
            self.smoothed_s += (took_s - self.smoothed_s) / 8
        self.wait_s = min(LONGEST_WAIT_S, max(SHORTEST_WAIT_S, self.smoothed_s + 4 * self._variation_s))


@dataclass(slots=True)
class _Suspicion:
    """A port that was not heard: how often it was asked since, and whether all answers must be in by now."""

    asked_count: int = 0
    confirmed: bool = False


class Liveness:
    """Watches the ports whose frames are heard somewhere.

    Parameters
    ----------
    settings : DiscoverySettings
        Its `missed_count`.
    ports, switches : Mapping
        Kept by the owner.
    deadlines : Deadlines
        Where a check is set; the owner calls `check` for it.
    frames : Frames
        Sends frames.
    budget : FrameBudget
        Says when.
    asker : LivenessAsker
        Asks for barriers.
    failed : Callable
        Told each port whose frames arrive no more.
    """

    def __init__(
        self,
        settings: DiscoverySettings,
        ports: Mapping[End, PortState],
        switches: Mapping[int, AskedSwitch],
        deadlines: Deadlines[Timer],
        frames: Frames,
        budget: FrameBudget,
        asker: LivenessAsker,
        failed: Callable[[PortState, float], None],
    ) -> None:
        self.settings = settings
        self._ports = ports
        self._switches = switches
        self._deadlines = deadlines
        self._frames = frames
        self._budget = budget
        self._asker = asker
        self._failed = failed
        self._answer_time = AnswerTime()
        self._suspicions: dict[End, _Suspicion] = {}
        self._doubted: set[End] = set()
        self._barriers: dict[tuple[int, int], End] = {}
        self._barrier_of: dict[End, tuple[int, int]] = {}
        budget.granted[FramePurpose.CHECK] = self._ask
        budget.granted[FramePurpose.SINGLE] = self._ask_once
        budget.granted[FramePurpose.ECHO] = self._echo

    @property
    def reaction_s(self) -> float:
        """How long it takes from a missed frame until the port has failed, as answers come now."""
        return self._answer_time.wait_s * (self.settings.missed_count + 1)

    @property
    def answer_s(self) -> float:
        """How long answers take of late; 0 where there was none yet."""
        return self._answer_time.smoothed_s

    def round_begun(self, port: PortState, now: float) -> int:
        """Ask a port once an interval, and expect an answer where there was one before; return the frames sent."""
        if self._is_closed(port):
            return 0
        peer = port.heard_by
        hears = peer is None or self._switches[peer[0]].ready
        count = 0
        if hears:
            self._frames.send(FrameKind.LLDP, port, now)
            count += 1
        if peer is None:
            return count
        if not hears and port.echoes:
            self._frames.send(FrameKind.ECHO, port, now)
            count += 1
        elif hears and not port.looped():
            count += self._echo(port.end, now)
        if (hears or port.echoes) and port.end not in self._suspicions:
            self._deadlines.set(Timer(TimerKind.CHECK, port.end), now + self._answer_time.wait_s)
        return count

    def try_echo(self, port: PortState, now: float) -> None:
        """Find out whether the switch at the other end sends echo frames back, unless that is known."""
        if not port.echoes and port.echo_tries < ECHO_TRIES:
            self._budget.ask(FrameUrgency.ECHO, FramePurpose.ECHO, port.end, now)

    def _echo(self, end: End, now: float) -> int:
        port = self._ports.get(end)
        if port is None or port.heard_by is None or port.echoes or port.echo_tries >= ECHO_TRIES:
            return 0
        port.echo_tries += 1
        self._frames.send(FrameKind.ECHO, port, now)
        return 1

    def answered(self, port: PortState, took_s: float, now: float, echoed: bool) -> None:
        """Take in that a frame of a port arrived or, `echoed`, came back: only that shows both directions."""
        self._answer_time.measured(took_s)
        self._budget.answers_take(self._answer_time.smoothed_s, now)
        if echoed or port.end not in self._doubted:
            self.forget(port)

    def peer_lost(self, port: PortState, now: float) -> None:
        """Ask, from now on and at once, whether the switch at the other end forwards though it has no connection."""
        self.forget(port)
        if port.echoes:
            self._deadlines.set(Timer(TimerKind.CHECK, port.end), now)

    def doubt(self, end: End, now: float) -> None:
        """Find out at once whether the link of a port is what a tour was missed for."""
        if end not in self._suspicions and self._switches[end[0]].ready:
            self._doubted.add(end)
            self._budget.ask(FrameUrgency.SUSPECT, FramePurpose.SINGLE, end, now)

    def _ask_once(self, end: End, now: float) -> int:
        if end not in self._doubted:
            return 0
        self._frames.send(FrameKind.ECHO, self._ports[end], now)
        self._deadlines.set(Timer(TimerKind.CHECK, end), now + self._answer_time.wait_s)
        return 1

    def forget(self, port: PortState) -> None:
        """Expect nothing of a port and suspect it no more."""
        end = port.end
        self._deadlines.cancel(Timer(TimerKind.CHECK, end))
        self._doubted.discard(end)
        if self._suspicions.pop(end, None) is not None:
            barrier = self._barrier_of.pop(end, None)
            if barrier is not None:
                del self._barriers[barrier]

    def check(self, end: End, now: float) -> None:
        """Ask a port again that was not heard in time, or take it for failed."""
        port = self._ports[end]
        peer = port.heard_by
        if peer is None:
            self.forget(port)
            return
        if self._is_closed(port):
            self.forget(port)
            return
        switch = self._switches[peer[0]]
        suspicion = self._suspicions.get(end)
        if suspicion is None:
            suspicion = self._suspicions[end] = _Suspicion()
            self._asker.counters["link-suspected"] += 1
            self._asker.suspect_table(peer[0], now)
        if not switch.ready and not port.echoes:
            self.forget(port)
            return
        if suspicion.confirmed:
            self.forget(port)
            self._failed(port, now)
            return
        self._budget.ask(FrameUrgency.SUSPECT, FramePurpose.CHECK, end, now)
        if end in self._doubted:
            self._doubted.discard(end)
            if peer not in self._suspicions and self._switches[peer[0]].ready:
                self.check(peer, now)

    def _ask(self, end: End, now: float) -> int:
        suspicion = self._suspicions.get(end)
        if suspicion is None:
            return 0
        port = self._ports[end]
        peer = port.heard_by
        if peer is None or self._is_closed(port):
            self.forget(port)
            return 0
        switch = self._switches[peer[0]]
        count = 0
        if switch.ready:
            self._frames.send(FrameKind.LLDP, port, now)
            count += 1
        if port.echoes:
            self._frames.send(FrameKind.ECHO, port, now)
            count += 1
        suspicion.asked_count += 1
        wait_s = self._answer_time.wait_s
        if suspicion.asked_count >= (self.settings.missed_count if switch.connected else LOST_ECHOES):
            self._request_barrier(end[0], end)
        else:
            self._deadlines.set(Timer(TimerKind.CHECK, end), now + (wait_s if switch.connected else LOST_PACE_S))
        return count

    def _is_closed(self, port: PortState) -> bool:
        """Tell whether a port cannot be asked, or not be heard, for a switch is not ours to write."""
        peer = port.heard_by
        if not self._asker.is_open(port.end[0]):
            return True
        return peer is not None and self._switches[peer[0]].connected and not self._asker.is_open(peer[0])

    def connected(self, dpid: int) -> None:
        """Take in that a switch answers no barrier that it was sent before."""
        for barrier, end in list(self._barriers.items()):
            if barrier[0] == dpid:
                self.forget(self._ports[end])

    def barrier_replied(self, dpid: int, xid: int, now: float) -> None:
        """Take in that all is in that a switch had to say before."""
        end = self._barriers.pop((dpid, xid), None)
        if end is None:
            return
        del self._barrier_of[end]
        port = self._ports[end]
        if dpid == end[0] and not port.echoes and port.heard_by is not None and port.heard_by[0] != dpid:
            self._request_barrier(port.heard_by[0], end)
            return
        self._suspicions[end].confirmed = True
        self._deadlines.set(Timer(TimerKind.CHECK, end), now + self._answer_time.wait_s)

    def _request_barrier(self, dpid: int, end: End) -> None:
        barrier = self._barrier_of[end] = (dpid, self._asker.request_barrier(dpid))
        self._barriers[barrier] = end
