"""What the environment says of the controller's files."""

from __future__ import annotations

import os
from pathlib import Path


def environment_path(name: str) -> str | None:
    """Return the path in an environment variable, None where it is unset or empty."""
    return os.environ.get(name) or None


def policy_path() -> Path | None:
    """Return the path of the policy file: VSRT_CONFIG, None where there is none."""
    path = environment_path("VSRT_CONFIG")
    return Path(path) if path else None


def state_path() -> Path:
    """Return the path of the directory of the controller's files: VSRT_STATE_DIR, or vsrt-state where it started."""
    return Path(environment_path("VSRT_STATE_DIR") or "vsrt-state")
