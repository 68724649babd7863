"""The core of the live comparison: samples of ports in, anomalies raised and cleared out."""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from controller.anomaly.live_cells import Cells
from controller.anomaly.live_events import (
    WHOLE_SWITCH,
    AnomalyChanged,
    AnomalyTurned,
    MemberKey,
    OpenAnomaly,
    PortsSampled,
    RetrainAsked,
)
from controller.anomaly.live_faults import FaultReporter
from controller.anomaly.live_groups import PeerGroups, Peers
from controller.anomaly.live_learning import OVERALL, Judgement, Learning
from controller.anomaly.live_members import NO_ROW, MemberRows, member_name
from controller.anomaly.live_metrics import (
    PORT_METRICS,
    QUANTITIES,
    SWITCH_METRICS,
    Metric,
    MetricSubject,
    cells_needed,
    described,
    kind_of_fault,
    middle,
    port_amounts,
    port_values,
    switch_values,
)
from controller.anomaly.live_windows import DueGroups, GroupSettings, chain_of
from controller.anomaly.peers.diagnosis import NEWCOMERS
from controller.anomaly.peers.incidents import SILENT_SHARE
from controller.config.anomaly_settings import Anomaly
from controller.events import DeadlineReached, PortChanged, SwitchConnected, SwitchDisconnected
from topology.events import TOPOLOGY_EVENTS, TopologyEvent

XID_TAG = 0xA6
"""Upper 8 bits of transaction ids; this core sends nothing, so that no reply is its own."""

SPARE_CELLS = 4
"""Cells kept beyond what a window needs, while its groups are judged one after the other."""
GRACE_POLLS = 1.5
"""A window is judged so many times the time between polls after its end."""
SETTLING_WINDOWS = 3
"""For so many windows a member that another group claims is not judged: hosts may be yet to be found."""
REMEMBERED_HOURS = 48
PORTS_AT_ONCE = 512
"""Ports of a group whose values are worked out in one step."""

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]


class AnomalyCore:
    """Compares ports and switches with their peers, window by window.

    Parameters
    ----------
    settings
        The method's parameters.
    poll_s
        The longest time between two polls of a switch.

    Attributes
    ----------
    members
        Who is compared, and the score of each.
    open
        The anomalies that hold at present, by member.
    faults
        Those of them that are told: each fault once.
    persistent
        The latest hours: start of the hour in epoch seconds, and the members with the highest accumulators.
    dirty, forgotten
        Whose state changed and is to be kept, and who is to be forgotten.
    tally
        How often what happened: ``samples``, ``windows``, ``clock-steps``, ``members-over-limit``, ...
    """

    def __init__(self, settings: Anomaly, poll_s: float) -> None:
        self.peers = PeerGroups()
        self.members = MemberRows(settings.members)
        self.open: dict[MemberKey, OpenAnomaly] = {}
        self.faults = FaultReporter()
        self.persistent: deque[tuple[float, list[tuple[int, str, str]]]] = deque(maxlen=REMEMBERED_HOURS)
        self.tally: Counter[str] = Counter()
        self.dirty: dict[MemberKey, None] = {}
        self.forgotten: list[MemberKey] = []
        self._known: Peers = Peers({}, {})
        self._known_of = (-1, "")
        self._due = DueGroups()
        self._of_group: dict[str, list[MemberKey]] = {}
        self._work: Iterator[None] | None = None
        self._work_shift = 0
        self._out: list[AnomalyTurned] = []
        self._start(settings, poll_s)
        self.handlers: dict[type, Callable[[Any], None]] = {
            PortsSampled: self._ports_sampled,
            AnomalyChanged: self._changed,
            RetrainAsked: self._retrain,
            DeadlineReached: self._judge_next,
            **dict.fromkeys((SwitchConnected, SwitchDisconnected, PortChanged), lambda _event: None),
            **dict.fromkeys(TOPOLOGY_EVENTS, self._topology_changed),
        }

    @property
    def xid_tag(self) -> int:
        """The upper 8 bits of this core's transaction ids."""
        return XID_TAG

    @property
    def bytes_per_member(self) -> int:
        """Memory that a member's arrays take."""
        return self.cells.bytes_per_row + self.learning.bytes_per_row + self.members.bytes_per_row

    def handle(self, event: Any, _now: float) -> tuple[AnomalyTurned, ...]:
        """Take one event and return what was raised and cleared; KeyError for an event of unknown type."""
        self.handlers[type(event)](event)
        out, self._out = tuple(self._out), []
        return out

    def next_deadline(self) -> float | None:
        """Return the time, long past, at which `DeadlineReached` is due where groups wait to be judged, else None."""
        return 0.0 if self._due or self._work is not None else None

    @property
    def chain(self) -> str:
        """What learnt values hold for: they are of no use to a core of another chain."""
        return self.learning.groups.chain(self.cells.interval_s)

    def group_of(self, row: int) -> str:
        """Return the peer group that a member is compared in, '' where it has none."""
        group = self.members.groups[row]
        if group is None:
            return ""
        return NEWCOMERS + group if self.members.was_newcomer[row] else group

    def verdict_of(self, row: int) -> str | None:
        """Return what an open anomaly of a member is taken for, None without one."""
        key = self.members.keys[row]
        found = None if key is None else self.open.get(key)
        return None if found is None else found.verdict

    # Events.

    def _start(self, settings: Anomaly, poll_s: float) -> None:
        """Begin with nothing learnt."""
        self.settings, self._poll_s = settings, poll_s
        self.learning = Learning(settings)
        self.cells = self._cells()
        self._due.clear()
        self._work = None
        self._fit()

    def _cells(self) -> Cells:
        interval_s = max(self.settings.interval_s, self._poll_s)
        spare = math.ceil(GRACE_POLLS * self._poll_s / interval_s) + SPARE_CELLS
        return Cells(interval_s, self.learning.groups.cells_needed + spare, QUANTITIES)

    def _changed(self, event: AnomalyChanged) -> None:
        if (event.settings, event.poll_s) == (self.settings, self._poll_s):
            return
        before = self.chain
        now = GroupSettings(event.settings).chain(max(event.settings.interval_s, event.poll_s))
        if chain_of(now, "") == chain_of(before, ""):
            self.settings, self._poll_s = event.settings, event.poll_s
            self.learning.configure(event.settings)
            if now != before:
                self._follow_windows(before, now)
        else:
            self._start(event.settings, event.poll_s)
            self.members.groups = [None] * len(self.members.groups)
            self.tally["learnt-anew"] += 1
        self.members.most = event.settings.members

    def _follow_windows(self, before: str, now: str) -> None:
        """Learn anew of the groups that have other windows now."""
        for group in {group for group in self.members.groups if group is not None}:
            if chain_of(before, group) != chain_of(now, group):
                self._learn_anew(group)
        wanted = self._cells()
        if wanted.depth != self.cells.depth:
            self.cells = wanted
            self._fit()
        self._due.clear()
        self._work = None
        self.tally["learnt-anew"] += 1

    def _retrain(self, event: RetrainAsked) -> None:
        groups = set(self.members.groups) if event.peer_group is None else {event.peer_group}
        for group in groups - {None}:
            self._learn_anew(str(group))
        self.tally["learnt-anew"] += 1

    def _learn_anew(self, group: str) -> None:
        rows = [row for row, name in enumerate(self.members.groups) if name == group]
        self.learning.forget(np.array(rows, np.intp))
        self.learning.forget_bins(group)
        self.dirty.update(dict.fromkeys(map(self._key, rows)))

    def _topology_changed(self, event: TopologyEvent) -> None:
        self.peers.apply(event)

    def _ports_sampled(self, event: PortsSampled) -> None:
        if not len(event.ports):
            return
        self._follow_clock(float(event.at_s.max()))
        rows = np.array([self.add_member(key) for key in event.ports], np.intp)
        taken = rows != NO_ROW
        rows = rows[taken]
        self.tally["samples"] += len(rows)
        amounts = port_amounts(event.per_s[taken], event.utilisation_pct[taken])
        self._add(rows, event.at_s[taken], event.interval_s[taken], amounts)
        newest_s = float(event.at_s.max())
        switches = [(dpid, WHOLE_SWITCH) for dpid in dict.fromkeys(dpid for dpid, _ in event.ports)]
        rows = np.array([self.add_member(key) for key in switches], np.intp)
        fresh = np.flatnonzero((rows != NO_ROW) & ~(self.members.sampled_s[rows] >= newest_s))
        amounts = np.full((len(fresh), QUANTITIES), np.nan)
        amounts[:, 4] = [event.cpu_pct.get(switches[index][0], np.nan) for index in fresh.tolist()]
        self._add(rows[fresh], np.full(len(fresh), newest_s), np.full(len(fresh), self._poll_s), amounts)
        self._find_due(newest_s)

    def _add(self, rows: Rows, at_s: Floats, interval_s: Floats, amounts: Floats) -> None:
        self.cells.add(rows, at_s, interval_s, amounts)
        self.members.sampled_s[rows] = at_s

    def add_member(self, key: MemberKey) -> int:
        """Return the row of a member, a new one where it has none; `NO_ROW` where there are too many."""
        row = self.members.row(key)
        if row == NO_ROW:
            row = self.members.add(key)
            if row == NO_ROW:
                self.tally["members-over-limit"] += 1
                return row
            self._fit()
            rows = np.array([row])
            self.cells.forget(rows)
            self.learning.forget(rows)
            self.learning.is_switch[row] = key[1] == WHOLE_SWITCH
            self._known_of = (-1, "")
        return row

    def _fit(self) -> None:
        self.cells.fit(self.members.capacity)
        self.learning.fit(self.members.capacity)

    def _follow_clock(self, newest_s: float) -> None:
        """Begin the cells up to now; where the clock was set by more than they span, begin anew."""
        cells = self.cells
        if cells.newest is not None:
            ahead = newest_s / cells.interval_s - cells.newest
            if abs(ahead) > cells.depth:
                self.tally["clock-steps"] += 1
                cells.clear()
                self._due.clear()
                self._work = None
                self.members.sampled_s[:] = np.nan
        cells.advance(newest_s)

    # Windows.

    def _find_due(self, newest_s: float) -> None:
        """Have every group judged where a window has ended."""
        ended = math.floor((newest_s - GRACE_POLLS * self._poll_s) / self.cells.interval_s)
        settings_of = self.learning.groups
        for shift in settings_of.shifts:
            windows = self._due.over(shift, ended)
            if windows is None:
                continue
            former, end = windows
            self._give_up(shift, former)
            self.tally["windows-skipped"] += (end - former) // shift - 1
            self._follow_fabric()
            groups = sorted(group for group in self._of_group if settings_of.of(group).shift_samples == shift)
            self._due.add(groups, end, shift)

    def _give_up(self, shift: int, end: int) -> None:
        """Judge no more of the windows of a shift that ended at cell `end`."""
        is_late = self._work is not None and self._work_shift == shift
        left_out = self._due.give_up(shift)
        if left_out or is_late:
            self._settle(end * self.cells.interval_s)
        if is_late:
            self._work = None
        self.tally["groups-skipped"] += left_out

    def _follow_fabric(self) -> None:
        """Bring peer groups and cables up to date."""
        wanted = (self.peers.version, self.settings.peers)
        if self._known_of == wanted:
            return
        self._known_of = wanted
        self._known = self.peers.of(self.settings.peers)
        self._of_group = {}
        for key, group in self._known.groups.items():
            if self.members.row(key) != NO_ROW:
                self._of_group.setdefault(group, []).append(key)
        members = self.members
        for row, near in enumerate(members.keys):
            far_key = None if near is None else self._known.far.get(near)
            far = NO_ROW if far_key is None else members.row(far_key)
            if far != members.far[row]:
                members.far[row] = far
                members.paired[row] = (self.cells.newest or 0) + 1 if self.tally["windows"] else 0

    def _judge_next(self, _event: DeadlineReached) -> None:
        """Judge a group, or a part of a large one: no more at once than what nobody waits for."""
        if self._work is None:
            if not self._due:
                return
            group, end, self._work_shift = self._due.next()
            self._work = self._judge_group(group, end)
        if next(self._work, self) is self:
            self._work = None

    def _judge_group(self, group: str, end: int) -> Iterator[None]:
        """Judge a group in steps."""
        needed = cells_needed(self.learning.groups.of(group))
        if self.cells.newest is None or end - needed <= self.cells.newest - self.cells.depth:
            self.tally["groups-skipped"] += 1
        else:
            yield from self._compare(group, end)
        if not self._due:
            self._end_window(end * self.cells.interval_s)

    def _compare(self, group: str, end: int) -> Iterator[None]:
        rows = self._settled(group, self.members.rows(self._of_group.get(group, ())))
        if not len(rows):
            return
        newcomers = self._newcomers(group, rows)
        self._promote(rows[~newcomers])
        self.members.was_newcomer[rows] = newcomers
        for part, name in ((rows[~newcomers], group), (rows[newcomers], NEWCOMERS + group)):
            if len(part):
                metrics: tuple[Metric, ...]
                if self.learning.is_switch[part[0]]:
                    metrics, values = SWITCH_METRICS, self._switch_values(group, part, end)
                else:
                    metrics, values = PORT_METRICS, (yield from self._port_values(group, part, end))
                self.tally["windows"] += len(part)
                found = yield from self.learning.judge(name, metrics, part, values)
                self.members.score[part] = found.overall
                self.dirty.update(dict.fromkeys(map(self._key, part.tolist())))
                self._turn(name, metrics, part, values, found, end * self.cells.interval_s)

    def _settled(self, group: str, rows: Rows) -> Rows:
        """Return those of the members that this group has for certain; others begin anew once they stay in it."""
        members, settled = self.members, []
        for row in rows.tolist():
            former = members.groups[row]
            if former != group:
                members.unsettled[row] += 1
                if former is not None and members.unsettled[row] <= SETTLING_WINDOWS:
                    continue
                if former is not None:
                    self.learning.forget(np.array([row]))
                members.groups[row] = group
            members.unsettled[row] = 0
            settled.append(row)
        return np.array(settled, np.intp)

    def _newcomers(self, group: str, rows: Rows) -> NDArray[np.bool_]:
        """Return which members came when others of the group had scores already, and have not been there for long."""
        ages, settings = self.learning.age(rows), self.learning.groups.of(group)
        came = (ages == 0) & (ages.max() > settings.least_windows) | self.members.was_newcomer[rows]
        return np.asarray(came & (ages < settings.newcomer_windows))

    def _promote(self, rows: Rows) -> None:
        """Let newcomers that have been there long enough have the usual threshold of the group that takes them."""
        came = self.members.was_newcomer[rows]
        if came.any() and not came.all():
            self.learning.largest[rows[came]] = np.median(self.learning.largest[rows[~came]], axis=0)

    def _port_values(self, group: str, rows: Rows, end: int) -> Generator[None, None, Floats]:
        """Return the values of ports, in steps."""
        members, settings, found = self.members, self.learning.groups.of(group), []
        for start in range(0, len(rows), PORTS_AT_ONCE):
            some = rows[start : start + PORTS_AT_ONCE]
            found.append(port_values(self.cells, some, members.far[some], members.paired[some], end, settings))
            yield
        return np.concatenate(found, axis=1)

    def _switch_values(self, group: str, rows: Rows, end: int) -> Floats:
        members = self.members
        ports: dict[int, list[int]] = {self._dpid(row): [] for row in rows.tolist()}
        for row, key in enumerate(members.keys):
            if key is not None and key[1] != WHOLE_SWITCH and key[0] in ports and key in self._known.groups:
                ports[key[0]].append(row)
        of_ports = [np.array(ports[self._dpid(row)], np.intp) for row in rows.tolist()]
        return switch_values(self.cells, rows, of_ports, end, self.learning.groups.of(group))

    def _dpid(self, row: int) -> int:
        return self._key(row)[0]

    def _key(self, row: int) -> MemberKey:
        key = self.members.keys[row]
        assert key is not None, "the row is free"
        return key

    def _turn(
        self, group: str, metrics: tuple[Metric, ...], rows: Rows, values: Floats, found: Judgement, at_s: float
    ) -> None:
        """Raise and clear."""
        settings = self.learning.groups.of(group)
        confirmed = self.learning.anomalous(rows, settings.confirm_windows)
        faulty = confirmed[:, OVERALL]
        for index in np.flatnonzero(faulty | np.isin(rows, self.members.rows(self.open))).tolist():
            row = int(rows[index])
            key = self._key(row)
            former = self.open.get(key)
            if faulty[index]:
                since_s = former.since_s if former is not None else self._since_s(row, at_s, settings.shift_samples)
                if np.isnan(found.overall[index]):
                    continue
                column = _worst(found.by_metric[index], confirmed[index])
                metric, value = metrics[column], middle(values[column, index])
                others = middle(np.delete(values[column], index, axis=0))
                self.open[key] = OpenAnomaly(
                    key,
                    member_name(key),
                    group,
                    metric.name,
                    since_s,
                    round(float(found.overall[index]), 3),
                    kind_of_fault(metrics, confirmed[index]),
                    described(member_name(key), metric, value, others, len(rows) - 1),
                    metric.kind is MetricSubject.SILENCE
                    or (metric.kind is MetricSubject.LOAD and value < SILENT_SHARE * others),
                    *(("", "") if former is None else (former.other_end, former.part_of)),
                )
            elif former is not None and self.learning.quiet[row] >= settings.hold_off_windows:
                del self.open[key]

    def _since_s(self, row: int, at_s: float, shift: int) -> float:
        """Return the end of the first anomalous window of those that made a member faulty."""
        windows = self.learning.anomalous_for(row) - 1
        return at_s - windows * shift * self.cells.interval_s

    def _settle(self, at_s: float) -> None:
        """Tell what was raised and cleared."""
        for turned in self.faults.settle(self.open, self._known.far, at_s):
            self.tally[turned.state.value] += 1
            self._out.append(turned)

    def _end_window(self, at_s: float) -> None:
        """Forget who has been gone for long, and note the most persistent where an hour is over."""
        members = self.members
        stale = members.sampled_s < at_s - self.settings.forget_s
        for row in np.flatnonzero(stale).tolist():
            key = members.keys[row]
            if key is not None:
                self.open.pop(key, None)
                members.remove(row)
                self.tally["forgotten"] += 1
                self.dirty.pop(key, None)
                self.forgotten.append(key)
                self._known_of = (-1, "")
        self._settle(at_s)
        hour_s = math.floor(at_s / 3600) * 3600.0
        ranking = self.ranking(self.settings.ranking)
        if self.persistent and self.persistent[-1][0] == hour_s:
            self.persistent[-1] = (hour_s, ranking)
        else:
            self.persistent.append((hour_s, ranking))

    def ranking(self, count: int) -> list[tuple[int, str, str]]:
        """Return accumulator, peer group and name of the most persistent members, the highest first."""
        values = self.learning.accumulator
        order = np.argsort(-values, kind="stable")[:count]
        found = []
        for row in order.tolist():
            key = self.members.keys[row] if row < len(self.members.keys) else None
            if key is not None and values[row] > 0:
                found.append((int(values[row]), self.group_of(row), member_name(key)))
        return found


def _worst(scores: Floats, confirmed: NDArray[np.bool_]) -> int:
    """Return the metric with the highest score, of those anomalous for long enough where there are such."""
    ranked = np.nan_to_num(scores, nan=-1.0)
    return int(np.argmax(np.where(confirmed[:OVERALL], ranked + 1e6, ranked)))
