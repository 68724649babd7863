"""What the queues of all ports send and are sure of: the floor alone, or what follows from goals and measures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from controller.queues.measures import QueueUse
from controller.queues.port_rates import (
    UNMARKED_QUEUE,
    ManagedQueue,
    PortDecision,
    decide,
    floor_rates,
    managed_queues,
    performance,
)
from controller.queues.settings import QueueSettings
from controller.service_classes.clusters import REFRESH_S, SIGNIFICANT, clusters
from controller.service_classes.rates import is_to_be_written

LOOKED_AT = 0.01
"""Part of a port's capacity by which what comes to a queue must change for its rates to be looked at again."""

PortKey = tuple[int, int]

_NO_USES: Mapping[int, QueueUse] = {}


class _Port:
    """One port: its capacity, the least rates of its queues, what they sent last, and what was decided by what.

    `sent` adds up what each queue sent since clusters were made.
    """

    __slots__ = ("capacity_bps", "decided_by", "decision", "rates", "sent", "uses")

    def __init__(self, capacity_bps: float, rates: dict[int, int]) -> None:
        self.capacity_bps = capacity_bps
        self.rates = rates
        self.uses: Mapping[int, QueueUse] = {}
        self.sent: dict[int, float] = {}
        self.decided_by: Mapping[int, QueueUse] | None = None
        self.decision: PortDecision | None = None


class PortQueuesReport(NamedTuple):
    """What is known of the queues of a port: least rates in bit/s, uses, and what lacks, by queue."""

    dpid: int
    port_no: int
    capacity_bps: float
    min_rate_bps: Mapping[int, int]
    uses: Mapping[int, QueueUse]
    missing_bps: Mapping[int, int]
    performance: Mapping[int, float]


class PortQueues:
    """The ports that have queues.

    Attributes
    ----------
    queues
        The queues that every port has for classes, the most important first.
    """

    def __init__(self, settings: QueueSettings, now: float) -> None:
        self.queues: tuple[ManagedQueue, ...] = managed_queues(settings.classes)
        self._settings = settings
        self._ports: dict[int, dict[int, _Port]] = {}
        self._floors: dict[float, dict[int, int]] = {}
        self._clusters_s = now + REFRESH_S
        self._cluster_of: dict[PortKey, frozenset[int]] = {}
        self._unclustered: frozenset[int] = frozenset()

    def configure(self, settings: QueueSettings, now: float) -> None:
        """Go by another policy: what was decided is void."""
        self.queues = managed_queues(settings.classes)
        self._settings = settings
        self._ports.clear()
        self._floors.clear()
        self._cluster_of.clear()
        self._clusters_s = now + REFRESH_S

    def forget(self, dpid: int) -> None:
        """Forget the ports of a switch."""
        self._ports.pop(dpid, None)

    def rates(
        self, dpid: int, port_no: int, capacity_bps: float, written: Mapping[int, int] | None
    ) -> Mapping[int, int]:
        """Return the least rates that the queues of a port shall have; `written` are those that it has.

        Where rates follow goals, a port of which nothing was measured yet keeps what it has.
        """
        ports = self._ports.setdefault(dpid, {})
        port = ports.get(port_no)
        if port is None or port.capacity_bps != capacity_bps:
            rates = self._floor(capacity_bps)
            if (
                port is None
                and self._settings.follows_goals
                and written is not None
                and written.keys() == rates.keys()
            ):
                rates = dict(written)
            port = ports[port_no] = _Port(capacity_bps, rates)
        return port.rates

    def capacity_bps(self, dpid: int, port_no: int) -> float:
        """Return the capacity that a port had when its rates were last asked for; 0 where they were not."""
        port = self._ports.get(dpid, {}).get(port_no)
        return 0.0 if port is None else port.capacity_bps

    def measured(self, dpid: int, uses: Mapping[int, Mapping[int, QueueUse]]) -> bool:
        """Take what the queues of a switch send and drop; tell whether a port is sure of something else now."""
        is_changed = False
        for port_no, port in self._ports.get(dpid, {}).items():
            here = uses.get(port_no, _NO_USES)
            if not here and not port.uses:
                continue
            port.uses = here
            if not self._settings.follows_goals:
                continue
            sent = port.sent
            for queue_id, use in here.items():
                sent[queue_id] = sent.get(queue_id, 0.0) + use.tx_bps
            if _differs(port.decided_by, here, port.capacity_bps):
                port.decided_by = here
                is_changed |= self._decide(dpid, port_no, port)
        return is_changed

    def missing(self, dpid: int) -> dict[int, dict[int, int]]:
        """Return, by port and queue, what needs lack of capacity at the ports of a switch, in bit/s."""
        return {
            port_no: port.decision.missing_bps
            for port_no, port in self._ports.get(dpid, {}).items()
            if port.decision is not None and port.decision.missing_bps
        }

    def classes_of(self, queue_id: int) -> tuple[str, ...]:
        """Return the names of the classes that wait in a queue."""
        return tuple(found.name for each in self.queues if each.queue_id == queue_id for found in each.classes)

    def reports(self) -> Iterator[PortQueuesReport]:
        """Yield what is known of every port."""
        for dpid, ports in self._ports.items():
            for port_no, port in ports.items():
                decision = port.decision
                yield PortQueuesReport(
                    dpid,
                    port_no,
                    port.capacity_bps,
                    port.rates,
                    port.uses,
                    {} if decision is None else decision.missing_bps,
                    performance(self.queues, port.uses, port.rates, port.capacity_bps),
                )

    # Clusters

    def next_deadline(self) -> float | None:
        """Return when clusters are made anew, None for never."""
        return self._clusters_s if self._settings.follows_goals else None

    def on_deadline(self, now: float) -> None:
        """Make clusters anew where that is due."""
        if self._settings.follows_goals and now >= self._clusters_s:
            self._clusters_s = now + REFRESH_S
            self._make_clusters()

    def clusters(self) -> list[tuple[int, ...]]:
        """Return the queues that compete with each other, as they were found last."""
        return sorted({tuple(sorted(found, reverse=True)) for found in self._cluster_of.values()}, reverse=True)

    def _make_clusters(self) -> None:
        samples = self._samples()
        self._cluster_of = {}
        for found in clusters({str(queue_id): uses for queue_id, uses in samples.items()}):
            members = frozenset(map(int, found))
            for queue_id in members:
                least = SIGNIFICANT * max(samples[queue_id].values())
                self._cluster_of.update((key, members) for key, use in samples[queue_id].items() if use >= least > 0)
        for ports in self._ports.values():
            for port in ports.values():
                port.decided_by = None
        self._unclustered = frozenset(each.queue_id for each in self.queues if each.queue_id not in samples)

    def _samples(self) -> dict[int, dict[PortKey, float]]:
        """Return what each queue sent at each port since this was asked last."""
        samples: dict[int, dict[PortKey, float]] = {}
        for dpid, ports in self._ports.items():
            for port_no, port in ports.items():
                for queue_id, sent in port.sent.items():
                    if queue_id != UNMARKED_QUEUE:
                        samples.setdefault(queue_id, {})[dpid, port_no] = sent
                port.sent = {}
        return samples

    def _decide(self, dpid: int, port_no: int, port: _Port) -> bool:
        cluster = self._cluster_of.get((dpid, port_no))
        among = None if cluster is None else cluster | self._unclustered
        floor_pct, capacity_bps = self._settings.floor_pct, port.capacity_bps
        port.decision = found = decide(self.queues, port.uses, among, capacity_bps, floor_pct)
        if not is_to_be_written(port.rates, found.min_rate_bps, capacity_bps):
            return False
        port.rates = found.min_rate_bps
        return True

    def _floor(self, capacity_bps: float) -> dict[int, int]:
        found = self._floors.get(capacity_bps)
        if found is None:
            found = self._floors[capacity_bps] = floor_rates(self.queues, capacity_bps, self._settings.floor_pct)
        return found


def _differs(before: Mapping[int, QueueUse] | None, now: Mapping[int, QueueUse], capacity_bps: float) -> bool:
    """Tell whether queues are offered, or drop, so much more or less that their rates may be others."""
    if before is None or before.keys() != now.keys():
        return True
    least_bps = LOOKED_AT * capacity_bps
    for queue_id, use in now.items():
        change_bps = use.offered_bps - before[queue_id].offered_bps
        if change_bps >= least_bps or change_bps <= -least_bps:
            return True
    return False
