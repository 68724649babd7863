"""`vsrt perf top`: the busiest ports, refreshed on a terminal."""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any

from apps.cli.common import InputError, emit_json, emit_table
from apps.cli.perf_console import NODE_TYPES, PORT_TITLES, add_socket, ask, clock, port_rows

HELP = "the busiest ports of the running controller's fabric, refreshed on a terminal"
ORDERS = ("utilisation", "rx", "tx", "errors")
CLEAR = "\x1b[H\x1b[2J"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("--count", type=int, default=20, metavar="N", help="ports (default 20)")
    parser.add_argument("--order", choices=ORDERS, default="utilisation", help="what busy means (utilisation)")
    parser.add_argument(
        "--type", choices=NODE_TYPES, default="all", help="ports to hosts, or a class of switches (all)"
    )
    parser.add_argument("--every", type=float, default=2.0, metavar="S", help="seconds between two looks (default 2)")
    parser.add_argument("--once", action="store_true", help="look once; so it is without a terminal or with --json")
    add_socket(parser)


def run(args: argparse.Namespace) -> int:
    """Print the busiest ports, again and again on a terminal."""
    if not 0.1 <= args.every <= 3600:
        raise InputError(f"--every: {args.every:g} is not within 0.1 and 3600 s")
    question = {"count": args.count, "order": args.order, "type": args.type}
    if args.json:
        emit_json(ask(args, "perf-top", question))
        return 0
    refresh = sys.stdout.isatty() and not args.once
    while True:
        answer = ask(args, "perf-top", question)
        if refresh:
            sys.stdout.write(CLEAR)
        _show(answer)
        if not refresh:
            return 0
        sys.stdout.flush()
        time.sleep(args.every)


def _show(answer: dict[str, Any]) -> None:
    down = answer["down"]
    counts = f"{answer['switches']} switches, {len(down)} down  {answer['ports_watched']} ports"
    print(f"{clock(answer['time'])} UTC  {counts}")
    if down:
        print("down: " + " ".join(str(dpid) for dpid in down[:20]) + (" ..." if len(down) > 20 else ""))
    emit_table(PORT_TITLES, port_rows(answer["ports"]))
