"""What people see of alarms, as documents: those open, those over, and the switches and links that are missing."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from typing import Any

from controller.alarms import causes
from controller.alarms.causes import Subject
from controller.alarms.facts import AlarmFacts
from controller.alarms.known import Cable, LinkState
from controller.alarms.register import GRAVITY, Alarm
from controller.durations import format_duration
from controller.snapshot.events import EventRing, Severity, State
from controller.snapshot.log import Document, DocumentLog
from controller.snapshot.names import Names

STATUS = "status"
CLEARED = "cleared-alarms"
"""The section of the alarms that are over."""

CONSEQUENCES_BOUND = 100
"""Consequences that a document lists; `consequence_count` counts all."""

HELD = "This is over, and the alarm stays open for a while because it flaps: "
"""How an alarm begins whose cause is gone."""

TOLD_BY_OTHERS = frozenset(
    {"policy-faulty", "anomaly", "normalcy", "port-event", "segment-looped", "aggregation-degraded", "detection-late"}
)
"""Kinds of which another app has an event when they are raised and cleared."""


class AlarmSections:
    """The sections of the alarms' core; texts call switches by their `names`."""

    def __init__(self, facts: AlarmFacts) -> None:
        self._facts = facts
        self.names = Names()
        self.events = EventRing("alarms")
        self.events.offset_s = facts.offset_s
        self.status: DocumentLog[str] = DocumentLog(lambda: (STATUS,), lambda _key: self._status)
        self.alarms: DocumentLog[str] = DocumentLog(lambda: list(facts.register.open), self._alarm)
        self.switches: DocumentLog[int] = DocumentLog(lambda: list(facts.known.switches), self._switch)
        self.links: DocumentLog[Cable] = DocumentLog(lambda: list(facts.known.links), self._link)
        self.cleared: DocumentLog[int] = DocumentLog(lambda: list(facts.cleared), self._cleared)
        self._status: Document = {}
        self._is_status_old = True

    def by_name(self) -> dict[str, DocumentLog[Any]]:
        """Return the sections by the names under which they are offered."""
        names = ("status", "alarms", "switches", "links")
        return {**{name: getattr(self, name) for name in names}, CLEARED: self.cleared, "events": self.events.section}

    def refresh(self) -> None:
        """Bring the status up to date; to be called before sections are read."""
        if self._is_status_old:
            self._is_status_old = False
            status = self._made_status()
            if status != self._status:
                self._status = status
                self.status.touch(STATUS)

    # What the core tells

    def touch_alarm(self, key: str) -> None:
        """Take note that an alarm is another, or gone, and with it what is shown of a switch that is expected."""
        self.alarms.touch(key)
        kind, _, subject = key.partition(":")
        if kind == causes.SWITCH_DOWN:
            self.switches.touch(int(subject))
        self._is_status_old = True

    def touch_switch(self, dpid: int) -> None:
        """Take note that a switch is in another state, and with it what follows from its alarm."""
        self.switches.touch(dpid)
        self.alarms.touch(f"{causes.SWITCH_DOWN}:{dpid}")
        self._is_status_old = True

    def touch_link(self, cable: Cable) -> None:
        """Take note that a link is in another state, and with it what follows from its alarm."""
        self.links.touch(cable)
        for kind in causes.KINDS_OF["link"]:
            self.alarms.touch(f"{kind}:{cable}")
        for dpid in cable.pair:
            self.alarms.touch(f"{causes.SWITCH_DOWN}:{dpid}")
        self._is_status_old = True

    def known_changed(self) -> None:
        """Take note that all that is known may be another."""
        self.switches.log.forget()
        self.links.log.forget()
        self.alarms.log.forget()
        self._is_status_old = True

    def renamed(self) -> None:
        """Take note that switches may be called otherwise."""
        self.alarms.log.forget()
        self.cleared.log.forget()
        self._is_status_old = True

    def turned(self, state: State, alarm: Alarm, now: float) -> None:
        """Tell of an alarm that was raised or cleared, where nobody else does."""
        condition = alarm.condition
        if condition.kind in TOLD_BY_OTHERS:
            return
        cleared = state is State.CLEARED
        spoken = self.names.spoken(condition.text)
        lasted_s = (now if alarm.over_s is None else alarm.over_s) - alarm.since_s
        text = f"This is over after {format_duration(lasted_s)}: {spoken}" if cleared else spoken
        severity = Severity.INFO if cleared else condition.severity
        dpid, port_no = condition.dpid, condition.port_no
        self.events.add(now, condition.kind, text, severity=severity, state=state, dpid=dpid, port_no=port_no)

    def acknowledged(self, alarm: Alarm, now: float) -> None:
        """Tell that an operator takes care of an alarm."""
        text = f"{alarm.acknowledged_by} acknowledged the alarm {alarm.key}."
        self.events.add(now, "acknowledged", text, dpid=alarm.condition.dpid, port_no=alarm.condition.port_no)

    def forgotten(self, subject: Subject, now: float) -> None:
        """Tell that an operator expects a switch or link no more."""
        kind, what = subject
        dpid, port_no = (what, None) if kind == "switch" else what.a
        text = f"An operator forgot {kind} {what}: it is not expected any more."
        self.events.add(now, "forgotten", text, dpid=dpid, port_no=port_no)

    # Documents

    def document(self, alarm: Alarm) -> Document:
        """Return an alarm as it stands."""
        found = list(causes.consequences(self._facts.known, alarm.condition))
        over_s = alarm.over_s
        return {
            **self._said(alarm),
            "state": State.RAISED.value,
            "over_s": None if over_s is None else over_s + self._facts.offset_s,
            "consequences": [
                {**each._asdict(), "text": self.names.spoken(each.text)} for each in islice(found, CONSEQUENCES_BOUND)
            ],
            "consequence_count": len(found),
        }

    def _cleared(self, number: int) -> Document | None:
        cleared = self._facts.cleared.get(number)
        if cleared is None:
            return None
        return {
            **self._said(cleared.alarm),
            "state": State.CLEARED.value,
            "cleared_s": cleared.cleared_s + self._facts.offset_s,
            "part_of": cleared.part_of,
        }

    def _said(self, alarm: Alarm) -> Document:
        """Return what is said of an alarm, be it open or over."""
        condition, offset_s, acknowledged_s = alarm.condition, self._facts.offset_s, alarm.acknowledged_s
        document: Document = {
            "key": alarm.key,
            "kind": condition.kind,
            "subject": condition.subject,
            "severity": condition.severity.value,
            "since_s": alarm.since_s + offset_s,
            "text": self._text(alarm),
            "dpid": condition.dpid,
            "port_no": condition.port_no,
            "occurrences": alarm.occurrences,
            "acknowledged_by": alarm.acknowledged_by,
            "acknowledged_s": None if acknowledged_s is None else acknowledged_s + offset_s,
        }
        if condition.kind in (causes.LINK_FAILED, causes.CABLE_MOVED):
            subject = causes.subject_of(condition)
            assert subject is not None
            document |= _ends(subject[1])
        return document

    def whole(self) -> Document:
        """Return the open alarms, the gravest first, and what the status says of them."""
        alarms = sorted(self._facts.register, key=_gravest_first)
        return {"alarms": [self.document(alarm) for alarm in alarms], "status": self._status}

    def _text(self, alarm: Alarm) -> str:
        """Return what an alarm says is wrong, or that it is not so any more where it stays open because it flaps."""
        spoken = self.names.spoken(alarm.condition.text)
        is_held = alarm.over_s is not None and self._facts.register.open.get(alarm.key) is alarm
        return f"{HELD}{spoken}" if is_held else spoken

    def _alarm(self, key: str) -> Document | None:
        alarm = self._facts.register.open.get(key)
        return None if alarm is None else self.document(alarm)

    def _switch(self, dpid: int) -> Document | None:
        switch = self._facts.known.switches.get(dpid)
        if switch is None or switch.connected:
            return None
        if switch.lost_s is None and f"{causes.SWITCH_DOWN}:{dpid}" not in self._facts.register.open:
            return None
        since_s = None if switch.lost_s is None else switch.lost_s + self._facts.offset_s
        last = {"tier": switch.tier, "level": switch.level}
        return {"dpid": dpid, "connected": False, "disconnected_s": since_s, "in_sync": None, **last}

    def _link(self, cable: Cable) -> Document | None:
        known = self._facts.known
        link = known.links.get(cable)
        if link is None:
            return None
        state = known.state(link)
        at_s = link.up_s if state is LinkState.UP else link.lost_s
        if at_s is None:
            return None
        return {
            **_ends(cable),
            "capacity_bps": link.capacity_bps,
            "state": state.value,
            "since_s": at_s + self._facts.offset_s,
        }

    def _made_status(self) -> Document:
        facts = self._facts
        counts = Counter(alarm.condition.severity for alarm in facts.register)
        switches, expected_switches, links, expected_links = facts.known.counts()
        missing = expected_switches - switches + expected_links - links
        gravest = min(facts.register, key=_gravest_first, default=None)
        is_critical = gravest is not None and gravest.condition.severity is Severity.CRITICAL
        reason = None
        fabric = f"{switches} of {expected_switches} switches, {links} of {expected_links} links"
        if is_critical and gravest is not None:
            reason = self._text(gravest)
        elif gravest is not None and missing:
            parts = (
                ("switch", expected_switches - switches, expected_switches),
                ("link", expected_links - links, expected_links),
            )
            lacking = " and ".join(_missing(*part) for part in parts if part[1])
            reason = f"{lacking}. {self._text(gravest)}"
        return {
            "degraded": reason is not None,
            "degraded_because": reason,
            "fabric": fabric,
            "expected_switches": expected_switches,
            "expected_links": expected_links,
            "alarms": {
                **{severity.value: counts[severity] for severity in reversed(Severity)},
                "acknowledged": sum(1 for alarm in facts.register if alarm.acknowledged_by is not None),
            },
            "alarm_counters": dict(sorted((facts.counters + facts.known.counters).items())),
        }


def _gravest_first(alarm: Alarm) -> tuple[int, bool, float, str]:
    """Return the order of alarms: of those that are equally grave what lasts comes first."""
    return -GRAVITY[alarm.condition.severity], alarm.over_s is not None, alarm.since_s, alarm.key


def _ends(cable: Cable) -> Document:
    (dpid_a, port_a), (dpid_b, port_b) = cable
    return {"dpid_a": dpid_a, "port_a": port_a, "dpid_b": dpid_b, "port_b": port_b}


def _missing(noun: str, count: int, expected: int) -> str:
    plural = "switches" if noun == "switch" else "links"
    return f"{count} of {expected} {plural} {'is' if count == 1 else 'are'} missing"
