"""`vsrt record`: sysstat's activity files, a new one every day, for `sadf` and then `vsrt diagnose`."""

from __future__ import annotations

import argparse
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from apps.cli.common import InputError, OperationFailed, emit_json
from apps.end_signals import raised_once
from controller.anomaly.recording import Recording, plan, wait_s

PROGRAMS = ("/usr/lib/sysstat/sadc", "/usr/lib64/sa/sadc", "/usr/lib/sa/sadc")
"""Where distributions put it, as it is in no one's path."""
EXTENSION = ".sa"
CLOCK_LOOK_S = 1.0
"""While waiting the clock is looked at this often; it may be set at any time."""
STOP_S = 10
"""How long the program may take to end once it is told to."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare where to record what."""
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="DIR", help="folder of the files")
    parser.add_argument("--interval", type=int, default=1, metavar="S", help="seconds between records (default: 1)")
    parser.add_argument("--activities", default="DISK", metavar="LIST", help="as for `sadc -S` (default: DISK)")
    parser.add_argument("--program", metavar="FILE", help="sadc, where it is not found by itself")
    parser.add_argument("--files", type=int, metavar="N", help="end after so many files (default: never)")
    parser.epilog = "It ends by Ctrl-C or SIGTERM, with status 0."


def run(args: argparse.Namespace) -> int:
    """Record file after file until told to stop."""
    for name in ("interval", "files"):
        value = getattr(args, name)
        if value is not None and value < 1:
            raise InputError(f"--{name}: expected at least 1, found {value}")
    program = args.program or next((path for path in PROGRAMS if Path(path).exists()), None) or shutil.which("sadc")
    if program is None:
        raise OperationFailed("sadc was not found; install sysstat, or name it with --program")
    try:
        args.output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OperationFailed(f"{error.filename}: {error.strerror}") from None
    done: list[dict[str, Any]] = []
    with raised_once(KeyboardInterrupt):
        with suppress(KeyboardInterrupt):
            _record(args, program, done)
        if args.json:
            emit_json({"files": done})
    return 0


def _record(args: argparse.Namespace, program: str, done: list[dict[str, Any]]) -> None:
    before: Recording | None = None
    while args.files is None or len(done) < args.files:
        now_s = time.time()
        left_s = wait_s(now_s, args.interval, before)
        recording = plan(now_s, args.interval)
        path = args.output / f"{recording.name}{EXTENSION}"
        if left_s > 0 or path.exists():
            time.sleep(min(left_s or CLOCK_LOOK_S, CLOCK_LOOK_S))
            continue
        entry = {"file": str(path), "start": recording.start_s, "end": recording.end_s, "records": recording.records}
        done.append(entry)
        print(f"vsrt: {path}: {recording.records} records, one every {args.interval} s", file=sys.stderr)
        _run([program, "-S", args.activities, str(args.interval), str(recording.records), str(path)], args.interval)
        before = recording


def _run(command: list[str], interval_s: int) -> None:
    """Wait for the program to end; one that ends before it has told a rate cannot do what it is to do."""
    started_s = time.monotonic()
    try:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    except OSError as error:
        raise OperationFailed(f"{command[0]}: {error.strerror}") from None
    try:
        status = process.wait()
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
    lasted_s = time.monotonic() - started_s
    if lasted_s < interval_s:
        raise OperationFailed(f"{command[0]}: ended with status {status} after {lasted_s:.1f} s")
    if status:
        print(f"vsrt: {command[0]}: ended with status {status}; the rest of the day gets a new file", file=sys.stderr)
