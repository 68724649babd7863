"""Files of a day for `vsrt allocate whatif`: samples of ports, requests, and the failure domains of ports."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from apps.cli.allocate_input import read_as
from apps.cli.allocate_samples import SampleLine, read_lines
from apps.cli.common import InputError
from controller.allocation.fields import mapping
from controller.allocation.port_list import read_levels, read_ports
from controller.allocation.whatif import Day, Requests

MOST_STEPS = 100_000


def read_day(samples: Path, requests: Path, ports: Path | None, interval_s: float) -> Day:
    """Return the day of two CSV or JSON lines files.

    `samples` has ``timestamp,port,utilisation_pct`` and, where known, ``attached`` (attachments at the start); the
    last sample of a port counts until its next. `requests` has ``timestamp,count,load_pct,duration_s``. `ports` is
    JSON with ``levels`` and ``ports`` as in a request; without it no failure domains are known.
    """
    try:
        columns: dict[str, list[tuple[float, float]]] = {}
        attached: dict[str, int] = {}
        for line in read_lines(samples):
            name = line.text("port")
            columns.setdefault(name, []).append((line.number("timestamp"), _percent(line, "utilisation_pct")))
            if line.has("attached"):
                attached.setdefault(name, line.whole("attached"))
        if not columns:
            raise InputError(f"{samples}: no samples")
        wanted = sorted(_requests(requests))
    except OSError as error:
        raise InputError(f"{error.filename}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InputError(f"{samples} or {requests}: the file is not text in UTF-8") from None
    start = min(values[0][0] for values in columns.values())
    end = max(at for values in columns.values() for at, _ in values)
    steps = int((end - start) // interval_s) + 1
    if steps > MOST_STEPS:
        raise InputError(f"{samples}: {steps} polling intervals from first to last sample; at most {MOST_STEPS}")
    background = np.zeros((steps, len(columns)))
    for column, values in enumerate(columns.values()):
        for at, percent in sorted(values):
            background[int((at - start) // interval_s) :, column] = percent
    for at, *_ in wanted:
        if not start <= at <= end:
            raise InputError(f"{requests}: timestamp: {at:g} is outside the samples ({start:g} to {end:g})")
    arrived, counts, loads, durations = (np.array(column, np.float64) for column in zip(*wanted, strict=True))
    return Day(
        list(columns),
        _levels(ports, list(columns)),
        interval_s,
        background,
        np.array([attached.get(name, 0) for name in columns], np.int64),
        Requests(
            ((arrived - start) // interval_s).astype(np.int64),
            counts.astype(np.int64),
            loads,
            np.maximum(1, np.round(durations / interval_s)).astype(np.int64),
        ),
    )


def _requests(path: Path) -> list[tuple[float, int, float, float]]:
    found = []
    for line in read_lines(path):
        count = line.whole("count")
        if count < 1:
            raise line.error("count", f"{count} is below 1")
        found.append((line.number("timestamp"), count, _percent(line, "load_pct"), line.number("duration_s")))
    if not found:
        raise InputError(f"{path}: no requests")
    return found


def _percent(line: SampleLine, field: str) -> float:
    value = line.number(field)
    if value > 100:
        raise line.error(field, f"{value:g} is not within 0 and 100")
    return value


def _levels(path: Path | None, names: list[str]) -> dict[str, list[str | None]]:
    if path is None:
        return {}

    def read(document: object) -> dict[str, list[str | None]]:
        found = mapping(document, "ports", None)
        candidates = read_ports(found.get("ports"), read_levels(found.get("levels")), "ports")
        numbers = {str(name): number for name, number in candidates.numbers.items()}
        return {
            level.name: [level.entity(numbers[name]) if name in numbers else None for name in names]
            for level in candidates.levels
        }

    return read_as(path, read)
