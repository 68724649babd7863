"""`vsrt normalcy`: what is normal for a series, and how abnormal each of its points is."""

from __future__ import annotations

import argparse

from apps.cli import normalcy_live
from apps.cli.common import InputError
from apps.cli.perf_console import add_console
from apps.cli.subcommands import add_subcommands, run_subcommand

SUBCOMMANDS = {
    "fit": "apps.cli.normalcy_fit",
    "update": "apps.cli.normalcy_update",
    "score": "apps.cli.normalcy_score",
}
"""Subcommands and their modules."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare every subcommand with its arguments, and the question to a running controller."""
    live = parser.add_argument_group("of a running controller")
    live.add_argument(
        "--live", nargs="?", const="", metavar="PORT", help="bounds and scores of its ports, or of one such as 3:1"
    )
    add_console(parser)
    add_subcommands(parser, SUBCOMMANDS, is_required=False)


def run(args: argparse.Namespace) -> int:
    """Run the subcommand that was asked for, or ask the running controller."""
    is_below = hasattr(args, "run_subcommand")
    if args.live is not None:
        if is_below:
            raise InputError("--live: not with a subcommand")
        return normalcy_live.show(args)
    if not is_below:
        raise InputError(f"expected {', '.join(SUBCOMMANDS)} or --live")
    return run_subcommand(args)
