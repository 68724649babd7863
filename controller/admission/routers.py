"""Which groups a multicast router may have, by the rules about its host in their order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from controller.admission.host import Decision
from controller.config.terms import Prefix

_EVERY_GROUP = {4: Prefix(b"\xe0\0\0\0", 4), 6: Prefix(b"\xff" + bytes(15), 8)}


@dataclass(frozen=True, slots=True)
class RouterGroups:
    """The groups of a router: whether each rule allows, and the prefixes that it names (none: every group)."""

    rules: tuple[tuple[bool, tuple[Prefix, ...]], ...]

    def __str__(self) -> str:
        """Return what the rules say in their order."""
        return ", ".join(
            f"{'allow' if allow else 'deny'} {' '.join(map(str, prefixes)) or 'every group'}"
            for allow, prefixes in self.rules
        )

    def __contains__(self, group: object) -> bool:
        """Tell whether the first rule about a group allows it."""
        assert isinstance(group, bytes)
        for allow, prefixes in self.rules:
            if not prefixes or any(prefix.contains(group) for prefix in prefixes):
                return allow
        return False

    def first_that_decides(self, family: int) -> int | None:
        """Return the position of the first rule that allows some group of a family, or denies all; None for none."""
        for position, (allow, prefixes) in enumerate(self.rules):
            if allow and _is_about(prefixes, family):
                return position
            if not allow and _is_about_all(prefixes, family):
                return position
        return None

    def holds_every_group(self, family: int) -> bool:
        """Tell whether every group of a family is allowed."""
        for allow, prefixes in self.rules:
            if _is_about(prefixes, family) and not allow:
                return False
            if allow and _is_about_all(prefixes, family):
                return True
        return False


class RouterDecision(NamedTuple):
    """Whether a host may be a multicast router, by which rule, and of which groups."""

    decision: Decision
    groups: RouterGroups


def _is_about(prefixes: tuple[Prefix, ...], family: int) -> bool:
    size = len(_EVERY_GROUP[family].network)
    return not prefixes or any(len(prefix.network) == size for prefix in prefixes)


def _is_about_all(prefixes: tuple[Prefix, ...], family: int) -> bool:
    every = _EVERY_GROUP[family]
    return not prefixes or any(
        prefix.length <= every.length and prefix.contains(every.network) for prefix in prefixes
    )
