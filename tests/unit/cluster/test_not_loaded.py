"""A controller that is alone loads nothing of what several share, and sends what it would send without it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SENT_BYTES = Path(__file__).parents[3] / "benchmarks" / "sent_bytes.py"

LOADED = """
import sys
for module in ("apps.multicast", "apps.unicast", "apps.discovery", "apps.monitor", "apps.dashboard.app"):
    __import__(module)
print(sorted(name for name in sys.modules if name.startswith(("controller.cluster", "apps.cluster"))))
"""


def test_a_controller_that_is_alone_loads_nothing_of_it():
    pytest.importorskip("os_ken")
    done = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "[]\n"), done.stderr


def test_a_controller_that_is_alone_sends_byte_for_byte_what_it_sends_where_nothing_of_it_is_installed():
    pytest.importorskip("os_ken")
    command = [sys.executable, SENT_BYTES, "--without", "apps.cluster,controller.cluster"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    rows = [line.strip("| ").split(" | ") for line in done.stdout.splitlines() if line.startswith("| ")]
    sent = {row[0].strip(): row[2].strip() for row in rows}
    # What is read now and then follows time, and so does what is asked for.
    alike = [f"flow entries of one alone {when}" for when in ("when the fabric is known", "in the end")]
    for what in (*alike, "messages of one alone, or not as often"):
        assert sent.get(what) == "0", done.stdout + done.stderr
    assert int(sent["messages that change switches"]) > 100
