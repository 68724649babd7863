"""What another policy changes in a running core: settings at once, members and senders in slices.

Whoever comes meanwhile is judged by the new policy. Members and senders that wait for their slice keep what they
have, so that nobody whom both policies admit is ever cut off.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, Protocol

from controller.admission.concern import Concern
from controller.config.policy import Policy, Role
from controller.datapath.lanes import Urgency
from controller.membership.core import MembershipCore
from controller.multicast.events import PolicyLoaded
from controller.multicast.flood_guard import FloodGuard
from controller.multicast.gate import Gate
from controller.multicast.operator import Operator
from controller.multicast.sections import MulticastSections
from controller.multicast.senders import SenderTable
from controller.multicast.settings import membership_limits, membership_settings
from controller.rules.installer import Installer

SLICE_STEPS = 256
"""Members, senders and hosts that are looked at in one go, with nothing to change; some 3 ms."""

CHANGE_STEPS = 32
"""What one that changes counts for."""

BUILT_BY = ("tree", "seed", "default_rate_bps")
"""Settings that all trees are built anew for."""


class Owner(Protocol):
    """What has another policy, as the core around the follower has it."""

    policy: Policy
    sections: MulticastSections
    gate: Gate
    installer: Installer
    flood_guard: FloodGuard
    senders: SenderTable
    membership: MembershipCore
    operator: Operator

    def apply(self, effects: Iterable[Any], now: float, urgency: Urgency = Urgency.PROMPT) -> None:
        """Take what followed in membership, and have it done."""

    def trees_wanted(self, now: float) -> None:
        """Build all trees anew as the policy wants them now."""

    def judge_on(self, now: float) -> None:
        """Go on with the next slice of members and senders when what else waits has had its turn."""


class PolicyFollower:
    """Has a core go by another policy.

    A policy that comes in the midst of another begins anew: what either of them concerns is looked at.
    """

    def __init__(self, core: Owner) -> None:
        self._core = core
        self._concern = Concern()
        self._steps: Iterator[list[Any]] | None = None
        self._now = 0.0

    @property
    def is_under_way(self) -> bool:
        """Tell whether members or senders wait to be judged by the policy in force."""
        return self._steps is not None

    def policy_loaded(self, event: PolicyLoaded, now: float) -> None:
        """Take another policy."""
        core, policy = self._core, event.policy
        core.sections.policy_loaded(policy)
        before, core.policy = core.policy, policy
        limits, multicast = policy.limits, policy.multicast
        reworded = core.gate.replace(policy, self._concern.add(before, policy))
        core.installer.use_policy(policy.check.interval_s, policy.edits)
        core.flood_guard.set_limits(limits)
        self._set_membership(before, reworded, now)
        core.senders.set_limits(
            limits.senders_per_port, limits.unknown_packets_per_second_per_port, multicast.sender_timeout_s
        )
        if any(getattr(multicast, name) != getattr(before.multicast, name) for name in BUILT_BY):
            core.trees_wanted(now)
        core.operator.static.policy_loaded(policy.static_members, now)
        if reworded:
            self._begin(now)

    def judge_all(self, now: float) -> None:
        """Ask admission anew about everybody."""
        self._concern.add_all()
        self._begin(now)

    def advance(self, now: float) -> None:
        """Do the next slice, and have the one after it done where there is one."""
        core, spent = self._core, 0
        effects: list[Any] = []
        self._now = now
        while self._steps is not None and spent < SLICE_STEPS:
            step = next(self._steps, None)
            if step is None:
                self._steps, self._concern = None, Concern()
            elif step:
                spent += CHANGE_STEPS
                effects += step
            spent += 1
        core.apply(effects, now, Urgency.BULK)
        if self._steps is not None:
            core.judge_on(now)

    def _begin(self, now: float) -> None:
        self._steps = self._all_steps()
        self.advance(now)

    def _all_steps(self) -> Iterator[list[Any]]:
        core, concern = self._core, self._concern
        if concern:
            core.gate.is_judging = True
            yield from core.membership.tell_refused_anew()
            yield from core.membership.reconsider(core.gate.would_admit, partial(_is_about, concern, Role.RECEIVER))
            if concern.of_role(Role.SENDER):
                yield from core.senders.reconsider(partial(_is_about, concern, Role.SENDER), lambda: self._now)
            core.gate.is_judging = False
        yield from core.membership.tell_refused_anew()

    def _set_membership(self, before: Policy, reworded: bool, now: float) -> None:
        core, policy = self._core, self._core.policy
        settings, limits = membership_settings(policy), membership_limits(policy)
        if (settings, limits) != (membership_settings(before), membership_limits(before)):
            core.apply(core.membership.set_settings(settings, limits, now), now)
        elif reworded:
            core.apply(core.membership.reconsider_routers(now), now)


def _is_about(concern: Concern, role: Role, group: bytes) -> bool:
    return concern.about(group, role)
