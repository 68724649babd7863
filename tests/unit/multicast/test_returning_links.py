"""Which links that are back are held: those whose ends others join, found without a look at the fabric for each."""

from __future__ import annotations

import random

import pytest

from controller.multicast.returning import ReturningLinks
from controller.rules.installer import Installer
from controller.rules.pipeline import MULTICAST_TAG, OPENFLOW_1_3
from topology.events import LinkDown, LinkUp
from topology.graph import Graph
from turns import calls_of


def unread(dpids):
    """Return an installer of whose switches nobody knows yet what they hold: each may still send anywhere."""
    installer = Installer(MULTICAST_TAG)
    for dpid in dpids:
        installer.switch_connected(dpid, OPENFLOW_1_3, 0.0)
    return installer


def fabric_of(links):
    graph = Graph()
    for a, b in links:
        graph.add_node(a)
        graph.add_node(b)
        graph.add_link(a, b, b, a)
    return graph


def are_joined(graph, a, b):
    reached = [a]
    for node in reached:
        reached += [other for other in graph.neighbours(node) if other not in reached]
    return b in reached


@pytest.mark.parametrize("seed", range(10))
def test_a_link_is_held_where_others_join_its_ends_whatever_came_and_went_before(seed):
    draw = random.Random(seed)
    pairs = [(a, b) for a in range(1, 11) for b in range(a + 1, 11) if draw.random() < 0.45]
    graph = fabric_of(pairs)
    returning = ReturningLinks(unread(graph.nodes()), graph)
    held, lost = 0, []
    for _ in range(400):
        a, b = draw.choice(pairs)
        if graph.has_link(a, b):
            returning.link_down(LinkDown(a, b, b, a))
            graph.remove_link(a, b)
            lost.append((a, b))
        elif lost:
            joined = are_joined(graph, a, b)
            assert returning.holds(LinkUp(a, b, b, a, 1e9)) is joined
            held += joined
            if draw.random() < 0.8:
                graph.add_link(a, b, b, a)
    assert held > 10


def test_links_that_wait_cost_no_look_at_the_fabric_each():
    links = [(leaf, spine) for leaf in range(1, 101) for spine in range(201, 209)]
    graph = fabric_of(links)
    returning = ReturningLinks(unread(graph.nodes()), graph)
    back = [LinkUp(leaf, 208, 208, leaf, 1e9) for leaf in range(1, 51)]
    for event in back:
        returning.link_down(LinkDown(*event[:4]))
        graph.remove_link(event.dpid_a, event.dpid_b)
    assert all(returning.holds(event) for event in back)
    assert calls_of(lambda: list(returning.released())) < 50 * 20
