"""Groups that were refused for want of room, or of a slot to be out in, and are served once there is some."""

from __future__ import annotations

from controller.kernel.domains import address_of, domain_of
from controller.multicast.callbacks import Apply, Perform
from controller.multicast.memberships import Memberships
from controller.multicast.preemption import Preemption
from controller.multicast.registered import RegisteredGroups
from controller.multicast.room import Room
from controller.multicast.senders import SenderTable
from controller.multicast.static_members import StaticMembers
from controller.multicast.swap_slots import SwapSlots

ROOM_BATCH = 64
"""Groups that waited for room and are served in one go; others come first before the next ones."""


class WaitingGroups:
    """Gives groups that wait the room, and the slots, that there are."""

    def __init__(
        self,
        room: Room,
        slots: SwapSlots,
        registered: RegisteredGroups,
        memberships: Memberships,
        senders: SenderTable,
        static: StaticMembers,
        preemption: Preemption,
        apply: Apply,
        perform: Perform,
    ) -> None:
        self._room = room
        self._slots = slots
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
                self._reconsider(name, now)
                self._static.room_made(name, now)
            self._perform(self._senders.room_made(group, now))
        slots = self._slots
        if slots.is_due:
            slots.settle()
            for group in slots.next_waiting(ROOM_BATCH):
                for name in self._registered.asked_for_as(group):
                    self._reconsider(name, now)
            slots.settle()
            slots.is_due = slots.waits()

    def is_going_on(self) -> bool:
        """Tell whether some that wait can be served at once, after what else there is to do."""
        return self._room.waits() or self._slots.is_due

    def is_forgetful(self) -> bool:
        """Tell whether more waited than are remembered, and all that are have been served."""
        room, slots = self._room, self._slots
        return (room.overflowed and not room.waiting_count) or (slots.overflowed and not slots.waiting_count)

    def take_forgotten(self) -> bool:
        """Tell the same, and have all of them be remembered that are refused from here on."""
        if not self.is_forgetful():
            return False
        for each in (self._room, self._slots):
            if not each.waiting_count:
                each.overflowed = False
        return True

    def _reconsider(self, name: bytes, now: float) -> None:
        """Judge the members of a group anew that are refused."""
        vlan_id = domain_of(name)
        if self._memberships.is_known(vlan_id):
            effects = self._memberships.of(vlan_id).reconsider_refused(address_of(name), now)
            self._apply(effects, now, vlan_id=vlan_id)
