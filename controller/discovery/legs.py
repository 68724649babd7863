"""Hosts behind link aggregation groups: each is at its group, and announced at one leg that works."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from controller.discovery.hosts import HostTable
from controller.effects import SendPacket
from controller.kernel.ports import End
from topology.aggregations import chosen
from topology.events import HostGone, HostLearnt
from topology.live import LiveFabric

Told: TypeAlias = HostLearnt | HostGone | SendPacket


class Legs:
    """Has what is told of hosts name a leg, where the table of hosts names the port that stands for a group.

    A host stays at its leg while that works; then it goes to another by a hash, so that the hosts of a group spread
    over the legs. `emit` takes what is told.
    """

    def __init__(self, fabric: LiveFabric, emit: Callable[[Told], None]) -> None:
        self._fabric = fabric
        self._emit = emit
        self._legs: dict[bytes, End] = {}

    def home(self, end: End) -> End:
        """Return the port by which the hosts at a port are known."""
        return self._fabric.aggregations.homes.get(end, end)

    def others(self, end: End, without_switch: bool = False) -> list[End]:
        """Return the legs that work beside one of a port's group, or beside those of its switch."""
        legs = self._fabric.working_legs(end)
        return [leg for leg in legs if leg != end and not (without_switch and leg[0] == end[0])]

    def told(self, output: Told) -> None:
        """Tell what the table of hosts says."""
        if self._fabric.aggregations.is_used:
            if isinstance(output, SendPacket):
                output = self._sent(output)
            elif isinstance(output, HostLearnt):
                leg = self._leg(output.mac, (output.dpid, output.port_no))
                output = output._replace(dpid=leg[0], port_no=leg[1])
            else:
                leg = self._legs.pop(output.mac, (output.dpid, output.port_no))
                output = HostGone(output.mac, *leg)
        self._emit(output)

    def moved(self, end: End, hosts: HostTable) -> None:
        """Tell of the hosts of a port's group whose leg works no more."""
        working = self._fabric.working_legs(end)
        for mac, _ in hosts.at(self.home(end)) if working else ():
            if self._legs.get(mac) not in working:
                hosts.tell(mac)

    def heard(self, end: End, was_heard: Callable[[End], bool]) -> bool:
        """Tell whether all was heard at the legs that work."""
        if end not in self._fabric.aggregations.homes:
            return was_heard(end)
        working = self._fabric.working_legs(end)
        return bool(working) and all(was_heard(leg) for leg in working)

    def _leg(self, mac: bytes, home: End) -> End:
        if home not in self._fabric.aggregations.homes:
            self._legs.pop(mac, None)
            return home
        leg, working = self._legs.get(mac), self._fabric.working_legs(home)
        if leg is None or leg not in working:
            leg = chosen(mac, working) or home
            self._legs[mac] = leg
        return leg

    def _sent(self, packet: SendPacket) -> SendPacket:
        end = (packet.dpid, packet.ports[0])
        leg = (
            chosen(packet.data[:6], self._fabric.working_legs(end)) if end in self._fabric.aggregations.homes else end
        )
        return packet if leg is None else packet._replace(dpid=leg[0], ports=(leg[1],))
