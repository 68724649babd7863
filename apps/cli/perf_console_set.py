"""`vsrt perf set`: change a setting of the running monitor."""

from __future__ import annotations

import argparse

from apps.cli.common import emit_json
from apps.cli.perf_console import add_console, ask
from apps.cli.snapshot_socket import user_name

HELP = "change a setting of the running monitor, until the policy file changes or the controller starts anew"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("knob", metavar="SETTING", help="such as interval_s or thresholds.rx_crc_err.raise_above")
    parser.add_argument("value", metavar="VALUE", help="the value; `none` for a setting that may be absent")
    add_console(parser)


def run(args: argparse.Namespace) -> int:
    """Set it, and print what it was and is."""
    answer = ask(args, "perf-set", {"knob": args.knob, "value": args.value, "by": user_name()})
    if args.json:
        emit_json(answer)
    else:
        print(f"{answer['knob']}: {answer['before']} -> {answer['value']}")
    return 0
