"""What is to be sent to switches, and how it is made up into batches: one under way at each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from controller.datapath.lanes import Urgency
from controller.datapath.xids import Xids
from controller.effects import ApplyEdits, Edit, Effect, Put, Remove
from controller.rules.switch_state import Datapath, EntryOwner, OwnerBatch, to_edit
from controller.rules.timeouts import Timeouts

if TYPE_CHECKING:
    from controller.rules.model import Entry, Key
    from controller.rules.switch_state import OwnerState, Waiter

BARRIER_TIMEOUT_S = 5.0

_new = tuple.__new__  # what a named tuple's own constructor does, for a third of its time


class Batches:
    """The sending part of a `DatapathCore`, which is one: keys are marked, and sent when it is flushed.

    What `gathers` sends nothing before its next deadline, which is the time at which something came up to be sent: so
    a switch gets in one batch what a turn of the loop has for it. Otherwise each event's edits are sent at once.
    `due` are the switches, by dpid, that something came up for; one with a batch under way is there again after it.
    """

    def __init__(self, xids: Xids, gathers: bool) -> None:
        self.xids = xids
        self.gathers = gathers
        self.barriers: Timeouts[int] = Timeouts(BARRIER_TIMEOUT_S)
        self._owners: dict[int, EntryOwner] = {}
        self._ready: tuple[Sequence[object], ...] = ()
        self.due: dict[int, Datapath] = {}
        self._due_s: float | None = None
        self.effects: list[Effect] = []

    def tell(self, effect: Effect) -> None:
        """Have something sent."""
        self.effects.append(effect)

    def mark(self, state: OwnerState, key: Key, urgency: Urgency) -> None:
        """Have a key sent to a switch, unless that has no connection: then it gets the difference when it is back."""
        if state.connected:
            if state.resources is not None and self._is_held(state, key, urgency):
                return
            if state.full:
                state.full.pop(key, None)
            state.lanes.add(key, urgency)
            self.due[state.dpid] = state.datapath

    def _is_held(self, state: OwnerState, key: Key, urgency: Urgency) -> bool:
        """Have a key wait where another has to be confirmed before, which is as urgent then; tell whether it does."""
        resources, obstacle = state.resources, state.obstacle(key)
        assert resources is not None
        if obstacle is None:
            resources.release(key)
            return False
        resources.hold(key, obstacle, urgency)
        if urgency is Urgency.PROMPT:
            state.lanes.hurry(obstacle)
        return True

    def wake(self, state: OwnerState, key: Key) -> None:
        """Have sent what waited for a key to be confirmed."""
        if state.resources is not None:
            for waiting, urgency in state.resources.take_waiting(key):
                self.mark(state, waiting, urgency)

    def flush(self, now: float) -> None:
        """Let owners go on, and send what is to be sent, or have it sent at the end of the turn."""
        if any(self._ready):
            self._advance(now)
        if self.due:
            if not self.gathers:
                self._send_due(now)
            elif self._due_s is None:
                self._due_s = now

    def _send_due(self, now: float) -> list[OwnerState]:
        """Send batches; return what of owners turned out to need nothing, of which no barrier will tell them."""
        self._due_s = None
        settled: list[OwnerState] = []
        while self.due:
            due, self.due = self.due, {}
            for datapath in due.values():
                if datapath.barrier_xid is not None:
                    datapath.has_more = True
                elif datapath.reading_xid is None and datapath.connected:
                    self._send_batch(datapath, now, settled)
            if any(self._ready):
                self._advance(now)
        return settled

    def _advance(self, now: float) -> None:
        """Let owners go on with what waited and can."""
        for owner in self._owners.values():
            if owner.ready:
                owner.advance(now)

    def take_effects(self) -> list[Effect]:
        """Return what is to be sent."""
        effects, self.effects = self.effects, []
        return effects

    def _send_batch(self, datapath: Datapath, now: float, settled: list[OwnerState]) -> None:
        made: tuple[OwnerState, ...] = ()
        sent: list[Edit] = []
        datapath.has_more = False
        while not sent:
            parts = datapath.waiting_parts()
            if not parts:
                return
            size = datapath.window.size
            if len(parts) == 1 and (only := parts[0].lanes.take_prompt(size)):
                if self._begin_batch(parts[0], only, sent, now):
                    made = parts
                else:
                    settled.append(parts[0])
                continue
            for state, keys in zip(parts, datapath.shares.take([part.lanes for part in parts], size), strict=True):
                if self._begin_batch(state, keys, sent, now):
                    made = (*made, state)
                else:
                    settled.append(state)
            datapath.has_more = bool(datapath.waiting_parts())
        dpid, edit_count = datapath.dpid, len(sent)
        first_xid = self.xids.take(edit_count + 1)
        datapath.under_way, datapath.edit_count, datapath.barrier_xid = made, edit_count, first_xid + edit_count
        self.barriers.start(dpid, now)
        self.effects.append(_new(ApplyEdits, (dpid, first_xid, tuple(sent))))

    def _begin_batch(self, state: OwnerState, keys: Iterable[Key], sent: list[Edit], now: float) -> bool:
        """Have under way what of these keys an owner's entries need, with the plans that wait; False for nothing.

        The edits are added to `sent`.
        """
        place = len(sent)
        installed, desired, released, resources = state.installed, state.desired, state.released, state.resources
        waiting = state.waiters
        edits: dict[Key, Entry | None] = {}
        waiters: dict[Key, list[Waiter]] | None = None
        removes = False
        for key in keys:
            value = desired.get(key)
            if released and key in released:
                value = released[key]
            before = installed.get(key)
            if value is before or (before is not None and value == before):
                state.owner.settled(state, key, now)
                continue
            if value is None:
                removes = True
            if resources is not None:
                if self._is_held(state, key, Urgency.BULK):
                    continue
                sent.append(to_edit(key, value, exists=before is not None))
            else:
                sent.append(_new(Put, (value,)) if value is not None else _new(Remove, (key,)))
            edits[key] = value
            if waiting and key in waiting:
                if waiters is None:
                    waiters = {}
                waiters[key] = waiting.pop(key)
        if not edits:
            return False
        timed = state.timed
        lanes = state.lanes
        if timed:
            if lanes.prompt or lanes.bulk or state.full or state.failures or released or resources is not None:
                timed = state.take_timed(edits)
            else:
                state.timed = {}  # all that is timed is in this batch: it waits in a lane but for what is named above
        state.batch = _new(OwnerBatch, (place, edits, waiters, timed, removes, {}))
        if state.check is not None or state.survey is not None:
            state.note_edited(edits)
        return True
