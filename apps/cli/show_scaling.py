"""Rows of `vsrt show scaling`: how a pool of monitors fared in each interval, and what was advised."""

from __future__ import annotations

from collections.abc import Iterator

from apps.cli.called import SnapshotNames
from apps.cli.show_cells import Fields, Row, text

SCALING_TITLES = ("ENDED (UTC)", "MONITORS", "LOAD", "LATE", "SKIPPED", "GOAL", "ADVISED", "REMARKS")


def scaling_rows(interval: Fields, called: SnapshotNames) -> Iterator[Row]:
    """Yield the row of an interval."""
    load, late = (interval.get(name) for name in ("load", "lateness"))
    pace, wanted_pace = interval.get("pace") or 1, interval.get("wanted_pace")
    advised = str(text(interval.get("wanted")))
    if wanted_pace not in (None, pace):
        advised = f"{wanted_pace} x the time between polls"
    remarks = next(filter(None, map(interval.get, ("gap", "outcome", "withheld", "rule"))), None)
    yield (
        called.clock(interval.get("ended_s")),
        text(interval.get("monitors")),
        "-" if load is None else f"{load:.2f}",
        "-" if late is None else f"{late:.3f}",
        text(interval.get("skipped")),
        text(interval.get("slo")),
        advised + (" (ordered)" if interval.get("is_ordered") else ""),
        text(remarks),
    )
