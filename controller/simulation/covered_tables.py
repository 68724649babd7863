"""Groups that are silent go under covering trees where the tables of a fabric are short, and have their own again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import ceil
from typing import NamedTuple

from controller.overcommit.covers import GATHERED, CoverChoice, CoverNeed, copies_in_vain, sending_part
from controller.overcommit.tables import GroupTables
from controller.simulation.data_centre import DataCentre
from controller.simulation.fabric_tables import WholeTrees
from controller.simulation.groups import SimulatedGroups
from controller.trees.forest import Forest
from controller.trees.tree import TreeRole

AT_ONCE = 128
"""Groups that go under covering trees between two readings of counters, at most."""


class CoverFigures(NamedTuple):
    """What covering trees did, counted from the first packet on.

    Attributes
    ----------
    trees, covered
        Covering trees at the end, and groups under them then.
    went_under, left
        Times that a group went under one, and had its own tree again.
    packets
        Packets of groups under one.
    in_vain
        Copies of these over links to where no member is.
    fullest_pct
        What the fullest link is expected to carry in vain at the end, in percent of what it can.
    """

    trees: int
    covered: int
    went_under: int
    left: int
    packets: int
    in_vain: int
    fullest_pct: float


class CoverBuilder:
    """Builds covering trees over a fabric, by numbers of switches."""

    def __init__(self, centre: DataCentre) -> None:
        self._centre = centre
        self._forest = Forest(centre.graph.subgraph(centre.switches))
        self._count = 0

    def __call__(self, ends: frozenset[int], _queue_id: int | None) -> tuple[int, dict[int, set[int]]] | None:
        """Return the number and the links of another tree, None where it reaches not all."""
        self._count += 1
        number_of, key = self._centre.number, f"cover {self._count}"
        for at in sorted(ends):
            self._forest.join(key, self._centre.switches[at], TreeRole.RECEIVER)
        tree = self._forest.tree(key)
        if tree is None or tree.detached or not tree.adjacent:
            return None
        return self._count, {number_of[u]: {number_of[v] for v in near} for u, near in tree.adjacent.items()}


def needs_of(groups: SimulatedGroups) -> list[CoverNeed]:
    """Return by group what it sends and where, at whole rate: the first of its switches has the sender."""
    found = []
    for number, rate_bps in enumerate(groups.rates_bps.tolist()):
        first, *others = groups.terminals[groups.offsets[number] : groups.offsets[number + 1]].tolist()
        found.append(CoverNeed({first: rate_bps}, frozenset(others)))
    return found


class CoveredTrees(WholeTrees):
    """The controller's choice with covering trees: who is silent goes under one before anybody leaves for good.

    Parameters
    ----------
    centre
        The fabric, of whose links covering trees may carry `spurious_pct` percent in vain.
    tables, entries
        As those of `WholeTrees`.
    capacity
        What each table has room for, entries of covering trees included.
    needs
        By group what it sends when it does.
    """

    def __init__(
        self,
        centre: DataCentre,
        tables: GroupTables[int],
        entries: Sequence[Mapping[int, int]],
        capacity: int,
        needs: Sequence[CoverNeed],
        spurious_pct: float,
    ) -> None:
        super().__init__(tables, entries)
        self._capacity = capacity
        self._needs = needs
        self._switches = centre.switches
        self._graph = centre.graph
        self._choice: CoverChoice[int] = CoverChoice(self._capacity_bps)
        self._choice.use(spurious_pct)
        self._build = CoverBuilder(centre)
        self._inside: Counter[int] = Counter()
        self._vain: dict[int, int] = {}
        self._went_under = self._left = self._packets = self._in_vain = 0

    def _capacity_bps(self, u: int, v: int) -> float:
        return self._graph.link(self._switches[u], self._switches[v]).capacity_bps

    def hit(self, group: int) -> None:
        """Count a packet at its switch, and its copies in vain."""
        super().hit(group)
        copies = self._vain.get(group)
        if copies is not None:
            self._packets += 1
            self._in_vain += copies

    def went_out(self, group: int) -> None:
        """Take in that a group is out, which comes in by its own tree; nothing where that is known."""
        if group in self:
            self._choice.leave(group)
            self._vain.pop(group, None)
            super().went_out(group)

    def due(self, now_s: float) -> Sequence[int]:
        """Read the counters when they are due: who sent has its own tree, and then tables that are short get room."""
        if now_s < self._tables.residence.next_reading_s():
            return ()
        sent = [group for group in self._counted if group in self._choice.under]
        self._is_read(now_s)
        gone: dict[int, None] = {}
        for group in sent:
            for other in self._wake(group, now_s):
                self.went_out(other)
                gone[other] = None
        gone.update(dict.fromkeys(self._compress(now_s)))
        for other in self._tables.take_ended():
            self.went_out(other)
            gone[other] = None
        return tuple(gone)

    def _wake(self, group: int, now_s: float) -> Sequence[int]:
        """Give a group that sends its own tree where there is room; return who leaves for that."""
        held = self._tables.entries(group)
        more = {at: count for at, count in self._entries[group].items() if at not in held}
        leaving = self._tables.find_leaving(group, more, now_s)
        if leaving is None or group in leaving:
            return ()
        self._choice.leave(group)
        self._vain.pop(group, None)
        self._left += 1
        self._tables.changed(group, self._entries[group])
        return leaving

    def _compress(self, now_s: float) -> Sequence[int]:
        """Have silent groups go under covering trees where that frees short tables; return who leaves for them."""
        tables, wanted = self._tables, dict[int, CoverNeed]()
        short = tables.short_ahead()
        for at in sorted(short, key=lambda table: -short[table]):
            freed = 0
            for group in tables.residence.silent(tables.tables[at].groups):
                if freed >= max(short[at], GATHERED) or len(wanted) >= AT_ONCE:
                    break
                need = self._needs[group]
                if group in self._choice.under or at in need.switches:
                    continue
                part = sending_part(tables.residence.silence_s(group, now_s))
                wanted[group] = need._replace(senders={one: ceil(rate * part) for one, rate in need.senders.items()})
                freed += 1
        gone = self._choice.oldest_of_full() if wanted else []
        for group in gone:
            self.went_out(group)
        found = self._choice.choose(wanted, self._build, lambda _group, _number: True) if wanted else {}
        for group, number in found.items():
            self._went_under += 1
            self._vain[group] = copies_in_vain(
                self._choice.trees[number].adjacent, _of_one(self._needs[group])
            ).total()
            tables.changed(group, dict.fromkeys(self._needs[group].switches, 1))
        for number in list(self._choice.unused()):
            self._choice.drop(number)
        self._set_capacities()
        return gone

    def _set_capacities(self) -> None:
        """Have the entries of covering trees take room."""
        inside = Counter(
            at for tree in self._choice.trees.values() for at, near in tree.adjacent.items() if len(near) > 1
        )
        for at in inside.keys() | self._inside.keys():
            if inside[at] != self._inside[at]:
                self._tables.set_capacity(at, max(0, self._capacity - inside[at]))
        self._inside = inside

    def figures(self) -> CoverFigures:
        """Return what covering trees did so far."""
        charges = self._choice.charges
        fullest = max((bps / self._capacity_bps(*link) for link, bps in charges.items()), default=0.0)
        counted = self._went_under, self._left, self._packets, self._in_vain
        return CoverFigures(len(self._choice.trees), len(self._choice.under), *counted, 100 * fullest)


def _of_one(need: CoverNeed) -> CoverNeed:
    """Return a need whose senders send a bit per second each, so that copies are counted."""
    return need._replace(senders=dict.fromkeys(need.senders, 1))
