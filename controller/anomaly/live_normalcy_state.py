"""What live normalcy keeps over restarts: the bounds of every port's metrics, and what is outside of them."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from controller.anomaly.live_events import MemberKey
from controller.anomaly.live_normalcy import LEARNT, SlotBounds
from controller.anomaly.live_normalcy_core import METRIC_COUNT, METRICS, NO_PORT, NormalcyCore, OpenExcess
from controller.anomaly.live_state import AnomalyStateError

NORMALCY_VERSION = 1
_OPEN_FIELDS = ("metric", "since_s", "value", "lower", "upper", "score")


class PortNormalcy(NamedTuple):
    """A port as it is kept: `learnt` are its arrays one behind the other, `opened` is JSON, '' where nothing is."""

    dpid: int
    port_no: int
    newest_s: float
    learnt: bytes
    opened: str


class NormalcyState(NamedTuple):
    """All or some of what is kept; `chain` says what it holds for."""

    chain: str
    ports: tuple[PortNormalcy, ...]
    forgotten: tuple[MemberKey, ...] = ()


def changes(core: NormalcyCore, limit: int) -> NormalcyState:
    """Return what changed and was not returned yet, of at most `limit` ports."""
    opened: dict[MemberKey, list[list[Any]]] = {}
    for (key, _), excess in core.open.items():
        opened.setdefault(key, []).append([getattr(excess, field) for field in _OPEN_FIELDS])
    ports = []
    for key in [key for key, _ in zip(core.dirty, range(limit), strict=False)]:
        del core.dirty[key]
        first = core.row(key)
        newest_s = core.bounds.newest_s[first : first + METRIC_COUNT]
        at_s = 0.0 if np.isnan(newest_s).all() else float(np.nanmax(newest_s))
        text = json.dumps(opened[key]) if key in opened else ""
        ports.append(PortNormalcy(*key, at_s, _packed(core.bounds, first), text))
    forgotten, core.forgotten = tuple(core.forgotten), []
    return NormalcyState(core.chain, tuple(ports), forgotten)


def all_changed(core: NormalcyCore) -> None:
    """Have everything returned by `changes` once more."""
    core.dirty.update(dict.fromkeys(core.ports))


def restore(core: NormalcyCore, state: NormalcyState) -> int:
    """Take what an earlier run learnt, before any event, and return of how many ports: none from another chain.

    AnomalyStateError where it is damaged; nothing is taken then.
    """
    if state.chain != core.chain:
        return 0
    checked = [(port, _unpacked(core.bounds, port), _opened(port)) for port in state.ports]
    taken = 0
    for port, arrays, opened in checked:
        first = core.add_port((port.dpid, port.port_no))
        if first == NO_PORT:
            continue
        taken += 1
        rows = np.arange(first, first + METRIC_COUNT)
        for name, array in arrays.items():
            getattr(core.bounds, name)[:, rows] = array
        core.bounds.newest_s[rows] = port.newest_s
        core.bounds.measure(rows)
        for excess in opened:
            core.restore(excess)
    return taken


def _packed(bounds: SlotBounds, first: int) -> bytes:
    return b"".join(getattr(bounds, name)[:, first : first + METRIC_COUNT].tobytes() for name in LEARNT)


def _unpacked(bounds: SlotBounds, port: PortNormalcy) -> dict[str, NDArray[Any]]:
    name = f"{port.dpid}:{port.port_no}"
    arrays: dict[str, NDArray[Any]] = {}
    place = 0
    for field in LEARNT:
        table = getattr(bounds, field)
        shape = (len(table), METRIC_COUNT)
        size = shape[0] * shape[1] * table.itemsize
        if place + size > len(port.learnt):
            raise AnomalyStateError(f"{name}: {len(port.learnt)} bytes are too few")
        arrays[field] = np.frombuffer(port.learnt, table.dtype, shape[0] * shape[1], place).reshape(shape)
        place += size
    if place != len(port.learnt):
        raise AnomalyStateError(f"{name}: {len(port.learnt)} bytes, expected {place}")
    for low, high in (("day_low", "day_high"), ("week_low", "week_high")):
        if not np.isfinite(arrays[low]).all() or not np.isfinite(arrays[high]).all():
            raise AnomalyStateError(f"{name}: {low} or {high} is no number")
        if (arrays[low] > arrays[high]).any():
            raise AnomalyStateError(f"{name}: {low} is above {high}")
    if not np.isfinite(port.newest_s):
        raise AnomalyStateError(f"{name}: the time of its newest point is no number")
    return arrays


def _opened(port: PortNormalcy) -> list[OpenExcess]:
    if not port.opened:
        return []
    key, known = (port.dpid, port.port_no), {metric.name for metric in METRICS}
    try:
        found = [OpenExcess(key, *values) for values in json.loads(port.opened)]
        if all(each.metric in known and np.isfinite(np.array(each[2:], float)).all() for each in found):
            return found
    except (TypeError, ValueError):
        pass
    raise AnomalyStateError(f"{port.dpid}:{port.port_no}: what is open of it makes no sense")
