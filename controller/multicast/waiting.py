"""Groups that were refused for want of room, and are served once there is some."""

from __future__ import annotations

from controller.kernel.domains import address_of, domain_of
from controller.multicast.callbacks import Apply, Perform
from controller.multicast.memberships import Memberships
from controller.multicast.preemption import Preemption
from controller.multicast.registered import RegisteredGroups
from controller.multicast.room import Room
from controller.multicast.senders import SenderTable
from controller.multicast.static_members import StaticMembers

ROOM_BATCH = 64
"""Groups that waited for room and are served in one go; others come first before the next ones."""


class WaitingGroups:
    """Gives groups that wait the room that there is."""

    def __init__(
        self,
        room: Room,
        registered: RegisteredGroups,
        memberships: Memberships,
        senders: SenderTable,
        static: StaticMembers,
        preemption: Preemption,
        apply: Apply,
        perform: Perform,
    ) -> None:
        self._room = room
        self._registered = registered
        self._memberships = memberships
        self._senders = senders
        self._static = static
        self._preemption = preemption
        self._apply = apply
        self._perform = perform

    def serve(self, now: float) -> None:
        """Serve groups that wait, as far as there is room now and no more than a batch of them."""
        self._preemption.settle(now)
        for group in self._room.next_waiting(ROOM_BATCH):
            for name in self._registered.asked_for_as(group):
                vlan_id = domain_of(name)
                if self._memberships.is_known(vlan_id):
                    membership = self._memberships.of(vlan_id)
                    self._apply(membership.reconsider_refused(address_of(name), now), now, vlan_id=vlan_id)
                self._static.room_made(name, now)
            self._perform(self._senders.room_made(group, now))
