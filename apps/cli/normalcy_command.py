"""`vsrt normalcy`: what is normal for a series, and how abnormal each of its points is."""

from __future__ import annotations

import argparse
import importlib

NAME = "normalcy"
HELP = "category, bounds and anomaly scores of time series"

SUBCOMMANDS = {"fit": "apps.cli.normalcy_fit", "score": "apps.cli.normalcy_score"}
"""Subcommands and their modules, each with HELP, add_arguments and run."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare every subcommand with its arguments."""
    commands = parser.add_subparsers(dest="normalcy_command", required=True, metavar="|".join(SUBCOMMANDS))
    for name, path in SUBCOMMANDS.items():
        module = importlib.import_module(path)
        command = commands.add_parser(name, help=module.HELP, description=f"{module.HELP}.")
        module.add_arguments(command)
        command.set_defaults(run_normalcy=module.run)


def run(args: argparse.Namespace) -> int:
    """Run the subcommand that was asked for."""
    return int(args.run_normalcy(args))
