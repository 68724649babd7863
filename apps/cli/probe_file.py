"""Probe scripts in files."""

from __future__ import annotations

from pathlib import Path

from apps.cli.common import InputError
from apps.probe_points import recorded_points
from controller.probes.script import Script, load


def read_script(path: Path) -> str:
    """Return the text of a script; InputError where it cannot be read."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: {error}") from None


def load_script(text: str) -> Script:
    """Return a script over the points of a recording; ScriptFault for what is wrong with it."""
    return load(text, recorded_points())
