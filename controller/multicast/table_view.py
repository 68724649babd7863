"""What is shown of flow tables that groups have entries in, where these may be out of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from controller.multicast.group import Group
from controller.multicast.groups import GroupPlane
from controller.multicast.swapping import Swapping
from controller.multicast.table_limits import UNLIMITED, place_of
from controller.rules.compile_cover import is_covered
from controller.snapshot.log import Document


class TableFigures(NamedTuple):
    """A flow table: how many entries it has room for, how many stay, None where nobody knows, and those of groups.

    `groups` are in it, and `state` says how short it is of free entries.
    """

    dpid: int
    table: int
    capacity: int | None
    pinned: int | None
    entries: int
    groups: int
    state: str | None


class TableView:
    """The tables of the switches that are part of the fabric; none while all groups are in."""

    def __init__(self, plane: GroupPlane, swapping: Swapping) -> None:
        self._plane = plane
        self._swapping = swapping

    def figures(self) -> Iterator[tuple[int, TableFigures]]:
        """Yield what each table has room for, and what is in it, with the number of the table among all."""
        swapping, accounts, graph = self._swapping, self._swapping.accounts, self._plane.forest.graph
        swapping.catch_up()
        for number, table in accounts.tables.tables.items() if swapping.is_used else ():
            place = place_of(number)
            if place[0] not in graph:
                continue
            count, groups = accounts.limits.of(number), len(table.groups.urn)
            if count.limit < UNLIMITED:
                yield number, TableFigures(*place, *count, table.used, groups, table.room.name.lower())
            else:
                yield number, TableFigures(*place, None, None, table.used, groups, None)

    def tables(self) -> dict[int, Document]:
        """Return the same as documents, and how many groups with hosts at the switch are covered and out."""
        found = dict(self.figures())
        groups = self._plane.groups.values() if found else ()
        covered = _by_switch(group for group in groups if is_covered(group.tree_version))
        out = _by_switch(group for group in groups if group.is_out)
        documents = {}
        for number, each in found.items():
            counts = {"groups_covered": covered[each.dpid], "groups_out": out[each.dpid]}
            documents[number] = {**each._asdict(), **counts, **self._used(number, each.dpid)}
        return documents

    def _used(self, number: int, dpid: int) -> Document:
        """Return what packets and tenants have of a table."""
        swapping = self._swapping
        hits, faults = swapping.readings.hits[dpid], swapping.faults[dpid]
        return {"hits": hits, "faults": faults, "tenants": self._tenants(number)}

    def tenants(self) -> dict[str | None, tuple[int, float]]:
        """Return how many entries each tenant has in all tables, and is entitled to."""
        found: dict[str | None, tuple[int, float]] = {}
        for number in dict(self.figures()):
            for each in self._tenants(number):
                entries, entitled = found.get(each["tenant"], (0, 0.0))
                found[each["tenant"]] = (entries + each["entries"], entitled + each["entitled"])
        return found

    def _tenants(self, number: int) -> list[Document]:
        """Return what each tenant has of a table, where these share it; the name of those of none is None."""
        return [
            {**each._asdict(), "tenant": each.tenant or None, "entitled": round(each.entitled, 1)}
            for each in self._swapping.accounts.tables.tenants(number)
        ]


def _by_switch(groups: Iterable[Group]) -> Counter[int]:
    """Return how many of some groups have members or senders at each switch."""
    counts: Counter[int] = Counter()
    for group in groups:
        counts.update({*group.interests, *(key.dpid for key in group.senders)})
    return counts


def table_id(number: int) -> str:
    """Return how a table is named: its switch and its number there."""
    return "{}/{}".format(*place_of(number))
