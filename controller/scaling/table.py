"""What an advisor knows that is to outlast its process: loads of the past, and what learners have learnt, as text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import isfinite
from typing import Any, NamedTuple

from controller.scaling.model import Learner, RememberingLearner

TABLE_BYTES = 1 << 20
"""Bytes of the text at most."""

WHOLE_BYTES = 1 << 13
"""What a learner has learnt that is no longer than this is never divided."""

VERSION = 1


class TableBroken(ValueError):  # noqa: N818
    """A text is no table; it says why."""


class AdvisorTable(NamedTuple):
    """What is known.

    Attributes
    ----------
    loads
        Number and load of intervals, in their order.
    met
        Whether the goal was met in the latest ones.
    acted
        In which interval something was done last; None where nothing ever was.
    period
        After how many intervals loads repeat; None where none is known.
    learnt
        By learner what it has learnt.
    interval_s
        How long the intervals are; None where that is not known, and they are as long as now.
    """

    loads: tuple[tuple[int, float], ...] = ()
    met: tuple[bool, ...] = ()
    acted: int | None = None
    period: int | None = None
    learnt: Mapping[str, Any] = {}
    interval_s: int | None = None


def fitting(table: AdvisorTable, learners: Mapping[str, Learner], first: str) -> str:
    """Return the table with what learners have learnt as text.

    What `first` has learnt is in it whatever others have; these share the room that is left, and of one that has more
    the parts are left out that are worth least.
    """
    saved = {name: each.saved() for name, each in learners.items() if isinstance(each, RememberingLearner)}
    sizes = {name: len(_dumped(parts)) for name, parts in saved.items()}
    learnt: dict[str, Any] = {name: saved[name] for name in saved if sizes[name] <= WHOLE_BYTES}
    fields = {"version": VERSION, **table._asdict()}
    names = sorted(saved.keys() - learnt.keys(), key=lambda name: (name != first, sizes[name], name))
    for at, name in enumerate(names):
        left = TABLE_BYTES - len(_dumped({**fields, "learnt": {**learnt, name: []}}))
        learnt[name] = _worth_most(saved[name], left if name == first else left // (len(names) - at))
    return _dumped({**fields, "learnt": learnt})


def _worth_most(saved: list[Any], room: int) -> list[Any]:
    """Return the last parts of what was learnt, those that so many bytes of text have room for."""
    kept: list[Any] = []
    for part in reversed(saved):
        room -= len(_dumped(part)) + 1
        if room < 0:
            break
        kept.append(part)
    return kept[::-1]


def read_table(text: str) -> AdvisorTable:
    """Return the table that a text says; TableBroken where it is none."""
    if len(text) > TABLE_BYTES:
        raise TableBroken(f"it has {len(text)} bytes, and at most {TABLE_BYTES} are read")
    try:
        found = json.loads(text)
        if found["version"] != VERSION:
            raise TableBroken(f"it is of version {found['version']}, and {VERSION} is read")
        loads = tuple((int(number), float(load)) for number, load in found["loads"])
        numbers = (found["acted"], found["period"], found.get("interval_s"))
        acted, period, interval_s = (None if number is None else int(number) for number in numbers)
        table = AdvisorTable(loads, tuple(map(bool, found["met"])), acted, period, dict(found["learnt"]), interval_s)
    except TableBroken:
        raise
    except (ValueError, KeyError, TypeError, RecursionError, OverflowError) as error:
        raise TableBroken(f"it makes no sense: {type(error).__name__} {error}") from error
    if not all(isfinite(load) and load >= 0 for _, load in loads) or (period is not None and period < 1):
        raise TableBroken("a load, or the period, is out of bounds")
    return table


def taught(learners: Mapping[str, Learner], table: AdvisorTable) -> None:
    """Have learners know what is in a table; TableBroken where one cannot."""
    for name, saved in table.learnt.items():
        learner = learners.get(name)
        if isinstance(learner, RememberingLearner):
            try:
                learner.restore(saved)
            except ValueError as error:
                raise TableBroken(f"what {name} has learnt makes no sense: {error}") from error


def _dumped(found: Any) -> str:
    return json.dumps(found, separators=(",", ":"), allow_nan=False)
