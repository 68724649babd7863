"""`vsrt probe check`: what is wrong with a script, with its place."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from apps.cli.common import InputError, emit_json
from apps.cli.probe_file import load_script, read_script
from controller.probes.grammar import ScriptFault

HELP = "tell what is wrong with a script, with line and column"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the script."""
    parser.add_argument("file", type=Path, metavar="FILE", help="probe script")


def run(args: argparse.Namespace) -> int:
    """Answer with 0 (good) or 2 (a fault)."""
    errors = []
    try:
        script = load_script(read_script(args.file))
    except ScriptFault as fault:
        errors.append({"line": fault.line, "column": fault.column, "message": fault.text})
        print(f"{args.file}:{fault.line}:{fault.column}: {fault.text}", file=sys.stderr)
    except InputError as unread:
        if args.json:
            emit_json({"ok": False, "errors": [{"line": 0, "column": 0, "message": str(unread)}]})
        raise
    if args.json:
        emit_json({"ok": not errors, "errors": errors})
    elif not errors:
        print(f"{args.file}: good: it looks at {len(script.points)} points")
    return 2 if errors else 0
