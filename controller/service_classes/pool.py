"""The pool of aliases: which group has which tree versions, and what is under way."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from controller.service_classes.effects import Bind, Effect, Unbind
from controller.service_classes.transfers import Transfer

MAX_ALIASES = 15
"""Aliases of one group: versions 1 to 15 of its tree, the base's being 0."""

IDLE_S = 600.0
"""Time without traffic after which an alias goes back to the pool."""


class Binding(NamedTuple):
    """A tree version that a group has, as it is kept over a restart."""

    group: str
    version: int


class _Alias:
    """What is known of a bound alias, or of one that is being bound or unbound."""

    __slots__ = ("is_leaving", "is_settled", "receiver", "used_s")

    def __init__(self, now_s: float) -> None:
        self.used_s = now_s
        self.is_settled = False
        self.is_leaving = False
        self.receiver: str | None = None


class AliasPool:
    """Aliases of a fabric, `size` in all.

    An alias that is taken from a group counts as in use until its removal has been confirmed; only then is it bound
    elsewhere, so that no more trees than `size` stand at any time.
    """

    def __init__(self, size: int, bindings: Iterable[Binding] = (), now_s: float = 0.0) -> None:
        self._size = size
        self._aliases: dict[Binding, _Alias] = {}
        self._of_group: dict[str, list[int]] = {}
        self._last_action_s: dict[str, float] = {}
        for binding in bindings:
            self._add(binding, now_s).is_settled = True

    @property
    def free(self) -> int:
        """How many aliases no group has or is promised."""
        return self._size - len(self._aliases)

    def bindings(self) -> list[Binding]:
        """Return what groups have, or are about to have, for the journal."""
        return [binding for binding, alias in self._aliases.items() if not alias.is_leaving]

    def versions(self, group: str) -> Sequence[int]:
        """Return the versions of the trees that senders of a group may use, the base's first."""
        usable = (v for v in self._of_group.get(group, ()) if self._is_usable(Binding(group, v)))
        return [0, *usable]

    def is_changing(self, group: str) -> bool:
        """Tell whether a tree of a group is being bound or unbound."""
        return any(
            not alias.is_settled or alias.is_leaving
            for version in self._of_group.get(group, ())
            if (alias := self._aliases[Binding(group, version)])
        )

    def last_action_s(self, group: str) -> float | None:
        """Return when a group last got or gave a tree, None where it never did."""
        return self._last_action_s.get(group)

    def transfer(self, transfer: Transfer, now_s: float) -> list[Effect]:
        """Return what to do for a transfer: bind a free alias, or take one from its donor first.

        Raises
        ------
        ValueError
            The pool is empty, the donor has no alias to give, or the receiver has all versions.
        """
        if len(self._of_group.get(transfer.receiver, ())) >= MAX_ALIASES:
            raise ValueError(f"{transfer.receiver} has {MAX_ALIASES} aliases already")
        if transfer.donor is None:
            if self.free <= 0:
                raise ValueError("no alias is free")
            self._last_action_s[transfer.receiver] = now_s
            return [self._bind(transfer.receiver, now_s)]
        effect = self.release(transfer.donor, now_s)
        self._aliases[Binding(transfer.donor, effect.version)].receiver = transfer.receiver
        self._last_action_s[transfer.receiver] = now_s
        return [effect]

    def release(self, group: str, now_s: float) -> Unbind:
        """Return what to do to take a group's alias that was bound last (ValueError where it has none to give)."""
        usable = [v for v in self.versions(group)[1:] if self._aliases[Binding(group, v)].is_settled]
        if not usable:
            raise ValueError(f"{group} has no alias to give")
        self._last_action_s[group] = now_s
        return self._unbind(Binding(group, usable[-1]))

    def bound(self, binding: Binding) -> None:
        """Take it that all steps of a bind are done."""
        self._aliases[binding].is_settled = True

    def unbound(self, binding: Binding, now_s: float) -> list[Effect]:
        """Take it that all steps of an unbind are done; return what to do for the group that gets the alias."""
        receiver = self._aliases.pop(binding).receiver
        versions = self._of_group[binding.group]
        versions.remove(binding.version)
        if not versions:
            del self._of_group[binding.group]
        if receiver is None or len(self._of_group.get(receiver, ())) >= MAX_ALIASES:
            return []
        return [self._bind(receiver, now_s)]

    def used(self, binding: Binding, now_s: float) -> None:
        """Take it that an alias carried traffic."""
        self._aliases[binding].used_s = now_s

    def return_idle(self, now_s: float) -> list[Effect]:
        """Return what to do with aliases that carried nothing for `IDLE_S`: they go back to the pool."""
        idle = [
            binding
            for binding, alias in self._aliases.items()
            if alias.is_settled and not alias.is_leaving and now_s - alias.used_s >= IDLE_S
        ]
        for binding in idle:
            self._last_action_s[binding.group] = now_s
        return [self._unbind(binding) for binding in idle]

    def forget(self, group: str) -> None:
        """Forget when a group that is gone last got or gave a tree."""
        self._last_action_s.pop(group, None)

    def _is_usable(self, binding: Binding) -> bool:
        return not self._aliases[binding].is_leaving

    def _bind(self, group: str, now_s: float) -> Bind:
        taken = self._of_group.get(group, ())
        version = next(v for v in range(1, MAX_ALIASES + 1) if v not in taken)
        self._add(Binding(group, version), now_s)
        return Bind(group, version)

    def _add(self, binding: Binding, now_s: float) -> _Alias:
        alias = self._aliases[binding] = _Alias(now_s)
        self._of_group.setdefault(binding.group, []).append(binding.version)
        return alias

    def _unbind(self, binding: Binding) -> Unbind:
        self._aliases[binding].is_leaving = True
        return Unbind(*binding)
