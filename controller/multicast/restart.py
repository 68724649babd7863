"""What an earlier run left is put back, a slice at a time, before the first switch connects.

The time of grace for what is on switches begins when that has ended. A core that follows another controller's log is
in such a restart all the time: it knows of no switch, and time stands still in it until it leads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from controller.effects import Notice
from controller.events import JournalLost, SwitchesDrained
from controller.kernel.domains import domain_of
from controller.kernel.vlan_ports import VlanPorts
from controller.log import LogEntry
from controller.membership.journal import postpone
from controller.multicast.callbacks import Perform
from controller.multicast.campaigns import Campaigns
from controller.multicast.due import Grace
from controller.multicast.edge_ports import EdgePorts
from controller.multicast.events import JournalRead, LeadTaken, LogFollowed, LogRead
from controller.multicast.fabric import FabricFollower
from controller.multicast.following import GROUP_COST, MEMBER_COST, SENDER_COST, Following
from controller.multicast.former_journal import read_records
from controller.multicast.groups import GroupPlane
from controller.multicast.journal import MulticastJournal
from controller.multicast.membership_effects import MembershipEffects
from controller.multicast.memberships import Memberships
from controller.multicast.operator import Operator
from controller.multicast.operator_records import OperatorRecords
from controller.multicast.pending_writes import PendingWrites
from controller.multicast.registered import RegisteredGroups
from controller.multicast.restored import LogReader, Restored, RestoredGroup, is_in_domain
from controller.multicast.senders import SenderTable
from controller.multicast.swapping import Swapping
from controller.multicast.switches import Switches
from topology.live import LiveFabric

_TOLD_FOLLOWING = (Notice, SwitchesDrained)

SLICE_COST = 250
"""What is done in one turn, some milliseconds; an entry that is read costs 1, and what follows more."""

TOPOLOGY_COST = 2


class Restart:
    """Gives a core what it knew, but for what was heard in VLANs that the policy does not put its port in any more.

    `handlers` are those of the events that tell of it. `due_s` is when `advance` goes on, None where all is put back.
    `follows` tells whether the core follows another controller's log, and does not lead: time stands at
    `stands_at_s` in it then. `now` is the time outside, which the core keeps.
    """

    def __init__(
        self,
        make_following: Callable[[], Following],
        fabric: LiveFabric,
        switches: Switches,
        topology: FabricFollower,
        vlan_ports: VlanPorts,
        plane: GroupPlane,
        swapping: Swapping,
        registered: RegisteredGroups,
        memberships: Memberships,
        operator: Operator,
        records: OperatorRecords,
        campaigns: Campaigns,
        senders: SenderTable,
        edge_ports: EdgePorts,
        following_members: MembershipEffects,
        journal: MulticastJournal,
        pending_writes: PendingWrites,
        grace: Grace,
        perform: Perform,
    ) -> None:
        self._make_following = make_following
        self._fabric = fabric
        self._switches = switches
        self._topology = topology
        self._vlan_ports = vlan_ports
        self._plane = plane
        self._swapping = swapping
        self._registered = registered
        self._memberships = memberships
        self._operator = operator
        self._records = records
        self._campaigns = campaigns
        self._senders = senders
        self._edge_ports = edge_ports
        self._following_members = following_members
        self._journal = journal
        self._pending_writes = pending_writes
        self._grace = grace
        self._perform = perform
        self.due_s: float | None = None
        self.now = 0.0
        self.follows = False
        self.stands_at_s = 0.0
        self._following = make_following()
        self._is_taken = False
        self._steps: Iterator[int] = iter(())
        self.handlers: dict[type, Callable[[Any, float], None]] = {
            LogRead: self._log_read,
            LogFollowed: self._log_followed,
            LeadTaken: self._lead_taken,
            JournalRead: self._journal_read,
            JournalLost: self._journal_lost,
        }

    def _journal_lost(self, _event: JournalLost, now: float) -> None:
        """Have the log written anew, but not from what is half put back: who keeps it says so again."""
        if not self.is_under_way:
            self._pending_writes.begin_anew(now)

    @property
    def is_under_way(self) -> bool:
        """Whether something is still to be put back, or may be told yet by the controller that leads."""
        return self.due_s is not None or self.follows

    def told(self, effects: list[Any]) -> list[Any]:
        """Return what is done of what followed in a core that follows: its edits and its words go nowhere.

        Which switches are drained others in the process are to know then too, who have no log of their own.
        """
        return [effect for effect in effects if type(effect) in _TOLD_FOLLOWING]

    def advance(self) -> None:
        """Put the next slice back, or take the next slice of what is followed in."""
        self.due_s = self.now
        spent = 0
        for cost in self._steps:
            spent += cost
            if spent >= SLICE_COST:
                return
        self.due_s = None
        if self.follows and not self._is_taken:
            return
        self.follows = False
        self._grace.begin(self.now)

    def switch_connected(self, dpid: int, now: float) -> None:
        """Serve ports to hosts at once where they are known as of now, and ask their hosts."""
        if self._is_taken:
            for port_no in self._fabric.edge_ports(dpid):
                self._edge_ports.added(dpid, port_no, now)

    def adopt_again(self) -> None:
        """Have the trees of the log in the place of those that were just built."""
        if self.follows:
            self._following.adopt_again()
            self._follow()

    def _log_followed(self, event: LogFollowed, _now: float) -> None:
        self._following.take(event.entries)
        self._follow()

    def _lead_taken(self, _event: LeadTaken, _now: float) -> None:
        self._is_taken = True
        self._follow()

    def _follow(self) -> None:
        """Have what waits taken in."""
        if not self.follows:
            self.follows, self.stands_at_s = True, self.now
        if self.due_s is None:
            self._steps = self._follow_steps()
            self.advance()

    def _follow_steps(self) -> Iterator[int]:
        """Take in what is followed; where this core leads then, have time go on for all that it knows."""
        while self._following:
            yield self._following.step(self.stands_at_s)
        if not self._is_taken:
            return
        later_s = self.now - self.stands_at_s
        for _, membership in self._memberships.all():
            for _ in postpone(membership, later_s):
                yield 1
        self._senders.postpone(later_s)
        yield from self._following.end(self.now)
        self._following = self._make_following()

    def _log_read(self, event: LogRead, _now: float) -> None:
        self._steps = self._log_steps(event.entries)
        self.advance()

    def _journal_read(self, event: JournalRead, _now: float) -> None:
        self._steps = self._journal_steps(event.records)
        self.advance()

    def _log_steps(self, entries: tuple[LogEntry, ...]) -> Iterator[int]:
        """Put back what the log says; what each step costs is yielded."""
        reader = LogReader(self._journal.fields)
        for entry in entries:
            reader.read(entry)
            yield 1
        restored = reader.restored(self._operator.static.groups(), self._registered.carrier)
        self._journal.trees_known(restored.groups)
        for entry in reader.foreign:
            self._journal.foreign.take(entry)
        yield from self._restore(restored, "entries of the log")
        self._perform(self._journal.foreign_told())
        for entry in entries:
            self._journal.was_read(entry, self.now)
            yield 1
        if restored.faults:
            self._pending_writes.begin_anew(self.now)

    def _journal_steps(self, records: tuple[dict[str, Any], ...]) -> Iterator[int]:
        """Take over the journal of a version before, all of which the log is told."""
        restored = read_records(records, self._operator.static.groups())
        yield from self._restore(restored, "records of the journal")
        self._pending_writes.begin_anew(self.now)

    def _restore(self, restored: Restored, what: str) -> Iterator[int]:
        self._operator.restore(restored.operator, self.now)
        self._records.restore(restored.operator)
        self._campaigns.restore(restored.operator.campaign, restored.operator.campaign_switches)
        self._journal.assume(restored.topology)
        for event in restored.topology:
            self._topology.apply(event, self.now)
            yield TOPOLOGY_COST
        for dpid, port_no in sorted(self._switches.edges):  # none is served before discovery has confirmed it
            self._edge_ports.suspended(dpid, port_no, self.now)
            yield TOPOLOGY_COST
        for vlan_id, routers in restored.routers.items():
            known = [record for record in routers if is_in_domain(record, vlan_id, self._vlan_ports)]
            self._following_members.apply(
                self._memberships.of(vlan_id).restore(known, self.now), self.now, vlan_id=vlan_id
            )
        self._plane.covers.restore(restored.covers)
        for group in self._receivers_first(restored.groups):
            yield from self._restore_group(group)
        if restored.faults:
            text = f"{restored.faults} {what} cannot be read: their hosts must report again."
            self._perform([Notice("journal-faulty", text, (("records", restored.faults),))])

    def _restore_group(self, group: RestoredGroup) -> Iterator[int]:
        """Put back a group: its members and senders, then the tree that it had, whose entries it stands for."""
        address = group.address
        vlan_id = domain_of(address)
        self._swapping.restore(address, group.is_out)
        self._plane.aliases.restore(address, [(alias.number, alias.tree_version) for alias in group.aliases])
        for record in group.members:
            if is_in_domain(record, vlan_id, self._vlan_ports):
                with self._swapping.slots.putting_back(self._registered.carrier(address), group.was_served):
                    effects = self._memberships.of(vlan_id).restore((record,), self.now)
                self._following_members.apply(effects, self.now, vlan_id=vlan_id)
            yield MEMBER_COST
        for key, sender in group.senders:
            if self._vlan_ports.has(key.dpid, key.port_no, vlan_id):
                self._perform(self._senders.restore(address, key, sender, self.now))
            yield SENDER_COST
        self._perform(self._plane.adopt(address, group.links, group.tree_version, self.now, apart=group.apart))
        for alias in group.aliases:
            self._perform(self._plane.adopt(address, alias.links, alias.tree_version, self.now, alias.number))
        yield GROUP_COST

    def _receivers_first(self, groups: Iterable[RestoredGroup]) -> list[RestoredGroup]:
        """Return groups, those first whose members get another one, which so has them before its tree is adopted.

        Of either kind those come first that were served, so that they have their slots before who was refused.
        """
        carrier = self._registered.carrier
        return sorted(groups, key=lambda group: (carrier(group.address) == group.address, not group.was_served))
