"""The build backend: setuptools' own, and mypy where VSRT_COMPILE=1 asks for compiled cores (setup.py)."""

from __future__ import annotations

import os
from typing import Any

from setuptools import build_meta
from setuptools.build_meta import *  # noqa: F403

COMPILER = "mypy>=2.4,<3"


def get_requires_for_build_wheel(config_settings: Any = None) -> list[str]:
    """Return what it takes to build a wheel, beside `build-system.requires`."""
    needed: list[str] = build_meta.get_requires_for_build_wheel(config_settings)
    return [*needed, COMPILER] if os.environ.get("VSRT_COMPILE") == "1" else needed
