"""Hosts behind link aggregation groups: each is at its group, and announced at one leg that works."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from controller.config.policy import LinkAggregation
from controller.discovery.hosts import HostTable
from controller.effects import Notice, SendPacket
from controller.kernel.ports import End
from topology.aggregations import chosen
from topology.events import HostGone, HostLearnt
from topology.live import LiveFabric

Told: TypeAlias = HostLearnt | HostGone | SendPacket


AGGREGATION_DEGRADED, AGGREGATION_WHOLE = "aggregation-degraded", "aggregation-whole"
"""Of a link aggregation group fewer legs work than did, and all do again; each is told every time."""


class HostLegs:
    """Has what is told of hosts name a leg, where the table of hosts names the port that stands for a group.

    A host stays at its leg while that works; then it goes to another by a hash, so that the hosts of a group spread
    over the legs. `emit` takes what is told, `able` returns the legs that are up of a group whose host uses one at a
    time, none of another one.
    """

    def __init__(
        self,
        fabric: LiveFabric,
        emit: Callable[[Told], None],
        groups: tuple[LinkAggregation, ...],
        able: Callable[[End], list[End]],
    ) -> None:
        self._fabric = fabric
        self._emit = emit
        self._legs: dict[bytes, End] = {}
        self._counts: dict[End, int] = {}
        """How many legs work of each group of which all have worked."""
        self._names: dict[End, str] = {}
        self._able = able
        self.name(groups)

    def name(self, groups: tuple[LinkAggregation, ...]) -> None:
        """Take what groups are called from now on."""
        self._names = {(group.ports[0].dpid, group.ports[0].port_no): group.name for group in groups}

    def review(self, end: End) -> Notice | None:
        """Return what is to be told of a port's group, of whose legs others may work than before.

        Nothing is told of a group of which not all legs have worked since it is known: it is being put up.
        """
        home = self.home(end)
        legs, working = self._fabric.aggregations.legs(home), self._able(home) or self._fabric.working_legs(home)
        before, self._counts[home] = self._counts.get(home), len(working)
        if before is None and len(working) < len(legs):
            del self._counts[home]
        if before is None or before == len(working):
            return None
        name, fields = self._names[home], (("dpid", home[0]), ("port_no", home[1]))
        if len(working) == len(legs):
            return Notice(AGGREGATION_WHOLE, f"All legs of the link aggregation group {name} work again.", fields)
        missing = " and ".join(f"port {dpid}:{port_no}" for dpid, port_no in legs if (dpid, port_no) not in working)
        text = f"{len(working)} of {len(legs)} legs of the link aggregation group {name} work: {missing} does not."
        return Notice(AGGREGATION_DEGRADED, text, fields)

    def forget(self, end: End) -> Notice | None:
        """Forget how a port's group fared, which is another one from now on; return the end of what was told."""
        home = self.home(end)
        count = self._counts.pop(home, None)
        if count in (None, len(self._fabric.aggregations.legs(home))):
            return None
        text = f"The link aggregation group {self._names[home]} is another one, by the policy."
        return Notice(AGGREGATION_WHOLE, text, (("dpid", home[0]), ("port_no", home[1])))

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
                self._send(output)
                return
            if isinstance(output, HostLearnt):
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

    def _send(self, packet: SendPacket) -> None:
        """Send a question by a leg that works, or by all that are up where the host hears one, whichever that is."""
        end = (packet.dpid, packet.ports[0])
        if end not in self._fabric.aggregations.homes:
            self._emit(packet)
            return
        leg = chosen(packet.data[:6], self._fabric.working_legs(end))
        for dpid, port_no in self._able(end) or [leg or end]:
            self._emit(packet._replace(dpid=dpid, ports=(port_no,)))
