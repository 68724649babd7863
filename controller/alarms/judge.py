"""When something that is wrong is an alarm: what is looked at, how long it has to settle, when an alarm ends."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice

from controller.alarms import causes
from controller.alarms.causes import Subject
from controller.alarms.effects import AlarmTurned
from controller.alarms.facts import AlarmFacts
from controller.alarms.history import AlarmHistory, ClearedAlarm
from controller.alarms.kept import KeptState
from controller.alarms.register import Alarm, Condition, alarm_key
from controller.alarms.sections import AlarmSections
from controller.kernel.deadlines import Deadlines
from controller.snapshot.events import State

JUDGED_AT_ONCE = 256
"""Switches, links and ports that are judged in one turn; after a restart all that are known come due together."""

LINK_GRACE_S = 5.0
"""Time that the links of a switch have to be found again after it connected."""


class Judge:
    """Brings the open alarms in step with the facts, subject by subject.

    Parameters
    ----------
    facts
        What is known; the register there has the open alarms.
    history
        Takes those that are closed.
    sections, kept
        Are told what changes.
    tell
        Takes what comes of it.
    """

    def __init__(
        self,
        facts: AlarmFacts,
        history: AlarmHistory,
        sections: AlarmSections,
        kept: KeptState,
        tell: Callable[[AlarmTurned], None],
    ) -> None:
        self._facts = facts
        self._register = facts.register
        self._history = history
        self._sections = sections
        self._kept = kept
        self._out = tell
        self._looks: Deadlines[Subject] = Deadlines()
        self._closing: Deadlines[str] = Deadlines()

    def next_deadline(self) -> float | None:
        """Return when `on_deadline` is due, None for never."""
        times = [at_s for at_s in (self._looks.next(), self._closing.next()) if at_s is not None]
        return min(times, default=None)

    def on_deadline(self, now: float) -> None:
        """Judge some of what had time to settle, and close what had time to flap."""
        for subject in list(islice(self._looks.due(now), JUDGED_AT_ONCE)):
            ready_s = self._ready_s(subject)
            if ready_s > now and self._condition(subject) is not None:
                self._looks.set(subject, ready_s)
            else:
                self.judge(subject, now)
        for key in list(self._closing.due(now)):
            if key in self._register.open:
                self.close(key, now)

    def look_at(self, subject: Subject, at_s: float) -> None:
        """Judge a subject at a time."""
        self._looks.set(subject, at_s)

    def forget(self, subject: Subject, now: float) -> None:
        """Judge a subject no more, and close its alarms without a word: an operator has said so."""
        self._looks.cancel(subject)
        for kind in causes.KINDS_OF[subject[0]]:
            key = alarm_key(kind, causes.name_of(subject))
            if key in self._register.open:
                self.close(key, now, is_told=False)

    def look(self, subject: Subject, now: float) -> None:
        """Judge a subject now where it is well or its alarm is open, else once it had time to settle."""
        ready_s, is_open = self._ready_s(subject), causes.key_of(subject) in self._register.open
        if self._condition(subject) is None:
            if is_open and now < ready_s and self._is_absorbed(subject):
                self._looks.set(subject, ready_s)
                return
            self._looks.cancel(subject)
            self.judge(subject, now)
        elif is_open and now < ready_s:
            self._looks.set(subject, ready_s)
        elif is_open:
            self.judge(subject, now)
        elif subject not in self._looks:
            self._looks.set(subject, max(now + self._facts.settings.settle_s, ready_s))

    def _ready_s(self, subject: Subject) -> float:
        """Return until when a subject that this run has not seen well is given time to come."""
        kind, what = subject
        known, grace_s = self._facts.known, self._facts.started_s + self._facts.settings.start_grace_s
        if kind == "switch":
            switch = known.switches.get(what)
            if switch is None:
                return self._facts.started_s
            if switch.connected:
                return max((self._ready_s(("link", link.cable)) for link in known.links_of(what)), default=grace_s)
            return grace_s if switch.connected_s is None else self._facts.started_s
        if kind != "link" or what not in known.links:
            return self._facts.started_s
        ends = [known.switches[dpid].connected_s or self._facts.started_s for dpid in what.pair]
        lost_s = known.links[what].lost_s
        if lost_s is not None and lost_s > max(ends):
            return self._facts.started_s
        return max(grace_s, *(at_s + LINK_GRACE_S for at_s in ends))

    def _is_absorbed(self, subject: Subject) -> bool:
        """Tell whether a link is missing because of a switch's trouble."""
        link = self._facts.known.links.get(subject[1]) if subject[0] == "link" else None
        return link is not None and self._facts.known.is_missing(link)

    def _condition(self, subject: Subject) -> Condition | None:
        kind, what = subject
        if kind == "reported":
            return causes.of_reports(self._facts.reports.get(what, {}).values())
        if kind == "switch":
            return causes.of_switch(self._facts.known, what)
        if kind == "link":
            return causes.of_link(self._facts.known, what, self._facts.parts, self._facts.fabric)
        return causes.of_port(self._facts.known, what)

    def judge(self, subject: Subject, now: float) -> None:
        """Raise, bring up to date or end the alarm of a subject by the facts."""
        condition = self._condition(subject)
        kinds = causes.KINDS_OF[subject[0]]
        keys = (
            [subject[1]] if subject[0] == "reported" else [alarm_key(kind, causes.name_of(subject)) for kind in kinds]
        )
        is_absorbed = condition is None and self._is_absorbed(subject)
        for key in keys:
            if is_absorbed and key in self._register.open:
                self.close(key, now, causes.cause_of(self._facts.known, subject[1]))
            elif condition is None or key != condition.key:
                self.over(key, now)
        if condition is None:
            return
        news = self._register.raise_(condition, self._since_s(subject, now), now)
        self._closing.cancel(condition.key)
        self.touched(condition.key)
        if news:
            self._tell(self._register.open[condition.key], now)

    def _since_s(self, subject: Subject, now: float) -> float:
        known = self._facts.known
        if subject[0] == "switch" and subject[1] in known.switches:
            since_s = known.switches[subject[1]].lost_s
        elif subject[0] == "link":
            link = known.links[subject[1]]
            if link.lost_s is None:
                link.lost_s = now
                self._sections.touch_link(link.cable)
                self._kept.touch("link", link.cable)
            since_s = link.lost_s
        elif subject[0] == "port":
            since_s = known.port_down_s(subject[1])
        else:
            since_s = None
        return now if since_s is None else since_s

    def over(self, key: str, now: float) -> None:
        """Take in that the cause of an alarm is gone; a flapping one stays open for a while."""
        due_s = self._register.over(key, now)
        if due_s is None:
            return
        if due_s <= now:
            self.close(key, now)
        else:
            self._closing.set(key, due_s)
            self.touched(key)

    def close(self, key: str, now: float, cause: int | None = None, *, is_told: bool = True) -> None:
        """Close an alarm; `cause` is the switch whose trouble explains it from now on, as the event of that tells."""
        self._closing.cancel(key)
        alarm = self._register.close(key, now)
        self.touched(key)
        document = self._sections.document(alarm) | {
            "state": State.CLEARED.value,
            "cleared_s": now + self._facts.offset_s,
        }
        part_of = None if cause is None else alarm_key(causes.SWITCH_DOWN, str(cause))
        if part_of is not None:
            document["part_of"] = part_of
        self._history.add(ClearedAlarm(alarm, now, part_of))
        self._out(AlarmTurned(State.CLEARED, document))
        if is_told and cause is None:
            self._sections.turned(State.CLEARED, alarm, now)

    def _tell(self, alarm: Alarm, now: float) -> None:
        self._out(AlarmTurned(State.RAISED, self._sections.document(alarm)))
        self._sections.turned(State.RAISED, alarm, now)

    def touched(self, key: str) -> None:
        """Take note that an alarm is another, or gone."""
        self._sections.touch_alarm(key)
        self._kept.touch("alarm", key)
