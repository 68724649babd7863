"""`vsrt probe stop`: ends a script that looks at the running controller."""

from __future__ import annotations

import argparse

from apps.cli.common import emit_json
from apps.cli.perf_console import add_socket
from apps.cli.probe_console import ask_controller
from apps.cli.snapshot_socket import user_name

HELP = "end a script that looks at the running controller; whoever began it is shown what it found"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare which."""
    parser.add_argument("id", metavar="ID", help="as `vsrt probe ps` has it")
    add_socket(parser)


def run(args: argparse.Namespace) -> int:
    """End it."""
    found = ask_controller(args, {"do": "probe-stop", "id": args.id, "by": user_name()})
    if args.json:
        emit_json(found)
    else:
        print(f"script {args.id} has ended after {found['fired']:,} firings")
    return 0
