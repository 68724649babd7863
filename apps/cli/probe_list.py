"""`vsrt probe list`: the points at which scripts can look, and what they see there."""

from __future__ import annotations

import argparse

from apps.cli.common import InputError, emit_json, emit_table
from apps.probe_points import recorded_points
from controller.probes.value_kinds import fields_of

HELP = "list the points at which scripts can look, with the arguments that they have there"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the pattern."""
    parser.add_argument("pattern", nargs="?", default="*", metavar="GLOB", help="names wanted (default: all)")


def run(args: argparse.Namespace) -> int:
    """Print the points."""
    points = recorded_points().find(args.pattern)
    if not points:
        raise InputError(recorded_points().why_none(args.pattern))
    found = {point.name: {name: str(kind) for name, kind in fields_of(point.record).items()} for point in points}
    if args.json:
        emit_json({"points": [{"name": name, "arguments": arguments} for name, arguments in found.items()]})
    else:
        rows = [(name, ", ".join(f"{kind} {each}" for each, kind in found[name].items()) or "-") for name in found]
        emit_table(("point", "arguments"), rows)
    return 0
