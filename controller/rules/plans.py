"""Plans: edits in stages, of which each waits until all switches have confirmed the one before.

A key that a later plan changes too keeps its turns in the order in which the plans came. A plan waits for earlier
plans only, so that none waits for ever on another.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from heapq import heappop, heappush

from controller.datapath.lanes import Urgency
from controller.rules.model import Entry, Key
from controller.rules.notices import Notices
from controller.rules.switch_state import OwnerState, StagedPlan, Turn, Waiter
from controller.rules.timeouts import Timeouts

PLANS_BOUND = 4096
"""Plans that wait at most; beyond it the oldest is no longer kept in order (`plans-bound`)."""

DRAIN_S: float = 0.2
"""How long packets may go a former way once a switch has confirmed another: those under way, and those of switches
that forward from a cache, which follow late (docs/adr/0023-a-drain-outlasts-caches.md)."""

UNHURRIED_DRAIN_S = 1.0
"""The same for a way that nobody waits to have gone: switches that are busy follow later still."""

PLAN_PATIENCE_S = 30.0
"""How long a plan waits for one of its stages before it goes on without, if it is not a patient one."""


class PlanQueue:
    """The plans that wait. `mark` has a key sent; `ready` are plans to go on with by `advance_ready`."""

    def __init__(
        self,
        switches: Mapping[int, OwnerState],
        mark: Callable[[OwnerState, Key, Urgency], None],
        notices: Notices,
    ) -> None:
        self.ready: list[StagedPlan] = []
        self._switches = switches
        self._mark = mark
        self._notices = notices
        self._waiting: Timeouts[StagedPlan] = Timeouts(PLAN_PATIENCE_S)
        self._draining: list[tuple[float, int, StagedPlan]] = []
        self._drains = 0

    @property
    def count(self) -> int:
        """How many plans have stages that wait."""
        return len(self._waiting) + len(self._draining)

    def add(
        self,
        stages: Sequence[Iterable[tuple[OwnerState, Key, Entry | None]]],
        now: float,
        drain_s: float,
        urgency: Urgency,
        drains: Collection[int] = (),
        is_patient: bool = False,
    ) -> None:
        """Take a plan: its values are desired at once, and released in order; see `Installer.change`."""
        plan = StagedPlan(drain_s, urgency, [[] for _ in stages], is_patient=is_patient)
        if drain_s > 0:
            plan.drains = set(drains or (len(stages) - 1,))
        self._enter(plan, stages)
        if self.count >= PLANS_BOUND:
            self._drop_oldest(now)
        self._advance(plan, now)

    def open(self, stage_count: int, urgency: Urgency, now: float) -> StagedPlan:
        """Begin a plan that is told in parts: only its first stage is released before it is closed.

        No other plan of several stages may have the same keys meanwhile.
        """
        if self.count >= PLANS_BOUND:
            self._drop_oldest(now)
        plan = StagedPlan(0.0, urgency, [[] for _ in range(stage_count)], 0, 1)
        self._waiting.start(plan, now)
        return plan

    def extend(self, plan: StagedPlan, stages: Sequence[Iterable[tuple[OwnerState, Key, Entry | None]]]) -> None:
        """Add to the stages of a plan that is open, each key once to each."""
        known = [len(entries) for entries in plan.stages]
        self._enter(plan, stages)
        for number, entries in enumerate(plan.stages[: plan.stage + 1]):
            added = entries[known[number] :]
            plan.outstanding += len(added)
            for dpid, key in added:
                self._release(dpid, key, plan)

    def close(self, plan: StagedPlan) -> None:
        """Let a plan that was open go on when all of its first stage is confirmed."""
        self._settled(plan)

    def _enter(self, plan: StagedPlan, stages: Sequence[Iterable[tuple[OwnerState, Key, Entry | None]]]) -> None:
        """Have the values of stages desired at once, those that wait as turns of their keys."""
        for number, stage in enumerate(stages):
            for state, key, value in stage:
                if plan.urgency is Urgency.PROMPT:
                    self.hurry(state, key)
                if number or key in state.turns:
                    state.enter_turn(key, Turn(plan, number, value))
                else:
                    state.enter(key, value)
                    self._mark(state, key, plan.urgency)
                plan.stages[number].append((state.dpid, key))

    def hurry(self, state: OwnerState, key: Key) -> None:
        """Make prompt what is to happen before a key's next turn, for somebody waits for that."""
        waited: list[tuple[OwnerState, Key, StagedPlan | None]] = [(state, key, None)]
        while waited:
            at, what, waiting = waited.pop()
            for turn in at.turns.get(what, ()):
                plan = turn.plan
                if plan is None or plan.urgency is Urgency.PROMPT:
                    if plan is waiting is not None:
                        break
                    continue
                plan.urgency = Urgency.PROMPT
                for stage in plan.stages:
                    for dpid, own in stage:
                        other = self._switches.get(dpid)
                        if other is not None:
                            other.lanes.hurry(own)
                            waited.append((other, own, plan))

    def advance_ready(self, now: float) -> None:
        """Release stages until there is none that does not have to wait."""
        while self.ready:
            self._advance(self.ready.pop(), now)

    def confirmed(self, waiters: Iterable[Waiter]) -> None:
        """Take a key as confirmed for those who waited for it."""
        for plan, stage in waiters:
            if plan.stage == stage:
                self._settled(plan)

    def make_room(self, state: OwnerState, waiters: Iterable[Waiter]) -> bool:
        """Bring forward the removals at a full switch of the plans that wait for it; True where there are any."""
        found = False
        for plan, stage in waiters:
            if plan.stage != stage:
                continue
            for entries in plan.stages[stage + 1 :]:
                for dpid, key in entries:
                    if dpid == state.dpid and state.take_removal(key, plan):
                        self._mark(state, key, plan.urgency)
                        self._take_turns(state, key, plan.urgency)
                        found = True
        return found

    def next(self) -> float | None:
        """Return when `on_deadline` is due, None for never."""
        if not self._draining:
            return self._waiting.next() if self._waiting.due else None
        due = self._waiting.next()
        if due is None or self._draining[0][0] < due:
            return self._draining[0][0]
        return due

    def on_deadline(self, now: float) -> None:
        """Let plans go on whose drain time is over or whose patience is."""
        while self._draining and self._draining[0][0] <= now:
            self._advance(heappop(self._draining)[2], now)
        for plan in self._waiting.take_due(now):
            if plan.is_patient:
                self._waiting.start(plan, now)
                continue
            text = f"Switches did not confirm a change within {PLAN_PATIENCE_S:g} s: it goes on without them."
            self._notices.give("plan-overdue", 0, text, now, interrupts=True)
            self._advance(plan, now)

    def _advance(self, plan: StagedPlan, now: float) -> None:
        """Release a plan's next stage."""
        self._waiting.cancel(plan)
        if plan.is_last:
            return
        if plan.stage >= 0 and plan.stage + 1 in plan.drains:
            plan.drains.discard(plan.stage + 1)
            self._drains += 1
            heappush(self._draining, (now + plan.drain_s, self._drains, plan))
            return
        plan.stage += 1
        entries = plan.stages[plan.stage]
        plan.outstanding = len(entries)
        if not entries:
            self.ready.append(plan)
        for dpid, key in entries:
            self._release(dpid, key, plan)
        if plan.outstanding and not plan.is_last:
            self._waiting.start(plan, now)

    def _release(self, dpid: int, key: Key, plan: StagedPlan) -> None:
        """Let a key take its turns, and the plans that they belong to wait for it."""
        state = self._switches.get(dpid)
        if state is None:
            self._settled(plan)
            return
        for turn in self._take_turns(state, key, plan.urgency):
            if turn.plan is not None and turn.plan is not plan and turn.stage == turn.plan.stage:
                self._await(state, key, turn.plan)
        if not state.is_waiting(key, plan):
            self._await(state, key, plan)

    def _take_turns(self, state: OwnerState, key: Key, urgency: Urgency) -> list[Turn]:
        taken = state.take_turns(key)
        if taken:
            self._mark(state, key, urgency)
        return taken

    def _await(self, state: OwnerState, key: Key, plan: StagedPlan) -> None:
        if not state.connected or state.is_settled(key):
            self._settled(plan)
        else:
            state.waiters.setdefault(key, []).append(Waiter(plan, plan.stage))
            if key not in state.full and key not in state.failures:
                self._mark(state, key, plan.urgency)

    def _settled(self, plan: StagedPlan) -> None:
        plan.outstanding -= 1
        if plan.outstanding == 0:
            self.ready.append(plan)

    def _drop_oldest(self, now: float) -> None:
        """Make an end of the plan that waits longest: release all of it."""
        plan = self._waiting.oldest() or heappop(self._draining)[2]
        text = f"More than {PLANS_BOUND} changes wait for switches: the oldest is sent out of order."
        self._notices.give("plans-bound", 0, text, now, interrupts=True)
        self._waiting.cancel(plan)
        unreleased = [entry for entries in plan.stages[plan.stage + 1 :] for entry in entries]
        plan.stage = len(plan.stages) - 1
        plan.outstanding = len(unreleased)
        for dpid, key in unreleased:
            self._release(dpid, key, plan)
