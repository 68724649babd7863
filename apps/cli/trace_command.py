"""`vsrt trace`: what captured packets hold, and what can be made of them."""

from __future__ import annotations

import argparse

from apps.cli.subcommands import add_subcommands, run_subcommand

SUBCOMMANDS = {
    "inspect": "apps.cli.trace_inspect",
    "scenario": "apps.cli.trace_scenario",
}
"""Subcommands and their modules."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare every subcommand with its arguments."""
    add_subcommands(parser, SUBCOMMANDS)


run = run_subcommand
