"""What the live comparison is told beside events of switches and of the fabric, and what it tells."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from controller.config.anomaly_settings import Anomaly
from controller.performance.batch import SampleRates
from controller.performance.ports import PortRows
from controller.snapshot.events import State

MemberKey: TypeAlias = tuple[int, int]
"""Datapath id and port number; number `WHOLE_SWITCH` stands for the switch itself."""

WHOLE_SWITCH = 0


class PortsSampled(NamedTuple):
    """Ports were sampled, each once at most: entry by entry the port, when, and its rates since the sample before.

    `at_s` is in epoch seconds; `interval_s` is NaN where what was counted is not known. `per_s` float64[n, 12]
    has the counters of `SampleRates`, `utilisation_pct` float64[n, 2] both directions; `cpu_pct` is by datapath id.
    """

    ports: tuple[MemberKey, ...]
    at_s: NDArray[np.float64]
    interval_s: NDArray[np.float64]
    per_s: NDArray[np.float64]
    utilisation_pct: NDArray[np.float64]
    cpu_pct: Mapping[int, float]


def ports_sampled(rates: SampleRates, ports: PortRows, cpu_pct: Mapping[int, float]) -> PortsSampled:
    """Return what rates say of ports, without samples that were put aside; `cpu_pct` may be of more switches."""
    rates = rates.take(rates.gap | ~np.isnan(rates.interval_s))
    keys = tuple((name.dpid, name.port_no) for name in map(ports.name, rates.rows.tolist()))
    known = {dpid for dpid, _ in keys} & cpu_pct.keys()
    return PortsSampled(
        keys,
        rates.at_s,
        rates.interval_s,
        rates.per_s,
        rates.utilisation_pct,
        {dpid: cpu_pct[dpid] for dpid in sorted(known)},
    )


class AnomalyChanged(NamedTuple):
    """The policy has other settings; `poll_s` is the longest time between two polls of a switch."""

    settings: Anomaly
    poll_s: float


class RetrainAsked(NamedTuple):
    """What is normal is to be learnt anew, in one peer group or (None) in all."""

    peer_group: str | None


class OpenAnomaly(NamedTuple):
    """A member that is faulty at present.

    `is_silent`: it carries next to nothing while its peers do. `other_end` is the other end of its cable, where that
    differs from its peers too and is told with it, `part_of` the member that it is told with; '' without one.
    """

    key: MemberKey
    member: str
    peer_group: str
    metric: str
    since_s: float
    score: float
    verdict: str
    text: str
    is_silent: bool = False
    other_end: str = ""
    part_of: str = ""


class AnomalyTurned(NamedTuple):
    """An anomaly was raised or cleared at `at_s`, in epoch seconds."""

    state: State
    anomaly: OpenAnomaly
    at_s: float
