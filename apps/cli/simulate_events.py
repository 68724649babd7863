"""Options of `vsrt simulate` that let time pass: where events come from, and where their outcomes go."""

from __future__ import annotations

import argparse
from math import isfinite, nan
from pathlib import Path

from apps.cli.common import InputError

SUFFIXES = (".csv", ".parquet")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare where events come from and where their outcomes go."""
    group = parser.add_argument_group(
        "events over time",
        "The groups are there at the beginning and --churn and --fail-links change them, or they come by --storm. "
        "--events starts with none.",
    )
    group.add_argument("--events", type=Path, metavar="FILE", help="joins, leaves and failures: CSV or JSON lines")
    group.add_argument(
        "--storm", type=_positive, metavar="T", help="let all members join in a storm of window T seconds"
    )
    group.add_argument(
        "--churn", type=_positive, metavar="RATE", help="Poisson joins per second, all groups together"
    )
    group.add_argument(
        "--holding-s", type=_positive, default=60.0, metavar="S", help="mean stay of a member (default: %(default)g)"
    )
    group.add_argument(
        "--duration-s",
        type=_positive,
        metavar="S",
        help="how long churn and failures go on (default: 60, with --storm as long as it lasts)",
    )
    group.add_argument("--fail-links", type=_count, default=0, metavar="N", help="links that fail, at random times")
    group.add_argument(
        "--repair-s", type=_positive, default=10.0, metavar="S", help="mean time to repair (default: %(default)g)"
    )
    group.add_argument(
        "--rebalance", action="store_true", help="spread the trees anew after every failure and return (vsrt alone)"
    )
    group.add_argument(
        "--event-rows", type=Path, metavar="FILE", help=f"write one row per event ({' or '.join(SUFFIXES)})"
    )


def _positive(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = nan
    if not (isfinite(value) and value > 0):
        raise argparse.ArgumentTypeError(f"{text!r} is no positive number")
    return value


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 0 on")
    return int(text)


def wanted(args: argparse.Namespace) -> bool:
    """Tell whether the command line asks for events; InputError for options that do not go together."""
    sources = [name for name in ("events", "storm", "churn") if getattr(args, name) is not None]
    if "events" in sources and len(sources) > 1:
        raise InputError(f"--{sources[1]}: not together with --events")
    asked = bool(sources or args.fail_links)
    if args.event_rows is not None:
        if not asked:
            raise InputError("--event-rows: needs --events, --storm, --churn or --fail-links")
        if args.event_rows.suffix.lower() not in SUFFIXES:
            raise InputError(f"--event-rows: {args.event_rows} ends in none of {', '.join(SUFFIXES)}")
        if not args.event_rows.parent.is_dir():
            raise InputError(f"--event-rows: {args.event_rows.parent} is no folder")
    return asked
