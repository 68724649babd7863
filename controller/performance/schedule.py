"""When which switch is asked for which statistics: a timetable without clock or socket.

Every switch has a phase, a fraction of its interval that its datapath id alone decides, so that polls spread over the
interval and a switch keeps its place when others come and go. At most `outstanding` requests wait for an answer; the
rest stand in line. A switch that gives no answer is down until it does: what it is asked then shares a quarter of the
places, so that many silent switches cannot hold up the others.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from heapq import heapify, heappop, heappush
from math import floor
from types import MappingProxyType
from typing import NamedTuple

from controller.performance.poll_load import PollLoad
from topology.graph import NodeKind

OPENFLOW_1_3 = 4
MAX_SWITCHES = 65536
"""Switches on the list, those that are gone included; the one gone for longest gives way."""

MAX_PARTS = 4096
"""Parts of one reply; a request whose reply has more is given up."""

REMEMBERED_XIDS = 4096
"""Closed requests that are remembered, to tell late replies from repeated and invented ones."""

SLICES, LONGEST_SLICE_S = 20, 0.25
"""Polls come due at slices of the interval, at least so many, so that the monitor wakes once for several."""

LATE_S = 0.25
"""A monitor that looks this much too late gives requests as much more time: their answers may wait unread."""

XID_BITS = 24
PROBES_SHARE = 4
_GOLDEN = 0x9E3779B97F4A7C15
_WORD = 1 << 64

DEFAULT_INTERVAL_S = 10
MIN_INTERVAL_S, MAX_INTERVAL_S = 1, 65535


class StatKind(IntEnum):
    """What is asked for; the values are the multipart types of OpenFlow 1.3, and of 1.0 as far as it has them."""

    FLOW = 1
    TABLE = 3
    PORT = 4
    QUEUE = 5
    GROUP = 6
    METER = 9


ONLY_IN_1_3 = frozenset((StatKind.GROUP, StatKind.METER))


class PollSettings(NamedTuple):
    """How polls go.

    Attributes
    ----------
    kinds
        Statistics to ask for.
    interval_s
        Time between two polls of a switch, where its class has no other; 1 to 65535.
    class_interval_s
        Interval by class of switch.
    outstanding
        Requests that may wait for an answer at once, at least 1.
    timeout_s
        Silence after which a request is given up.
    """

    kinds: frozenset[StatKind] = frozenset((StatKind.PORT,))
    interval_s: float = DEFAULT_INTERVAL_S
    class_interval_s: Mapping[NodeKind, float] = MappingProxyType({})
    outstanding: int = 64
    timeout_s: float = 2.0

    def interval_of(self, kind: NodeKind) -> float:
        """Return the interval of a class of switches."""
        return self.class_interval_s.get(kind, self.interval_s)


class Request(NamedTuple):
    """Ask a switch for one kind of statistics."""

    dpid: int
    kind: StatKind
    xid: int


class ReplyVerdict(StrEnum):
    """What a reply is."""

    AWAITED = "reply-awaited"
    WRONG_SWITCH = "reply-from-wrong-switch"
    WRONG_KIND = "reply-of-wrong-kind"
    LATE = "reply-late"
    TWICE = "reply-twice"
    UNKNOWN = "reply-unknown"
    ENDLESS = "reply-endless"


@dataclass(slots=True)
class SwitchPolls:
    """A switch on the monitoring list and how its polls went; `up` is False from a missed answer to the next one.

    `sweep_s` is when the poll under way was due, None where it looks whether a switch that is down answers.
    """

    dpid: int
    ofp_version: int
    connected: bool = True
    up: bool = True
    kind: NodeKind = NodeKind.SWITCH
    open: int = 0
    answered_s: float | None = None
    gone_s: float = 0.0
    polls: int = 0
    replies: int = 0
    timeouts: int = 0
    skipped: int = 0
    due_s: float = 0.0
    sweep_s: float | None = None
    unsupported: set[StatKind] = field(default_factory=set)


class _Open(NamedTuple):
    dpid: int
    kind: StatKind
    sent_s: float
    probe: bool


def phase(dpid: int) -> float:
    """Return the fraction of its interval at which a switch is polled, in [0, 1).

    Multiples of the golden ratio: any run of consecutive datapath ids is spread evenly (Knuth, TAOCP vol. 3, 6.4).
    """
    return (dpid * _GOLDEN % _WORD) / _WORD


def next_due(dpid: int, interval_s: float, now: float) -> float:
    """Return the first time after `now` at which a switch is to be polled."""
    slice_s = min(interval_s / SLICES, LONGEST_SLICE_S)
    offset_s = floor(phase(dpid) * interval_s / slice_s) * slice_s
    due_s = (floor((now - offset_s) / interval_s) + 1) * interval_s + offset_s
    return due_s if due_s > now else due_s + interval_s


class Schedule:
    """The monitoring list and the requests under way.

    Parameters
    ----------
    settings
        How polls go; `configure` changes it.
    xid_tag
        Upper 8 bits of the transaction ids.

    Attributes
    ----------
    switches
        The monitoring list.
    turned
        Switches that went down or came up, in order; who reads it empties it.
    load
        How heavy the polls are.
    """

    def __init__(self, settings: PollSettings, xid_tag: int) -> None:
        self.settings = settings
        self.counters: Counter[str] = Counter()
        self.switches: dict[int, SwitchPolls] = {}
        self.turned: list[int] = []
        self.load = PollLoad()
        self._tag = xid_tag << XID_BITS
        self._sequence = 0
        self._due: list[tuple[float, int]] = []
        self._waiting: deque[tuple[int, StatKind]] = deque()
        self._probing: deque[tuple[int, StatKind]] = deque()
        self._open: dict[int, _Open] = {}
        self._parts: dict[int, int] = {}
        self._timeouts: list[tuple[float, int]] = []
        self._probes_open = 0
        self._spare_until_s = float("-inf")
        self._closed: dict[int, ReplyVerdict] = {}

    # The monitoring list.

    def connected(self, dpid: int, ofp_version: int, now: float, due_in_s: float | None = None) -> bool:
        """Put a switch on the list, or back on it; False where the list is full of connected ones.

        It is polled in its turn, or first in `due_in_s` seconds and then in its turn.
        """
        switch = self.switches.get(dpid)
        if switch is None:
            if len(self.switches) >= MAX_SWITCHES and not self._forget_one():
                self.counters["switches-over-limit"] += 1
                return False
            switch = self.switches[dpid] = SwitchPolls(dpid, ofp_version, up=False)
        elif switch.connected:
            self._drop_requests(dpid)
        switch.connected = True
        self._turn(switch, True)
        switch.ofp_version, switch.unsupported = ofp_version, set()
        if due_in_s is None:
            self._plan(switch, now)
        else:
            self._plan_at(switch, now + due_in_s)
        return True

    def disconnected(self, dpid: int, now: float) -> None:
        """Stop polling a switch; it stays on the list as down."""
        switch = self.switches.get(dpid)
        if switch is not None and switch.connected:
            switch.connected, switch.gone_s = False, now
            self._turn(switch, False)
            self._drop_requests(dpid)

    def left(self, dpid: int, now: float) -> float:
        """Take a switch off the list, for another monitor polls it; it is not down.

        Return in how many seconds it would have been polled next; 0 where an answer is waited for.
        """
        switch = self.switches.get(dpid)
        if switch is None:
            return 0.0
        is_polled = switch.open > 0
        self._drop_requests(dpid)
        del self.switches[dpid]
        return 0.0 if is_polled else max(switch.due_s - now, 0.0)

    def classify(self, dpid: int, kind: NodeKind, now: float) -> None:
        """Say of which class a switch is."""
        switch = self.switches.get(dpid)
        if switch is not None and switch.kind is not kind:
            former_s = self.settings.interval_of(switch.kind)
            switch.kind = kind
            if self.settings.interval_of(kind) != former_s:
                self._plan(switch, now)

    def configure(self, settings: PollSettings, now: float) -> None:
        """Go on with other settings; requests under way keep their time limit."""
        before, self.settings = self.settings, settings
        for switch in self.switches.values():
            if settings.interval_of(switch.kind) != before.interval_of(switch.kind):
                self._plan(switch, now)

    def unsupported(self, dpid: int, xid: int, now: float) -> StatKind | None:
        """Take in that a switch refused a request; it is not asked for that kind until it connects again."""
        asked = self._open.get(xid)
        if asked is None or asked.dpid != dpid:
            return None
        self._close(xid, ReplyVerdict.TWICE)
        switch = self.switches[dpid]
        switch.unsupported.add(asked.kind)
        switch.answered_s = now
        self._turn(switch, True)
        self.counters["requests-refused"] += 1
        return asked.kind

    # Replies.

    def replied(self, dpid: int, xid: int, kind: int, more: bool, now: float) -> ReplyVerdict:
        """Take in a part of a reply (the last one where not `more`) and tell what it is; only AWAITED ones count."""
        verdict = self._judge(dpid, xid, kind)
        if verdict is not ReplyVerdict.AWAITED:
            self.counters[verdict] += 1
            return verdict
        switch = self.switches[dpid]
        switch.answered_s = now
        self.load.given_up += not switch.up
        self._turn(switch, True)
        if more:
            self._parts[xid] = self._parts.get(xid, 0) + 1
            self._open[xid] = self._open[xid]._replace(sent_s=now)
        else:
            switch.replies += 1
            self.counters["requests-answered"] += 1
            self.load.busy_s += now - self._open[xid].sent_s
            self._close(xid, ReplyVerdict.TWICE)
            if switch.open == 0 and switch.sweep_s is not None:
                self.load.answered((now - switch.sweep_s) / self.settings.interval_of(switch.kind))
        return verdict

    def _judge(self, dpid: int, xid: int, kind: int) -> ReplyVerdict:
        asked = self._open.get(xid)
        if asked is None:
            return self._closed.get(xid, ReplyVerdict.UNKNOWN)
        if asked.dpid != dpid:
            return ReplyVerdict.WRONG_SWITCH
        if asked.kind != kind:
            return ReplyVerdict.WRONG_KIND
        if self._parts.get(xid, 0) >= MAX_PARTS:
            self._close(xid, ReplyVerdict.LATE)
            return ReplyVerdict.ENDLESS
        return ReplyVerdict.AWAITED

    # Time.

    @property
    def outstanding(self) -> int:
        """How many requests wait for an answer."""
        return len(self._open)

    @property
    def waiting(self) -> int:
        """How many requests stand in line."""
        return len(self._waiting) + len(self._probing)

    def next_deadline(self) -> float | None:
        """Return when `on_deadline` is due, None for never."""
        while self._timeouts and self._timeouts[0][1] not in self._open:
            heappop(self._timeouts)
        due_s = self._due[0][0] if self._due else None
        if self._timeouts and (due_s is None or self._timeouts[0][0] < due_s):
            return self._timeouts[0][0]
        return due_s

    def on_deadline(self, now: float) -> list[Request]:
        """Give up what was not answered, line up the polls that are due, and return the requests to send now."""
        due_s = self.next_deadline()
        if due_s is not None and now - due_s > LATE_S:
            self._spare_until_s = now + LATE_S
        self._expire(now)
        while self._due and self._due[0][0] <= now:
            due_s, dpid = heappop(self._due)
            switch = self.switches.get(dpid)
            if switch is not None and switch.connected and switch.due_s == due_s:
                self._begin_sweep(switch, due_s, now)
        return self.send(now)

    def send(self, now: float) -> list[Request]:
        """Return the requests for which there is a free place; to be called after replies."""
        requests = list(self._take(self._waiting, now, False))
        if self._probing:
            requests += self._take(self._probing, now, True)
        return requests

    def _take(self, line: deque[tuple[int, StatKind]], now: float, probe: bool) -> Iterator[Request]:
        limit = self.settings.outstanding
        probes = max(1, limit // PROBES_SHARE)
        while line and len(self._open) < limit and not (probe and self._probes_open >= probes):
            dpid, kind = line.popleft()
            self._sequence = (self._sequence + 1) % (1 << XID_BITS)
            xid = self._tag | self._sequence
            self._closed.pop(xid, None)
            self._open[xid] = _Open(dpid, kind, now, probe)
            self._probes_open += probe
            heappush(self._timeouts, (now + self.settings.timeout_s, xid))
            self.switches[dpid].polls += 1
            self.counters["requests-sent"] += 1
            yield Request(dpid, kind, xid)

    def _begin_sweep(self, switch: SwitchPolls, due_s: float, now: float) -> None:
        interval_s = self.settings.interval_of(switch.kind)
        late = missed = int((now - due_s) // interval_s)
        if switch.open:
            # One that has just come is polled out of its turn, which may come while the first poll is in line.
            late += switch.sweep_s is None or due_s - switch.sweep_s > interval_s / 2
            missed += switch.sweep_s is not None and due_s - switch.sweep_s > interval_s / 2
        else:
            kinds = [kind for kind in sorted(self.settings.kinds, key=_order) if kind not in switch.unsupported]
            if switch.ofp_version < OPENFLOW_1_3:
                kinds = [kind for kind in kinds if kind not in ONLY_IN_1_3]
            line = self._waiting if switch.up else self._probing
            line.extend((switch.dpid, kind) for kind in (kinds if switch.up else kinds[:1]))
            switch.open = len(kinds) if switch.up else min(1, len(kinds))
            switch.sweep_s = due_s if switch.up else None
        if late:
            switch.skipped += late
            self.counters["sweeps-skipped"] += late
            self.load.skipped += missed if switch.up else 0
        self._plan(switch, now)

    def _plan(self, switch: SwitchPolls, now: float) -> None:
        if switch.connected:
            self._plan_at(switch, next_due(switch.dpid, self.settings.interval_of(switch.kind), now))

    def _plan_at(self, switch: SwitchPolls, due_s: float) -> None:
        switch.due_s = due_s
        heappush(self._due, (due_s, switch.dpid))
        if len(self._due) > 2 * len(self.switches) + 64:
            switches = self.switches
            self._due = [entry for entry in self._due if entry[1] in switches]
            self._due = [entry for entry in set(self._due) if switches[entry[1]].due_s == entry[0]]
            heapify(self._due)

    def _expire(self, now: float) -> None:
        while self._timeouts and self._timeouts[0][0] <= now:
            _, xid = heappop(self._timeouts)
            asked = self._open.get(xid)
            if asked is None:
                continue
            limit_s = max(asked.sent_s + self.settings.timeout_s, self._spare_until_s)
            if limit_s > now:  # a part of the reply came meanwhile, or may wait unread
                heappush(self._timeouts, (limit_s, xid))
                continue
            self._close(xid, ReplyVerdict.LATE)
            switch = self.switches[asked.dpid]
            switch.timeouts += 1
            self.load.busy_s += 0.0 if asked.probe else now - asked.sent_s
            self.counters["requests-timed-out"] += 1
            if switch.up:
                self._turn(switch, False)
                self._unline(switch)

    def _close(self, xid: int, then: ReplyVerdict) -> None:
        asked = self._open.pop(xid)
        self._parts.pop(xid, None)
        self._probes_open -= asked.probe
        self.switches[asked.dpid].open -= 1
        self._closed[xid] = then
        if len(self._closed) > REMEMBERED_XIDS:
            del self._closed[next(iter(self._closed))]

    def _turn(self, switch: SwitchPolls, up: bool) -> None:
        if switch.up is not up:
            switch.up = up
            self.turned.append(switch.dpid)

    def _drop_requests(self, dpid: int) -> None:
        for xid in [xid for xid, asked in self._open.items() if asked.dpid == dpid]:
            self._close(xid, ReplyVerdict.LATE)
        self._unline(self.switches[dpid])

    def _unline(self, switch: SwitchPolls) -> None:
        """Take what a switch would be asked next out of the lines."""
        if switch.open:
            for line in (self._waiting, self._probing):
                kept = [entry for entry in line if entry[0] != switch.dpid]
                switch.open -= len(line) - len(kept)
                line.clear()
                line.extend(kept)

    def _forget_one(self) -> bool:
        gone = min((s for s in self.switches.values() if not s.connected), key=lambda s: s.gone_s, default=None)
        if gone is None:
            return False
        del self.switches[gone.dpid]
        self.counters["switches-forgotten"] += 1
        return True


def _order(kind: StatKind) -> tuple[bool, int]:
    return (kind is not StatKind.PORT, int(kind))
