"""What some tests need and not every machine has: without it they are left out, or fail where nothing may be."""

from __future__ import annotations

import os

import pytest

REQUIRED = "VSRT_REQUIRE_EMULATION"
"""The environment variable by which a run is told to leave nothing out."""


def is_all_required() -> bool:
    """Tell whether a run is to leave nothing out."""
    return bool(os.environ.get(REQUIRED))


def leave_out(why: str) -> None:
    """Leave a test out, and say why; fail it where nothing may be left out."""
    if is_all_required():
        pytest.fail(why, pytrace=False)
    pytest.skip(why)
