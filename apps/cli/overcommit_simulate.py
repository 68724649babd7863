"""`vsrt overcommit simulate`: which packets of a trace miss at a flow table that is too small for its groups."""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from random import Random

from apps.cli.common import InputError, emit_json, emit_table
from apps.cli.packet_trace import read_packet_trace
from controller.simulation.table_choices import CHOICES
from controller.simulation.table_trace import run_trace

HELP = "show which packets of a trace miss at a flow table that is too small for its groups"
LARGEST_TABLE = 10_000_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the trace, the table and who chooses."""
    parser.add_argument(
        "--trace", type=Path, required=True, metavar="FILE", help="CSV or Parquet: time_s, group; sorted by time"
    )
    parser.add_argument("--table", type=int, required=True, metavar="N", help="groups that have an entry at a time")
    parser.add_argument(
        "--latency-ms",
        type=float,
        default=10.0,
        help="from a miss until packets find the entry (default: %(default)g)",
    )
    parser.add_argument(
        "--warmup-s", type=float, default=0.0, help="from the first packet on, not counted (default: %(default)g)"
    )
    parser.add_argument(
        "--policy",
        choices=list(CHOICES),
        default="default",
        help="who chooses: the controller, or another to hold it against (default: %(default)s)",
    )
    parser.add_argument("--seed", type=int, default=0, help="of what is drawn (default: %(default)s)")


def run(args: argparse.Namespace) -> int:
    """Print what became of the packets."""
    if not 1 <= args.table <= LARGEST_TABLE:
        raise InputError(f"--table: {args.table} is not a whole number from 1 to {LARGEST_TABLE}")
    for name, value in (("--latency-ms", args.latency_ms), ("--warmup-s", args.warmup_s)):
        if not 0 <= value < math.inf:
            raise InputError(f"{name}: {value:g} is not a number from 0 on")
    trace = read_packet_trace(args.trace)
    choice = CHOICES[args.policy](trace, args.table, Random(args.seed))
    warmup_s = (trace.times_s[0] if trace.times_s else 0.0) + args.warmup_s
    found = run_trace(trace, args.table, choice, latency_s=args.latency_ms / 1000, warmup_s=warmup_s)._asdict()
    if args.json:
        emit_json(found)
    else:
        emit_table(tuple(name.replace("_", " ") for name in found), [tuple(f"{value:,}" for value in found.values())])
    return 0
