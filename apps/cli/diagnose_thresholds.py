"""Files of thresholds of `vsrt diagnose`: what a training period told, kept for later days."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple, get_args

import numpy as np

from apps.cli.common import InputError
from apps.cli.text_files import file_faults
from apps.cli.whole_files import write_whole_text
from controller.anomaly.peers.diagnosis import Diagnosis, TimeSpan
from controller.anomaly.peers.past import OwnPast, quantiles_kept
from controller.anomaly.peers.scoring import Floats, Learnt, Thresholds
from controller.anomaly.peers.settings import Form, Offsets, PeerSettings, Scope
from controller.anomaly.peers.trained import Trained, Training

FORMAT, VERSION = "vsrt-peer-thresholds", 5
LEARNT_WITH = (
    "interval_s",
    "smoothing_samples",
    "window_samples",
    "bins_max",
    "scope",
    "form",
    "offsets",
    "leave_one_out",
)
"""Settings that thresholds hold for; the others may differ from day to day."""
CHOICES = {"scope": get_args(Scope), "form": get_args(Form), "offsets": get_args(Offsets)}


class ThresholdFile(NamedTuple):
    """What a file holds."""

    settings: PeerSettings
    training: Training


def write_thresholds(path: Path, found: Diagnosis, period: TimeSpan) -> None:
    """Write what a diagnosis learnt, whole or not at all; OperationFailed where it cannot be written."""
    groups: dict[str, dict[str, Any]] = {}
    for (group, metric), trained in found.trained.items():
        groups.setdefault(group, {})[metric] = {
            "counter": trained.is_counter,
            "usual_bin": _plain(trained.learnt.usual_bin),
            "past_ends": trained.learnt.past.ends_s.tolist(),
            "members": {
                member: {
                    "peers": peers,
                    "own": own,
                    "levelled": levelled,
                    "reference": [_plain(value) for value in reference],
                    "past": [[_short(value) for value in window] for window in past],
                    "levelled_past": [[_short(value) for value in window] for window in levelled_past],
                }
                for member, peers, own, levelled, reference, past, levelled_past in zip(
                    trained.members,
                    *(() if limit is None else limit.tolist() for limit in trained.limits),
                    trained.learnt.reference.tolist(),
                    trained.learnt.past.quantiles.swapaxes(0, 1),
                    trained.learnt.levelled_past.quantiles.swapaxes(0, 1),
                    strict=True,
                )
            },
        }
    document = {
        "format": FORMAT,
        "version": VERSION,
        "trained": {"start": period.start_s, "end": period.end_s},
        "settings": {field.name: getattr(found.settings, field.name) for field in fields(PeerSettings)},
        "groups": groups,
    }
    text = json.dumps(document, allow_nan=False) + "\n"
    write_whole_text(path, text)


def read_thresholds(path: Path) -> ThresholdFile:
    """Return what a file holds; InputError names the field at fault."""
    with file_faults(path):
        text = path.read_text(encoding="utf-8")
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(f"{path}:{error.lineno}: {error.msg}") from None
    reader = _Reader(str(path))
    top = reader.mapping(document, "")
    if top.get("format") != FORMAT:
        raise reader.wrong("format", f"expected {FORMAT!r}", top.get("format"))
    if top.get("version") != VERSION:
        raise reader.wrong("version", f"expected {VERSION}", top.get("version"))
    settings = reader.settings(top.get("settings"))
    training = {
        (group, metric): reader.trained(content, f"groups.{group}.{metric}", settings)
        for group, metrics in reader.mapping(top.get("groups"), "groups").items()
        for metric, content in reader.mapping(metrics, f"groups.{group}").items()
    }
    if not training:
        raise InputError(f"{path}: groups: the file holds no thresholds")
    return ThresholdFile(settings, training)


def fitting_settings(file: ThresholdFile, given: Mapping[str, object], options: Mapping[str, str]) -> PeerSettings:
    """Return the settings of the file with what is given; InputError where its thresholds do not hold for it.

    `options` are the names under which fields of the settings are given.
    """
    kept = {field.name: getattr(file.settings, field.name) for field in fields(PeerSettings)}
    for name in LEARNT_WITH:
        if name in given and given[name] != kept[name]:
            raise InputError(
                f"{options.get(name, name)}: {given[name]}, the thresholds are for {kept[name]}; train anew for it"
            )
    try:
        return PeerSettings(**{**kept, **given})
    except ValueError as error:
        name, _, rest = str(error).partition(": ")
        raise InputError(f"{options.get(name, name)}: {rest}") from None


def _plain(value: float) -> float | None:
    return None if math.isnan(value) else value


def _short(value: float) -> float | None:
    """Return a float32 as the number with fewest digits that is read as the same float32."""
    return None if math.isnan(value) else float(str(np.float32(value)))


class _Reader:
    """Takes a document apart; every error names the file and the field."""

    def __init__(self, path: str) -> None:
        self._path = path

    def wrong(self, field: str, expected: str, found: object) -> InputError:
        return InputError(f"{self._path}: {field}: {expected}, found {json.dumps(found)[:64]}")

    def mapping(self, value: Any, field: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise self.wrong(field or "document", "expected an object", value)
        return value

    def number(self, value: Any, field: str) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise self.wrong(field, "expected a number", value)
        return float(value)

    def numbers(self, values: Any, field: str, count: int) -> list[float]:
        if not isinstance(values, list) or len(values) != count:
            raise self.wrong(field, f"expected a list of {count}", values)
        return [math.nan if value is None else self.number(value, field) for value in values]

    def settings(self, value: Any) -> PeerSettings:
        defaults = PeerSettings()
        given = self.mapping(value, "settings")
        for field in fields(PeerSettings):
            name = field.name
            if name not in given:
                raise InputError(f"{self._path}: settings.{name}: the field is missing")
            expected = type(getattr(defaults, name))
            if type(given[name]) is not expected and not (expected is float and type(given[name]) is int):
                raise self.wrong(f"settings.{name}", f"expected a {expected.__name__}", given[name])
            if name in CHOICES and given[name] not in CHOICES[name]:
                raise self.wrong(f"settings.{name}", f"expected one of {', '.join(CHOICES[name])}", given[name])
        unknown = sorted(given.keys() - {field.name for field in fields(PeerSettings)})
        if unknown:
            raise InputError(f"{self._path}: settings.{unknown[0]}: no such setting")
        try:
            return PeerSettings(**given)
        except ValueError as error:
            raise InputError(f"{self._path}: settings.{error}") from None

    def trained(self, value: Any, field: str, settings: PeerSettings) -> Trained:
        content = self.mapping(value, field)
        members = self.mapping(content.get("members"), f"{field}.members")
        if not isinstance(content.get("counter"), bool):
            raise self.wrong(f"{field}.counter", "expected true or false", content.get("counter"))
        usual = content.get("usual_bin")
        usual_bin = math.nan if usual is None else self.number(usual, f"{field}.usual_bin")
        ends_s = content.get("past_ends")
        ends_s = self.numbers(ends_s, f"{field}.past_ends", len(ends_s) if isinstance(ends_s, list) else 0)
        kept = quantiles_kept(settings)
        limits: dict[str, list[float]] = {"peers": [], "own": [], "levelled": []}
        reference = []
        pasts: dict[str, list[list[list[float]]]] = {"past": [], "levelled_past": []}
        for member, one in members.items():
            of = f"{field}.members.{member}"
            entry = self.mapping(one, of)
            for name, found in limits.items():
                found.append(self._limit(entry.get(name), f"{of}.{name}"))
            reference.append(self.numbers(entry.get("reference"), f"{of}.reference", settings.window_samples))
            for name, past in pasts.items():
                windows = entry.get(name)
                if not isinstance(windows, list) or len(windows) != len(ends_s):
                    raise self.wrong(f"{of}.{name}", f"expected a list of {len(ends_s)}", windows)
                past.append([self.numbers(window, f"{of}.{name}", kept) for window in windows])
        shape = (len(members), len(ends_s), kept)
        quantiles = [_array(past).astype(np.float32).astype(np.float64).reshape(shape) for past in pasts.values()]
        past_of = [OwnPast(_array(ends_s), each.swapaxes(0, 1)) for each in quantiles]
        learnt = Learnt(_array(reference).reshape(len(members), settings.window_samples), usual_bin, *past_of)
        return Trained(tuple(members), content["counter"], learnt, Thresholds(*map(_array, limits.values())))

    def _limit(self, value: Any, field: str) -> float:
        limit = self.number(value, field)
        if limit <= 0:
            raise self.wrong(field, "expected a positive number", value)
        return limit


def _array(values: list[Any]) -> Floats:
    return np.array(values, np.float64)
