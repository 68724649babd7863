"""A setting of the machine that emulations beside each other want larger, and what is lost although it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from apps.emulation.buffers import OverrunTotal, raised


@pytest.fixture
def setting(tmp_path: Path) -> Path:
    setting = tmp_path / "rmem_default"
    setting.write_text("200\n")
    return setting


def test_the_last_to_end_restores_the_setting(setting: Path, tmp_path: Path) -> None:
    first, second, third = (raised(setting, 1000, tmp_path) for _ in range(3))
    first.__enter__()
    assert setting.read_text() == "1000"
    second.__enter__()
    first.__exit__(None, None, None)
    assert setting.read_text() == "1000", "the second has it still"
    third.__enter__()
    second.__exit__(None, None, None)
    assert setting.read_text() == "1000"
    third.__exit__(None, None, None)
    assert setting.read_text() == "200\n"
    with raised(setting, 1000, tmp_path):
        assert setting.read_text() == "1000"
    assert setting.read_text() == "200\n"


def test_a_setting_that_is_large_enough_stays(setting: Path, tmp_path: Path) -> None:
    setting.write_text("3000\n")
    with raised(setting, 1000, tmp_path):
        assert setting.read_text() == "3000\n"
    assert setting.read_text() == "3000\n"


def test_what_was_killed_is_restored_by_the_next(setting: Path, tmp_path: Path) -> None:
    (tmp_path / "vsrt-rmem_default").write_text("200\n")
    setting.write_text("1000")
    with raised(setting, 1000, tmp_path):
        assert setting.read_text() == "1000"
    assert setting.read_text() == "200\n"


def test_what_a_port_has_lost_stays_lost_when_the_port_goes() -> None:
    total = OverrunTotal()
    assert total.add({}) == 0
    assert total.add({"s1-eth1": 3, "s2-eth1": 1}) == 4
    assert total.add({"s2-eth1": 2}) == 5, "a port has gone"
    assert total.add({"s1-eth1": 2, "s2-eth1": 2}) == 7, "it is back, with another socket"
    assert total.add({"s1-eth1": 4, "s2-eth1": 2}) == 9
