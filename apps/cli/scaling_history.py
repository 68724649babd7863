"""`vsrt scaling history`: how the pool of monitors fared in the latest intervals, and what was advised after each."""

from __future__ import annotations

import argparse

from apps.cli import show_command
from apps.cli.reach import add_source
from apps.cli.times import add_zone

HELP = "list the latest intervals: monitors, load, lateness, and what was advised and done"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare how many, and where the controller or monitor is."""
    parser.add_argument("--limit", type=int, metavar="N", help="the latest N intervals (default: all that are kept)")
    add_zone(parser)
    add_source(parser)
    chosen = ("address", "switch", "port", "group", "tenant", "severity", "select", "sort")
    parser.set_defaults(what="scaling", search="", reverse=False, **dict.fromkeys(chosen))


run = show_command.run
