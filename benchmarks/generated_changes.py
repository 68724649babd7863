"""Logs of changes whose policies are known, made by a seed: eight kinds, and the published experiment."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]

VALUES = 6
"""Values that noise sets a property to; those of policies are beyond."""

WINDOW_S = 30 * 86400.0
START_S = 1_790_000_000.0


class TrueVariety(NamedTuple):
    values: tuple[int, ...]
    rows: tuple[int, ...]


class TruePolicy(NamedTuple):
    """Properties (columns) that a class of resources (rows) is held to, with the values of each variety."""

    columns: tuple[int, ...]
    rows: tuple[int, ...]
    varieties: tuple[TrueVariety, ...]


class ChangedResources(NamedTuple):
    """Final values (R, K), 0 being the baseline, what can be set, and the policies behind them."""

    types: NDArray[np.str_]
    values: Ints
    applicable: Bools
    policies: tuple[TruePolicy, ...]

    @property
    def indicator(self) -> Bools:
        return self.values > 0

    def resources(self) -> list[str]:
        return [f"{kind}-{row:05d}" for row, kind in enumerate(self.types)]

    def lines(self, rng: np.random.Generator) -> Iterator[tuple[float, str, str, str, str, str]]:
        """Yield a log: each value that is not the baseline, some reached by way of others, some put back."""
        names = self.resources()
        told = []
        for row, column in zip(*np.nonzero(self.applicable), strict=True):
            final = int(self.values[row, column])
            way = [0]
            if rng.random() < (0.1 if final else 0.01):
                way.append(int(rng.integers(1, VALUES)))
            if final or len(way) > 1:
                way.append(final)
            at_s = np.sort(rng.uniform(0, WINDOW_S, len(way) - 1))
            for number, time_s in enumerate(at_s):
                told.append((START_S + float(time_s), row, column, way[number], way[number + 1]))
        for time_s, row, column, old, new in sorted(told):
            yield time_s, names[row], str(self.types[row]), f"p{column:03d}", f"v{old}", f"v{new}"


def _policy(rng: np.random.Generator, rows: Ints, columns: Ints, varieties: int, number: int) -> TruePolicy:
    cut = np.sort(rng.choice(np.arange(1, 10), varieties - 1, replace=False)) / 10 * len(rows)
    parts = np.split(rng.permutation(rows), cut.astype(int)) if varieties > 1 else [rows]
    found, tuples = [], set()
    for part in parts:
        values = tuple((VALUES + number * 10 + rng.integers(0, 4, len(columns))).tolist())
        if values in tuples or len(part) < 3:
            continue
        tuples.add(values)
        found.append(TrueVariety(values, tuple(sorted(part.tolist()))))
    members = tuple(sorted(row for one in found for row in one.rows))
    return TruePolicy(tuple(columns.tolist()), members, tuple(found))


def _filled(
    rng: np.random.Generator,
    types: NDArray[np.str_],
    applicable: Bools,
    policies: list[TruePolicy],
    omitted: float,
    noise: float,
    odd: float = 0.01,
) -> ChangedResources:
    """Return what is left in the end: what policies say, but for some that was forgotten or set otherwise."""
    values = np.zeros(applicable.shape, np.int64)
    for policy in policies:
        for variety in policy.varieties:
            values[np.ix_(variety.rows, policy.columns)] = variety.values
    set_ = values > 0
    values[set_ & (rng.random(values.shape) < omitted)] = 0
    values[(values > 0) & (rng.random(values.shape) < odd)] = int(VALUES + 500)
    noisy = ~set_ & (rng.random(values.shape) < noise)
    values[noisy] = rng.integers(1, VALUES, int(noisy.sum()))
    values[~applicable] = 0
    return ChangedResources(types, values, applicable, tuple(policies))


def _overlapping(rng: np.random.Generator, count: int, noise: float = 0.02) -> ChangedResources:
    resources, properties = int(rng.integers(600, 1400)), int(rng.integers(30, 60))
    applicable = np.ones((resources, properties), np.bool_)
    policies = []
    for number in range(count):
        rows = np.sort(rng.choice(resources, int(resources * rng.uniform(0.03, 0.2)), replace=False))
        columns = np.sort(rng.choice(properties, int(rng.integers(3, 9)), replace=False))
        policies.append(_policy(rng, rows, columns, int(rng.integers(1, 4)), number))
    return _filled(rng, np.full(resources, "port"), applicable, policies, rng.uniform(0.02, 0.1), noise)


def overlapping_six(rng: np.random.Generator) -> ChangedResources:
    return _overlapping(rng, 6)


def overlapping_twelve(rng: np.random.Generator) -> ChangedResources:
    return _overlapping(rng, 12)


def noisy(rng: np.random.Generator) -> ChangedResources:
    return _overlapping(rng, 4, noise=rng.uniform(0.08, 0.12))


def exclusive(rng: np.random.Generator) -> ChangedResources:
    """Two policies that share out all resources."""
    resources, properties = int(rng.integers(300, 800)), int(rng.integers(20, 40))
    order, columns = rng.permutation(resources), rng.permutation(properties)
    cut = int(resources * rng.uniform(0.3, 0.7))
    sizes = rng.integers(4, 9, 2)
    policies = [
        _policy(rng, np.sort(order[:cut]), np.sort(columns[: sizes[0]]), 2, 0),
        _policy(rng, np.sort(order[cut:]), np.sort(columns[sizes[0] : sizes.sum()]), 2, 1),
    ]
    applicable = np.ones((resources, properties), np.bool_)
    return _filled(rng, np.full(resources, "port"), applicable, policies, 0.03, 0.02)


def of_size(rng: np.random.Generator, resources: int, properties: int) -> ChangedResources:
    """Twenty policies on up to 15 % of the resources each."""
    policies = []
    for number in range(20):
        rows = np.sort(rng.choice(resources, max(6, int(resources * rng.uniform(0.01, 0.15))), replace=False))
        columns = np.sort(rng.choice(properties, int(rng.integers(4, 14)), replace=False))
        policies.append(_policy(rng, rows, columns, 2, number))
    applicable = np.ones((resources, properties), np.bool_)
    return _filled(rng, np.full(resources, "port"), applicable, policies, 0.05, 0.03)


def none(rng: np.random.Generator) -> ChangedResources:
    """Changes of which none belongs to a policy, more of some properties than of others."""
    resources, properties = int(rng.integers(300, 1200)), int(rng.integers(20, 60))
    values = np.where(rng.random((resources, properties)) < rng.uniform(0.01, 0.3, properties), 1, 0)
    values *= rng.integers(1, VALUES, values.shape)
    return ChangedResources(np.full(resources, "port"), values, np.ones(values.shape, np.bool_), ())


def two_types(rng: np.random.Generator) -> ChangedResources:
    """Switches and ports, with properties of their own and some that both have."""
    sizes = rng.integers(150, 500, 2)
    types = np.repeat(["switch", "port"], sizes)
    properties = 40
    applicable = np.ones((len(types), properties), np.bool_)
    applicable[types == "switch", 24:] = False
    applicable[types == "port", :16] = False
    policies = []
    for number in range(6):
        kind = "switch" if number % 2 else "port"
        rows = np.flatnonzero(types == kind)
        able = np.flatnonzero(applicable[rows[0]])
        rows = np.sort(rng.choice(rows, max(8, int(len(rows) * rng.uniform(0.05, 0.3))), replace=False))
        columns = np.sort(rng.choice(able, int(rng.integers(3, 7)), replace=False))
        policies.append(_policy(rng, rows, columns, int(rng.integers(1, 3)), number))
    return _filled(rng, types, applicable, policies, 0.05, 0.02)


def small(rng: np.random.Generator) -> ChangedResources:
    """A rack: few resources, few properties, two policies."""
    resources, properties = int(rng.integers(24, 60)), int(rng.integers(10, 18))
    columns = rng.permutation(properties)
    sizes = rng.integers(3, 6, 2)
    policies = []
    for number, start in enumerate((0, int(sizes[0]))):
        rows = np.sort(rng.choice(resources, int(rng.integers(6, 11)), replace=False))
        own = np.sort(columns[start : start + int(sizes[number])])
        policies.append(_policy(rng, rows, own, 1, number))
    applicable = np.ones((resources, properties), np.bool_)
    return _filled(rng, np.full(resources, "port"), applicable, policies, 0.03, 0.02)


def published(
    rng: np.random.Generator, members: int = 40, noise: float = 0.15, properties: int = 7
) -> ChangedResources:
    """One policy of 7 of 26 properties of 1,000 resources; each cell is reversed by chance (section 6)."""
    rows = np.sort(rng.choice(1000, members, replace=False))
    columns = np.sort(rng.choice(26, properties, replace=False))
    policy = _policy(rng, rows, columns, 1, 0)
    values = np.zeros((1000, 26), np.int64)
    values[np.ix_(rows, columns)] = policy.varieties[0].values
    reversed_ = rng.random(values.shape) < noise
    values = np.where(reversed_, np.where(values > 0, 0, rng.integers(1, VALUES, values.shape)), values)
    return ChangedResources(np.full(1000, "vm"), values, np.ones(values.shape, np.bool_), (policy,))


KINDS: dict[str, Callable[[np.random.Generator], ChangedResources]] = {
    "overlapping-6": overlapping_six,
    "overlapping-12": overlapping_twelve,
    "exclusive": exclusive,
    "noisy": noisy,
    "none": none,
    "two-types": two_types,
    "small": small,
    "published": published,
}
