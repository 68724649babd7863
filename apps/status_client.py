"""Questions to a running controller over its Unix socket: one JSON line each way."""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def query(path: Path | str, request: Mapping[str, Any], timeout_s: float = 5.0) -> Any:
    """Send `request` to the controller at `path` and return its answer.

    OSError where nobody listens there or answers in time, ValueError where the answer is no JSON.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(timeout_s)
        connection.connect(str(path))
        connection.sendall(json.dumps(request).encode() + b"\n")
        with connection.makefile("rb") as reader:
            line = reader.readline()
    if not line:
        raise ConnectionError("the connection was closed")
    return json.loads(line)
