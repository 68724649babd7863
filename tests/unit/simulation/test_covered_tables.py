"""Groups under covering trees in the tables of a fabric that are too small for all."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from controller.overcommit import covers
from controller.overcommit.tables import GroupTables
from controller.simulation.covered_tables import CoveredTrees, needs_of
from controller.simulation.data_centre import DataCentre
from controller.simulation.fabric_tables import WholeTrees, entries_of_groups, run_fabric_trace
from controller.simulation.placement import place_trees
from controller.simulation.sessions import sessions
from controller.simulation.table_trace import Trace
from controller.simulation.trees import TreeLinks
from controller.simulation.workload import Workload, generate
from topology.generators import make

CAPACITY = 24


@pytest.fixture(scope="module")
def placed():
    centre = DataCentre(make("fattree"), 1e10)
    groups = generate(centre, Workload(vms=200, groups=240, group_size=(2, 3)), 5)
    links: list[TreeLinks] = []
    place_trees(centre, groups, links=links)
    return centre, groups, entries_of_groups(centre, groups, links)


def tables(centre: DataCentre) -> GroupTables[int]:
    found: GroupTables[int] = GroupTables(Random(1), 1000)
    for number in range(len(centre.switches)):
        found.set_capacity(number, CAPACITY)
    return found


class Watched(CoveredTrees):
    """Holds at each reading what tables have against what groups and covering trees have in them."""

    readings_held = 0

    def due(self, now_s: float):
        gone = super().due(now_s)
        held: Counter[int] = Counter()
        for group in range(len(self._entries)):
            if group in self:
                own = self._tables.entries(group)
                wanted = self._needs[group].switches if group in self._choice.under else self._entries[group].keys()
                assert own.keys() == set(wanted)
                held.update(own.keys())
            else:
                assert group not in self._choice.under
        for number, table in self._tables.tables.items():
            assert table.used == held[number]
            assert table.capacity == max(0, CAPACITY - self._inside[number])
        self.readings_held += 1
        return gone


def test_tables_hold_what_groups_and_covering_trees_have(placed, monkeypatch):
    monkeypatch.setattr(covers, "LEAST_GROUPS", 2)
    centre, groups, entries = placed
    trace = sessions(Random(3), len(groups), on_s=5, off_s=60, duration_s=150)
    choice = Watched(centre, tables(centre), entries, CAPACITY, needs_of(groups), 20)
    found = run_fabric_trace(trace, choice)
    figures = choice.figures()
    assert choice.readings_held > 100
    assert figures.went_under > figures.covered + figures.left > 0
    assert figures.packets > 0 and figures.in_vain > 0 and figures.fullest_pct <= 20
    alone = run_fabric_trace(trace, WholeTrees(tables(centre), entries))
    assert found.packets == alone.packets and found.turned_away == 0


def test_nobody_goes_under_a_tree_where_tables_have_room(placed):
    centre, groups, entries = placed
    room = tables(centre)
    for number in range(len(centre.switches)):
        room.set_capacity(number, 1000)
    choice = CoveredTrees(centre, room, entries, 1000, needs_of(groups), 100)
    run_fabric_trace(Trace([float(second) for second in range(120)], [second % 120 for second in range(120)]), choice)
    assert choice.figures() == (0, 0, 0, 0, 0, 0, 0.0)


def test_the_first_of_a_groups_switches_has_its_sender(placed):
    _, groups, _ = placed
    for number, need in enumerate(needs_of(groups)):
        first, *others = groups.terminals[groups.offsets[number] : groups.offsets[number + 1]].tolist()
        assert dict(need.senders) == {first: groups.rates_bps[number]}
        assert need.members == set(others)
