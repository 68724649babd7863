"""Deadlines of the tests: a process that hangs has no more time for it, one that gets no processor has."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from patience import HeldUp, Patience, end_of, kept_waiting_s, wait_until


def python(code: str) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-S", "-c", code], text=True, stderr=subprocess.PIPE)


@pytest.fixture
def crowd() -> Iterator[list[subprocess.Popen[str]]]:
    """Three processes that want the same processor all the time."""
    processes = [python("while True: pass") for _ in range(3)]
    for process in processes:
        os.sched_setaffinity(process.pid, {min(os.sched_getaffinity(0))})
    yield processes
    for process in processes:
        process.kill()
        process.communicate()


def test_a_process_that_hangs_has_its_time_and_no_more() -> None:
    with python("import time; time.sleep(600)") as process:
        with pytest.raises(AssertionError, match=f"process {process.pid} had 0.3 s"):
            wait_until(lambda: None, process.pid, 0.3)
        with pytest.raises(AssertionError):
            end_of(process, 0.3)
        process.kill()


def test_waiting_for_a_processor_does_not_count(crowd: list[subprocess.Popen[str]]) -> None:
    wait_until(lambda: min(kept_waiting_s(process.pid) for process in crowd) > 0.2, crowd[0].pid, 60)
    patience, before_s = Patience(crowd[0].pid, 0.5), kept_waiting_s(crowd[0].pid)
    while kept_waiting_s(crowd[0].pid) < before_s + 0.6:
        patience.check()


def test_processes_that_were_held_up_are_told_of_since_the_begin(crowd: list[subprocess.Popen[str]]) -> None:
    wait_until(lambda: min(kept_waiting_s(process.pid) for process in crowd) > 0.2, crowd[0].pid, 60)
    one, all_of_them = HeldUp(crowd[0].pid), HeldUp(*(process.pid for process in crowd))
    assert one.seconds() < kept_waiting_s(crowd[0].pid)
    wait_until(lambda: one.seconds() > 0.3, crowd[0].pid, 60)
    assert all_of_them.seconds() > one.seconds()


def test_those_that_a_process_began_count_with_it() -> None:
    code = "import subprocess, sys; subprocess.run([sys.executable, '-S', '-c', 'input()'])"
    with subprocess.Popen([sys.executable, "-S", "-c", code], text=True, stdin=subprocess.PIPE) as process:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        (child,) = wait_until(lambda: children.read_text().split(), process.pid, 60)
        assert kept_waiting_s(process.pid) >= kept_waiting_s(int(child))
        assert process.stdin is not None
        process.stdin.write("\n")


def test_the_end_of_a_process_is_told_with_what_it_wrote() -> None:
    with python("import sys; sys.stderr.write('x' * 200_000); sys.exit(3)") as process:
        assert end_of(process, 60) == "x" * 200_000
        assert process.returncode == 3
