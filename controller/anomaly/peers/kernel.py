"""Distances of every two members: plain loops over arrays, as numba compiles them."""

from __future__ import annotations

from typing import Any


def fill_pair_distances(samples: Any, distances: Any, columns: Any, total: Any) -> None:
    """Fill in what `distances.pair_distances` returns, off the diagonal; sums are formed in the order of the samples.

    `samples` is float64[windows, members, window], `distances` float64[windows, members, members]; `columns`
    float64[window, members] and `total` float64[members] are room to work in.
    """
    windows, members, window = samples.shape
    for number in range(windows):
        for member in range(members):
            for sample in range(window):
                columns[sample, member] = samples[number, member, sample]
        for member in range(members - 1):
            others = members - member - 1
            for other in range(others):
                total[other] = 0.0
            for sample in range(window):
                row = columns[sample]
                own = row[member]
                for other in range(others):
                    total[other] += abs(row[member + 1 + other] - own)
            for other in range(others):
                mean = total[other] / window
                distances[number, member, member + 1 + other] = mean
                distances[number, member + 1 + other, member] = mean
