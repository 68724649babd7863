"""What apps tell the one that keeps the alarms: each thing once, and once that it is over."""

from __future__ import annotations

from typing import Any

from apps.alarm_reports import AlarmReports
from controller.alarms.events import ConditionOver, ConditionReported
from controller.effects import Notice
from controller.snapshot.events import Severity


def test_what_is_wrong_is_told_once_until_it_changes_or_is_over() -> None:
    told: list[Any] = []
    reports = AlarmReports("monitor", told.append)
    for text in ("Errors.", "Errors.", "More errors."):
        reports.holds("port-event", "1:4", Severity.WARNING, text, 1, 4)
    reports.over("port-event", "1:4")
    reports.over("port-event", "1:4")
    report = ConditionReported("monitor", "port-event", "1:4", Severity.WARNING, "Errors.", 1, 4)
    assert told == [report, report._replace(text="More errors."), ConditionOver("monitor", "port-event", "1:4")]


def test_a_full_table_is_told_until_its_switch_holds_all_that_it_shall() -> None:
    told: list[Any] = []
    reports = AlarmReports("unicast", told.append)
    reports.noticed(Notice("barrier-timeout", "Late.", (("dpid", 5),)))
    for dpid in (5, 6, 5):
        reports.noticed(Notice("table-full", "Full.", (("dpid", dpid),)))
    assert [(each.kind, each.subject, each.severity) for each in told] == [
        ("table-full", "5", Severity.CRITICAL),
        ("table-full", "6", Severity.CRITICAL),
    ]
    reports.look_at_tables(lambda dpid: dpid == 6)
    assert told[2:] == [ConditionOver("unicast", "table-full", "6")]
