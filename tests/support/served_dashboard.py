"""A dashboard's server as a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


@contextmanager
def served(socket: Path, *, alone: bool = False, **settings: Any) -> Iterator[str]:
    """Serve the controller at `socket`, which is not there if `alone`, on a free port; give the address."""
    process = subprocess.Popen(
        [sys.executable, "-m", "apps.dashboard"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stderr is not None
    try:
        process.stdin.write(json.dumps({"socket": str(socket), "port": 0, **settings}) + "\n")
        process.stdin.flush()
        address, following = None, alone
        while address is None or not following:
            line = process.stderr.readline()
            assert line, "the server ended"
            following = following or "follows the controller" in line
            if "serving http" in line:
                address = line.split()[-1].rstrip("/")
        threading.Thread(target=process.stderr.read, daemon=True).start()
        yield address
    finally:
        process.stdin.close()
        process.wait(10)
        process.stderr.close()
