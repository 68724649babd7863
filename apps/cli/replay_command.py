"""`vsrt replay`: do again what a recorded run was given, and print what its core asks for."""

from __future__ import annotations

import argparse
from pathlib import Path

from apps.cli.common import InputError, emit_json
from apps.replays import MAKERS, read_lines, replay
from controller.recording import RecordingInvalid, plain, write_line


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("file", type=Path, metavar="FILE", help="recording (made where VSRT_RECORD names a file)")
    parser.add_argument("--app", choices=tuple(MAKERS), default="multicast", help="whose core (default: multicast)")


def run(args: argparse.Namespace) -> int:
    """Print one line per effect, or all of them in one document."""
    try:
        with args.file.open(encoding="utf-8") as file:
            effects = replay(read_lines(file), args.app)
            if args.json:
                made = [{"t": at_s, "effect": plain(effect)} for at_s, effect in effects]
                emit_json({"app": args.app, "effects": made})
            else:
                for at_s, effect in effects:
                    print(write_line(args.app, at_s, "effect", effect))
    except (RecordingInvalid, UnicodeDecodeError) as error:
        raise InputError(f"{args.file}: {error}") from None
    except OSError as error:
        raise InputError(f"{args.file}: {error.strerror}") from None
    return 0
