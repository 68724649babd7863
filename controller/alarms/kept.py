"""What outlasts a restart: alarms with who acknowledged them, open and cleared, and the switches and links known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

from controller.alarms import causes
from controller.alarms.facts import AlarmFacts
from controller.alarms.history import ClearedAlarm
from controller.alarms.known import KnownFabric, KnownLink, KnownSwitch, read_cable
from controller.alarms.register import Alarm, Condition
from controller.snapshot.events import Severity

ALARM, CLEARED, SWITCH, LINK = "alarm", "cleared", "switch", "link"
PARTS = (ALARM, CLEARED, SWITCH, LINK)

STATE_VERSION = 1

Document: TypeAlias = dict[str, Any]


class KeptRecord(NamedTuple):
    """One record: `document` is None where it is to be removed."""

    part: str
    id: str
    document: Document | None


class KeptState:
    """Which records changed since they were last taken. Times in them are in seconds since 1970-01-01 UTC."""

    def __init__(self, facts: AlarmFacts) -> None:
        self._facts = facts
        self._dirty: dict[tuple[str, Any], None] = {}

    def touch(self, part: str, key: Any) -> None:
        """Take note that a record is another, or gone."""
        self._dirty[part, key] = None

    def touch_all(self) -> None:
        """Have every record written, for instance to a new database."""
        facts = self._facts
        alarms = ((ALARM, facts.register.open), (CLEARED, facts.cleared))
        for part, keys in (*alarms, (SWITCH, facts.known.switches), (LINK, facts.known.links)):
            for key in keys:
                self.touch(part, key)

    def take(self, limit: int) -> list[KeptRecord]:
        """Return some of what changed."""
        taken: list[KeptRecord] = []
        while self._dirty and len(taken) < limit:
            part, key = next(iter(self._dirty))
            del self._dirty[part, key]
            taken.append(KeptRecord(part, str(key), self._document(part, key)))
        return taken

    def _document(self, part: str, key: Any) -> Document | None:
        facts, offset_s = self._facts, self._facts.offset_s
        if part == ALARM:
            alarm = facts.register.open.get(key)
            return None if alarm is None else _alarm_document(alarm, offset_s)
        if part == CLEARED:
            cleared = facts.cleared.get(key)
            return None if cleared is None else _cleared_document(cleared, offset_s)
        if part == SWITCH:
            switch = facts.known.switches.get(key)
            return None if switch is None else _switch_document(switch, offset_s)
        link = facts.known.links.get(key)
        return None if link is None else _link_document(link, offset_s)


def restore_known(known: KnownFabric, parts: Mapping[str, Mapping[str, Any]], offset_s: float) -> int:
    """Take over the switches and links that an earlier run knew; return how many records could not be read."""
    unreadable = 0
    for id_, document in parts.get(SWITCH, {}).items():
        try:
            kept = KnownSwitch(
                int(id_),
                tier=str(document["tier"]),
                level=_whole(document["level"]),
                host_count=int(document["host_count"]),
                lost_s=_moved(document["lost_s"], -offset_s),
            )
        except (KeyError, TypeError, ValueError):
            unreadable += 1
            continue
        if known.switch(kept.dpid) is not None:
            known.switches[kept.dpid] = kept
    for id_, document in parts.get(LINK, {}).items():
        try:
            cable, capacity_bps = read_cable(id_), float(document["capacity_bps"])
            lost_s, is_seen = _moved(document["lost_s"], -offset_s), bool(document["is_seen"])
        except (KeyError, TypeError, ValueError):
            unreadable += 1
            continue
        link = known.link(cable)
        if link is not None:
            link.capacity_bps, link.lost_s, link.is_seen = capacity_bps, lost_s, is_seen
    return unreadable


def read_alarm(document: Mapping[str, Any], offset_s: float) -> Alarm | None:
    """Return an alarm that an earlier run kept, None where its record cannot be read."""
    try:
        condition = Condition(
            str(document["kind"]),
            str(document["subject"]),
            Severity(document["severity"]),
            str(document["text"]),
            _whole(document["dpid"]),
            _whole(document["port_no"]),
        )
        causes.subject_of(condition)
        by = document["acknowledged_by"]
        return Alarm(
            condition,
            float(document["since_s"]) - offset_s,
            int(document["occurrences"]),
            float(document["hold_s"]),
            acknowledged_by=None if by is None else str(by),
            acknowledged_s=_moved(document["acknowledged_s"], -offset_s),
            is_confirmed=False,
        )
    except (KeyError, TypeError, ValueError):
        return None


def read_cleared(documents: Mapping[str, Mapping[str, Any]], offset_s: float) -> tuple[dict[int, ClearedAlarm], int]:
    """Return the alarms that earlier runs cleared, by number, and how many records cannot be read."""
    found: dict[int, ClearedAlarm] = {}
    for id_, document in documents.items():
        alarm = read_alarm(document, offset_s)
        try:
            number, cleared_s = int(id_), _moved(document["cleared_s"], -offset_s)
            part_of = document["part_of"]
        except (KeyError, TypeError, ValueError):
            continue
        if alarm is not None and cleared_s is not None and number > 0:
            found[number] = ClearedAlarm(alarm, cleared_s, None if part_of is None else str(part_of))
    return found, len(documents) - len(found)


def _cleared_document(cleared: ClearedAlarm, offset_s: float) -> Document:
    document = _alarm_document(cleared.alarm, offset_s)
    return {**document, "cleared_s": cleared.cleared_s + offset_s, "part_of": cleared.part_of}


def _alarm_document(alarm: Alarm, offset_s: float) -> Document:
    kind, subject, severity, text, dpid, port_no = alarm.condition
    return {
        "kind": kind,
        "subject": subject,
        "severity": severity.value,
        "text": text,
        "dpid": dpid,
        "port_no": port_no,
        "since_s": alarm.since_s + offset_s,
        "occurrences": alarm.occurrences,
        "hold_s": alarm.hold_s,
        "acknowledged_by": alarm.acknowledged_by,
        "acknowledged_s": _moved(alarm.acknowledged_s, offset_s),
    }


def _switch_document(switch: KnownSwitch, offset_s: float) -> Document:
    return {
        "tier": switch.tier,
        "level": switch.level,
        "host_count": switch.host_count,
        "lost_s": _moved(switch.lost_s, offset_s),
    }


def _link_document(link: KnownLink, offset_s: float) -> Document:
    lost_s = _moved(link.lost_s, offset_s)
    return {"capacity_bps": link.capacity_bps, "lost_s": lost_s, "is_seen": link.is_seen}


def _moved(at_s: Any, by_s: float) -> float | None:
    return None if at_s is None else float(at_s) + by_s


def _whole(value: Any) -> int | None:
    return None if value is None else int(value)
