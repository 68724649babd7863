"""`vsrt perf report`: the last rates of ports, switches or classes of switches."""

from __future__ import annotations

import argparse

from apps.cli.common import emit_json, emit_table
from apps.cli.perf_console import (
    PORT_TITLES,
    add_console,
    add_list,
    add_selection,
    arranged,
    ask,
    asked_count,
    percent,
    port_rows,
    scaled,
    selection,
)

HELP = "last rates by port, node or node type, from the running controller"
KINDS = ("port", "queue", "group", "meter", "flow", "table")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    add_selection(parser)
    parser.add_argument("--by", choices=("port", "node", "type"), default="port", help="what a line is about (port)")
    parser.add_argument("--statistics", choices=KINDS, default="port", help="which statistics (port)")
    add_list(parser, "lines", 10000)
    add_console(parser)


def run(args: argparse.Namespace) -> int:
    """Print the report."""
    question = {**selection(args), "by": args.by, "statistics": args.statistics, "limit": asked_count(args)}
    answer = ask(args, "perf-report", question)
    for listed in ("ports", "rows", "entries"):
        if listed in answer:
            answer[listed] = arranged(args, answer[listed])
    if args.json:
        emit_json(answer)
    elif args.statistics != "port":
        emit_table(
            ("switch", "entry", "totals", "per second"),
            (
                (
                    entry["switch"],
                    " ".join(f"{name}={value}" for name, value in entry["key"].items()),
                    " ".join(f"{name}={scaled(value)}" for name, value in entry["totals"].items()),
                    " ".join(f"{name}={scaled(value)}" for name, value in entry["per_s"].items()),
                )
                for entry in answer["entries"]
            ),
        )
    elif args.by == "port":
        emit_table(PORT_TITLES, port_rows(answer["ports"]))
    else:
        emit_table(
            (args.by, "class", "up", "ports", "rx bit/s", "tx bit/s", "busiest %", "busiest port", "errors/s"),
            (
                (
                    row["switch"] if args.by == "node" else row["type"],
                    row["type"],
                    row["up"],
                    row["ports"],
                    scaled(row["rx_bps"]),
                    scaled(row["tx_bps"]),
                    percent(row["busiest_pct"]),
                    row["busiest"] or "-",
                    scaled(row["errors_per_s"]),
                )
                for row in answer["rows"]
            ),
        )
    return 0
