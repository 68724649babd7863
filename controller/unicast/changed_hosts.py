"""Hosts that came, went or moved, until the entries follow: some at a time, so that no turn takes long."""

from __future__ import annotations

from itertools import islice

from controller.unicast.routes import Routes
from topology.events import HostLearnt
from topology.live import LiveFabric

HOSTS_AT_ONCE = 32
"""Hosts that are taken at a time."""

PATHS_AT_ONCE = 400
"""Switches that are looked at for one `take`, to find the paths to those that had no hosts so far."""


class ChangedHosts:
    """The hosts that the entries have not followed yet, the one that waits longest first."""

    def __init__(self, fabric: LiveFabric, routes: Routes) -> None:
        self._fabric = fabric
        self._routes = routes
        self._macs: dict[bytes, None] = {}

    def __bool__(self) -> bool:
        return bool(self._macs)

    def note(self, *macs: bytes) -> None:
        """Take it that these hosts are not where they were."""
        self._macs.update(dict.fromkeys(macs))

    def take(self, switch_count: int) -> list[tuple[bytes, HostLearnt | None]]:
        """Return the hosts that are next, None for one that is gone, and note them no more.

        A switch that had no hosts costs as much as all of the fabric's `switch_count` switches.
        """
        taken: dict[bytes, HostLearnt | None] = {}
        new: set[int] = set()
        for mac in islice(self._macs, HOSTS_AT_ONCE):
            host = self._fabric.host(mac)
            if host is not None and not self._routes.leads_to(host.dpid):
                new.add(host.dpid)
                if len(new) > 1 and len(new) * switch_count > PATHS_AT_ONCE:
                    break
            taken[mac] = host
        for mac in taken:
            del self._macs[mac]
        return [(mac, taken[mac]) for mac in sorted(taken)]
