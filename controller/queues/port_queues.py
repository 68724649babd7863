"""What the queues of all ports send and are sure of: the floor alone, or what follows from goals and measures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from controller.queues.managed import UNMARKED_QUEUE, ManagedQueue, managed_queues, performance
from controller.queues.measures import QueueUse, SwitchUses
from controller.queues.settings import QueueSettings
from controller.queues.switch_queues import COLUMNS, KINDS, SwitchQueues, column_of
from controller.service_classes.clusters import REFRESH_S, SIGNIFICANT, clusters
from controller.service_classes.rates import GoalNeeds, PortFloors, Values, port_floors


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
        self.queues: tuple[ManagedQueue, ...]
        self.configure(settings, now)

    def configure(self, settings: QueueSettings, now: float) -> None:
        """Go by another policy: what was decided is void."""
        self.queues = managed_queues(settings.classes)
        self._settings = settings
        goals = {column_of(each.queue_id): each.goals for each in self.queues}
        self._needs = GoalNeeds([goals.get(column, ()) for column in range(COLUMNS)])
        self._managed = np.isin(np.arange(COLUMNS), list(goals))
        self._switches: dict[int, SwitchQueues] = {}
        self._floors: dict[float, dict[int, int]] = {}
        self._sure: dict[bytes, PortFloors] = {}
        self._clusters_s = now + REFRESH_S
        self._clusters: list[tuple[int, ...]] = []
        self._cluster_of: dict[int, dict[int, int]] = {}
        self._competing: list[NDArray[np.bool_]] = []

    def forget(self, dpid: int) -> None:
        """Forget the ports of a switch."""
        self._switches.pop(dpid, None)

    def rates(
        self, dpid: int, port_no: int, capacity_bps: float, written: Mapping[int, int] | None
    ) -> Mapping[int, int]:
        """Return the least rates that the queues of a port shall have; `written` are those that it has.

        Where rates follow goals, a port of which nothing was measured yet keeps what it has.
        """
        switch = self._switches.get(dpid)
        if switch is None:
            switch = self._switches[dpid] = SwitchQueues(self._queue_ids())
        row = switch.rows.get(port_no)
        if row is None or switch.capacity_bps[row, 0] != capacity_bps:
            rates = self._floor(capacity_bps)
            is_begun = row is None and self._settings.follows_goals
            if is_begun and written is not None and written.keys() == rates.keys():
                rates = dict(written)
            switch.put(port_no, capacity_bps, rates)
        return switch.rates(port_no)

    def capacity_bps(self, dpid: int, port_no: int) -> float:
        """Return the capacity that a port had when its rates were last asked for; 0 where they were not."""
        switch = self._switches.get(dpid)
        if switch is None or port_no not in switch.rows:
            return 0.0
        return float(switch.capacity_bps[switch.rows[port_no], 0])

    def measured(self, dpid: int, uses: SwitchUses) -> bool:
        """Take what the queues of a switch send and drop; tell whether a port is sure of something else now."""
        switch = self._switches.get(dpid)
        if switch is None:
            return False
        switch.take(uses)
        if not self._settings.follows_goals:
            return False
        switch.add_up()
        where = switch.otherwise_used()
        if where is None:
            return False
        sure = switch.floors
        if sure is None:
            sure = switch.floors = self._floors_of(dpid, switch)
        return switch.decide(where, self._needs, sure)

    def missing(self, dpid: int) -> dict[int, dict[int, int]]:
        """Return, by port and queue, what needs lack of capacity at the ports of a switch, in bit/s."""
        switch = self._switches.get(dpid)
        return {} if switch is None else dict(switch.missing())

    def classes_of(self, queue_id: int) -> tuple[str, ...]:
        """Return the names of the classes that wait in a queue."""
        return tuple(found.name for each in self.queues if each.queue_id == queue_id for found in each.classes)

    def reports(self) -> Iterator[PortQueuesReport]:
        """Yield what is known of every port."""
        for dpid, switch in self._switches.items():
            for (port_no, row), capacity_bps in zip(
                switch.rows.items(), switch.capacity_bps[:, 0].tolist(), strict=False
            ):
                rates, uses = switch.rates(port_no), switch.uses_at(row)
                index = performance(self.queues, uses, rates, capacity_bps)
                yield PortQueuesReport(dpid, port_no, capacity_bps, rates, uses, switch.missing_at(row), index)

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
        return self._clusters

    def _make_clusters(self) -> None:
        """Find which queues shared ports since this was done last; that of unmarked packets does not count."""
        unmarked = column_of(UNMARKED_QUEUE)
        most: Values = np.zeros(COLUMNS)
        for switch in self._switches.values():
            np.maximum(most, switch.sent.max(axis=0, initial=0.0), out=most)
        most[unmarked] = 0.0
        # Which queues use a port, as bits: a port is known by that here, so that equal ones count once.
        bits, users = 1 << np.arange(COLUMNS), {}
        for dpid, switch in self._switches.items():
            uses = (switch.sent >= SIGNIFICANT * most) & (switch.sent > 0) & (most > 0)
            found = (uses @ bits).tolist()
            users[dpid] = {port_no: found[row] for port_no, row in switch.rows.items() if found[row]}
            switch.sent = np.zeros_like(switch.sent)
            switch.void()
        kinds = {kind for by_port in users.values() for kind in by_port.values()}
        names = {str(column): column for column in np.flatnonzero(most).tolist()}
        samples = {name: {kind: 1.0 for kind in kinds if kind >> column & 1} for name, column in names.items()}
        columns = [[names[name] for name in found] for found in clusters(samples)]
        unclustered = self._managed & (most == 0)
        self._competing = [self._managed & (unclustered | np.isin(np.arange(COLUMNS), found)) for found in columns]
        number = {kind: n for kind in kinds for n, found in enumerate(columns) if any(kind >> c & 1 for c in found)}
        self._cluster_of = {
            dpid: {port_no: number[kind] for port_no, kind in by_port.items()} for dpid, by_port in users.items()
        }
        self._clusters = sorted((tuple(column_of(column) for column in found) for found in columns), reverse=True)

    def _floors_of(self, dpid: int, switch: SwitchQueues) -> PortFloors:
        clusters = self._cluster_of.get(dpid)
        if not clusters:
            return self._floors_of_all(switch.capacity_bps)
        competing = np.tile(self._managed, (len(switch.capacity_bps), 1))
        for port_no, cluster in clusters.items():
            if (row := switch.rows.get(port_no)) is not None:
                competing[row] = self._competing[cluster]
        return port_floors(switch.capacity_bps, self._settings.floor_pct, competing)

    def _floors_of_all(self, capacity_bps: Values) -> PortFloors:
        """Return what ports are sure of at which all queues compete; switches of one kind have it in common."""
        kind = capacity_bps.tobytes()
        found = self._sure.get(kind)
        if found is None:
            if len(self._sure) == KINDS:
                self._sure.clear()
            competing = np.tile(self._managed, (len(capacity_bps), 1))
            found = self._sure[kind] = port_floors(capacity_bps, self._settings.floor_pct, competing)
        return found

    def _queue_ids(self) -> tuple[int, ...]:
        return UNMARKED_QUEUE, *(each.queue_id for each in self.queues)

    def _floor(self, capacity_bps: float) -> dict[int, int]:
        """Return the least rates of queues of which nothing is asked but the floor; 0 for unmarked packets."""
        found = self._floors.get(capacity_bps)
        if found is None:
            rates = self._floors_of_all(np.array([[capacity_bps]])).floor_bps[0].tolist()
            found = {queue_id: int(rates[column_of(queue_id)]) for queue_id in self._queue_ids()}
            self._floors[capacity_bps] = found
        return found
