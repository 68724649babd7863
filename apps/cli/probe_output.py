"""What probes have found, for a terminal: their lines, and their aggregates as tables and histograms."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Any

from apps.cli.common import printable, table_lines

BAR_WIDTH = 40
ROWS_WITH_HISTOGRAM = 8
"""Rows of an aggregate whose histograms are drawn, those with most samples."""


def print_probe(document: Mapping[str, Any]) -> None:
    """Print lines and aggregates, and on standard error what was lost."""
    for line in document["printed"]:
        print(shown(line))
    for line in aggregate_lines(document):
        print(line)
    print_lost(document)


def aggregate_lines(found: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines that show aggregates: their tables, and how samples are distributed."""
    for name, rows in found["aggregates"].items():
        if rows:
            yield ""
            yield f"{name}:"
            titles = ("key", "count", "mean", "min", "max") if name in found["sampled"] else ("key", "count")
            yield from table_lines(titles, [_row(row)[: len(titles)] for row in rows])
            for row in rows[:ROWS_WITH_HISTOGRAM]:
                yield from _histogram(row)


def print_lost(document: Mapping[str, Any]) -> None:
    """Print on standard error what a script could not do."""
    for said, count in (
        *((f"firings ended by a fault ({kind})", count) for kind, count in document.get("faults", {}).items()),
        ("keys found no room", document.get("lost_keys")),
        ("lines found no room", document.get("lost_lines")),
        ("firings were refused for want of time", document.get("skipped")),
    ):
        if count:
            print(f"vsrt: {count:,} {said}", file=sys.stderr)


def shown(text: str) -> str:
    """Return a line of a script with nothing in it that a terminal would carry out but its tabs."""
    return "\t".join(map(printable, text.split("\t")))


def _row(row: Mapping[str, Any]) -> tuple[str, ...]:
    keys = ", ".join(map(str, row["keys"])) or "-"
    return keys, f"{row['count']:,}", f"{row['sum'] / row['count']:,.6g}", f"{row['min']:,}", f"{row['max']:,}"


def _histogram(row: Mapping[str, Any]) -> Iterator[str]:
    """Yield how samples of a key are distributed, unless they are all in one bucket."""
    histogram = row["histogram"]
    if len(histogram) < 2:
        return
    yield ""
    yield f"  [{', '.join(printable(key) for key in row['keys'])}]"
    most = max(count for _, count in histogram)
    width = max(len(f"{least:,}") for least, _ in histogram)
    for least, count in histogram:
        yield f"  {least:>{width},} | {'#' * max(1, round(BAR_WIDTH * count / most)):<{BAR_WIDTH}} {count:,}"
