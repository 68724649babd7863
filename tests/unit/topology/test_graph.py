"""What a graph knows of itself whatever was done to it."""

from __future__ import annotations

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
