"""JSON files of `vsrt allocate`, and the file's name in front of what is wrong in them."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from apps.cli.common import InputError
from apps.cli.text_files import file_faults
from controller.allocation.fields import RequestError

T = TypeVar("T")


def add_input(parser: argparse.ArgumentParser, what: str) -> None:
    """Declare the input file."""
    parser.add_argument("--input", type=Path, required=True, metavar="FILE", help=what)


def read_json(path: Path) -> Any:
    """Return a decoded JSON file; InputError names file and line."""
    with file_faults(path):
        text = path.read_text(encoding="utf-8-sig")
    try:
        return json.loads(text, parse_constant=_no_number)
    except json.JSONDecodeError as error:
        raise InputError(f"{path}:{error.lineno}: {error.msg}") from None
    except RecursionError:
        raise InputError(f"{path}: nested too deeply") from None
    except ValueError as error:
        raise InputError(f"{path}: {error}") from None


def read_as(path: Path, read: Callable[[Any], T]) -> T:
    """Return what `read` makes of a decoded JSON file; InputError names file and field."""
    document = read_json(path)
    try:
        return read(document)
    except RequestError as error:
        raise InputError(f"{path}: {error}") from None


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is no number in JSON")
