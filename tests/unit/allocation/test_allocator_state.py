"""The allocator's database: metrics outlast a restart, and what is damaged is set aside and said."""

from __future__ import annotations

import logging
import sqlite3
from pathlib import Path

import numpy as np
import pytest

from apps.allocation_state import AllocationState
from controller.allocation.book import PortStateError
from controller.allocation.events import PortsRated
from controller.allocation.live import AllocatorCore
from controller.config.settings import Allocation, PortParameters
from controller.events import Port, SwitchConnected, SwitchDisconnected

START_S = 1_700_000_000
END_MS = (START_S + 80) * 1000
LOGGER = logging.getLogger("allocation")
SETTINGS = Allocation(openflow=PortParameters(days_to_average_utilization=10001))


def measured(ports: int = 3, busy_pct: float = 40.0) -> AllocatorCore:
    core = AllocatorCore(SETTINGS)
    numbers = range(1, ports + 1)
    core.handle(SwitchConnected(7, 4, tuple(Port(number, "", bytes(6), True, 1e9) for number in numbers)), 0.0)
    for second in range(0, 81, 10):
        keys = tuple((7, number) for number in numbers)
        rated = PortsRated(keys, np.full(ports, START_S + second), np.full(ports, busy_pct), {7: 20.0})
        core.handle(rated, 0.0)
    return core


def restored(path: Path) -> tuple[AllocatorCore, AllocationState]:
    core, state = AllocatorCore(SETTINGS), AllocationState(path, LOGGER)
    found = state.read()
    if found is not None:
        core.restore(found)
    return core, state


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A database with the state of three ports."""
    path = tmp_path / "allocation.sqlite"
    state = AllocationState(path, LOGGER)
    assert state.read() is None
    assert state.write(measured().changes(100))
    state.close()
    return path


def set_aside(path: Path) -> list[Path]:
    return sorted(each for each in path.parent.glob("*damaged-*") if not each.name.endswith(("-wal", "-shm")))


def test_a_restart_keeps_metrics_of_ports_and_cpus(path: Path):
    core, state = restored(path)
    assert core.book.reports(END_MS) == measured().book.reports(END_MS)
    assert core.book.reports(END_MS)["7:1"]["port_allocation_metric"] == pytest.approx(30)
    assert core.measurement("7:1", END_MS) == "valid, 0 s old"
    assert (state.fault, state.set_aside) == ("", "")


def test_only_what_changed_is_written_and_in_slices(tmp_path: Path):
    core = measured(5)
    sizes = [len(core.changes(2).state["ports"]) for _ in range(4)]
    assert sizes == [2, 2, 1, 0]
    core.handle(PortsRated(((7, 2),), np.array([START_S + 90.0]), np.array([1.0]), {}), 0.0)
    assert list(core.changes(2).state["ports"]) == ["7:2"]


def test_forgotten_ports_leave_the_database(path: Path):
    core, state = restored(path)
    core.handle(SwitchConnected(7, 4, (Port(1, "", bytes(6), True, 1e9),)), 0.0)
    core.expire(END_MS + 172_801_000)
    assert state.write(core.changes(100))
    state.close()
    assert restored(path)[0].book.names == ["7:1"]
    core.handle(SwitchDisconnected(7), 0.0)
    core.expire(END_MS + 172_801_000)
    assert state.write(core.changes(100))
    with sqlite3.connect(path) as database:
        assert database.execute("SELECT (SELECT count(*) FROM ports), (SELECT count(*) FROM cpus)").fetchone() == (
            0,
            0,
        )
    database.close()


@pytest.mark.parametrize("damage", ["text", "torn", "schema", "version"])
def test_a_damaged_database_is_set_aside_and_said(path: Path, damage: str, caplog: pytest.LogCaptureFixture):
    if damage == "text":
        path.write_text("this is no database at all" * 100)
    elif damage == "torn":
        content = bytearray(path.read_bytes())
        content[4096:] = bytes([0xA5]) * (len(content) - 4096)
        path.write_bytes(content)
    else:
        with sqlite3.connect(path) as database:
            database.execute("ALTER TABLE ports DROP COLUMN cpu" if damage == "schema" else "PRAGMA user_version = 9")
        database.close()
    damaged = path.read_bytes()
    core, state = restored(path)
    assert len(core.book) == 0
    (aside,) = set_aside(path)
    assert aside.read_bytes() == damaged
    assert str(aside) in state.set_aside
    assert state.set_aside in caplog.text
    assert state.write(measured(2).changes(100))
    state.close()
    assert restored(path)[0].book.names == ["7:1", "7:2"]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ("avgPercentBusy = 140 WHERE name = '7:2'", "ports.7:2.metrics.avgPercentBusy"),
        ("avgCount = 'many' WHERE name = '7:2'", "ports.7:2.metrics.avgCount"),
        ("family = 'abacus' WHERE name = '7:3'", "ports.7:3.family"),
        ("volumes = -1 WHERE name = '7:1'", "ports.7:1.volumes"),
        ("cpu = 'gone' WHERE name = '7:1'", "ports.7:1.cpu"),
    ],
)
def test_a_value_that_cannot_be_is_found_with_its_field(path: Path, change: str, field: str):
    with sqlite3.connect(path) as database:
        database.execute(f"UPDATE ports SET {change}")
    database.close()
    state = AllocationState(path, LOGGER)
    found = state.read()
    assert found is not None
    core = AllocatorCore(SETTINGS)
    with pytest.raises(PortStateError, match=f"^{field}: "):
        core.restore(found)
    assert len(core.book) == 0
    state.reject("a value")
    assert len(set_aside(path)) == 1
    assert not path.exists()


def test_two_damaged_databases_are_both_kept(path: Path):
    for number in (1, 2):
        path.write_text("nonsense " * 100)
        restored(path)
        assert len(set_aside(path)) == number


def test_damage_while_running_costs_no_metric(path: Path, caplog: pytest.LogCaptureFixture):
    core, state = restored(path)
    with sqlite3.connect(path) as database:
        database.execute("DROP TABLE ports")
    database.close()
    core.all_changed()
    assert not state.write(core.changes(100))
    assert "averages begin anew" in caplog.text
    core.all_changed()
    assert state.write(core.changes(100))
    state.close()
    assert restored(path)[0].book.reports(END_MS) == measured().book.reports(END_MS)


def test_a_database_that_is_locked_is_not_taken_for_damaged(path: Path, caplog: pytest.LogCaptureFixture):
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    state = AllocationState(path, LOGGER)
    core = measured()
    changes = core.changes(100)
    assert not state.write(changes)
    assert not state.write(changes)
    assert "locked" in state.fault
    assert caplog.text.count("cannot be used") == 1
    holder.execute("ROLLBACK")
    holder.close()
    assert state.write(changes)
    assert state.fault == ""
    assert set_aside(path) == []


def test_a_directory_that_is_not_there_is_said(tmp_path: Path):
    state = AllocationState(tmp_path / "nowhere" / "allocation.sqlite", LOGGER)
    assert state.read() is None
    assert "cannot be used" in state.fault
