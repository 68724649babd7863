"""Bring switches to the flow entries desired: differences only, in order, confirmed by barriers.

See docs/rules.md for the ordering, for what happens when a table is full, and for restarts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from heapq import heappop, heappush
from itertools import islice
from typing import Any

from controller.config.edit_settings import Edits
from controller.datapath.lanes import Urgency
from controller.datapath.sending import Sending
from controller.effects import Edit, Effect, EntriesLost, Put, RequestFlows
from controller.events import (
    BarrierReplied,
    CheckRequested,
    DeadlineReached,
    EditFailed,
    FlowStatsReceived,
    SwitchConnected,
    SwitchDisconnected,
)
from controller.rules.admissible import Admissible, origin_of
from controller.rules.check import Checks
from controller.rules.confirmation import ConfirmationClock
from controller.rules.errands import Errands
from controller.rules.lowering import LOWERINGS
from controller.rules.model import Rule, RuleKey
from controller.rules.notices import Notices
from controller.rules.openflow import FlowCounter
from controller.rules.plans import PlanQueue
from controller.rules.switch_state import Batch, Failure, Reading, SwitchState, edit_key
from controller.rules.timeouts import Timeouts

READ_ENTRIES_BOUND = 262144
"""Entries of ours that a switch may report; beyond it the read-back does not count (`read-faulty`)."""

READ_TIMEOUT_S = 10.0

FULL_RETRY_S = 5.0
FULL_RETRY_COUNT = 16
"""Entries tried again at a time where a table was full and nothing has been removed since."""

RETRY_FIRST_S, RETRY_LAST_S = 0.5, 60.0

_BULK, _PROMPT = Urgency.BULK, Urgency.PROMPT


class Installer(Errands):
    """The flow entries of one app on all switches.

    Parameters
    ----------
    app_tag
        Upper 16 bits of the cookies of all entries of the app; entries with another tag are not touched.
    xid_tag
        Upper 8 bits of the transaction ids of the app; by default made of `app_tag`.
    hold_unknown
        Leave entries that nobody desires on the switches until `release_unknown`: after a restart.
    """

    def __init__(self, app_tag: int, xid_tag: int | None = None, *, hold_unknown: bool = False) -> None:
        self._notices = Notices()
        self.counters = self._notices.counters
        self.app_tag = app_tag
        self.xid_tag = 0xA0 | app_tag & 0xF if xid_tag is None else xid_tag
        self._hold_unknown = hold_unknown
        self.clock = ConfirmationClock()
        self._switches: dict[int, SwitchState] = {}
        self._sending = Sending(self.xid_tag, self.clock)
        self._mark = self._sending.mark
        self._plans = PlanQueue(self._switches, self._mark, self._notices)
        self._admissible = Admissible(app_tag, self._switches, self._notices)
        self._checks = Checks(self._switches, self._mark, self._request, self._notices)
        self._checks.held = hold_unknown
        self._reads: Timeouts[int] = Timeouts(READ_TIMEOUT_S)
        self._full: Timeouts[int] = Timeouts(FULL_RETRY_S)
        self._timeouts = (self._sending.barriers, self._reads, self._full)
        self._retries: list[tuple[float, int, RuleKey]] = []
        self._effects: list[Effect] = []
        self._handlers: dict[type, Callable[[Any, float], list[Effect]]] = {
            SwitchConnected: lambda event, now: self.switch_connected(event.dpid, event.ofp_version, now),
            SwitchDisconnected: lambda event, now: self.switch_disconnected(event.dpid, now),
            BarrierReplied: lambda event, now: self.barrier_replied(event.dpid, event.xid, now),
            EditFailed: lambda event, now: self.edit_failed(event.dpid, event.xid, event.type, event.code, now),
            FlowStatsReceived: self.flow_stats_received,
            CheckRequested: lambda event, now: self.check_requested(event.dpid, now),
            DeadlineReached: lambda _event, now: self.on_deadline(now),
        }

    def handle(self, event: object, now: float) -> list[Effect]:
        """Take an event of `controller.events`; KeyError for one that does not concern flow entries."""
        return self._handlers[type(event)](event, now)

    # What is wanted

    def change(
        self,
        stages: Sequence[Sequence[tuple[int, Edit]]],
        now: float,
        drain_s: float = 0.0,
        urgency: Urgency = _PROMPT,
    ) -> list[Effect]:
        """Change what is desired; all of it counts at once and is sent stage by stage.

        Parameters
        ----------
        stages
            Per stage, edits with their dpids. Edits of a stage are sent when all of the stage before are confirmed;
            a switch without a connection counts as having confirmed. A key with edits that wait keeps its turn:
            later changes of it come after them.
        now
            The current time in seconds.
        drain_s
            Seconds to wait before the last stage.
        urgency
            Who waits for it. Bulk that something prompt has to wait for is prompt from then on.

        Raises
        ------
        ValueError
            For a rule with another app's tag, or with a timeout (see `transient`).
        """
        refused = self._admissible.refused(stages, now)
        if len(stages) == 1:
            for dpid, edit in stages[0]:
                state = self._switches.get(dpid) or self._new_switch(dpid)
                if refused and origin_of(state, edit) in refused:
                    continue
                rule: Rule | None = edit[0] if type(edit) is Put else None
                key: RuleKey = edit[0] if rule is None else rule[0]  # type: ignore[assignment]
                if rule is not None:
                    self.clock.add(state, key)
                if state.enter(key, rule):
                    self._mark(state, key, urgency)
                elif urgency is _PROMPT:
                    self._plans.hurry(state, key)
        else:
            self._plans.add([self._plan_entries(stage, refused) for stage in stages], now, drain_s, urgency)
        return self._flush(now)

    def put(self, dpid: int, rule: Rule, now: float, urgency: Urgency = _PROMPT) -> list[Effect]:
        """Desire one entry: what `change` does with one stage of one edit, for less."""
        state = self._switches.get(dpid)
        if (
            state is None
            or not state.connected
            or state.reading is not None
            or state.check is not None
            or state.turns
            or state.full
            or self._plans.ready
            or rule[2] >> 48 != self.app_tag
            or rule[3]
            or rule[4]
            or state.lowering.expressible(rule) is not None  # type: ignore[union-attr]
        ):
            return self.change((((dpid, Put(rule)),),), now, 0.0, urgency)
        key = rule[0]
        state.desired[key] = rule
        if state.batch is not None:
            self.clock.add(state, key)
            state.lanes.add(key, urgency)
        elif state.installed.get(key) != rule:
            return [self._sending.send_one(state, rule, now)]
        return []

    def hurry(self, dpid: int, key: RuleKey) -> None:
        """Make prompt what a switch is still to be sent for a key: somebody waits for it after all."""
        state = self._switches.get(dpid)
        if state is not None and state.connected:
            if state.reading is not None:
                state.lanes.add(key, _PROMPT)
            else:
                state.lanes.hurry(key)
            self._plans.hurry(state, key)

    def use_edits(self, settings: Edits) -> None:
        """Send as many edits at once as the operator wants from here on."""
        self._sending.use(settings, self._switches)

    def use_policy(self, check_interval_s: float, edits: Edits) -> None:
        """Go by other settings of the operator's from here on."""
        self.check_every(check_interval_s)
        self.use_edits(edits)

    def release_unknown(self, now: float) -> list[Effect]:
        """Remove from now on what nobody desires."""
        self._hold_unknown = self._checks.held = False
        for state in self._switches.values():
            if state.connected and state.reading is None:
                for key in state.installed:
                    if state.target(key) is None:
                        self._mark(state, key, _BULK)
        return self._flush(now)

    def check_every(self, interval_s: float) -> None:
        """Read every connected switch once in so many seconds, and repair what is not as confirmed; 0: never."""
        self._checks.interval_s = interval_s

    def check_requested(self, dpid: int, now: float) -> list[Effect]:
        """Check a switch at once, of which another app found that it lost entries."""
        self._checks.request(dpid, now)
        self._checks.on_deadline(now)
        return self._flush(now)

    def table_suspected(self, dpid: int, now: float) -> list[Effect]:
        """Check a switch soon that shows signs of lost entries; `EntriesLost` says what it finds missing."""
        self._checks.suspect(dpid, now)
        self._checks.on_deadline(now)
        return self._flush(now)

    # What happens at switches

    def switch_connected(self, dpid: int, ofp_version: int, now: float) -> list[Effect]:
        """Read what the switch holds; edits follow when it has told."""
        state = self._switches.get(dpid) or self._new_switch(dpid)
        self._forget_work(state, now)
        state.connected = True
        state.window = self._sending.windows.connected(dpid)
        state.lowering = LOWERINGS[ofp_version]
        for key, rule in list(state.desired.items()):
            reason = state.lowering.expressible(rule)
            if reason is not None:
                state.enter(key, None)
                self._admissible.refuse(dpid, rule, reason, now)
        self._read(state, now)
        return self._flush(now)

    def switch_disconnected(self, dpid: int, now: float) -> list[Effect]:
        """Forget what was under way; nobody waits for this switch any longer."""
        state = self._switches.get(dpid)
        if state is not None:
            state.connected = False
            self._forget_work(state, now)
            if not state.desired and not state.turns:
                del self._switches[dpid]
        return self._flush(now)

    def barrier_replied(self, dpid: int, xid: int, now: float) -> list[Effect]:
        """Take the edits before the barrier as done, but for those that failed."""
        state = self._switches.get(dpid)
        batch = self._sending.answered(state, xid, now) if state is not None else None
        if state is None or batch is None:
            return []
        installed, failed = state.installed, batch.failed
        if batch.timed:
            self.clock.confirmed(state, batch, now)
        freed = added = 0
        for index, (key, value) in enumerate(batch.edits.items()):
            if failed and index in failed:
                self._edit_refused(state, batch, key, failed[index], now)
                continue
            if value is None:
                freed += installed.pop(key, None) is not None
            else:
                added += key not in installed
                installed[key] = value
            if state.failures and key in state.failures:
                state.window.failed(state.failures.pop(key).batch_edits)
            if batch.waiters and key in batch.waiters:
                self._plans.confirmed(batch.waiters[key])
        if state.full:
            self._retry_full(state, freed + (0 if failed else 2 * added), now)
        if state.lanes.prompt or state.lanes.bulk:
            self._sending.due[dpid] = state
        elif not (self._sending.due or self._plans.ready or self._effects or self._notices.given):
            return []
        return self._flush(now)

    def edit_failed(self, dpid: int, xid: int, kind: int, code: int, now: float) -> list[Effect]:
        """Take an OpenFlow error; what it means for the edit is seen at the barrier."""
        state = self._switches.get(dpid)
        batch = state.batch if state is not None else None
        if batch is not None and batch.first_xid <= xid < batch.barrier_xid:
            batch.failed[xid - batch.first_xid] = (kind, code)
        else:
            text = f"Switch {dpid} refused message {xid:#x} with OpenFlow error {kind}/{code}."
            self._notices.give("error-unmatched", dpid, text, now, type=kind, code=code)
        return self._flush(now)

    def flow_stats_received(self, event: FlowStatsReceived, now: float) -> list[Effect]:
        """Take a flow statistics reply as it came in."""
        state = self._switches.get(event.dpid)
        reading = state.read_by(event.xid) if state is not None else None
        if reading is None:
            return []
        stats = LOWERINGS[event.ofp_version].decode_flow_stats(event.message, self.app_tag << 48, 0xFFFF << 48)
        if stats.fault is not None:
            reading.faulty = True
            text = f"Flow statistics of switch {event.dpid} are malformed and not used: {stats.fault}."
            self._notices.give("read-faulty", event.dpid, text, now)
        return self.flows_read(event.dpid, event.xid, stats.entries, not stats.more, now)

    def flows_read(
        self, dpid: int, xid: int, entries: Iterable[FlowCounter], complete: bool, now: float
    ) -> list[Effect]:
        """Take entries that a switch reported; once `complete`, send the difference to what is desired.

        Entries that end by themselves and those of other apps do not count.
        """
        state = self._switches.get(dpid)
        reading = state.read_by(xid) if state is not None else None
        if state is None or reading is None:
            return []
        foreign = reading.take(entries, self.app_tag, READ_ENTRIES_BOUND)
        if foreign:
            text = f"Switch {dpid} holds {foreign} flow entries with the cookie of this app that it cannot have made."
            self._notices.give("foreign-entry", dpid, text, now)
        if len(reading.entries) > READ_ENTRIES_BOUND and not reading.faulty:
            reading.faulty = True
            text = f"Switch {dpid} reports more than {READ_ENTRIES_BOUND} flow entries: they are not compared."
            self._notices.give("read-faulty", dpid, text, now)
        if complete and reading is state.check:
            if self._checks.complete(state, reading, now):
                self._effects.append(EntriesLost(dpid))
        elif complete and not reading.faulty:
            self._checks.was_read(dpid, now)
            self._reads.cancel(dpid)
            state.reading = None
            state.installed = reading.entries
            self._compare(state)
        return self._flush(now)

    # Time

    def next_deadline(self) -> float | None:
        """Return when `on_deadline` is due, None for never."""
        soonest = self._plans.next()
        if self._retries and (soonest is None or self._retries[0][0] < soonest):
            soonest = self._retries[0][0]
        check_s = self._checks.next()
        if check_s is not None and (soonest is None or check_s < soonest):
            soonest = check_s
        for timeouts in self._timeouts:
            if timeouts.due:
                due = timeouts.next()
                if soonest is None or due < soonest:  # type: ignore[operator]
                    soonest = due
        return soonest

    def on_deadline(self, now: float) -> list[Effect]:
        """Do what has come due."""
        for dpid in self._sending.barriers.take_due(now):
            state = self._switches[dpid]
            self._notices.give(
                "barrier-timeout", dpid, f"Switch {dpid} did not answer a barrier: its flow entries are read.", now
            )
            self._sending.overdue(state)
            self._read(state, now)
        for dpid in self._reads.take_due(now):
            self._notices.give(
                "read-timeout", dpid, f"Switch {dpid} did not tell its flow entries in time: it is asked again.", now
            )
            self._read(self._switches[dpid], now)
        while self._retries and self._retries[0][0] <= now:
            _, dpid, key = heappop(self._retries)
            failing = self._switches.get(dpid)
            if failing is not None and key in failing.failures:
                self._mark(failing, key, _BULK)
        for dpid in self._full.take_due(now):
            self._retry_full(self._switches[dpid], FULL_RETRY_COUNT, now)
        self._plans.on_deadline(now)
        self._checks.on_deadline(now)
        return self._flush(now)

    # Sending

    def _flush(self, now: float) -> list[Effect]:
        """Let plans go on, send what can be sent, and return all effects."""
        while self._sending.due or self._plans.ready:
            self._plans.advance_ready(now)
            self._effects += self._sending.send_due(now, self._plans.confirmed)
        effects, self._effects = self._effects, []
        return [*self._notices.take(), *effects] if self._notices.given else effects

    # Refusals

    def _plan_entries(
        self, stage: Sequence[tuple[int, Edit]], refused: set[int]
    ) -> list[tuple[SwitchState, RuleKey, Rule | None]]:
        entries = []
        for dpid, edit in stage:
            state = self._switches.get(dpid) or self._new_switch(dpid)
            if not refused or origin_of(state, edit) not in refused:
                rule = edit.rule if isinstance(edit, Put) else None
                if rule is not None:
                    self.clock.add(state, edit_key(edit))
                entries.append((state, edit_key(edit), rule))
        return entries

    def _edit_refused(
        self,
        state: SwitchState,
        batch: Batch,
        key: RuleKey,
        error: tuple[int, int],
        now: float,
    ) -> None:
        """Keep an edit that a switch refused for later, unless another value is on its way already."""
        waiters = batch.waiters.get(key, [])
        if waiters:
            state.waiters.setdefault(key, []).extend(waiters)
        dpid = state.dpid
        if batch.edits[key] is not None and state.lowering is not None and error == state.lowering.table_full:
            interrupts = self._plans.make_room(state, waiters)
            text = f"A flow table of switch {dpid} is full: {len(state.full) + 1} entries wait for room."
            self._notices.give("table-full", dpid, text, now, interrupts=interrupts)
            if key not in state.lanes:
                state.full[key] = None
                if dpid not in self._full:
                    self._full.start(dpid, now)
            return
        before = state.failures.get(key, Failure(0, now, len(batch.edits)))
        text = f"Switch {dpid} refused a flow entry with OpenFlow error {error[0]}/{error[1]}: {key}."
        self._notices.give("edit-failed", dpid, text, now, type=error[0], code=error[1])
        due_s = before.due_s
        if due_s <= now:
            due_s = now + min(RETRY_FIRST_S * 2**before.attempts, RETRY_LAST_S)
            heappush(self._retries, (due_s, dpid, key))
        state.failures[key] = Failure(min(before.attempts + 1, 16), due_s, before.batch_edits)

    def _retry_full(self, state: SwitchState, count: int, now: float) -> None:
        """Try some of the entries again that found no room."""
        for key in list(islice(state.full, count)):
            self._mark(state, key, _BULK)
        if not state.full:
            self._full.cancel(state.dpid)
        elif state.dpid not in self._full:
            self._full.start(state.dpid, now)

    # Reading back

    def _read(self, state: SwitchState, now: float) -> None:
        self._checks.forget(state.dpid)
        state.check = None
        state.reading = Reading(self._request(state))
        self._reads.start(state.dpid, now)

    def _request(self, state: SwitchState) -> int:
        xid = self._sending.take_xids(1)
        self._effects.append(RequestFlows(state.dpid, xid, self.app_tag << 48, 0xFFFF << 48))
        return xid

    def _compare(self, state: SwitchState) -> None:
        """Have the difference sent between what a switch has told and what it shall hold: puts, then removals."""
        installed, asked, lanes = state.installed, state.lanes.keys(), state.lanes
        for key in state.timed:
            lanes.add(key, _PROMPT)
        targets = state.targets()
        differing = [key for key, value in targets.items() if value is not None and installed.get(key) != value]
        differing += state.waiters
        differing += [
            key for key in installed if targets.get(key) is None and (not self._hold_unknown or key in asked)
        ]
        lanes.set_bulk(differing)
        state.full.clear()
        self._full.cancel(state.dpid)
        self._sending.due[state.dpid] = state

    def _forget_work(self, state: SwitchState, now: float) -> None:
        """Drop what was under way at a switch; plans go on without it."""
        self._sending.lost(state, now)
        self._reads.cancel(state.dpid)
        self._full.cancel(state.dpid)
        self._checks.forget(state.dpid)
        self.clock.lost(state)
        self._plans.confirmed(state.forget_work())

    def _new_switch(self, dpid: int) -> SwitchState:
        state = self._switches[dpid] = SwitchState(dpid)
        return state
