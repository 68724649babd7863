"""A controller that is alone loads nothing of what several share."""

from __future__ import annotations

import subprocess
import sys

import pytest

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
