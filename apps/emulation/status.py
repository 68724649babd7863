"""Questions to a live controller over its Unix socket: one JSON line each way."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from apps.emulation.processes import EmulationError

POLL_S = 0.02


def query(path: Path | str, request: dict[str, Any], timeout_s: float = 5.0) -> Any:
    """Send `request` to the controller at `path` and return its answer; OSError where nobody listens there."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(timeout_s)
        connection.connect(str(path))
        connection.sendall(json.dumps(request).encode() + b"\n")
        with connection.makefile("rb") as reader:
            line = reader.readline()
    if not line:
        raise ConnectionError(f"{path}: no answer to {request}")
    return json.loads(line)


def show(path: Path | str, what: str) -> Any:
    """Return the controller's ``status`` or ``groups``."""
    return query(path, {"show": what})


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
