"""What is known of a fabric whose links come and go, found from what is near, is what a look at all of it finds."""

from __future__ import annotations

import random

import pytest

from controller.trees.fabric import LayeredFabric, recognise
from controller.trees.network import Network
from topology.generators.layered import fattree
from topology.graph import Graph, NodeKind
from topology.loads import LinkLoads
from turns import calls_of


def switches_of(k: int, *, has_tiers: bool) -> Graph:
    """Return the switches of a fat tree; without tiers, as discovery finds them, only ToRs are known as such."""
    whole = fattree(k)
    graph = whole.subgraph(whole.switches())
    if not has_tiers:
        for node in graph.nodes(NodeKind.AGGREGATION, NodeKind.CORE):
            graph.add_node(node, NodeKind.SWITCH)
    return graph


def leaf_spine() -> Graph:
    graph = Graph()
    for leaf in range(4):
        graph.add_node(leaf, NodeKind.TOR)
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
        if isinstance(network.shape, LayeredFabric):
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


def meaning_of(shape):
    """Return what a recognised graph says, with the nodes of pods in the place of their numbers."""
    if not isinstance(shape, LayeredFabric):
        return shape
    members: dict[int, set] = {}
    for pods in (shape.pod, shape.aggregation_pod):
        for node, number in pods.items():
            members.setdefault(number, set()).add(node)
    named = {number: frozenset(nodes) for number, nodes in members.items()}
    return (
        {node: named[number] for node, number in (*shape.pod.items(), *shape.aggregation_pod.items())},
        set(shape.order) == set(shape.pod) and sorted(shape.order.values()) == list(range(len(shape.order))),
        shape.up,
        [(core, {named[number]: nodes for number, nodes in under.items()}) for core, under in shape.down.items()],
        {named[number]: cores for number, cores in shape.cores.items() if cores},
        {named[number]: links for number, links in shape.uplinks.items()},
    )


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("seed", range(12))
def test_links_and_switches_that_come_and_go_lead_where_a_look_at_everything_leads(name: str, seed: int) -> None:
    graph, draw = MAKERS[name](), random.Random(seed)
    network = network_of(graph)
    kinds = {node: graph.kind(node) for node in graph.nodes()}
    cables = [(link.u, link.v) for link in graph.links()]
    followed = changes = 0
    for _ in range(250):
        network.components()
        version = graph.version
        missing = [(u, v) for u, v in cables if u in graph and v in graph and not graph.has_link(u, v)]
        gone = [node for node in kinds if node not in graph]
        alone = [node for node in graph.nodes() if not graph.neighbours(node)]
        what = draw.random()
        if gone and what < 0.3:
            node = draw.choice(gone)
            graph.add_node(node, kinds[node])
            network.node_added(node)
        elif alone and what < 0.4:
            node = draw.choice(alone)
            graph.remove_node(node)
            network.node_lost(node)
        elif missing and what < 0.8:
            u, v = draw.choice(missing)
            graph.add_link(*draw.choice(((u, v), (v, u))))
            network.link_added(u, v)
        elif what < 0.85:
            # All links of one switch go, as when it dies: then it may be taken away.
            node = draw.choice(graph.nodes())
            for other in graph.neighbours(node)[1:]:
                graph.remove_link(node, other)
                network.link_lost(node, other)
                assert meaning_of(network.shape) == meaning_of(recognise(graph))
            version = graph.version
        else:
            u, v = draw.choice([(link.u, link.v) for link in graph.links()] or cables)
            if graph.has_link(u, v):
                graph.remove_link(u, v)
                network.link_lost(u, v)
        if graph.version == version:
            continue
        changes += 1
        followed += network.version == graph.version
        assert meaning_of(network.shape) == meaning_of(recognise(graph))
        fresh = network_of(graph).components()
        own = network.components()
        assert own.keys() == fresh.keys()
        assert len({(own[node], fresh[node]) for node in own}) == len(set(own.values())) == len(set(fresh.values()))
    assert changes > 100


@pytest.mark.parametrize("tier", ["core", "aggregation"])
def test_a_switch_that_is_back_is_followed_link_by_link_without_a_look_at_everything(tier: str) -> None:
    def calls(k: int) -> int:
        graph = switches_of(k, has_tiers=False)
        network = network_of(graph)
        shape = network.shape
        assert isinstance(shape, LayeredFabric)
        node = next(iter(shape.down if tier == "core" else shape.aggregation_pod))
        beside = graph.neighbours(node)
        graph.remove_node(node)
        assert isinstance(network.shape, LayeredFabric)

        def come_back() -> None:
            graph.add_node(node)
            network.node_added(node)
            for other in beside:
                graph.add_link(node, other)
                network.link_added(node, other)
                assert network.version == graph.version

        calls_each = calls_of(come_back) / len(beside)
        assert meaning_of(network.shape) == meaning_of(recognise(graph))
        return int(calls_each)

    # A pod of the larger one has three times as many links, and its switches are sorted.
    assert calls(12) <= 10 * calls(4)
