"""What scripts have found, as documents: of one run, or of several that ran beside each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

from controller.probes.runtime import AggregateRow, KeyTuple, Line, ProbeRun

ROWS_LOOKED_AT = 64
"""Rows of an aggregate that are shown while a script runs: those with most samples."""


class Found(NamedTuple):
    """What one run has found: of aggregates some rows and how many there are, of lines those that are new.

    `sampled` are the aggregates that were given samples with ``<-``; the others only count.
    """

    rows: Mapping[str, Sequence[AggregateRow]]
    row_counts: Mapping[str, int]
    sampled: Collection[str]
    lines: Sequence[Line]
    line_count: int
    fired: int
    skipped: int
    faults: Mapping[str, int]
    lost_keys: int
    lost_lines: int


def found(run: ProbeRun, at_most: int | None = None, known_lines: int = 0) -> Found:
    """Return what a run has found so far; on the loop on which it runs.

    Parameters
    ----------
    run
        The run.
    at_most
        How many rows of each aggregate, those with most samples; None for all.
    known_lines
        How many of its lines whoever asks knows.
    """
    return Found(
        {name: run.rows(name, at_most) for name in run.aggregates},
        {name: len(rows) for name, rows in run.aggregates.items()},
        [name for name in run.aggregates if run.is_sampled(name)],
        run.lines[known_lines:],
        len(run.lines),
        run.fired,
        run.skipped,
        dict(run.faults),
        run.lost_keys,
        run.lost_lines,
    )


def document(parts: Sequence[Found], at_most: int | None = None) -> dict[str, Any]:
    """Return what the runs of a script have found together, JSON-able; of aggregates at most so many rows."""
    lines = sorted((line for part in parts for line in part.lines), key=lambda line: line.at_ns)
    names = list(dict.fromkeys(name for part in parts for name in part.rows))
    aggregates = {name: _rows(parts, name, at_most) for name in names}
    return {
        "aggregates": aggregates,
        "rows": {name: max(len(aggregates[name]), *(part.row_counts[name] for part in parts)) for name in names},
        "sampled": [name for name in names if any(name in part.sampled for part in parts)],
        "printed": [line.text for line in lines],
        "fired": sum(part.fired for part in parts),
        "skipped": sum(part.skipped for part in parts),
        "faults": dict(sum((Counter(part.faults) for part in parts), Counter[str]())),
        "lost_keys": sum(part.lost_keys for part in parts),
        "lost_lines": sum(part.lost_lines for part in parts),
    }


def _rows(parts: Sequence[Found], name: str, at_most: int | None) -> list[dict[str, Any]]:
    together: dict[KeyTuple, AggregateRow] = {}
    for part in parts:
        for row in part.rows[name]:
            before = together.get(row.keys)
            together[row.keys] = row if before is None else _sum(before, row)
    rows = sorted(together.values(), key=lambda row: (-row.count, tuple(map(str, row.keys))))[:at_most]
    return [
        {**asdict(row), "keys": list(row.keys), "histogram": [list(each) for each in row.histogram]} for row in rows
    ]


def _sum(one: AggregateRow, other: AggregateRow) -> AggregateRow:
    histogram = Counter(dict(one.histogram)) + Counter(dict(other.histogram))
    return AggregateRow(
        one.keys,
        one.count + other.count,
        one.sum + other.sum,
        min(one.min, other.min),
        max(one.max, other.max),
        tuple(sorted(histogram.items())),
    )
