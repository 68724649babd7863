"""`vsrt classes limits`: how full a group may be to do with so many trees."""

from __future__ import annotations

import argparse

from apps.cli.common import InputError, emit_json, emit_table
from controller.service_classes.measures import acceptable_utilisation

HELP = "show how full the trees of a group may be, by their number, for few of its packets to wait"
MAX_SERVERS = 64


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the number of trees."""
    parser.add_argument("--servers", type=int, required=True, metavar="N", help="trees, 1 to 64")


def run(args: argparse.Namespace) -> int:
    """Print the acceptable utilisation for 1 to N trees."""
    if not 1 <= args.servers <= MAX_SERVERS:
        raise InputError(f"--servers: {args.servers} is not a whole number from 1 to {MAX_SERVERS}")
    limits = [round(100 * acceptable_utilisation(count), 4) for count in range(1, args.servers + 1)]
    if args.json:
        emit_json({"limits_pct": limits})
    else:
        emit_table(("trees", "limit %"), [(count, f"{limit:.1f}") for count, limit in enumerate(limits, 1)])
    return 0
