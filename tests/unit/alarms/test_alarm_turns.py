"""What one turn of the alarms is: some of what is due, and few statements, however large the fabric is."""

from __future__ import annotations

import logging
from pathlib import Path

from alarm_bench import Bench
from apps.alarm_state import AlarmDatabase
from apps.alarms import SAVED_AT_ONCE
from controller.alarms.judge import JUDGED_AT_ONCE
from controller.alarms.kept import KeptRecord
from controller.events import DeadlineReached

RING = tuple((dpid, 2, 1 + dpid % 700, 1) for dpid in range(1, 701))


def test_what_an_earlier_run_knew_is_judged_some_at_a_time_when_the_time_of_grace_is_over() -> None:
    documents = {"tier": "switch", "level": None, "host_count": 0, "lost_s": None}
    link = {"capacity_bps": 1e9, "lost_s": None, "is_seen": True}
    cables = {f"{min(a, b)}:{1 if b < a else 2}-{max(a, b)}:{2 if b < a else 1}" for a, _, b, _ in RING}
    switches = {str(dpid): documents for dpid in range(1, 701)}
    bench = Bench(switch=switches, link=dict.fromkeys(sorted(cables), link))
    counts = []
    while (due_s := bench.core.next_deadline()) is not None and due_s <= bench.now + 60.0:
        bench.now = max(bench.now, due_s)
        before = len(bench.told)
        bench.give(DeadlineReached())
        counts.append(len(bench.told) - before)
    assert sum(counts) == 700
    assert max(counts) <= JUDGED_AT_ONCE


def test_what_changed_is_written_with_few_statements(tmp_path: Path) -> None:
    database = AlarmDatabase(tmp_path / "alarms.sqlite", logging.getLogger("test"))
    assert database.write([KeptRecord("switch", "0", {})])
    statements: list[str] = []
    assert database._database is not None
    database._database.set_trace_callback(statements.append)
    records = [KeptRecord("link", str(number), {"is_seen": True}) for number in range(SAVED_AT_ONCE)]
    assert database.write(records)
    assert len(statements) <= 5
    database.close()
    assert len(AlarmDatabase(database.path, logging.getLogger("test")).read()["link"]) == SAVED_AT_ONCE
