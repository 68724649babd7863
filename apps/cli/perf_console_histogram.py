"""`vsrt perf histogram`: how the rates of a counter are distributed."""

from __future__ import annotations

import argparse
from typing import Any

from apps.cli.common import emit_json, emit_table
from apps.cli.perf_console import add_console, ask, node_of, scaled

HELP = "distribution of a counter's rates, of one switch or all"
BAR = 40


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("counter", metavar="COUNTER", help="such as tx_bytes or rx_crc_err")
    parser.add_argument("--node", metavar="SWITCH", help="one switch, by name or datapath id (all where absent)")
    add_console(parser)


def run(args: argparse.Namespace) -> int:
    """Print percentiles and buckets."""
    question: dict[str, Any] = {"counter": args.counter}
    if args.node is not None:
        question["node"] = node_of(args.node, "--node")
    answer = ask(args, "perf-histogram", question)
    if args.json:
        emit_json(answer)
        return 0
    print(f"{answer['counter']} per second: {answer['samples']} rates, {answer['zeros']} of them 0")
    emit_table(("percentile", "rate"), ((name, scaled(rate)) for name, rate in answer["percentiles"].items()))
    most = max((bucket["count"] for bucket in answer["buckets"]), default=1)
    emit_table(
        ("from", "to", "count", ""),
        (
            (
                scaled(bucket["lower"]),
                scaled(bucket["upper"]),
                bucket["count"],
                "#" * max(1, round(BAR * bucket["count"] / most)),
            )
            for bucket in answer["buckets"]
        ),
    )
    return 0
