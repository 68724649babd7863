"""The performance core: events of ports and samples of their counters in, rates, events and what to write out."""

from __future__ import annotations

from collections import Counter as Tally
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from controller.effects import Notice
from controller.events import Port
from controller.performance import effects, inputs
from controller.performance.alarms import PortEvents
from controller.performance.batch import Discontinuity, SampleRates, Samples
from controller.performance.core_settings import CoreSettings
from controller.performance.counters import COUNTERS, FIRST_ERROR_COLUMN, UNSUPPORTED, Counter
from controller.performance.deadband import WriteFilter
from controller.performance.events import PortEvent
from controller.performance.histograms import Histograms
from controller.performance.history import PortHistory, RateHistory
from controller.performance.ports import PortRows, longer
from controller.performance.rates import RateTable
from controller.performance.reports import HistogramReport, PortReport, ResetReport
from controller.performance.rollups import STEPS_S, RollUpTable
from controller.performance.thresholds import ThresholdTable
from topology.graph import NodeKind

REMEMBERED_EVENTS = 1024
REMEMBERED_RESETS = 1024
STICKY_AGAIN_S = 60.0
"""Time between two requests to reset the counters of a port."""


UTILISATION, ERRORS = "utilisation", "errors"
RANKINGS: tuple[str, ...] = (UTILISATION, ERRORS, *COUNTERS)
"""What `PerformanceCore.top` can rank by."""


class PerformanceCore:
    """Follows every port of the fabric. Time is given: `now` in epoch seconds, as in the samples.

    Parameters
    ----------
    settings
        The settings; `SettingsChanged` replaces them, all but `max_ports` and `sticky_bits`.

    Attributes
    ----------
    ports
        Row numbers; samples name ports by them (`PortRows.rows_of`).
    tally
        How often what happened: ``samples``, ``samples-of-unknown-ports``, ``discontinuity-<label>``, ...
    """

    def __init__(self, settings: CoreSettings | None = None) -> None:
        self.settings = settings or CoreSettings()
        self.ports = PortRows(self.settings.max_ports)
        self.tally: Tally[str] = Tally()
        self._rates = RateTable(self.ports, self.settings.sticky_bits)
        self._thresholds = ThresholdTable(self.settings.thresholds)
        self._alarms = PortEvents(self.ports, self.settings.max_ports)
        self._filter = WriteFilter(self.settings.deadband)
        self._histograms = Histograms()
        self._history = RateHistory()
        self._rollups = tuple(RollUpTable(step_s) for step_s in STEPS_S)
        self._per_s = np.empty((0, len(COUNTERS)), np.float32)
        self._utilisation_pct = np.empty((0, 2), np.float32)
        self._discontinuities = np.empty(0, np.uint32)
        self._unsupported = np.empty(0, np.uint16)
        self._since_s = np.empty(0)
        self._sticky_s = np.empty(0)
        self._events: deque[PortEvent] = deque(maxlen=REMEMBERED_EVENTS)
        self._resets: deque[ResetReport] = deque(maxlen=REMEMBERED_RESETS)
        self._out: list[effects.PerformanceEffect] = []
        self._handlers: dict[type, Callable[[Any, float], None]] = {
            inputs.MonitoredSwitchUp: self._switch_up,
            inputs.MonitoredSwitchDown: self._switch_down,
            inputs.SwitchLeft: self._switch_left,
            inputs.SwitchClassified: self._switch_classified,
            inputs.PortUp: self._port_up,
            inputs.MonitoredPortChanged: self._port_changed,
            inputs.PortDown: self._port_down,
            inputs.SamplesReceived: self._samples_received,
            inputs.SettingsChanged: self._settings_changed,
            inputs.Tick: self._tick,
        }

    def handle(self, event: inputs.Input, now: float) -> tuple[effects.PerformanceEffect, ...]:
        """Take one event and return what is to be done, in order; KeyError for an event of unknown type."""
        self._handlers[type(event)](event, now)
        out, self._out = tuple(self._out), []
        return out

    # Questions.

    def report(
        self, dpid: int | None = None, port_no: int | None = None, kind: NodeKind | None = None
    ) -> tuple[PortReport, ...]:
        """Return what is known of ports: of a switch, of one port, of switches of a class, or of all."""
        return tuple(self._report(row) for row in self._chosen(dpid, port_no, kind))

    def port(self, row: int) -> PortReport:
        """Return what is known of the port in a row that has been given out."""
        self._fit()
        return self._report(row)

    def top(self, count: int, by: str = UTILISATION) -> tuple[PortReport, ...]:
        """Return the ports with the highest last rates, highest first; ValueError for a ranking not in `RANKINGS`."""
        if by not in RANKINGS:
            raise ValueError(f"{by!r} is not one of {', '.join(RANKINGS)}")
        if by == UTILISATION:
            values = np.fmax(self._utilisation_pct[:, 0], self._utilisation_pct[:, 1])
        elif by == ERRORS:
            values = np.nansum(self._per_s[:, FIRST_ERROR_COLUMN:], axis=1)
        else:
            values = self._per_s[:, Counter(by).column]
        values = np.where(self.ports.present[: len(values)] & (values > 0), values, -1.0)
        order = np.argsort(-values, kind="stable")[: max(count, 0)]
        return tuple(self._report(row) for row in order.tolist() if values[row] > 0)

    def histogram(self, counter: Counter, dpid: int | None = None) -> HistogramReport:
        """Return how the rates of a counter are distributed, at a switch or over all; KeyError for no such switch."""
        if dpid is None:
            return self._histograms.report(counter)
        node = self.ports.node_of(dpid)
        if node is None:
            raise KeyError(dpid)
        return self._histograms.report(counter, node)

    def history(self, dpid: int, port_no: int) -> PortHistory:
        """Return the last hour of a port; KeyError where there is no such port."""
        row = self.ports.row(dpid, port_no)
        if row is None:
            raise KeyError((dpid, port_no))
        self._fit()
        return self._history.of(row)

    @property
    def history_step_s(self) -> float:
        """The length of a step of `history`."""
        return self._history.step_s

    def resets(self) -> tuple[ResetReport, ...]:
        """Return the latest resets, oldest first; the last one of each port is in its report."""
        return tuple(self._resets)

    def events(self) -> tuple[PortEvent, ...]:
        """Return the latest events, oldest first."""
        return tuple(self._events)

    @property
    def events_suppressed(self) -> int:
        """How many events were kept back because their port had too many."""
        return self._alarms.suppressed

    def zero(self, now: float, dpid: int | None = None, port_no: int | None = None) -> int:
        """Let the totals of ports begin anew, record that, and return how many ports it were; rates go on."""
        rows = list(self._chosen(dpid, port_no, None))
        self._rates.zero(np.array(rows, np.int32))
        self._since_s[rows] = now
        for row in rows:
            self._reset_seen(row, now, "on-request")
        return len(rows)

    # Switches and ports.

    def _switch_up(self, event: inputs.MonitoredSwitchUp, now: float) -> None:
        numbers = {port.port_no for port in event.ports}
        for row in self.ports.rows_of_switch(event.dpid):
            gone = self.ports.name(row).port_no
            if gone not in numbers:
                self._port_down(inputs.PortDown(event.dpid, gone), now)
        for port in event.ports:
            row_known = self.ports.row(event.dpid, port.port_no)
            if row_known is not None and self.ports.present[row_known]:
                self._port_changed(inputs.MonitoredPortChanged(event.dpid, port), now)
            else:
                self._add(event.dpid, port, now)
        kind = self.ports.kind(event.dpid) if event.kind is None else event.kind
        self._switch_classified(inputs.SwitchClassified(event.dpid, kind), now)

    def _switch_down(self, event: inputs.MonitoredSwitchDown, now: float) -> None:
        self.tally["switches-gone"] += 1
        self.ports.release(event.dpid)
        rows = list(self.ports.rows_of_switch(event.dpid))
        self._per_s[rows] = self._utilisation_pct[rows] = np.nan

    def _switch_left(self, event: inputs.SwitchLeft, now: float) -> None:
        self.ports.leave(event.dpid)
        for row in self.ports.rows_of_switch(event.dpid):
            self._tell(self._alarms.forget(row, now))
            self._rates.forget(row)
            self._thresholds.forget(row)
            self._per_s[row] = self._utilisation_pct[row] = np.nan

    def _switch_classified(self, event: inputs.SwitchClassified, now: float) -> None:
        self.ports.classify(event.dpid, event.kind)
        self._expect(self.ports.rows_of_switch(event.dpid), event.kind)

    def _port_up(self, event: inputs.PortUp, now: float) -> None:
        row = self._add(event.dpid, event.port, now)
        if row is not None:
            self._expect((row,), self.ports.kind(event.dpid))

    def _port_changed(self, event: inputs.MonitoredPortChanged, now: float) -> None:
        port = event.port
        row = self.ports.change(event.dpid, port.port_no, port.name, self._capacity_bps(port))
        if row is None or not self.ports.present[row]:
            self._port_up(inputs.PortUp(event.dpid, port), now)
        elif self.ports.set_link(row, port.up):
            self._tell(self._alarms.link(row, port.up, now))

    def _port_down(self, event: inputs.PortDown, now: float) -> None:
        row = self.ports.remove(event.dpid, event.port_no)
        if row is not None:
            self._tell(self._alarms.forget(row, now))
            self._thresholds.forget(row)
            self._per_s[row] = self._utilisation_pct[row] = np.nan

    def _add(self, dpid: int, port: Port, now: float) -> int | None:
        added = self.ports.add(dpid, port.port_no, port.name, self._capacity_bps(port))
        for node in self.ports.freed_nodes:
            self._histograms.forget(node)
        self.ports.freed_nodes.clear()
        if added is None:
            self.tally["ports-over-limit"] += 1
            if self.tally["ports-over-limit"] == 1:
                self._out.append(
                    Notice(
                        "ports-over-limit",
                        f"Port {dpid}:{port.port_no} is not watched: {self.ports.max_ports} ports are the limit.",
                    )
                )
            return None
        self._fit()
        row = added.row
        if added.fresh:
            self._tell(self._alarms.forget(row, now))
            self._forget(row)
        self.ports.set_link(row, port.up)
        return row

    def _forget(self, row: int) -> None:
        """Empty a row for another port."""
        self._rates.forget(row)
        self._thresholds.forget(row)
        self._filter.forget(row)
        self._history.forget(row)
        for table in self._rollups:
            table.forget(row)
        self._per_s[row] = self._utilisation_pct[row] = np.nan
        self._discontinuities[row] = self._unsupported[row] = 0
        self._since_s[row] = np.nan
        self._sticky_s[row] = -np.inf

    def _capacity_bps(self, port: Port) -> float:
        return self.settings.capacity_bps or port.speed_bps

    def _expect(self, rows: tuple[int, ...], kind: NodeKind) -> None:
        self._fit()
        self._rates.expected_s[list(rows)] = self.settings.class_interval_s.get(kind, self.settings.interval_s)

    def _fit(self) -> None:
        """Make room for all rows in every table."""
        former, capacity = len(self._since_s), self.ports.capacity
        if former == capacity:
            return
        self._rates.fit()
        self._thresholds.fit(capacity)
        self._filter.fit(capacity)
        self._history.fit(capacity)
        self._per_s = longer(self._per_s, capacity)
        self._utilisation_pct = longer(self._utilisation_pct, capacity)
        self._per_s[former:] = self._utilisation_pct[former:] = np.nan
        self._discontinuities = longer(self._discontinuities, capacity)
        self._unsupported = longer(self._unsupported, capacity)
        self._since_s, self._sticky_s = longer(self._since_s, capacity), longer(self._sticky_s, capacity)
        self._since_s[former:], self._sticky_s[former:] = np.nan, -np.inf

    # Samples.

    def _samples_received(self, event: inputs.SamplesReceived, now: float) -> None:
        samples = event.samples
        unknown = (samples.rows < 0) | (samples.rows >= len(self.ports))
        if unknown.any():
            self.tally["samples-of-unknown-ports"] += int(unknown.sum())
            samples = samples.take(~unknown)
        if not len(samples):
            return
        self._fit()
        for part in self._rounds(samples):
            self._judge(part)

    def _rounds(self, samples: Samples) -> Iterator[Samples]:
        """Yield the samples in order, no two of a port together."""
        if not self._rates.repeats(samples.rows):
            yield samples
            return
        left = np.arange(len(samples))
        while left.size:
            _, first = np.unique(samples.rows[left], return_index=True)
            chosen = np.zeros(len(left), np.bool_)
            chosen[first] = True
            yield samples.take(left[chosen])
            left = left[~chosen]

    def _judge(self, samples: Samples) -> None:
        rates = self._rates.update(samples)
        self.tally["samples"] += len(samples)
        self._out.append(effects.SamplesRated(samples, rates, self._filter.update(rates)))
        if rates.discontinuity.any():
            self._count_discontinuities(rates)
            ignored = (rates.discontinuity == Discontinuity.DUPLICATE) | (rates.discontinuity == Discontinuity.LATE)
            if ignored.any():
                rates, samples = rates.take(~ignored), samples.take(~ignored)
        rows, capacity = rates.rows, self.ports.capacity
        self._per_s[rows] = rates.per_s
        self._utilisation_pct[rows] = rates.utilisation_pct
        self._unsupported[rows] = rates.unsupported
        self._tell(self._alarms.crossings(self._thresholds.update(rates, self.ports.kind_code[rows])))
        self._histograms.update(rates, self.ports.node[rows], self.ports.node_count)
        self._history.update(rates)
        for table in self._rollups:
            closed = table.update(rates, capacity)
            if closed is not None:
                self._out.append(effects.RollUpsClosed(closed))
        if self.settings.sticky_bits:
            self._reset_near_full(samples)

    def _count_discontinuities(self, rates: SampleRates) -> None:
        code = rates.discontinuity
        for value, count in enumerate(np.bincount(code).tolist()):
            if value and count:
                self.tally[f"discontinuity-{Discontinuity(value).label}"] += count
        begun = rates.rows[np.isnan(self._since_s[rates.rows])]
        self._since_s[begun] = self._rates.at_s[begun]
        counted = (code != Discontinuity.NONE) & (code != Discontinuity.FIRST)
        self._discontinuities[rates.rows[counted]] += np.uint32(1)
        anew = (code == Discontinuity.RESET) | (code == Discontinuity.RECREATED)
        for index in np.flatnonzero(anew)[-REMEMBERED_RESETS:].tolist():
            label = Discontinuity(int(code[index])).label
            self._reset_seen(int(rates.rows[index]), float(rates.at_s[index]), label)

    def _reset_seen(self, row: int, at_s: float, reason: str) -> None:
        name = self.ports.name(row)
        self._resets.append(ResetReport(at_s, name.dpid, name.port_no, reason))

    def _reset_near_full(self, samples: Samples) -> None:
        """Ask for a reset of ports where a counter that sticks is past 3/4 of full scale, as OpenSM does.

        It is an event until no counter of the port is there any more.
        """
        counters = samples.counters
        span = 1 << self.settings.sticky_bits
        near = (counters >= np.uint64(span // 4 * 3)) & (counters <= np.uint64(span - 1))
        near &= counters != np.uint64(UNSUPPORTED)
        full, since_s = near.any(axis=1), samples.at_s - self._sticky_s[samples.rows]
        events: list[PortEvent] = []
        for index in np.flatnonzero(~full & np.isfinite(since_s)).tolist():
            events += self._alarms.counters_low(int(samples.rows[index]), float(samples.at_s[index]))
        due = full & (since_s >= STICKY_AGAIN_S)
        for index in np.flatnonzero(due).tolist():
            row = int(samples.rows[index])
            self._sticky_s[row] = samples.at_s[index]
            name, column = self.ports.name(row), int(np.argmax(near[index]))
            self._out.append(
                effects.ResetCounters(name.dpid, name.port_no, COUNTERS[column], int(counters[index, column]))
            )
            filled_pct = float(counters[index, column]) / span * 100
            events += self._alarms.counter_full(row, float(samples.at_s[index]), filled_pct)
        self._tell(events)

    # Time and settings.

    def _tick(self, event: inputs.Tick, now: float) -> None:
        self._tell(self._alarms.tick(now))
        for table in self._rollups:
            closed = table.flush(now)
            if closed is not None:
                self._out.append(effects.RollUpsClosed(closed))

    def _settings_changed(self, event: inputs.SettingsChanged, now: float) -> None:
        former, self.settings = self.settings, event.settings
        if event.settings.thresholds != former.thresholds:
            self._thresholds.configure(event.settings.thresholds)
            self._tell(self._alarms.rules_changed(now))
        if event.settings.deadband != former.deadband:
            self._filter.configure(event.settings.deadband)
        for dpid in self.ports.switches():
            self._expect(self.ports.rows_of_switch(dpid), self.ports.kind(dpid))

    def _tell(self, events: list[PortEvent]) -> None:
        if events:
            self._events.extend(events)
            self._out.append(effects.EventsRaised(tuple(events)))

    # Reports.

    def _chosen(self, dpid: int | None, port_no: int | None, kind: NodeKind | None) -> Iterator[int]:
        self._fit()
        for number in self.ports.switches() if dpid is None else (dpid,):
            if kind is not None and self.ports.kind(number) is not kind:
                continue
            for row in self.ports.rows_of_switch(number):
                if port_no is None or self.ports.name(row).port_no == port_no:
                    yield row

    def _report(self, row: int) -> PortReport:
        name, seen = self.ports.name(row), not np.isnan(self._since_s[row])
        lacking = int(self._unsupported[row])
        totals: NDArray[np.uint64] = self._rates.totals[row]
        return PortReport(
            name.dpid,
            name.port_no,
            name.name,
            self.ports.kind(name.dpid),
            float(self.ports.speed_bps[row]),
            bool(self.ports.present[row]),
            bool(self.ports.link_up[row]),
            _some(self._rates.at_s[row]),
            tuple(_some(rate) for rate in self._per_s[row]),
            _some(self._utilisation_pct[row, 0]),
            _some(self._utilisation_pct[row, 1]),
            tuple(None if not seen or lacking >> column & 1 else int(total) for column, total in enumerate(totals)),
            _some(self._since_s[row]),
            _some(self._rates.reset_s[row]),
            int(self._discontinuities[row]),
            self._alarms.raised(row),
        )


def _some(value: np.floating[Any]) -> float | None:
    return None if np.isnan(value) else float(value)
