"""`vsrt probe run`: has a script look at a running controller, and shows what it finds while it runs."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from pathlib import Path
from typing import Any

from apps.cli.common import InputError, OperationFailed, emit_json
from apps.cli.perf_console import add_socket
from apps.cli.probe_console import ask_controller
from apps.cli.probe_file import read_script
from apps.cli.probe_output import aggregate_lines, print_lost, shown
from apps.cli.refresh import CLEAR
from apps.cli.snapshot_socket import user_name
from apps.end_signals import EndSignals
from controller.durations import format_duration, parse_duration

HELP = "have a script look at the running controller until its time is over, or Ctrl-C"

LOOK_S = 0.5
"""Time between two looks at what it finds."""

QUESTION_BYTES = 65_000
"""What the controller takes in one question."""

LINES_DRAWN = 10
"""Lines of `print` that stand above the aggregates on a terminal."""

ENDS_WELL = ("its time is over", "exit() was called", "it was stopped")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the script, and how long it runs."""
    parser.epilog = (
        "On a terminal aggregates are drawn anew while they grow; elsewhere they are printed at the end, and what "
        "`print` writes as it comes. The script ends with this command: by Ctrl-C, by SIGTERM, or 5 s after the "
        "controller has heard of it last."
    )
    given = parser.add_mutually_exclusive_group(required=True)
    given.add_argument("file", nargs="?", type=Path, metavar="FILE", help="probe script")
    given.add_argument("-e", "--text", metavar="TEXT", help="the script itself")
    given.add_argument("--library", metavar="NAME", help="a script of `vsrt probe library`")
    parser.add_argument("--for", dest="for_s", default="60s", metavar="TIME", help="30s, 5m, 2h (default: 60s)")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="write aggregates to a Parquet file too")
    add_socket(parser)


def run(args: argparse.Namespace) -> int:
    """Run the script; 2 where it is refused, 1 where it did not run to its end."""
    text, source = _script(args)
    question = {"do": "probe-run", "script": text, "for_s": _duration(args.for_s), "by": user_name()}
    if len(json.dumps(question)) > QUESTION_BYTES:
        raise InputError(f"{source}: a script for a running controller has at most {QUESTION_BYTES:,} bytes")
    failed: str | None = None
    with EndSignals() as signals:
        shown = _Shown(args.json)
        number = ask_controller(args, question)["id"]
        try:
            _follow(args, number, shown, signals)
        except (
            OperationFailed,
            InputError,
        ) as error:  # it went away, or another came
            failed = str(error)
        shown.end()
        if args.output is not None:
            from apps.cli.probe_parquet import write_aggregates

            write_aggregates(args.output, shown.found)
    ended = shown.found.get("ended")
    if failed is not None or ended not in ENDS_WELL:
        raise OperationFailed(failed or f"the controller ended the script: {ended}")
    return 0


class _Shown:
    """What the script has found, shown as it comes in."""

    def __init__(self, as_json: bool) -> None:
        self.found: dict[str, Any] = {"aggregates": {}}
        self._as_json = as_json
        self._is_drawn = sys.stdout.isatty() and not as_json
        self._printed: list[str] = []

    def take(self, looked: dict[str, Any]) -> None:
        """Show what is new."""
        self._printed += looked["printed"]
        if not self._as_json and not self._is_drawn:
            for line in looked["printed"]:
                print(shown(line), flush=True)
        self.found = {**looked, "printed": self._printed}
        if self._is_drawn and looked["ended"] is None:
            self._draw()

    def end(self) -> None:
        """Show all that there is at the end."""
        if self._as_json:
            emit_json(self.found)
            return
        if self._is_drawn:
            sys.stdout.write(CLEAR)
            for line in self._printed:
                print(shown(line))
        for line in aggregate_lines(self.found):
            print(line)
        print_lost(self.found)

    def _draw(self) -> None:
        found, size = self.found, shutil.get_terminal_size()
        left_s = max(0.0, found["begun_s"] + found["for_s"] - time.time())
        head = (
            f"{found['fired']:,} firings at {found['points']} points; {format_duration(left_s)} to go, Ctrl-C ends it"
        )
        lines = [head, *(shown(line) for line in self._printed[-LINES_DRAWN:]), *aggregate_lines(found)]
        sys.stdout.write(CLEAR + "\n".join(line[: size.columns] for line in lines[: max(1, size.lines - 1)]) + "\n")
        sys.stdout.flush()


def _follow(args: argparse.Namespace, number: str, shown: _Shown, signals: EndSignals) -> None:
    """Look again and again until it has ended; it is stopped where a signal asks for that."""
    lines: list[int] = []
    while True:
        question = {"do": "probe-stop" if signals.asked else "probe-look", "id": number, "lines": lines}
        looked = ask_controller(args, question)
        lines = looked.pop("lines")
        shown.take(looked)
        if looked["ended"] is not None:
            return
        signals.wait(LOOK_S)


def _script(args: argparse.Namespace) -> tuple[str, str]:
    if args.library is not None:
        from apps.cli.probe_library import library_script

        return library_script(args.library).text, f"--library {args.library}"
    return (args.text, "--text") if args.text is not None else (read_script(args.file), str(args.file))


def _duration(text: str) -> float:
    duration_s = parse_duration(text)
    if duration_s is None:
        raise InputError(f"--for: {text[:64]!r} is no duration such as 30s, 5m or 2h")
    return duration_s
