"""A log of changes as a table: one row for each resource, one column for each property, and where each ended."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

IDENTIFIER_SHARE, IDENTIFIER_RESOURCES = 0.9, 10
"""A property is an identifier where it is set on most resources, so many at least, to values of which more than this
part differ."""

BASELINE = -1
"""The code of a value that is the baseline, in a table of final values."""


class Changes(NamedTuple):
    """A log of N changes in columns of N: `time_s` in epoch seconds, else indices of the lists of texts."""

    time_s: Floats
    resource: Ints
    kind: Ints
    property: Ints
    old: Ints
    new: Ints
    resources: Sequence[str]
    kinds: Sequence[str]
    properties: Sequence[str]
    values: Sequence[str]


class ChangeTable(NamedTuple):
    """What R resources ended at in K properties.

    `indicator` (R, K): set to another value than the baseline. `final` (R, K): the code of that value, `BASELINE`
    elsewhere. `applicable` (R, K): a resource of this type can have the property. `left_out` names the properties
    that are no column, by reason; `counted` says what was odd about the log.
    """

    resources: tuple[str, ...]
    kinds: tuple[str, ...]
    properties: tuple[str, ...]
    indicator: Bools
    final: Ints
    applicable: Bools
    values: Sequence[str]
    left_out: dict[str, list[str]]
    counted: dict[str, int]


def tabulate(
    changes: Changes,
    baseline: Mapping[tuple[str, str], str] | None = None,
    window_s: float | None = None,
    inventory: Mapping[str, str] | None = None,
    ignored: Collection[str] = (),
) -> ChangeTable:
    """Return the table of a log's last `window_s` seconds, of all of it where that is None.

    Lines may be in any order and there twice: of one resource's property the last by time counts, of several at one
    time the last in the log.

    Parameters
    ----------
    baseline
        The value that a property of a type has where nobody set it; the first `old` of the log where it is not named.
    inventory
        Names and types of resources that are rows whether or not they changed.
    ignored
        Properties that are no columns.
    """
    order = np.argsort(changes.time_s, kind="stable")
    counted = {"lines": len(order), "out_of_order": int((np.diff(changes.time_s) < 0).sum())}
    changes = _chosen(changes, order)
    known = _baselines(changes, baseline or {})
    if window_s is not None and len(order):
        inside = changes.time_s > changes.time_s[-1] - window_s
        counted["before_window"] = int((~inside).sum())
        changes = _chosen(changes, np.flatnonzero(inside))
    counted |= _odd(changes)
    names = dict(inventory or {})
    last = _last_of(changes.resource)
    for line in last:
        names[changes.resources[changes.resource[line]]] = changes.kinds[changes.kind[line]]
    resources = sorted(names)
    return _filled(changes, known, resources, names, frozenset(ignored), counted)


def _chosen(changes: Changes, lines: Ints) -> Changes:
    return changes._replace(
        time_s=changes.time_s[lines],
        resource=changes.resource[lines],
        kind=changes.kind[lines],
        property=changes.property[lines],
        old=changes.old[lines],
        new=changes.new[lines],
    )


def _last_of(keys: Ints) -> Ints:
    """Return the position of the last of each key."""
    _, first = np.unique(keys[::-1], return_index=True)
    return np.asarray(len(keys) - 1 - first, np.int64)


def _first_of(keys: Ints) -> Ints:
    return np.asarray(np.unique(keys, return_index=True)[1], np.int64)


def _baselines(changes: Changes, given: Mapping[tuple[str, str], str]) -> dict[tuple[int, int], int]:
    """Return the code of the baseline of each type and property that a log or the baselines name."""
    width = max(len(changes.properties), 1)
    found = {}
    for line in _first_of(changes.kind * width + changes.property):
        found[int(changes.kind[line]), int(changes.property[line])] = int(changes.old[line])
    kinds = {name: code for code, name in enumerate(changes.kinds)}
    properties = {name: code for code, name in enumerate(changes.properties)}
    values = {text: code for code, text in enumerate(changes.values)}
    for (kind, name), value in given.items():
        if kind in kinds and name in properties:
            found[kinds[kind], properties[name]] = values.get(value, BASELINE)
    return found


def _odd(changes: Changes) -> dict[str, int]:
    """Count lines that say what another said already, and those whose `old` is not what the property was set to."""
    key = changes.resource * max(len(changes.properties), 1) + changes.property
    order = np.argsort(key, kind="stable")
    key, old, new, time_s = key[order], changes.old[order], changes.new[order], changes.time_s[order]
    follows = key[1:] == key[:-1]
    again = follows & (time_s[1:] == time_s[:-1]) & (old[1:] == old[:-1]) & (new[1:] == new[:-1])
    contradicts = follows & ~again & (old[1:] != new[:-1])
    return {"repeated": int(again.sum()), "contradicting": int(contradicts.sum())}


def _filled(
    changes: Changes,
    known: Mapping[tuple[int, int], int],
    resources: Sequence[str],
    kinds: Mapping[str, str],
    ignored: frozenset[str],
    counted: dict[str, int],
) -> ChangeTable:
    width = len(changes.properties)
    row_of = {name: row for row, name in enumerate(resources)}
    rows = np.array([row_of.get(name, -1) for name in changes.resources], np.int64)
    lines = _last_of(changes.resource * max(width, 1) + changes.property)
    kind_codes = {name: code for code, name in enumerate(changes.kinds)}
    kind_of_row = np.array([kind_codes.get(kinds[name], len(kind_codes)) for name in resources], np.int64)
    base = np.full((len(kind_codes) + 1, width), BASELINE, np.int64)
    able = np.zeros(base.shape, np.bool_)
    for (kind, column), code in known.items():
        base[kind, column], able[kind, column] = code, True
    final = np.full((len(resources), width), BASELINE, np.int64)
    at, set_ = rows[changes.resource[lines]], changes.property[lines]
    new = changes.new[lines]
    kept = new != base[kind_of_row[at], set_]
    final[at[kept], set_[kept]] = new[kept]
    applicable = able[kind_of_row]
    indicator = final != BASELINE
    left_out: dict[str, list[str]] = {"ignored": [], "identifiers": [], "unchanged": []}
    columns = []
    for number, name in sorted(enumerate(changes.properties), key=lambda item: item[1]):
        changed = indicator[:, number]
        if name in ignored:
            left_out["ignored"].append(name)
        elif not changed.any():
            left_out["unchanged"].append(name)
        elif _is_identifier(final[changed, number], int(applicable[:, number].sum())):
            left_out["identifiers"].append(name)
        else:
            columns.append(number)
    return ChangeTable(
        tuple(resources),
        tuple(kinds[name] for name in resources),
        tuple(changes.properties[number] for number in columns),
        np.ascontiguousarray(indicator[:, columns]),
        np.ascontiguousarray(final[:, columns]),
        np.ascontiguousarray(applicable[:, columns] | indicator[:, columns]),
        changes.values,
        left_out,
        counted,
    )


def _is_identifier(codes: Ints, able: int) -> bool:
    often = len(codes) >= IDENTIFIER_RESOURCES and 2 * len(codes) > able
    return often and len(np.unique(codes)) > IDENTIFIER_SHARE * len(codes)
