"""`vsrt perf history`: mean rates of ports over a span of time, or roll-ups, from the files of the monitor."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from apps.cli.common import InputError
from apps.cli.perf_console import SOCKETS, selection
from apps.cli.perf_rates import PortMeans, in_turn, print_rates, rates_of
from apps.cli.perf_roll_ups import LENGTHS, print_roll_ups
from apps.cli.sample_file import COUNTER_COLUMNS, SampleFile
from apps.cli.times import add_zone, clock_of
from apps.exporters.history import read_history
from apps.exporters.history_stream import NotInOrder, Slice, stream_counters
from apps.exporters.schema import HistoryFileError, RecordKind
from controller.durations import parse_duration
from controller.performance.counters import UNSUPPORTED
from controller.performance.ports import PortRows

HELP = "mean rates of ports over a span of time, or roll-ups, from the monitor's files"

COLUMNS = ("duration_s", "speed_bps", *COUNTER_COLUMNS)
FEW_PORTS = 1 << 15
"""Samples of so few ports are compared a port's first, second and so on at a time, for they repeat soon."""

DEFAULT_AGE, DEFAULT_AGE_OF_HOURS = "1h", "1d"


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
        if args.roll_up:
            table = read_history(directories, LENGTHS[args.roll_up], since_s=since_s, until_s=until_s, ports=ports)
        else:
            rates = rates_between(directories, since_s, until_s, ports)
    except HistoryFileError as error:
        raise InputError(str(error)) from None
    if args.roll_up:
        print_roll_ups(args.roll_up, table, clock, as_json=args.json)
    else:
        print_rates(rates, as_json=args.json)
    return 0


def rates_between(
    directories: Sequence[Path],
    since_s: float,
    until_s: float,
    ports: Collection[tuple[int, int | None]] | None = None,
) -> dict[str, dict[str, Any]]:
    """Return what `vsrt perf history` says of ports, as `rates_of`; HistoryFileError as `read_history`.

    Files are read side by side in the order of time; where that cannot be had, they are read whole and sorted.
    """
    known = _KnownPorts()
    try:
        for part in stream_counters(directories, COLUMNS, since_s=since_s, until_s=until_s, ports=ports):
            known.take(part)
    except NotInOrder:
        table = read_history(
            directories, RecordKind.COUNTERS, since_s=since_s, until_s=until_s, ports=ports, columns=COLUMNS
        )
        return rates_of(samples_of(table))
    return known.documents()


class _KnownPorts:
    """Ports as slices of the history tell of them, each with the top speed that it had until then."""

    def __init__(self) -> None:
        self._table = PortRows(sys.maxsize)
        self._means = PortMeans(self._table)
        self._rows = np.empty((0, 0), np.int32)
        self._switches: dict[int, int] = {}
        self._numbers: dict[int, int] = {}

    def take(self, part: Slice) -> None:
        """Take a slice in."""
        rows = self._rows_of(part.dpid, part.port_no)
        columns = part.columns
        duration_s, speed_bps = (columns[name].astype(np.float64, copy=False) for name in COLUMNS[:2])
        told = speed_bps > self._table.speed_bps[rows]
        if told.any():
            np.maximum.at(self._table.speed_bps, rows[told], speed_bps[told])
        counters = np.column_stack([columns[name] for name in COUNTER_COLUMNS])
        samples = SampleFile(
            part.at_us / 1e6, part.dpid, part.port_no.astype(np.uint64), counters, duration_s, speed_bps
        )
        order = np.arange(len(rows))
        if len(self._table) < FEW_PORTS:
            by_port = np.argsort(rows, kind="stable")
            order = by_port[in_turn(rows[by_port])]
        self._means.take(rows, samples, order)

    def _rows_of(self, dpid: NDArray[np.uint64], port_no: NDArray[np.uint32]) -> NDArray[np.int32]:
        """Return the row of each sample's port; new ones have the next."""
        switch, number = _numbered(dpid, self._switches), _numbered(port_no, self._numbers)
        room = np.subtract((len(self._switches), len(self._numbers)), self._rows.shape)
        if room.any():
            self._rows = np.pad(self._rows, [(0, int(each)) for each in room], constant_values=-1)
        rows = self._rows[switch, number]
        unknown = np.flatnonzero(rows < 0)
        if len(unknown):
            for at in unknown.tolist():
                place = switch[at], number[at]
                if self._rows[place] < 0:
                    added = self._table.add(int(dpid[at]), int(port_no[at]), "", 0.0)
                    assert added is not None
                    self._rows[place] = added.row
            rows = self._rows[switch, number]
        return rows

    def documents(self) -> dict[str, dict[str, Any]]:
        """Return what is known of ports, in the order of their numbers."""
        names = [self._table.name(row) for row in range(len(self._table))]
        return self._means.documents(sorted(range(len(names)), key=lambda row: names[row][:2]))


def _numbered(values: NDArray[Any], known: dict[int, int]) -> NDArray[np.intp]:
    """Return the number of each value, by which it is known from its first time on."""
    encoded = pa.array(values).dictionary_encode()
    numbers = [known.setdefault(value, len(known)) for value in encoded.dictionary.to_pylist()]
    found: NDArray[np.intp] = np.array(numbers, np.intp)[encoded.indices.to_numpy()]
    return found


def _directory() -> Path:
    """Return the monitor's files that nobody named: those of the first controller whose socket would be asked."""
    if given := os.environ.get("VSRT_STATE_DIR"):
        return Path(given) / "history"
    found = [path.parent / "history" for path in SOCKETS]
    return next((directory for directory in found if directory.is_dir()), found[0])


def read_time(text: str, field: str, now_s: float) -> float:
    """Return a time in epoch seconds; InputError names the field of what is none. ISO 8601 without a zone is UTC."""
    age_s = parse_duration(text)
    if age_s is not None:
        return now_s - age_s
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
