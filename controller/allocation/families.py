"""The families of devices, and how each one's samples become percent busy."""

from __future__ import annotations

import math
from enum import StrEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

KBYTES_PER_GBIT = 1024 * 1024 // 8
"""Kilobytes in a second at 1 Gbit/s, as storage ports count: binary."""

TICKS_PER_S = 10.0
"""Ticks of the VNX's idle counter: 100 ms each."""


class CpuSource(StrEnum):
    """Where the CPU's percent busy comes from."""

    NONE = "none"
    TICKS = "idle of all ticks"
    CLOCK = "idle ticks of 100 ms against the sample times"
    PERCENT = "told in percent"


class PortSource(StrEnum):
    """Where the port's percent busy comes from."""

    KBYTES = "cumulative kilobytes"
    RATES = "kilobytes per second"
    PERCENT = "utilisation"


class DeviceFamily(NamedTuple):
    """How ports of one kind of device are measured.

    `provisional_s` is how long after the first sample, in seconds, the running average is a metric, though the first
    averaging period goes on.
    """

    name: str
    port: PortSource
    cpu: CpuSource
    provisional_s: float = math.inf


FAMILIES: dict[str, DeviceFamily] = {
    family.name: family
    for family in (
        DeviceFamily("vmax", PortSource.KBYTES, CpuSource.TICKS),
        DeviceFamily("vnx", PortSource.KBYTES, CpuSource.CLOCK),
        DeviceFamily("hds", PortSource.KBYTES, CpuSource.NONE),
        DeviceFamily("vplex", PortSource.RATES, CpuSource.PERCENT),
        DeviceFamily("openflow", PortSource.PERCENT, CpuSource.PERCENT, provisional_s=60.0),
    )
}
"""Families by the names of the policy file."""


def port_percent_busy(kbytes: ArrayLike, seconds: ArrayLike, speed_gbps: ArrayLike) -> NDArray[np.float64]:
    """Return what part of a port's capacity was used.

    Parameters
    ----------
    kbytes
        Kilobytes carried, read and written together, not below 0.
    seconds
        Time in which they were, above 0.
    speed_gbps
        Speed of the port in Gbit/s; 1 Gbit/s is 131,072 kilobytes per second.

    Returns
    -------
    float64 array of the inputs' common shape
        Percent, at most 100; NaN where the speed or the time is not above 0.

    Notes
    -----
    Metrics based port selection, "VMAX Performance Metrics": (delta kbytes x 100 / seconds) / max kbytes per second.
    """
    carried, time_s, speed = np.broadcast_arrays(
        np.asarray(kbytes, np.float64), np.asarray(seconds, np.float64), np.asarray(speed_gbps, np.float64)
    )
    known = (speed > 0) & (time_s > 0)
    percent = np.full(carried.shape, np.nan)
    np.divide(carried * 100.0, time_s, out=percent, where=known)
    np.divide(percent, speed * KBYTES_PER_GBIT, out=percent, where=known)
    clamped: NDArray[np.float64] = np.minimum(percent, 100.0)
    return clamped


def cpu_percent_busy(idle_ticks: ArrayLike, all_ticks: ArrayLike) -> NDArray[np.float64]:
    """Return what part of its ticks a CPU was busy.

    Parameters
    ----------
    idle_ticks
        Idle ticks between two samples, not below 0.
    all_ticks
        All ticks between them: counted by the VMAX, ten a second of sample time on the VNX.

    Returns
    -------
    float64 array of the inputs' common shape
        Percent, 0 to 100; NaN where no tick passed.

    Notes
    -----
    Metrics based port selection, "VMAX Performance Metrics" and "VNX Performance Metrics": busy = all - idle.
    """
    idle, ticks = np.broadcast_arrays(np.asarray(idle_ticks, np.float64), np.asarray(all_ticks, np.float64))
    percent = np.full(idle.shape, np.nan)
    np.divide((ticks - idle) * 100.0, ticks, out=percent, where=ticks > 0)
    clamped: NDArray[np.float64] = np.clip(percent, 0.0, 100.0)
    return clamped
