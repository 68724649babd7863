"""Live normalcy beside the comparison with peers: its core, its database, and what of it is told."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from apps.alarm_reports import STATE_LOST, AlarmReports
from apps.normalcy_state import NormalcyDatabase
from apps.saved_state import SavedState
from apps.status_server import QuestionRefused
from controller.anomaly.live_events import MemberKey
from controller.anomaly.live_members import member_name
from controller.anomaly.live_normalcy_core import (
    METRICS,
    NormalcyChanged,
    NormalcyCore,
    NormalcyTurned,
    OpenExcess,
    PortsRolledUp,
)
from controller.anomaly.live_normalcy_state import NormalcyState, all_changed, changes, restore
from controller.anomaly.live_normalcy_view import NormalcySections, sentence
from controller.anomaly.live_state import AnomalyStateError
from controller.config.anomaly_settings import Normalcy
from controller.snapshot.events import EventRing, Severity, State

TIMES_AT_ONCE = 2000
LATEST_S = 1e11
SAVED_AT_ONCE = 100
"""Ports written in one tick, so that the loop is soon free again."""


class LiveNormalcy:
    """Feeds the core of live normalcy while the policy has it enabled, on the loop of the app that has it.

    Parameters
    ----------
    settings
        `anomaly.normalcy` of the policy.
    directory
        Where the state is kept.
    events, reports
        Where events and alarms go.
    spoken
        Puts names into texts.
    """

    def __init__(
        self,
        settings: Normalcy,
        directory: Path,
        logger: logging.Logger,
        events: EventRing,
        reports: AlarmReports,
        spoken: Callable[[str], str],
    ) -> None:
        self.core = NormalcyCore(settings)
        self.database = NormalcyDatabase(directory / "normalcy.sqlite", logger)
        self.sections = NormalcySections(self.core, events)
        self._logger, self._reports, self._spoken = logger, reports, spoken
        self._saved = SavedState(
            self.database, self._changes, partial(all_changed, self.core), self._tell_of_state, SAVED_AT_ONCE
        )

    @property
    def is_enabled(self) -> bool:
        """Whether the policy asks for it."""
        return bool(self.core.settings.enabled)

    def begin(self) -> None:
        """Take what an earlier run learnt."""
        state = self.database.read()
        if state is None:
            return
        try:
            count = restore(self.core, state)
        except AnomalyStateError as error:
            self.database.reject(str(error))
            return
        if state.chain != self.core.chain:
            self._logger.warning(
                "The bounds in %s are of days of another length: they are learnt anew.", self.database.path
            )
        self._logger.info("The bounds of %d ports were restored from %s.", count, self.database.path)
        if self.is_enabled:
            for excess in self.core.open.values():
                self._report(State.RAISED, excess)

    def take(self, rolled_up: PortsRolledUp) -> None:
        """Learn from roll-ups, and tell what they raise and clear."""
        if self.is_enabled:
            for effect in self.core.handle(rolled_up):
                self._turned(effect)

    def follow(self, settings: Normalcy) -> None:
        """Go by other settings; where it is not enabled any more nothing stays raised."""
        if settings != self.core.settings:
            turned = self.core.handle(NormalcyChanged(settings))
            for effect in (*turned, *(() if settings.enabled else self.core.close())):
                self._turned(effect)

    def look(self, now: float) -> None:
        """Keep some of what changed."""
        self._saved.look(now)

    def close(self) -> None:
        """Keep all that changed."""
        self._saved.close()

    def answer(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Return the series of the port asked for by `dpid` and `port_no`, or of all."""
        return {**self.sections.answer(self._port(asked)), "state": self.database.document()}

    def bounds(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Return the bounds of a `metric` of a port at some `times_s`, epoch seconds, as learnt up to now."""
        key, metric, times_s = self._port(asked), asked.get("metric"), asked.get("times_s")
        place = next((number for number, each in enumerate(METRICS) if each.name == metric), None)
        if key is None:
            raise QuestionRefused("dpid: a port is asked for by dpid and port_no", "dpid")
        if place is None:
            raise QuestionRefused(
                f"metric: {metric!r} is none of {', '.join(each.name for each in METRICS)}", "metric"
            )
        if not isinstance(times_s, list) or not 0 < len(times_s) <= TIMES_AT_ONCE or not all(map(_is_time, times_s)):
            raise QuestionRefused(f"times_s: expected 1 to {TIMES_AT_ONCE} times in epoch seconds", "times_s")
        pairs = self.core.bounds.bounds_at(self.core.row(key) + place, np.array(times_s, np.float64))
        known = np.isfinite(pairs[0])
        return {
            "bounds": [
                [float(lower), float(upper)] if is_known else [None, None]
                for lower, upper, is_known in zip(*pairs, known, strict=True)
            ]
        }

    def _port(self, asked: Mapping[str, Any]) -> MemberKey | None:
        """Return the port asked for, None where none is; QuestionRefused where it is not known."""
        if not self.is_enabled:
            raise QuestionRefused("anomaly.normalcy.enabled is false in the policy: no bounds are learnt", "normalcy")
        dpid, port_no = asked.get("dpid"), asked.get("port_no")
        if (dpid is None) != (port_no is None):
            raise QuestionRefused(
                "a port is asked for by dpid and port_no", "port_no" if dpid is not None else "dpid"
            )
        key = None
        if dpid is not None and port_no is not None:
            for name, value in (("dpid", dpid), ("port_no", port_no)):
                if not isinstance(value, int) or isinstance(value, bool) or value < 0:
                    raise QuestionRefused(f"{name}: expected a whole number", name)
            key = (dpid, port_no)
            if key not in self.core.ports:
                raise QuestionRefused(f"no minute of port {dpid}:{port_no} was measured yet", "port_no")
        return key

    def _turned(self, effect: NormalcyTurned) -> None:
        self.sections.turned(effect)
        self._report(effect.state, effect.excess)
        self._logger.info("%s", self._spoken(sentence(effect.state, effect.excess)))

    def _report(self, state: State, excess: OpenExcess) -> None:
        subject = f"{member_name(excess.key)}:{excess.metric}"
        if state is State.RAISED:
            self._reports.holds("normalcy", subject, Severity.INFO, sentence(state, excess), *excess.key)
        else:
            self._reports.over("normalcy", subject)

    def _changes(self, port_count: int) -> tuple[NormalcyState, bool]:
        return changes(self.core, port_count), bool(self.core.dirty)

    def _tell_of_state(self, trouble: str | None) -> None:
        text = trouble and f"{trouble}: a restart will not know which bounds were learnt since."
        self._reports.look_at(STATE_LOST, "normalcy", text)


def _is_time(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= LATEST_S
