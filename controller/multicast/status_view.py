"""What operators are shown of the multicast core as a whole: a JSON-able document."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from controller.multicast.groups import GroupPlane
from controller.multicast.memberships import Memberships
from controller.multicast.senders import SenderTable
from controller.multicast.static_members import StaticMembers
from controller.multicast.swapping import Swapping
from controller.multicast.switches import Switches
from controller.rules.installer import Installer
from controller.snapshot.log import Document
from controller.snapshot.names import Names
from topology.live import LiveFabric

NAMED = 5
"""Switches that the reason for not being ready names."""


class StatusView:
    """Counts, and whether switches hold what they should."""

    def __init__(
        self,
        counters: Counter[str],
        fabric: LiveFabric,
        switches: Switches,
        names: Names,
        installer: Installer,
        plane: GroupPlane,
        memberships: Memberships,
        senders: SenderTable,
        swapping: Swapping,
        static: StaticMembers,
    ) -> None:
        self._counters = counters
        self._fabric = fabric
        self._switches = switches
        self._names = names
        self._installer = installer
        self._plane = plane
        self._memberships = memberships
        self._senders = senders
        self._swapping = swapping
        self._static = static

    def status(self) -> Document:
        """Return counts, and whether every switch that was ever there is connected and holds what it should.

        `in_sync` is about the switches of the present fabric alone.
        """
        fabric = self._fabric
        switches = fabric.switches()
        reason = self._not_ready(switches)
        return {
            "ready": reason is None,
            "not_ready_reason": reason,
            "in_sync": bool(switches) and all(self._installer.in_sync(dpid) for dpid in switches),
            "switches": len(switches),
            "fabrics": len(fabric.fabrics),
            "links": sum(1 for _ in fabric.graph.links()),
            "edge_ports": sum(len(fabric.edge_ports(dpid)) for dpid in switches),
            "hosts": len(fabric.hosts()),
            "groups": len(self._plane.groups),
            "static_members_waiting": self._static.waiting_count(),
            "counters": dict(sorted(self.counted().items())),
        }

    def _not_ready(self, switches: Sequence[int]) -> str | None:
        """Say which switches keep the fabric from being ready, None where none does."""
        connected, gone = self._switches.connected, self._switches.gone
        away = sorted({*(dpid for dpid in switches if dpid not in connected), *gone} - connected)
        behind = [dpid for dpid in switches if dpid in connected and not self._installer.in_sync(dpid)]
        parts = []
        if away:
            parts.append(f"{self._said(away, len({*switches, *gone}))} not connected")
        if behind:
            parts.append(f"{self._said(behind, len({*switches, *gone}))} not in sync")
        if not switches and not gone:
            parts.append("no switch has connected")
        return "; ".join(parts) or None

    def _said(self, some: Sequence[int], count: int) -> str:
        """Say which of `count` switches are meant, the first `NAMED` by what they are called."""
        called = [self._names.label(dpid) for dpid in some[:NAMED]]
        if len(some) == 1:
            return f"switch {called[0]} is"
        more = ", ..." if len(some) > NAMED else ""
        return f"{len(some)} of {count} switches ({', '.join(called)}{more}) are"

    def counted(self) -> Counter[str]:
        """Return what was counted, by kind, in all domains together."""
        total: Counter[str] = Counter()
        memberships = (membership.counters for _, membership in self._memberships.all())
        groups = (self._plane.aliases.counters, self._swapping.counters)
        for counters in (self._counters, self._senders.counters, *groups, self._installer.counters, *memberships):
            for name, count in counters.items():
                total[name] += count
        return total
