"""What the monitor's files hold of a port, for any stretch of time, with what is normal there."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from apps.dashboard.answers import Problem

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from pyarrow import Table

    from controller.performance.history import PortHistory

Ask = Callable[[dict[str, Any]], Awaitable[Any]]

MOST_POINTS = 1500
"""Points of one answer; steps are longer where there would be more."""
MINUTE_S, HOUR_S = 60.0, 3600.0
BY_MINUTES_S = 2 * 86_400.0
"""Longer stretches are made of roll-ups of an hour."""

SERIES: Mapping[str, tuple[str, float]] = MappingProxyType(
    {
        "rx_bps": ("rx_bytes_per_s", 8.0),
        "tx_bps": ("tx_bytes_per_s", 8.0),
        "rx_utilisation_pct": ("rx_bytes_per_s", 800.0),
        "tx_utilisation_pct": ("tx_bytes_per_s", 800.0),
        "errors_pps": ("errors_per_s", 1.0),
    }
)
"""By metric the series that live normalcy has bounds of, and what one of it is; utilisation is over the capacity."""


class Stretch(NamedTuple):
    """What is asked for: a metric of a port from `since_s` to `until_s`, in steps of `step_s`."""

    dpid: int
    port_no: int
    metric: str
    since_s: float
    until_s: float
    step_s: float


class PastFiles:
    """Reads the roll-ups in a directory, for one request at a time, on a thread beside the server's loop."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._one_at_a_time = asyncio.Lock()

    async def history(self, asked: Stretch, speed_bps: float) -> dict[str, Any]:
        """Return the document of a history, with bounds of the stretch itself.

        Parameters
        ----------
        asked
            The stretch; steps are as long as it wants them, or longer.
        speed_bps
            Capacity of the port; 0 where it is not known.

        Raises
        ------
        Problem
            409 where a file cannot be read.
        """
        span_s = asked.until_s - asked.since_s
        length_s = MINUTE_S if span_s <= BY_MINUTES_S else HOUR_S
        step_s = max(asked.step_s, length_s, -(-span_s / MOST_POINTS // length_s) * length_s)
        asked = asked._replace(step_s=step_s)
        async with self._one_at_a_time:
            points = await asyncio.to_thread(_points, self._directory, asked, speed_bps)
        place = {"dpid": asked.dpid, "port_no": asked.port_no, "metric": asked.metric}
        return {**place, "step_s": step_s, "points": points}


async def with_learnt_bounds(history: dict[str, Any], speed_bps: float, ask: Ask) -> dict[str, Any]:
    """Return a history with the bounds that live normalcy has learnt; where it has none, as it is.

    `ask` puts a question to the controller; Problem where it refuses.
    """
    points, metric = history["points"], history["metric"]
    name, unit = SERIES[metric]
    is_share = metric.endswith("_pct")
    if not points or (is_share and not speed_bps):
        return history
    factor = unit / speed_bps if is_share else unit
    times_s = [point["time_s"] + history["step_s"] / 2 for point in points]
    place = {"dpid": history["dpid"], "port_no": history["port_no"], "metric": name}
    try:
        answer = await ask({"do": "normalcy-bounds", **place, "times_s": times_s})
    except Problem:
        return history
    bounds = answer["bounds"]
    if all(lower is None for lower, _ in bounds):
        return history

    def scaled(bound: float | None) -> float | None:
        return None if bound is None else max(0.0, factor * bound)

    learnt = [
        {**point, "lower": scaled(lower), "upper": scaled(upper)}
        for point, (lower, upper) in zip(points, bounds, strict=True)
    ]
    return {**history, "points": learnt}


def _points(directory: Path, asked: Stretch, speed_bps: float) -> list[dict[str, Any]]:
    from apps.exporters.history import read_history
    from apps.exporters.schema import HistoryFileError, RecordKind
    from controller.performance.port_history import steps

    is_long = asked.until_s - asked.since_s > BY_MINUTES_S
    kinds = (RecordKind.HOURS,) if is_long else (RecordKind.MINUTES, RecordKind.HOURS)
    try:
        for kind in kinds:
            table = read_history(
                directory,
                kind,
                since_s=asked.since_s,
                until_s=asked.until_s,
                ports=[(asked.dpid, asked.port_no)],
            )
            if table.num_rows:
                found = steps(_as_history(table), asked.metric, speed_bps, asked.since_s, asked.step_s)
                return [point._asdict() for point in found]
    except HistoryFileError as error:
        raise Problem(409, str(error)) from None
    return []


def _as_history(table: Table) -> PortHistory:
    import numpy as np

    from controller.performance.counters import COUNTERS, FIRST_ERROR_COLUMN
    from controller.performance.history import PortHistory

    def rate(counter: str) -> NDArray[Any]:
        column = table.column(f"{counter}_mean_per_s").cast("float64")
        return np.asarray(column.to_numpy(), np.float64)

    errors = np.stack([rate(counter) for counter in COUNTERS[FIRST_ERROR_COLUMN:]])
    known = ~np.isnan(errors).all(axis=0)
    start_s = table.column("timestamp").cast("int64").to_numpy() / 1e6
    return PortHistory(
        start_s, rate("rx_bytes"), rate("tx_bytes"), np.where(known, np.nansum(errors, axis=0), np.nan)
    )
