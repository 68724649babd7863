"""What probes have found, for a terminal: their lines, and their aggregates as tables and histograms."""

from __future__ import annotations

import sys
from typing import Any

from apps.cli.common import emit_table

BAR_WIDTH = 40
ROWS_WITH_HISTOGRAM = 8
"""Rows of an aggregate whose histograms are drawn, those with most samples."""


def print_probe(document: dict[str, Any]) -> None:
    """Print lines and aggregates, and on standard error what was lost."""
    for line in document["printed"]:
        print(shown(line))
    for name, rows in document["aggregates"].items():
        if rows:
            print(f"\n{name}:")
            emit_table(("key", "count", "mean", "min", "max"), [_row(row) for row in rows])
            for row in rows[:ROWS_WITH_HISTOGRAM]:
                _draw(row)
    for said, count in (
        *((f"firings ended by a fault ({kind})", count) for kind, count in document["faults"].items()),
        ("keys found no room", document["lost_keys"]),
        ("lines found no room", document["lost_lines"]),
        ("firings were refused for want of time", document["skipped"]),
    ):
        if count:
            print(f"vsrt: {count:,} {said}", file=sys.stderr)


def shown(text: str) -> str:
    """Return a text of a script with nothing in it that a terminal would carry out."""
    return "".join(character if character.isprintable() or character == "\t" else "\ufffd" for character in text)


def _row(row: dict[str, Any]) -> tuple[str, ...]:
    keys = ", ".join(shown(str(key)) for key in row["keys"]) or "-"
    return keys, f"{row['count']:,}", f"{row['sum'] / row['count']:,.6g}", f"{row['min']:,}", f"{row['max']:,}"


def _draw(row: dict[str, Any]) -> None:
    """Draw how samples of a key are distributed, unless they are all in one bucket."""
    histogram = row["histogram"]
    if len(histogram) < 2:
        return
    print(f"\n  [{', '.join(shown(str(key)) for key in row['keys'])}]")
    most = max(count for _, count in histogram)
    width = max(len(f"{least:,}") for least, _ in histogram)
    for least, count in histogram:
        print(f"  {least:>{width},} | {'#' * max(1, round(BAR_WIDTH * count / most)):<{BAR_WIDTH}} {count:,}")
