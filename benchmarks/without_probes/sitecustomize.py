"""A controller without probes: on the path of one that starts, this stands for the module that has its scripts."""

import sys
from types import ModuleType
from typing import Any


class _NoProbes:
    """What apps say to their scripts, where there are none."""

    def join(self, app: Any) -> None:
        """Leave the app alone."""

    def leave(self, app: Any) -> None:
        """Leave the app alone."""

    def log_fault(self, app: Any) -> None:
        """Have nothing to log."""


_module = ModuleType("apps.openflow.live_probes")
_module.PROBES = _NoProbes()  # type: ignore[attr-defined]
sys.modules["apps.openflow.live_probes"] = _module
