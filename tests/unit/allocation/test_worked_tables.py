"""The tables of docs/allocation.md: every row is computed, and every test that it names exists."""

from __future__ import annotations

import ast
import math
import re
from pathlib import Path

import numpy as np
import pytest

from controller.allocation.busy import BusyTable
from controller.allocation.families import FAMILIES, TICKS_PER_S, cpu_percent_busy, port_percent_busy
from controller.allocation.metric import PortLoad, assess, metric_value
from controller.allocation.parameters import read_parameters

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "docs" / "allocation.md").read_text(encoding="utf-8")
ROUNDED = 5e-5


def rows(title: str) -> list[list[str]]:
    """The rows of the table whose header begins with a title."""
    lines = TEXT.split(f"\n| {title} |", 1)[1].split("\n\n", 1)[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def number(cell: str) -> float:
    return math.nan if cell in ("", "none") else float(cell)


def same(value: float, cell: str) -> bool:
    expected = number(cell)
    return math.isnan(value) if math.isnan(expected) else abs(value - expected) <= ROUNDED


@pytest.mark.parametrize("row", rows("kilobytes"))
def test_port_percent_busy(row: list[str]):
    assert same(float(port_percent_busy(*map(number, row[:3]))), row[3])


@pytest.mark.parametrize("row", rows("family | idle ticks"))
def test_cpu_percent_busy(row: list[str]):
    family, idle, ticks, seconds, percent = row
    every = number(ticks) if family == "vmax" else number(seconds) * TICKS_PER_S
    assert same(float(cpu_percent_busy(number(idle), every)), percent)


@pytest.mark.parametrize("row", rows("n"))
def test_running_average(row: list[str]):
    busy = BusyTable()
    busy.add(86400, 0.6)
    count, average, value = int(row[0]), number(row[1]), number(row[2])
    busy.restore(0, {**busy.state(0), "avgCount": count, "avgPercentBusy": average, "avgStartTime": 0})
    busy.observe_percent(np.array([0]), np.array([1000]), np.array([value]))
    assert same(float(busy.average_pct[0]), row[3])


@pytest.mark.parametrize("row", rows("k"))
def test_moving_average(row: list[str]):
    k, latest, before = map(number, row[:3])
    assert same(float(metric_value(latest, before, k)), row[3])
    busy = BusyTable()
    busy.add(60, k)
    values = {
        "avgCount": 1,
        "avgPercentBusy": latest,
        "emaPercentBusy": before,
        "avgStartTime": 0,
        "lastSampleTime": 0,
    }
    busy.restore(0, {**busy.state(0), **values})
    busy.observe_percent(np.array([0]), np.array([60_001]), np.array([latest]))
    assert same(float(busy.history_pct[0]), row[3])


@pytest.mark.parametrize("row", rows("family | port %"))
def test_metric_and_usage(row: list[str]):
    family, port, cpu, volumes, coefficient, metric, usage = row
    load = PortLoad(FAMILIES[family], number(port), number(cpu) if cpu else None, 0, int(volumes))
    found = assess(load, read_parameters({"metric_volume_coefficient": float(coefficient)}))
    assert found.port_metric is not None
    assert found.usage is not None
    assert same(found.port_metric, metric)
    assert same(found.usage, usage)


def test_every_statement_names_tests_that_exist():
    files = [
        *Path(__file__).parent.glob("test_*.py"),
        *(ROOT / "tests" / "unit").glob("*/test_allocat*.py"),
    ]
    known = {
        node.name
        for file in files
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef)
    }
    statements = rows("section")
    assert len(statements) > 30
    for row in statements:
        named = re.findall(r"`(test_\w+)`", row[-1])
        assert named, row
        assert set(named) <= known, row
