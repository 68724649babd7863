"""What a stranger adds is found where it stands: no list is edited for it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import controller
from apps import exporters
from apps.exporters.registry import find_outputs
from apps.registry import find_apps
from controller.trees import builders
from controller.trees.algorithms import find_algorithms

ALGORITHM = """
from controller.trees.builders.steiner import SteinerTree

ALGORITHMS = {NAME: type("AddedTree", (SteinerTree,), {})}
"""
APP = """
from controller.app_spec import AppSpec

APP = AppSpec("added", "was added", None)
"""


@pytest.fixture
def added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder whose modules stand in the packages where strangers add theirs."""
    known = set(sys.modules)
    for package in (builders, exporters, controller):
        beside(package, tmp_path, monkeypatch)
    yield tmp_path
    for name in set(sys.modules) - known:
        del sys.modules[name]


def beside(package: ModuleType, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(package, "__path__", [*package.__path__, str(folder)])


def test_a_tree_algorithm_is_one_file(added: Path) -> None:
    (added / "added.py").write_text(ALGORITHM.replace("NAME", '"added"'))
    assert "added" in find_algorithms()


def test_two_tree_algorithms_of_one_name_are_refused(added: Path) -> None:
    (added / "added.py").write_text(ALGORITHM.replace("NAME", '"steiner"'))
    with pytest.raises(ValueError, match="two tree algorithms are called steiner"):
        find_algorithms()


def test_an_output_is_one_file(added: Path) -> None:
    (added / "added_sink.py").write_text('OUTPUTS = {"added": lambda settings, of: None}\n')
    assert "added" in find_outputs()


def test_two_outputs_of_one_name_are_refused(added: Path) -> None:
    (added / "added_sink.py").write_text('OUTPUTS = {"syslog": lambda settings, of: None}\n')
    with pytest.raises(ValueError, match="two outputs are called syslog"):
        find_outputs()


def test_the_row_of_an_app_stands_in_the_package_of_its_core(added: Path) -> None:
    (added / "added").mkdir()
    (added / "added" / "__init__.py").touch()
    (added / "added" / "app.py").write_text(APP)
    assert "added" in {spec.name for spec in find_apps()}
