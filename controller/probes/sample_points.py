"""The points of `fabric:sample`: the monitor has read the counters of a port, or of a switch's ports."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from controller.performance.counters import BYTE_COLUMNS, FIRST_ERROR_COLUMN, Counter
from controller.performance.effects import SamplesRated
from controller.probes.static_points import DerivedFrom, StaticPoint

FABRIC, SAMPLE = "fabric", "sample"

RX_PACKETS, TX_PACKETS = Counter.RX_PACKETS.column, Counter.TX_PACKETS.column
RX_BYTES, TX_BYTES = BYTE_COLUMNS


class PortSample(NamedTuple):
    """A port's counters since the reading before, as in the section `ports`; absent where they are not known."""

    dpid: int
    port_no: int
    time_s: float
    interval_ms: int | None
    speed_bps: float | None
    rx_bps: float | None
    tx_bps: float | None
    rx_pps: float | None
    tx_pps: float | None
    rx_utilisation_pct: float | None
    tx_utilisation_pct: float | None
    errors_per_s: float | None


class SwitchSample(NamedTuple):
    """What all ports of a switch that were read together carry; what no port knows is absent."""

    dpid: int
    time_s: float
    ports: int
    rx_bps: float | None
    tx_bps: float | None
    errors_per_s: float | None


def _ports(rated: SamplesRated, core: Any) -> Iterator[PortSample]:
    rates, rows = rated.rates, core.ports
    for index, row in enumerate(rates.rows.tolist()):
        name = rows.name(row)
        per_s, pct = rates.per_s[index].tolist(), rates.utilisation_pct[index].tolist()
        interval_s = _known(float(rates.interval_s[index]))
        yield PortSample(
            name.dpid,
            name.port_no,
            float(rates.at_s[index]),
            None if interval_s is None else round(interval_s * 1000),
            float(rows.speed_bps[row]) or None,
            _known(8.0 * per_s[RX_BYTES]),
            _known(8.0 * per_s[TX_BYTES]),
            _known(per_s[RX_PACKETS]),
            _known(per_s[TX_PACKETS]),
            _known(pct[0]),
            _known(pct[1]),
            _sum(per_s[FIRST_ERROR_COLUMN:]),
        )


def _switches(rated: SamplesRated, core: Any) -> Iterator[SwitchSample]:
    by_switch: dict[int, list[PortSample]] = {}
    for sample in _ports(rated, core):
        by_switch.setdefault(sample.dpid, []).append(sample)
    for dpid, samples in by_switch.items():
        yield SwitchSample(
            dpid,
            max(each.time_s for each in samples),
            len(samples),
            _sum(each.rx_bps for each in samples),
            _sum(each.tx_bps for each in samples),
            _sum(each.errors_per_s for each in samples),
        )


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value


def _sum(values: Any) -> float | None:
    known = [each for each in values if each is not None and not math.isnan(each)]
    return sum(known) if known else None


SAMPLE_POINTS: Mapping[str, StaticPoint] = MappingProxyType(
    {
        "port": StaticPoint("port", PortSample, (DerivedFrom("effect", SamplesRated, _ports),)),
        "switch": StaticPoint("switch", SwitchSample, (DerivedFrom("effect", SamplesRated, _switches),)),
    }
)
"""By name."""
