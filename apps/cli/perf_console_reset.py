"""`vsrt perf reset`: let the totals of ports begin anew."""

from __future__ import annotations

import argparse

from apps.cli.common import emit_json
from apps.cli.perf_console import add_console, add_selection, ask, selection
from apps.cli.snapshot_socket import user_name
from apps.cli.times import add_zone, clock_of

HELP = "let the totals of ports begin anew (the switch's own counters go on)"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    add_selection(parser)
    add_zone(parser)
    add_console(parser)


def run(args: argparse.Namespace) -> int:
    """Reset and say how many ports."""
    answer = ask(args, "perf-reset", {**selection(args), "by": user_name()})
    if args.json:
        emit_json(answer)
    else:
        print(f"{answer['ports']} ports count from {clock_of(args).told(answer['time'])}")
    return 0
