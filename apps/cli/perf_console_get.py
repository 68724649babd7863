"""`vsrt perf get`: the settings of the running monitor."""

from __future__ import annotations

import argparse

from apps.cli.common import emit_json, emit_table
from apps.cli.perf_console import add_console, ask

HELP = "settings of the running monitor and their values"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument(
        "prefix", nargs="?", default="", metavar="SETTING", help="a setting, or how its name begins (all)"
    )
    add_console(parser)


def run(args: argparse.Namespace) -> int:
    """Print the settings."""
    answer = ask(args, "perf-get", {"knob": args.prefix})
    if args.json:
        emit_json(answer)
        return 0
    emit_table(
        ("setting", "value", "unit", "changes", "meaning"),
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
