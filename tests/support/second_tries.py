"""Live tests that fail while others have the processors too are tried a second time, which counts.

Such a failure is looked into all the same: a run lists each with its traceback, and fails where there are more than a
few (script/test). A test that has the processors to itself is tried once.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

import pytest


def let_try_again(live: Iterable[pytest.Item]) -> None:
    """Let each of these tests be tried once more, where processes of this run share the processors."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return
    for item in live:
        item.add_marker(pytest.mark.flaky(reruns=1))
