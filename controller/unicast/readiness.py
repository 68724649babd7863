"""Whether switches can forward between two hosts already."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable

from controller.rules.installer import Installer
from controller.unicast.routes import Routes
from topology.events import HostLearnt
from topology.live import LiveFabric


class Readiness:
    """Tells what switches have confirmed of the ways between hosts; `ask` has one hold an entry for a host."""

    def __init__(
        self,
        fabric: LiveFabric,
        routes: Routes,
        installer: Installer,
        switches: Container[int],
        ask: Callable[[int, bytes, float], None],
    ) -> None:
        self._fabric = fabric
        self._routes = routes
        self._installer = installer
        self._switches = switches
        self._ask = ask

    def unready(self, one: HostLearnt, other: HostLearnt, now: float) -> int | None:
        """Return a switch that cannot yet forward between two hosts, None where all can."""
        found = None
        for source, target in ((one, other), (other, one)):
            for dpid in self._switches_of(source):
                self._ask(dpid, target.mac, now)
        for source, target in ((one, other), (other, one)):
            way = self._routes.way(source.dpid, target.mac)
            if not way:
                return source.dpid
            for dpid, rule in way:
                if self._installer.installed(dpid).get(rule.key) != rule:
                    found = dpid if found is None else found
                    self._installer.hurry(dpid, rule.key)
        return found

    def _switches_of(self, host: HostLearnt) -> Iterable[int]:
        """Return the switches that a host may send by: the one that it is at, or those of all legs of its group."""
        aggregations = self._fabric.aggregations
        if (host.dpid, host.port_no) not in aggregations.homes:
            return (host.dpid,)
        legs = aggregations.legs((host.dpid, host.port_no))
        return sorted({dpid for dpid, _ in legs if dpid in self._switches})
