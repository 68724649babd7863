"""The commands in `benchmarks/` run and print figures: those that are quick with small amounts are started here.

mypy looks at all of them, and finds what they call and is no longer there.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from required import leave_out

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "benchmarks"

STARTED = (
    "allocation_live.py --switches 20 --count 5 --repeats 1",
    "anomaly_live.py --ports 100 --windows 1",
    "anomaly_oracles.py --count 1 --jobs 1",
    "avalanche24_fluid.py --runs 1",
    "check_corruptions.py --count 4 --at-a-time 2",
    "cluster_histories.py --seeds 1 --size small",
    "cluster_shares.py --seeds 1 --switches 10 --monitors 2 --size small",
    "codecs.py --repeats 1",
    "discovery_scale.py --k 4 --failures 1 --idle-s 1",
    "edit_windows.py windows --seeds 1",
    "fabric_joins.py --k 4 --groups 2 --members 2 --rounds 1",
    "fabric_joins.py --k 4 --groups 2 --members 2 --count",
    "link_scope.py --sizes 4 --rounds 1",
    "log_cost.py --rounds 1",
    "maintenance_campaigns.py --campaigns 1",
    "membership_core.py 100",
    "membership_flood.py --per-second 200 --seconds 1",
    "multicast_core.py --rounds 1 --per-round 5",
    "normalcy_live.py cost --series 5 --minutes 3",
    "overcommit_joins.py --rounds 1 --per-round 5",
    "overcommit_shares.py --draws 1 --table 50",
    "overcommit_covers.py --topology fattree --groups 60 --seeds 1 --channels 2",
    "overcommit_sharing.py --topology fattree --groups 20 --seeds 1",
    "performance_rates.py --ports 100 --memory-ports 100 --repeats 1",
    "repair_edits.py --groups 10 --rounds 1",
    "scaling_advice.py --seeds 1 --part bottlenecks",
    "service_classes.py --runs 1 spines",
    "simulate_article.py --groups 2 --seeds 1",
    "unicast_scale.py --k 4 --hosts 4 --repeats 1",
)
"""With amounts that make each of them end within about a second of processor time."""

FIGURE = re.compile(r"(?<![\w.])-?\d[\d,]*(?:\.\d+)?(?:e[+-]\d+)?(?![\w.])")
NOT_A_FIGURE = re.compile(r"\bobject at 0x|<built-in|<bound method|<function")


def run(line: str) -> subprocess.CompletedProcess[str]:
    """Run a command of `benchmarks/`, as one would at the root of the repository."""
    name, *arguments = shlex.split(line)
    return subprocess.run(
        [sys.executable, FOLDER / name, *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("line", STARTED)
def test_it_prints_figures(line: str):
    done = run(line)
    assert done.returncode == 0, done.stderr
    assert len(FIGURE.findall(done.stdout)) >= 2, done.stdout
    assert NOT_A_FIGURE.findall(done.stdout) == []


def test_reads_of_a_mounted_controller_are_timed():
    if os.geteuid() != 0 or not Path("/dev/fuse").exists() or find_spec("mfusepy") is None:
        leave_out("needs root, /dev/fuse and the package mfusepy")
    done = run("mounted_reads.py --switches 4 --reads 20 --repeats 1")
    assert done.returncode == 0, done.stderr
    told = [line for line in done.stdout.splitlines() if line.startswith(("| mounted: ", "| tmpfs: "))]
    assert len(told) == 4, done.stdout
    assert all(FIGURE.search(line) for line in told)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("allocation.py --samples 100", "--samples: at least 2 polls of 10000 ports are averaged"),
        (
            "probes.py cost --rows firings",
            "--rows: 'firings' is none of nothing, attached, overload, exactness, after, core, bytecodes, firing",
        ),
        ("normalcy_live.py quality --days 2", "--days: faults begin after 14 days, so at least 17 are needed"),
    ],
)
def test_what_cannot_be_measured_is_told_by_its_option(line: str, told: str):
    done = run(line)
    assert done.returncode == 2
    assert told in done.stderr
    assert done.stdout == ""


def test_mypy_is_told_of_every_command_by_folder():
    configured = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    files = re.search(r"^\[tool\.mypy\]$.*?^files = \[(.*?)\]$", configured, re.MULTILINE | re.DOTALL)
    assert files is not None
    assert '"benchmarks"' in files[1]
