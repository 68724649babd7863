"""`vsrt perf history`: mean rates and discontinuities of ports over a span of time, from the files of the monitor."""

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
from apps.cli.perf_console import selection
from apps.cli.perf_rates import print_rates, rates_of
from apps.cli.sample_file import COUNTER_COLUMNS, SampleFile
from apps.exporters.history import read_history
from apps.exporters.schema import HistoryFileError, Kind
from controller.performance.counters import UNSUPPORTED

HELP = "mean rates of ports over a span of time, from the monitor's files"

DEFAULT_AGE = "1h"
_AGE = re.compile(r"(\d+(?:\.\d+)?)([smhd])\Z")
_UNITS_S = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare which ports, which files and which time."""
    parser.add_argument("where", nargs="?", metavar="NODE[:PORT]", help="a switch (datapath id), or one of its ports")
    parser.set_defaults(type="all")
    parser.add_argument(
        "--since", metavar="TIME", default=DEFAULT_AGE, help=f"ISO 8601, epoch seconds, or an age ({DEFAULT_AGE})"
    )
    parser.add_argument("--until", metavar="TIME", default="0s", help="the same (now)")
    parser.add_argument("--directory", type=Path, metavar="DIR", help="the monitor's files (VSRT_STATE_DIR/history)")


def run(args: argparse.Namespace) -> int:
    """Print the rates of the ports that were asked for."""
    directory = args.directory or Path(os.environ.get("VSRT_STATE_DIR") or "vsrt-state") / "history"
    if not directory.is_dir():
        raise InputError(f"{directory}: there is no such directory; --directory says where the monitor's files are")
    now_s = time.time()
    since_s, until_s = read_time(args.since, "--since", now_s), read_time(args.until, "--until", now_s)
    if since_s >= until_s:
        raise InputError("--since: the time is not before --until")
    chosen = selection(args)
    ports = [(chosen["node"], chosen.get("port"))] if "node" in chosen else None
    try:
        table = read_history(
            directory,
            Kind.COUNTERS,
            since_s=since_s,
            until_s=until_s,
            ports=ports,
            columns=("duration_s", "speed_bps", *COUNTER_COLUMNS),
        )
    except HistoryFileError as error:
        raise InputError(str(error)) from None
    print_rates(rates_of(samples_of(table)), as_json=args.json)
    return 0


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
