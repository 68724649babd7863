"""`vsrt probe`: scripts that look at what a controller does, checked, and the points at which they can look."""

from __future__ import annotations

import argparse

from apps.cli.subcommands import add_subcommands, run_subcommand

SUBCOMMANDS = {"check": "apps.cli.probe_check", "list": "apps.cli.probe_list"}
"""Subcommands and their modules."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare every subcommand with its arguments."""
    add_subcommands(parser, SUBCOMMANDS)


run = run_subcommand
