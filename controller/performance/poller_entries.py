"""Queues, groups, meters, flow entries and tables: what was last counted, and the rates between two polls."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from controller.performance import of10_stats, of13_stats
from controller.performance.counters import UNSUPPORTED
from controller.performance.poller import EntriesSampled
from controller.performance.poller_layout import Layout
from controller.performance.schedule import StatKind

MAX_ENTRIES = 262144
"""Entries that are kept of all switches together; others are counted."""

_LAYOUTS = {module.VERSION: module.LAYOUTS for module in (of10_stats, of13_stats)}


class EntryReport(NamedTuple):
    """One entry: `key` names it; totals and rates (1/s) by counter, None where unsupported or unknown."""

    dpid: int
    kind: StatKind
    key: dict[str, int]
    totals: dict[str, int | None]
    per_s: dict[str, float | None]
    gauges: dict[str, int]
    at_s: float


class _Entry(NamedTuple):
    xid: int
    at_s: float
    duration_s: float
    counters: list[int]
    gauges: list[int]
    per_s: list[float | None]


class EntryTable:
    """The entries of every switch and kind that were in its last whole reply."""

    def __init__(self) -> None:
        self.counters: Counter[str] = Counter()
        self._entries: dict[tuple[int, StatKind], dict[tuple[int, ...], _Entry]] = {}
        self._versions: dict[int, int] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def update(self, sampled: EntriesSampled) -> None:
        """Take in a part of a reply; with its last part, entries that it does not name are gone."""
        dpid, ofp_version, kind, xid, more, entries, at_s = sampled
        self._versions[dpid] = ofp_version
        known = self._entries.setdefault((dpid, kind), {})
        columns = (entries.keys, entries.counters, entries.gauges, entries.duration_s)
        for key, counters, gauges, duration_s in zip(*(column.tolist() for column in columns), strict=True):
            name = tuple(key)
            before = known.get(name)
            if before is None:
                if self._count >= MAX_ENTRIES:
                    self.counters["entries-over-limit"] += 1
                    continue
                self._count += 1
            known[name] = _Entry(xid, at_s, duration_s, counters, gauges, _rates(before, counters, duration_s, at_s))
        if not more:
            for name in [name for name, entry in known.items() if entry.xid != xid]:
                del known[name]
                self._count -= 1

    def forget(self, dpid: int) -> None:
        """Forget the entries of a switch."""
        for where in [where for where in self._entries if where[0] == dpid]:
            self._count -= len(self._entries.pop(where))

    def report(self, kind: StatKind, dpid: int | None = None) -> list[EntryReport]:
        """Return the entries of a kind, of one switch or all."""
        found = []
        for (switch, of_kind), entries in sorted(self._entries.items()):
            if of_kind is kind and dpid in (None, switch):
                layout = _LAYOUTS[self._versions[switch]][kind]
                found += [_report(switch, kind, layout, key, entry) for key, entry in sorted(entries.items())]
        return found


def _rates(before: _Entry | None, counters: list[int], duration_s: float, at_s: float) -> list[float | None]:
    """Return rates since the entry before; None where it was made anew, or time or counters went back."""
    if before is None:
        return [None] * len(counters)
    interval_s = duration_s - before.duration_s
    if interval_s != interval_s:  # the switch does not say how long it has counted
        interval_s = at_s - before.at_s
    if interval_s <= 0:
        return [None] * len(counters)
    return [
        None if UNSUPPORTED in (now, then) or now < then else (now - then) / interval_s
        for now, then in zip(counters, before.counters, strict=True)
    ]


def _report(dpid: int, kind: StatKind, layout: Layout, key: tuple[int, ...], entry: _Entry) -> EntryReport:
    totals = [None if value == UNSUPPORTED else value for value in entry.counters]
    return EntryReport(
        dpid,
        kind,
        dict(zip(layout.keys, key, strict=True)),
        dict(zip(layout.counters, totals, strict=True)),
        dict(zip(layout.counters, entry.per_s, strict=True)),
        dict(zip(layout.gauges, entry.gauges, strict=True)),
        entry.at_s,
    )
