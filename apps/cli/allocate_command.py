"""`vsrt allocate`: which port, path or pool next, and why."""

from __future__ import annotations

import argparse
import importlib

NAME = "allocate"
HELP = "allocate ports and pools by their metrics, and tell why"

SUBCOMMANDS = {
    "ports": "apps.cli.allocate_ports",
    "metric": "apps.cli.allocate_metric",
    "pool": "apps.cli.allocate_pool",
    "explain": "apps.cli.allocate_explain",
    "watch": "apps.cli.allocate_watch",
    "whatif": "apps.cli.allocate_whatif",
}
"""Subcommands and their modules, each with HELP, add_arguments and run."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare every subcommand with its arguments."""
    commands = parser.add_subparsers(dest="allocate_command", required=True, metavar="|".join(SUBCOMMANDS))
    for name, path in SUBCOMMANDS.items():
        module = importlib.import_module(path)
        command = commands.add_parser(name, help=module.HELP, description=f"{module.HELP}.")
        module.add_arguments(command)
        command.set_defaults(run_allocate=module.run)


def run(args: argparse.Namespace) -> int:
    """Run the subcommand that was asked for."""
    return int(args.run_allocate(args))
