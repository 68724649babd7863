"""The allocation section of the policy file: nine parameters per family, with the bounds of the published table."""

from __future__ import annotations

import pytest

from controller.config import PolicyInvalid, load_policy

FAMILIES = ("vmax", "vnx", "hds", "vplex", "openflow")


def faults_of(text: str) -> list[tuple[str, str]]:
    with pytest.raises(PolicyInvalid) as caught:
        load_policy(f"version: 1\nallocation: {text}\n")
    return [(fault.field, fault.message) for fault in caught.value.errors]


@pytest.mark.parametrize("family", FAMILIES)
def test_each_family_has_the_published_defaults(family: str):
    parameters = getattr(load_policy("version: 1").allocation, family)
    assert parameters.initiator_ceiling is None
    assert parameters.volume_ceiling is None
    assert parameters.port_utilization_ceiling == 100
    assert parameters.cpu_utilization_ceiling == 100
    assert parameters.days_to_average_utilization == (10060 if family == "openflow" else 1)
    assert parameters.weight_for_exponential_moving_average == 0.6
    assert parameters.port_utilization_floor == 3
    assert parameters.cpu_utilization_floor == 8
    assert parameters.metric_volume_coefficient == 1.0


def test_families_are_set_apart():
    allocation = load_policy("version: 1\nallocation: {vmax: {port_utilization_floor: 5}}").allocation
    assert (allocation.vmax.port_utilization_floor, allocation.vnx.port_utilization_floor) == (5, 3)


@pytest.mark.parametrize("days", [1, 30, 10001, 10060])
def test_days_or_minutes_are_taken(days: int):
    allocation = load_policy(f"version: 1\nallocation: {{hds: {{days_to_average_utilization: {days}}}}}").allocation
    assert allocation.hds.days_to_average_utilization == days


@pytest.mark.parametrize("days", [31, 365, 10000])
def test_between_days_and_minutes_nothing_is(days: int):
    ((field, message),) = faults_of(f"{{hds: {{days_to_average_utilization: {days}}}}}")
    assert field == "allocation.hds.days_to_average_utilization"
    assert f"{days} is not within 1 and 30" in message
    assert "10000" in message


def test_a_fault_names_parameter_value_and_bound():
    assert faults_of("{vnx: {metric_volume_coefficient: 5.5}}") == [
        ("allocation.vnx.metric_volume_coefficient", "5.5 is not within 0 and 5")
    ]
    assert faults_of("{vnx: {volume_ceiling: 0}}")[0][0] == "allocation.vnx.volume_ceiling"


def test_an_unknown_family_is_a_fault():
    ((field, message),) = faults_of("{xtremio: {}}")
    assert field == "allocation.xtremio"
    assert "unknown key" in message
