"""Packets of groups over several switches whose tables are too small."""

from __future__ import annotations

from random import Random

import pytest

from controller.overcommit.tables import GroupTables
from controller.simulation.data_centre import DataCentre
from controller.simulation.fabric_tables import (
    FabricTraceResult,
    WholeTrees,
    entries_of_groups,
    fullest_need,
    run_fabric_trace,
    shared_need,
)
from controller.simulation.placement import place_trees
from controller.simulation.sessions import sessions
from controller.simulation.switch_state import state_of_placed
from controller.simulation.table_trace import Trace
from controller.simulation.trees import TreeLinks
from controller.simulation.workload import Workload, generate
from topology.generators import make
from topology.graph import NodeKind


def run(trace: Trace, capacity: int, entries: list[dict[int, int]], **options: float) -> FabricTraceResult:
    tables: GroupTables[int] = GroupTables(Random(1), 1000)
    for dpid in {dpid for held in entries for dpid in held}:
        tables.set_capacity(dpid, capacity)
    return run_fabric_trace(trace, WholeTrees(tables, entries), **options)


def test_where_all_fit_each_group_misses_until_its_entries_are_there():
    trace = Trace([0.0, 0.005, 0.02, 1.0, 1.5], [0, 0, 0, 1, 0])
    found = run(trace, 2, [{1: 1, 2: 1}, {2: 1}], latency_s=0.01)
    assert (found.packets, found.misses, found.swaps_in, found.swaps_out) == (5, 3, 2, 0)
    assert found.document()["victims_per_need"] is None


def test_a_group_that_has_ended_leaves_for_one_that_needs_its_place():
    times_s = [number / 10 for number in range(600)]
    trace = Trace(times_s, [0 if at_s < 20 else 1 for at_s in times_s])
    found = run(trace, 1, [{1: 1, 2: 1}, {2: 1, 3: 1}])
    assert (found.needing, found.victims, found.swaps_out) == (1, 1, 1)
    assert 1 <= found.misses - found.turned_away <= 3


def test_a_group_stays_out_where_the_other_sends_more():
    times_s = [number / 100 for number in range(3000)]
    trace = Trace(times_s, [1 if number % 100 == 50 else 0 for number in range(3000)])
    found = run(trace, 1, [{1: 1, 2: 1}, {2: 1}])
    assert (found.swaps_in, found.swaps_out) == (1, 0)
    assert found.turned_away == 30


@pytest.fixture(scope="module")
def placed():
    centre = DataCentre(make("portland-p6"))
    groups = generate(centre, Workload(vms=10_000, groups=400), 3)
    links: list[TreeLinks] = []
    place_trees(centre, groups, links=links)
    return centre, groups, links


def test_entries_are_those_that_are_counted(placed):
    centre, groups, links = placed
    entries = entries_of_groups(centre, groups, links)
    need = fullest_need(entries, len(centre.switches))
    assert need.tolist() == state_of_placed(centre, groups, links).entries.tolist()


def test_groups_that_go_on_alike_share_an_entry_where_no_member_is(placed):
    centre, groups, links = placed
    alone = fullest_need(entries_of_groups(centre, groups, links), len(centre.switches))
    shared = shared_need(centre, groups, links)
    assert (shared <= alone).all()
    pods = 6
    for node, each, together in zip(centre.switches, alone.tolist(), shared.tolist(), strict=True):
        match centre.graph.kind(node):
            case NodeKind.TOR:
                assert together == each
            case NodeKind.CORE:
                assert together <= 2**pods - pods - 1 and together < each


def test_with_a_quarter_of_the_need_nobody_is_turned_away_and_one_leaves_for_each(placed):
    centre, groups, links = placed
    entries = entries_of_groups(centre, groups, links)
    table = int(fullest_need(entries, len(centre.switches)).max()) // 4
    trace = sessions(Random(5), len(groups), on_s=30, off_s=240, duration_s=200)
    found = run(trace, table, entries, warmup_s=50)
    assert found.needing > 5
    assert found.turned_away <= found.misses * 0.05
    assert found.victims <= 1.1 * found.needing
