"""Monitors that share simulated switches: real shares and timetables, messages that take their time."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from typing import NamedTuple

from simulated_store import Timeline

from controller.cluster.draining import draining, undraining
from controller.cluster.effects import StoreRequest, TellOperators, WatchKeys
from controller.cluster.engine import PAGE_KEYS, KeyChanges, KeyPage, ReadPage, Reply, Silent, Transaction
from controller.cluster.events import Answered, KeysChanged, WatchEnded
from controller.cluster.keys import Keys
from controller.cluster.memory_engine import MemoryEngine, MemoryWatch
from controller.cluster.share_events import (
    PollsEnded,
    ShareChanged,
    ShareConfirmed,
    SwitchesSeen,
)
from controller.cluster.share_records import Load, ShareView
from controller.cluster.shares import ShareCore, ShareSettings
from controller.events import DeadlineReached
from controller.performance.schedule import OPENFLOW_1_3, PollSettings, Schedule

FABRIC = "simulated"
TICK_S = 0.05
INTERVAL_S = 10
LEASE_S = 3


class Row(NamedTuple):
    """An answer of a switch: when it came, to whom, in which epoch.

    `is_heard` is False where the store left a request of that monitor unanswered within the time of a lease.
    """

    at_s: float
    monitor: str
    epoch: int
    is_heard: bool


class MonitorNode:
    """A monitor's process."""

    def __init__(self, world: MonitoredFabric, name: str) -> None:
        self.world = world
        self.name = name
        self.run = 0
        self.is_up = self.is_stopped = False
        self.engine = MemoryEngine(world.store)
        self.backlog: list[Callable[[], None]] = []
        self.without: set[int] = set()

    def start(self) -> None:
        """Begin as a new process, connected to all switches within a second."""
        self.run += 1
        self.incarnation = f"{self.name}-{self.run}"
        self.is_up, self.is_stopped, self.backlog = True, False, []
        self.shares = ShareCore(ShareSettings(FABRIC, self.name, self.incarnation, lease_s=LEASE_S), self.world.now)
        self.schedule = Schedule(PollSettings(interval_s=INTERVAL_S), 0xA0)
        self.connected: set[int] = set()
        self.epochs: dict[int, int] = {}
        self.until_s = self.world.now
        self.watch: MemoryWatch | None = None
        self.watch_number = 0
        self.silent_s = float("-inf")
        self.give(DeadlineReached())
        self.at("", self.connect, self.world.chance.uniform(0.0, 1.0))

    def connect(self) -> None:
        """Be connected to the switches that it reaches."""
        self.connected = self.world.ports.keys() - self.without
        self.see()

    def see(self) -> None:
        """Have the shares know which switches there are."""
        self.give(SwitchesSeen({dpid: Load(self.world.ports[dpid], INTERVAL_S) for dpid in self.connected}))

    def lose(self, dpid: int, for_s: float) -> None:
        """Lose the connection to a switch, and have another one some time later."""
        self.without.add(dpid)
        self.connected.discard(dpid)
        self.schedule.left(dpid, self.world.now)
        self.see()

        def heal() -> None:
            self.without.discard(dpid)
            self.connected.add(dpid)
            if dpid in self.epochs:
                self.schedule.connected(dpid, OPENFLOW_1_3, self.world.now, 0.0)
            self.see()

        self.at("", heal, for_s)

    def kill(self) -> None:
        """End at once."""
        self.is_up = False

    def resume(self) -> None:
        """Go on where it stopped: what is due is done before what came meanwhile is heard."""
        self.is_stopped = False
        self.poll()
        backlog, self.backlog = self.backlog, []
        for action in backlog:
            action()

    def at(self, channel: str, action: Callable[[], None], delay_s: float | None = None) -> None:
        """Have something happen to this process after a delay, if it still is."""
        run = self.run

        def happen() -> None:
            if run != self.run or not self.is_up:
                return
            if self.is_stopped:
                self.backlog.append(happen)
            else:
                action()

        delay_s = self.world.delay_s() if delay_s is None else delay_s
        self.world.later(delay_s, happen, f"{self.incarnation} {channel}" if channel else "")

    def give(self, event: object) -> None:
        """Have the shares take an event."""
        for effect in self.shares.handle(event, self.world.now):
            if type(effect) is StoreRequest:
                self.ask(effect)
            elif type(effect) is WatchKeys:
                self.watch = self.engine.watch(effect.prefix, effect.after_revision)
                self.watch_number = effect.watch
            elif type(effect) is ShareConfirmed:
                self.at("polls", lambda until_s=effect.until_s: self.confirm(until_s))
            elif type(effect) is ShareChanged:
                self.at("polls", lambda change=effect: self.change(change))
            elif type(effect) is TellOperators:
                self.world.told[effect.kind] += 1
                assert effect.text.endswith("."), effect.text

    def ask(self, ask: StoreRequest) -> None:
        """Have the store answer."""

        def answered(reply: Reply) -> None:
            if type(reply) is Silent:
                self.silent_s = self.world.now
            self.give(Answered(ask.number, reply))

        self.world.ask(self, ask.request, answered)

    def confirm(self, until_s: float) -> None:
        """Poll until then."""
        self.until_s = until_s

    def change(self, change: ShareChanged) -> None:
        """Poll other switches."""
        ended = []
        for dpid in change.left:
            self.epochs.pop(dpid, None)
            ended.append((dpid, self.schedule.left(dpid, self.world.now)))
        for dpid, epoch, due_in_s in change.taken:
            self.epochs[dpid] = epoch
            if dpid in self.connected:
                self.schedule.connected(dpid, OPENFLOW_1_3, self.world.now, due_in_s)
        if ended:
            self.at("told", lambda: self.give(PollsEnded(tuple(ended))))

    def poll(self) -> None:
        """Send the requests that are due."""
        now = self.world.now
        if not self.is_up or self.is_stopped or now >= self.until_s:
            return
        due_s = self.schedule.next_deadline()
        if due_s is None or due_s > now:
            return
        for request in self.schedule.on_deadline(now):
            self.world.polls += 1
            self.at("", lambda request=request: self.answer(request), 2 * self.world.delay_s())

    def answer(self, request: object) -> None:
        """Take a switch's answer, unless the time to poll is over."""
        dpid, kind, xid = request
        now = self.world.now
        if now >= self.until_s or dpid not in self.connected or dpid not in self.schedule.switches:
            return
        if self.schedule.replied(dpid, xid, kind, False, now) == "reply-awaited":
            is_heard = now > self.silent_s + LEASE_S
            self.world.rows[dpid].append(Row(now, self.incarnation, self.epochs[dpid], is_heard))

    def tick(self) -> None:
        """Do what is due."""
        if self.is_up and not self.is_stopped:
            due_s = self.shares.next_deadline()
            if due_s is not None and due_s <= self.world.now:
                self.give(DeadlineReached())
            self.poll()

    def look(self) -> None:
        """Hear what the watch has."""
        if not self.is_up or self.watch is None:
            return
        told, number = self.watch.take(0.0), self.watch_number
        if type(told) is KeyChanges:
            self.at("watch", lambda: self.give(KeysChanged(number, told.changes)))
        elif told is not None:
            self.watch = None
            self.at("watch", lambda: self.give(WatchEnded(number)))


class MonitoredFabric(Timeline):
    """Switches, monitors and a store.

    Attributes
    ----------
    ports
        How many ports each switch has.
    rows
        The answers of each switch.
    """

    def __init__(self, seed: int, monitors: int, ports: Mapping[int, int]) -> None:
        super().__init__(seed)
        self.ports = ports
        self.rows: defaultdict[int, list[Row]] = defaultdict(list)
        self.told: Counter[str] = Counter()
        self.polls = 0
        self.monitors = {f"m{number:02}": MonitorNode(self, f"m{number:02}") for number in range(1, monitors + 1)}
        self.nodes = dict(self.monitors)
        for node in self.monitors.values():
            self.later(self.chance.uniform(0.0, 0.5), node.start)
        self._tick()

    def _tick(self) -> None:
        self.store.advance(self.now)
        for node in self.monitors.values():
            if node.run:
                node.tick()
                node.look()
        self.later(TICK_S, self._tick)

    def drain(self, name: str) -> None:
        """Have a monitor left without switches; DrainRefused where others are not connected to all of its own."""
        self._operate(draining, name)

    def undrain(self, name: str) -> None:
        """Have it take its part again."""
        self._operate(undraining, name)

    def _operate(self, order: Callable[[Keys, ShareView, str], Transaction | None], name: str) -> None:
        keys, engine = Keys(FABRIC), MemoryEngine(self.store)
        view, held = ShareView(keys), engine.ask(ReadPage(keys.share, limit=len(self.ports) + PAGE_KEYS))
        if type(held) is KeyPage:
            view.replace(held.held)
            transaction = order(keys, view, name)
            if transaction is not None:
                engine.ask(transaction)

    def shares(self) -> dict[str, dict[int, int]]:
        """Return the epoch of each switch that a monitor polls."""
        return {name: dict(node.epochs) for name, node in self.monitors.items() if node.is_up and not node.is_stopped}

    def is_divided(self) -> bool:
        """Tell whether each switch has one monitor, which polls it."""
        polled = Counter(dpid for epochs in self.shares().values() for dpid in epochs)
        return polled.keys() == self.ports.keys() and set(polled.values()) == {1}

    def load(self) -> dict[str, float]:
        """Return the ports of each monitor, as a multiple of the mean."""
        totals = {name: sum(self.ports[dpid] for dpid in epochs) for name, epochs in self.shares().items()}
        mean = sum(totals.values()) / len(totals)
        return {name: total / mean for name, total in totals.items()}


def counted_rows(rows: list[Row]) -> tuple[list[Row], list[Row]]:
    """Return the rows that count, and those that do not: of an epoch after the first row of a later one."""
    counted: list[Row] = []
    dropped: list[Row] = []
    first_s: dict[int, float] = {}
    for row in rows:
        first_s.setdefault(row.epoch, row.at_s)
    for row in rows:
        later_s = min((at_s for epoch, at_s in first_s.items() if epoch > row.epoch), default=float("inf"))
        (counted if row.at_s < later_s else dropped).append(row)
    return counted, dropped
