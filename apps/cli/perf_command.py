"""`vsrt perf`: rates of port counters, from files and from the running controller."""

from __future__ import annotations

import argparse

from apps.cli.subcommands import add_subcommands, run_subcommand

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
"""Subcommands and their modules."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare every subcommand with its arguments."""
    add_subcommands(parser, SUBCOMMANDS)


run = run_subcommand
