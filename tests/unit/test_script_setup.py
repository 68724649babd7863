"""The functions that script/test has its parts run by, beside each other and one after the other."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

SETUP = Path(__file__).parents[2] / "script" / "lib" / "setup.sh"
GONE = 'while [ -d "/proc/$BESIDE" ]; do :; done'


def run(script: str, directory: Path) -> subprocess.CompletedProcess[str]:
    beginning = f"set -euo pipefail; source {SETUP}; CHILD='' BESIDE='' TMPDIR={directory}"
    return subprocess.run(["bash", "-c", f"{beginning}\n{script}"], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("until", ["", GONE], ids=["while it runs", "when it has ended"])
@pytest.mark.parametrize(("status", "shown"), [(0, ""), (4, "what it found\n")])
def test_what_fails_beside_fails_and_is_shown(tmp_path: Path, until: str, status: int, shown: str):
    work = f"work() {{ attend /bin/true; attend /bin/sh -c 'echo what it found; exit {status}'; }}"
    done = run(f"{work}\nbegin_beside work\n{until}\nend_beside", tmp_path)
    assert (done.returncode, done.stdout) == (status, shown), done.stderr


def test_the_status_of_what_is_attended_is_its_own(tmp_path: Path):
    done = run("for status in 0 1 7; do attend /bin/sh -c \"exit $status\" || printf '%s ' $?; done", tmp_path)
    assert (done.returncode, done.stdout) == (0, "1 7 "), done.stderr
