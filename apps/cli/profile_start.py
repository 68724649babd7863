"""`vsrt profile start`: has the running controller note from when to when its operations last."""

from __future__ import annotations

import argparse

from apps.cli.common import InputError, emit_json
from apps.cli.perf_console import add_socket, ask_socket
from apps.cli.profile_stop import UNKNOWN, follow, print_ended
from apps.cli.snapshot_socket import user_name
from controller.durations import format_duration, parse_duration

HELP = "have the running controller note when its operations begin and end"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare how long, and under which name."""
    parser.epilog = (
        "The profile goes on without this command, until its time is over or `vsrt profile stop`. The controller "
        "writes it to profiles/NAME.parquet in its state directory."
    )
    parser.add_argument("--for", dest="for_s", default="10m", metavar="TIME", help="30s, 5m, 2h (default: 10m)")
    parser.add_argument("--name", metavar="NAME", help="of the file (default: the time of day)")
    parser.add_argument(
        "--wait", action="store_true", help="until it has ended, which Ctrl-C has it do; with progress"
    )
    add_socket(parser)


def run(args: argparse.Namespace) -> int:
    """Begin, and with ``--wait`` follow it to its end."""
    for_s = parse_duration(args.for_s)
    if for_s is None:
        raise InputError(f"--for: {args.for_s[:64]!r} is no duration such as 30s, 5m or 2h")
    question = {"do": "profile-start", "for_s": for_s, "by": user_name()}
    if args.name is not None:
        question["name"] = args.name
    begun = ask_socket(args, question, UNKNOWN)
    if args.wait:
        return print_ended(args, follow(args, begun))
    if args.json:
        emit_json(begun)
    else:
        print(f"the profile {begun['name']} runs for {format_duration(for_s)}: `vsrt profile stop` ends it before")
    return 0
