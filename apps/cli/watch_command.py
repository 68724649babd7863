"""`vsrt watch`: what a running controller knows, shown again as soon as it changes."""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from collections.abc import Iterator, Sequence

from apps.cli.called import SECTIONS, SnapshotNames
from apps.cli.common import emit_json, printable, table_lines
from apps.cli.following import followed
from apps.cli.reach import open_source
from apps.cli.refresh import CLEAR
from apps.cli.show_selection import DocumentSelection, add_selection
from controller.snapshot.reader import Document, Snapshot

NEWEST = 10
"""Events, cleared alarms and allocations that the lines begin with, without a limit."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.epilog = (
        "On a terminal the table is drawn anew at each change. Elsewhere, and with --json, there is a line for each "
        "document: those that there are (of events, cleared alarms and allocations the newest 10, or --limit), then "
        "each that changes; with --json one that is gone has `removed`. "
        "A controller that is not to be reached any more is tried again each second. Ctrl-C ends it, with status 0."
    )
    add_selection(parser, default="status")


def run(args: argparse.Namespace) -> int:
    """Follow the snapshot until interrupted."""
    chosen, source = DocumentSelection(args), open_source(args)
    try:
        snapshots = followed(source, chosen.table.sections, beside=SECTIONS)
        if args.json:
            _print_documents(chosen, snapshots)
        elif sys.stdout.isatty():
            _draw(chosen, snapshots)
        else:
            _print_rows(chosen, snapshots)
    except KeyboardInterrupt:
        pass
    return 0


def _draw(chosen: DocumentSelection, snapshots: Iterator[Snapshot]) -> None:
    table = chosen.table
    for snapshot in snapshots:
        called = SnapshotNames(snapshot, chosen.clock)
        rows = (row for document in chosen.items(snapshot) for row in table.rows(document.fields, called))
        lines = list(table_lines(chosen.clock.titles(table.titles), rows))
        size = shutil.get_terminal_size()
        room = max(1, size.lines - 4)
        hidden = len(lines) - 1 - room
        shown = lines[1:]
        if hidden > 0:
            shown = shown[-room:] if table.newest_last else shown[:room]
        head = f"{chosen.what}  {chosen.clock.told(time.time())}" + (f"  ({hidden} more lines)" if hidden > 0 else "")
        sys.stdout.write(CLEAR + "\n".join(line[: size.columns] for line in (head, "", lines[0], *shown)) + "\n")
        sys.stdout.flush()


def _print_rows(chosen: DocumentSelection, snapshots: Iterator[Snapshot]) -> None:
    table = chosen.table
    widths: list[int] = []
    for put, removed, called in _differences(chosen, snapshots):
        rows = [[printable(cell) for cell in row] for document in put for row in table.rows(document.fields, called)]
        if not widths:
            rows.insert(0, chosen.clock.titles(table.titles))
            widths = [0] * len(table.titles)
        for row in rows:
            widths = [max(width, len(cell)) for width, cell in zip(widths, row, strict=True)]
        for row in rows:
            print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
        for id_ in removed:
            print(f"gone: {printable(id_)}")
        sys.stdout.flush()


def _print_documents(chosen: DocumentSelection, snapshots: Iterator[Snapshot]) -> None:
    for put, removed, _called in _differences(chosen, snapshots):
        for document in put:
            emit_json(document.fields)
        for id_ in removed:
            emit_json({"id": id_, "removed": True})
        sys.stdout.flush()


def _differences(
    chosen: DocumentSelection, snapshots: Iterator[Snapshot]
) -> Iterator[tuple[Sequence[Document], Sequence[str], SnapshotNames]]:
    """Yield the documents that are new or changed since the last time, the ids of those that are gone, and names.

    Where the newest are last, as of events, nothing is gone, and the first time only the newest are new.
    """
    log = chosen.table.newest_last
    known: dict[str, Document] | None = None
    for snapshot in snapshots:
        found = {document.id: document for document in (chosen.all_items if log else chosen.items)(snapshot)}
        before = known or {}
        put = [
            document for id_, document in found.items() if id_ not in before or before[id_].fields != document.fields
        ]
        if log and known is None:
            put = put[-(chosen.limit or NEWEST) :]
        removed = [] if log else [id_ for id_ in before if id_ not in found]
        known = found
        if put or removed:
            yield put, removed, SnapshotNames(snapshot, chosen.clock)
