"""What owners of flow entries share of a switch, what each has there, and plans whose edits wait for each other."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, TypeAlias

from controller.datapath.lanes import BatchShares, Lanes, Urgency
from controller.datapath.window import Window
from controller.effects import Define, Edit, Effect, Put, Remove, Undefine
from controller.events import ControllerRole, RoleWanted, SurveyOrder
from controller.rules.lowering import Lowering
from controller.rules.model import Entry, FlowKey, Key, Resource, is_own
from controller.rules.openflow import FlowCounter, FlowStats, ResourceDescriptions
from controller.rules.pipeline import APP_TAGS
from controller.rules.resources import Resources
from controller.rules.rule_texts import rule_document

READ_ENTRIES_BOUND = 262144
"""Entries of ours that a switch may report; beyond it the reading does not count."""

LISTED = 100
"""Entries of each kind that a report lists; it counts all."""


class EntryOwner(Protocol):
    """An app with flow entries on switches, which knows its own by their cookies."""

    app_tag: int
    xid_tag: int

    @property
    def ready(self) -> Sequence[object]:
        """What waited and can go on by `advance`."""

    def advance(self, now: float) -> None:
        """Go on with what waited."""

    def settled(self, state: OwnerState, key: Key, now: float) -> None:
        """Take it that a key needs no edit after all."""

    def batch_done(self, state: OwnerState, batch: OwnerBatch, now: float) -> None:
        """Take the edits of a batch as done, but for those that failed."""

    def reading_begun(self, state: OwnerState, xid: int) -> None:
        """Take it that a switch is read as a whole, by a request with this transaction id."""

    def told(self, state: OwnerState, stats: FlowStats, now: float) -> bool:
        """Take a reply to that request; False where the whole does not count."""

    def resources_told(self, state: OwnerState, told: ResourceDescriptions, now: float) -> bool:
        """Take a reply that tells groups or meters; False where the whole does not count."""

    def read(self, state: OwnerState, now: float) -> None:
        """Take it that the switch has told all."""

    def check_begun(self, state: OwnerState, xid: int, now: float) -> None:
        """Take part in a check that another owner began, by a request with this transaction id, unless it cannot."""

    def check_told(self, state: OwnerState, stats: FlowStats, now: float) -> bool:
        """Take a reply to that request; True where there is something to say of it."""

    def closed(self, state: OwnerState) -> None:
        """Take it that the switch is not ours to write: nothing that was under way is waited for."""

    def notice(self, kind: str, dpid: int, text: str, now: float, **particulars: object) -> None:
        """Give notice of what befell a switch."""

    def take_effects(self) -> list[Effect]:
        """Return the notices and the like that came up since the last call."""

    @property
    def listens(self) -> Callable[[int], bool]:
        """Tells of a switch whether the app is to hear of what that confirms."""


@dataclass(slots=True, eq=False)
class StagedPlan:
    """Stages of keys; those of a stage are released once all of the stage before are confirmed.

    `stage` is the last one released, `outstanding` counts its keys that are not confirmed yet. `urgency` is that of
    its edits. `drains` are the stages that are still to wait `drain_s` once the one before is confirmed. One that
    `is_patient` waits for a switch as long as that is connected.
    """

    drain_s: float
    urgency: Urgency = Urgency.PROMPT
    stages: list[list[tuple[int, Key]]] = field(default_factory=list)
    stage: int = -1
    outstanding: int = 0
    drains: set[int] = field(default_factory=set)
    is_patient: bool = False

    @property
    def is_last(self) -> bool:
        """Tell whether all stages have been released."""
        return self.stage + 1 >= len(self.stages)


class Turn(NamedTuple):
    """A value for a key that waits to be released: by its plan's stage, or (`plan` None) by those before it alone."""

    plan: StagedPlan | None
    stage: int
    value: Entry | None

    def ready(self) -> bool:
        """Tell whether only earlier turns stand in the way."""
        return self.plan is None or self.stage <= self.plan.stage


class Waiter(NamedTuple):
    """A plan that waits at `stage` for a key to be confirmed."""

    plan: StagedPlan
    stage: int


class Failure(NamedTuple):
    """How often in a row a switch refused an edit, when it is tried again, and of how many it was one at first."""

    attempts: int
    due_s: float
    batch_edits: int


@dataclass(slots=True, eq=False)
class TimedChange:
    """A change timed since `began_s`, with so many entries that are not confirmed; `is_open` while it counts."""

    began_s: float
    entry_count: int = 0
    is_open: bool = True


TimedEntries: TypeAlias = dict[Key, tuple[TimedChange, ...]]
"""The entries that changes wait for, by key, each with these changes."""


class OwnerBatch(NamedTuple):
    """Edits of one owner under way: from `place` on among those that the switch was sent together.

    None in `edits` stands for a removal; `removes` tells whether there is any. `waiters` is None where nobody waits;
    `failed` has the OpenFlow errors by the edits' places in the batch.
    """

    place: int
    edits: dict[Key, Entry | None]
    waiters: dict[Key, list[Waiter]] | None
    timed: TimedEntries
    removes: bool
    failed: dict[int, tuple[int, int]]


@dataclass(slots=True)
class FlowDump:
    """A read-back under way; `faulty` once a reply made no sense, so that the whole does not count.

    `edited` are the keys of which it is not known whether the reading shows them before or after an edit. A check is
    `requested` where another app had found entries of its own missing. `asked` are the requests for groups and meters
    beside that for flow entries, by transaction id, that the switch has not answered.
    """

    xid: int
    entries: dict[Key, Entry] = field(default_factory=dict)
    faulty: bool = False
    edited: set[Key] = field(default_factory=set)
    requested: bool = False
    asked: dict[int, str] = field(default_factory=dict)
    flows_told: bool = False

    @property
    def is_whole(self) -> bool:
        """Whether all was told."""
        return self.flows_told and not self.asked

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

    def take_resources(self, reported: Iterable[Resource], app_tag: int, bound: int) -> None:
        """Keep the groups and meters that are ours, up to one entry more than `bound`."""
        for resource in reported:
            if is_own(resource.key, app_tag) and len(self.entries) <= bound:
                self.entries[resource.key] = resource


class Question(NamedTuple):
    """The transaction ids of a request for flow entries, and of those for groups and meters beside it."""

    xid: int
    asked: dict[int, str]


class Survey:
    """One reading for a report. `edited` are the keys that the switch may have had before or after an edit.

    `asked` and `flows_told` are as those of a `FlowDump`.
    """

    def __init__(self, question: Question, order: SurveyOrder, edited: set[Key]) -> None:
        self.xid, self.asked = question
        self.flows_told = False
        self.order = order
        self.edited = edited
        self.held: dict[Key, Entry] = {}
        self.foreign: list[dict[str, Any]] = []
        self.foreign_count = 0
        self.fault: str | None = None

    @property
    def is_whole(self) -> bool:
        """Whether all was told."""
        return self.flows_told and not self.asked

    def take_resources(self, reported: Iterable[Resource], app_tag: int) -> None:
        """Take groups or meters as the switch told them; those of others do not count."""
        self.held.update((resource.key, resource) for resource in reported if is_own(resource.key, app_tag))

    def take(self, entries: Iterable[FlowCounter], app_tag: int) -> None:
        """Take entries as the switch told them; ours that end by themselves do not count."""
        for entry in entries:
            rule = entry.rule
            tag = rule.cookie >> 48
            if tag == app_tag and not entry.foreign:
                if not rule.idle_timeout_s and not rule.hard_timeout_s:
                    self.held[rule.key] = rule
            elif tag == app_tag or (self.order.foreign and tag not in APP_TAGS):
                self.foreign_count += 1
                if len(self.foreign) < LISTED:
                    self.foreign.append(rule_document(rule, is_whole=not entry.foreign))
        if len(self.held) > READ_ENTRIES_BOUND:
            self.fault = f"it tells more than {READ_ENTRIES_BOUND} entries"


@dataclass(slots=True, eq=False)
class Datapath:
    """A switch as its owners share it: `parts` is what each has there, `attached` who knows of the connection.

    `barrier_xid` is that of the batch under way, with `edit_count` edits of those `under_way`; `has_more` tells
    whether something else is to be sent after it. `reading_xid` is that of the reading. None stands for nothing under
    way; one that was not told in time is followed by one that has it `doublings` times doubled, of which `waits_left`
    are left beside the one that runs. `asked` are the requests for groups and meters of that reading which the switch
    has not answered, `reads_resources` whether it has any. `role` is what the switch said last, `wanted` what it is
    asked for, `role_xid` that of the request under way with `role_generation_id`, `confirm_xid` that of the question
    whether the role is still ours.
    """

    dpid: int
    window: Window
    connected: bool = False
    parts: dict[int, OwnerState] = field(default_factory=dict)
    attached: set[int] = field(default_factory=set)
    shares: BatchShares = field(default_factory=BatchShares)
    under_way: tuple[OwnerState, ...] = ()
    barrier_xid: int | None = None
    edit_count: int = 0
    has_more: bool = False
    reading_xid: int | None = None
    doublings: int = 0
    waits_left: int = 0
    reads_resources: bool = False
    flows_told: bool = False
    asked: dict[int, str] = field(default_factory=dict)
    wanted: RoleWanted | None = None
    role: int | None = None
    role_xid: int | None = None
    role_generation_id: int | None = None
    confirm_xid: int | None = None
    generation_id: int | None = None

    @property
    def is_ours(self) -> bool:
        """Whether we may change what the switch holds: nobody asked for a role, or it has confirmed that role."""
        wanted = self.wanted
        if wanted is None:
            return True
        return wanted.role is not ControllerRole.SLAVE and self.role_xid is None and self.role == wanted.role

    def attached_parts(self) -> list[OwnerState]:
        """Return what each owner that knows of the connection has here."""
        return [part for tag, part in self.parts.items() if tag in self.attached]

    def waiting_parts(self) -> tuple[OwnerState, ...]:
        """Return what each owner that knows of the connection has here, where something of it is to be sent."""
        waiting: tuple[OwnerState, ...] = ()
        for tag, part in self.parts.items():
            lanes = part.lanes
            if (lanes.prompt or lanes.bulk) and tag in self.attached:
                waiting = (*waiting, part) if waiting else (part,)
        return waiting


@dataclass(slots=True)
class OwnerState:
    """What `owner` has at a switch: `desired` is what that shall hold in the end, `installed` what it has confirmed.

    Keys in `lanes` are to be sent, `batch` is what is under way of them, `full` ones were refused for lack of room,
    `failures` otherwise. A key in `turns` has values that wait; `released` is the one it may have meanwhile. Edits
    wait for a `reading`; a `check` and a `survey` go on beside them. `resources` is there where the owner keeps
    groups and meters. `connected` says that there is a connection by which we may write.
    """

    dpid: int
    datapath: Datapath
    owner: EntryOwner
    lowering: Lowering | None = None
    connected: bool = False
    resources: Resources | None = None
    desired: dict[Key, Entry] = field(default_factory=dict)
    installed: dict[Key, Entry] = field(default_factory=dict)
    turns: dict[Key, deque[Turn]] = field(default_factory=dict)
    released: dict[Key, Entry | None] = field(default_factory=dict)
    lanes: Lanes = field(default_factory=Lanes)
    waiters: dict[Key, list[Waiter]] = field(default_factory=dict)
    timed: TimedEntries = field(default_factory=dict)
    full: dict[Key, None] = field(default_factory=dict)
    failures: dict[Key, Failure] = field(default_factory=dict)
    batch: OwnerBatch | None = None
    reading: FlowDump | None = None
    check: FlowDump | None = None
    survey: Survey | None = None

    def target(self, key: Key) -> Entry | None:
        """Return what the switch may hold under `key` now."""
        return self.released[key] if key in self.released else self.desired.get(key)

    def in_sync(self) -> bool:
        """Tell whether the switch is connected and known to hold what it shall, with nothing on the way."""
        if not self.connected or self.reading is not None:
            return False
        is_under_way = self.batch is not None and bool(self.batch.edits)
        is_waiting = self.lanes or self.full or self.failures or self.turns or self.held_back()
        return not (is_under_way or is_waiting)

    def note_edited(self, keys: Iterable[Key]) -> None:
        """Note that what the switch tells that is being asked may be of before or after an edit of these keys."""
        if self.check is not None:
            self.check.edited.update(keys)
        if self.survey is not None:
            self.survey.edited.update(keys)

    def add_timed(self, key: Key, changes: tuple[TimedChange, ...]) -> None:
        """Have changes wait for an entry."""
        others = self.timed.setdefault(key, changes)
        if others is not changes:
            self.timed[key] = (*others, *changes)

    def take_timed(self, keys: Iterable[Key]) -> TimedEntries:
        """Return, and keep no longer, those of these entries that changes wait for."""
        timed = self.timed
        return {key: timed.pop(key) for key in keys if key in timed} if timed else {}

    def take_back(self, batch: OwnerBatch) -> None:
        """Keep for later who waits for the edits of a batch that nobody answered."""
        for key, waiters in (batch.waiters or {}).items():
            self.waiters.setdefault(key, []).extend(waiters)
        for key, changes in batch.timed.items():
            self.add_timed(key, changes)

    def targets(self) -> dict[Key, Entry | None]:
        """Return all that the switch may hold now."""
        return {**self.desired, **self.released}

    def enter(self, key: Key, value: Entry | None) -> bool:
        """Take a new desired value; True where it may be sent at once, False where it waits for its turn."""
        desired = self.desired
        turns = self.turns.get(key) if self.turns else None
        if value is None:
            desired.pop(key, None)
        else:
            desired[key] = value
        if self.resources is not None:
            self.resources.desired.enter(key, value)
        if turns is None:
            return True
        if turns[-1].plan is None:
            turns.pop()
        turns.append(Turn(None, 0, value))
        return False

    def enter_turn(self, key: Key, turn: Turn) -> None:
        """Take a new desired value that waits for its plan."""
        if key not in self.turns:
            self.released[key] = self.desired.get(key)
            self.turns[key] = deque()
        self.turns[key].append(turn)
        if turn.value is None:
            self.desired.pop(key, None)
        else:
            self.desired[key] = turn.value
        if self.resources is not None:
            self.resources.desired.enter(key, turn.value)

    def take_turns(self, key: Key) -> list[Turn]:
        """Release the values of a key whose turn has come, and return them."""
        turns = self.turns.get(key)
        taken: list[Turn] = []
        while turns and turns[0].ready():
            taken.append(turns.popleft())
        if taken:
            self.released[key] = taken[-1].value
            self._settle_turns(key)
        return taken

    def take_removal(self, key: Key, plan: StagedPlan) -> bool:
        """Release the removal of a key that `plan` holds back, if it is the key's next turn."""
        turns = self.turns.get(key)
        if turns is None or turns[0].plan is not plan or turns[0].value is not None:
            return False
        turns.popleft()
        self.released[key] = None
        self._settle_turns(key)
        return True

    def _settle_turns(self, key: Key) -> None:
        if not self.turns[key]:
            del self.turns[key], self.released[key]

    def is_waiting(self, key: Key, plan: StagedPlan) -> bool:
        """Tell whether the value of a plan's stage for a key has not been released."""
        return any(turn.plan is plan and turn.stage == plan.stage for turn in self.turns.get(key, ()))

    def is_settled(self, key: Key) -> bool:
        """Tell whether nothing is to be done or under way for a key."""
        if key in self.lanes or self.reading is not None:
            return False
        if self.batch is not None and key in self.batch.edits:
            return False
        return self.installed.get(key) == self.target(key)

    def is_busy(self) -> bool:
        """Tell whether edits or a read-back are to be sent or under way."""
        return bool(self.lanes) or self.batch is not None or self.reading is not None

    def under_way(self) -> set[Key]:
        """Return the keys whose edits a switch may be carrying out."""
        return set(self.batch.edits) if self.batch is not None else set()

    def obstacle(self, key: Key) -> Key | None:
        """Return the key that has to be confirmed before this one is sent; None for none."""
        value = self.target(key)
        if value == self.installed.get(key) or self.resources is None:
            return None
        return self.resources.obstacle(key, value, self.installed, self.target)

    def held_back(self) -> set[Key]:
        """Return the keys whose edits wait for that of a group or meter, or of an entry that names it."""
        return set() if self.resources is None else set(self.resources.held)

    def recount(self) -> None:
        """Take it that `installed` is another than it was."""
        if self.resources is not None:
            self.resources.installed.rebuild(self.installed)

    def forget_work(self) -> list[Waiter]:
        """Drop all that is to be done or under way; return the plans that waited for it."""
        waiting = [waiter for waiters in self.waiters.values() for waiter in waiters]
        if self.batch is not None:
            waiting += [waiter for waiters in (self.batch.waiters or {}).values() for waiter in waiters]
        self.batch = self.reading = self.check = None
        self.lanes.clear()
        for work in (self.waiters, self.full, self.failures):
            work.clear()
        if self.resources is not None:
            self.resources.release_all()
        return waiting


def edit_key(edit: Edit) -> Key:
    """Return the key that an edit is about."""
    if isinstance(edit, Put):
        return edit.rule.key
    return edit.resource.key if isinstance(edit, Define) else edit.key


def edit_value(edit: Edit) -> Entry | None:
    """Return what an edit gives its key, None being its removal."""
    if isinstance(edit, Put):
        return edit.rule
    return edit.resource if isinstance(edit, Define) else None


def to_edit(key: Key, value: Entry | None, *, exists: bool = False) -> Edit:
    """Return the edit that gives a key a value, None being its removal; of a resource that `exists` a change."""
    if not isinstance(key, FlowKey):
        return Undefine(key) if value is None else Define(value, exists)  # type: ignore[arg-type]
    return Remove(key) if value is None else Put(value)  # type: ignore[arg-type]
