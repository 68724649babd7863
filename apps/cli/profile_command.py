"""`vsrt profile`: where the time of joins, repairs, polls and the like goes in a running controller."""

from __future__ import annotations

import argparse

from apps.cli.subcommands import add_subcommands, run_subcommand

SUBCOMMANDS = {
    "start": "apps.cli.profile_start",
    "stop": "apps.cli.profile_stop",
    "report": "apps.cli.profile_report",
}
"""Subcommands and their modules."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare every subcommand with its arguments."""
    add_subcommands(parser, SUBCOMMANDS)


run = run_subcommand
