"""`vsrt perf`: rates of port counters, from files and from the running controller."""

from __future__ import annotations

import argparse
import importlib

NAME = "perf"
HELP = "rates, histograms and events of ports"

SUBCOMMANDS = {
    "rates": "apps.cli.perf_rates",
    "history": "apps.cli.perf_history",
    "report": "apps.cli.perf_console_report",
    "top": "apps.cli.perf_console_top",
    "histogram": "apps.cli.perf_console_histogram",
    "events": "apps.cli.perf_console_events",
    "reset": "apps.cli.perf_console_reset",
    "set": "apps.cli.perf_console_set",
    "get": "apps.cli.perf_console_get",
}
"""Subcommands and their modules, each with HELP, add_arguments and run."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare every subcommand with its arguments."""
    commands = parser.add_subparsers(dest="perf_command", required=True, metavar="|".join(SUBCOMMANDS))
    for name, path in SUBCOMMANDS.items():
        module = importlib.import_module(path)
        command = commands.add_parser(name, help=module.HELP, description=f"{module.HELP}.")
        module.add_arguments(command)
        command.set_defaults(run_perf=module.run)


def run(args: argparse.Namespace) -> int:
    """Run the subcommand that was asked for."""
    return int(args.run_perf(args))
