"""`vsrt perf history`: mean rates of ports over a span of time, or roll-ups, from the files of the monitor."""

from __future__ import annotations

import argparse
import os
import re
import time
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from apps.cli.common import InputError
from apps.cli.perf_console import SOCKETS, selection
from apps.cli.perf_rates import print_rates, rates_of
from apps.cli.perf_roll_ups import LENGTHS, print_roll_ups
from apps.cli.sample_file import COUNTER_COLUMNS, SampleFile
from apps.cli.times import add_zone, clock_of
from apps.exporters.history import read_history
from apps.exporters.schema import HistoryFileError, RecordKind
from controller.performance.counters import UNSUPPORTED

HELP = "mean rates of ports over a span of time, or roll-ups, from the monitor's files"

DEFAULT_AGE, DEFAULT_AGE_OF_HOURS = "1h", "1d"
_AGE = re.compile(r"(\d+(?:\.\d+)?)([smhd])\Z")
_UNITS_S = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare which ports, which files and which time."""
    parser.add_argument("where", nargs="?", metavar="NODE[:PORT]", help="a switch (datapath id), or one of its ports")
    parser.set_defaults(type="all")
    parser.add_argument(
        "--since",
        metavar="TIME",
        help=f"ISO 8601, epoch seconds, or an age ({DEFAULT_AGE}; {DEFAULT_AGE_OF_HOURS} with --roll-up 1h)",
    )
    parser.add_argument("--until", metavar="TIME", default="0s", help="the same (now)")
    parser.add_argument(
        "--roll-up", choices=tuple(LENGTHS), help="minimum, mean and maximum of each period that began in the span"
    )
    add_zone(parser)
    parser.add_argument(
        "--directory",
        type=Path,
        action="append",
        metavar="DIR",
        help="the monitor's files (history in VSRT_STATE_DIR, vsrt-state, /run/vsrt or /var/lib/vsrt); "
        "once for each of several monitors that share the switches: each octet counts once",
    )


def run(args: argparse.Namespace) -> int:
    """Print the rates or roll-ups of the ports that were asked for."""
    directories = args.directory or [_directory()]
    for directory in directories:
        if not directory.is_dir():
            raise InputError(
                f"{directory}: there is no such directory; --directory says where the monitor's files are"
            )
    if args.roll_up and len(directories) > 1:
        raise InputError("--roll-up: roll-ups are those of one monitor; name one --directory")
    now_s = time.time()
    since = args.since or (DEFAULT_AGE_OF_HOURS if args.roll_up == "1h" else DEFAULT_AGE)
    clock = clock_of(args)
    since_s, until_s = read_time(since, "--since", now_s), read_time(args.until, "--until", now_s)
    if since_s >= until_s:
        raise InputError("--since: the time is not before --until")
    chosen = selection(args)
    if isinstance(chosen.get("node"), str):
        raise InputError(f"NODE: the files know no names: {chosen['node']!r} must be a datapath id")
    ports = [(chosen["node"], chosen.get("port"))] if "node" in chosen else None
    try:
        table = read_history(
            directories,
            LENGTHS.get(args.roll_up, RecordKind.COUNTERS),
            since_s=since_s,
            until_s=until_s,
            ports=ports,
            columns=None if args.roll_up else ("duration_s", "speed_bps", *COUNTER_COLUMNS),
        )
    except HistoryFileError as error:
        raise InputError(str(error)) from None
    if args.roll_up:
        print_roll_ups(args.roll_up, table, clock, as_json=args.json)
    else:
        print_rates(rates_of(samples_of(table)), as_json=args.json)
    return 0


def _directory() -> Path:
    """Return the monitor's files that nobody named: those of the first controller whose socket would be asked."""
    if given := os.environ.get("VSRT_STATE_DIR"):
        return Path(given) / "history"
    found = [path.parent / "history" for path in SOCKETS]
    return next((directory for directory in found if directory.is_dir()), found[0])


def read_time(text: str, field: str, now_s: float) -> float:
    """Return a time in epoch seconds; InputError names the field of what is none. ISO 8601 without a zone is UTC."""
    if match := _AGE.match(text):
        return now_s - float(match[1]) * _UNITS_S[match[2]]
    try:
        at_s = float(text)
    except ValueError:
        try:
            at = datetime.fromisoformat(text)
        except ValueError:
            raise InputError(
                f"{field}: {text!r} is no time: ISO 8601, epoch seconds or an age such as 90s, 15m, 2h, 7d"
            ) from None
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
    if not np.isfinite(at_s):
        raise InputError(f"{field}: {text!r} is no time")
    return at_s


def samples_of(table: pa.Table) -> SampleFile:
    """Return rows of the history as the samples of a file."""

    def known(name: str) -> NDArray[np.float64]:
        values: NDArray[np.float64] = pc.fill_null(table.column(name), np.nan).to_numpy()
        return values

    return SampleFile(
        table.column("timestamp").cast(pa.int64()).to_numpy() / 1e6,
        table.column("dpid").to_numpy(),
        table.column("port_no").cast(pa.uint64()).to_numpy(),
        np.column_stack([pc.fill_null(table.column(name), UNSUPPORTED).to_numpy() for name in COUNTER_COLUMNS]),
        known("duration_s"),
        known("speed_bps"),
    )
