"""Questions about scripts to a running controller."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from apps.cli.perf_console import ask_socket


def ask_controller(args: argparse.Namespace, question: Mapping[str, Any]) -> Any:
    """Return the controller's answer; OperationFailed where there is none, InputError where it refuses."""
    return ask_socket(args, question, "scripts cannot look at this controller")
