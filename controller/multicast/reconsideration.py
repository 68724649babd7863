"""Whoever was judged by another policy than the one in force is judged anew, in slices.

Whoever comes meanwhile is judged by the new policy. Members and senders that wait for their slice keep what they
have, so that nobody whom both policies admit is ever cut off.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from controller.admission.concern import Concern
from controller.config.policy import Role
from controller.datapath.lanes import Urgency
from controller.kernel.deadlines import Deadlines
from controller.kernel.domains import address_of
from controller.multicast.due import Due
from controller.multicast.gate import Gate
from controller.multicast.groups import GroupPlane
from controller.multicast.membership_effects import MembershipEffects
from controller.multicast.memberships import InDomain, Memberships
from controller.multicast.senders import SenderTable
from controller.multicast.vlan_gate import VlanGate

SLICE_STEPS = 256
"""Members, senders and hosts that are looked at in one go, with nothing to change; some 3 ms."""

CHANGE_STEPS = 32
"""What one that changes counts for."""


class Reconsideration:
    """Asks admission anew about members and senders; one that begins in the midst of another looks at what either
    of them concerns, which `concern` collects.
    """

    def __init__(
        self,
        gate: Gate,
        memberships: Memberships,
        senders: SenderTable,
        plane: GroupPlane,
        following_members: MembershipEffects,
        due: Deadlines[Due],
    ) -> None:
        self._gate = gate
        self._memberships = memberships
        self._senders = senders
        self._plane = plane
        self._following_members = following_members
        self._due = due
        self.concern = Concern()
        self._steps: Iterator[InDomain] | None = None
        self._now = 0.0

    @property
    def is_under_way(self) -> bool:
        """Tell whether members or senders wait to be judged by the policy in force."""
        return self._steps is not None

    def judge_all(self, now: float) -> None:
        """Ask admission anew about everybody."""
        self.concern.add_all()
        self.begin(now)

    def advance(self, now: float) -> None:
        """Do the next slice, and have the one after it done where there is one."""
        spent = 0
        followed: dict[int, list[Any]] = {}
        self._now = now
        while self._steps is not None and spent < SLICE_STEPS:
            step = next(self._steps, None)
            if step is None:
                self._steps, self.concern = None, Concern()
            elif step.effects:
                spent += CHANGE_STEPS
                followed.setdefault(step.vlan_id, []).extend(step.effects)
            spent += 1
        for vlan_id, effects in followed.items():
            self._following_members.apply(effects, now, Urgency.BULK, vlan_id)
        if self._steps is not None:
            self._due.set(Due.JUDGE, now)

    def begin(self, now: float) -> None:
        """Judge what `concern` is about, beginning with the first slice now."""
        self._steps = self._all_steps()
        self.advance(now)

    def _all_steps(self) -> Iterator[InDomain]:
        concern = self.concern
        if concern:
            self._gate.is_judging = True
            yield from self._told_anew()
            for vlan_id, membership in self._memberships.all():
                gate = VlanGate(self._gate, vlan_id) if vlan_id else self._gate
                for effects in membership.reconsider(gate.would_admit, partial(_is_about, concern, Role.RECEIVER)):
                    yield InDomain(vlan_id, effects)
            if concern.of_role(Role.SENDER):
                for done in self._senders.reconsider(partial(_is_about, concern, Role.SENDER), lambda: self._now):
                    yield InDomain(0, done)  # type: ignore[arg-type]
            self._gate.is_judging = False
            for address in list(self._plane.groups):
                yield InDomain(0, self._plane.queues_changed(address, self._now))  # type: ignore[arg-type]
        yield from self._told_anew()

    def _told_anew(self) -> Iterator[InDomain]:
        for vlan_id, membership in self._memberships.all():
            for effects in membership.tell_refused_anew():
                yield InDomain(vlan_id, effects)


def _is_about(concern: Concern, role: Role, group: bytes) -> bool:
    return concern.about(address_of(group), role)
