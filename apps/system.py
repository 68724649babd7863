"""What is the system's own: modules of Python as they are without a framework, and this process itself.

What waits by those modules is a thread of the system's.
Under eventlet those of the same names have all threads of the process wait in one.
"""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any

from apps.end_signals import let_end


def _system(name: str) -> Any:
    patcher = sys.modules.get("eventlet.patcher")
    return importlib.import_module(name) if patcher is None else patcher.original(name)


system_queue = _system("queue")
system_select = _system("select")
system_socket = _system("socket")
system_threading = _system("threading")


def become_anew() -> None:
    """Have this process run its command once more, from the beginning, unless it was asked to end meanwhile."""
    sys.stdout.flush()
    sys.stderr.flush()
    if let_end():
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])
