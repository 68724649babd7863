"""All outputs together, as the monitor has them, and what the documentation says of them."""

from __future__ import annotations

import json
import logging
import re
import threading
from pathlib import Path
from typing import Any

import pytest

from apps.exporters import controller_metrics
from apps.exporters.history import read_history
from apps.exporters.metrics import FAMILIES
from apps.exporters.prometheus_sink import PrometheusSink
from apps.exporters.registry import SINKS, build_sinks
from apps.exporters.schema import SCHEMAS, RecordKind
from apps.exporters.settings import OutputSettings, PrometheusSettings, SyslogSettings
from controller.performance.counters import COUNTERS
from controller.performance.events import EventState, PortEvent, PortSeverity

HOUR_S = 1_700_002_800.0
DOCUMENT = Path(__file__).parents[3] / "docs" / "performance-manager-outputs.md"
EVENT = PortEvent(HOUR_S, 1, 2, "rx_errors", PortSeverity.CRITICAL, 3.0, 1.0, EventState.RAISED)


def settings(tmp_path: Path) -> OutputSettings:
    return OutputSettings(prometheus=PrometheusSettings(port=0), syslog=SyslogSettings(str(tmp_path / "no-daemon")))


def test_every_output_gets_what_it_is_for(fabric: Any, tmp_path: Path, logger: logging.Logger) -> None:
    sinks = build_sinks(settings(tmp_path), tmp_path, fabric.ports, logger)
    sinks.write(fabric.batch(HOUR_S, 5))
    sinks.event(EVENT)
    shown = sinks.by_name["prometheus"]
    assert isinstance(shown, PrometheusSink)
    text = "".join(shown.exposition())
    states = sinks.states()
    sinks.close()
    assert set(states) == set(SINKS)
    assert {name for name, state in states.items() if state.faults} == {"syslog"}
    assert 'vsrt_output_faulty{output="syslog"} 1\n' in text
    assert 'vsrt_output_faulty{output="history"} 0\n' in text
    assert 'vsrt_events_total{severity="critical",state="raised"} 1\n' in text
    assert read_history(tmp_path / "history", RecordKind.COUNTERS, since_s=0, until_s=1e10).num_rows == 6
    assert json.loads((tmp_path / "events.jsonl").read_text())["counter"] == "rx_errors"


def test_outputs_that_are_not_wanted_are_not_there(fabric: Any, tmp_path: Path, logger: logging.Logger) -> None:
    sinks = build_sinks(OutputSettings(None, None, None, None, None), tmp_path, fabric.ports, logger)
    sinks.write(fabric.batch(HOUR_S))
    sinks.event(EVENT)
    sinks.close()
    assert sinks.states() == {}
    assert list(tmp_path.iterdir()) == []


def test_a_setting_that_makes_no_sense_leaves_nothing_running(
    fabric: Any, tmp_path: Path, logger: logging.Logger
) -> None:
    before = set(threading.enumerate())
    wrong = settings(tmp_path)._replace(syslog=SyslogSettings("nowhere"))
    with pytest.raises(ValueError, match="'nowhere'"):
        build_sinks(wrong, tmp_path, fabric.ports, logger)
    left = {thread.name for thread in set(threading.enumerate()) - before}
    assert left & {"history", "roll-ups", "events"} == set()


def test_the_documentation_has_every_metric_and_every_column() -> None:
    text = DOCUMENT.read_text()
    names = set(re.findall(r"\b(?:vsrt|process)_\w+", text))
    assert names == {family.name for family in (*FAMILIES, *controller_metrics.FAMILIES)}
    columns = {field.name for schema in SCHEMAS.values() for field in schema} - {
        f"{name}_{what}" for name in COUNTERS for what in ("per_s", "min_per_s", "mean_per_s", "max_per_s", "sum")
    }
    assert {name for name in columns if f"`{name}`" not in text} == set()
