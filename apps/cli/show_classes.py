"""Rows of service classes and of their queues."""

from __future__ import annotations

from collections.abc import Iterator

from apps.cli.called import SnapshotNames
from apps.cli.perf_console import scaled
from apps.cli.show_cells import Fields, Row, place, text


def class_rows(row: Fields, called: SnapshotNames) -> Iterator[Row]:
    """Yield the row of a service class."""
    counts = (text(row.get(name)) for name in ("service_class", "dscp", "groups", "senders"))
    goal = " ".join(f"{kind} {value:g}" for kind, value in (row.get("goal") or {}).items())
    at = "-" if row.get("dpid") is None else place(row, called)
    rate, queue, index = scaled(row.get("rate_bps"), "bit/s"), text(row.get("queue_id")), text(row.get("index"))
    yield *counts, rate, queue, goal or "-", index, at, scaled(row.get("missing_bps"), "bit/s")


def queue_rows(queue: Fields, called: SnapshotNames) -> Iterator[Row]:
    """Yield the row of a queue of a port."""
    rates = (scaled(queue.get(name), "bit/s") for name in ("min_rate_bps", "tx_bps"))
    classes_there = ", ".join(queue.get("classes") or ()) or "-"
    drops, index, lacks = text(queue.get("dropped_pps")), text(queue.get("index")), queue.get("missing_bps")
    yield (
        place(queue, called),
        text(queue.get("queue_id")),
        classes_there,
        *rates,
        drops,
        index,
        scaled(lacks, "bit/s"),
    )
