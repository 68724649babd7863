"""Bounds of the aliases of groups, and who has how many of the pool."""

from __future__ import annotations

from typing import NamedTuple

MAX_ALIASES = 15
"""Aliases of one group: of 16 tree versions its own tree has one."""

IDLE_S = 600.0
"""Time without traffic after which an alias goes back to the pool."""


class AliasesUsed(NamedTuple):
    """So many of the pool are the further trees of groups."""

    number: int


class FlowsUsed(NamedTuple):
    """So many of the pool are ways of large flows of packets to one host."""

    number: int
