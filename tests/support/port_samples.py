"""Samples of ports for tests, written as one would say them."""

from __future__ import annotations

import math

import numpy as np

from controller.performance.batch import SampleRates, Samples
from controller.performance.counters import COUNTER_COUNT, Counter
from controller.performance.ports import PortRows
from controller.performance.rates import RateTable

GIGABIT = 1e9


def counters_row(**values: int) -> np.ndarray:
    """Counters of one sample; those not given are 0."""
    row = np.zeros(COUNTER_COUNT, np.uint64)
    for name, value in values.items():
        row[Counter(name).column] = value
    return row


def one_sample(at_s: float, duration_s: float = math.nan, row: int = 0, **values: int) -> Samples:
    """A batch of one sample."""
    return Samples(
        np.array([row], np.int32), np.array([at_s]), np.array([duration_s]), counters_row(**values)[None, :]
    )


def one_port(speed_bps: float = GIGABIT, interval_s: float = 0.0, sticky_bits: int = 0) -> RateTable:
    """A table of one port."""
    ports = PortRows(16)
    ports.add(1, 1, "s1-eth1", speed_bps)
    table = RateTable(ports, sticky_bits)
    table.fit()
    table.expected_s[0] = interval_s
    return table


def made_rates(
    at_s: float = 1000.0,
    interval_s: float = 10.0,
    rows: tuple[int, ...] = (0,),
    utilisation_pct: float = 0.0,
    **per_s,
) -> SampleRates:
    """Rates of several rows, all the same; those not given are 0."""
    n = len(rows)
    table = np.zeros((n, COUNTER_COUNT))
    for name, value in per_s.items():
        table[:, Counter(name).column] = value
    return SampleRates(
        np.array(rows, np.int32),
        np.full(n, at_s),
        np.full(n, interval_s),
        table,
        np.full((n, 2), utilisation_pct),
        np.zeros(n, np.uint8),
        np.zeros(n, np.uint16),
        np.zeros(n, np.uint16),
    )
