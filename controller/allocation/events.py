"""What the live allocator is told beside events of switches and of the fabric."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from controller.config.settings import Allocation
from controller.performance.batch import SampleRates
from controller.performance.ports import PortRows

PortKey: TypeAlias = tuple[int, int]
"""Datapath id and port number."""


class PortsRated(NamedTuple):
    """Ports were measured: entry by entry the port, when, and the utilisation of its busier direction.

    `at_s` is in epoch seconds. Percent are NaN where they are not known; `cpu_pct` is by datapath id, of the switches
    whose CPU is known.
    """

    ports: tuple[PortKey, ...]
    at_s: NDArray[np.float64]
    busier_pct: NDArray[np.float64]
    cpu_pct: Mapping[int, float]


def ports_rated(rates: SampleRates, ports: PortRows, cpu_pct: Mapping[int, float]) -> PortsRated:
    """Return what rates say of ports, without samples that were put aside; `cpu_pct` may be of more switches."""
    rates = rates.take(rates.gap | ~np.isnan(rates.interval_s))
    keys = tuple((name.dpid, name.port_no) for name in map(ports.name, rates.rows.tolist()))
    known = {dpid for dpid, _ in keys} & cpu_pct.keys()
    return PortsRated(keys, rates.at_s, rates.busier_pct, {dpid: cpu_pct[dpid] for dpid in sorted(known)})


class AllocationChanged(NamedTuple):
    """The policy has other parameters for allocation."""

    settings: Allocation
