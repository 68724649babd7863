"""Bring switches to the flow entries desired: differences only, in order, confirmed by barriers.

See docs/rules.md for the ordering, for what happens when a table is full, and for restarts.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from controller.datapath.core import DatapathCore
from controller.datapath.lanes import Urgency
from controller.datapath.xids import Xids
from controller.effects import Define, Edit, Effect, EntriesLost, Put, RequestFlows, RequestResources
from controller.events import (
    BarrierReplied,
    CheckRequested,
    DeadlineReached,
    EditFailed,
    FlowStatsReceived,
    ResourcesReceived,
    SwitchConnected,
    SwitchDisconnected,
)
from controller.rules.admissible import Admissible, Origin, origin_of
from controller.rules.check import Checks
from controller.rules.confirmation import ConfirmationClock
from controller.rules.errands import Errands
from controller.rules.lowering import LOWERINGS
from controller.rules.model import Entry, FlowEntry, FlowKey, Key
from controller.rules.notices import Notices
from controller.rules.of13_resources import decode_resources
from controller.rules.openflow import FlowStats, ResourceDescriptions
from controller.rules.pipeline import DATAPATH_XID_TAG
from controller.rules.plans import PlanQueue
from controller.rules.reading import compare, take_resources, take_stats
from controller.rules.refusals import Refusals
from controller.rules.release import Release
from controller.rules.resources import Resources, in_order
from controller.rules.survey import Surveys
from controller.rules.switch_state import FlowDump, OwnerBatch, OwnerState, Question, StagedPlan, edit_key, edit_value
from controller.rules.timeouts import earliest

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
        Leave entries that nobody desires on switches until `release_unknown`: all, or those of whose keys it is true.
    datapath
        What the app shares with others, and whose holder gives it the answers to its messages; by default the
        installer has one of its own, and is given all answers itself.
    keeps_resources
        Whether the app has groups and meters too; then switches are asked for these where they are read.

    Attributes
    ----------
    listens
        Tells whether the app is to hear (`TableChanged`) of what the switch with a dpid confirms; always, unless the
        app says otherwise.
    """

    def __init__(
        self,
        app_tag: int,
        xid_tag: int | None = None,
        *,
        hold_unknown: bool | Callable[[Key], bool] = False,
        datapath: DatapathCore | None = None,
        keeps_resources: bool = False,
    ) -> None:
        self._notices = Notices()
        self.counters = self._notices.counters
        self.app_tag = app_tag
        self.xid_tag = DATAPATH_XID_TAG | app_tag & 0xF if xid_tag is None else xid_tag
        self._hold_unknown: bool | Callable[[Key], bool] = hold_unknown
        self._keeps_resources = keeps_resources
        self.clock = ConfirmationClock()
        self.listens: Callable[[int], bool] = lambda _dpid: True
        self._switches: dict[int, OwnerState] = {}
        self.withholds = None
        self._is_alone = datapath is None
        self._datapath = DatapathCore(self.xid_tag) if datapath is None else datapath
        self._xids = self._datapath.xids if self._is_alone else Xids(self.xid_tag)
        self._mark = self._datapath.mark
        self._plans = PlanQueue(self._switches, self._mark, self._notices)
        self.ready: Sequence[object] = self._plans.ready
        self._datapath.add(self)
        self._admissible = Admissible(app_tag, self._switches, self._notices, keeps_resources=keeps_resources)
        self._checks = Checks(self._switches, self._mark, self._ask_check, self._notices)
        self._checks.held = bool(hold_unknown)
        self._release = Release(self._switches, self._mark)
        self.refusals = Refusals(self._switches, self._mark, self._plans, self._notices)
        self._effects: list[Effect] = []
        self._surveys = Surveys(app_tag, self._mark, self._request, self._notices, self._tell)
        self._handlers: dict[type, Callable[[Any, float], list[Effect]]] = {
            SwitchConnected: lambda event, now: self.switch_connected(event.dpid, event.ofp_version, now),
            SwitchDisconnected: lambda event, now: self.switch_disconnected(event.dpid, now),
            BarrierReplied: lambda event, now: self.barrier_replied(event.dpid, event.xid, now),
            EditFailed: lambda event, now: self.edit_failed(event.dpid, event.xid, event.type, event.code, now),
            FlowStatsReceived: self.flow_stats_received,
            ResourcesReceived: self.resources_received,
            CheckRequested: lambda event, now: self.check_requested(event.dpid, now, event.order),
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
        drains: Collection[int] = (),
        is_patient: bool = False,
    ) -> list[Effect]:
        """Change what is desired; all of it counts at once and is sent stage by stage.

        Parameters
        ----------
        stages
            Per stage, edits with their dpids, sent when all of the stage before are confirmed, or their switch has no
            connection. A key with edits that wait keeps its turn: later changes of it come after them.
        now
            The current time in seconds.
        drain_s
            Seconds to wait before the last stage, or before each of the stages with a number in `drains`.
        urgency
            Who waits for it. Bulk that something prompt has to wait for is prompt from then on.
        is_patient
            Never go on without a switch that is connected, however late it is.

        Raises
        ------
        ValueError
            For a rule with another app's tag, or with a timeout (see `transient`); for a group or meter that is not
            the app's, and for the end of one that a flow entry still names.
        """
        refused = self._admissible.refused(stages, now)
        if len(stages) == 1:
            for dpid, edit in stages[0]:
                state = self._switches.get(dpid) or self._new_switch(dpid)
                if refused and origin_of(state, edit) in refused:
                    continue
                kind = type(edit)
                entry: Entry | None = edit[0] if kind is Put or kind is Define else None  # type: ignore[assignment]
                key: Key = edit[0] if entry is None else entry[0]  # type: ignore[assignment]
                if entry is not None:
                    self.clock.add(state, key)
                if state.enter(key, entry):
                    self._mark(state, key, urgency)
                elif urgency is _PROMPT:
                    self._plans.hurry(state, key)
        else:
            self._plans.add(self._plan_stages(stages, refused), now, drain_s, urgency, drains, is_patient)
        return self._flush(now)

    def open_plan(self, stage_count: int, now: float) -> StagedPlan:
        """Begin a bulk change of several stages that is told in parts; see `PlanQueue.open`."""
        return self._plans.open(stage_count, _BULK, now)

    def extend_plan(self, plan: StagedPlan, stages: Sequence[Sequence[tuple[int, Edit]]], now: float) -> list[Effect]:
        """Add to the stages of a plan that is open: its later stages wait for all of it."""
        refused = self._admissible.refused(stages, now)
        self._plans.extend(plan, self._plan_stages(stages, refused))
        return self._flush(now)

    def close_plan(self, plan: StagedPlan, now: float) -> list[Effect]:
        """End what is told of a plan."""
        self._plans.close(plan)
        return self._flush(now)

    def put(
        self, entries: Sequence[tuple[int, FlowEntry]], now: float, urgency: Urgency = _PROMPT, is_timed: bool = False
    ) -> list[Effect]:
        """Desire entries of switches as `change` does with one stage of puts, for less; `is_timed` as one alone."""
        switches, app_tag, is_special = self._switches, self.app_tag, self._keeps_resources or self.ready
        for dpid, rule in entries:
            state = switches.get(dpid)
            if (
                state is None
                or is_special
                or not state.connected
                or state.reading is not None
                or state.turns
                or state.full
                or rule[2] >> 48 != app_tag
                or rule[3]
                or rule[4]
                or state.lowering.expressible(rule) is not None  # type: ignore[union-attr]
            ):
                with self.clock.timing(now, is_timed):
                    return self.change(([(at, Put(one)) for at, one in entries],), now, 0.0, urgency)
        due, changes = self._datapath.due, self.clock.put(len(entries), now, is_timed)
        for dpid, rule in entries:
            key, state = rule[0], switches[dpid]
            state.desired[key] = rule
            if changes:
                state.add_timed(key, changes)
            state.lanes.add(key, urgency)
            due[dpid] = state.datapath
        return self._flush(now)

    def hurry(self, dpid: int, key: FlowKey) -> None:
        """Make prompt what a switch is still to be sent for a key: somebody waits for it after all."""
        state = self._switches.get(dpid)
        if state is not None and state.connected:
            if state.reading is not None:
                state.lanes.add(key, _PROMPT)
            elif key in state.lanes:
                state.lanes.hurry(key)
            elif key in state.held_back():
                self._mark(state, key, _PROMPT)
            self._plans.hurry(state, key)

    def release_unknown(self, now: float) -> list[Effect]:
        """Remove from now on what nobody desires; where there is much of it, in several turns."""
        self._hold_unknown = False
        self._checks.held = self._release.begin(now)
        return self._flush(now)

    # What happens at switches

    def switch_connected(self, dpid: int, ofp_version: int, now: float) -> list[Effect]:
        """Read what the switch holds; edits follow when it has told."""
        state = self._switches.get(dpid) or self._new_switch(dpid)
        self._forget_work(state)
        state.lowering = LOWERINGS[ofp_version]
        for key, entry in list(state.desired.items()):
            reason = state.lowering.problem(entry)
            if reason is not None:
                state.enter(key, None)
                self._admissible.refuse(dpid, entry, reason, now)
        self._datapath.connected(state, now)
        return self._flush(now)

    def switch_disconnected(self, dpid: int, now: float) -> list[Effect]:
        """Forget what was under way; nobody waits for this switch any longer."""
        state = self._switches.get(dpid)
        if state is not None:
            self.closed(state)
            self._datapath.disconnected(state, now)
            if not state.desired and not state.turns:
                del self._switches[dpid]
                self._datapath.drop(state)
        return self._flush(now)

    def barrier_replied(self, dpid: int, xid: int, now: float) -> list[Effect]:
        """Take the edits before a barrier as done, but for those that failed."""
        self._datapath.barrier_replied(BarrierReplied(dpid, xid), now)
        return self._flush(now)

    def edit_failed(self, dpid: int, xid: int, kind: int, code: int, now: float) -> list[Effect]:
        """Take an OpenFlow error; what it means for the edit is seen at the barrier."""
        state = self._switches.get(dpid)
        if state is None or not self._resources_told(state, xid, ResourceDescriptions(xid, False, ()), now):
            self._datapath.edit_failed(EditFailed(dpid, xid, kind, code), now)
        return self._flush(now)

    def flow_stats_received(self, event: FlowStatsReceived, now: float) -> list[Effect]:
        """Take a flow statistics reply as it came in."""
        state = self._switches.get(event.dpid)
        if state is not None and self._surveys.told(state, event, bool(self._hold_unknown), now):
            pass
        elif state is None or state.check is None or state.check.xid != event.xid:
            self._datapath.flow_stats_received(event, now)
        else:
            stats = LOWERINGS[event.ofp_version].decode_flow_stats(event.message, self.app_tag << 48, 0xFFFF << 48)
            self._take_check(state, state.check, stats, now)
        return self._flush(now)

    def resources_received(self, event: ResourcesReceived, now: float) -> list[Effect]:
        """Take a reply that tells groups or meters as it came in."""
        state = self._switches.get(event.dpid)
        if state is None or not self._resources_told(state, event.xid, decode_resources(event.message), now):
            self._datapath.resources_received(event, now)
        return self._flush(now)

    def _resources_told(self, state: OwnerState, xid: int, told: ResourceDescriptions, now: float) -> bool:
        """Take a reply that tells groups or meters, if it is to a check or a report; False where it is to neither."""
        if self._surveys.resources_told(state, xid, told, bool(self._hold_unknown), now):
            return True
        check = state.check
        if check is None or xid not in check.asked:
            return False
        take_resources(check, told, state, self._notices, now)
        if not told.more:
            del check.asked[xid]
        self._check_told(state, check, now)
        return True

    def _take_check(self, state: OwnerState, check: FlowDump, stats: FlowStats, now: float) -> None:
        take_stats(check, stats, state, self._notices, now)
        check.flows_told = not stats.more
        self._check_told(state, check, now)

    def _check_told(self, state: OwnerState, check: FlowDump, now: float) -> None:
        if check.is_whole and self._checks.complete(state, check, now):
            self._effects.append(EntriesLost(state.dpid))

    # What the datapath core tells

    def advance(self, now: float) -> None:
        """Let plans go on."""
        self._plans.advance_ready(now)

    def settled(self, state: OwnerState, key: Key, now: float) -> None:
        """Take it that a key needs no edit after all."""
        state.failures.pop(key, None)
        self.clock.settled(state.take_timed((key,)), now)
        self._plans.confirmed(state.waiters.pop(key, ()))
        if state.resources is not None:
            self._datapath.wake(state, key)

    def batch_done(self, state: OwnerState, batch: OwnerBatch, now: float) -> None:
        """Take the edits of a batch as done, but for those that failed."""
        _, edits, waiters, timed, removes, failed = batch
        installed, resources = state.installed, state.resources
        if failed:
            self.clock.failed(state, batch, now)
        elif timed:
            self.clock.settled(timed, now)
        if not (failed or waiters or resources is not None or state.failures or state.full):
            if not removes:
                installed.update(edits)  # type: ignore[arg-type]
                return
            for key, value in edits.items():
                if value is None:
                    installed.pop(key, None)
                else:
                    installed[key] = value
            return
        freed = added = 0
        for index, (key, value) in enumerate(edits.items()):
            if index in failed:
                self.refusals.take(state, batch, key, failed[index], now)
                continue
            if value is None:
                freed += installed.pop(key, None) is not None
            else:
                added += key not in installed
                installed[key] = value
            if resources is not None:
                resources.installed.enter(key, value)
                self._datapath.wake(state, key)
            if state.failures and key in state.failures:
                state.datapath.window.failed(state.failures.pop(key).batch_edits)
            if waiters and key in waiters:
                self._plans.confirmed(waiters[key])
        if state.full:
            self.refusals.retry_full(state, freed + (0 if failed else 2 * added), now)

    def reading_begun(self, state: OwnerState, xid: int) -> None:
        """Take it that a switch is read as a whole; no check goes on beside that."""
        self._checks.forget(state.dpid)
        state.check = None
        self._surveys.end(state, "being-read")
        state.reading = FlowDump(xid)

    def told(self, state: OwnerState, stats: FlowStats, now: float) -> bool:
        """Take a reply to a reading; False where the whole does not count."""
        if state.reading is None:
            return False
        take_stats(state.reading, stats, state, self._notices, now)
        return not state.reading.faulty

    def resources_told(self, state: OwnerState, told: ResourceDescriptions, now: float) -> bool:
        """Take a reply to a reading that tells groups or meters; False where the whole does not count."""
        if state.reading is None or state.resources is None:
            return True
        take_resources(state.reading, told, state, self._notices, now)
        return not state.reading.faulty

    def check_begun(self, state: OwnerState, xid: int, now: float) -> None:
        """Take part in a check of another app, unless this one asks a switch already."""
        self._checks.join(state, xid, now)

    def check_told(self, state: OwnerState, stats: FlowStats, now: float) -> bool:
        """Take a reply to a check for several apps; True where there is something to say of it."""
        if state.check is not None:
            self._take_check(state, state.check, stats, now)
        return bool(self._effects or self._notices.given)

    def closed(self, state: OwnerState) -> None:
        """Take it that a switch is not ours to write; nobody waits for it any longer."""
        state.connected = False
        self._forget_work(state)

    def read(self, state: OwnerState, now: float) -> None:
        """Compare what a switch has told with what it shall hold."""
        if state.reading is not None:
            self._checks.was_read(state.dpid, now)
            state.installed, state.reading = state.reading.entries, None
            compare(state, self._hold_unknown, self.withholds)
            self.refusals.full.cancel(state.dpid)

    def notice(self, kind: str, dpid: int, text: str, now: float, **particulars: object) -> None:
        """Give notice of what befell a switch."""
        self._notices.give(kind, dpid, text, now, **particulars)

    def take_effects(self) -> list[Effect]:
        """Return the notices and the like that came up since the last call."""
        effects, self._effects = self._effects, []
        return [*self._notices.take(), *effects] if self._notices.given else effects

    # Time

    def next_deadline(self) -> float | None:
        """Return when `on_deadline` is due, None for never."""
        shared_s = self._datapath.next_deadline() if self._is_alone else None
        own_s = (self._release.due_s, self._plans.next(), self._checks.next(), self.refusals.next())
        return earliest(*own_s, self._surveys.timeouts.next(), shared_s)

    def on_deadline(self, now: float) -> list[Effect]:
        """Do what has come due."""
        if self._is_alone:
            self._datapath.on_deadline(now)
        if self._release.due_s is not None:
            self._checks.held = self._release.on_deadline(now)
        self.refusals.on_deadline(now)
        for dpid in self._surveys.timeouts.take_due(now):
            self._surveys.end(self._switches[dpid], "unanswered")
        self._plans.on_deadline(now)
        self._checks.on_deadline(now)
        return self._flush(now)

    # Sending

    def _flush(self, now: float) -> list[Effect]:
        """Let plans go on, send what can be sent, and return all effects."""
        datapath = self._datapath
        datapath.flush(now)
        sent = datapath.take_effects() if datapath.effects else []
        return [*self.take_effects(), *sent] if self._effects or self._notices.given else sent

    def _plan_stages(
        self, stages: Sequence[Sequence[tuple[int, Edit]]], refused: set[Origin]
    ) -> list[list[tuple[OwnerState, Key, Entry | None]]]:
        if self._keeps_resources:
            stages = in_order(stages, self.namers)
        planned: list[list[tuple[OwnerState, Key, Entry | None]]] = []
        for stage in stages:
            planned.append([])
            for dpid, edit in stage:
                state = self._switches.get(dpid) or self._new_switch(dpid)
                if not refused or origin_of(state, edit) not in refused:
                    entry = edit_value(edit)
                    if entry is not None:
                        self.clock.add(state, edit_key(edit))
                    planned[-1].append((state, edit_key(edit), entry))
        return planned

    # Reading back

    def _request(self, state: OwnerState, cookie_mask: int = 0xFFFF << 48) -> Question:
        asked = {}
        if state.resources is not None and state.lowering is not None:
            for kind in state.lowering.resource_kinds:
                asked[xid := self._xids.take()] = kind
                self._effects.append(RequestResources(state.dpid, xid, kind))
        xid = self._xids.take()
        self._effects.append(RequestFlows(state.dpid, xid, self.app_tag << 48 & cookie_mask, cookie_mask))
        return Question(xid, asked)

    def _ask_check(self, state: OwnerState, is_turn: bool, now: float) -> Question:
        """Ask a switch for a check: for all apps that share it where it is its turn."""
        if is_turn and not self._is_alone and state.resources is None:
            return Question(self._datapath.check(state, now), {})
        return self._request(state)

    def _forget_work(self, state: OwnerState) -> None:
        """Drop what was under way at a switch; plans go on without it."""
        self.refusals.full.cancel(state.dpid)
        self._checks.forget(state.dpid)
        self._surveys.end(state, "disconnected")
        self.clock.lost(state)
        self._plans.confirmed(state.forget_work())

    def _tell(self, effect: Effect) -> None:
        self._effects.append(effect)

    def _new_switch(self, dpid: int) -> OwnerState:
        datapath = self._datapath.datapath(dpid)
        state = self._switches[dpid] = datapath.parts[self.app_tag] = OwnerState(dpid, datapath, self)
        if self._keeps_resources:
            state.resources = Resources(self.app_tag)
        return state
