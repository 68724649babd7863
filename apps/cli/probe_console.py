"""Questions about scripts to a running controller."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from apps.cli.common import InputError, OperationFailed
from apps.cli.perf_console import answer_of, socket_path


def ask_controller(args: argparse.Namespace, question: Mapping[str, Any]) -> Any:
    """Return the controller's answer; OperationFailed where there is none, InputError where it refuses."""
    path = socket_path(args)
    answer = answer_of(path, question)
    if isinstance(answer, dict) and isinstance(answer.get("error"), str):
        if answer.get("refused"):
            raise InputError(answer["error"])
        raise OperationFailed(f"{path}: {answer['error']}")
    return answer
