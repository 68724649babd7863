from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from controller.anomaly.peers.persistence import HOUR_S, accumulators, confirmed, faults, hourly

FLAGS = hnp.arrays(np.bool_, st.tuples(st.integers(0, 25), st.integers(1, 3)))


@given(FLAGS, st.integers(1, 4))
def test_faulty_is_k_of_the_past_2k_minus_1(anomalous: np.ndarray, k: int):
    found = confirmed(anomalous, k)
    for window in range(len(anomalous)):
        past = anomalous[max(0, window - (2 * k - 2)) : window + 1]
        assert found[window].tolist() == (past.sum(axis=0) >= k).tolist()


@given(FLAGS)
def test_the_accumulator_adds_and_takes_down_to_zero(anomalous: np.ndarray):
    value = np.zeros(anomalous.shape[1], int)
    for flags, row in zip(anomalous, accumulators(anomalous), strict=True):
        value = np.where(flags, value + 1, np.maximum(value - 1, 0))
        assert row.tolist() == value.tolist()


@given(FLAGS)
def test_a_fault_starts_and_ends_with_an_anomalous_window(anomalous: np.ndarray):
    ends_s = 450.0 * np.arange(1, len(anomalous) + 1)
    for fault in faults(anomalous, ends_s, 3):
        first, last = (int(at / 450) - 1 for at in (fault.first_s, fault.last_s))
        assert anomalous[first, fault.member] and anomalous[last, fault.member]
        assert anomalous[first : last + 1, fault.member].sum() >= 3


def test_three_of_five_are_enough_and_two_are_not():
    ends_s = np.arange(1.0, 9)
    flags = np.array([[0, 1], [1, 0], [0, 0], [1, 1], [1, 0], [0, 0], [0, 0], [0, 0]], bool)
    assert faults(flags, ends_s, 3) == [(0, 2, 5)]


def test_the_hourly_list_is_ordered_by_the_accumulator():
    values = np.array([[1, 2, 0], [2, 1, 0], [3, 5, 1], [3, 6, 0]])
    ends_s = np.array([900, HOUR_S, HOUR_S + 900, 2 * HOUR_S])
    assert hourly(values, ends_s, 2) == [(0, [(2, 0), (1, 1)]), (HOUR_S, [(6, 1), (3, 0)])]
    assert hourly(np.zeros((0, 3), int), np.empty(0), 2) == []


@pytest.mark.parametrize("columns", [1, 5])
def test_an_hour_without_anomalies_has_an_empty_row(columns: int):
    assert hourly(np.zeros((2, 2), int), np.array([100.0, 200.0]), columns) == [(0, [])]
