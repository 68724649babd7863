"""What a graph knows of itself whatever was done to it."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topology.graph import Graph


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4), st.sampled_from((None, 1.0, 2.0, 0.0))), max_size=40))
def test_a_graph_knows_whether_links_have_weights(changes):
    graph = Graph()
    for node in range(5):
        graph.add_node(node)
    for u, v, weight in changes:
        if u == v:
            graph.remove_node(u)
            graph.add_node(u)
        elif weight is not None:
            graph.add_link(u, v, weight=weight)
        elif graph.has_link(u, v):
            graph.remove_link(u, v)
        assert graph.is_weighted == any(link.weight != 1 for link in graph.links())
    assert graph.copy().is_weighted == graph.is_weighted


def joined(*cables):
    graph = Graph()
    graph.add_node("a")
    graph.add_node("b")
    for cable in cables:
        graph.add_link(*cable)
    return graph


def test_cables_are_told_apart_by_their_ports_and_the_first_is_the_same_in_any_order():
    cables = [("a", "b", 3, 1, 1e9), ("b", "a", 2, 4, 1e9), ("a", "b", 5, 5, 1e10)]
    for order in permutations(cables):
        graph = joined(*order)
        assert [link.ports for link in graph.cables("a", "b")] == [(5, 5), (3, 1), (4, 2)]
        assert [link.ports for link in graph.cables("b", "a")] == [(5, 5), (1, 3), (2, 4)]
        assert graph.neighbours("a") == ("b",)
        assert (graph.port("a", "b"), graph.link("b", "a").capacity_bps) == (5, 1e10)
        assert len(list(graph.links())) == len(list(graph.copy().links())) == 3
        assert graph.cable("b", "a", 2).v_port == 4
        assert graph.cable("b", "a", 3) is None


def test_a_cable_at_the_same_ports_replaces_and_one_that_goes_leaves_the_others():
    graph = joined(("a", "b", 1, 1), ("a", "b", 2, 2))
    version = graph.version
    graph.add_link("b", "a", 2, 2, 4e9)
    assert [(link.ports, link.capacity_bps) for link in graph.cables("a", "b")] == [((2, 2), 4e9), ((1, 1), 1e9)]
    assert graph.remove_link("b", "a", 2).ports == (2, 2)
    assert (graph.version, graph.has_bundles, graph.port("a", "b")) == (version + 2, False, 1)
    with pytest.raises(KeyError):
        graph.remove_link("a", "b", 2)
    graph.add_link("a", "b", 3, 3)
    graph.remove_link("a", "b")
    assert not graph.has_link("a", "b")
    assert not graph.has_bundles


def test_a_node_takes_all_its_cables_with_it():
    graph = joined(("a", "b", 1, 1), ("a", "b", 2, 2))
    assert [link.ports for link in graph.remove_node("b")] == [(1, 1), (2, 2)]
    assert list(graph.links()) == []
