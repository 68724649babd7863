"""`vsrt perf rates`: mean rates and discontinuities of the ports in a file of counter samples."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from apps.cli.common import emit_json, emit_table
from apps.cli.sample_file import COUNTER_COLUMNS, SampleFile, read_samples
from controller.performance.batch import Discontinuity, SampleRates, Samples
from controller.performance.counters import BITS, COUNTER_COUNT, Counter, counters_of
from controller.performance.ports import PortRows, longer
from controller.performance.rates import RateTable
from controller.wire.dpids import format_dpid

HELP = "mean rates of the ports in a file of counter samples"

LINES_AT_ONCE = 1 << 15
NOT_LISTED = (Discontinuity.NONE, Discontinuity.FIRST, Discontinuity.UNSUPPORTED)
_COLUMNS = [Counter(name).column for name in COUNTER_COLUMNS]
_MASK = np.uint16(sum(int(BITS[column]) for column in _COLUMNS))
_LISTED = np.ones(256, np.bool_)
_LISTED[[int(code) for code in NOT_LISTED]] = False
_RX_BYTES, _TX_BYTES = Counter.RX_BYTES.column, Counter.TX_BYTES.column
_FIELDS = (
    ("rx_bps", _RX_BYTES, 8),
    ("tx_bps", _TX_BYTES, 8),
    ("rx_pps", Counter.RX_PACKETS.column, 1),
    ("tx_pps", Counter.TX_PACKETS.column, 1),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the input file."""
    parser.add_argument("--input", type=Path, required=True, metavar="FILE", help="samples (CSV)")


def run(args: argparse.Namespace) -> int:
    """Print the rates of every port, by datapath id and port number."""
    print_rates(rates_of(read_samples(args.input)), as_json=args.json)
    return 0


def print_rates(ports: Mapping[str, Mapping[str, Any]], *, as_json: bool) -> None:
    """Print what `rates_of` found, as a table or as one JSON document."""
    if as_json:
        emit_json({"ports": ports})
        return
    emit_table(
        ("port", *(name for name, _, _ in _FIELDS), "utilisation_pct", "discontinuities"),
        (
            (
                _called(name),
                *("-" if port[field] is None else f"{port[field]:.0f}" for field, _, _ in _FIELDS),
                "-" if port["utilisation_pct"] is None else f"{port['utilisation_pct']:.2f}",
                ", ".join(f"{entry['kind']} at {entry['time']:.3f}" for entry in port["discontinuities"]) or "none",
            )
            for name, port in ports.items()
        ),
    )


def _called(port: str) -> str:
    dpid, _, port_no = port.rpartition(":")
    return f"{format_dpid(int(dpid))}:{port_no}"


def rates_of(file: SampleFile) -> dict[str, dict[str, Any]]:
    """Return what `vsrt perf rates` says about each port of a file.

    Means are over the time in which a rate is known: gaps add neither octets nor time.
    """
    rows, table = _port_table(file)
    means = PortMeans(table)
    means.take(rows, file, in_turn(rows))
    return means.documents(range(len(table)))


class PortMeans:
    """Mean rates and discontinuities of the ports of a table, by their samples as they come.

    Those of each port are taken in the order of their times. The table may grow; its speeds are its owner's.
    """

    def __init__(self, table: PortRows) -> None:
        self._table = table
        self._sums = _Sums(len(table))
        self._rates = RateTable(table)
        self._listed: list[list[dict[str, Any]]] = []
        self._unsupported = np.empty(0, np.uint16)

    def take(self, rows: NDArray[np.int32], samples: SampleFile, order: NDArray[np.intp]) -> None:
        """Take samples of the ports with these rows in, in the order that is told."""
        n = len(self._table)
        self._sums.fit(n)
        self._listed += [[] for _ in range(n - len(self._listed))]
        self._unsupported = longer(self._unsupported, n)
        for start in range(0, len(rows), LINES_AT_ONCE):
            part = order[start : start + LINES_AT_ONCE]
            counters = np.zeros((len(part), COUNTER_COUNT), np.uint64)
            counters[:, _COLUMNS] = samples.counters[part]
            found = self._rates.update(Samples(rows[part], samples.at_s[part], samples.duration_s[part], counters))
            self._sums.add(found, samples.speed_bps[part], self._rates.repeats(found.rows))
            _list_discontinuities(found, self._unsupported, self._listed)

    def documents(self, rows: Iterable[int]) -> dict[str, dict[str, Any]]:
        """Return what is known of ports, by ``DPID:PORT`` in the order of these rows."""
        return {
            f"{name.dpid}:{name.port_no}": {**self._sums.document(row), "discontinuities": self._listed[row]}
            for row, name in ((row, self._table.name(row)) for row in rows)
        }


class _Sums:
    """What was counted in the known time, by port."""

    def __init__(self, ports: int) -> None:
        self._ports = ports
        self._counted = np.zeros((COUNTER_COUNT, ports))
        self._known_s = np.zeros((COUNTER_COUNT, ports))
        self._busy_s = np.zeros((2, ports))
        self._with_speed_s = np.zeros((2, ports))

    def fit(self, ports: int) -> None:
        """Make room for so many ports."""
        if ports > self._ports:
            room = ((0, 0), (0, ports - self._ports))
            self._ports = ports
            self._counted, self._known_s = np.pad(self._counted, room), np.pad(self._known_s, room)
            self._busy_s, self._with_speed_s = np.pad(self._busy_s, room), np.pad(self._with_speed_s, room)

    def add(self, rates: SampleRates, speed_bps: NDArray[np.float64], repeats: bool) -> None:
        """Add rates of samples, whose ports had these speeds (NaN where not told); a port `repeats`, or none does."""
        told = speed_bps > 0
        for column in _COLUMNS:
            per_s = rates.per_s[:, column]
            known = ~np.isnan(per_s)
            counted = np.where(known, per_s * rates.interval_s, 0.0)
            self._add(self._counted[column], rates.rows, counted, repeats)
            self._add(self._known_s[column], rates.rows, np.where(known, rates.interval_s, 0.0), repeats)
            if column in (_RX_BYTES, _TX_BYTES):
                direction, both = column - _RX_BYTES, known & told
                busy_s = np.divide(counted * 8, speed_bps, out=np.zeros_like(counted), where=both)
                with_speed_s = np.where(both, rates.interval_s, 0.0)
                self._add(self._busy_s[direction], rates.rows, busy_s, repeats)
                self._add(self._with_speed_s[direction], rates.rows, with_speed_s, repeats)

    def document(self, row: int) -> dict[str, Any]:
        """Return the means of a port; None where nothing is known."""
        means: dict[str, Any] = {}
        for name, column, factor in _FIELDS:
            known_s = self._known_s[column, row]
            means[name] = float(self._counted[column, row] / known_s * factor) if known_s > 0 else None
        busy = [
            float(busy_s / known_s * 100)
            for busy_s, known_s in zip(self._busy_s[:, row], self._with_speed_s[:, row], strict=True)
            if known_s > 0
        ]
        means["utilisation_pct"] = max(busy, default=None)
        return means

    def _add(
        self, sums: NDArray[np.float64], rows: NDArray[np.int32], values: NDArray[np.float64], repeats: bool
    ) -> None:
        if repeats:
            sums += np.bincount(rows, values, self._ports)
        else:
            sums[rows] += values


def _port_table(file: SampleFile) -> tuple[NDArray[np.int32], PortRows]:
    """Return the row of each sample, and the table of ports in the order of their numbers, with their top speed."""
    if _is_by_port(file.dpid, file.port_no):
        starts = np.flatnonzero(np.append(True, _differs(file.dpid) | _differs(file.port_no))[: len(file.dpid)])
        rows = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(file.dpid))))
        speeds = np.fmax.reduceat(file.speed_bps, starts) if len(starts) else np.empty(0)
        names = zip(file.dpid[starts].tolist(), file.port_no[starts].tolist(), strict=True)
    else:
        dpids, switch = np.unique(file.dpid, return_inverse=True)
        numbers, port = np.unique(file.port_no, return_inverse=True)
        pairs, rows = np.unique(switch * len(numbers) + port, return_inverse=True)
        speeds = np.full(len(pairs), np.nan)
        np.fmax.at(speeds, rows, file.speed_bps)
        names = zip(dpids[pairs // len(numbers)].tolist(), numbers[pairs % len(numbers)].tolist(), strict=True)
    table = PortRows(max(len(speeds), 1))
    for (dpid, port_no), speed_bps in zip(names, np.nan_to_num(speeds).tolist(), strict=True):
        table.add(dpid, port_no, "", speed_bps)
    return rows.astype(np.int32), table


def in_turn(rows: NDArray[np.int32]) -> NDArray[np.intp]:
    """Return the first sample of each port, then the second of each, and so on, where they are in the order of ports.

    Samples of different ports are compared with those before them at once, which takes half the time.
    """
    if not len(rows) or (rows[1:] < rows[:-1]).any():
        return np.arange(len(rows))
    starts = np.flatnonzero(np.append(True, _differs(rows)))
    turn = np.arange(len(rows)) - np.repeat(starts, np.diff(np.append(starts, len(rows))))
    few = turn.max() < np.iinfo(np.int16).max  # which are sorted in linear time
    return np.argsort(turn.astype(np.int16) if few else turn, kind="stable")


def _differs(values: NDArray[Any]) -> NDArray[np.bool_]:
    different: NDArray[np.bool_] = values[1:] != values[:-1]
    return different


def _is_by_port(dpid: NDArray[np.uint64], port_no: NDArray[np.uint64]) -> bool:
    """Tell whether samples are in the order of their ports, as those of the history are."""
    rises = (dpid[1:] > dpid[:-1]) | ((dpid[1:] == dpid[:-1]) & (port_no[1:] >= port_no[:-1]))
    return bool(rises.all())


def _list_discontinuities(
    rates: SampleRates, unsupported: NDArray[np.uint16], listed: list[list[dict[str, Any]]]
) -> None:
    """Add the discontinuities of a part of the file to the lists of their ports."""
    lacking = rates.unsupported & _MASK
    listable = _LISTED[rates.discontinuity]
    for index in np.flatnonzero(listable | (lacking > 0)).tolist():
        row, at_s = int(rates.rows[index]), float(rates.at_s[index])
        newly = int(lacking[index]) & ~int(unsupported[row])
        if newly:
            listed[row].append({"time": at_s, "kind": Discontinuity.UNSUPPORTED.label, "counters": _names(newly)})
            unsupported[row] |= np.uint16(newly)
        if not listable[index]:
            continue
        code = Discontinuity(int(rates.discontinuity[index]))
        entry: dict[str, Any] = {
            "time": at_s,
            "kind": (Discontinuity.TIME_BACKWARDS if code is Discontinuity.LATE else code).label,
        }
        if rates.wrapped[index]:
            entry["counters"] = _names(int(rates.wrapped[index]))
        listed[row].append(entry)


def _names(mask: int) -> list[str]:
    return [str(counter) for counter in counters_of(mask)]
