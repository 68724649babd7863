"""`vsrt overcommit shares`: how many entries of a table each tenant is entitled to."""

from __future__ import annotations

import argparse

from apps.cli.allocate_input import add_input, read_as
from apps.cli.common import emit_json, emit_table
from controller.overcommit.documents import shares_of

HELP = "show how many entries of a flow table each tenant is entitled to, and how many may be out"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the table and its tenants."""
    add_input(parser, "the table, the tax on idle entries and the tenants (JSON)")


def run(args: argparse.Namespace) -> int:
    """Print what each tenant is entitled to."""
    found = read_as(args.input, shares_of)
    if args.json:
        emit_json(found)
        return 0
    rows = [(name, f"{one['entitled']:.1f}", f"{one['swap_slots']:g}") for name, one in found["tenants"].items()]
    emit_table(("tenant", "entitled to", "swap slots"), rows)
    return 0
