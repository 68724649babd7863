"""What is shown of flow tables that groups have entries in, where these may be out of them."""

from __future__ import annotations

from collections import Counter

from controller.multicast.groups import GroupPlane
from controller.multicast.swapping import Swapping
from controller.multicast.table_limits import UNLIMITED, place_of
from controller.snapshot.log import Document


class TableView:
    """The tables of all switches; none while all groups are in."""

    def __init__(self, plane: GroupPlane, swapping: Swapping) -> None:
        self._plane = plane
        self._swapping = swapping

    def tables(self) -> dict[int, Document]:
        """Return what each table has room for, and what is in it, by the number of the table among all."""
        swapping = self._swapping
        if not swapping.is_used:
            return {}
        out = self._out_by_switch()
        found: dict[int, Document] = {}
        for number, table in swapping.tables.tables.items():
            dpid, table_no = place_of(number)
            count = swapping.limits.of(number)
            is_limited = count.limit < UNLIMITED
            found[number] = {
                "dpid": dpid,
                "table": table_no,
                "capacity": count.limit if is_limited else None,
                "pinned": count.pinned if is_limited else None,
                "entries": table.used,
                "groups": len(table.groups.urn),
                "groups_out": out[dpid],
                "state": table.room.name.lower() if is_limited else None,
            }
        return found

    def _out_by_switch(self) -> Counter[int]:
        """Return how many groups with members or senders at each switch are out."""
        counts: Counter[int] = Counter()
        for group in self._plane.groups.values():
            if group.is_out:
                counts.update({*group.interests, *(key.dpid for key in group.senders)})
        return counts


def table_id(number: int) -> str:
    """Return how a table is named: its switch and its number there."""
    return "{}/{}".format(*place_of(number))
