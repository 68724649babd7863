"""Edits that switches refused: when they are tried again, and what a refusal says of what is there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from heapq import heappop, heappush
from itertools import islice

from controller.datapath.lanes import Urgency
from controller.rules.model import FlowKey, Key, ResourceKey
from controller.rules.notices import Notices
from controller.rules.of13_resources import EXISTS, FULL, UNKNOWN
from controller.rules.plans import PlanQueue
from controller.rules.switch_state import Failure, OwnerBatch, OwnerState
from controller.rules.timeouts import Timeouts, earliest

FULL_RETRY_S = 5.0
FULL_RETRY_COUNT = 16
"""Entries tried again at a time where a table was full and nothing has been removed since."""

RETRY_FIRST_S, RETRY_LAST_S = 0.5, 60.0

BAD_MATCH = 4
"""The type of error of a switch of OpenFlow 1.3 that does not know how to match something."""


class Refusals:
    """The edits of one app that `switches` refused; `mark` has a key sent again.

    `found_full` is told of each that a switch had no room for, `found_unfit` of entries that one does not know how to
    match, or refused more than once.
    """

    def __init__(
        self,
        switches: Mapping[int, OwnerState],
        mark: Callable[[OwnerState, Key, Urgency], None],
        plans: PlanQueue,
        notices: Notices,
    ) -> None:
        self.full: Timeouts[int] = Timeouts(FULL_RETRY_S)
        self.found_full: Callable[[int, Key], None] = lambda _dpid, _key: None
        self.found_unfit: Callable[[int, FlowKey], None] | None = None
        self._switches = switches
        self._mark = mark
        self._plans = plans
        self._notices = notices
        self._retries: list[tuple[float, int, int, Key]] = []
        self._retry_count = 0

    def next(self) -> float | None:
        """Return when `on_deadline` is due, None for never."""
        if not self._retries and not self.full.due:
            return None
        return earliest(self._retries[0][0] if self._retries else None, self.full.next())

    def on_deadline(self, now: float) -> None:
        """Try again what is due."""
        while self._retries and self._retries[0][0] <= now:
            _, _, dpid, key = heappop(self._retries)
            failing = self._switches.get(dpid)
            if failing is not None and key in failing.failures:
                self._mark(failing, key, Urgency.BULK)
        for dpid in self.full.take_due(now):
            self.retry_full(self._switches[dpid], FULL_RETRY_COUNT, now)

    def take(self, state: OwnerState, batch: OwnerBatch, key: Key, error: tuple[int, int], now: float) -> None:
        """Keep an edit that a switch refused for later, unless another value is on its way already."""
        waiters = batch.waiters.get(key, []) if batch.waiters else []
        if waiters:
            state.waiters.setdefault(key, []).extend(waiters)
        dpid = state.dpid
        if batch.edits[key] is not None and self._finds_no_room(state, error):
            interrupts = self._plans.make_room(state, waiters)
            kind, what = FULL.get(error, ("table-full", "A flow table"))
            text = f"{what} of switch {dpid} is full: {len(state.full) + 1} entries wait for room."
            self._notices.give(kind, dpid, text, now, interrupts=interrupts)
            self.found_full(dpid, key)
            if key not in state.lanes:
                state.full[key] = None
                if dpid not in self.full:
                    self.full.start(dpid, now)
            return
        is_news = state.resources is not None and self._learn(state, batch, key, error)
        before = state.failures.get(key, Failure(0, now, 0 if is_news else len(batch.edits)))
        what = "a flow entry" if isinstance(key, FlowKey) else f"a {key.kind}"
        text = f"Switch {dpid} refused {what} with OpenFlow error {error[0]}/{error[1]}: {key}."
        self._notices.give("edit-failed", dpid, text, now, type=error[0], code=error[1])
        due_s = before.due_s
        if due_s <= now:
            due_s = now + min(RETRY_FIRST_S * 2**before.attempts, RETRY_LAST_S)
            self._retry_count += 1
            heappush(self._retries, (due_s, self._retry_count, dpid, key))
        is_certain = before.attempts or error[0] == BAD_MATCH
        if self.found_unfit is not None and is_certain and isinstance(key, FlowKey) and batch.edits[key] is not None:
            self.found_unfit(dpid, key)
        state.failures[key] = Failure(min(before.attempts + 1, 16), due_s, before.batch_edits)

    def retry_full(self, state: OwnerState, count: int, now: float) -> None:
        """Try some of the entries again that found no room."""
        for key in list(islice(state.full, count)):
            self._mark(state, key, Urgency.BULK)
        if not state.full:
            self.full.cancel(state.dpid)
        elif state.dpid not in self.full:
            self.full.start(state.dpid, now)

    def _finds_no_room(self, state: OwnerState, error: tuple[int, int]) -> bool:
        return state.lowering is not None and (error == state.lowering.table_full or error in FULL)

    def _learn(self, state: OwnerState, batch: OwnerBatch, key: Key, error: tuple[int, int]) -> bool:
        """Correct what was thought to be there, where an error says that a group or meter is, or is not."""
        if not isinstance(key, FlowKey):
            if error in EXISTS and key not in state.installed:
                state.installed[key] = key.unknown()
                return True
            if error in UNKNOWN:
                self._lost(state, key)
                return True
            return False
        if error not in UNKNOWN or state.resources is None:
            return False
        for resource in state.resources.named_by(batch.edits[key]):
            self._lost(state, resource)
        return True

    def _lost(self, state: OwnerState, resource: ResourceKey) -> None:
        """Take it that a switch has lost a group or meter: with it went the entries that named it."""
        assert state.resources is not None
        for key in (resource, *state.resources.installed.of(resource)):
            state.installed.pop(key, None)
            state.resources.installed.enter(key, None)
            self._mark(state, key, Urgency.BULK)
