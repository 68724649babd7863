"""`vsrt normalcy`: what is normal for a series, and how abnormal each of its points is."""

from __future__ import annotations

import argparse

from apps.cli.subcommands import add_subcommands, run_subcommand

SUBCOMMANDS = {
    "fit": "apps.cli.normalcy_fit",
    "update": "apps.cli.normalcy_update",
    "score": "apps.cli.normalcy_score",
}
"""Subcommands and their modules."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare every subcommand with its arguments."""
    add_subcommands(parser, SUBCOMMANDS)


run = run_subcommand
