"""Files of text and of JSON lines, also packed by gzip, and what is wrong with those that cannot be read."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

from apps.cli.common import InputError


@contextmanager
def file_faults(path: Path) -> Iterator[None]:
    """Have a file that cannot be read, is no text or is packed badly end in InputError, which names it."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: the file is not text in UTF-8") from None
    except EOFError:
        raise InputError(f"{path}: the compressed file ends too early") from None
    except zlib.error:
        raise InputError(f"{path}: the compressed file is damaged") from None


def open_text(path: Path) -> IO[str]:
    """Open a text file, or one that gzip packed."""
    if path.suffix == ".gz":
        return cast(IO[str], gzip.open(path, "rt", encoding="utf-8-sig", newline=""))
    return path.open(encoding="utf-8-sig", newline="")


class JsonLine(NamedTuple):
    """An object of a file of JSON lines, its place for who is told what is wrong with it, and its text."""

    where: str
    fields: dict[str, Any]
    text: str


def json_lines(
    path: Path,
    notes: list[str],
    *,
    after_crashes: bool = False,
    taken: Callable[[str, int], bool] | None = None,
) -> Iterator[JsonLine]:
    """Yield the objects of a file of JSON lines; InputError names the line that is none.

    A last line that ends too early is left out, with a note.

    Parameters
    ----------
    after_crashes
        Whether who wrote the file went on in a new line after a crash, so that any line may end too early.
    taken
        Takes a line and its number without having it read as JSON, or returns False.
    """
    torn: list[str] = []
    with open_text(path) as file:
        for number, line in enumerate(file, 1):
            if torn and not after_crashes:
                raise InputError(torn[0])
            if line.isspace() or (taken is not None and taken(line, number)):
                continue
            where = f"{path}:{number}"
            try:
                fields = json.loads(line)
            except (ValueError, RecursionError):
                fields = None
            if isinstance(fields, dict):
                yield JsonLine(where, fields, line)
                continue
            torn.append(f"{where}: the line is no JSON object")
            if not line.startswith("{"):
                raise InputError(torn[-1])
    if torn:
        more = f", as are {len(torn) - 1} more" if len(torn) > 1 else ""
        notes.append(f"{torn[0]}, and is left out{more}")
