"""The operator's program, as real processes: one that fails, hangs, forks, floods, or is not there."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from apps.cluster.scaling_command import MOST_OUTPUT_BYTES, SAID_BYTES, ScalingProgram
from patience import wait_until

PATIENCE_S = 20.0
LIMIT_S = 30.0


def waited(reached: Callable[[], Any]) -> None:
    """Wait until something is so, for what this process and those it began have to do."""
    wait_until(reached, os.getpid(), PATIENCE_S)


def python(source: str) -> list[str]:
    return [sys.executable, "-c", source]


def test_one_that_fails_is_said_with_the_end_of_what_it_wrote_as_one_line() -> None:
    assert ScalingProgram().run(python("import sys; sys.exit('no host\\n\\x1b[31m is  free')"), (), LIMIT_S) == (
        f"{sys.executable} ended with 1: no host [31m is free"
    )
    ended = ScalingProgram().run(python("import os; os.kill(os.getpid(), 15)"), (), LIMIT_S)
    assert ended == f"{sys.executable} was ended by signal 15"


def test_one_that_cannot_be_run_is_said(tmp_path: Path) -> None:
    program = tmp_path / "scale"
    assert ScalingProgram().run([str(program)], (), LIMIT_S) == f"{program} cannot be run: No such file or directory"
    program.write_text("#!/bin/sh\n")
    assert ScalingProgram().run([str(program)], (), LIMIT_S) == f"{program} cannot be run: Permission denied"
    program.chmod(0o755)
    assert ScalingProgram().run([str(program)], (), LIMIT_S) == ""
    program.write_text("no program")
    assert ScalingProgram().run([str(program)], (), LIMIT_S) == f"{program} cannot be run: Exec format error"


def test_one_that_hangs_is_killed_with_what_it_started_so_that_the_next_try_is_the_only_one(tmp_path: Path) -> None:
    told = tmp_path / "told"
    child = python(f"import os, time; open({str(told)!r}, 'w').write(str(os.getpid())); time.sleep(600)")
    program = ScalingProgram()
    said = program.run(python(f"import subprocess; print('waits', flush=True); subprocess.run({child!r})"), (), 2.0)
    assert said == f"{sys.executable} was not done after 2 s, and was killed: waits"

    def is_gone() -> bool:
        try:
            state = Path(f"/proc/{told.read_text()}/stat").read_text().rpartition(")")[2].split()[0]
        except FileNotFoundError:
            return True
        return state == "Z"

    waited(is_gone)
    assert program.run(python(""), (), LIMIT_S) == ""


def test_what_one_starts_goes_on_when_it_has_ended(tmp_path: Path) -> None:
    told = tmp_path / "told"
    child = f"import time; time.sleep(0.3); print('x' * 100, flush=True); open({str(told)!r}, 'w').write('there')"
    program = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {child!r}])"
    assert ScalingProgram().run(python(program), (), LIMIT_S) == ""
    waited(lambda: told.exists() and told.read_text() == "there")


def test_one_that_floods_takes_little_room_and_the_end_of_it_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told, most = tmp_path / "told", 64 * MOST_OUTPUT_BYTES
    source = (
        "import os, sys, time\nfor _ in range(100):\n    os.write(1, b'x' * 1_000_000); time.sleep(0.01)\n"
        f"open({str(told)!r}, 'w').write(str(os.fstat(1).st_size))\nsys.exit('no host is free')"
    )
    said = ScalingProgram().run(python(source), (), 120.0)
    assert said.endswith("no host is free") and len(said) < SAID_BYTES + 200
    assert int(told.read_text()) < most < 100_000_000


def test_it_is_told_which_monitors_may_end_and_has_no_input() -> None:
    source = "import os, sys; sys.exit(os.environ['VSRT_SCALING_DRAINED'] + repr(sys.stdin.read()) + sys.argv[1])"
    said = ScalingProgram().run([*python(source), "monitors"], ("m2", "m3"), LIMIT_S)
    assert said == f"{sys.executable} ended with 1: m2 m3''monitors"
    assert "VSRT_SCALING_DRAINED" not in os.environ
