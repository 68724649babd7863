"""`vsrt replay`: do again what a recorded run was given, and print what its core asks for."""

from __future__ import annotations

import argparse
from pathlib import Path

from apps.cli.common import InputError, emit_json
from apps.cli.probe_file import load_script, read_script
from apps.cli.probe_output import print_probe
from apps.replays import MAKERS, probe_replay, read_lines, replay
from controller.probes.findings import document, found
from controller.probes.grammar import ScriptFault
from controller.probes.script import Probe
from controller.recording import RecordingInvalid, plain, write_line


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("file", type=Path, metavar="FILE", help="recording (made where VSRT_RECORD names a file)")
    parser.add_argument(
        "--probe", type=Path, metavar="SCRIPT", help="print what a probe script finds instead, in what all apps do"
    )
    parser.add_argument("--app", choices=tuple(MAKERS), default="multicast", help="whose core (default: multicast)")


def run(args: argparse.Namespace) -> int:
    """Print one line per effect, or all of them in one document; with a script what that finds."""
    if args.probe is not None:
        return _probe(args)
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


def _probe(args: argparse.Namespace) -> int:
    text = read_script(args.probe)
    try:
        probe = Probe(load_script(text))
    except ScriptFault as fault:
        raise InputError(f"{args.probe}:{fault.line}:{fault.column}: {fault.text}") from None
    try:
        with args.file.open(encoding="utf-8") as file:
            probe_replay(read_lines(file), [probe])
    except (RecordingInvalid, UnicodeDecodeError) as error:
        raise InputError(f"{args.file}: {error}") from None
    except OSError as error:
        raise InputError(f"{args.file}: {error.strerror}") from None
    seen = document([found(probe.run)])
    if args.json:
        emit_json(seen)
    else:
        print_probe(seen)
    return 0
