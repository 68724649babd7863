"""How a stage of the multicast core tells the next one what follows from what it was told."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol, TypeAlias

from controller.config.policy import Policy
from controller.datapath.lanes import Urgency

Perform: TypeAlias = Callable[[Iterable[Any]], None]
"""Takes effects of the core, in order."""

PolicyInForce: TypeAlias = Callable[[], Policy]
"""Returns the policy, which may be another one at each call."""


class Apply(Protocol):
    """Has done what followed in the membership of a domain."""

    def __call__(
        self, effects: Iterable[Any], now: float, urgency: Urgency = Urgency.PROMPT, vlan_id: int = 0
    ) -> None:
        """Take the effects."""


class GroupChanged(Protocol):
    """Takes note that a group changed, and who is known of it at a switch."""

    def __call__(self, group: bytes, now: float, dpid: int | None = None) -> None:
        """Have it kept and shown."""
