import pytest

from topology.graph import Link
from topology.loads import LinkLoads


def test_each_direction_has_its_own_load_and_shares_the_capacity():
    loads = LinkLoads([Link("a", "b", capacity_bps=10.0), Link("b", "c", capacity_bps=4.0)])
    loads.add("a", "b", 5)
    loads.add("c", "b", 3)
    assert loads.load_bps("a", "b") == 5
    assert loads.load_bps("b", "a") == 0
    assert loads.utilisation("a", "b") == 0.5
    assert loads.max_utilisation() == 0.75
    assert sorted(loads.directions()) == [("a", "b", 5), ("b", "a", 0), ("b", "c", 0), ("c", "b", 3)]
    assert ("c", "b") in loads
    assert ("a", "c") not in loads


def test_numbers_are_used_again_and_pair_the_directions():
    loads = LinkLoads([Link("a", "b"), Link("b", "c")])
    loads.remove_link("b", "a")
    loads.add_link(Link("c", "d"))
    assert len(loads.bps) == 4
    for u, v, _ in loads.directions():
        assert loads.index[u][v] ^ 1 == loads.index[v][u]
    with pytest.raises(KeyError):
        loads.load_bps("a", "b")


def test_a_loaded_link_cannot_be_forgotten():
    loads = LinkLoads([Link("a", "b")])
    loads.add("b", "a", 1)
    with pytest.raises(ValueError, match="load"):
        loads.remove_link("a", "b")
    loads.add("b", "a", -1)
    loads.remove_link("a", "b")
    assert loads.max_utilisation() == 0.0


def test_adding_a_link_again_changes_its_capacity_alone():
    loads = LinkLoads([Link("a", "b", capacity_bps=10.0)])
    loads.add("a", "b", 5)
    loads.add_link(Link("b", "a", capacity_bps=5.0))
    assert loads.utilisation("a", "b") == 1.0
