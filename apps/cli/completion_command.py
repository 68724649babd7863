"""`vsrt completion`: the script by which a shell completes `vsrt`, made from the parsers."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from apps.cli.common import emit_json

SHELLS = ("bash", "zsh", "fish")
_FOLDER = re.compile(r"\bDIR\b")
_FILE = re.compile(r"\bFILE\b|\.yaml\b")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("shell", choices=SHELLS, metavar="SHELL", help=f"one of: {', '.join(SHELLS)}")


def run(args: argparse.Namespace) -> int:
    """Print the script."""
    from apps.cli.main import build_parser

    text = script(build_parser(), args.shell)
    if args.json:
        emit_json({"shell": args.shell, "script": text})
    else:
        print(text)
    return 0


def script(parser: argparse.ArgumentParser, shell: str) -> str:
    """Return the completion script of a parser for one of `SHELLS`; arguments that are files complete as files."""
    import shtab

    from apps.cli.help_text import commands_of

    for command in commands_of(parser):
        for action in command._actions:
            metavar = action.metavar if isinstance(action.metavar, str) else ""
            if _FOLDER.search(metavar):
                action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]
            elif action.type is Path or _FILE.search(metavar):
                action.complete = shtab.FILE  # type: ignore[attr-defined]
    return str(shtab.complete(parser, shell=shell))
