"""`vsrt perf get`: the knobs of the running monitor."""

from __future__ import annotations

import argparse

from apps.cli.common import emit_json, emit_table
from apps.cli.perf_console import add_socket, ask

HELP = "knobs of the running monitor and their values"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("prefix", nargs="?", default="", metavar="KNOB", help="a knob, or how its name begins (all)")
    add_socket(parser)


def run(args: argparse.Namespace) -> int:
    """Print the knobs."""
    answer = ask(args, "perf-get", {"knob": args.prefix})
    if args.json:
        emit_json(answer)
        return 0
    emit_table(
        ("knob", "value", "unit", "changes", "meaning"),
        (
            (
                knob["knob"],
                "none" if knob["value"] is None else knob["value"],
                knob["unit"],
                "at once" if knob["live"] else "at start",
                knob["meaning"],
            )
            for knob in answer["knobs"]
        ),
    )
    return 0
