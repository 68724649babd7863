"""Which groups the store of those out of the tables has room for: a join that it has none for is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeAlias

from controller.admission.host import Decision, HostLike
from controller.config.overcommit_settings import OFF, Overcommit, slot_claims
from controller.config.policy import Tenant
from controller.multicast.groups import GroupPlane
from controller.multicast.tenant_names import TenantNames
from controller.overcommit.slots import Slots, SlotView

NO_SLOT = "overcommit.store"
"""Stands for the rule that refuses the receivers of a group for which there is no slot."""

WAITING_BOUND = 65536
"""Refused groups that are remembered; those beyond are looked at when all of these have been served."""

SlotRefused: TypeAlias = Callable[[SlotView, int], None]
"""Takes note that a join was refused: what its tenant has, and how many slots there are in all."""


class SwapSlots:
    """Has each group with members take a slot, where groups may be out of the tables: that of who joins it first.

    Groups that only static members receive need none, for they stay in; nor do those that hosts only send to.

    Attributes
    ----------
    is_used
        Whether groups may be out.
    is_due
        Whether there is something to settle, or somebody who waits may be served.
    overflowed
        Whether more groups wait than are remembered.
    """

    def __init__(self, plane: GroupPlane, refused: SlotRefused) -> None:
        self.is_used = self.is_due = self.overflowed = False
        self._returning: bytes | None = None
        self._plane = plane
        self._refused = refused
        self._slots: Slots[bytes] = Slots()
        self._names = TenantNames()
        self._promised: dict[bytes, None] = {}
        self._waiting: dict[str, dict[bytes, None]] = {}
        self._ready: dict[bytes, None] = {}

    def use(self, policy: Overcommit, tenants: Sequence[Tenant]) -> None:
        """Go by another policy: groups that are there keep their slots, and those that wait are looked at anew."""
        if policy.mode == OFF:
            self._slots.clear()
            self._promised.clear()
        elif not self.is_used:
            self._slots.clear(address for address, group in self._plane.groups.items() if group.interests)
        self.is_used = policy.mode != OFF
        self._names = TenantNames((each.tenant for each in policy.tenants), tenants)
        self._slots.use(policy.store, slot_claims(policy))
        for waiting in self._waiting.values():
            self._ready.update(waiting)
        self._waiting.clear()
        self.is_due = True

    # Who asks

    def refuses(self, group: bytes, host: HostLike) -> bool:
        """Tell whether a group that a host joins has no slot and gets none; it is remembered then."""
        slots = self._slots
        if group in slots:
            return False
        tenant = self._names.of(host)
        if group != self._returning and not slots.has_room(tenant):
            self._wait(group, tenant)
            self._refused(slots.of(tenant), slots.store)
            return True
        slots.take(group, tenant)
        self._promised[group] = None
        self.is_due = True
        for waiting in self._waiting.values():
            if group in waiting:
                del waiting[group]
                self._ready[group] = None
        return False

    def refusal(self, group: bytes, host: HostLike) -> Decision | None:
        """Return why a group that a host joins gets no slot, None where it may have one."""
        tenant = self._names.of(host)
        if not self.is_used or group in self._slots or self._slots.has_room(tenant):
            return None
        return self.decision(host)

    def decision(self, host: HostLike) -> Decision:
        """Return what refuses a host for want of a slot."""
        tenant, kept, taken = self._slots.of(self._names.of(host))
        whose = f"tenant {tenant} has {taken}, and {kept} are kept for it" if tenant else "its host is of no tenant"
        reason = f"no slot is left of the {self._slots.store} for groups that may be out of the flow tables ({whose})"
        return Decision(False, NO_SLOT, reason)

    def _wait(self, group: bytes, tenant: str) -> None:
        if self.waiting_count < WAITING_BOUND:
            self._waiting.setdefault(tenant, {})[group] = None
        else:
            self.overflowed = True

    # Who is there

    def left(self, group: bytes) -> None:
        """Take it that a group has no members any more."""
        if group in self._slots and group not in self._promised:
            self._slots.give_back(group)
            self.is_due = True

    @contextmanager
    def putting_back(self, group: bytes, was_served: bool) -> Iterator[None]:
        """Have members of a group be put back: one that was served has its slot though there be none left."""
        self._returning = group if was_served else None
        try:
            yield
        finally:
            self._returning = None

    def settle(self) -> None:
        """Count what has members from now on: what was promised to others is free again."""
        promised, self._promised = self._promised, {}
        for address in promised:
            group = self._plane.groups.get(address)
            if group is None or not group.interests:
                self._slots.give_back(address)

    def settles_alone(self) -> bool:
        """Settle where nobody waits, so that nothing else is to be done; False where somebody does."""
        if self._ready or self._waiting:
            return False
        self.settle()
        self.is_due = False
        return True

    def waits(self) -> bool:
        """Tell whether a group that waits can be served now."""
        return bool(self._ready) or any(self._slots.has_room(tenant) for tenant in self._waiting)

    def next_waiting(self, count: int) -> Iterator[bytes]:
        """Yield up to `count` groups that can be served now, each after the ones before were dealt with."""
        for _ in range(count):
            served = (groups for tenant, groups in self._waiting.items() if self._slots.has_room(tenant))
            waiting = self._ready or next(served, {})
            if not waiting:
                return
            group = next(iter(waiting))
            del waiting[group]
            for tenant in [tenant for tenant, groups in self._waiting.items() if not groups]:
                del self._waiting[tenant]
            yield group

    @property
    def waiting_count(self) -> int:
        """How many groups wait."""
        return len(self._ready) + sum(map(len, self._waiting.values()))

    def views(self) -> list[SlotView]:
        """Return what slots each tenant has, those of none under an empty name; nothing while all groups are in."""
        return self._slots.views() if self.is_used else []
