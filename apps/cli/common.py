"""What the commands of `vsrt` share: errors with exit codes, JSON and tables on standard output, topology files."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from topology.files import LoadedTopology


class InputError(Exception):
    """Bad input; the text names the file, line or field. `vsrt` prints it and exits with 2."""


class OperationFailed(Exception):  # noqa: N818 - it names what happened, as events do
    """What was asked for could not be done. `vsrt` prints the text and exits with 1."""


def emit_json(document: Any) -> None:
    """Print one JSON document, alone on its line; ValueError for numbers that JSON has not."""
    sys.stdout.write(json.dumps(document, allow_nan=False, default=str) + "\n")


def emit_table(titles: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print rows under titles in columns, numbers to the right; the last column takes the rest of the line."""
    for line in table_lines(titles, rows):
        print(line)


def table_lines(titles: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[str]:
    """Yield the lines of a table: the titles, then the rows. What a terminal would obey is shown as a sign.

    The last cell of a row that has fewer cells than there are titles takes the rest of the line.
    """
    cells = [list(titles), *([printable(cell) for cell in row] for row in rows)]
    under = [line if len(line) == len(titles) else line[:-1] for line in cells]
    columns = [[line[column] for line in under if column < len(line)] for column in range(len(titles))]
    widths = [max(map(len, column)) for column in columns]
    right = [
        len(column) > 1 and all(cell.replace(".", "").replace(",", "").isdecimal() for cell in column[1:])
        for column in columns
    ]
    for line, placed in zip(cells, under, strict=True):
        padded = [
            cell.rjust(width) if to_right else cell.ljust(width)
            for cell, width, to_right in zip(placed, widths, right, strict=False)
        ]
        yield "  ".join([*padded, *line[len(placed) :]]).rstrip()


def printable(cell: object) -> str:
    """Return a cell as text without control characters: names come from the network."""
    text = str(cell)
    return text if text.isprintable() else "".join(sign if sign.isprintable() else "\ufffd" for sign in text)


def read_topology(path: Path) -> LoadedTopology:
    """Read a topology file of any known format; InputError where it cannot be read."""
    from topology.files import TopologyFileError, parse

    try:
        return parse(path.read_bytes(), str(path))
    except TopologyFileError as error:
        raise InputError(str(error)) from None
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None
