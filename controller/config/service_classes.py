"""Service classes of a policy: who is in each, how important it is, and what it shall have."""

from __future__ import annotations

from dataclasses import dataclass, field

from controller.config.terms import HostTerm, Prefix
from controller.service_classes.goals import Goal

_CLASS_SELECTORS = {f"cs{number}": 8 * number for number in range(8)}
_ASSURED = {f"af{class_}{drop}": 8 * class_ + 2 * drop for class_ in range(1, 5) for drop in range(1, 4)}

DSCP_NAMES = {**_CLASS_SELECTORS, **_ASSURED, "ef": 46, "va": 44, "le": 1}
"""Code points by name (RFC 2474, RFC 2597, RFC 3246, RFC 5865, RFC 8622)."""

MAX_DSCP = 63


@dataclass(frozen=True, slots=True)
class ServiceClass:
    """Groups and hosts with one importance, 1 to 6, and one goal at most; the first class that matches counts.

    Where `groups` is empty it is about every group and about packets to one host; where no host is named, about
    every host. `dscp` is the code point that its packets are given, None for none; `aliases` tells whether its
    groups may get and give trees.
    """

    name: str
    importance: int
    groups: tuple[Prefix, ...] = ()
    any_host: bool = False
    tenants: tuple[str, ...] = ()
    hosts: tuple[HostTerm, ...] = ()
    goal: Goal | None = None
    dscp: int | None = None
    aliases: bool = True
    line: int = field(default=0, compare=False)
