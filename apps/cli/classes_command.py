"""`vsrt classes`: what the control of service classes decides, from documents."""

from __future__ import annotations

import argparse

from apps.cli.subcommands import add_subcommands, run_subcommand

SUBCOMMANDS = {
    "limits": "apps.cli.classes_limits",
    "clusters": "apps.cli.classes_clusters",
    "rates": "apps.cli.classes_rates",
    "transfers": "apps.cli.classes_transfers",
}
"""Subcommands and their modules."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare every subcommand with its arguments."""
    add_subcommands(parser, SUBCOMMANDS)


run = run_subcommand
