"""The `vsrt` command: finds the subcommand, turns its errors into exit codes."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence

from apps.cli.common import InputError, OperationFailed

COMMANDS = (
    "topology",
    "tree",
    "simulate",
    "policy",
    "emulate",
    "run",
    "show",
    "replay",
    "perf",
    "allocate",
    "normalcy",
    "diagnose",
)
"""Subcommands, each in a module ``apps.cli.<name>_command``; only the one that is asked for is imported."""

DONE, FAILED, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("vsrt-controller")
    except PackageNotFoundError:
        return "unknown"


class _PrintVersion(argparse.Action):
    """Looks the version up only when it is asked for."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object, **__: object) -> None:
        print(f"vsrt {_version()}")
        parser.exit()


def build_parser(commands: Sequence[str] = COMMANDS) -> argparse.ArgumentParser:
    """Return the parser of the given subcommands; every one takes --json, behind its own subcommands too."""
    parser = argparse.ArgumentParser(
        prog="vsrt",
        description="Multicast trees for data-centre fabrics: topologies, trees, policies, emulation, controller.",
        epilog="Exit status: 0 done, 1 the operation failed, 2 bad input. `vsrt COMMAND --help` tells more.",
    )
    parser.add_argument("--version", action=_PrintVersion, nargs=0, help="print the version and exit")
    choices = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name in commands:
        module = importlib.import_module(f"apps.cli.{name}_command")
        command = choices.add_parser(module.NAME, help=module.HELP, description=f"{module.HELP}.")
        module.add_arguments(command)
        command.set_defaults(run=module.run, json=False)
        _add_json(command)
    return parser


def _add_json(parser: argparse.ArgumentParser) -> None:
    if "--json" not in parser._option_string_actions:
        parser.add_argument(
            "--json", action="store_true", default=argparse.SUPPRESS, help="print one JSON document and nothing else"
        )
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                _add_json(below)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit status."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    asked = next((word for word in arguments if not word.startswith("-")), None)
    try:
        args = build_parser((asked,) if asked in COMMANDS else COMMANDS).parse_args(arguments)
        status = int(args.run(args))
        sys.stdout.flush()
        return status
    except SystemExit as leaving:
        if isinstance(leaving.code, str):
            print(leaving.code, file=sys.stderr)
        return leaving.code if isinstance(leaving.code, int) else DONE if leaving.code is None else FAILED
    except InputError as error:
        print(f"vsrt: {error}", file=sys.stderr)
        return BAD_INPUT
    except OperationFailed as error:
        print(f"vsrt: {error}", file=sys.stderr)
        return FAILED
    except BrokenPipeError:
        # Who read our output has gone: keep the interpreter from writing what is left at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except KeyboardInterrupt:
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
