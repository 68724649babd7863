from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.performance.ports import Added, PortName, PortRows
from topology.graph import NodeKind


def test_ports_get_dense_rows_and_keep_them():
    table = PortRows()
    assert [table.add(5, number, f"eth{number}", 1e9) for number in (1, 2)] == [Added(0, True), Added(1, True)]
    assert table.add(6, 1, "eth1", 1e10) == Added(2, True)
    assert table.rows_of(5, np.array([2, 1, 9])).tolist() == [1, 0, -1]
    assert table.rows_of(7, np.array([1])).tolist() == [-1]
    assert table.name(2) == PortName(6, 1, "eth1") and table.speed_bps[2] == 1e10


def test_a_port_that_comes_back_has_its_row_and_a_new_generation():
    table = PortRows()
    table.add(1, 1, "", 1e9)
    before = int(table.generation[0])
    assert table.remove(1, 1) == 0 and not table.present[0]
    assert table.add(1, 1, "", 1e9) == Added(0, False)
    assert table.generation[0] == before + 1 and table.present[0]


def test_a_full_table_gives_the_row_of_the_port_gone_for_longest():
    table = PortRows(2)
    table.add(1, 1, "a", 1e9), table.add(1, 2, "b", 1e9)
    assert table.rows_of(1, np.array([1, 2])).tolist() == [0, 1]
    assert table.add(1, 3, "c", 1e9) is None and table.refused == 1
    table.remove(1, 2), table.remove(1, 1)
    assert table.add(1, 3, "c", 1e9) == Added(1, True)
    assert table.rows_of(1, np.array([1, 2])).tolist() == [0, -1]
    assert table.add(2, 1, "d", 1e9) == Added(0, True)
    assert table.rows_of_switch(1) == (1,) and table.row(1, 1) is None


def test_a_port_that_was_asked_for_too_soon_is_found_later():
    table = PortRows()
    table.add(1, 1, "", 1e9)
    assert table.rows_of(1, np.array([1, 2])).tolist() == [0, -1]
    table.add(1, 2, "", 1e9)
    assert table.rows_of(1, np.array([1, 2])).tolist() == [0, 1]


def test_the_only_port_of_a_switch_may_give_its_row_to_the_next_of_the_same_switch():
    table = PortRows(1)
    table.add(1, 1, "", 1e9)
    table.remove(1, 1)
    assert table.add(1, 2, "", 1e9) == Added(0, True)
    assert table.row(1, 2) == 0 and table.switches() == (1,) and table.node[0] == table.node_of(1)


def test_a_switch_without_rows_gives_its_number_away():
    table = PortRows(1)
    table.add(1, 1, "", 1e9)
    table.remove(1, 1)
    table.add(2, 1, "", 1e9)
    assert table.switches() == (2,) and table.freed_nodes == [0] and table.node_of(1) is None
    assert table.node[0] == table.node_of(2) == 1
    table.remove(2, 1)
    table.add(3, 1, "", 1e9)
    assert table.node_of(3) == 0 and table.node_count == 2


def test_the_class_of_a_switch_is_that_of_its_ports():
    table = PortRows()
    table.classify(1, NodeKind.TOR)
    assert table.kind(1) is NodeKind.SWITCH and table.switches() == (), "a switch without ports takes no place"
    table.add(1, 1, "", 1e9)
    table.classify(1, NodeKind.TOR)
    table.add(1, 2, "", 1e9)
    assert table.kind(1) is NodeKind.TOR and table.kind_code[0] == table.kind_code[1]


def test_a_table_needs_room():
    with pytest.raises(ValueError, match="room"):
        PortRows(0)


@settings(max_examples=80)
@given(
    st.lists(
        st.tuples(st.sampled_from(["add", "add", "remove", "release"]), st.integers(1, 4), st.integers(1, 6)),
        max_size=120,
    ),
    st.integers(1, 9),
)
def test_no_row_is_ever_two_ports_and_the_table_keeps_its_bound(changes: list[tuple[str, int, int]], max_ports: int):
    table = PortRows(max_ports)
    present: set[tuple[int, int]] = set()
    for change, dpid, port_no in changes:
        if change == "add":
            if table.add(dpid, port_no, "", 1e9) is not None:
                present.add((dpid, port_no))
        elif change == "release":
            table.release(dpid)
            present = {key for key in present if key[0] != dpid}
        else:
            table.remove(dpid, port_no)
            present.discard((dpid, port_no))
        rows = {key: table.row(*key) for key in present}
        assert None not in rows.values(), "a port that is there keeps its row"
        assert len(set(rows.values())) == len(rows) and len(table) <= max_ports
        for (switch, number), row in rows.items():
            assert table.name(row)[:2] == (switch, number)
            assert table.node[row] == table.node_of(switch)
            assert table.rows_of(switch, np.array([number])).tolist() == [row]
        assert len({table.node_of(switch) for switch in table.switches()}) == len(table.switches())
