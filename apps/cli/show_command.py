"""`vsrt show`: what a running controller knows, read once."""

from __future__ import annotations

import argparse
import sys

from apps.cli.called import SECTIONS, SnapshotNames
from apps.cli.common import OperationFailed, emit_json, emit_table
from apps.cli.reach import open_source
from apps.cli.show_selection import DocumentSelection, add_selection


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    add_selection(parser)


def run(args: argparse.Namespace) -> int:
    """Read the snapshot and print what was asked for."""
    chosen = DocumentSelection(args)
    table = chosen.table
    snapshot = next(open_source(args).follow(table.sections, beside=SECTIONS))
    if note := chosen.note(snapshot):
        print(f"vsrt: {note}", file=sys.stderr)
    found = [document.fields for document in chosen.items(snapshot)]
    if table.one and not found:
        raise OperationFailed(f"there is no {chosen.what}" + (f" {args.address}" if args.address else ""))
    if args.json:
        emit_json(found[0] if table.one else table.document(found))
    else:
        called = SnapshotNames(snapshot, chosen.clock)
        emit_table(chosen.clock.titles(table.titles), (row for fields in found for row in table.rows(fields, called)))
    return 0
