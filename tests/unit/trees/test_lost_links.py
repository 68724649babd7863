"""What is known of a fabric that lost links, found from what is near them, is what a look at all of it finds."""

from __future__ import annotations

import random

import pytest

from controller.trees.fabric import Fabric, recognise
from controller.trees.network import Network
from topology.generators.layered import fattree
from topology.graph import Graph, Kind
from topology.loads import LinkLoads
from turns import calls_of


def switches_of(k: int, *, has_tiers: bool) -> Graph:
    """Return the switches of a fat tree; without tiers, as discovery finds them, only ToRs are known as such."""
    whole = fattree(k)
    graph = whole.subgraph(whole.switches())
    if not has_tiers:
        for node in graph.nodes(Kind.AGGREGATION, Kind.CORE):
            graph.add_node(node, Kind.SWITCH)
    return graph


def leaf_spine() -> Graph:
    graph = Graph()
    for leaf in range(4):
        graph.add_node(leaf, Kind.TOR)
        for spine in range(10, 13):
            graph.add_node(spine)
            graph.add_link(leaf, spine, spine, leaf)
    return graph


def network_of(graph: Graph) -> Network:
    return Network(graph, LinkLoads(()), 0)


MAKERS = {
    "fat tree": lambda: switches_of(4, has_tiers=True),
    "fat tree, found": lambda: switches_of(4, has_tiers=False),
    "larger fat tree": lambda: switches_of(6, has_tiers=False),
    "leaf-spine": leaf_spine,
}


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("seed", range(6))
def test_links_lost_one_after_the_other_lead_where_a_look_at_everything_leads(name: str, seed: int) -> None:
    graph, draw = MAKERS[name](), random.Random(seed)
    network = network_of(graph)
    followed = 0
    links = [(link.u, link.v) for link in graph.links()]
    draw.shuffle(links)
    for u, v in links:
        network.components()
        graph.remove_link(*draw.choice(((u, v), (v, u))))
        network.link_lost(u, v)
        followed += network.version == graph.version
        assert network.shape == recognise(graph)
        if isinstance(network.shape, Fabric):
            assert [*network.shape.down.items()] == [*recognise(graph).down.items()]
        fresh = network_of(graph).components()
        own = network.components()
        assert own.keys() == fresh.keys()
        assert len({(own[node], fresh[node]) for node in own}) == len(set(own.values())) == len(set(fresh.values()))
    assert followed >= len(links) // 8


def test_the_loss_of_a_link_costs_as_much_in_a_small_fabric_as_in_a_large_one() -> None:
    def calls(k: int) -> int:
        graph = switches_of(k, has_tiers=False)
        network = network_of(graph)
        network.components()
        u, v = next((link.u, link.v) for link in graph.links() if graph.kind(link.u) is graph.kind(link.v))
        graph.remove_link(u, v)

        def follow() -> None:
            network.link_lost(u, v)
            network.components()
            assert network.shape is not None

        return calls_of(follow)

    assert calls(12) <= 4 * calls(4)
