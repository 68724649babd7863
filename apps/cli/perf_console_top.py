"""`vsrt perf top`: the busiest ports, refreshed on a terminal."""

from __future__ import annotations

import argparse
from typing import Any

from apps.cli.common import emit_table
from apps.cli.perf_console import (
    NODE_TYPES,
    PORT_TITLES,
    add_console,
    add_list,
    arranged,
    ask,
    asked_count,
    port_rows,
)
from apps.cli.refresh import add_refresh, show_refreshed
from apps.cli.times import Clock, add_zone, clock_of

HELP = "the busiest ports of the running controller's fabric, refreshed on a terminal"
ORDERS = ("utilisation", "rx", "tx", "errors")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    add_list(parser, "the busiest ports", 20)
    add_zone(parser)
    parser.add_argument("--order", choices=ORDERS, default="utilisation", help="what busy means (utilisation)")
    parser.add_argument(
        "--type", choices=NODE_TYPES, default="all", help="ports to hosts, or a class of switches (all)"
    )
    add_refresh(parser)
    add_console(parser)


def run(args: argparse.Namespace) -> int:
    """Print the busiest ports, again and again on a terminal."""
    question = {"count": asked_count(args), "order": args.order, "type": args.type}
    clock = clock_of(args)

    def look() -> dict[str, Any]:
        answer = ask(args, "perf-top", question)
        return {**answer, "ports": arranged(args, answer["ports"])}

    show_refreshed(args, look, lambda answer: _show(answer, clock))
    return 0


def _show(answer: dict[str, Any], clock: Clock) -> None:
    down = answer["down_switches"]
    counts = f"{answer['switches']} switches, {len(down)} down  {answer['ports_watched']} ports"
    print(f"{clock.told(answer['time'])}  {counts}")
    if down:
        print("down: " + " ".join(down[:20]) + (" ..." if len(down) > 20 else ""))
    emit_table(PORT_TITLES, port_rows(answer["ports"]))
