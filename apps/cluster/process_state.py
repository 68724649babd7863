"""Whether a process stands still because it was stopped, which its parent and children may ask the system."""

from __future__ import annotations

from pathlib import Path

_STOPPED = {"T", "t"}


def is_stopped(pid: int) -> bool:
    """Tell whether a process was stopped by a signal or a tracer; False where the system does not say."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return text.rpartition(")")[2].split()[0] in _STOPPED
