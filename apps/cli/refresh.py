"""Answers of the running controller that are shown again and again on a terminal."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from typing import Any

from apps.cli.common import InputError, emit_json

CLEAR = "\x1b[H\x1b[2J"


def add_refresh(parser: argparse.ArgumentParser) -> None:
    """Declare how often to look."""
    parser.add_argument(
        "--every", type=float, default=2.0, metavar="S", help="seconds between two looks (default: 2)"
    )
    parser.add_argument("--once", action="store_true", help="look once; so it is without a terminal or with --json")


def show_refreshed(args: argparse.Namespace, look: Callable[[], Any], show: Callable[[Any], None]) -> None:
    """Print what `look` returns, by `show` or as JSON; again and again on a terminal.

    InputError where the time between two looks makes no sense.
    """
    if not 0.1 <= args.every <= 3600:
        raise InputError(f"--every: {args.every:g} is not within 0.1 and 3600 s")
    if args.json:
        emit_json(look())
        return
    refresh = sys.stdout.isatty() and not args.once
    while True:
        answer = look()
        if refresh:
            sys.stdout.write(CLEAR)
        show(answer)
        if not refresh:
            return
        sys.stdout.flush()
        time.sleep(args.every)
