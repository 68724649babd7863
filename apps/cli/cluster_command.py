"""`vsrt cluster`: whether the store of a fabric's controllers is fit, whom switches are to know, keys out and in."""

from __future__ import annotations

import argparse

from apps.cli.subcommands import add_subcommands, run_subcommand

SUBCOMMANDS = {
    "check": "apps.cli.cluster_check",
    "plan": "apps.cli.cluster_plan",
    "export": "apps.cli.cluster_export",
    "import": "apps.cli.cluster_import",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the subcommands with their arguments."""
    add_subcommands(parser, SUBCOMMANDS)


def run(args: argparse.Namespace) -> int:
    """Run the subcommand that was asked for."""
    return run_subcommand(args)
