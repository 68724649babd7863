"""What operators follow of the monitor: rates of ports, how switches fare, and events."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from controller.effects import Notice
from controller.events import PortChanged, SwitchConnected, SwitchDisconnected
from controller.performance.alarms import LINK_DOWN
from controller.performance.batch import SampleRates
from controller.performance.counters import BYTE_COLUMNS, FIRST_ERROR_COLUMN, Counter
from controller.performance.effects import EventsRaised
from controller.performance.event_texts import event_text
from controller.performance.events import PortSeverity
from controller.performance.poller import SWITCH_SILENT
from controller.performance.poller_core import MonitorCore
from controller.performance.ports import longer
from controller.performance.shared_polls import SharesLeft, SharesTaken
from controller.snapshot.events import EventRing, Severity, State
from controller.snapshot.log import Document, DocumentLog
from controller.snapshot.names import Names
from topology.events import PortRole

COMPARE_INTERVAL_S = 1.0
"""How often switches are compared with what readers know."""

CHANGE, CHANGE_OF_CAPACITY = 0.01, 1e-4
"""A rate is told again when it differs by this fraction of the rate told before and by this part of the capacity."""

TOLD_AGAIN_S = 30.0
"""Samples that changed nothing are told of this often, so that it is seen that they come."""

UNKNOWN = -1.0

EVENT_SEVERITIES = {severity: Severity(severity.label) for severity in PortSeverity}
"""The severity of a port's event as that of any other: the same words."""

_ERRORS = (Counter.RX_ERRORS.column, Counter.TX_ERRORS.column)
_DROPS = (Counter.RX_DROPPED.column, Counter.TX_DROPPED.column)
_PACKETS = (Counter.RX_PACKETS.column, Counter.TX_PACKETS.column)

PortKey = tuple[int, int]


class MonitorSections:
    """The sections of the monitor.

    `use` returns CPU and memory in percent by dpid, None where they are not known. `alarms_tell` says whether this
    controller has alarms, whose events tell of links between switches and of switches without a connection.
    """

    def __init__(
        self,
        core: MonitorCore,
        use: Callable[[], Mapping[int, tuple[float | None, float | None]]],
        now: float,
        names: Names,
        alarms_tell: Callable[[], bool] = lambda: False,
    ) -> None:
        self.names = names
        self.events = EventRing("monitor", names.spoken)
        self.switches: DocumentLog[int] = DocumentLog(
            lambda: sorted(core.poller.schedule.switches), self._switches_get
        )
        self.ports: DocumentLog[PortKey] = DocumentLog(self._port_keys, self._port, lambda key: "{}:{}".format(*key))
        self._core = core
        self._use = use
        self._alarms_tell = alarms_tell
        self._left_out: set[PortKey] = set()
        self._compared_s = now - COMPARE_INTERVAL_S
        self._known: dict[int, Document] = {}
        self._silent: set[int] = set()
        self._told: NDArray[np.float64] = np.full((0, 3), UNKNOWN)
        self._told_s: NDArray[np.float64] = np.zeros(0)

    def by_name(self) -> dict[str, DocumentLog[Any]]:
        """Return the sections by the names under which they are offered."""
        return {"switches": self.switches, "ports": self.ports, "events": self.events.section}

    def refresh(self, now: float) -> None:
        """Find which switches changed; to be called before sections are read."""
        if now - self._compared_s < COMPARE_INTERVAL_S:
            return
        self._compared_s = now
        known, self._known = self._known, self._switches()
        for dpid in sorted(known.keys() | self._known.keys()):
            if known.get(dpid) != self._known.get(dpid):
                self.switches.touch(dpid)

    # What the shell tells

    def happened(self, event: object) -> None:
        """Take note of an event that the core has taken, where it concerns which ports there are."""
        if isinstance(event, PortChanged):
            self.names.port_described(*event)
            self.ports.touch((event.dpid, event.port.port_no))
        elif isinstance(event, SharesTaken | SharesLeft):
            moved = event.dpids if isinstance(event, SharesLeft) else [dpid for dpid, _, _ in event.switches]
            for dpid in moved:
                self.happened(SwitchDisconnected(dpid))
        elif isinstance(event, SwitchConnected | SwitchDisconnected):
            if isinstance(event, SwitchConnected):
                self.names.ports_described(event.dpid, event.ports)
            table = self._core.ports
            if len(table) >= table.max_ports:
                self.ports.log.forget()
            for row in table.rows_of_switch(event.dpid):
                self.ports.touch(table.name(row)[:2])

    def rated(self, rates: SampleRates) -> None:
        """Take note of new rates; those that hardly differ from the ones told before are let pass."""
        rows, table = rates.rows, self._core.ports
        if len(self._told) < table.capacity:
            self._told_s = longer(self._told_s, table.capacity)
            self._told = longer(self._told, table.capacity)
        found = np.empty((len(rows), 3))
        found[:, :2] = 8.0 * rates.per_s[:, BYTE_COLUMNS]
        found[:, 2] = rates.per_s[:, FIRST_ERROR_COLUMN:].sum(axis=1)
        found = np.nan_to_num(found, nan=UNKNOWN)
        told = self._told[rows]
        least = np.maximum(CHANGE * np.abs(told), CHANGE_OF_CAPACITY * table.speed_bps[rows][:, None])
        least[:, 2] = CHANGE * told[:, 2]
        news = (np.abs(found - told) > least).any(axis=1) | (rates.at_s - self._told_s[rows] >= TOLD_AGAIN_S)
        chosen = np.flatnonzero(news)
        self._told[rows[chosen]] = found[chosen]
        self._told_s[rows[chosen]] = rates.at_s[chosen]
        for row in rows[chosen].tolist():
            self.ports.touch(table.name(row)[:2])

    def raised(self, effect: EventsRaised) -> None:
        """Tell of conditions of ports."""
        for event in effect.events:
            state = State(event.state.value)
            if event.counter == LINK_DOWN and self._is_left_out((event.dpid, event.port_no), state):
                continue
            self.events.add(
                event.time_s,
                event.counter.replace("_", "-"),
                event_text(event),
                severity=Severity.INFO if state is State.CLEARED else EVENT_SEVERITIES[event.severity],
                state=state,
                dpid=event.dpid,
                port_no=event.port_no,
            )

    def _is_left_out(self, port: PortKey, state: State) -> bool:
        """Tell whether a port's link is one between switches that is told of elsewhere, and its return with it.

        Of the second end that goes down it is no longer known that it led to a switch, only that it led to no host.
        """
        if state is State.CLEARED:
            is_left_out = port in self._left_out
            self._left_out.discard(port)
            return is_left_out
        if self._core.poller.fabric.role(*port) is PortRole.EDGE or not self._alarms_tell():
            return False
        self._left_out.add(port)
        return True

    def turned(self, dpid: int, up: bool, at_s: float) -> None:
        """Tell that a switch answers no more, or does again; `at_s` is in seconds since 1970."""
        if up and dpid not in self._silent:
            return
        switch = self._core.poller.schedule.switches.get(dpid)
        if not up and (switch is None or not switch.connected) and self._alarms_tell():
            return
        (self._silent.discard if up else self._silent.add)(dpid)
        text = (
            f"Switch {dpid} answers polls again."
            if up
            else f"Switch {dpid} does not answer polls: the rates of its ports are unknown."
        )
        severity = Severity.INFO if up else Severity.CRITICAL
        state = State.CLEARED if up else State.RAISED
        self.events.add(at_s, SWITCH_SILENT, text, severity=severity, state=state, dpid=dpid)

    def noticed(self, notice: Notice, at_s: float) -> None:
        """Tell of a notice, but for what `turned` tells; `at_s` is in seconds since 1970."""
        if notice.kind == SWITCH_SILENT:
            return
        dpid = dict(notice.fields).get("dpid")
        known = dpid if isinstance(dpid, int) else None
        self.events.add(at_s, notice.kind, notice.text, severity=Severity.WARNING, dpid=known)

    # Documents

    def _switches(self) -> dict[int, Document]:
        use, offset_s = self._use(), self._core.at_s(0.0)
        found = {}
        for dpid, switch in list(self._core.poller.schedule.switches.items()):
            cpu_pct, memory_pct = use.get(dpid, (None, None))
            answered_s = None if switch.answered_s is None else switch.answered_s + offset_s
            found[dpid] = {
                "dpid": dpid,
                "name": self.names.switch(dpid),
                "ofp_version": switch.ofp_version,
                "connected": switch.connected,
                "up": switch.up,
                "answered_s": answered_s,
                "cpu_pct": cpu_pct,
                "memory_pct": memory_pct,
            }
        return found

    def _switches_get(self, dpid: int) -> Document | None:
        return self._known.get(dpid)

    def _port_keys(self) -> list[PortKey]:
        table = self._core.ports
        rows = [row for dpid in sorted(table.switches()) for row in table.rows_of_switch(dpid)]
        return [table.name(row)[:2] for row in rows if table.present[row]]

    def _port(self, key: PortKey) -> Document | None:
        table = self._core.ports
        row = table.row(*key)
        if row is None or not table.present[row]:
            return None
        report = self._core.performance.port(row)
        per_s = report.per_s
        rx_bytes, tx_bytes = (per_s[column] for column in BYTE_COLUMNS)
        return {
            "dpid": key[0],
            "port_no": key[1],
            "name": self.names.port(*key) or report.name,
            "speed_bps": report.speed_bps or None,
            "rx_bps": None if rx_bytes is None else 8.0 * rx_bytes,
            "tx_bps": None if tx_bytes is None else 8.0 * tx_bytes,
            "rx_pps": per_s[_PACKETS[0]],
            "tx_pps": per_s[_PACKETS[1]],
            "rx_utilisation_pct": report.rx_utilisation_pct,
            "tx_utilisation_pct": report.tx_utilisation_pct,
            "rx_errors_pps": per_s[_ERRORS[0]],
            "tx_errors_pps": per_s[_ERRORS[1]],
            "rx_dropped_pps": per_s[_DROPS[0]],
            "tx_dropped_pps": per_s[_DROPS[1]],
            "sampled_s": report.at_s,
        }
