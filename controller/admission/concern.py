"""Which groups a change of the policy concerns: all others are decided as before."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from controller.config.policy import HOST_ROLES, Policy, Role, Rule
from controller.config.prefix_masks import PrefixMasks
from controller.config.registrations import Registration
from controller.config.terms import HostTerm

_BITS: Mapping[Role, int] = {role: 1 << number for number, role in enumerate(Role)}


class Concern:
    """The groups, by role, of which a host may be decided otherwise by another policy; it grows with each `add`.

    It may name groups whose decisions stay, but never leaves one out whose decisions change.
    """

    def __init__(self) -> None:
        self._every_group = 0
        self._by_prefix = PrefixMasks()
        self._named = 0

    @classmethod
    def everything(cls) -> Concern:
        """Return the concern of every group, as receivers and senders have it."""
        concern = cls()
        concern.add_all()
        return concern

    def add_all(self) -> None:
        """Take every group in, for receivers and senders."""
        for role in HOST_ROLES:
            self.add_role(role)

    def add_role(self, role: Role) -> None:
        """Take every group in for one role."""
        self._every_group |= _BITS[role]

    def add(self, before: Policy, after: Policy) -> bool:
        """Take in what a policy may decide otherwise than another; False where that is nothing.

        These are the groups of rules that came, went, moved or changed. Rules before the first that differs and
        behind the last are not looked at, for their order stays. The groups of registrations that came, went or
        changed are concerned for senders, although the policy's rules decide as before.
        """
        if before.default_allow != after.default_allow:
            self.add_all()
        tenants = _changed_tenants(before, after)
        old, new = before.rules, after.rules
        first, shorter = 0, min(len(old), len(new))
        while first < shorter and _is_same(old[first], new[first], tenants):
            first += 1
        last = 0
        while last < shorter - first and _is_same(old[-1 - last], new[-1 - last], tenants):
            last += 1
        for rules in (old, new):
            self._add_rules(rules[first : len(rules) - last])
        self._add_registrations({*before.registrations.entries} ^ {*after.registrations.entries})
        return before.default_allow != after.default_allow or first < max(len(old), len(new)) - last

    def __bool__(self) -> bool:
        return bool(self._every_group or self._named)

    def of_role(self, role: Role) -> bool:
        """Tell whether some group is concerned for a role."""
        return bool((self._every_group | self._named) & _BITS[role])

    def about(self, group: bytes, role: Role) -> bool:
        """Tell whether a group (4 or 16 bytes) is concerned for a role."""
        bit = _BITS[role]
        if self._every_group & bit:
            return True
        return bool(self._named & bit and self._by_prefix.holding(group) & bit)

    def _add_registrations(self, entries: Iterable[Registration]) -> None:
        """Take in groups that nobody may send any more in VLANs that get them from another, or may again."""
        mask = _BITS[Role.SENDER]
        for entry in entries:
            for prefix in entry.groups:
                self._by_prefix.add(prefix, mask)
                self._named |= mask

    def _add_rules(self, rules: Iterable[Rule]) -> None:
        for rule in rules:
            mask = 0
            for role in rule.roles:
                mask |= _BITS[role]
            if not rule.groups:
                self._every_group |= mask
            for prefix in rule.groups:
                self._by_prefix.add(prefix, mask)
                self._named |= mask


def _is_same(old: Rule, new: Rule, tenants: frozenset[str]) -> bool:
    return old == new and tenants.isdisjoint(new.tenants)


def _changed_tenants(before: Policy, after: Policy) -> frozenset[str]:
    """Return the names of the tenants that have other hosts."""
    if before.tenants is after.tenants:
        return frozenset()
    old, new = _hosts(before), _hosts(after)
    return frozenset(name for name in old.keys() | new.keys() if old.get(name) != new.get(name))


def _hosts(policy: Policy) -> dict[str, tuple[HostTerm, ...]]:
    return {tenant.name: tenant.hosts for tenant in policy.tenants}
