"""Which members are the two ends of one cable, from a file."""

from __future__ import annotations

import csv
from collections.abc import Collection, Iterator
from pathlib import Path

from apps.cli.common import InputError
from controller.anomaly.peers.incidents import join_ends

COLUMNS = ["member", "other_end"]


def read_cables(path: Path, members: Collection[str]) -> dict[str, str]:
    """Return the other end of each cable, by member.

    Parameters
    ----------
    path : Path
        CSV with the heading `member,other_end`, a cable in each line.
    members : collection of str
        Those of the metric file: a cable may end elsewhere (at a host), but not at both ends.

    Raises
    ------
    InputError
        The file cannot be read, or a line is none of two ends, names no member, or gives a member a second cable.
    """
    far: dict[str, str] = {}
    for place, cable in _lines(path):
        if not set(cable) & set(members):
            raise InputError(f"{place}: neither {cable[0]!r} nor {cable[1]!r} is a member in the metric file")
        try:
            join_ends(far, *cable)
        except ValueError as error:
            raise InputError(f"{place}: {error}") from None
    return far


def _lines(path: Path) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield each line's place and its two ends."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: {error}") from None
    rows = csv.reader(text.splitlines())
    heading = next(rows, [])
    if heading != COLUMNS:
        raise InputError(f"{path}: line 1: expected member,other_end, found {','.join(heading)!r}")
    for row in rows:
        place = f"{path}: line {rows.line_num}"
        if not row:
            continue
        if len(row) != len(COLUMNS) or not all(row):
            raise InputError(f"{place}: expected two ends, found {','.join(row)!r}")
        yield place, (row[0], row[1])
