"""What the monitor has for Prometheus: the last sample of every port, and how switches and outputs fare."""

from __future__ import annotations

import logging
import time
from collections import Counter as Tally
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial

import numpy as np
from numpy.typing import NDArray

from apps.exporters import metrics
from apps.exporters.endpoint import close_endpoint, open_endpoint
from apps.exporters.exposition import MetricFamily, label_set, lines, metric_texts
from apps.exporters.settings import OutputSettings, PrometheusSettings
from apps.exporters.sink import Ask, MakeSink, Overview, RatedSamples, Sink, SinkState, Sources, ask_here
from apps.openflow.questions import Unanswered
from controller.performance.batch import Discontinuity, SampleRates, Samples
from controller.performance.counters import BITS, COUNTER_COUNT, UNSUPPORTED
from controller.performance.events import EventState, PortEvent, PortSeverity
from controller.performance.ports import PortName, PortRows
from controller.performance.rollups import RollUps

STREAM = "monitor"
PIECE_ROWS = 1024
_NEVER = -np.inf
_WRAP_32 = np.uint64(1 << 32)
_ANEW = [Discontinuity.FIRST, Discontinuity.RESET, Discontinuity.RECREATED]
_IGNORED = [kind for kind in Discontinuity if kind.ignored]


class PrometheusSink:
    """Keeps the last sample by row of `ports`, and adds it to the page that this process serves Prometheus.

    A scrape comes on a thread of its own; each piece of its text is made by `ask` on the loop of `ports`. Where that
    has no time, the rest is left out.
    """

    def __init__(
        self,
        settings: PrometheusSettings,
        ports: PortRows,
        overview: Callable[[], Overview],
        outputs: Callable[[], Mapping[str, SinkState]],
        logger: logging.Logger,
        ask: Ask = ask_here,
    ) -> None:
        self._endpoint = open_endpoint(settings.host, settings.port, logger)
        self.server = self._endpoint.server
        self._stale_s = settings.stale_s
        self._ports = ports
        self._overview = overview
        self._outputs = outputs
        self._ask = ask
        self._samples = 0
        self._events: Tally[tuple[PortSeverity, EventState]] = Tally()
        self._counters = np.zeros((0, COUNTER_COUNT), np.uint64)
        self._lifted = np.zeros((0, COUNTER_COUNT), np.uint64)
        self._ratios = np.zeros((0, 2))
        self._seen_s = np.zeros(0)
        self._generation = np.zeros(0, np.uint32)
        self._labels: list[str] = []
        self._labelled: list[tuple[PortName, str] | None] = []
        self._endpoint.streams[STREAM] = self._stream

    def write(self, batch: RatedSamples) -> None:
        """Remember the samples and what utilisation they give; a late one would look like a counter that fell."""
        samples, rates = batch.samples, batch.rates
        if rates.discontinuity.any():
            shown = ~np.isin(rates.discontinuity, _IGNORED)
            samples, rates = samples.take(shown), rates.take(shown)
        if len(self._seen_s) < self._ports.capacity:
            self._grow(self._ports.capacity)
        self._samples += len(samples)
        if rates.discontinuity.any():
            self._lift(samples, rates)
        self._counters[samples.rows] = samples.counters
        self._seen_s[samples.rows] = time.monotonic()
        self._generation[samples.rows] = self._ports.generation[samples.rows]
        self._ratios[rates.rows] = rates.utilisation_pct / 100.0

    def event(self, event: PortEvent) -> None:
        """Count an event."""
        self._events[event.severity, event.state] += 1

    def roll_up(self, roll_ups: RollUps) -> None:
        """Prometheus makes its own."""

    def state(self) -> SinkState:
        """Return how the endpoint fares."""
        fault = self._endpoint.fault
        faults = () if fault.text is None else (fault.text,)
        return SinkState(faults, fault.failures, {"scraped": self._endpoint.scrapes, "refused": self.server.refused})

    def close(self) -> None:
        """Serve no more."""
        self._endpoint.streams.pop(STREAM, None)
        close_endpoint(self._endpoint)

    def _stream(self, openmetrics: bool) -> Iterator[str]:
        next_piece = partial(next, self.exposition(openmetrics=openmetrics), None)
        with suppress(Unanswered):
            yield from iter(partial(self._ask, next_piece), None)

    def exposition(self, *, openmetrics: bool = False) -> Iterator[str]:
        """Yield the text for a scrape in pieces of about `PIECE_ROWS` samples."""
        overview = self._overview()
        rows = self._live_rows({switch.dpid for switch in overview.switches if not switch.up})
        for family, samples in self._small_families(overview, len(rows)):
            yield from metric_texts(family, samples, openmetrics=openmetrics)
        pieces = [rows[start : start + PIECE_ROWS] for start in range(0, len(rows), PIECE_ROWS)]
        kinds = {dpid: str(self._ports.kind(dpid)) for dpid in self._ports.switches()}
        for piece in pieces:
            self._label(piece, kinds)
            yield ""
        for column, family in enumerate(metrics.PORT_COUNTERS.values()):
            yield from self._family(family, pieces, partial(self._totals, column), openmetrics)
        for direction, family in enumerate(metrics.UTILISATION):
            yield from self._family(family, pieces, partial(self._known_ratios, direction), openmetrics)
        yield from self._family(metrics.PORT_UP, pieces, self._links, openmetrics)

    def _family(
        self,
        family: MetricFamily,
        pieces: list[NDArray[np.intp]],
        values_of: Callable[[NDArray[np.intp]], tuple[NDArray[np.bool_], list[float]]],
        openmetrics: bool,
    ) -> Iterator[str]:
        """Yield the samples of one metric; `values_of` says which rows have a value, and these values."""
        head = family.head(openmetrics=openmetrics)
        for rows in pieces:
            there, values = values_of(rows)
            if values:
                labels = [self._labels[row] for row in rows[there].tolist()]
                yield head + lines(family.name, labels, values)
                head = ""

    def _totals(self, column: int, rows: NDArray[np.intp]) -> tuple[NDArray[np.bool_], list[float]]:
        counts = self._counters[rows, column]
        there = counts != np.uint64(UNSUPPORTED)
        return there, (counts[there] + self._lifted[rows[there], column]).tolist()

    def _known_ratios(self, direction: int, rows: NDArray[np.intp]) -> tuple[NDArray[np.bool_], list[float]]:
        ratios = self._ratios[rows, direction]
        there = ~np.isnan(ratios)
        return there, ratios[there].tolist()

    def _links(self, rows: NDArray[np.intp]) -> tuple[NDArray[np.bool_], list[float]]:
        return np.ones(len(rows), np.bool_), self._ports.link_up[rows].astype(int).tolist()

    def _lift(self, samples: Samples, rates: SampleRates) -> None:
        """Keep 32-bit counters rising over their wraps; what begins anew begins from its own count."""
        rows = samples.rows
        self._lifted[rows[np.isin(rates.discontinuity, _ANEW)]] = 0
        wrapped = (rates.wrapped[:, None] & BITS) != 0
        wrapped &= self._counters[rows] < _WRAP_32
        self._lifted[rows] += np.where(wrapped, _WRAP_32, np.uint64(0))

    def _live_rows(self, silent: set[int]) -> NDArray[np.intp]:
        """Rows whose port is there, with a recent sample of that port, on a switch that answers."""
        count = min(len(self._seen_s), len(self._ports))
        live = self._seen_s[:count] > time.monotonic() - self._stale_s
        live &= self._ports.present[:count] & (self._generation[:count] == self._ports.generation[:count])
        for dpid in silent:
            rows = [row for row in self._ports.rows_of_switch(dpid) if row < count]
            live[rows] = False
        return np.flatnonzero(live)

    def _label(self, rows: NDArray[np.intp], kinds: Mapping[int, str]) -> None:
        """Make the labels of rows whose port, name or class is not what it was."""
        for row in rows.tolist():
            port = self._ports.name(row)
            kind = kinds.get(port.dpid, "")
            if self._labelled[row] != (port, kind):
                self._labelled[row] = port, kind
                self._labels[row] = label_set(
                    {"dpid": port.dpid, "port_no": port.port_no, "port": port.name, "class": kind}
                )

    def _small_families(
        self, overview: Overview, ports: int
    ) -> Iterable[tuple[MetricFamily, Iterable[tuple[dict[str, object], float]]]]:
        now = time.time()
        switches = [({"dpid": switch.dpid, "class": switch.kind}, switch) for switch in overview.switches]
        outputs = self._outputs()
        ages = ((labels, switch.sampled_at_s) for labels, switch in switches)
        yield metrics.SWITCH_UP, ((labels, int(switch.up)) for labels, switch in switches)
        yield metrics.SAMPLE_AGE, ((labels, round(max(0.0, now - at), 3)) for labels, at in ages if at is not None)
        yield metrics.SWITCH_CPU, _shares((labels, switch.cpu_pct) for labels, switch in switches)
        yield metrics.SWITCH_MEMORY, _shares((labels, switch.memory_pct) for labels, switch in switches)
        yield metrics.PORTS, [({}, ports)]
        yield metrics.SAMPLES, [({}, self._samples)]
        yield metrics.POLLS, (({"result": name}, count) for name, count in overview.polls.items())
        if overview.share is not None:
            share = overview.share
            yield metrics.SHARE_SWITCHES, [({}, share.switches)]
            yield metrics.SHARE_PORTS, [({}, share.ports)]
            yield metrics.SHARE_MOVES, [({}, share.moves)]
            yield metrics.SHARE_UNOWNED, [({}, share.unowned)]
        if overview.scaling is not None:
            scaling = overview.scaling
            yield metrics.SCALING_ADVISED, [({}, scaling.advised)] if scaling.advised is not None else []
            yield metrics.SCALING_SLO_MET, [({}, scaling.met_ratio)] if scaling.met_ratio is not None else []
            yield metrics.SCALING_ACTIONS, (({"action": name}, count) for name, count in scaling.actions.items())
        yield (
            metrics.EVENTS,
            (
                ({"severity": severity.label, "state": state.value}, self._events[severity, state])
                for severity in PortSeverity
                for state in EventState
            ),
        )
        yield metrics.OUTPUT_FAULTY, (({"output": name}, int(bool(state.faults))) for name, state in outputs.items())
        yield metrics.OUTPUT_FAILURES, (({"output": name}, state.failures) for name, state in outputs.items())
        yield (
            metrics.OUTPUT_ITEMS,
            (
                ({"output": name, "result": result}, count)
                for name, state in outputs.items()
                for result, count in state.totals.items()
            ),
        )

    def _grow(self, capacity: int) -> None:
        more = capacity - len(self._seen_s)
        self._counters = np.concatenate([self._counters, np.zeros((more, COUNTER_COUNT), np.uint64)])
        self._lifted = np.concatenate([self._lifted, np.zeros((more, COUNTER_COUNT), np.uint64)])
        self._ratios = np.concatenate([self._ratios, np.full((more, 2), np.nan)])
        self._seen_s = np.append(self._seen_s, np.full(more, _NEVER))
        self._generation = np.append(self._generation, np.zeros(more, np.uint32))
        self._labels += [""] * more
        self._labelled += [None] * more


def _shares(
    percentages: Iterable[tuple[dict[str, object], float | None]],
) -> Iterator[tuple[dict[str, object], float]]:
    return ((labels, pct / 100.0) for labels, pct in percentages if pct is not None)


def _prometheus(settings: OutputSettings, of: Sources) -> Sink | None:
    wanted = settings.prometheus
    return wanted and PrometheusSink(wanted, of.ports, of.overview, of.states, of.logger, of.ask)


OUTPUTS: dict[str, MakeSink] = {"prometheus": _prometheus}
