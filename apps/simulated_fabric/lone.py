"""Simulated switches that are cabled to nothing: all their ports lead to hosts, which are silent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from apps.simulated_fabric import messages
from apps.simulated_fabric.fabric import SimulatedFabric
from apps.simulated_fabric.switch import SimulatedSwitch
from topology.graph import Graph, NodeKind

SPEED_BPS = 10e9


def unconnected_switches(dpids: Iterable[int], ports: int) -> Graph:
    """Return switches with so many ports each, numbered from 1, and no cable between them."""
    graph = Graph()
    for dpid in dpids:
        graph.add_node(f"s{dpid}", NodeKind.TOR, dpid=dpid)
        for port_no in range(1, ports + 1):
            host = f"h{dpid}-{port_no}"
            graph.add_node(host, NodeKind.HOST)
            graph.add_link(f"s{dpid}", host, port_no, 0, SPEED_BPS)
    return graph


def punted(in_port: int, frame: bytes) -> bytes:
    """Return the packet-in by which a switch hands a frame over."""
    return messages.packet_in(messages.match_of_port(in_port), frame)


class LoneSwitch(SimulatedFabric):
    """A fabric of one switch that connects at once; `received` counts what it was sent by message type."""

    def __init__(self, dpid: int, ports: int, address: tuple[str, int], *, reconnect: bool = False) -> None:
        super().__init__(unconnected_switches([dpid], ports), address, reconnect=reconnect)
        self.switch: SimulatedSwitch = self.switches[dpid]
        self.connect()
        self.turn(0.0)

    @property
    def received(self) -> Counter[int]:
        """How many messages of each type have come."""
        return self.watch.received

    @property
    def unsent_bytes(self) -> int:
        """What waits to be sent."""
        return len(self.switch.out)

    def say(self, told: Iterable[bytes]) -> None:
        """Send messages, whatever the entries of the switch say, as far as there is a connection."""
        self.switch.say(b"".join(told))
