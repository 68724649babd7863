"""Standard output that tells its own faults apart from those of whatever else a command reads and writes."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any, TextIO, cast


class OutputFailed(Exception):  # noqa: N818 - it names what happened, as events do
    """Standard output takes no more; the text says why, and is empty where who read it has gone."""


class StandardOutput:
    """A stream, but for what it raises where it cannot write: OutputFailed."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        """Everything else is as the stream has it."""
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write text."""
        try:
            return int(self._stream.write(text))
        except OSError as error:
            raise _failed(error) from error

    def flush(self) -> None:
        """Write what is left."""
        try:
            self._stream.flush()
        except OSError as error:
            raise _failed(error) from error


def _failed(error: OSError) -> OutputFailed:
    return OutputFailed("" if isinstance(error, BrokenPipeError) else f"standard output: {error.strerror}")


def have_streams() -> None:
    """Give the process what it was started without, for the next file that it opens would be standard output."""
    if sys.stdout is None:
        sys.stdout = Path(os.devnull).open("w")  # noqa: SIM115 - for as long as the process runs
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115 - for as long as the process runs
    if sys.stdout is sys.__stdout__:
        sys.stdout = cast(TextIO, StandardOutput(sys.stdout))


def drop_output() -> None:
    """Keep the interpreter from writing at its exit what is left for standard output."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
