"""Names, addresses and port numbers of generated fabrics, the same in every generator."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from topology.graph import Graph, NodeKind


class Draft:
    """A fabric under construction.

    The n-th host is named ``h<n>`` and has the addresses 10.0.0.0 + n and 00:00:00:00:00:00 + n; its port is 0, as
    Mininet numbers it. The n-th switch is named ``s<n>`` and has the datapath id n; its ports count from 1 in the
    order in which it is linked.
    """

    def __init__(self, capacity_bps: float) -> None:
        self.graph = Graph()
        self._capacity_bps = capacity_bps
        self._hosts = 0
        self._ports: dict[str, int] = {}

    def switch(self, kind: NodeKind, **attributes: Any) -> str:
        """Add a switch and return its name."""
        number = len(self._ports) + 1
        name = f"s{number}"
        self.graph.add_node(name, kind, dpid=number, **attributes)
        self._ports[name] = 0
        return name

    def hosts(self, switch: str, count: int, **attributes: Any) -> None:
        """Add `count` hosts to a switch."""
        for _ in range(count):
            self._hosts += 1
            name = f"h{self._hosts}"
            ip = ".".join(str(byte) for byte in ((10 << 24) + self._hosts).to_bytes(4, "big"))
            self.graph.add_node(name, NodeKind.HOST, ip=ip, mac=self._hosts.to_bytes(6, "big").hex(":"), **attributes)
            self._ports[switch] += 1
            self.graph.add_link(name, switch, 0, self._ports[switch], self._capacity_bps)

    def link(self, lower: str, upper: str, ratio: float = 1.0) -> None:
        """Join two switches by the next free port of each; `ratio` is the link's capacity over that of a host's."""
        self._ports[lower] += 1
        self._ports[upper] += 1
        self.graph.add_link(lower, upper, self._ports[lower], self._ports[upper], self._capacity_bps * ratio)


def pods(
    hosts: Sequence[Sequence[int]],
    aggregation_count: int,
    cores: int,
    cores_of: Callable[[int], Iterable[int]],
    capacity_bps: float,
) -> Graph:
    """Return a fabric of three tiers.

    Parameters
    ----------
    hosts
        For each pod the hosts of each of its ToRs.
    aggregation_count
        Aggregations of a pod; inside a pod every ToR is linked to every aggregation.
    cores
        Core switches.
    cores_of
        Positions (from 0) of the cores to which the aggregation at a position in its pod is linked, the same in
        every pod.
    capacity_bps
        Capacity of every link.

    Returns
    -------
    Graph
        Switches are numbered ToRs first, then aggregations, then cores; ``pod`` counts from 0.
    """
    draft = Draft(capacity_bps)
    tors = [[draft.switch(NodeKind.TOR, pod=pod) for _ in counts] for pod, counts in enumerate(hosts)]
    aggregations = [
        [draft.switch(NodeKind.AGGREGATION, pod=pod) for _ in range(aggregation_count)] for pod in range(len(hosts))
    ]
    tops = [draft.switch(NodeKind.CORE) for _ in range(cores)]
    for pod, (lower, upper) in enumerate(zip(tors, aggregations, strict=True)):
        for tor, count in zip(lower, hosts[pod], strict=True):
            draft.hosts(tor, count, pod=pod)
            for aggregation in upper:
                draft.link(tor, aggregation)
        for position, aggregation in enumerate(upper):
            for core in cores_of(position):
                draft.link(aggregation, tops[core])
    return draft.graph
