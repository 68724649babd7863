"""`vsrt perf events`: the latest events of the running controller."""

from __future__ import annotations

import argparse

from apps.cli.common import emit_json, emit_table
from apps.cli.perf_console import add_console, add_list, add_selection, arranged, ask, asked_count, scaled, selection
from apps.cli.times import add_zone, clock_of

HELP = "latest events, newest last"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    add_selection(parser)
    add_list(parser, "events", 50)
    add_zone(parser)
    add_console(parser)


def run(args: argparse.Namespace) -> int:
    """Print the events."""
    clock = clock_of(args)
    answer = ask(args, "perf-events", {**selection(args), "count": asked_count(args)})
    answer["events"] = arranged(args, answer["events"])
    if args.json:
        emit_json(answer)
        return 0
    emit_table(
        clock.titles(("time (UTC)", "port", "severity", "state", "counter", "rate", "threshold", "kept back")),
        (
            (
                clock(event["time"]),
                f"{event['switch']}:{event['port_no']}",
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
