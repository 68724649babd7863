"""Files of normalcy models: what is known of many series, to be carried on with the points of later days."""

from __future__ import annotations

import json
import math
import zipfile
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from apps.cli.common import InputError
from apps.cli.whole_files import write_whole
from controller.anomaly.normalcy.bounds import Bounds, Trend
from controller.anomaly.normalcy.footprint import Footprint, Frame
from controller.anomaly.normalcy.result import SeriesNormalcy
from controller.anomaly.normalcy.rolling import RollingState
from controller.anomaly.normalcy.series import Floats, InputCounts
from controller.anomaly.normalcy.settings import SettingError, Settings
from controller.anomaly.series import SeriesName

FORMAT, VERSION = "vsrt-normalcy-model", 2
HEADER = "model"
PLAIN = ("category", "reason", "period_s", "kind", "start_up", "since_s", "longest_gap_s")
"""Fields of `SeriesNormalcy` that are written as they are."""


class Model(NamedTuple):
    """What a file holds: the settings of all series, and the state of each."""

    settings: Settings
    series: dict[SeriesName, RollingState]


def write_model(path: Path, model: Model) -> None:
    """Write a model whole or not at all; OperationFailed where it cannot be written."""
    arrays = _Arrays()
    header = {
        "format": FORMAT,
        "version": VERSION,
        "settings": asdict(model.settings),
        "series": [{**name._asdict(), **_state_out(state, arrays)} for name, state in model.series.items()],
    }
    content: dict[str, Any] = {HEADER: np.array(json.dumps(header, allow_nan=False)), **arrays.whole()}

    def write(temporary: Path) -> None:
        with temporary.open("wb") as file:
            np.savez(file, **content)

    write_whole(path, write)


def read_model(path: Path) -> Model:
    """Return the model in a file; InputError names the field at fault."""
    try:
        with np.load(path, allow_pickle=False) as file:
            header = json.loads(str(file[HEADER]))
            arrays = _Arrays({name: file[name] for name in file.files if name != HEADER})
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from None
    except (ValueError, KeyError, TypeError, AttributeError, zipfile.BadZipFile, EOFError):
        raise InputError(f"{path}: no model of `vsrt normalcy fit -o`") from None
    for field, expected in (("format", FORMAT), ("version", VERSION)):
        if not isinstance(header, dict) or header.get(field) != expected:
            found = header.get(field) if isinstance(header, dict) else header
            raise InputError(f"{path}: {field}: expected {expected!r}, found {str(found)[:64]!r}")
    settings = _settings_in(header.get("settings"), path)
    series = {}
    for number, entry in enumerate(header.get("series", ())):
        try:
            name = SeriesName(entry["member"], entry["peer_group"], entry["metric"])
            series[name] = _state_in(entry, arrays)
        except KeyError as error:
            raise InputError(f"{path}: series[{number}]: {error.args[0]} is missing") from None
        except (TypeError, ValueError, IndexError) as error:
            raise InputError(f"{path}: series[{number}]: {error}") from None
    return Model(settings, series)


def _settings_in(given: Any, path: Path) -> Settings:
    known = {field.name for field in fields(Settings)}
    if not isinstance(given, dict) or given.keys() != known:
        odd = sorted(known ^ given.keys()) if isinstance(given, dict) else ["settings"]
        raise InputError(f"{path}: settings: {odd[0]} is missing or unknown")
    values: dict[str, Any] = {name: tuple(one) if isinstance(one, list) else one for name, one in given.items()}
    try:
        return Settings(**values)
    except (SettingError, TypeError) as error:
        raise InputError(f"{path}: settings.{error}") from None


class _Arrays:
    """Arrays of all series behind one another, taken out in the order in which they were put in."""

    def __init__(self, whole: dict[str, Any] | None = None) -> None:
        self._whole = whole or {}
        self._parts: dict[str, list[Any]] = {}
        self._taken: dict[str, int] = {}

    def put(self, name: str, values: Any) -> int:
        self._parts.setdefault(name, []).append(np.ravel(values))
        return int(np.size(values))

    def whole(self) -> dict[str, Any]:
        return {name: np.concatenate(parts) for name, parts in self._parts.items()}

    def take(self, name: str, count: int) -> Any:
        start = self._taken.get(name, 0)
        found = self._whole.get(name, np.empty(0))[start : start + count]
        if len(found) != count:
            raise ValueError(f"{name}: {count} values expected, {len(found)} found")
        self._taken[name] = start + count
        return found


def _state_out(state: RollingState, arrays: _Arrays) -> dict[str, Any]:
    arrays.put("at_s", state.at_s)
    arrays.put("values", state.values)
    return {
        "points": len(state.at_s),
        "left_out": list(state.left_out),
        "fitted_s": state.fitted_s if math.isfinite(state.fitted_s) else None,
        "fitted_length_s": state.fitted_length_s,
        "since_s": state.since_s,
        "normalcy": {name: getattr(state.normalcy, name) for name in PLAIN},
        "bounds": None if state.normalcy.bounds is None else _bounds_out(state.normalcy.bounds, arrays),
        "columns": None if state.columns is None else _columns_out(state.columns, arrays),
    }


def _state_in(entry: dict[str, Any], arrays: _Arrays) -> RollingState:
    points, left_out = int(entry["points"]), InputCounts(*entry["left_out"])
    at_s, values = arrays.take("at_s", points), arrays.take("values", points)
    bounds = None if entry["bounds"] is None else _bounds_in(entry["bounds"], arrays)
    normalcy = SeriesNormalcy(**{name: entry["normalcy"][name] for name in PLAIN}, bounds=bounds, counts=left_out)
    columns = None if entry["columns"] is None else _columns_in(entry["columns"], arrays)
    fitted_s = -math.inf if entry["fitted_s"] is None else float(entry["fitted_s"])
    since_s = None if entry["since_s"] is None else float(entry["since_s"])
    length_s = float(entry["fitted_length_s"])
    return RollingState(at_s, values, left_out, fitted_s, length_s, since_s, columns, normalcy)


def _bounds_out(bounds: Bounds, arrays: _Arrays) -> dict[str, Any]:
    arrays.put("intervals", bounds.intervals)
    return {
        "origin_s": bounds.origin_s,
        "slot_s": bounds.slot_s,
        "shape": list(bounds.intervals.shape),
        "trend": None if bounds.trend is None else asdict(bounds.trend),
        "members": [list(map(float, of_slot)) for of_slot in bounds.members],
    }


def _bounds_in(given: dict[str, Any], arrays: _Arrays) -> Bounds:
    shape = tuple(map(int, given["shape"]))
    return Bounds(
        float(given["origin_s"]),
        float(given["slot_s"]),
        arrays.take("intervals", math.prod(shape)).reshape(shape),
        None if given["trend"] is None else Trend(**given["trend"]),
        tuple(map(tuple, given["members"])),
    )


def _columns_out(columns: Footprint, arrays: _Arrays) -> dict[str, Any]:
    frame = columns.frame
    for name, values in (("low", columns.low), ("high", columns.high), ("counts", columns.counts)):
        arrays.put(name, values)
    return {**asdict(frame), "edges": frame.edges.tolist(), "columns": len(columns)}


def _columns_in(given: dict[str, Any], arrays: _Arrays) -> Footprint:
    frame_fields = {name: one for name, one in given.items() if name != "columns"}
    edges: Floats = np.array(given["edges"], np.float64)
    count, cells = int(given["columns"]), len(edges) + 1
    low, high = arrays.take("low", count), arrays.take("high", count)
    counts = arrays.take("counts", count * cells).astype(np.uint32).reshape(count, cells)
    return Footprint(Frame(**{**frame_fields, "edges": edges}), counts, low, high)
