"""Asks many links by one frame: group testing in the data plane.

A tour frame leaves its switch, the hub, by the first port of a tour; the switch at the other end returns it, under an
address that tells which switch that is, and the hub sends it on by the next port (`base_rules.tour_rule`). What comes
back by the last port goes to the controller, and proves both directions of every link and both switches of each. A
frame goes to ports in ascending order only, so none circles, whatever entries are there.

A frame that does not return is followed by another. Where that is missed too, and the hub has answered a barrier
since, so that nothing waits on the way to the controller, the links are asked singly (`Liveness.doubt`): from the
hub's end, or from the other ends where the hub answers nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from math import inf
from typing import Protocol

from controller.discovery.base_rules import tour_rule
from controller.discovery.budget import FrameBudget, FramePurpose, FrameUrgency, slot_after, slots_later
from controller.discovery.frames import MICROSECONDS, FrameKind, Frames
from controller.discovery.liveness import AnswerTime
from controller.discovery.ports import PortState
from controller.discovery.timers import Timer, TimerKind
from controller.effects import Edit, Put, Remove
from controller.kernel.deadlines import Deadlines
from controller.kernel.ports import End
from controller.kernel.spread import fraction
from controller.rules.model import FlowEntry

MAX_LINKS = 32
"""Links that one frame asks."""

REVISE_S = 1.0
"""How long a hub waits with its tours for further links that come up."""

REVISE_AGAIN_S = 10.0
"""When a hub sees again, after a change, whether others have room for what it asks by small tours."""

SETTLE_S = 0.25
"""How long after a change of its entries a tour is asked."""

LATEST_S = 1.0
"""How long a tour waits at most for its entries to be confirmed."""

PATIENCE_S = 0.2
"""How much longer than a frame a hub's barrier may take before its links are asked from their other ends."""

BEHIND_S = 2.0
"""Likewise while nothing is heard of what others were asked after it: then the controller is behind, not the hub."""

ASKED_BOUND = 256
"""Frames of tours of which it is remembered when they left, the latest ones."""

INTERVAL_SHARE = 0.7
"""Part of the interval of LLDP in which a tour is asked once: taking it apart needs the rest."""

BUDGET_SHARE = 0.75
"""Part of the frames at rest that tours may take."""

ASKS = 2
"""Frames that must be missed before a tour is taken apart."""


class TouredSwitch(Protocol):
    """What has to be known of a switch."""

    ofp_version: int
    ready: bool
    trunk_count: int
    ports: dict[int, PortState]


class TourOwner(Protocol):
    """What `Tours` needs of the port table."""

    def request_barrier(self, dpid: int) -> int:
        """Have a switch say that it has done all it was sent; return the transaction id of its reply."""

    def install(self, dpid: int, edits: list[Edit], now: float) -> None:
        """Have flow entries put and removed."""

    def in_sync(self, dpid: int) -> bool:
        """Tell whether a switch holds the flow entries that it shall."""

    def doubt(self, end: End, now: float) -> None:
        """Ask the link of a port singly, at once."""

    def coverage_changed(self, ends: list[End], is_covered: bool, now: float) -> None:
        """Act on ports of hubs whose links are proven by a tour, or are not any more."""

    def strayed(self, end: End, now: float) -> None:
        """Find out what a port leads to where a tour frame came back otherwise than it should."""


@dataclass(slots=True, eq=False)
class Tour:
    """Some links of a hub, by its ports in ascending order.

    `proven` while its frames return; links of such a tour need not be asked singly. `asked_count` frames left since
    one returned, the last at `sent_us`; the one that returned last had left at `arrived_us`. What left before
    `changed_us` says nothing of the links as they are; the first change since a frame returned was at
    `changed_since_s`, inf for none. `barrier` is what the hub was asked for, None once it has
    answered; `is_waiting` while nothing else is missing.
    """

    number: int
    hub: int
    ports: list[int] = field(default_factory=list)
    proven: bool = False
    asked_count: int = 0
    sent_us: int = 0
    arrived_us: int = 0
    changed_us: int = 0
    changed_since_s: float = inf
    barrier: tuple[int, int] | None = None
    is_waiting: bool = False


class Tours:
    """The tours of all hubs, while they are `wanted`.

    Parameters
    ----------
    ports, switches : Mapping
        Kept by the owner.
    deadlines : Deadlines
        Where asks are set; the owner calls the methods in `due` for them.
    frames, budget
        What sends, and says when.
    owner : TourOwner
        The table around it.
    interval_s : Callable
        Returns the interval of LLDP.
    """

    def __init__(
        self,
        ports: Mapping[End, PortState],
        switches: Mapping[int, TouredSwitch],
        deadlines: Deadlines[Timer],
        frames: Frames,
        budget: FrameBudget,
        owner: TourOwner,
        interval_s: Callable[[], float],
    ) -> None:
        self._ports = ports
        self._switches = switches
        self._deadlines = deadlines
        self._frames = frames
        self._budget = budget
        self._owner = owner
        self._interval_s = interval_s
        self._answer_time = AnswerTime()
        self._tours: dict[int, Tour] = {}
        self._hubs: dict[int, list[Tour]] = {}
        self._laid: dict[int, dict[int, FlowEntry]] = {}
        self._at: dict[End, Tour] = {}
        self._barriers: dict[tuple[int, int], Tour] = {}
        self._revising: set[int] = set()
        self._last_number = 0
        self._asked: deque[tuple[int, int]] = deque(maxlen=ASKED_BOUND)
        self.heard_us = 0
        """When the latest frame was sent that was heard, of whatever port and purpose; in microseconds."""
        self.wanted = False
        self.covered_count = 0
        """Links that a tour proves."""
        self.due: dict[TimerKind, Callable[[int, float], None]] = {
            TimerKind.TOUR: self._ask_due,
            TimerKind.TOUR_CHECK: self._missed,
            TimerKind.HUB: self._revise,
        }
        budget.granted[FramePurpose.TOUR] = self._ask

    def __len__(self) -> int:
        return len(self._tours)

    @property
    def round_s(self) -> float:
        """In which time each tour is asked once."""
        least_s = len(self._tours) / (BUDGET_SHARE * self._budget.idle_frames_per_s)
        return max(INTERVAL_SHARE * self._interval_s(), least_s)

    @property
    def reaction_s(self) -> float:
        """How long it takes from a missed frame until the links are suspect, as answers come now."""
        return self._answer_time.wait_s * ASKS

    def want(self, wanted: bool, now: float) -> None:
        """Begin to make tours, or give all up."""
        if wanted == self.wanted:
            return
        self.wanted = wanted
        for dpid, switch in self._switches.items():
            if wanted and switch.ready:
                self._deadlines.set(Timer(TimerKind.HUB, dpid), now + REVISE_S * (1 + fraction(dpid)))
            elif not wanted:
                self.removed(dpid, now)

    def covers(self, port: PortState) -> bool:
        """Tell whether a tour proves that the link of a port is well."""
        tour = self._of(port)
        return tour is not None and tour.proven

    def link_touched(self, port: PortState, now: float) -> None:
        """Take in that what a port hears, or where it is heard, or whether it is up, has changed."""
        tour = self._at.get(port.end)
        if tour is not None and not _may_join(port):
            self._leave(tour, port.end[1], now)
        if self.wanted and _may_join(port) and self._of(port) is None:
            self._revise_soon(port.end[0], now)

    def lost(self, dpid: int, now: float) -> None:
        """Take in that a hub has no connection: its links are to be asked from their other ends."""
        for tour in self._hubs.get(dpid, ()):
            self._rest(tour)
            self._prove(tour, False, now)

    def ready(self, dpid: int, now: float) -> None:
        """Take in that a switch holds its first entries, maybe after it was lost."""
        for tour in self._hubs.get(dpid, ()):
            self._ask_soon(tour, now)
        if self.wanted:
            self._revise_soon(dpid, now)

    def connected(self, dpid: int, now: float) -> None:
        """Take in that a switch answers no barrier that it was sent before."""
        for tour in self._hubs.get(dpid, ()):
            self._ask_soon(tour, now)

    def removed(self, dpid: int, now: float) -> None:
        """Give up the tours of a switch, and its entries for them."""
        self._deadlines.cancel(Timer(TimerKind.HUB, dpid))
        self._revising.discard(dpid)
        for tour in tuple(self._hubs.get(dpid, ())):
            self._drop(tour, now)
        self._lay(dpid, now)

    def received(self, sink: PortState, dpid: int, port_no: int, sent_us: int, now: float) -> str | None:
        """Take in a tour frame that came to the controller; return the kind of its fault, None for none.

        One that comes back by another port than the last found no entry there: another switch may have sent it.
        """
        tour = self._at.get((dpid, port_no))
        if tour is None or sent_us <= tour.changed_us:
            return None
        if sent_us <= tour.arrived_us:
            return "lldp-replayed"
        tour.arrived_us = sent_us
        if sink.end == (tour.hub, tour.ports[-1]):
            self._answer_time.measured(now - sent_us / MICROSECONDS)
            tour.changed_since_s = inf
            self._rest(tour)
            self._prove(tour, True, now)
            self._deadlines.set(Timer(TimerKind.TOUR, tour.number), slots_later(now, self.round_s))
        elif self._at.get(sink.end) is tour:
            self._owner.strayed(sink.end, now)
        return None

    def barrier_replied(self, dpid: int, xid: int, now: float) -> None:
        """Take in that all is in that a hub had to say before."""
        tour = self._barriers.pop((dpid, xid), None)
        if tour is not None:
            tour.barrier = None
            if tour.is_waiting:
                self._take_apart(tour, now)

    # Which links are asked by which tour

    def _of(self, port: PortState) -> Tour | None:
        tour = self._at.get(port.end)
        return self._at.get(port.heard) if tour is None and port.heard is not None else tour

    def _revise_soon(self, dpid: int, now: float) -> None:
        if dpid not in self._revising:
            self._revising.add(dpid)
            self._deadlines.set(Timer(TimerKind.HUB, dpid), now + REVISE_S)

    def _revise(self, dpid: int, now: float) -> None:
        """Give the links of a switch that have none a tour, and do without tours that others can take in."""
        self._revising.discard(dpid)
        switch = self._switches.get(dpid)
        if switch is None or not switch.ready or not self.wanted:
            return
        changed: dict[Tour, None] = {}
        for port in switch.ports.values():
            if _may_join(port) and self._of(port) is None:
                changed[self._join(self._better_end(port), now)] = None
        self._merge(dpid, changed, now)
        for hub in {tour.hub: None for tour in changed}:
            self._lay(hub, now)
        if changed:
            self._deadlines.set(Timer(TimerKind.HUB, dpid), now + REVISE_AGAIN_S)

    def _better_end(self, port: PortState) -> PortState:
        """Return the end of a link whose switch should ask it: one that has room, then the one with more links."""
        assert port.heard is not None
        other = self._ports[port.heard]
        return max((port, other), key=self._rank) if self._may_host(other) else port

    def _may_host(self, port: PortState) -> bool:
        return _may_join(port) and self._switches[port.end[0]].ready

    def _rank(self, port: PortState) -> tuple[bool, int, int, int]:
        dpid = port.end[0]
        tour = self._with_room(dpid)
        count = 0 if tour is None else len(tour.ports)
        return (tour is not None, count, self._switches[dpid].trunk_count, -dpid)

    def _with_room(self, dpid: int, count: int = 1) -> Tour | None:
        """Return the fullest tour of a hub that can take in so many links."""
        open_tours = (tour for tour in self._hubs.get(dpid, ()) if len(tour.ports) + count <= MAX_LINKS)
        return max(open_tours, key=lambda tour: len(tour.ports), default=None)

    def _join(self, port: PortState, now: float) -> Tour:
        dpid, port_no = port.end
        tour = self._with_room(dpid)
        if tour is None:
            self._last_number += 1
            tour = Tour(self._last_number, dpid)
            self._tours[tour.number] = tour
            self._hubs.setdefault(dpid, []).append(tour)
        tour.ports = sorted([*tour.ports, port_no])
        self._at[port.end] = tour
        self.covered_count += tour.proven
        self._changed(tour, now)
        return tour

    def _merge(self, dpid: int, changed: dict[Tour, None], now: float) -> None:
        """Do without the smallest tour of a hub, if another one or the links' other ends can take in its links."""
        smallest = min(self._hubs.get(dpid, ()), key=lambda tour: len(tour.ports), default=None)
        if smallest is None:
            return
        ends = [self._ports[dpid, port_no] for port_no in smallest.ports]
        if not self._fits_elsewhere(smallest):
            ends = [self._ports[port.heard] for port in ends if port.heard is not None]
            if not all(self._may_host(port) and self._with_room(port.end[0]) is not None for port in ends):
                return
        self._drop(smallest, now)
        changed.pop(smallest, None)
        changed.update(dict.fromkeys([self._join(port, now) for port in ends]))
        self._lay(dpid, now)

    def _fits_elsewhere(self, tour: Tour) -> bool:
        """Tell whether another tour of the hub can take in all links of this one."""
        others = (other for other in self._hubs[tour.hub] if other is not tour)
        return any(len(other.ports) + len(tour.ports) <= MAX_LINKS for other in others)

    def _leave(self, tour: Tour, port_no: int, now: float) -> None:
        tour.ports.remove(port_no)
        del self._at[tour.hub, port_no]
        self.covered_count -= tour.proven
        if tour.proven:
            self._owner.coverage_changed([(tour.hub, port_no)], False, now)
        if tour.ports:
            self._changed(tour, now)
            self._revise_soon(tour.hub, now)
        else:
            self._drop(tour, now)
        self._lay(tour.hub, now)

    def _drop(self, tour: Tour, now: float) -> None:
        """Ask a tour no more."""
        self._rest(tour)
        self._deadlines.cancel(Timer(TimerKind.TOUR, tour.number))
        ends = [(tour.hub, port_no) for port_no in tour.ports]
        for end in ends:
            del self._at[end]
        self.covered_count -= len(ends) * tour.proven
        del self._tours[tour.number]
        tours = self._hubs[tour.hub]
        tours.remove(tour)
        if not tours:
            del self._hubs[tour.hub]
        if tour.proven:
            self._owner.coverage_changed(ends, False, now)

    def _changed(self, tour: Tour, now: float) -> None:
        """Let nothing count that was sent before now, and ask anew."""
        tour.changed_us = max(tour.sent_us, int(now * MICROSECONDS))
        tour.changed_since_s = min(tour.changed_since_s, now)
        if not tour.asked_count:
            self._ask_soon(tour, now)

    def _lay(self, dpid: int, now: float) -> None:
        """Have a hub hold the entries of its tours, and no others; ports about to leave a tour are left out."""
        laid = self._laid.pop(dpid, {})
        wanted: dict[int, FlowEntry] = {}
        for tour in self._hubs.get(dpid, ()):
            version = self._switches[dpid].ofp_version
            stops = [(port_no, heard[0]) for port_no in tour.ports if (heard := self._ports[dpid, port_no].heard)]
            for (port_no, neighbour), (next_port_no, _neighbour) in pairwise(stops):
                wanted[port_no] = tour_rule(version, port_no, neighbour, next_port_no)
        if wanted:
            self._laid[dpid] = wanted
        edits: list[Edit] = [
            Remove(rule.key)
            for port_no, rule in laid.items()
            if port_no not in wanted or wanted[port_no].key != rule.key
        ]
        edits += [Put(rule) for port_no, rule in wanted.items() if laid.get(port_no) != rule]
        if edits:
            self._owner.install(dpid, edits, now)

    # Asking

    def _ask_soon(self, tour: Tour, now: float) -> None:
        self._rest(tour)
        at = max(now, min(now + SETTLE_S, tour.changed_since_s + LATEST_S))
        self._deadlines.set(Timer(TimerKind.TOUR, tour.number), slot_after(at))

    def _ask_due(self, number: int, now: float) -> None:
        tour = self._tours[number]
        if not self._switches[tour.hub].ready:
            return
        if now < tour.changed_since_s + LATEST_S < inf and not self._owner.in_sync(tour.hub):
            self._deadlines.set(Timer(TimerKind.TOUR, number), slots_later(now, SETTLE_S))
            return
        self._budget.ask(FrameUrgency.TOUR, FramePurpose.TOUR, number, now)

    def _ask(self, number: int, now: float) -> int:
        tour = self._tours.get(number)
        if tour is None or tour.asked_count >= ASKS or not self._switches[tour.hub].ready:
            return 0
        tour.sent_us = self._frames.send(FrameKind.TOUR, self._ports[tour.hub, tour.ports[0]], now)
        self._asked.append((tour.sent_us, number))
        tour.asked_count += 1
        if tour.asked_count >= ASKS:
            tour.barrier = (tour.hub, self._owner.request_barrier(tour.hub))
            self._barriers[tour.barrier] = tour
        self._deadlines.set(Timer(TimerKind.TOUR_CHECK, number), now + self._answer_time.wait_s)
        return 1

    def _missed(self, number: int, now: float) -> None:
        """Ask again for a tour whose frame did not return in time, or take it apart."""
        tour = self._tours[number]
        if tour.asked_count < ASKS:
            self._budget.ask(FrameUrgency.SUSPECT, FramePurpose.TOUR, number, now)
        elif tour.barrier is None or (tour.is_waiting and self._must_have_answered(tour, now)):
            self._take_apart(tour, now)
        else:
            tour.is_waiting = True
            self._deadlines.set(Timer(TimerKind.TOUR_CHECK, number), now + PATIENCE_S)

    def _must_have_answered(self, tour: Tour, now: float) -> bool:
        """Tell whether a hub's answer would have been read: not while most of what others were asked is not heard."""
        if now > tour.sent_us / MICROSECONDS + BEHIND_S:
            return True
        late_us = (now - self._answer_time.wait_s) * MICROSECONDS
        since_us = tour.sent_us - PATIENCE_S * MICROSECONDS
        others = [at for at, number in self._asked if number != tour.number and since_us < at < late_us]
        return 2 * sum(at > self.heard_us for at in others) <= len(others)

    def _take_apart(self, tour: Tour, now: float) -> None:
        """Ask the links of a tour singly; one that never returned says nothing of them."""
        ends: list[End] = [(tour.hub, port_no) for port_no in tour.ports]
        if tour.barrier is not None:
            ends = [heard for end in ends if (heard := self._ports[end].heard) is not None]
        was_proven = tour.proven
        self._rest(tour)
        self._prove(tour, False, now)
        self._deadlines.set(Timer(TimerKind.TOUR, tour.number), slots_later(now, self.round_s))
        if was_proven:
            for end in ends:
                self._owner.doubt(end, now)

    def _rest(self, tour: Tour) -> None:
        """Expect no frame of a tour."""
        self._deadlines.cancel(Timer(TimerKind.TOUR_CHECK, tour.number))
        if tour.barrier is not None:
            del self._barriers[tour.barrier]
        tour.barrier, tour.asked_count, tour.is_waiting = None, 0, False

    def _prove(self, tour: Tour, proven: bool, now: float) -> None:
        if proven is not tour.proven:
            tour.proven = proven
            self.covered_count += len(tour.ports) if proven else -len(tour.ports)
            self._owner.coverage_changed([(tour.hub, port_no) for port_no in tour.ports], proven, now)


def _may_join(port: PortState) -> bool:
    """Tell whether a tour can ask the link of a port: it is whole, and its other end sends echo frames back."""
    return port.up and port.echoes and port.heard is not None and port.heard == port.heard_by and not port.looped()
