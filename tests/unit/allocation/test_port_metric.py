"""Floors, ceilings, volumes, and the parameters behind them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.allocation.families import FAMILIES
from controller.allocation.metric import PortLoad, assess
from controller.allocation.parameters import SETTINGS, ParameterError, averaging_period_s, read_parameters
from controller.config.settings import PortParameters

DEFAULTS = PortParameters()


def metric(port: float | None, cpu: float | None, family: str = "vmax", volumes: int = 0, **parameters: object):
    return assess(PortLoad(FAMILIES[family], port, cpu, 0, volumes), read_parameters(parameters))


@pytest.mark.parametrize(
    ("port", "cpu", "expected"),
    [(50, 7.99, 50), (50, 8, 29), (2.99, 20, 10), (3, 20, 11.5), (2.99, 7.99, 0), (0, 0, 0), (100, 100, 100)],
)
def test_the_floors(port: float, cpu: float, expected: float):
    assert metric(port, cpu).port_metric == pytest.approx(expected)


def test_hds_has_no_cpu_term():
    assert metric(50, 90, "hds").port_metric == 50
    assert metric(50, None, "vnx").port_metric == 50


def test_volumes_are_in_the_usage_and_not_in_the_metric():
    found = metric(50, None, volumes=1024, metric_volume_coefficient=2)
    assert (found.port_metric, found.usage) == (50, 150)
    assert metric(50, None, volumes=5, volumes_at_full_load=10).usage == 100


@pytest.mark.parametrize(
    ("load", "parameters", "word"),
    [
        (PortLoad(FAMILIES["vmax"], 10, 10, initiators=4), {"initiator_ceiling": 4}, "initiator_ceiling"),
        (PortLoad(FAMILIES["vmax"], 10, 10, volumes=9), {"volume_ceiling": 9}, "volume_ceiling"),
        (PortLoad(FAMILIES["vmax"], 80, 10), {"port_utilization_ceiling": 80}, "port_utilization_ceiling"),
        (PortLoad(FAMILIES["vmax"], 10, 70), {"cpu_utilization_ceiling": 70}, "cpu_utilization_ceiling"),
        (PortLoad(FAMILIES["vmax"], 100, 0), {"port_utilization_ceiling": 100}, "port_utilization_ceiling"),
    ],
)
def test_at_a_ceiling_a_port_is_disqualified(load: PortLoad, parameters: dict[str, float], word: str):
    found = assess(load, read_parameters(parameters))
    assert found.disqualified
    assert word in found.reasons[0]
    (name, ceiling) = next(iter(parameters.items()))
    if ceiling < 100:
        assert not assess(load, read_parameters({name: ceiling + 1})).disqualified


def test_a_full_port_or_cpu_is_disqualified_unless_the_operator_sets_another_ceiling():
    assert metric(100, 50).reasons == ("port_percent_busy 100 % at or above port_utilization_ceiling 100 %",)
    assert metric(50, 100).reasons == ("cpu_percent_busy 100 % at or above cpu_utilization_ceiling 100 %",)
    assert not metric(99.99, 99.99).disqualified
    assert metric(80, 0, port_utilization_ceiling=80).disqualified


def test_without_a_valid_metric_only_counts_disqualify():
    load = PortLoad(FAMILIES["vmax"], 99, 99, initiators=3, valid=False)
    found = assess(load, read_parameters({"port_utilization_ceiling": 10, "cpu_utilization_ceiling": 10}))
    assert (found.port_metric, found.usage, found.disqualified) == (None, None, False)
    assert assess(load, read_parameters({"initiator_ceiling": 3})).disqualified


@given(st.floats(0, 100), st.floats(0, 100), st.integers(0, 5000))
def test_the_metric_stays_within_0_and_100(port: float, cpu: float, volumes: int):
    found = metric(port, cpu, volumes=volumes)
    assert found.port_metric is not None
    assert found.usage is not None
    assert 0 <= found.port_metric <= 100
    assert found.usage >= found.port_metric


def test_names_of_parameters_may_be_spelt_as_published():
    spelt = read_parameters({"Port Utilization Floor": 5, "cpuUtilizationFloor": 9, "volume_coefficient": 2})
    assert spelt == PortParameters(port_utilization_floor=5, cpu_utilization_floor=9, metric_volume_coefficient=2)
    assert read_parameters({"Initiator Ceiling": "unlimited", "volume_ceiling": None}) == DEFAULTS


@pytest.mark.parametrize(
    ("name", "value", "bound"),
    [
        ("initiator_ceiling", 0, "not within 1"),
        ("volume_ceiling", 0, "not within 1"),
        ("port_utilization_ceiling", 101, "0 and 100"),
        ("cpu_utilization_ceiling", -1, "0 and 100"),
        ("days_to_average_utilization", 31, "1 and 30"),
        ("days_to_average_utilization", 0, "1 and 30"),
        ("days_to_average_utilization", 10000, "above 10000"),
        ("days_to_average_utilization", 1.5, "whole"),
        ("weight_for_exponential_moving_average", 1.01, "0 and 1"),
        ("port_utilization_floor", 100.5, "0 and 100"),
        ("cpu_utilization_floor", -0.1, "0 and 100"),
        ("metric_volume_coefficient", 5.01, "0 and 5"),
        ("metric_volume_coefficient", True, "not a number"),
        ("metric_volume_coefficient", float("nan"), "not a number"),
        ("speed", 1, "no known parameter"),
    ],
)
def test_a_faulty_parameter_is_told_with_value_and_bound(name: str, value: object, bound: str):
    with pytest.raises(ParameterError) as caught:
        read_parameters({name: value})
    (fault,) = caught.value.faults
    assert (fault.parameter, fault.value if value == value else None) == (name, value if value == value else None)
    assert bound in fault.must


def test_all_faults_are_told_together():
    with pytest.raises(ParameterError) as caught:
        read_parameters({"volume_ceiling": 0, "port_utilization_floor": 200, "portUtilizationFloor": 3})
    assert len(caught.value.faults) == 3


def test_there_are_nine_parameters_and_the_volumes_of_full_load():
    assert len(SETTINGS) == 10


@pytest.mark.parametrize(("days", "seconds"), [(1, 86400), (30, 30 * 86400), (10060, 3600), (10001, 60)])
def test_days_above_10000_are_minutes(days: int, seconds: float):
    assert averaging_period_s(read_parameters({"days_to_average_utilization": days})) == seconds
