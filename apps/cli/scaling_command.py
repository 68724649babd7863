"""`vsrt scaling`: how many monitors, or members of any pool, there should be, by learners and rules."""

from __future__ import annotations

import argparse

from apps.cli.subcommands import add_subcommands, run_subcommand

SUBCOMMANDS = {
    "advise": "apps.cli.scaling_advise",
    "history": "apps.cli.scaling_history",
    "simulate": "apps.cli.scaling_simulate",
}
"""Subcommands and their modules."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare every subcommand with its arguments."""
    add_subcommands(parser, SUBCOMMANDS)


run = run_subcommand
