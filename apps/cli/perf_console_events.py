"""`vsrt perf events`: the latest events of the running controller."""

from __future__ import annotations

import argparse

from apps.cli.common import emit_json, emit_table
from apps.cli.perf_console import add_selection, add_socket, ask, clock, scaled, selection

HELP = "latest events, newest last"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    add_selection(parser)
    parser.add_argument("--count", type=int, default=50, metavar="N", help="events (default: 50)")
    add_socket(parser)


def run(args: argparse.Namespace) -> int:
    """Print the events."""
    answer = ask(args, "perf-events", {**selection(args), "count": args.count})
    if args.json:
        emit_json(answer)
        return 0
    emit_table(
        ("time (UTC)", "port", "severity", "state", "counter", "rate", "threshold", "kept back"),
        (
            (
                clock(event["time"]),
                f"{event['dpid']}:{event['port_no']}",
                event["severity"],
                event["state"],
                event["counter"],
                scaled(event["rate"]),
                scaled(event["threshold"]),
                event["suppressed"],
            )
            for event in answer["events"]
        ),
    )
    return 0
