"""What an earlier run left is put back, before the first switch connects."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol

from controller.datapath.lanes import Urgency
from controller.effects import Notice
from controller.kernel.domains import domain_of
from controller.kernel.vlan_ports import VlanPorts
from controller.multicast.events import JournalRead, LogRead
from controller.multicast.fabric import FabricFollower
from controller.multicast.former_journal import read_records
from controller.multicast.groups import GroupPlane
from controller.multicast.journal import Journal
from controller.multicast.memberships import Memberships
from controller.multicast.operator import Operator
from controller.multicast.registered import RegisteredGroups
from controller.multicast.restored import UNREADABLE, Restored, RestoredGroup, read_entries
from controller.multicast.senders import SenderTable


class Owner(Protocol):
    """What a restart asks of the core around it."""

    journal: Journal
    memberships: Memberships
    operator: Operator
    plane: GroupPlane
    registered: RegisteredGroups
    senders: SenderTable
    topology: FabricFollower
    vlan_ports: VlanPorts

    def apply(self, effects: Iterable[Any], now: float, urgency: Urgency = Urgency.PROMPT, vlan_id: int = 0) -> None:
        """Take what followed in the membership of a domain, and have it done."""

    def perform(self, effects: Iterable[Any]) -> None:
        """Take effects that followed from an event."""


class Restart:
    """Gives a core what it knew, but for what was heard in VLANs that the policy does not put its port in any more.

    `handlers` are those of the events that tell of it.
    """

    def __init__(self, core: Owner) -> None:
        self._core = core
        self.handlers: dict[type, Callable[[Any, float], None]] = {
            LogRead: self._log_read,
            JournalRead: self._journal_read,
        }

    def _log_read(self, event: LogRead, now: float) -> None:
        core = self._core
        restored = read_entries(event.entries, core.operator.static.groups(), core.registered.carrier)
        core.journal.was_read(event.entries, restored.groups, now)
        self._restore(restored, "entries of the log", now)
        if restored.faults:
            core.journal.begin_anew(now)

    def _journal_read(self, event: JournalRead, now: float) -> None:
        """Take over the journal of a version before, all of which the log is told."""
        core = self._core
        self._restore(read_records(event.records, core.operator.static.groups()), "records of the journal", now)
        core.journal.begin_anew(now)

    def _restore(self, restored: Restored, what: str, now: float) -> None:
        core = self._core
        core.operator.restore(restored.operator, now)
        core.topology.assume(restored.topology, now)
        core.journal.assume(restored.topology)
        for vlan_id, routers in restored.routers.items():
            known = [record for record in routers if self._is_in_domain(record, vlan_id)]
            core.apply(core.memberships.of(vlan_id).restore(known, now), now, vlan_id=vlan_id)
        for group in self._receivers_first(restored.groups):
            vlan_id = domain_of(group.address)
            members = [record for record in group.members if self._is_in_domain(record, vlan_id)]
            core.apply(core.memberships.of(vlan_id).restore(members, now), now, vlan_id=vlan_id)
            for key, sender in group.senders:
                if core.vlan_ports.has(key.dpid, key.port_no, vlan_id):
                    core.perform(core.senders.restore(group.address, key, sender, now))
            core.perform(core.plane.adopt(group.address, group.links, group.tree_version, now))
        if restored.faults:
            text = f"{restored.faults} {what} cannot be read: their hosts must report again."
            core.perform([Notice("journal-faulty", text, (("records", restored.faults),))])

    def _receivers_first(self, groups: Iterable[RestoredGroup]) -> list[RestoredGroup]:
        """Return groups, those first whose members get another one, which so has them before its tree is adopted."""
        carrier = self._core.registered.carrier
        return sorted(groups, key=lambda group: carrier(group.address) == group.address)

    def _is_in_domain(self, record: Any, vlan_id: int) -> bool:
        """Tell whether the port of a record is in a domain; what cannot be read is left to who counts it."""
        try:
            place = int(record["dpid"]), int(record["port_no"])
        except UNREADABLE:
            return True
        return self._core.vlan_ports.has(*place, vlan_id)
