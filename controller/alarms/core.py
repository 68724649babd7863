"""The alarms' core: facts about the fabric and reports of apps in, alarms by their causes out.

What is alarmed follows from the facts alone, whatever the order in which they were told: a missing link is part of
the alarm of a switch that is lost or cut off where it leads to one, else an alarm of its own. See docs/alarms.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum, auto
from typing import Any, TypeAlias

from controller.alarms import causes
from controller.alarms.causes import Subject
from controller.alarms.effects import AlarmTurned
from controller.alarms.events import (
    AcknowledgeAsked,
    AlarmsChanged,
    AlarmsRead,
    ConditionOver,
    ConditionReported,
    ForgetLinkAsked,
    ForgetSwitchAsked,
    TreesRepaired,
)
from controller.alarms.facts import AlarmFacts
from controller.alarms.history import AlarmHistory
from controller.alarms.judge import Judge
from controller.alarms.kept import CLEARED, KeptState, read_alarm, read_cleared, restore_known
from controller.alarms.known import Cable, End, KnownLink, cable_of, read_cable
from controller.alarms.register import alarm_key
from controller.alarms.sections import AlarmSections
from controller.config.alarm_settings import Alarms, ExpectedTopology
from controller.effects import ActionRefused, ActionTaken, Notice
from controller.events import DeadlineReached, PortChanged, SwitchConnected, SwitchDisconnected
from controller.kernel.deadlines import Deadlines
from topology.events import (
    TOPOLOGY_EVENTS,
    HostGone,
    LinkDown,
    LinkUp,
    PortRoleChanged,
    SwitchDown,
    SwitchUp,
)
from topology.graph import NodeKind, tier_of

XID_TAG = 0xAD
"""No message of this core goes to a switch; the tag keeps others' answers away from it."""

TOGETHER_S = 2.0
"""Hosts that go within this time of each other, or of their switch, go for one reason."""

CONFIRM_S = 120.0
"""Time after a start in which apps must report again what an earlier run left open; else it is over."""

REPORTED_BOUND = 4096
"""Reports of apps that are kept; further ones are counted and make no alarm."""


class AlarmTask(Enum):
    """What the core does by itself at a time."""

    SURVEY = auto()
    CONFIRM = auto()


Output: TypeAlias = AlarmTurned | ActionTaken | ActionRefused | Notice


class AlarmCore:
    """Alarms of one controller.

    Parameters
    ----------
    settings, topology
        The policy's.
    now
        The current time; every later time is on the same clock.
    at_s
        The same moment in seconds since 1970-01-01 UTC.
    """

    def __init__(self, settings: Alarms, topology: ExpectedTopology, now: float, at_s: float) -> None:
        facts = self._facts = AlarmFacts(settings, topology, now, at_s)
        self.counters, self.register = facts.counters, facts.register
        self.known, self.fabric = facts.known, facts.fabric
        self.kept = KeptState(facts)
        self.sections = AlarmSections(facts)
        self._out: list[Output] = []
        self._history = AlarmHistory(facts.cleared, self._cleared_touched)
        self._judge = Judge(facts, self._history, self.sections, self.kept, self._tell)
        self._report_count = 0
        self._troubled: dict[int, bool] = {}
        self._due: Deadlines[AlarmTask] = Deadlines()
        self._surveyed_version = -1
        self.handlers: dict[type, Callable[[Any, float], None]] = {
            SwitchConnected: self._switch_connected,
            SwitchDisconnected: self._switch_disconnected,
            PortChanged: self._port_changed,
            **dict.fromkeys(TOPOLOGY_EVENTS, self._topology_changed),
            ConditionReported: self._reported,
            ConditionOver: self._report_over,
            TreesRepaired: self._trees_repaired,
            AlarmsRead: self._read,
            AlarmsChanged: self._changed,
            AcknowledgeAsked: self._acknowledge,
            ForgetSwitchAsked: self._forget,
            ForgetLinkAsked: self._forget,
            DeadlineReached: lambda _event, now: self._on_deadline(now),
        }
        self._look_at_all(now)

    @property
    def xid_tag(self) -> int:
        """The upper 8 bits of transaction ids that would be this core's."""
        return XID_TAG

    def handle(self, event: object, now: float) -> tuple[Output, ...]:
        """Take one event and return what it leads to, in order; KeyError for an event of unknown type."""
        handler = self.handlers.get(type(event))
        if handler is None:
            raise KeyError(type(event))
        handler(event, now)
        out, self._out = tuple(self._out), []
        return out

    def _tell(self, turned: AlarmTurned) -> None:
        self._out.append(turned)

    def _cleared_touched(self, number: int) -> None:
        self.sections.cleared.touch(number)
        self.kept.touch(CLEARED, number)

    def next_deadline(self) -> float | None:
        """Return when `DeadlineReached` is due, None for never."""
        times = [at_s for at_s in (self._due.next(), self._judge.next_deadline()) if at_s is not None]
        return min(times, default=None)

    # Facts

    def _switch_connected(self, event: SwitchConnected, now: float) -> None:
        self.known.switch_connected(event, now)
        self._switch_touched(event.dpid, now)

    def _switch_disconnected(self, event: SwitchDisconnected, now: float) -> None:
        self.known.switch_disconnected(event.dpid, now)
        self._switch_touched(event.dpid, now)

    def _port_changed(self, event: PortChanged, now: float) -> None:
        if not self.known.port_changed(event, now):
            return
        end = End(event.dpid, event.port.port_no)
        if end in self.known.expected_ports:
            self._judge.look(("port", end), now)
        for link in list(self.known.links_of(event.dpid)):
            if end in link.cable:
                self._link_touched(link, now)

    def _topology_changed(self, event: Any, now: float) -> None:
        known = self.known
        if isinstance(event, HostGone):
            self._count_hosts(event.dpid, now)
        if not self.fabric.apply(event) or isinstance(event, HostGone | PortRoleChanged):
            return
        if self.fabric.graph.version != self._surveyed_version and AlarmTask.SURVEY not in self._due:
            self._due.set(AlarmTask.SURVEY, now + self._facts.settings.settle_s)
        if isinstance(event, SwitchUp | SwitchDown):
            switch = known.switch(event.dpid)
            if switch is not None:
                switch.present = isinstance(event, SwitchUp)
            if isinstance(event, SwitchDown):
                for cable in [link.cable for link in known.links_of(event.dpid) if link.is_up]:
                    for link in known.link_down(cable, now):
                        self._link_touched(link, now)
            self._switch_touched(event.dpid, now)
        elif isinstance(event, LinkUp):
            for link in known.link_up(event, now):
                self._link_touched(link, now)
            for dpid in (event.dpid_a, event.dpid_b):
                self.kept.touch("switch", dpid)
        elif isinstance(event, LinkDown):
            for link in known.link_down(cable_of(*event), now):
                self._link_touched(link, now)

    def _count_hosts(self, dpid: int, now: float) -> None:
        """Keep how many hosts a switch has before it goes, for they go one by one before it."""
        switch = self.known.switches.get(dpid)
        if switch is not None and now - switch.counted_s > TOGETHER_S:
            switch.host_count, switch.counted_s = len(self.fabric.hosts_of(dpid)), now
            self.kept.touch("switch", dpid)

    def _trees_repaired(self, event: TreesRepaired, now: float) -> None:
        link = self.known.links.get(cable_of(*event[:4]))
        if link is not None and self.known.is_missing(link):
            link.repaired_count += event.tree_count
            self._link_touched(link, now)

    # Reports

    def _reported(self, event: ConditionReported, now: float) -> None:
        key = alarm_key(event.kind, event.subject)
        reports = self._facts.reports.get(key)
        if reports is None or event.source not in reports:
            if self._report_count >= REPORTED_BOUND:
                self.counters["reports-over-limit"] += 1
                return
            self._report_count += 1
            reports = self._facts.reports.setdefault(key, {})
        reports[event.source] = event
        self._judge.judge(("reported", key), now)

    def _report_over(self, event: ConditionOver, now: float) -> None:
        key = alarm_key(event.kind, event.subject)
        reports = self._facts.reports.get(key, {})
        if reports.pop(event.source, None) is not None:
            self._report_count -= 1
        if not reports:
            self._facts.reports.pop(key, None)
        self._judge.judge(("reported", key), now)

    # Looking

    def _switch_touched(self, dpid: int, now: float) -> None:
        self._judge.look(("switch", dpid), now)
        neighbours = {link.cable.beyond(dpid) for link in self.known.links_of(dpid)}
        for end in self.known.expected_ports_of(dpid):
            self._judge.look(("port", end), now)
        self._look_at_links(dpid, now)
        for neighbour in neighbours:
            self._trouble_may_differ(neighbour, now)
        self._troubled[dpid] = causes.is_troubled(self.known, dpid)
        self.sections.touch_switch(dpid)
        self.kept.touch("switch", dpid)

    def _link_touched(self, link: KnownLink, now: float) -> None:
        self._judge.look(("link", link.cable), now)
        for dpid in link.cable.pair:
            self._trouble_may_differ(dpid, now)
            if alarm_key(causes.SWITCH_DOWN, str(dpid)) in self.register.open:
                self._judge.look(("switch", dpid), now)
        self.sections.touch_link(link.cable)
        self.kept.touch("link", link.cable)

    def _trouble_may_differ(self, dpid: int, now: float) -> None:
        troubled = causes.is_troubled(self.known, dpid)
        if troubled == self._troubled.get(dpid, False):
            return
        self._troubled[dpid] = troubled
        self._judge.look(("switch", dpid), now)
        self._look_at_links(dpid, now)

    def _look_at_links(self, dpid: int, now: float) -> None:
        """Look at the links of a switch that may be troubled, and thus at what follows from the trouble of others."""
        for link in list(self.known.links_of(dpid)):
            self._judge.look(("link", link.cable), now)
            self.sections.touch_link(link.cable)

    def _look_at_all(self, now: float) -> None:
        for dpid in list(self.known.switches):
            self._switch_touched(dpid, now)

    # Time

    def _on_deadline(self, now: float) -> None:
        for due in list(self._due.due(now)):
            if due is AlarmTask.SURVEY:
                self._survey(now)
            else:
                self._confirm(now)
        self._judge.on_deadline(now)

    def _survey(self, now: float) -> None:
        """Find the parts into which the fabric fell, and the tiers of its switches, once it is calm."""
        graph = self.fabric.graph
        if graph.version == self._surveyed_version:
            return
        self._surveyed_version = graph.version
        self._facts.parts = causes.parts_of(graph)
        has_tors = bool(graph.nodes(NodeKind.TOR))
        for dpid, switch in self.known.switches.items():
            if dpid in graph and switch.connected and (graph.neighbours(dpid) or switch.level is None):
                level = graph.level(dpid)
                tier = tier_of(level, has_tors)
                if (switch.level, switch.tier) != (level, tier.value):
                    switch.level, switch.tier = level, tier.value
                    self.kept.touch("switch", dpid)
        for alarm in list(self.register):
            if alarm.condition.kind == causes.LINK_FAILED and alarm.over_s is None:
                self._judge.look(("link", read_cable(alarm.condition.subject)), now)

    def _confirm(self, now: float) -> None:
        for alarm in list(self.register):
            subject = causes.subject_of(alarm.condition)
            if not alarm.is_confirmed and (subject is None or not causes.is_known(self.known, subject)):
                self._judge.over(alarm.key, now)

    # Restart, policy, operators

    def _read(self, event: AlarmsRead, now: float) -> None:
        self._facts.started_s = now
        unreadable = restore_known(self.known, event.parts, self._facts.offset_s)
        for key, document in event.parts.get("alarm", {}).items():
            alarm = read_alarm(document, self._facts.offset_s)
            if alarm is None or alarm.key != key:
                unreadable += 1
            else:
                self.register.open[key] = alarm
        cleared, unread = read_cleared(event.parts.get(CLEARED, {}), self._facts.offset_s)
        self._history.restore(cleared)
        unreadable += unread
        if unreadable:
            self.counters["unreadable-records"] += unreadable
            text = f"{unreadable} records of alarms and of the known fabric cannot be read and are left out."
            self._out.append(Notice("alarms-unreadable", text))
        self._due.set(AlarmTask.CONFIRM, now + CONFIRM_S)
        ready_s = now + max(self._facts.settings.settle_s, self._facts.settings.start_grace_s)
        subjects = [("switch", dpid) for dpid in self.known.switches] + [
            ("link", cable) for cable in self.known.links
        ]
        for subject in subjects:
            self._judge.look_at(subject, ready_s)
        self.sections.known_changed()

    def _changed(self, event: AlarmsChanged, now: float) -> None:
        self._facts.settings = event.settings
        known = self.known
        before = (known.expected_switches, known.expected_links, known.expected_ports)
        switches, links = set(known.switches), set(known.links)
        known.expect(event.topology)
        if before == (known.expected_switches, known.expected_links, known.expected_ports):
            return
        for dpid in switches ^ known.switches.keys():
            self.kept.touch("switch", dpid)
        for cable in links ^ known.links.keys():
            self.kept.touch("link", cable)
        for alarm in list(self.register):
            subject = causes.subject_of(alarm.condition)
            if subject is not None and not causes.is_known(self.known, subject):
                self._judge.over(alarm.key, now)
        self._look_at_all(now)
        self.sections.known_changed()

    def _acknowledge(self, event: AcknowledgeAsked, now: float) -> None:
        alarm = self.register.open.get(event.key)
        if alarm is None:
            self._out.append(ActionRefused("key", f"key: no alarm {event.key!r} is open"))
            return
        alarm.acknowledged_by, alarm.acknowledged_s = event.by or "an operator", now
        self._judge.touched(event.key)
        self.sections.acknowledged(alarm, now)
        self._out.append(ActionTaken(self.sections.document(alarm)))

    def _forget(self, event: ForgetSwitchAsked | ForgetLinkAsked, now: float) -> None:
        kind, field = ("switch", "dpid") if isinstance(event, ForgetSwitchAsked) else ("link", "link")
        subject = (kind, event[0])
        refusal = causes.why_kept(self.known, subject)
        if refusal is not None:
            self._out.append(ActionRefused(field, f"{field}: {refusal}"))
            return
        self._forget_known(subject, now)
        self.sections.forgotten(subject, now)
        self._out.append(ActionTaken({field: event[0] if kind == "switch" else str(event[0]), "forgotten": True}))

    def _forget_known(self, subject: Subject, now: float) -> None:
        kind, what = subject
        cables: Iterable[Cable] = self.known.forget_switch(what) if kind == "switch" else (what,)
        if kind == "switch":
            self._troubled.pop(what, None)
            self._no_more(subject, now)
        for cable in cables:
            self.known.forget_link(cable)
            self._no_more(("link", cable), now)
            for dpid in cable.pair:
                self._trouble_may_differ(dpid, now)

    def _no_more(self, subject: Subject, now: float) -> None:
        kind, what = subject
        self._judge.forget(subject, now)
        self.kept.touch(kind, what)
        if kind == "switch":
            self.sections.touch_switch(what)
        else:
            self.sections.touch_link(what)
