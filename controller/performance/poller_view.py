"""What operators ask the monitor, and are told: JSON-able documents."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import isfinite
from typing import Any

from controller.config.settings import Monitor
from controller.performance.core import RANKINGS
from controller.performance.counters import BYTE_COLUMNS, COUNTERS, FIRST_ERROR_COLUMN, Counter
from controller.performance.events import PortEvent
from controller.performance.poller_core import MonitorCore
from controller.performance.poller_settings import SWITCH_KINDS
from controller.performance.port_history import METRICS, steps
from controller.performance.reports import PortReport
from controller.performance.schedule import StatKind
from controller.performance.setting_changes import SettingInvalid, changed, shown_settings
from controller.snapshot.names import Names
from topology.events import PortRole
from topology.graph import NodeKind

Document = dict[str, Any]
Arguments = Mapping[str, Any]

HOSTS, ALL = "hosts", "all"
TYPES = (ALL, HOSTS, *(kind.value for kind in SWITCH_KINDS))
MAX_LINES = 100000
MAX_DPID, MAX_PORT_NO, MAX_SECONDS = (1 << 64) - 1, (1 << 32) - 1, 1e11
TOP_ORDERS = {"utilisation": "utilisation", "rx": "rx_bytes", "tx": "tx_bytes", "errors": "errors"}

_RX_BYTES, _TX_BYTES = BYTE_COLUMNS
_RX_PACKETS, _TX_PACKETS = Counter.RX_PACKETS.column, Counter.TX_PACKETS.column


class QuestionInvalid(ValueError):  # noqa: N818
    """A question that cannot be answered as it was put; the text names what is wrong with it."""


class Console:
    """Answers questions about a monitor's core.

    Parameters
    ----------
    core
        The core.
    change
        Makes the monitor go on with other settings.
    now
        Returns the time on the core's clock.
    state
        Returns a document about what is around the core: outputs, switches.
    names
        What switches are called, in answers and in questions.
    """

    def __init__(
        self,
        core: MonitorCore,
        change: Callable[[Monitor], None],
        now: Callable[[], float],
        state: Callable[[], Document],
        names: Names,
    ) -> None:
        self._core = core
        self._names = names
        self._change = change
        self._now = now
        self._state = state

    # Reports.

    def status(self) -> Document:
        """Return how switches, polls and outputs fare."""
        performance = self._core.performance
        return {
            **self._state(),
            "ports": len(performance.ports),
            "outstanding": self._core.poller.schedule.outstanding,
            "waiting": self._core.poller.schedule.waiting,
            "counters": dict(sorted({**performance.tally, **self._core.entries.counters}.items())),
            "events_suppressed": performance.events_suppressed,
        }

    def report(self, asked: Arguments) -> Document:
        """Return the ports asked for, their sums by node or type, or the entries of other statistics."""
        statistics, by = asked.get("statistics", "port"), asked.get("by", "port")
        limit = _whole(asked, "limit", 10000, 1, MAX_LINES)
        if statistics != "port":
            return self._entries(statistics, asked, limit)
        reports = self._chosen(asked, limit + 1 if by == "port" else None)
        if by == "port":
            shown = [self._port(report) for report in reports[:limit]]
            return {"time": self._at_s(), "ports": shown, "more": len(reports) > len(shown)}
        if by == "node":
            return {"time": self._at_s(), "rows": self._sums(reports, lambda report: report.dpid, "node")[:limit]}
        if by == "type":
            return {"time": self._at_s(), "rows": self._sums(reports, lambda report: report.kind.value, "type")}
        raise QuestionInvalid(f"by: {by!r} is none of port, node, type")

    def top(self, asked: Arguments) -> Document:
        """Return the busiest ports of switches that are up."""
        count = _whole(asked, "count", 20, 1, MAX_LINES)
        order = asked.get("order", "utilisation")
        ranking = TOP_ORDERS.get(order, order)
        if ranking not in RANKINGS:
            raise QuestionInvalid(f"order: {order!r} is none of {', '.join(TOP_ORDERS)}")
        chosen: list[PortReport] = []
        looked = count
        while len(chosen) < count:
            found = self._core.performance.top(looked, ranking)
            chosen = [report for report in found if self._is_up(report.dpid) and self._is_of(report, asked)]
            if len(found) < looked:
                break
            looked *= 4
        switches = self._core.poller.schedule.switches
        down = sorted(dpid for dpid, switch in switches.items() if not switch.up)
        return {
            "time": self._at_s(),
            "switches": len(switches),
            "down": down,
            "down_switches": [self._names.label(dpid) for dpid in down],
            "ports_watched": int(self._core.ports.present.sum()),
            "ports": [self._port(report) for report in chosen[:count]],
        }

    def histogram(self, asked: Arguments) -> Document:
        """Return how the rates of a counter are distributed."""
        name = asked.get("counter")
        if name not in list(COUNTERS):
            raise QuestionInvalid(f"counter: {name!r} is none of {', '.join(COUNTERS)}")
        node = self._node(asked)
        try:
            found = self._core.performance.histogram(Counter(name), node)
        except KeyError:
            raise QuestionInvalid(f"node: there is no switch {asked['node']}") from None
        return {
            "counter": name,
            "node": node,
            "samples": found.samples,
            "zeros": found.zeros,
            "percentiles": {f"{percent:g}": rate for percent, rate in found.percentiles.items()},
            "buckets": [{"lower": lower, "upper": upper, "count": number} for lower, upper, number in found.buckets],
        }

    def events(self, asked: Arguments) -> Document:
        """Return the latest events, newest last."""
        count = _whole(asked, "count", 50, 1, MAX_LINES)
        node, port = self._place(asked)
        ports, found = self._core.ports, []
        for event in self._core.performance.events():
            kind = ports.kind(event.dpid)
            here = node in (None, event.dpid) and port in (None, event.port_no)
            if here and self._is_of_type(event.dpid, event.port_no, kind, asked):
                found.append({**_event(event), "switch": self._names.label(event.dpid)})
        return {"events": found[-count:], "suppressed": self._core.performance.events_suppressed}

    def history(self, asked: Arguments) -> Document:
        """Return what is remembered of a port: the last hour of a metric, with bounds of what was normal."""
        performance = self._core.performance
        dpid, port_no = _whole(asked, "dpid", -1, 0, MAX_DPID), _whole(asked, "port_no", -1, 0, MAX_PORT_NO)
        metric = asked.get("metric", "rx_bps")
        if metric not in list(METRICS):
            raise QuestionInvalid(f"metric: {metric!r} is none of {', '.join(METRICS)}")
        row = self._core.ports.row(dpid, port_no)
        if row is None:
            raise QuestionInvalid(f"port_no: switch {dpid} has no port {port_no}")
        since_s = _seconds(asked, "since_s", 0.0)
        step_s = max(_seconds(asked, "step_s", 0.0), performance.history_step_s)
        speed_bps = float(self._core.ports.speed_bps[row])
        found = steps(performance.history(dpid, port_no), metric, speed_bps, since_s, step_s)
        place = {"dpid": dpid, "port_no": port_no, "metric": metric}
        return {**place, "step_s": step_s, "points": [step._asdict() for step in found]}

    def _entries(self, statistics: Any, asked: Arguments, limit: int) -> Document:
        kind = next((kind for kind in StatKind if kind.name.lower() == statistics), None)
        if kind is None:
            raise QuestionInvalid(f"statistics: {statistics!r} is none of port, queue, group, meter, flow, table")
        node, _ = self._place(asked)
        entries = self._core.entries.report(kind, node)
        shown = [
            {
                "dpid": entry.dpid,
                "switch": self._names.label(entry.dpid),
                "key": entry.key,
                "totals": entry.totals,
                "per_s": entry.per_s,
                "gauges": entry.gauges,
                "time": entry.at_s,
            }
            for entry in entries[:limit]
        ]
        return {"time": self._at_s(), "entries": shown, "more": len(entries) > len(shown)}

    # Changes.

    def reset(self, asked: Arguments) -> Document:
        """Let the totals of ports begin anew."""
        performance, at_s = self._core.performance, self._at_s()
        chosen = self._chosen(asked)
        whole = asked.get("node") is None and asked.get("type", ALL) == ALL
        if whole:
            count = performance.zero(at_s)
        else:
            count = sum(performance.zero(at_s, report.dpid, report.port_no) for report in chosen)
        return {"ports": count, "time": at_s}

    def set(self, asked: Arguments) -> Document:
        """Change a setting."""
        name = str(asked.get("knob", ""))
        settings = self._core.settings
        try:
            after = changed(settings, name, asked.get("value"))
        except SettingInvalid as error:
            raise QuestionInvalid(str(error)) from None
        values = {setting.name: setting.value for setting in shown_settings(settings)}
        self._change(after)
        now = {setting.name: setting.value for setting in shown_settings(after)}
        return {"knob": name, "before": values.get(name), "value": now.get(name)}

    def get(self, asked: Arguments) -> Document:
        """Return settings and their values."""
        prefix = str(asked.get("knob", ""))
        found = shown_settings(self._core.settings, prefix)
        if prefix and not found:
            raise QuestionInvalid(f"{prefix}: there is no such setting")
        return {
            "knobs": [
                {
                    "knob": setting.name,
                    "value": setting.value,
                    "unit": setting.unit,
                    "live": setting.live,
                    "meaning": setting.meaning,
                }
                for setting in found
            ]
        }

    # Parts.

    def _at_s(self) -> float:
        return self._core.at_s(self._now())

    def _place(self, asked: Arguments) -> tuple[int | None, int | None]:
        node, port = self._node(asked), _optional(asked, "port")
        if node is not None and node not in self._known():
            raise QuestionInvalid(f"node: there is no switch {asked['node']}")
        if port is not None and (node is None or self._core.ports.row(node, port) is None):
            raise QuestionInvalid(f"port: switch {asked.get('node')} has no port {port}")
        return node, port

    def _known(self) -> frozenset[int]:
        return frozenset((*self._core.ports.switches(), *self._core.poller.schedule.switches))

    def _node(self, asked: Arguments) -> int | None:
        """Return the switch asked about, which may be named."""
        name = asked.get("node")
        if not isinstance(name, str):
            return _optional(asked, "node")
        found = next((dpid for dpid in self._known() if self._names.switch(dpid) == name), None)
        if found is None:
            raise QuestionInvalid(f"node: there is no switch {name}")
        return found

    def _chosen(self, asked: Arguments, limit: int | None = None) -> list[PortReport]:
        """Return the ports asked for; with a limit at least as many, where there are."""
        node, port = self._place(asked)
        of_type = asked.get("type", ALL)
        kind = NodeKind(of_type) if of_type in (kind.value for kind in SWITCH_KINDS) else None
        found: list[PortReport] = []
        for dpid in sorted(self._core.ports.switches()) if node is None else (node,):
            reports = self._core.performance.report(dpid, port, kind)
            found += [report for report in reports if report.present and self._is_of(report, asked)]
            if limit is not None and len(found) >= limit:
                break
        return found

    def _is_of(self, report: PortReport, asked: Arguments) -> bool:
        return self._is_of_type(report.dpid, report.port_no, report.kind, asked)

    def _is_of_type(self, dpid: int, port_no: int, kind: NodeKind, asked: Arguments) -> bool:
        of_type = asked.get("type", ALL)
        if of_type not in TYPES:
            raise QuestionInvalid(f"type: {of_type!r} is none of {', '.join(TYPES)}")
        if of_type == HOSTS:
            return self._core.poller.fabric.role(dpid, port_no) is PortRole.EDGE
        return bool(of_type in (ALL, kind.value))

    def _is_up(self, dpid: int) -> bool:
        switch = self._core.poller.schedule.switches.get(dpid)
        return switch is not None and switch.up

    def _port(self, report: PortReport) -> Document:
        per_s = report.per_s
        return {
            "dpid": report.dpid,
            "switch": self._names.label(report.dpid),
            "port_no": report.port_no,
            "name": report.name,
            "class": report.kind.value,
            "role": self._core.poller.fabric.role(report.dpid, report.port_no).value,
            "up": self._is_up(report.dpid) and report.link_up,
            "speed_bps": report.speed_bps or None,
            "time": report.at_s,
            "rx_bps": _bits(per_s[_RX_BYTES]),
            "tx_bps": _bits(per_s[_TX_BYTES]),
            "rx_pps": per_s[_RX_PACKETS],
            "tx_pps": per_s[_TX_PACKETS],
            "rx_utilisation_pct": report.rx_utilisation_pct,
            "tx_utilisation_pct": report.tx_utilisation_pct,
            "errors_per_s": _sum(per_s[FIRST_ERROR_COLUMN:]),
            "per_s": dict(zip(COUNTERS, per_s, strict=True)),
            "totals": dict(zip(COUNTERS, report.totals, strict=True)),
            "since": report.since_s,
            "reset": report.reset_s,
            "discontinuities": report.discontinuities,
            "raised": list(report.raised),
        }

    def _sums(self, reports: Iterable[PortReport], of: Callable[[PortReport], Any], name: str) -> list[Document]:
        groups: dict[Any, list[PortReport]] = {}
        for report in reports:
            groups.setdefault(of(report), []).append(report)
        rows = []
        for key, members in sorted(groups.items()):
            busiest = max(members, key=_busier_pct)
            dpids = {member.dpid for member in members}
            up = sum(self._is_up(dpid) for dpid in dpids)
            row = {
                "type": members[0].kind.value,
                "switches": len(dpids),
                "up": f"{up}/{len(dpids)}" if name == "type" else "up" if up else "down",
                "ports": len(members),
                "rx_bps": _sum(_bits(member.per_s[_RX_BYTES]) for member in members),
                "tx_bps": _sum(_bits(member.per_s[_TX_BYTES]) for member in members),
                "busiest_pct": _busier_pct(busiest) if _busier_pct(busiest) >= 0 else None,
                "busiest": self._names.label(busiest.dpid, busiest.port_no) if _busier_pct(busiest) > 0 else None,
                "errors_per_s": _sum(rate for member in members for rate in member.per_s[FIRST_ERROR_COLUMN:]),
            }
            called = {"switch": self._names.label(key)} if name == "node" else {}
            rows.append({name: key, **called, **row})
        return rows


def _busier_pct(report: PortReport) -> float:
    known = [pct for pct in (report.rx_utilisation_pct, report.tx_utilisation_pct) if pct is not None]
    return max(known, default=-1.0)


def _bits(octets: float | None) -> float | None:
    return None if octets is None else 8.0 * octets


def _sum(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _event(event: PortEvent) -> Document:
    return {
        "time": event.time_s,
        "dpid": event.dpid,
        "port_no": event.port_no,
        "counter": event.counter,
        "severity": event.severity.label,
        "state": event.state.value,
        "rate": event.rate if isfinite(event.rate) else None,
        "threshold": event.threshold if isfinite(event.threshold) else None,
        "suppressed": event.suppressed,
        "lasted_s": event.lasted_s,
    }


def _optional(asked: Arguments, name: str) -> int | None:
    value = asked.get(name)
    if value is not None and (type(value) is not int or value < 0):
        raise QuestionInvalid(f"{name}: {value!r} is no whole number from 0 on")
    return value


def _whole(asked: Arguments, name: str, default: int, lower: int, upper: int) -> int:
    value = asked.get(name, default)
    if type(value) is not int or not lower <= value <= upper:
        raise QuestionInvalid(f"{name}: {value!r} is not within {lower} and {upper}")
    return value


def _seconds(asked: Arguments, name: str, default: float) -> float:
    value = asked.get(name, default)
    if type(value) not in (int, float) or not 0 <= value <= MAX_SECONDS:
        raise QuestionInvalid(f"{name}: {value!r} is no number of seconds from 0 to {MAX_SECONDS:g}")
    return float(value)


VIEWS: dict[str, Callable[[Console], Document]] = {"perf": Console.status}
"""What can be shown, by name."""

ACTIONS: dict[str, Callable[[Console, Arguments], Document]] = {
    "perf-report": Console.report,
    "perf-top": Console.top,
    "perf-histogram": Console.histogram,
    "perf-events": Console.events,
    "perf-reset": Console.reset,
    "perf-set": Console.set,
    "perf-get": Console.get,
    "port-history": Console.history,
}
"""What can be asked, by name."""

CHANGES = frozenset({"perf-reset", "perf-set"})
"""What of it changes something."""
