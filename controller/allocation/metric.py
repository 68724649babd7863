"""From percent busy to the port metric, the usage, and what disqualifies a port."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from controller.allocation.families import CpuSource, DeviceFamily
from controller.config.settings import PortParameters


def port_metric(
    port_pct: ArrayLike, cpu_pct: ArrayLike, port_floor_pct: ArrayLike, cpu_floor_pct: ArrayLike
) -> NDArray[np.float64]:
    """Return the port metric of ports.

    Parameters
    ----------
    port_pct
        Port percent busy, 0 to 100.
    cpu_pct
        CPU percent busy, 0 to 100; NaN where there is none or it is not known.
    port_floor_pct, cpu_floor_pct
        What is below its floor does not count.

    Returns
    -------
    float64 array of the inputs' common shape
        Percent, 0 to 100.

    Notes
    -----
    Metrics based port selection, "VMAX Performance Metrics". The port counts 0 below its floor. Where the CPU reaches
    its floor, the metric is the mean of both, so it jumps there: with the defaults (50, 7.99) gives 50 and (50, 8)
    gives 29.
    """
    port, cpu = np.asarray(port_pct, np.float64), np.asarray(cpu_pct, np.float64)
    counted = np.where(port >= np.asarray(port_floor_pct, np.float64), port, 0.0)
    with_cpu: NDArray[np.float64] = np.where(
        cpu >= np.asarray(cpu_floor_pct, np.float64), (counted + cpu) / 2, counted
    )
    return with_cpu


def volume_load(volumes: ArrayLike, coefficient: ArrayLike, full_load: ArrayLike) -> NDArray[np.float64]:
    """Return the volume term of the usage in percent: coefficient x volumes x 100 / volumes at full load."""
    load: NDArray[np.float64] = np.asarray(coefficient, np.float64) * np.asarray(volumes, np.float64) * 100.0
    return load / np.asarray(full_load, np.float64)


def metric_value(latest_pct: ArrayLike, history_pct: ArrayLike, weight: ArrayLike) -> NDArray[np.float64]:
    """Return k x latest average + (1 - k) x EMA, what percent busy is in the metric; NaN without an EMA."""
    k = np.asarray(weight, np.float64)
    value: NDArray[np.float64] = k * np.asarray(latest_pct) + (1 - k) * np.asarray(history_pct)
    return value


class PortLoad(NamedTuple):
    """What is known of one port. Percent are metric values (averages); None where a value is not supported."""

    family: DeviceFamily
    port_percent_busy: float | None
    cpu_percent_busy: float | None
    initiators: int = 0
    volumes: int = 0
    valid: bool = True


class Assessment(NamedTuple):
    """What follows for allocation.

    `port_metric` and `usage` are None where no valid metric is; `steps` tell how they came about, `reasons` what
    disqualifies the port.
    """

    port_metric: float | None
    usage: float | None
    disqualified: bool
    reasons: tuple[str, ...]
    steps: tuple[str, ...]


def assess(load: PortLoad, parameters: PortParameters) -> Assessment:
    """Return metric, usage and ceilings of one port.

    Parameters
    ----------
    load
        Percent busy from 0 to 100, counts not below 0.
    parameters
        Those of the port's family.

    Returns
    -------
    Assessment
        At or above a ceiling disqualifies. The ceilings of counts always apply, those of percent busy only where the
        metric is valid.

    Notes
    -----
    Metrics based port selection, "Computing the Averages and PortMetric" and "Customer Settable Parameters". The
    metric that is reported is without the volume term, as the published code has it.
    """
    valid = load.valid and load.port_percent_busy is not None
    port = load.port_percent_busy if valid else None
    cpu = load.cpu_percent_busy if valid and load.family.cpu is not CpuSource.NONE else None
    reasons = tuple(
        f"{name} {value:g}{unit} at or above {parameter} {ceiling:g}{unit}"
        for name, value, parameter, ceiling, unit in (
            ("initiators", load.initiators, "initiator_ceiling", parameters.initiator_ceiling, ""),
            ("volumes", load.volumes, "volume_ceiling", parameters.volume_ceiling, ""),
            ("port_percent_busy", port, "port_utilization_ceiling", parameters.port_utilization_ceiling, " %"),
            ("cpu_percent_busy", cpu, "cpu_utilization_ceiling", parameters.cpu_utilization_ceiling, " %"),
        )
        if value is not None and ceiling is not None and value >= ceiling
    )
    if port is None:
        step = "no valid metric: compared by volumes, behind every port that has one"
        return Assessment(None, None, bool(reasons), reasons, (step,))
    port_floor, cpu_floor = parameters.port_utilization_floor, parameters.cpu_utilization_floor
    metric = float(port_metric(port, math.nan if cpu is None else cpu, port_floor, cpu_floor))
    volumes = float(volume_load(load.volumes, parameters.metric_volume_coefficient, parameters.volumes_at_full_load))
    steps = [
        f"port {port:g} % counts"
        if port >= port_floor
        else f"port {port:g} % is below port_utilization_floor {port_floor:g} %: 0",
        "no CPU term"
        if cpu is None
        else f"CPU {cpu:g} % counts: mean of both"
        if cpu >= cpu_floor
        else f"CPU {cpu:g} % is below cpu_utilization_floor {cpu_floor:g} %: left out",
        f"port metric {metric:g} %",
        f"volumes {load.volumes} of {parameters.volumes_at_full_load} x {parameters.metric_volume_coefficient:g}:"
        f" usage {metric + volumes:g} %",
    ]
    return Assessment(metric, metric + volumes, bool(reasons), reasons, tuple(steps))
