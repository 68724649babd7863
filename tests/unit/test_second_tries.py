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
from second_tries import CHILDREN, let_try_again

def pytest_collection_modifyitems(items):
    let_try_again(items)

def pytest_runtest_setup(item):
    CHILDREN.begin(item.path)
"""

FAILS_AT_FIRST = """\
import pathlib, subprocess

def test_it():
    {first}
    tried = pathlib.Path("{name}.tried")
    if not tried.exists():
        tried.touch()
        assert 0, "the packet was late"
"""


ENDS = 'subprocess.run(["true"], check=True)'
GOES_ON = 'globals().update(kept=subprocess.Popen(["cat"], stdin=subprocess.PIPE))'
"""What starts a process that is waited for, and one that is there when the test fails, and ends with its parent."""

ALONE = "pass"


def outcome(directory: Path, *arguments: str, first: tuple[str, ...] = (ENDS,)) -> tuple[int, str]:
    """Run tests that fail at first, each after what it does first; return pytest's exit status and what it says."""
    (directory / "conftest.py").write_text(CONFTEST)
    for number, does in enumerate(first):
        (directory / f"test_{number}.py").write_text(FAILS_AT_FIRST.format(first=does, name=number))
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


@pytest.mark.parametrize("first", [ENDS, GOES_ON])
def test_a_test_with_processes_beside_others_is_tried_again_and_its_failure_told(first: str, tmp_path: Path) -> None:
    status, told = outcome(tmp_path, "-n", "1", first=(first,))
    assert status == pytest.ExitCode.OK, told
    assert "1 passed, 1 rerun" in told
    assert "RERUN test_0.py::test_it" in told
    assert "the packet was late" in told


def test_few_are_tried_again(tmp_path: Path) -> None:
    status, told = outcome(tmp_path, "-n", "1", first=(ENDS,) * 5)
    assert status == pytest.ExitCode.TESTS_FAILED
    assert "2 failed, 3 passed, 3 rerun" in told


@pytest.mark.parametrize(("arguments", "first"), [((), (ENDS,)), (("-n", "1"), (ENDS, ALONE))])
def test_others_are_not(arguments: tuple[str, ...], first: tuple[str, ...], tmp_path: Path) -> None:
    status, told = outcome(tmp_path, *arguments, first=first)
    assert status == pytest.ExitCode.TESTS_FAILED
    assert "1 failed" in told
    assert f"RERUN test_{len(first) - 1}.py" not in told
