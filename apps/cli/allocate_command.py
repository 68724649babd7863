"""`vsrt allocate`: which port, path or pool next, and why."""

from __future__ import annotations

import argparse

from apps.cli.subcommands import add_subcommands, run_subcommand

SUBCOMMANDS = {
    "ports": "apps.cli.allocate_ports",
    "metric": "apps.cli.allocate_metric",
    "pool": "apps.cli.allocate_pool",
    "explain": "apps.cli.allocate_explain",
    "watch": "apps.cli.allocate_watch",
    "whatif": "apps.cli.allocate_whatif",
}
"""Subcommands and their modules."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare every subcommand with its arguments."""
    add_subcommands(parser, SUBCOMMANDS)


run = run_subcommand
