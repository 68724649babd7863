"""Tests that have processes, and fail while others use the processors too, are tried a second time, which counts.

Such a failure is looked into all the same: a run lists each with its traceback, and fails where there are more than a
few (script/test). A test that has the processors to itself is tried once, and so is one of a module that has started
no process: what it finds does not hang on who has the processors.
"""

from __future__ import annotations

import os
import resource
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import pytest


class Children:
    """Tells whether a module has had processes of its own, by what the kernel counts."""

    def __init__(self) -> None:
        self._module: Path | None = None
        self._faults = 0

    def begin(self, module: Path) -> None:
        """Count from here on, where another module begins."""
        if module != self._module:
            self._module, self._faults = module, self._ended_faults()

    def were_there(self) -> bool:
        """Tell whether a process that was begun since has ended, or whether there is one now."""
        if self._ended_faults() > self._faults:
            return True
        for task in Path("/proc/self/task").iterdir():
            with suppress(OSError):  # of a thread that ends meanwhile
                if (task / "children").read_text().strip():
                    return True
        return False

    @staticmethod
    def _ended_faults() -> int:
        """Return the page faults of children that were waited for: none ends without any."""
        return resource.getrusage(resource.RUSAGE_CHILDREN).ru_minflt


CHILDREN = Children()


def let_try_again(items: Iterable[pytest.Item]) -> None:
    """Let each of these tests be tried once more, where processes of this run share the processors."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return
    for item in items:
        item.add_marker(pytest.mark.flaky(reruns=1, condition=CHILDREN.were_there))
