"""`vsrt classes rates`: what the queues at a port are sure of."""

from __future__ import annotations

import argparse

from apps.cli.allocate_input import add_input, read_as
from apps.cli.common import emit_json, emit_table
from controller.service_classes.documents import rates_of

HELP = "show the least rates of the queues at a port, and which goals do not fit"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the port and its classes."""
    add_input(parser, "a port and its classes (JSON): capacity_bps, floor_pct, classes")


def run(args: argparse.Namespace) -> int:
    """Print the rates and what is missing."""
    found = read_as(args.input, rates_of)
    if args.json:
        emit_json(found)
        return 0
    missing = found["infeasible"]
    rows = [(name, rate, missing.get(name, 0)) for name, rate in found["min_rate_bps"].items()]
    emit_table(("class", "min rate bit/s", "missing bit/s"), rows)
    return 0
