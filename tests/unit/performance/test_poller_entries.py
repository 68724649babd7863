"""Queues, groups, meters, flow entries and tables between two polls."""

from __future__ import annotations

import numpy as np
import pytest

from controller.performance import poller_entries
from controller.performance.poller import EntriesSampled
from controller.performance.poller_entries import EntryTable
from controller.performance.poller_layout import Entries
from controller.performance.schedule import StatKind

ALL_ONES = 2**64 - 1


def meters(xid: int, at_s: float, rows: dict[int, tuple[int, int, float]], *, more: bool = False, dpid: int = 1):
    entries = Entries(
        np.array([[meter] for meter in rows], np.uint64).reshape(-1, 1),
        np.array([row[:2] for row in rows.values()], np.uint64).reshape(-1, 2),
        np.array([[7]] * len(rows), np.uint64).reshape(-1, 1),
        np.array([row[2] for row in rows.values()], float),
    )
    return EntriesSampled(dpid, 4, StatKind.METER, xid, more, entries, at_s)


def test_rates_are_taken_over_the_switchs_own_time():
    table = EntryTable()
    table.update(meters(1, 100.0, {5: (10, 1000, 2.0)}))
    (first,) = table.report(StatKind.METER)
    assert first.per_s == {"packets_in": None, "bytes_in": None}
    table.update(meters(2, 111.0, {5: (30, 5000, 12.0)}))
    (second,) = table.report(StatKind.METER)
    assert second.key == {"meter_id": 5}
    assert second.totals == {"packets_in": 30, "bytes_in": 5000}
    assert second.per_s == {"packets_in": 2.0, "bytes_in": 400.0}
    assert second.gauges == {"flows": 7}


def test_without_it_over_the_time_of_the_replies():
    table = EntryTable()
    table.update(meters(1, 100.0, {5: (10, 1000, float("nan"))}))
    table.update(meters(2, 110.0, {5: (30, 1000, float("nan"))}))
    assert table.report(StatKind.METER)[0].per_s == {"packets_in": 2.0, "bytes_in": 0.0}


@pytest.mark.parametrize("row", [(5, 2000, 12.0), (ALL_ONES, 2000, 12.0)])
def test_a_counter_that_fell_or_is_not_there_has_no_rate(row: tuple[int, int, float]):
    table = EntryTable()
    table.update(meters(1, 100.0, {5: (10, 1000, 2.0)}))
    table.update(meters(2, 110.0, {5: row}))
    assert table.report(StatKind.METER)[0].per_s == {"packets_in": None, "bytes_in": 100.0}


def test_an_entry_made_anew_has_no_rates():
    table = EntryTable()
    table.update(meters(1, 100.0, {5: (10, 1000, 50.0)}))
    table.update(meters(2, 110.0, {5: (20, 2000, 1.0)}))
    assert table.report(StatKind.METER)[0].per_s == {"packets_in": None, "bytes_in": None}


def test_what_a_whole_reply_does_not_name_is_gone():
    table = EntryTable()
    table.update(meters(1, 100.0, {1: (0, 0, 1.0), 2: (0, 0, 1.0)}, more=True))
    table.update(meters(1, 100.0, {3: (0, 0, 1.0)}))
    assert [entry.key["meter_id"] for entry in table.report(StatKind.METER)] == [1, 2, 3]
    table.update(meters(2, 110.0, {3: (0, 0, 1.0)}, more=True))
    assert len(table) == 3
    table.update(meters(2, 110.0, {1: (0, 0, 1.0)}))
    assert [entry.key["meter_id"] for entry in table.report(StatKind.METER)] == [1, 3]
    table.update(meters(1, 100.0, {9: (0, 0, 1.0)}, dpid=2))
    assert [entry.dpid for entry in table.report(StatKind.METER, 2)] == [2]
    table.forget(1)
    assert len(table) == 1


def test_the_bound_holds(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(poller_entries, "MAX_ENTRIES", 3)
    table = EntryTable()
    table.update(meters(1, 100.0, dict.fromkeys(range(10), (0, 0, 1.0))))
    assert len(table) == 3
    assert table.counters["entries-over-limit"] == 7
