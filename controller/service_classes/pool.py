"""Bounds of the aliases of groups."""

from __future__ import annotations

MAX_ALIASES = 15
"""Aliases of one group: of 16 tree versions its own tree has one."""

IDLE_S = 600.0
"""Time without traffic after which an alias goes back to the pool."""
