"""`vsrt classes transfers`: which trees would move to which groups, and why."""

from __future__ import annotations

import argparse

from apps.cli.allocate_input import add_input, read_as
from apps.cli.common import emit_json, emit_table
from controller.service_classes.documents import read_transfers, transfers_document
from controller.service_classes.transfers import PACES, decide

HELP = "show which trees would move to which groups, and why"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the groups and classes, and the pace."""
    add_input(parser, "the moment, classes and groups (JSON)")
    parser.add_argument(
        "--pace", choices=list(PACES), default="steady", help="as `aliases.pace` of the policy (default: %(default)s)"
    )


def run(args: argparse.Namespace) -> int:
    """Print the transfers of one pass."""
    found = transfers_document(decide(*read_as(args.input, read_transfers), PACES[args.pace]))
    if args.json:
        emit_json(found)
        return 0
    rows = [
        (each["by"], "the pool" if each["from"] is None else each["from"], each["to"], each["reason"])
        for each in found["transfers"]
    ]
    if rows:
        emit_table(("by", "from", "to", "reason"), rows)
    else:
        print("No tree would move.")
    return 0
