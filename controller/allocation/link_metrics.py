"""The port metrics of ports between switches, told to those who place load, as they change."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from controller.allocation.events import PortKey
from controller.config.settings import Allocation
from controller.multicast.events import LoadsMeasured
from controller.unicast.weights import FULL_LEVEL, PortsWeighed
from topology.graph import Graph

INTERVAL_MS = 15_000
"""What is a mean over minutes or an hour is not told more often."""
LEVEL_PCT = 100.0 / FULL_LEVEL
LEVEL_STAYS = 0.75
"""A level is left where the metric is further than so much of a level away, so that noise moves nobody."""

Told: TypeAlias = LoadsMeasured | PortsWeighed
MetricsOf: TypeAlias = Callable[[Sequence[PortKey]], NDArray[np.float64]]
"""Returns the port metrics of ports in percent, NaN where there is none."""


class _Told(NamedTuple):
    far: int
    capacity_bps: float
    whole_pct: int
    level: int


class LinkMetrics:
    """Finds which ports between switches have another metric than was told last.

    Trees take it as the load of both directions of a cable, in whole percent of its capacity; for unicast ports have
    levels of a tenth. Where the policy wants either no more, and for cables that are gone, 0 is told.
    """

    def __init__(self) -> None:
        self._told: dict[PortKey, _Told] = {}
        self._wanted = (False, False)
        self._looked_ms = 0

    def told_pct(self, key: PortKey) -> int | None:
        """Return the metric in percent that a port was told with last, None for one that was not."""
        told = self._told.get(key)
        return None if told is None else told.whole_pct

    def look(self, graph: Graph, settings: Allocation, metrics_of: MetricsOf, now_ms: int) -> tuple[Told, ...]:
        """Return what is to be told, at most once in `INTERVAL_MS` unless the policy wants something else.

        Parameters
        ----------
        graph
            The switches, by datapath id, and their links.
        settings
            `trees` and `paths` say who is told.
        metrics_of
            See `MetricsOf`.
        now_ms
            Milliseconds since the epoch.
        """
        wanted = settings.trees, settings.paths
        if wanted == self._wanted and (not any(wanted) or abs(now_ms - self._looked_ms) < INTERVAL_MS):
            return ()
        before, self._wanted, self._looked_ms = self._wanted, wanted, now_ms
        former = self._told
        self._told = self._found(graph, metrics_of) if any(wanted) else {}
        gone = {key: told._replace(whole_pct=0, level=0) for key, told in former.items() if key not in self._told}
        out: list[Told] = []
        for is_wanted, was_wanted, tell, place in (
            (settings.trees, before[0], _loads, "whole_pct"),
            (settings.paths, before[1], _levels, "level"),
        ):
            if not is_wanted and not was_wanted:
                continue
            now = {**gone, **self._told}
            if not is_wanted:
                now = {key: told._replace(**{place: 0}) for key, told in {**former, **now}.items()}
            known = former if was_wanted else {}
            changed = {
                key: told
                for key, told in now.items()
                if getattr(told, place) != (getattr(known[key], place) if key in known else 0)
            }
            if changed:
                out.append(tell(changed))
        return tuple(out)

    def _found(self, graph: Graph, metrics_of: MetricsOf) -> dict[PortKey, _Told]:
        cables: dict[PortKey, tuple[int, float]] = {}
        for link in graph.links():
            for u, v, port_no in ((link.u, link.v, link.u_port), (link.v, link.u, link.v_port)):
                if isinstance(u, int) and isinstance(v, int) and port_no is not None:
                    cables[u, port_no] = v, link.capacity_bps
        found = {}
        metrics = np.clip(np.nan_to_num(metrics_of(list(cables))), 0.0, 100.0)
        for (key, (far, capacity_bps)), metric_pct in zip(cables.items(), metrics.tolist(), strict=True):
            former = self._told.get(key)
            level = 0 if former is None else former.level
            if abs(metric_pct - level * LEVEL_PCT) > LEVEL_STAYS * LEVEL_PCT:
                level = round(metric_pct / LEVEL_PCT)
            found[key] = _Told(far, capacity_bps, int(metric_pct), level)
        return found


def _loads(changed: dict[PortKey, _Told]) -> Told:
    return LoadsMeasured(
        tuple(
            (dpid, port_no, told.far, told.whole_pct / 100 * told.capacity_bps)
            for (dpid, port_no), told in changed.items()
        )
    )


def _levels(changed: dict[PortKey, _Told]) -> Told:
    return PortsWeighed(tuple((dpid, port_no, told.level) for (dpid, port_no), told in changed.items()))
