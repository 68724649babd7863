"""The core of the monitor: poller and performance core as one, from switch events to rates, events and link loads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from controller.config.settings import Monitor
from controller.events import (
    DeadlineReached,
    EditFailed,
    FlowStatsReceived,
    Port,
    PortChanged,
    SwitchConnected,
    SwitchDisconnected,
)
from controller.maintenance.errors import ErrorsMeasured
from controller.multicast.events import LoadsMeasured
from controller.performance import inputs
from controller.performance.core import PerformanceCore
from controller.performance.counters import BYTE_COLUMNS, Counter
from controller.performance.effects import PerformanceEffect, SamplesRated
from controller.performance.poller import (
    CODECS,
    EntriesSampled,
    Poller,
    SwitchTaken,
    SwitchTurned,
)
from controller.performance.poller_entries import EntryTable
from controller.performance.poller_settings import core_settings, poll_settings
from controller.performance.ports import longer
from controller.performance.requests import RequestStats, StatsReceived
from controller.rules.pipeline import MONITOR_TAG
from topology.events import TOPOLOGY_EVENTS
from topology.graph import NodeKind

XID_TAG = 0xA0 | MONITOR_TAG & 0xF
TICK_S = 1.0
"""Time between two looks at what ends by time alone: roll-ups, conditions that nothing is heard of."""

_TX_BYTES = BYTE_COLUMNS[1]
_ERRORS = [Counter.RX_ERRORS.column, Counter.TX_ERRORS.column]

Output: TypeAlias = RequestStats | PerformanceEffect | SwitchTurned | LoadsMeasured | ErrorsMeasured


def last_port_no(ofp_version: int) -> int:
    """Return the highest number of a physical port in a version of OpenFlow; 0 where that is not spoken."""
    codec = CODECS.get(ofp_version)
    return 0 if codec is None else codec.last_port_no


class MonitorChanged(NamedTuple):
    """Go on with other settings."""

    monitor: Monitor


class MonitorCore:
    """Polls switches and makes rates of what they answer.

    Parameters
    ----------
    monitor
        The settings.
    now
        Seconds of a clock that never steps; every later time is on the same clock.
    at_s
        The time of day at that moment, epoch seconds; it may step later.
    """

    def __init__(self, monitor: Monitor, now: float, at_s: float) -> None:
        self.settings = monitor
        self.performance = PerformanceCore(core_settings(monitor))
        self.ports = self.performance.ports
        self.poller = Poller(poll_settings(monitor), XID_TAG, self.ports)
        self.entries = EntryTable()
        self._offset_s = at_s - now
        self._tick_s = now + TICK_S
        self._versions: dict[int, int] = {}
        self._kinds: dict[int, NodeKind] = {}
        self._kinds_version = -1
        self._erring: NDArray[np.bool_] = np.zeros(0, np.bool_)
        self._links_of = (-1, -1)
        self._link_of_row: NDArray[np.int32] = np.empty(0, np.int32)
        self._links: list[tuple[int, int, int]] = []
        self._out: list[Output] = []
        self.handlers: dict[type, Callable[[Any, float], None]] = {
            StatsReceived: self._stats_received,
            FlowStatsReceived: lambda event, now: self._poll(
                StatsReceived(event.dpid, event.ofp_version, event.xid, event.message, now + self._offset_s), now
            ),
            DeadlineReached: self._deadline_reached,
            SwitchConnected: self._switch_connected,
            SwitchDisconnected: self._switch_disconnected,
            PortChanged: self._port_changed,
            EditFailed: self._poll,
            MonitorChanged: self._monitor_changed,
            **dict.fromkeys(TOPOLOGY_EVENTS, self._poll),
        }

    @property
    def xid_tag(self) -> int:
        """The upper 8 bits of this core's transaction ids."""
        return XID_TAG

    def handle(self, event: Any, now: float) -> list[Output]:
        """Take one event and return what is to be done, in order; KeyError for an event of unknown type."""
        self.handlers[type(event)](event, now)
        out, self._out = self._out, []
        return out

    def next_deadline(self) -> float | None:
        """Return when `DeadlineReached` is due."""
        due_s = self.poller.next_deadline()
        return self._tick_s if due_s is None or self._tick_s < due_s else due_s

    def at_s(self, now: float) -> float:
        """Return the time of day, epoch seconds."""
        return now + self._offset_s

    # Events.

    def _stats_received(self, event: StatsReceived, now: float) -> None:
        self._offset_s = event.at_s - now
        self._poll(event, now)

    def _deadline_reached(self, event: DeadlineReached, now: float) -> None:
        self._poll(event, now)
        if now >= self._tick_s:
            self._tick_s = now + TICK_S
            self._tell_classes(now)
            self._judge(inputs.Tick(), now)

    def _switch_connected(self, event: SwitchConnected, now: float) -> None:
        self._begin_switch(event, event, now)

    def _begin_switch(self, event: SwitchConnected, polled: SwitchConnected | SwitchTaken, now: float) -> None:
        self._flush(now)
        self._versions[event.dpid] = event.ofp_version
        ports = tuple(port for port in event.ports if self._is_physical(event.dpid, port))
        self._kinds[event.dpid] = kind = self.poller.kind_of(event.dpid)
        self._judge(inputs.MonitoredSwitchUp(event.dpid, ports, kind), now)
        self._poll(polled, now)

    def _switch_disconnected(self, event: SwitchDisconnected, now: float) -> None:
        self._flush(now)
        self.entries.forget(event.dpid)
        self._kinds.pop(event.dpid, None)
        self._judge(inputs.MonitoredSwitchDown(event.dpid), now)
        self._poll(event, now)

    def _port_changed(self, event: PortChanged, now: float) -> None:
        dpid, port, deleted = event
        if not self._is_physical(dpid, port):
            return
        self._flush(now)
        row = self.ports.row(dpid, port.port_no)
        if deleted:
            self._judge(inputs.PortDown(dpid, port.port_no), now)
        elif row is None or not self.ports.present[row]:
            self._judge(inputs.PortUp(dpid, port), now)
        else:
            self._judge(inputs.MonitoredPortChanged(dpid, port), now)

    def _monitor_changed(self, event: MonitorChanged, now: float) -> None:
        self._flush(now)
        self.settings = event.monitor
        self.poller.configure(poll_settings(event.monitor), now)
        self._judge(inputs.SettingsChanged(core_settings(event.monitor)), now)

    def _is_physical(self, dpid: int, port: Port) -> bool:
        return port.port_no <= last_port_no(self._versions.get(dpid, 0))

    # The two cores.

    def _poll(self, event: Any, now: float) -> None:
        for effect in self.poller.handle(event, now):
            if isinstance(effect, inputs.SamplesReceived):
                self._judge(effect, now)
            elif isinstance(effect, EntriesSampled):
                self.entries.update(effect)
            else:
                self._out.append(effect)
                if isinstance(effect, SwitchTurned) and not effect.up:
                    self._unsee(effect.dpid)

    def _flush(self, now: float) -> None:
        """Have samples judged before ports change rows."""
        samples = self.poller.flush()
        if samples is not None:
            self._judge(samples, now)

    def _judge(self, event: inputs.Input, now: float) -> None:
        for effect in self.performance.handle(event, self.at_s(now)):
            self._out.append(effect)
            if isinstance(effect, SamplesRated):
                self._see_errors(effect)
                if self.settings.feed_trees:
                    self._see_links(effect)

    def _tell_classes(self, now: float) -> None:
        graph = self.poller.fabric.graph
        if graph.version != self._kinds_version:
            self._kinds_version = graph.version
            for dpid, before in self._kinds.items():
                kind = self.poller.kind_of(dpid)
                if kind is not before:
                    self._kinds[dpid] = kind
                    self._judge(inputs.SwitchClassified(dpid, kind), now)

    # Errors and links.

    def _see_errors(self, rated: SamplesRated) -> None:
        """Tell which switches were polled, and which of their ports have errors, or had some."""
        rates = rated.rates.take(~np.isnan(rated.rates.interval_s))
        if not len(rates.rows):
            return
        if len(self._erring) < self.ports.capacity:
            self._erring = longer(self._erring, self.ports.capacity)
        per_s = np.nansum(rates.per_s[:, _ERRORS], axis=1)
        told = np.flatnonzero((per_s > 0) | self._erring[rates.rows])
        self._erring[rates.rows] = per_s > 0
        _, first = np.unique(self.ports.node[rates.rows], return_index=True)
        switches = tuple(sorted(self.ports.name(row).dpid for row in rates.rows[first].tolist()))
        names = map(self.ports.name, rates.rows[told].tolist())
        errors = tuple(
            (name.dpid, name.port_no, each) for name, each in zip(names, per_s[told].tolist(), strict=True)
        )
        self._out.append(ErrorsMeasured(switches, errors))

    def _see_links(self, rated: SamplesRated) -> None:
        """Tell what links carry, as their sending ends have it."""
        self._find_links()
        if not self._links:
            return
        rates = rated.rates
        sent = rates.per_s[:, _TX_BYTES]
        number = self._link_of_row[rates.rows]
        seen = np.flatnonzero((number >= 0) & ~np.isnan(sent))
        if len(seen):
            links = self._links
            loads = zip(number[seen].tolist(), (8.0 * sent[seen]).tolist(), strict=True)
            full = number[seen[rates.per_s[seen, Counter.TX_DROPPED.column] > 0]].tolist()
            dropping = tuple(links[link][:2] for link in full)
            self._out.append(LoadsMeasured(tuple((*links[link], bps) for link, bps in loads), dropping))

    def _find_links(self) -> None:
        graph = self.poller.fabric.graph
        if self._links_of == (graph.version, len(self.ports)):
            return
        self._links_of = (graph.version, len(self.ports))
        self._link_of_row = np.full(self.ports.capacity, -1, np.int32)
        self._links = []
        for link in graph.links():
            for u, v, port_no in ((link.u, link.v, link.u_port), (link.v, link.u, link.v_port)):
                row = self.ports.row(u, port_no) if isinstance(u, int) and port_no is not None else None
                if row is not None and port_no is not None and isinstance(u, int) and isinstance(v, int):
                    self._link_of_row[row] = len(self._links)
                    self._links.append((u, port_no, v))

    def _unsee(self, dpid: int) -> None:
        """Tell that what a switch sends cannot be seen any more."""
        graph = self.poller.fabric.graph
        if self.settings.feed_trees and dpid in graph and graph.neighbours(dpid):
            links = [link for near in graph.neighbours(dpid) for link in graph.cables(dpid, near)]
            loads = [(dpid, link.u_port, link.v, 0.0) for link in links if link.u_port is not None]
            self._out.append(LoadsMeasured(tuple(loads)))  # type: ignore[arg-type]
