"""`vsrt changes`: what of a running controller is configured otherwise than before."""

from __future__ import annotations

import argparse

from apps.cli.subcommands import add_subcommands, run_subcommand

SUBCOMMANDS = {"record": "apps.cli.changes_record"}
"""Subcommands and their modules."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare every subcommand with its arguments."""
    add_subcommands(parser, SUBCOMMANDS)


run = run_subcommand
