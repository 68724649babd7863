"""A monitor's part in what is advised about their number, on a thread of the system's beside its loop.

At the end of each interval every monitor puts into the store how busy it was. A moment later the one that divides the
switches reads what all have put, and puts what follows; the others read that.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import NamedTuple

from apps.cluster.scaling_command import KILLED_S
from apps.cluster.scaling_orders import COMMAND_LIMIT_S, DRAIN_LIMIT_S, ScalingOrders
from apps.cluster.scaling_shown import read_said, said_slot
from apps.cluster.scaling_work import ScalingWork, WorkTold
from apps.cluster.store_reading import Ask, StoreSilent, read_below
from apps.system import system_threading
from controller.cluster.engine import Committed, Delete, KeyCondition, KeyValue, PutKey, Transaction
from controller.cluster.keys import Keys, read_epoch, read_leader, read_present
from controller.cluster.monitor_states import MonitorsSeen
from controller.cluster.share_records import read_manager
from controller.config.scaling_settings import APPLY, OFF, ScalingSettings
from controller.performance.poll_load import PollLoadReading
from controller.scaling.advised import Advised, advice_text
from controller.scaling.advisor import MOST_PACE, Advisor, AdvisorSettings, PoolInterval
from controller.scaling.learners import LearnerParameters
from controller.scaling.loads import member_load, read_member_load
from controller.scaling.model import PoolBounds
from controller.scaling.table import AdvisorTable, TableBroken, read_table
from controller.snapshot.events import Severity, State

GRACE_S = 2.0
"""How long after the end of an interval what monitors put is read, and as long again what was advised, at most."""

GRACE_PART = 0.1
"""The same in terms of an interval."""

CLOCK_S = 0.5
"""By how much an interval may be shorter or longer than it should be by the clock that never steps."""

BEGUN_S = DRAIN_LIMIT_S + COMMAND_LIMIT_S + KILLED_S
"""How long what a monitor has begun may go on that is gone since."""


class Busyness(NamedTuple):
    """How busy a monitor was since it began: what was polled, the seconds its processor took, and how things are now.

    `places` is how many requests may wait for an answer at once, `backlog` which part of the writer's is taken.
    """

    polled: PollLoadReading
    cpu_s: float
    places: int
    backlog: float


class ScalingTold(NamedTuple):
    """What an operator is told of: kind, text and severity of an event, and whether it begins or ends something."""

    kind: str
    text: str
    severity: Severity = Severity.INFO
    state: State = State.HAPPENED


class ScalingHeard(NamedTuple):
    """What the monitor is told after each interval.

    Attributes
    ----------
    said
        What was said of the latest intervals.
    events
        What operators are told.
    pace
        How many times as long as the policy says is to be waited between two polls.
    met_ratio
        In what part of intervals the goal was met; None where this monitor does not advise.
    actions
        What was done, each as one word.
    """

    said: tuple[Advised, ...]
    events: tuple[ScalingTold, ...]
    pace: int
    met_ratio: float | None = None
    actions: tuple[str, ...] = ()


class ScalingPlace(NamedTuple):
    """Whose part this is: the monitor, which run of it, and the fabric."""

    monitor: str
    incarnation: str
    fabric: str


class ScalingThread:
    """Takes part until it is closed.

    Parameters
    ----------
    settings
        How is advised.
    place
        Whose part this is.
    ask
        Has the store answer, and waits for it.
    monitors
        Returns the monitors that are there.
    busyness
        Returns how busy this one was; called on this thread.
    orders
        Sees to what is advised.
    hear
        Called on this thread.
    """

    def __init__(
        self,
        settings: ScalingSettings,
        place: ScalingPlace,
        ask: Ask,
        monitors: Callable[[], MonitorsSeen],
        busyness: Callable[[], Busyness],
        orders: ScalingOrders,
        hear: Callable[[ScalingHeard], object],
        logger: logging.Logger,
    ) -> None:
        self._settings = self._given = settings
        self._place = place
        self._keys = Keys(place.fabric)
        self._ask = ask
        self._monitors = monitors
        self._busyness = busyness
        self._orders = orders
        self._hear = hear
        self._logger = logger
        self._grace_s = min(GRACE_S, GRACE_PART * settings.interval_s)
        self._advisor: Advisor | None = None
        self._pace = 1
        self._early: frozenset[str] = frozenset()
        self._text = ""
        self._ratio: float | None = None
        self._fence: KeyCondition | None = None
        self._work = ScalingWork(orders, self._may_act, self._done)
        self._has_ended = system_threading.Event()

    def start(self) -> None:
        """Begin."""
        system_threading.Thread(target=self._run, name="scaling", daemon=True).start()

    def close(self) -> None:
        """End as soon as what is under way is done."""
        self._has_ended.set()
        self._work.drop()

    def configure(self, settings: ScalingSettings) -> None:
        """Go by other settings from the end of the interval on; at once by the program, and where nothing is done."""
        self._given = settings
        self._orders.command = settings.command
        if settings.mode != APPLY:
            self._work.drop()

    # On the thread

    def _run(self) -> None:
        interval_s = self._settings.interval_s
        before, before_s, number = self._busyness(), time.monotonic(), int(time.time() // interval_s)
        is_whole = False
        self._follow()
        while self._waited_for_end((number + 1) * interval_s, number):
            now, now_s = self._busyness(), time.monotonic()
            if self._renewed() and interval_s != self._settings.interval_s:
                interval_s = self._settings.interval_s
                before, before_s, number, is_whole = now, now_s, int(time.time() // interval_s), False
                continue
            elapsed_s = now_s - before_s
            is_whole = is_whole and abs(elapsed_s - interval_s) < CLOCK_S + 0.01 * interval_s
            load = member_load(
                *(number, interval_s, self._place.incarnation, is_whole, self._pace),
                *(now.polled.since(before.polled), now.cpu_s - before.cpu_s, max(elapsed_s, 1e-3)),
                *(now.places, now.backlog),
            )
            before, before_s = now, now_s
            if self._settings.mode == OFF:
                number = int(time.time() // interval_s)
                continue
            key = f"{self._keys.scaling_loads}{self._place.monitor}"
            self._ask(Transaction((), (PutKey(key, load.text()),), True))
            pace = self._pace
            if self._waited((number + 1) * interval_s + self._grace_s):
                try:
                    self._look(number)
                except StoreSilent as silent:
                    self._logger.warning("How many monitors there should be is not looked at: %s", silent)
                except Exception:
                    self._advisor = None
                    self._logger.exception("What is advised about the number of monitors cannot be told.")
            following = int(time.time() // interval_s)
            is_whole = following == number + 1 and pace == self._pace
            number = following

    def _renewed(self) -> bool:
        """Go by the settings that were given; tell whether they are others."""
        given, former = self._given, self._settings
        if given == former:
            return False
        self._settings, self._advisor = given, None
        self._grace_s = min(GRACE_S, GRACE_PART * given.interval_s)
        return True

    def _waited(self, until_s: float) -> bool:
        """Wait until a time of the day; False where this is to end."""
        while (left_s := until_s - time.time()) > 0:
            if self._has_ended.wait(min(left_s, 60.0)):
                return False
        return not self._has_ended.is_set()

    def _waited_for_end(self, until_s: float, number: int) -> bool:
        """Wait until an interval ends, and shortly before look who says that it has ended already."""
        if not self._waited(until_s - self._grace_s):
            return False
        self._early = frozenset()
        if self._divides():
            with suppress(StoreSilent):
                prefix = self._keys.scaling_loads
                told = [(each.key, read_member_load(each.value)) for each in read_below(self._ask, prefix)[1]]
                early = (key for key, load in told if load is not None and load.number == number)
                self._early = frozenset(key.removeprefix(prefix) for key in early)
        return self._waited(until_s)

    def _divides(self) -> bool:
        state = self._monitors().states.get(self._place.monitor)
        return state is not None and state.divides

    def _look(self, number: int) -> None:
        if self._divides():
            with self._work.held() as is_free:
                self._advise(number, is_free)
            return
        self._advisor = None
        if self._waited(time.time() + self._grace_s):
            self._follow()

    def _follow(self) -> None:
        """Read what another one has said."""
        try:
            held = {each.key: each for each in read_below(self._ask, self._keys.scaling)[1]}
        except StoreSilent:
            return
        self._pace = self._read_pace(held)
        said = read_said(each for key, each in held.items() if key.startswith(self._keys.scaling_said))
        self._hear(ScalingHeard(tuple(said), (), self._pace))

    def _read_pace(self, held: dict[str, KeyValue]) -> int:
        text = held[self._keys.scaling_pace].value if self._keys.scaling_pace in held else "1"
        return int(text) if text.isascii() and text.isdigit() and 1 <= int(text[:3]) <= MOST_PACE else 1

    # Of the one that divides

    def _advise(self, number: int, is_free: bool) -> None:
        keys, seen = self._keys, self._monitors()
        manager = read_below(self._ask, keys.manager)[1]
        record = read_manager(manager[0].value) if manager else None
        if record is None or record.incarnation != self._place.incarnation:
            return
        held = {each.key: each for each in read_below(self._ask, keys.scaling)[1]}
        events: list[ScalingTold] = []
        edits: list[PutKey | Delete] = []
        if self._advisor is None:
            self._advisor = self._made(held, events, edits)
        told = {
            key.removeprefix(keys.scaling_loads): each
            for key, each in held.items()
            if key.startswith(keys.scaling_loads)
        }
        edits += [Delete(f"{keys.scaling_loads}{name}") for name in told.keys() - seen.states.keys()]
        loads = {name: load for name, each in told.items() if (load := read_member_load(each.value)) is not None}
        drained = frozenset(name for name, state in seen.states.items() if state.drained)
        pace = self._read_pace(held)
        at_work = frozenset(seen.states) - drained
        said = read_said(each for key, each in held.items() if key.startswith(keys.scaling_said))
        (disturbed, beside), early = self._around(seen, said, is_free), self._early
        advised = self._advisor.take(PoolInterval(number, loads, at_work, drained, pace, disturbed, beside, early))
        edits.append(PutKey(keys.scaling_table, self._advisor.table()))
        noted = {
            key.removeprefix(keys.scaling_drained): each.value
            for key, each in held.items()
            if key.startswith(keys.scaling_drained)
        }
        runs = {name: load.incarnation for name, load in loads.items()}
        spare = frozenset(name for name, run in noted.items() if name in drained and runs.get(name) == run)
        chosen = self._orders.chosen(advised, spare) if advised.is_ordered else []
        goes_on = is_free and self._work.goes_on(advised, chosen)
        begins, ending = advised.is_ordered and not goes_on, sorted(spare - self._work.ended - set(chosen))
        if advised.wanted is None or advised.wanted > advised.monitors or goes_on or not self._settings.command:
            ending = []
        if not begins and not (self._settings.mode == APPLY and self._advisor.may_act(number)):
            ending = []
        advised = self._with_outcome(advised, begins or bool(ending), is_free)
        edits.append(PutKey(f"{keys.scaling_said}{said_slot(number)}", advised.text()))
        if is_free:
            edits += [Delete(f"{keys.scaling_drained}{name}") for name in noted.keys() - spare - set(chosen)]
        if begins and (advised.wanted or advised.monitors) < advised.monitors:
            edits += [PutKey(f"{keys.scaling_drained}{name}", runs[name]) for name in chosen]
        if advised.is_ordered and advised.wanted_pace not in (None, pace):
            edits.append(PutKey(keys.scaling_pace, str(advised.wanted_pace)))
        self._fence = KeyCondition(keys.manager, manager[0].revision)
        if type(self._ask(Transaction((self._fence,), tuple(edits)))) is not Committed:
            self._advisor = None
            self._logger.warning("What is advised could not be put into the store: nothing is done.")
            return
        self._pace = advised.wanted_pace or pace if advised.is_ordered else pace
        self._tell(advised, said, events)
        if begins or ending:
            self._work.begin(advised, chosen, ending)

    def _with_outcome(self, advised: Advised, begins: bool, is_free: bool) -> Advised:
        """Return what is said with what becomes of what is to be done, now or since an interval before."""
        waiting = self._work.waiting
        if begins:
            return advised._replace(begun_s=round(time.time(), 3))
        if waiting is None or not is_free:
            return advised
        withheld = "" if advised.is_change else advised.withheld
        return advised._replace(outcome=waiting.outcome, withheld=withheld)

    def _tell(self, advised: Advised, said: list[Advised], events: list[ScalingTold]) -> None:
        """Have operators told."""
        text = advice_text(advised)
        kept = advised.gap or str((advised.wanted, advised.wanted_pace, advised.withheld))
        if kept != self._text and (advised.is_change or self._text):
            severity = Severity.WARNING if advised.is_met is False else Severity.INFO
            events.append(ScalingTold("scaling-advice", text, severity))
        self._text = kept
        self._ratio = None if self._advisor is None else self._advisor.met_ratio
        self._hear(ScalingHeard((*said, advised), tuple(events), self._pace, self._ratio))

    def _may_act(self) -> bool | None:
        """Tell whether this run of the monitor divides still, as the store says; None where that is silent."""
        try:
            manager = read_below(self._ask, self._keys.manager)[1]
        except StoreSilent:
            return None
        record = read_manager(manager[0].value) if manager else None
        return record is not None and record.incarnation == self._place.incarnation

    def _done(self, told: WorkTold) -> None:
        """Say what has become of what is being done; on the thread that does it."""
        advised = told.advised
        if self._fence is not None:
            put = PutKey(f"{self._keys.scaling_said}{said_slot(advised.number)}", advised.text())
            self._ask(Transaction((self._fence,), (put,)))
        events = [
            ScalingTold("scaling-failed", f"What is advised was not done: {each}", Severity.WARNING)
            for each in told.problems
        ]
        if told.is_over and not told.problems:
            events.append(ScalingTold("scaling-done", f"Done as advised. {advice_text(advised)}"))
        done = () if not told.is_over else (_action(advised),)
        actions = ("failed",) if told.problems else done
        self._hear(ScalingHeard((advised,), tuple(events), self._pace, self._ratio, actions))

    def _made(self, held: dict[str, KeyValue], events: list[ScalingTold], edits: list[PutKey | Delete]) -> Advisor:
        """Return an advisor that knows what the one before it knew; a table that makes no sense is left aside."""
        given, keys = self._settings, self._keys
        settings = AdvisorSettings(
            *(given.interval_s, given.learner, given.slo_lateness, PoolBounds(given.least, given.limit)),
            LearnerParameters(given.alpha, given.beta, given.gamma, given.window),
            given.mode == APPLY,
        )
        chance = Random(given.seed).random
        table = held.get(keys.scaling_table)
        try:
            return Advisor(settings, chance, AdvisorTable() if table is None else read_table(table.value))
        except TableBroken as broken:
            text = (
                f"What was learnt about the number of monitors cannot be read: {broken}. It is left aside, in the "
                f"store's key {keys.scaling_broken}, and learning begins anew."
            )
            events.append(ScalingTold("scaling-table-broken", text, Severity.WARNING))
            edits.append(PutKey(keys.scaling_broken, (table.value if table else "")[: 1 << 18]))
            return Advisor(settings, chance)

    def _around(self, seen: MonitorsSeen, said: list[Advised], is_free: bool) -> tuple[str, frozenset[str]]:
        """Return what is being changed by others, as a sentence, and which monitors are beside who leads."""
        now_s = time.time()
        begun = any(each.begun_s is not None and 0 <= now_s - each.begun_s < BEGUN_S for each in said)
        if begun or not is_free:
            return "What was advised before is still being done.", frozenset()
        if seen.unowned:
            which = "1 switch has" if seen.unowned == 1 else f"{seen.unowned} switches have"
            return f"{which} no monitor yet.", frozenset()
        leaving = sum(state.leaving for state in seen.states.values())
        if leaving:
            return f"{leaving} switches are on their way from one monitor to another.", frozenset()
        lead = {each.key: each.value for each in read_below(self._ask, self._keys.lead)[1]}
        members = [key for key in lead if key.startswith(self._keys.members)]
        leader = read_leader(lead.get(self._keys.leader, ""))
        if members and leader is None:
            return "No controller leads.", frozenset()
        done = read_below(self._ask, self._keys.taken_over)[1]
        if leader is not None and members and read_epoch(done[0].value if done else "") < leader.epoch:
            return f"{leader.member} is taking over.", frozenset()
        present = None if leader is None else read_present(lead.get(f"{self._keys.members}{leader.member}", ""))
        if leader is None or present is None:
            return "", frozenset()
        hosts = {_host(leader.peer), _host(present.metrics)} - {""}
        return "", frozenset(name for name, state in seen.states.items() if _host(state.metrics) in hosts)


def _action(advised: Advised) -> str:
    """Return what is done as one word."""
    wanted = advised.wanted or advised.monitors
    if advised.wanted_pace not in (None, advised.pace):
        return "rarer" if (advised.wanted_pace or 1) > advised.pace else "oftener"
    return "start" if wanted > advised.monitors else "drain"


def _host(place: str) -> str:
    """Return the machine of a ``HOST:PORT``; '' where it is unknown, or every machine's own address."""
    host = place.rpartition(":")[0].strip("[]")
    return "" if host.startswith("127.") or host in ("::1", "localhost") else host
