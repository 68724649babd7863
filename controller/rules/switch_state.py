"""What the installer knows of one switch, and the plans whose edits wait for each other."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from controller.config.edit_settings import Edits
from controller.datapath.lanes import Lanes, Urgency
from controller.datapath.window import Window
from controller.effects import Edit, Put, Remove
from controller.rules.lowering import Lowering
from controller.rules.model import Rule, RuleKey
from controller.rules.openflow import FlowCounter


@dataclass(slots=True, eq=False)
class Plan:
    """Stages of keys; those of a stage are released once all of the stage before are confirmed.

    `stage` is the last one released, `outstanding` counts its keys that are not confirmed yet. `urgency` is that of
    its edits.
    """

    drain_s: float
    urgency: Urgency = Urgency.PROMPT
    stages: list[list[tuple[int, RuleKey]]] = field(default_factory=list)
    stage: int = -1
    outstanding: int = 0
    drained: bool = False

    @property
    def is_last(self) -> bool:
        """Tell whether all stages have been released."""
        return self.stage + 1 >= len(self.stages)


class Turn(NamedTuple):
    """A value for a key that waits to be released: by its plan's stage, or (`plan` None) by those before it alone."""

    plan: Plan | None
    stage: int
    value: Rule | None

    def ready(self) -> bool:
        """Tell whether only earlier turns stand in the way."""
        return self.plan is None or self.stage <= self.plan.stage


class Waiter(NamedTuple):
    """A plan that waits at `stage` for a key to be confirmed."""

    plan: Plan
    stage: int


class Failure(NamedTuple):
    """How often in a row a switch refused an edit, when it is tried again, and of how many it was one at first."""

    attempts: int
    due_s: float
    batch_edits: int


@dataclass(slots=True, eq=False)
class Timed:
    """A change timed since `began_s`, with so many entries that are not confirmed; `is_open` while it counts."""

    began_s: float
    entry_count: int = 0
    is_open: bool = True


@dataclass(slots=True)
class Batch:
    """Edits under way: edit i has the transaction id `first_xid` + i, the barrier `barrier_xid`."""

    first_xid: int
    barrier_xid: int
    edits: dict[RuleKey, Rule | None]
    waiters: dict[RuleKey, list[Waiter]]
    timed: dict[RuleKey, list[Timed]] = field(default_factory=dict)
    failed: dict[int, tuple[int, int]] = field(default_factory=dict)


@dataclass(slots=True)
class Reading:
    """A read-back under way; `faulty` once a reply made no sense, so that the whole does not count.

    `edited` are the keys of which it is not known whether the reading shows them before or after an edit. A check is
    `requested` where another app had found entries of its own missing.
    """

    xid: int
    entries: dict[RuleKey, Rule] = field(default_factory=dict)
    faulty: bool = False
    edited: set[RuleKey] = field(default_factory=set)
    requested: bool = False

    def take(self, reported: Iterable[FlowCounter], app_tag: int, bound: int) -> int:
        """Keep what is ours and does not end by itself, up to one more than `bound`; return how many are foreign."""
        foreign = 0
        for entry in reported:
            rule = entry.rule
            if rule.cookie >> 48 != app_tag or rule.idle_timeout_s or rule.hard_timeout_s:
                continue
            if entry.foreign:
                foreign += 1
            elif len(self.entries) <= bound:
                self.entries[rule.key] = rule
        return foreign


@dataclass(slots=True)
class SwitchState:
    """One switch: `desired` is what it shall hold in the end, `installed` what it has confirmed to hold.

    Keys in `lanes` are to be sent in batches as large as `window` says, `full` ones were refused for lack of room,
    `failures` otherwise. A key in `turns` has values that wait; `released` is the one it may have meanwhile. Edits
    wait for a `reading`; a `check` goes on beside them.
    """

    dpid: int
    lowering: Lowering | None = None
    connected: bool = False
    desired: dict[RuleKey, Rule] = field(default_factory=dict)
    installed: dict[RuleKey, Rule] = field(default_factory=dict)
    turns: dict[RuleKey, deque[Turn]] = field(default_factory=dict)
    released: dict[RuleKey, Rule | None] = field(default_factory=dict)
    lanes: Lanes = field(default_factory=Lanes)
    window: Window = field(default_factory=lambda: Window(Edits()))
    waiters: dict[RuleKey, list[Waiter]] = field(default_factory=dict)
    timed: dict[RuleKey, list[Timed]] = field(default_factory=dict)
    full: dict[RuleKey, None] = field(default_factory=dict)
    failures: dict[RuleKey, Failure] = field(default_factory=dict)
    batch: Batch | None = None
    reading: Reading | None = None
    check: Reading | None = None

    def target(self, key: RuleKey) -> Rule | None:
        """Return what the switch may hold under `key` now."""
        return self.released[key] if key in self.released else self.desired.get(key)

    def take_timed(self, keys: Iterable[RuleKey]) -> dict[RuleKey, list[Timed]]:
        """Return, and keep no longer, the changes that wait for any of these keys."""
        timed = self.timed
        return {key: timed.pop(key) for key in keys if key in timed} if timed else {}

    def take_back(self, batch: Batch) -> None:
        """Keep for later who waits for the edits of a batch that nobody answered."""
        for key, waiters in batch.waiters.items():
            self.waiters.setdefault(key, []).extend(waiters)
        for key, timed in batch.timed.items():
            self.timed.setdefault(key, []).extend(timed)

    def targets(self) -> dict[RuleKey, Rule | None]:
        """Return all that the switch may hold now."""
        return {**self.desired, **self.released}

    def enter(self, key: RuleKey, value: Rule | None) -> bool:
        """Take a new desired value; True where it may be sent at once, False where it waits for its turn."""
        desired = self.desired
        turns = self.turns.get(key) if self.turns else None
        if value is None:
            desired.pop(key, None)
        else:
            desired[key] = value
        if turns is None:
            return True
        if turns[-1].plan is None:
            turns.pop()
        turns.append(Turn(None, 0, value))
        return False

    def enter_turn(self, key: RuleKey, turn: Turn) -> None:
        """Take a new desired value that waits for its plan."""
        if key not in self.turns:
            self.released[key] = self.desired.get(key)
            self.turns[key] = deque()
        self.turns[key].append(turn)
        if turn.value is None:
            self.desired.pop(key, None)
        else:
            self.desired[key] = turn.value

    def take_turns(self, key: RuleKey) -> list[Turn]:
        """Release the values of a key whose turn has come, and return them."""
        turns = self.turns.get(key)
        taken: list[Turn] = []
        while turns and turns[0].ready():
            taken.append(turns.popleft())
        if taken:
            self.released[key] = taken[-1].value
            self._settle_turns(key)
        return taken

    def take_removal(self, key: RuleKey, plan: Plan) -> bool:
        """Release the removal of a key that `plan` holds back, if it is the key's next turn."""
        turns = self.turns.get(key)
        if turns is None or turns[0].plan is not plan or turns[0].value is not None:
            return False
        turns.popleft()
        self.released[key] = None
        self._settle_turns(key)
        return True

    def _settle_turns(self, key: RuleKey) -> None:
        if not self.turns[key]:
            del self.turns[key], self.released[key]

    def is_waiting(self, key: RuleKey, plan: Plan) -> bool:
        """Tell whether the value of a plan's stage for a key has not been released."""
        return any(turn.plan is plan and turn.stage == plan.stage for turn in self.turns.get(key, ()))

    def is_settled(self, key: RuleKey) -> bool:
        """Tell whether nothing is to be done or under way for a key."""
        if key in self.lanes or self.reading is not None:
            return False
        if self.batch is not None and key in self.batch.edits:
            return False
        return self.installed.get(key) == self.target(key)

    def is_busy(self) -> bool:
        """Tell whether edits or a read-back are to be sent or under way."""
        return bool(self.lanes) or self.batch is not None or self.reading is not None

    def under_way(self) -> set[RuleKey]:
        """Return the keys whose edits a switch may be carrying out."""
        return set(self.batch.edits) if self.batch is not None else set()

    def read_by(self, xid: int) -> Reading | None:
        """Return the reading or check that asked with this transaction id."""
        for reading in (self.reading, self.check):
            if reading is not None and reading.xid == xid:
                return reading
        return None

    def forget_work(self) -> list[Waiter]:
        """Drop all that is to be done or under way; return the plans that waited for it."""
        waiting = [waiter for waiters in self.waiters.values() for waiter in waiters]
        if self.batch is not None:
            waiting += [waiter for waiters in self.batch.waiters.values() for waiter in waiters]
        self.batch = self.reading = self.check = None
        self.lanes.clear()
        for work in (self.waiters, self.full, self.failures):
            work.clear()
        return waiting


def edit_key(edit: Edit) -> RuleKey:
    """Return the key that an edit is about."""
    return edit.rule.key if isinstance(edit, Put) else edit.key


def to_edit(key: RuleKey, value: Rule | None) -> Edit:
    """Return the edit that gives a key a value, None being its removal."""
    return Remove(key) if value is None else Put(value)
