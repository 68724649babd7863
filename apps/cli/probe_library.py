"""`vsrt probe library`: scripts that are shipped, each of which answers a question that operators have."""

from __future__ import annotations

import argparse

from apps.cli.common import InputError, emit_json, emit_table
from controller.probes.library import LibraryScript, library

HELP = "list the scripts that are shipped, or print one of them"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the name."""
    parser.add_argument("name", nargs="?", metavar="NAME", help="print this script (default: list all)")


def run(args: argparse.Namespace) -> int:
    """Print the list, or a script."""
    if args.name is not None:
        script = library_script(args.name)
        if args.json:
            emit_json(script._asdict())
        else:
            print(script.text, end="")
        return 0
    scripts = library()
    if args.json:
        emit_json({"scripts": [script._asdict() for script in scripts.values()]})
    else:
        emit_table(("script", "question"), [(script.name, script.question) for script in scripts.values()])
    return 0


def library_script(name: str) -> LibraryScript:
    """Return a script by its name; InputError where there is none."""
    scripts = library()
    if name not in scripts:
        raise InputError(f"no script of the library is called {name!r}; there are {', '.join(scripts)}")
    return scripts[name]
