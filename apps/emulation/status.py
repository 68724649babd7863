"""Questions to a live controller, and waiting until the answer is as wanted."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from apps.emulation.processes import EmulationError
from apps.status_client import query

POLL_S = 0.05
ANSWER_TIMEOUT_S = 20.0


def show(path: Path | str, what: str) -> Any:
    """Return the controller's ``status`` or ``groups``."""
    return query(path, {"show": what}, ANSWER_TIMEOUT_S)


def wait_until(
    path: Path | str,
    what: str,
    reached: Callable[[Any], bool],
    timeout_s: float,
    alive: Callable[[], None] = lambda: None,
) -> Any:
    """Ask for `what` until `reached` accepts the answer, and return that answer.

    `alive` raises where waiting has become pointless. Raises EmulationError, with the last answer, in the end.
    """
    deadline = time.monotonic() + timeout_s
    answer: Any = None
    while time.monotonic() < deadline:
        alive()
        try:
            answer = show(path, what)
        except OSError as error:
            answer = {"error": str(error)}
        else:
            if not (isinstance(answer, dict) and "error" in answer) and reached(answer):
                return answer
        time.sleep(POLL_S)
    raise EmulationError(f"the controller's {what} after {timeout_s} s: {json.dumps(answer)[:2000]}")
