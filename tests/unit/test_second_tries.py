"""Which tests of a run are tried a second time, and what is told of them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SUPPORT = Path(__file__).parents[1] / "support"
OPTIONS = ("--max-suite-reruns", "3", "--rerun-show-tracebacks")
"""What script/test gives beside."""

CONFTEST = """\
import pytest
from second_tries import let_try_again

def pytest_configure(config):
    config.addinivalue_line("markers", "emulation: a live test")

def pytest_collection_modifyitems(items):
    let_try_again(item for item in items if item.get_closest_marker("emulation"))
"""

FAILS_AT_FIRST = """\
import pathlib, pytest

@pytest.mark.{mark}
def test_it(request):
    tried = pathlib.Path("{name}.tried")
    if not tried.exists():
        tried.touch()
        assert 0, "the packet was late"
"""


def outcome(directory: Path, *arguments: str, mark: str = "emulation", count: int = 1) -> tuple[int, str]:
    """Run tests that fail at first; return pytest's exit status and what it says."""
    (directory / "conftest.py").write_text(CONFTEST)
    for number in range(count):
        text = FAILS_AT_FIRST.format(mark=mark, name=number)
        (directory / f"test_{number}.py").write_text(text)
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    words = ("-m", "pytest", "-p", "no:cacheprovider", f"--rootdir={directory}", *OPTIONS, *arguments)
    done = subprocess.run(
        [sys.executable, *words],
        cwd=directory,
        env={**env, "PYTHONPATH": str(SUPPORT)},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


def test_a_live_test_beside_others_is_tried_again_and_its_failure_told(tmp_path: Path) -> None:
    status, told = outcome(tmp_path, "-n", "1")
    assert status == pytest.ExitCode.OK, told
    assert "1 passed, 1 rerun" in told
    assert "RERUN test_0.py::test_it" in told
    assert "the packet was late" in told


def test_few_are_tried_again(tmp_path: Path) -> None:
    status, told = outcome(tmp_path, "-n", "1", count=5)
    assert status == pytest.ExitCode.TESTS_FAILED
    assert "2 failed, 3 passed, 3 rerun" in told


@pytest.mark.parametrize(("arguments", "mark"), [((), "emulation"), (("-n", "1"), "filterwarnings('error')")])
def test_others_are_not(arguments: tuple[str, ...], mark: str, tmp_path: Path) -> None:
    status, told = outcome(tmp_path, *arguments, mark=mark)
    assert status == pytest.ExitCode.TESTS_FAILED
    assert "1 failed" in told
    assert "rerun" not in told.splitlines()[-1]
