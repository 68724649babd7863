"""How short of free entries a table is, in four states that are left at more room than they are entered at.

The states are those of a hypervisor's memory (I. Banerjee et al., "VMware ESX Memory Resource Management: Swap",
VMware Technical Journal, section 2), their bounds parts of a table.
"""

from __future__ import annotations

from enum import IntEnum


class TableRoom(IntEnum):
    """How short of free entries a table is; the higher, the shorter."""

    HIGH = 0
    SOFT = 1
    HARD = 2
    LOW = 3


ENTERED_BELOW_PCT = {TableRoom.SOFT: 4.0, TableRoom.HARD: 2.0, TableRoom.LOW: 1.0}
"""Free entries of a table below which it is in a state, in percent."""

LEFT_ABOVE_PCT = {TableRoom.SOFT: 6.0, TableRoom.HARD: 3.0, TableRoom.LOW: 1.5}
"""Free entries above which it is no more."""

FREED_PCT = LEFT_ABOVE_PCT[TableRoom.SOFT]
"""Free entries that there are to be again once groups leave for want of room."""


def is_short(free: float, capacity: float) -> bool:
    """Tell whether a table that was not short of free entries is now."""
    return 100 * free < ENTERED_BELOW_PCT[TableRoom.SOFT] * capacity or capacity <= 0


def next_room(before: TableRoom, free: float, capacity: float) -> TableRoom:
    """Return the state of a table of so many entries with so many free, which was in another before."""
    free_pct = 100 * free / capacity if capacity > 0 else 0.0
    room = max((state for state, bound in ENTERED_BELOW_PCT.items() if free_pct < bound), default=TableRoom.HIGH)
    while before > room and free_pct > LEFT_ABOVE_PCT[before]:
        before = TableRoom(before - 1)
    return max(room, before)
