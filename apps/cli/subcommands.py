"""Commands of `vsrt` whose subcommands are modules of their own, each with HELP, add_arguments and run."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Mapping


def add_subcommands(parser: argparse.ArgumentParser, modules: Mapping[str, str], *, is_required: bool = True) -> None:
    """Declare every subcommand, given with the path of its module, with its arguments."""
    commands = parser.add_subparsers(required=is_required, metavar="|".join(modules))
    for name, path in modules.items():
        module = importlib.import_module(path)
        command = commands.add_parser(name, help=module.HELP)
        module.add_arguments(command)
        command.set_defaults(run_subcommand=module.run)


def run_subcommand(args: argparse.Namespace) -> int:
    """Run the subcommand that was asked for."""
    return int(args.run_subcommand(args))
