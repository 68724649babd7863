"""Files of arrays' raw counters and rates, and of OpenFlow port counters, into a book of ports.

Lines are CSV or JSON objects with the published names as fields; errors name file, line and field.
"""

from __future__ import annotations

import csv
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from apps.cli.common import InputError
from apps.cli.sample_file import COUNTER_COLUMNS, read_samples
from apps.cli.text_files import file_faults
from controller.allocation.book import PortBook
from controller.allocation.busy import NOT_KNOWN, SampleOutcome
from controller.allocation.families import FAMILIES, CpuSource, PortSource, port_percent_busy
from controller.allocation.sample_time import parse_sample_time, parse_utc_time
from controller.performance.batch import Discontinuity, Samples
from controller.performance.counters import COUNTER_COUNT
from controller.performance.counters import Counter as PortCounter
from controller.performance.ports import PortRows
from controller.performance.rates import RateTable

JSON_LINES = (".jsonl", ".ndjson", ".json")
SPEED, VOLUMES, INITIATORS = "portSpeedGbitPerSec", "volumes", "initiators"
_RATE = re.compile(
    r"(director\.busy|director\.fe-o[sp]s?|fe-prt\.ops|fe-prt\.read|fe-prt\.write)\s*(.*?)\s*(\([^()]*\))?\Z"
)
_MOST = (1 << 63) - 1
_UNMEASURED = {
    Discontinuity.FIRST: SampleOutcome.FIRST,
    Discontinuity.RESET: SampleOutcome.RESET,
    Discontinuity.TIME_BACKWARDS: SampleOutcome.TIME_BACKWARDS,
    Discontinuity.LATE: SampleOutcome.TIME_BACKWARDS,
    Discontinuity.DUPLICATE: SampleOutcome.TIME_BACKWARDS,
}


class Options(NamedTuple):
    """What files do not tell: the speed of ports that tell none, and the time between two collections of rates."""

    speed_gbps: float | None
    collection_s: float


class Fed(NamedTuple):
    """The time of the last sample, and how many samples of each port gave what."""

    now_ms: int
    outcomes: dict[str, Counter[str]]


class SampleLine:
    """The fields of one line."""

    def __init__(self, where: str, fields: Mapping[str, Any]) -> None:
        self.where = where
        self._fields = fields

    def error(self, field: str, problem: str) -> InputError:
        """Return the error that a field has a problem."""
        return InputError(f"{self.where}: {field}: {problem}")

    def has(self, field: str) -> bool:
        """Return whether the line tells a field."""
        return self._fields.get(field) not in (None, "")

    def text(self, field: str) -> str:
        """Return a field as text; InputError where it is missing."""
        if not self.has(field):
            raise self.error(field, "missing")
        return str(self._fields[field])

    def whole(self, field: str) -> int:
        """Return a field as a whole number from 0 on."""
        text = self.text(field)
        if not text.isascii() or not text.isdecimal() or len(text) > 19 or int(text) > _MOST:
            raise self.error(field, f"expected a whole number from 0 on, found {text[:64]!r}")
        return int(text)

    def number(self, field: str) -> float:
        """Return a field as a finite number from 0 on."""
        text = self.text(field)
        try:
            value = float(text)
        except ValueError:
            raise self.error(field, f"expected a number, found {text[:64]!r}") from None
        if not 0 <= value < math.inf:
            raise self.error(field, f"{text[:64]} is out of range")
        return value

    def time(self, field: str, parse: Callable[[str], int]) -> int:
        """Return a field as milliseconds since 1970."""
        try:
            return parse(self.text(field))
        except ValueError as error:
            raise self.error(field, str(error)) from None

    def items(self) -> Iterator[tuple[str, Any]]:
        """Return the fields with their values."""
        return iter(self._fields.items())


def feed(book: PortBook, family: str, path: Path, options: Options) -> Fed:
    """Take in all samples of a file; InputError names file, line and field of what is wrong."""
    source = FAMILIES[family].port
    if source is PortSource.PERCENT:
        return _feed_openflow(book, path)
    feeder: Callable[..., Fed] = _feed_rates if source is PortSource.RATES else _feed_counters
    with file_faults(path):
        return feeder(book, family, read_lines(path), options)


def read_lines(path: Path) -> Iterator[SampleLine]:
    """Yield the lines of a CSV file or of JSON lines; InputError names file and line of what is no such."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        if path.suffix in JSON_LINES:
            for number, text in enumerate(file, 1):
                if not text.strip():
                    continue
                try:
                    fields = json.loads(text)
                except ValueError as error:
                    raise InputError(f"{path}:{number}: {error}") from None
                if not isinstance(fields, dict):
                    raise InputError(f"{path}:{number}: expected an object")
                yield SampleLine(f"{path}:{number}", fields)
            return
        reader = csv.reader(file)
        try:
            header = [name.strip() for name in next(reader, [])]
            if not header:
                raise InputError(f"{path}:1: the file is empty")
            for name in header:
                if header.count(name) > 1:
                    raise InputError(f"{path}:1: {name}: the column is there twice")
            for values in reader:
                if len(values) not in (0, len(header)):
                    raise InputError(f"{path}:{reader.line_num}: {len(values)} fields; the header has {len(header)}")
                if values:
                    stripped = (value.strip() for value in values)
                    yield SampleLine(f"{path}:{reader.line_num}", dict(zip(header, stripped, strict=True)))
        except csv.Error as error:
            raise InputError(f"{path}:{reader.line_num}: {error}") from None


class _Columns:
    """Samples of one kind, gathered by row."""

    def __init__(self, *names: str) -> None:
        self.values: dict[str, list[float]] = {name: [] for name in ("row", "at_ms", *names)}

    def add(self, **values: float) -> None:
        for name, value in values.items():
            self.values[name].append(value)

    def whole(self, name: str) -> Any:
        return np.array(self.values[name], np.int64)

    def number(self, name: str) -> Any:
        return np.array(self.values[name], np.float64)


def _add(book: PortBook, line: SampleLine, name: str, family: str, cpu: str | None) -> int:
    row = book.add(name, family, cpu)
    if row is None:
        raise line.error("port", f"{name!r} is one port more than there may be")
    if line.has(VOLUMES) or line.has(INITIATORS):
        counts = (line.whole(field) if line.has(field) else 0 for field in (INITIATORS, VOLUMES))
        book.count(row, *counts)
    return row


def _speed(line: SampleLine, options: Options) -> float:
    if line.has(SPEED):
        return line.number(SPEED)
    if options.speed_gbps is None:
        raise line.error(SPEED, "missing; --speed-gbps gives one to all")
    return options.speed_gbps


def _feed_counters(book: PortBook, family: str, lines: Iterator[SampleLine], options: Options) -> Fed:
    """Take in cumulative counters; a line tells of a port, of a CPU, or of both, which belong together then."""
    cpu_source = FAMILIES[family].cpu
    ports = _Columns("kbytes", "speed", "ios")
    cpus = _Columns("idle", "all")
    seen: dict[int, int] = {}
    now_ms = 0
    for line in lines:
        at_ms = line.time("sampleTime", parse_sample_time)
        now_ms = max(now_ms, at_ms)
        cpu = line.text("cpu") if cpu_source is not CpuSource.NONE and line.has("cpu") else None
        if line.has("port"):
            row = _add(book, line, line.text("port"), family, cpu)
            ios = line.whole("iops") if line.has("iops") else NOT_KNOWN
            ports.add(
                row=row, at_ms=at_ms, kbytes=line.whole("kbytesTransferred"), speed=_speed(line, options), ios=ios
            )
        elif cpu is None:
            raise line.error("port", "missing, and so is cpu")
        if cpu is not None and (line.has("idle") or not line.has("port")):
            row = book.add_cpu(cpu, family)
            if seen.get(row) != at_ms:
                ticks = line.whole("ticks") if cpu_source is CpuSource.TICKS else NOT_KNOWN
                cpus.add(row=row, at_ms=at_ms, idle=line.whole("idle"), all=ticks)
                seen[row] = at_ms
    outcomes = book.ports.observe_kbytes(
        ports.whole("row"), ports.whole("at_ms"), ports.whole("kbytes"), ports.number("speed"), ports.whole("ios")
    )
    every_tick = cpus.whole("all") if cpu_source is CpuSource.TICKS else None
    book.cpus.observe_ticks(cpus.whole("row"), cpus.whole("at_ms"), cpus.whole("idle"), every_tick)
    return Fed(now_ms, _count(book, ports.whole("row"), outcomes))


def _feed_rates(book: PortBook, family: str, lines: Iterator[SampleLine], options: Options) -> Fed:
    """Take in rates: what lies between two collections is averaged, and is one sample."""
    sums: dict[tuple[bool, int, int], list[float]] = {}
    speeds: dict[int, float] = {}
    start_ms: int | None = None
    now_ms = 0
    for line in lines:
        time_field = "Time" if line.has("Time") else "Time (UTC)"
        at_ms = line.time(time_field, parse_utc_time)
        start_ms = at_ms if start_ms is None else start_ms
        now_ms = max(now_ms, at_ms)
        window = int((at_ms - start_ms) // (options.collection_s * 1000))
        director = line.text("director")
        rates: dict[str, float] = {}
        for field, _ in line.items():
            match = _RATE.match(field)
            if match is None or not line.has(field):
                continue
            value = line.number(field)
            if match[1] == "director.busy":
                if value > 100:
                    raise line.error(field, f"{value:g} is not within 0 and 100")
                _average(sums, (True, book.add_cpu(director, family), window), value, at_ms)
            elif match[1] in ("fe-prt.read", "fe-prt.write"):
                port = match[2] or line.text("port")
                rates[port] = rates.get(port, 0.0) + value
        for port, rate in rates.items():
            row = _add(book, line, port, family, director)
            speeds[row] = _speed(line, options)
            _average(sums, (False, row, window), rate, at_ms)
    ordered = sorted(sums.items(), key=lambda item: item[1][2])
    outcomes: Any = np.empty(0, np.uint8)
    rows: Any = np.empty(0, np.int64)
    for of_cpu in (False, True):
        some = [(row, found) for (cpu, row, _), found in ordered if cpu is of_cpu]
        each_row = np.array([row for row, _ in some], np.int64)
        at = np.array([found[2] for _, found in some], np.int64)
        mean = np.array([found[0] / found[1] for _, found in some], np.float64)
        if of_cpu:
            book.cpus.observe_percent(each_row, at, mean)
        else:
            speed = np.array([speeds[row] for row, _ in some], np.float64)
            rows, outcomes = each_row, book.ports.observe_percent(each_row, at, port_percent_busy(mean, 1.0, speed))
            outcomes[speed <= 0] = SampleOutcome.NO_SPEED
    return Fed(now_ms, _count(book, rows, outcomes))


def _average(
    sums: dict[tuple[bool, int, int], list[float]], key: tuple[bool, int, int], value: float, at_ms: int
) -> None:
    """Add a rate to its collection: the sum, the number of values, and the latest time."""
    found = sums.setdefault(key, [0.0, 0, at_ms])
    found[0] += value
    found[1] += 1
    found[2] = max(found[2], at_ms)


def _feed_openflow(book: PortBook, path: Path) -> Fed:
    """Take in OpenFlow port counters as `vsrt perf rates` reads them: utilisation of the busier direction."""
    file = read_samples(path)
    table = PortRows(max(1, len(file.at_s)))
    rows = np.empty(len(file.at_s), np.int32)
    own: dict[int, int] = {}
    for index, (dpid, port_no, speed) in enumerate(
        zip(file.dpid.tolist(), file.port_no.tolist(), file.speed_bps.tolist(), strict=True)
    ):
        row = table.row(dpid, port_no)
        if row is None:
            added = table.add(dpid, port_no, "", 0.0)
            row = -1 if added is None else added.row
            book_row = book.add(f"{dpid}:{port_no}", "openflow", str(dpid))
            if book_row is None:
                raise InputError(f"{path}: {dpid}:{port_no} is one port more than there may be")
            own[row] = book_row
        rows[index] = row
        if speed > 0:
            table.speed_bps[row] = speed
    counters = np.zeros((len(rows), COUNTER_COUNT), np.uint64)
    counters[:, [PortCounter(name).column for name in COUNTER_COLUMNS]] = file.counters
    found = RateTable(table).update(Samples(rows, file.at_s, file.duration_s, counters))
    book_rows = np.array([own[row] for row in found.rows.tolist()], np.int64)
    at_ms = np.round(found.at_s * 1000).astype(np.int64)
    outcomes = book.ports.observe_percent(book_rows, at_ms, found.busier_pct)
    unmeasured = outcomes == SampleOutcome.NOT_REPORTED
    outcomes[unmeasured & ~(table.speed_bps[found.rows] > 0)] = SampleOutcome.NO_SPEED
    for code, outcome in _UNMEASURED.items():
        outcomes[unmeasured & (found.discontinuity == code)] = outcome
    return Fed(int(at_ms.max(initial=0)), _count(book, book_rows, outcomes))


def _count(book: PortBook, rows: Any, outcomes: Any) -> dict[str, Counter[str]]:
    names = book.names
    found: dict[str, Counter[str]] = {name: Counter() for name in names}
    pairs, counts = np.unique(rows * len(SampleOutcome) + outcomes, return_counts=True)
    for pair, count in zip(pairs.tolist(), counts.tolist(), strict=True):
        found[names[pair // len(SampleOutcome)]][SampleOutcome(pair % len(SampleOutcome)).label] = count
    return found
