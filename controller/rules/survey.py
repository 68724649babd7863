"""Readings for a report: what a switch holds against what it shall, told to who asked, and repaired if that is asked.

They are kept apart from the background check, whose turns they leave alone: a report alone changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from controller.datapath.lanes import Urgency
from controller.effects import TableSurveyed
from controller.events import FlowStatsReceived, SurveyOrder
from controller.rules.check import tell_repaired
from controller.rules.lowering import LOWERINGS
from controller.rules.model import Key
from controller.rules.notices import Notices
from controller.rules.openflow import ResourceDescriptions
from controller.rules.rule_texts import entry_document
from controller.rules.switch_state import LISTED, OwnerState, Question, Survey
from controller.rules.timeouts import Timeouts

SURVEY_TIMEOUT_S = 10.0
"""How long a switch has to tell its entries."""

FORCED_ABOVE = 0.05
"""A repair of more than this part of what an app has at a switch must be forced."""


class Surveys:
    """The readings for reports of one app; `ask` sends a switch the question and returns it.

    Reports are `TableSurveyed` effects, one for each order, whatever comes in between.
    """

    def __init__(
        self,
        app_tag: int,
        mark: Callable[[OwnerState, Key, Urgency], None],
        ask: Callable[[OwnerState, int], Question],
        notices: Notices,
        tell: Callable[[TableSurveyed], None],
    ) -> None:
        self.timeouts: Timeouts[int] = Timeouts(SURVEY_TIMEOUT_S)
        self._app_tag = app_tag
        self._mark = mark
        self._ask = ask
        self._notices = notices
        self._tell = tell

    def begin(self, dpid: int, state: OwnerState | None, order: SurveyOrder, now: float) -> None:
        """Read a switch; without a connection, or before it was read at its connection, there is nothing to tell."""
        if state is None or not state.connected:
            self._answer(dpid, order, "disconnected")
            return
        if state.reading is not None:
            self._answer(dpid, order, "being-read")
            return
        if state.survey is not None:
            self.end(state, "replaced")
        state.survey = Survey(self._ask(state, 0 if order.foreign else 0xFFFF << 48), order, state.under_way())
        self.timeouts.start(dpid, now)

    def end(self, state: OwnerState, reason: str) -> None:
        """Give a reading up, if there is one."""
        survey, state.survey = state.survey, None
        self.timeouts.cancel(state.dpid)
        if survey is not None:
            self._answer(state.dpid, survey.order, reason)

    def told(self, state: OwnerState, event: FlowStatsReceived, held_back: bool, now: float) -> bool:
        """Take a part of an answer, if it is to a question of ours; `held_back`: what nobody desires is to stay."""
        survey = state.survey
        if survey is None or survey.xid != event.xid:
            return False
        stats = LOWERINGS[event.ofp_version].decode_flow_stats(event.message, 0, 0)
        survey.fault = survey.fault or stats.fault
        survey.take(stats.entries, self._app_tag)
        survey.flows_told = not stats.more
        if survey.is_whole:
            self._complete(state, survey, held_back, now)
        return True

    def resources_told(
        self, state: OwnerState, xid: int, told: ResourceDescriptions, held_back: bool, now: float
    ) -> bool:
        """Take a part of an answer that tells groups or meters, if it is to a question of ours; see `told`."""
        survey = state.survey
        if survey is None or xid not in survey.asked:
            return False
        survey.fault = survey.fault or told.fault
        survey.take_resources(told.entries, self._app_tag)
        if not told.more:
            del survey.asked[xid]
        if survey.is_whole:
            self._complete(state, survey, held_back, now)
        return True

    def _complete(self, state: OwnerState, survey: Survey, held_back: bool, now: float) -> None:
        """Compare a whole answer, repair what may be, and report."""
        state.survey = None
        self.timeouts.cancel(state.dpid)
        if survey.fault is not None:
            self._answer(state.dpid, survey.order, "unreadable", reason=survey.fault)
            return
        held, targets = survey.held, state.targets()
        pending = survey.edited.union(state.lanes.keys(), state.full, state.failures, state.held_back())
        missing = [
            key for key, rule in targets.items() if rule is not None and key not in held and key not in pending
        ]
        altered, extra, kept_count = [], [], 0
        for key, rule in held.items():
            target = targets.get(key)
            if key in pending or rule == target:
                continue
            if target is not None:
                altered.append(key)
            elif held_back:
                kept_count += 1
            else:
                extra.append(key)
        found = {"missing": missing, "altered": altered, "extra": extra}
        document: dict[str, Any] = {
            "desired": len(targets) - sum(rule is None for rule in targets.values()),
            "confirmed": len(state.installed),
            "held": len(held),
            "kept": kept_count,
            "pending": len(pending - state.full.keys() - state.failures.keys()),
            "no_room": len(state.full),
            "refused": len(state.failures),
            "missing": _listed(entry_document(targets[key]) for key in missing),  # type: ignore[arg-type]
            "altered": _listed(
                {**entry_document(targets[key]), "holds": entry_document(held[key])}  # type: ignore[arg-type]
                for key in altered
            ),
            "extra": _listed(entry_document(held[key]) for key in extra),
            "foreign": {"count": survey.foreign_count, "entries": survey.foreign},
        }
        document["repair"] = self._repair(state, survey, found, max(len(targets), len(held)), now)
        self._answer(state.dpid, survey.order, "read", **document)

    def _repair(
        self, state: OwnerState, survey: Survey, found: Mapping[str, list[Key]], of_count: int, now: float
    ) -> str | None:
        """Have what differs sent anew where that is asked for; return what became of it, None for nothing to do."""
        count = sum(map(len, found.values()))
        if not survey.order.repair or not count:
            return None
        if not survey.order.force and count > FORCED_ABOVE * of_count:
            return "needs-force"
        for key in found["missing"]:
            state.installed.pop(key, None)
        for kind in ("altered", "extra"):
            for key in found[kind]:
                state.installed[key] = survey.held[key]
        state.recount()
        for keys in found.values():
            for key in keys:
                self._mark(state, key, Urgency.BULK)
        tell_repaired(self._notices, state.dpid, found, now)
        return "begun"

    def _answer(self, dpid: int, order: SurveyOrder, state: str, **document: Any) -> None:
        self._tell(TableSurveyed(dpid, order.number, {"dpid": dpid, "state": state, **document}))


def _listed(documents: Iterable[dict[str, Any]]) -> dict[str, Any]:
    listed, count = [], 0
    for document in documents:
        if count < LISTED:
            listed.append(document)
        count += 1
    return {"count": count, "entries": listed}
