"""`vsrt actions`: who asked the controller for what, from the log of actions in its state directory."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple

from apps.cli.common import InputError, emit_json, emit_table
from apps.cli.text_files import file_faults, json_lines
from apps.cli.times import Clock, add_zone, clock_of, time_of
from apps.environment import state_path

NAMES = ("actions.1.jsonl", "actions.jsonl")
"""The files of the log, that which was turned over first."""

TITLES = ("TIME (UTC)", "BY", "ACTION", "ASKED", "VERDICT", "REASON")
FIELDS = frozenset({"time", "action", "asked", "by", "verdict", "reason"})


class Chosen(NamedTuple):
    """Which lines are meant: by patterns of who and what, from and to when (epoch seconds), or refused ones alone."""

    by: str | None
    action: str | None
    since_s: float
    until_s: float
    refused: bool

    def has(self, line: dict[str, Any], at_s: float) -> bool:
        """Tell whether a line is meant."""
        return (
            self.since_s <= at_s <= self.until_s
            and (self.action is None or fnmatchcase(line["action"], self.action))
            and (self.by is None or fnmatchcase(line["by"] or "", self.by))
            and not (self.refused and line["verdict"] != "refused")
        )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.description = (
        "Who asked the controller for what, done or refused, the newest last. The log is in the state directory "
        "(VSRT_STATE_DIR): it is read there, so that this works while no controller runs, too."
    )
    parser.add_argument(
        "files", nargs="*", type=Path, metavar="FILE", help="other files of the log, the oldest first"
    )
    parser.add_argument("--by", metavar="WHO", help="only what these asked for; * and ? stand for any letters")
    parser.add_argument("--action", metavar="WHAT", help="only these actions, such as switch-drain or 'static-*'")
    parser.add_argument("--since", metavar="TIME", help="only from then on: ISO 8601 or epoch seconds")
    parser.add_argument("--until", metavar="TIME", help="only up to then")
    parser.add_argument("--refused", action="store_true", help="only what was refused")
    parser.add_argument("--limit", type=int, metavar="N", help="the newest N")
    add_zone(parser)


def run(args: argparse.Namespace) -> int:
    """Print the lines that are meant."""
    if args.limit is not None and args.limit < 1:
        raise InputError(f"--limit: {args.limit} is not at least 1")
    chosen = Chosen(
        args.by,
        args.action,
        float("-inf") if args.since is None else time_of(args.since, "--since")[0],
        float("inf") if args.until is None else time_of(args.until, "--until")[0],
        args.refused,
    )
    clock, notes = clock_of(args), list[str]()
    found = [line for path in _files(args.files) for line in _lines(path, chosen, notes)]
    found = found[-args.limit :] if args.limit is not None else found
    if args.json:
        emit_json(found)
    else:
        emit_table(clock.titles(TITLES), [_row(line, clock) for line in found])
    for note in notes:
        print(f"vsrt: {note}", file=sys.stderr)
    return 0


def _files(given: list[Path]) -> list[Path]:
    """Return the files to be read; InputError where the state directory has none."""
    if given:
        return given
    directory = state_path()
    found = [directory / name for name in NAMES if (directory / name).exists()]
    if not found:
        raise InputError(f"{directory}: there is no {NAMES[-1]}; VSRT_STATE_DIR says where the controller keeps it")
    return found


def _lines(path: Path, chosen: Chosen, notes: list[str]) -> Iterator[dict[str, Any]]:
    with file_faults(path):
        for where, line, _ in json_lines(path, notes, after_crashes=True):
            if not line.keys() >= FIELDS or not isinstance(line["action"], str):
                raise InputError(f"{where}: no line of a log of actions")
            if not isinstance(line["by"], str | None):
                raise InputError(f"{where}: by: must be text or null")
            at_s, _ = time_of(str(line["time"]), f"{where}: time")
            if chosen.has(line, at_s):
                yield {**line, "time_s": at_s}


def _row(line: dict[str, Any], clock: Clock) -> tuple[object, ...]:
    asked = " ".join(f"{name}={_word(value)}" for name, value in line["asked"].items()) or "-"
    who = line["by"] or "-"
    return clock(line["time_s"]), who, line["action"], asked, line["verdict"], line["reason"] or "-"


def _word(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
