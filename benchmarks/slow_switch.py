"""Switches that carry out edits at a rate of their own, in virtual time: with a window alone, or an `Installer`."""

from __future__ import annotations

import heapq
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

from controller.config.edit_settings import Edits
from controller.datapath.batches import BARRIER_TIMEOUT_S
from controller.datapath.lanes import Urgency
from controller.datapath.window import WINDOWS
from controller.effects import ApplyEdits, Put, RequestFlows
from controller.events import DeadlineReached, EditFailed, FlowStatsReceived, SwitchConnected, SwitchDisconnected
from controller.rules.fake import FakeSwitch
from controller.rules.installer import Installer
from controller.rules.model import FlowEntry, FlowKey, Match, Output

RECONNECT_S = 1.0
READ_ENTRIES_PER_S = 20000.0
TAG = 0x5602
DPID = 1


class Kind(NamedTuple):
    """A kind of switch: a batch of n edits takes `delay_s` + n / `rate_per_s`, give or take `jitter`.

    A share of batches is held up by up to `stall_s`. With more than `holds` edits in it, it loses its connection.
    """

    name: str
    delay_s: float
    rate_per_s: float
    holds: float = math.inf
    jitter: float = 0.1
    stall_share: float = 0.005
    stall_s: float = 0.3


KINDS = (
    Kind("Open vSwitch", 0.0007, 30000, jitter=0.2, stall_s=0.1),
    Kind("5,000 edits/s", 0.002, 5000, jitter=0.2),
    Kind("1,000 edits/s", 0.002, 1000),
    Kind("200 edits/s", 0.002, 200),
    Kind("60 edits/s", 0.002, 60),
    Kind("2,000 edits/s, far away", 0.03, 2000),
    Kind("3,000 edits/s, holds 256", 0.02, 3000, holds=256),
)


class Outcome(NamedTuple):
    """What a window made of a switch.

    `share` is that of the edits that the switch could have carried out, were there no delay. Waits are those of an
    edit that comes at any moment, until its batch is confirmed.
    """

    share: float
    mean_wait_s: float
    worst_wait_s: float
    connections_lost: int


def keep_busy(kind: Kind, edits: Edits, duration_s: float = 60.0, slows_to: float = 0.2, seed: int = 1) -> Outcome:
    """Program a switch without end; after half the time its rate falls to `slows_to` of what it was."""
    draw = random.Random(seed)
    window = WINDOWS[edits.window](edits)
    now, done, lost = 0.0, 0, 0
    spans: list[float] = []
    while now < duration_s:
        size = window.size
        rate_per_s = kind.rate_per_s * (1.0 if now < duration_s / 2 else slows_to)
        took_s = _about(kind.delay_s, kind.jitter, draw) + _about(size / rate_per_s, kind.jitter / 2, draw)
        if draw.random() < kind.stall_share:
            took_s += kind.stall_s * draw.random()
        if size > kind.holds:
            took_s = RECONNECT_S
            lost += 1
            window.lost(size, now)
        elif took_s > BARRIER_TIMEOUT_S:
            took_s = BARRIER_TIMEOUT_S
            window.failed(size)
        else:
            done += size
            window.confirmed(size, took_s, now + took_s)
        spans.append(took_s)
        now += took_s
    possible = kind.rate_per_s * duration_s * (1.0 + slows_to) / 2
    mean_s = sum(one * (one / 2 + other) for one, other in pairwise(spans)) / sum(spans[:-1])
    return Outcome(done / possible, mean_s, max(one + other for one, other in pairwise(spans)), lost)


def _about(value: float, jitter: float, draw: random.Random) -> float:
    return value * math.exp(draw.gauss(0.0, jitter))


class Programming(NamedTuple):
    """How it went to program a switch anew while hosts join: times in seconds, `whole` as a multiple of the least."""

    join_waits_s: Sequence[float]
    whole_s: float
    whole: float
    connections_lost: int
    readings: int
    batches: int


@dataclass
class Programmed:
    """A switch with an empty table that an `Installer` brings to `entries` entries, while a host joins now and then.

    `lanes` false has everything in one lane: first come, first served.
    """

    kind: Kind
    entries: int
    edits: Edits
    lanes: bool = True
    join_interval_s: float = 0.1
    limit_s: float = 120.0
    seed: int = 1
    now: float = 0.0
    _timeline: list[tuple[float, int, Callable[[], None]]] = field(default_factory=list)
    _count: int = 0

    def run(self) -> Programming:
        """Go on until the switch holds everything; RuntimeError where it does not within `limit_s`."""
        self._draw = random.Random(self.seed)
        self._installer = Installer(TAG)
        self._installer.use_edits(self.edits)
        self._fresh()
        self._waiting: dict[FlowKey, float] = {}
        self._waits: list[float] = []
        self._lost = self._readings = self._batches = self._joins = 0
        wanted = [(DPID, Put(_rule(number))) for number in range(self.entries)]
        self._perform(self._installer.change([wanted], 0.0, urgency=Urgency.BULK))
        self._feed(SwitchConnected(DPID, 4, ()))
        self._at(self.join_interval_s * self._draw.random(), self._join)
        while self._missing():
            due_s = self._installer.next_deadline()
            if due_s is not None and (not self._timeline or due_s < self._timeline[0][0]):
                self.now = max(self.now, due_s)
                self._feed(DeadlineReached())
            else:
                self.now, _, act = heapq.heappop(self._timeline)
                act()
            if self.now > self.limit_s:
                raise RuntimeError(f"{self._missing()} entries are missing after {self.now:.0f} s")
        whole_s = self.now
        late = [whole_s - began_s for began_s in self._waiting.values()]
        least_s = (self.entries + len(self._waits)) / self.kind.rate_per_s
        return Programming(
            [*self._waits, *late], whole_s, whole_s / least_s, self._lost, self._readings, self._batches
        )

    def _missing(self) -> int:
        installed = self._installer.installed(DPID)
        return self.entries + self._joins - len(installed) - len(self._waiting)

    def _fresh(self) -> None:
        self._switch = FakeSwitch(DPID, 4)
        self._free_s = 0.0
        self._held: list[tuple[float, int]] = []
        self._connection = object()

    def _at(self, time_s: float, act: Callable[[], None]) -> None:
        self._count += 1
        heapq.heappush(self._timeline, (time_s, self._count, act))

    def _join(self) -> None:
        rule = _rule(1_000_000 + self._joins)
        self._joins += 1
        self._waiting[rule.key] = self.now
        urgency = Urgency.PROMPT if self.lanes else Urgency.BULK
        self._perform(self._installer.put(((DPID, rule),), self.now, urgency))
        self._at(self.now + self.join_interval_s, self._join)

    def _feed(self, event: Any) -> None:
        self._perform(self._installer.handle(event, self.now))
        installed = self._installer.installed(DPID)
        for key in [key for key in self._waiting if key in installed]:
            self._waits.append(self.now - self._waiting.pop(key))

    def _perform(self, effects: Sequence[object]) -> None:
        for effect in effects:
            if isinstance(effect, ApplyEdits):
                self._batches += 1
                self._take(effect)
            elif isinstance(effect, RequestFlows):
                self._readings += 1
                took_s = self.kind.delay_s + len(self._switch.rules) / READ_ENTRIES_PER_S
                self._free_s = max(self._free_s, self.now) + took_s
                self._reply(effect)

    def _take(self, effect: ApplyEdits) -> None:
        """Carry out a batch after those before it; the whole of it is there once it is answered."""
        kind, count = self.kind, len(effect.edits)
        self._held = [(end_s, edits) for end_s, edits in self._held if end_s > self.now]
        if sum(edits for _, edits in self._held) + count > kind.holds:
            self._lost += 1
            self._perform(self._installer.handle(SwitchDisconnected(DPID), self.now))
            self._fresh()
            self._at(self.now + RECONNECT_S, lambda: self._feed(SwitchConnected(DPID, 4, ())))
            return
        took_s = _about(kind.delay_s, kind.jitter, self._draw) + count / kind.rate_per_s
        if self._draw.random() < kind.stall_share:
            took_s += kind.stall_s * self._draw.random()
        self._free_s = max(self._free_s, self.now) + took_s
        self._held.append((self._free_s, count))
        self._reply(effect)

    def _reply(self, effect: ApplyEdits | RequestFlows) -> None:
        connection = self._connection

        def answer() -> None:
            if connection is self._connection:
                for event in self._switch.respond(effect, self.now):
                    assert not isinstance(event, EditFailed | FlowStatsReceived) or event.dpid == DPID
                    self._feed(event)

        self._at(self._free_s, answer)


def _rule(number: int) -> FlowEntry:
    return FlowEntry(FlowKey(0, 1, Match(in_port=number + 1)), (Output(2),), TAG << 48 | number)
