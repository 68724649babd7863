"""`vsrt overcommit`: shares of flow tables that are too small for all, and what misses at one."""

from __future__ import annotations

import argparse

from apps.cli.subcommands import add_subcommands, run_subcommand

SUBCOMMANDS = {"shares": "apps.cli.overcommit_shares", "simulate": "apps.cli.overcommit_simulate"}
"""Subcommands and their modules."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare every subcommand with its arguments."""
    add_subcommands(parser, SUBCOMMANDS)


run = run_subcommand
