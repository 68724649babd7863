"""`vsrt probe`: scripts that look at what a controller does, checked, and the points at which they can look."""

from __future__ import annotations

import argparse

from apps.cli.subcommands import add_subcommands, run_subcommand

SUBCOMMANDS = {
    "run": "apps.cli.probe_run",
    "list": "apps.cli.probe_list",
    "check": "apps.cli.probe_check",
    "ps": "apps.cli.probe_ps",
    "stop": "apps.cli.probe_stop",
    "library": "apps.cli.probe_library",
}
"""Subcommands and their modules."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare every subcommand with its arguments."""
    add_subcommands(parser, SUBCOMMANDS)


run = run_subcommand
