"""`vsrt scaling simulate`: a pool whose load is read from a file, under learners beside each other."""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from random import Random
from typing import Any

from apps.cli.common import InputError, emit_json, emit_table
from apps.cli.load_trace import read_loads
from controller.scaling.learners import LEARNERS, make_learner
from controller.scaling.model import PoolBounds
from controller.simulation.scaling import LoadTrace, ScalingRun, run_scaling

HELP = "show how often a pool would meet its SLO, and with how many members, by each learner"
MOST_INTERVALS = 1_000_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the trace, the learners and the pool."""
    parser.add_argument(
        "--trace",
        type=Path,
        required=True,
        metavar="FILE",
        help="CSV with a row an interval: load, in members that are busy",
    )
    parser.add_argument(
        "--learners",
        default="yesterday,seasonal-q,vscale,threshold,proportional",
        help=f"of {', '.join(LEARNERS)} (default: %(default)s)",
    )
    parser.add_argument("--repeat", type=int, default=1, metavar="N", help="times that the trace comes (default: 1)")
    parser.add_argument(
        "--period", type=int, metavar="N", help="intervals after which loads repeat (default: those of the file)"
    )
    parser.add_argument(
        "--slo", type=float, default=0.25, help="lateness of 99 of 100 polls, in intervals (default: %(default)g)"
    )
    parser.add_argument("--least", type=int, default=1, metavar="N", help="fewest members (default: %(default)s)")
    parser.add_argument("--limit", type=int, default=64, metavar="N", help="most members (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of what is drawn (default: %(default)s)")


def run(args: argparse.Namespace) -> int:
    """Print how each learner fared, in all and in the last period."""
    loads = read_loads(args.trace)
    if not 1 <= args.repeat * len(loads) <= MOST_INTERVALS:
        raise InputError(f"--repeat: {args.repeat} is not from 1 to {MOST_INTERVALS // len(loads)}")
    period = len(loads) if args.period is None else args.period
    if not 1 <= period <= len(loads) * args.repeat:
        raise InputError(
            f"--period: {period} is not from 1 to the {len(loads) * args.repeat} intervals that there are"
        )
    if not 0 < args.slo < math.inf:
        raise InputError(f"--slo: {args.slo:g} is not above 0")
    if not 1 <= args.least <= args.limit:
        raise InputError(f"--least: {args.least} is not from 1 to --limit, {args.limit}")
    names = [name.strip() for name in args.learners.split(",")]
    for name in names:
        if name not in LEARNERS:
            raise InputError(f"--learners: there is no {name!r}; there are {', '.join(LEARNERS)}")
    trace = LoadTrace(loads * args.repeat, period)
    found = {}
    for name in names:
        learner = make_learner(name, Random(args.seed).random)
        outcome = run_scaling(trace, learner, args.seed, args.slo, PoolBounds(args.least, args.limit))
        found[name] = _figures(outcome, period)
    if args.json:
        emit_json({"intervals": len(trace.loads), "period": period, "slo": args.slo, "learners": found})
        return 0
    titles = ("learner", "SLO met %", "of the last period", "members", "of the last period", "changes")
    emit_table(titles, [(name, *row.values()) for name, row in found.items()])
    return 0


def _figures(outcome: ScalingRun, period: int) -> dict[str, Any]:
    return {
        "slo_met_pct": round(outcome.met_pct(), 2),
        "slo_met_last_period_pct": round(outcome.met_pct(-period), 2),
        "mean_members": round(outcome.mean_members(), 2),
        "mean_members_last_period": round(outcome.mean_members(-period), 2),
        "changes": sum(advice is not None for advice in outcome.advices),
    }
