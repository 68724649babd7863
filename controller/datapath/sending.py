"""Sends switches what they miss: one batch of edits at a time, with a barrier behind it, as large as its window."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from controller.config.edit_settings import Edits
from controller.datapath.lanes import Urgency
from controller.datapath.window import Windows
from controller.effects import ApplyEdits, Put
from controller.rules.confirmation import ConfirmationClock
from controller.rules.model import Rule, RuleKey
from controller.rules.switch_state import Batch, SwitchState, Waiter, to_edit
from controller.rules.timeouts import Timeouts

BARRIER_TIMEOUT_S = 5.0

_XIDS = 1 << 24


class Sending:
    """The batches of one app, whose transaction ids have `xid_tag` as their upper 8 bits.

    `barriers` are the switches that owe an answer, `due` those to which something may have to be sent. `clock` is
    told of edits that are not needed after all.
    """

    def __init__(self, xid_tag: int, clock: ConfirmationClock) -> None:
        self.windows = Windows(Edits())
        self.barriers: Timeouts[int] = Timeouts(BARRIER_TIMEOUT_S)
        self.due: dict[int, SwitchState] = {}
        self._xid_tag = xid_tag
        self._next_xid = 1
        self._clock = clock

    def use(self, settings: Edits, switches: Mapping[int, SwitchState]) -> None:
        """Go by other settings from here on."""
        self.windows.use(settings)
        for dpid, state in switches.items():
            state.window = self.windows.of(dpid)

    def mark(self, state: SwitchState, key: RuleKey, urgency: Urgency) -> None:
        """Have a key sent to a switch, unless that has no connection: then it gets the difference when it is back."""
        if state.connected:
            state.lanes.add(key, urgency)
            if state.full:
                state.full.pop(key, None)
            self.due[state.dpid] = state

    def send_due(self, now: float, confirmed: Callable[[Iterable[Waiter]], None]) -> list[ApplyEdits]:
        """Send a batch to each switch that has none under way; `confirmed` is told who waited for what is there."""
        due, self.due = self.due, {}
        batches = []
        for state in due.values():
            if state.batch is None and state.reading is None and state.connected:
                batch = self._next_batch(state, now, confirmed)
                if batch is not None:
                    batches.append(batch)
        return batches

    def _next_batch(
        self, state: SwitchState, now: float, confirmed: Callable[[Iterable[Waiter]], None]
    ) -> ApplyEdits | None:
        installed, desired, released, lanes = state.installed, state.desired, state.released, state.lanes
        edits: dict[RuleKey, Rule | None] = {}
        waiters: dict[RuleKey, list[Waiter]] = {}
        while not edits and (lanes.prompt or lanes.bulk):
            for key in lanes.take(state.window.size):
                value = released[key] if key in released else desired.get(key)
                if value == installed.get(key):
                    state.failures.pop(key, None)
                    self._clock.settled(state.timed.pop(key, ()), now)
                    confirmed(state.waiters.pop(key, ()))
                    continue
                edits[key] = value
                if state.waiters and key in state.waiters:
                    waiters[key] = state.waiters.pop(key)
        if not edits:
            return None
        first_xid = self.take_xids(len(edits) + 1)
        state.batch = Batch(first_xid, first_xid + len(edits), edits, waiters, state.take_timed(edits))
        self.barriers.start(state.dpid, now)
        if state.check is not None:
            state.check.edited.update(edits)
        return ApplyEdits(state.dpid, first_xid, tuple([to_edit(key, value) for key, value in edits.items()]))

    def send_one(self, state: SwitchState, rule: Rule, now: float) -> ApplyEdits:
        """Send one entry to a switch that is read and has nothing under way; for less than a batch of any size."""
        key = rule[0]
        xid = self.take_xids(2)
        self._clock.add(state, key)
        state.batch = Batch(xid, xid + 1, {key: rule}, {}, state.take_timed((key,)))
        self.barriers.start(state.dpid, now)
        return ApplyEdits(state.dpid, xid, (Put(rule),))

    def answered(self, state: SwitchState, xid: int, now: float) -> Batch | None:
        """Take a barrier's answer; return the batch that is done, None where it is not this one's."""
        batch = state.batch
        if batch is None or batch.barrier_xid != xid:
            return None
        state.batch = None
        sent_s, edit_count = self.barriers.take(state.dpid), len(batch.edits)
        if 4 * edit_count >= state.window.size:
            state.window.confirmed(edit_count, now - sent_s, now)
        return batch

    def overdue(self, state: SwitchState) -> None:
        """Give up a batch that nobody answered; who waits for its edits goes on waiting."""
        if state.batch is not None:
            state.window.failed(len(state.batch.edits))
            state.take_back(state.batch)
            state.batch = None

    def lost(self, state: SwitchState, now: float) -> None:
        """Give up what is under way at a switch whose connection has ended."""
        self.barriers.cancel(state.dpid)
        if state.batch is not None:
            state.window.lost(len(state.batch.edits), now)

    def take_xids(self, count: int) -> int:
        """Return the first of so many transaction ids in a row."""
        if self._next_xid + count > _XIDS:
            self._next_xid = 1
        first = self._next_xid
        self._next_xid += count
        return self._xid_tag << 24 | first
