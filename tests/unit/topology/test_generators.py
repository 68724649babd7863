from __future__ import annotations

import inspect
from collections import Counter, deque
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from topology.generators import GENERATORS, make
from topology.graph import Graph, NodeId, NodeKind

SMALL: list[tuple[str, dict[str, Any]]] = [
    ("fattree", {"k": 2}),
    ("fattree", {"k": 4}),
    ("fattree", {"k": 6}),
    ("leaf-spine", {}),
    ("leaf-spine", {"leaves": 1, "spines": 1, "hosts_per_leaf": 0}),
    ("leaf-spine", {"leaves": 5, "spines": 3, "hosts_per_leaf": 2}),
    ("tree", {"depth": 1, "fanout": 3}),
    ("tree", {"depth": 3, "fanout": 2}),
    ("tree", {"depth": 5, "fanout": 1}),
    ("jellyfish", {"switches": 12, "degree": 3, "seed": 5}),
    ("jellyfish", {"switches": 9, "degree": 2, "hosts_per_switch": 0}),
    ("portland-p6", {"hosts_per_tor": 1}),
    ("portland-p12", {"hosts_per_tor": 1}),
    ("servers-fattree", {"servers": 1, "per_rack": 1}),
    ("servers-fattree", {"servers": 7, "per_rack": 2}),
    ("servers-fattree", {"servers": 101, "per_rack": 2}),
    ("servers-tree", {"servers": 3, "per_rack": 5}),
    ("servers-tree", {"servers": 30, "per_rack": 2}),
    ("avalanche24", {}),
]


def switch_links(graph: Graph) -> list[tuple[NodeId, NodeId]]:
    hosts = set(graph.hosts())
    return [(link.u, link.v) for link in graph.links() if link.u not in hosts and link.v not in hosts]


def reached(graph: Graph) -> set[NodeId]:
    start = graph.nodes()[0]
    seen, queue = {start}, deque([start])
    while queue:
        for neighbour in graph.neighbours(queue.popleft()):
            if neighbour not in seen:
                seen.add(neighbour)
                queue.append(neighbour)
    return seen


def facts(graph: Graph) -> tuple[object, ...]:
    return (
        [(node, graph.kind(node), graph.attributes(node)) for node in graph.nodes()],
        list(graph.links()),
    )


def kinds(graph: Graph) -> dict[NodeKind, int]:
    return dict(Counter(graph.kind(node) for node in graph.nodes()))


@pytest.mark.parametrize("name", GENERATORS)
def test_the_registry_says_what_the_function_takes(name: str) -> None:
    generator = GENERATORS[name]
    signature = inspect.signature(generator.function)
    assert {p.name: p.default for p in generator.parameters} == {
        p.name: p.default for p in signature.parameters.values()
    }
    assert generator.parameters[-1].name == "capacity_bps"
    for parameter in generator.parameters:
        parameter.check(parameter.default)
        parameter.check(parameter.lower)
        parameter.check(parameter.upper)


@pytest.mark.parametrize(("name", "parameters"), SMALL)
def test_every_fabric_is_connected_numbered_and_repeats(name: str, parameters: dict[str, Any]) -> None:
    graph = make(name, parameters)
    assert len(reached(graph)) == len(graph)
    for node in graph.nodes():
        ports = sorted(graph.port(node, neighbour) for neighbour in graph.neighbours(node))
        first = 0 if graph.kind(node) is NodeKind.HOST else 1
        assert ports == list(range(first, first + len(ports)))
        assert isinstance(node, str)
        assert len(f"{node}-eth{ports[-1]}") <= 15
    hosts, switches = len(graph.hosts()), len(graph.switches())
    assert {graph.attributes(node)["dpid"] for node in graph.switches()} == set(range(1, switches + 1))
    assert set(graph.nodes()) == {f"h{n}" for n in range(1, hosts + 1)} | {f"s{n}" for n in range(1, switches + 1)}
    assert len({graph.attributes(node)["ip"] for node in graph.hosts()}) == hosts
    assert len({graph.attributes(node)["mac"] for node in graph.hosts()}) == hosts
    assert facts(make(name, parameters)) == facts(graph)


@pytest.mark.parametrize(("name", "parameters"), SMALL)
def test_the_capacity_is_that_of_every_link(name: str, parameters: dict[str, Any]) -> None:
    graph = make(name, {**parameters, "capacity_bps": 25e9})
    assert {link.capacity_bps for link in graph.links()} == {25e9}


@pytest.mark.parametrize("k", [2, 4, 6, 8, 12])
def test_fattree_has_the_sizes_of_its_paper(k: int) -> None:
    graph = make("fattree", {"k": k})
    half = k // 2
    assert kinds(graph) == {
        NodeKind.HOST: k**3 // 4,
        NodeKind.TOR: k * half,
        NodeKind.AGGREGATION: k * half,
        NodeKind.CORE: half * half,
    }
    assert len(graph.switches()) == 5 * k * k // 4
    assert len(switch_links(graph)) == k**3 // 2
    assert all(len(graph.neighbours(switch)) == k for switch in graph.switches())
    for core in graph.nodes(NodeKind.CORE):
        assert Counter(graph.attributes(node)["pod"] for node in graph.neighbours(core)) == dict.fromkeys(range(k), 1)


def test_fattree_aggregations_at_one_position_share_their_cores() -> None:
    graph = make("fattree", {"k": 4})
    above = {
        node: [up for up in graph.neighbours(node) if graph.kind(up) is NodeKind.CORE]
        for node in graph.nodes(NodeKind.AGGREGATION)
    }
    assert [above[f"s{n}"] for n in (9, 11, 13, 15)] == [["s17", "s18"]] * 4
    assert [above[f"s{n}"] for n in (10, 12, 14, 16)] == [["s19", "s20"]] * 4


@pytest.mark.parametrize(
    ("name", "tiers", "links", "ups"),
    [
        ("portland-p6", (288, 24, 8), 1200, {NodeKind.TOR: 4, NodeKind.AGGREGATION: 2}),
        ("portland-p12", (288, 24, 8), 672, {NodeKind.TOR: 2, NodeKind.AGGREGATION: 4}),
        ("servers-fattree", (288, 24, 8), 1200, {NodeKind.TOR: 4, NodeKind.AGGREGATION: 2}),
        ("servers-tree", (288, 24, 1), 312, {NodeKind.TOR: 1, NodeKind.AGGREGATION: 1}),
        ("avalanche24", (6, 6, 2), 24, {NodeKind.TOR: 2, NodeKind.AGGREGATION: 2}),
    ],
)
def test_the_article_s_wirings(name: str, tiers: tuple[int, ...], links: int, ups: dict[NodeKind, int]) -> None:
    graph = make(name)
    found = kinds(graph)
    assert (found[NodeKind.TOR], found[NodeKind.AGGREGATION], found[NodeKind.CORE]) == tiers
    assert found[NodeKind.HOST] == (24 if name == "avalanche24" else 11520)
    assert len(switch_links(graph)) == links
    for kind, count in ups.items():
        for node in graph.nodes(kind):
            assert sum(graph.level(up) > graph.level(node) for up in graph.neighbours(node)) == count
    assert [
        graph.level(graph.nodes(kind)[0])
        for kind in (NodeKind.HOST, NodeKind.TOR, NodeKind.AGGREGATION, NodeKind.CORE)
    ] == [
        0,
        1,
        2,
        3,
    ]


def test_portland_p6_aggregation_j_reaches_cores_2j_and_2j_plus_1() -> None:
    graph = make("portland-p6", {"hosts_per_tor": 0})
    cores = [f"s{288 + 24 + n}" for n in range(1, 9)]
    for pod in range(6):
        for j in range(4):
            aggregation = f"s{288 + 4 * pod + j + 1}"
            assert graph.attributes(aggregation)["pod"] == pod
            above = {node for node in graph.neighbours(aggregation) if graph.kind(node) is NodeKind.CORE}
            assert above == {cores[2 * j], cores[2 * j + 1]}


def test_the_article_s_servers_in_racks_are_portland_p6() -> None:
    assert facts(make("servers-fattree")) == facts(make("portland-p6"))


@pytest.mark.parametrize(
    ("name", "servers", "per_rack", "tors", "aggregations", "cores"),
    [
        ("servers-tree", 5, 5, [5], 0, 0),
        ("servers-tree", 11, 5, [5, 5, 1], 1, 0),
        ("servers-tree", 26, 2, [2] * 13, 2, 1),
        ("servers-fattree", 5, 8, [5], 0, 0),
        ("servers-fattree", 97, 2, [2] * 48 + [1], 8, 8),
        ("servers-fattree", 96, 2, [2] * 48, 4, 0),
    ],
)
def test_servers_fill_racks_and_no_tier_stands_over_one_switch(
    name: str, servers: int, per_rack: int, tors: list[int], aggregations: int, cores: int
) -> None:
    graph = make(name, {"servers": servers, "per_rack": per_rack})
    hosts = set(graph.hosts())
    by_number = sorted(graph.nodes(NodeKind.TOR), key=lambda tor: graph.attributes(tor)["dpid"])
    assert [len(hosts.intersection(graph.neighbours(tor))) for tor in by_number] == tors
    found = kinds(graph)
    assert (found.get(NodeKind.AGGREGATION, 0), found.get(NodeKind.CORE, 0)) == (aggregations, cores)
    in_pods = Counter(graph.attributes(tor)["pod"] for tor in graph.nodes(NodeKind.TOR))
    assert max(in_pods.values()) - min(in_pods.values()) <= 1


def test_avalanche24_is_the_article_s_emulation() -> None:
    graph = make("avalanche24")
    for number in range(1, 25):
        host = f"h{number}"
        assert graph.attributes(host)["ip"] == f"10.0.0.{number}"
        assert graph.attributes(host)["mac"] == f"00:00:00:00:00:{number:02x}"
        assert graph.neighbours(host) == (f"s{(number - 1) // 4 + 1}",)
    assert {link.capacity_bps for link in graph.links()} == {10e6}
    for aggregation in graph.nodes(NodeKind.AGGREGATION):
        assert {"s13", "s14"} <= set(graph.neighbours(aggregation))
        pods = {graph.attributes(n)["pod"] for n in graph.neighbours(aggregation) if graph.kind(n) is NodeKind.TOR}
        assert pods == {graph.attributes(aggregation)["pod"]}


@pytest.mark.parametrize(("depth", "fanout"), [(1, 2), (2, 4), (3, 3), (4, 2)])
def test_tree_has_its_tiers(depth: int, fanout: int) -> None:
    graph = make("tree", {"depth": depth, "fanout": fanout})
    levels = Counter(graph.level(node) for node in graph.nodes())
    assert levels == {level: fanout ** (depth - level) for level in range(depth + 1)}
    assert len(list(graph.links())) == len(graph) - 1
    root = max(graph.switches(), key=graph.level)
    assert graph.kind(root) is (NodeKind.TOR if depth == 1 else NodeKind.CORE)
    if depth > 2:
        pods = Counter(graph.attributes(host)["pod"] for host in graph.hosts())
        assert pods == dict.fromkeys(range(fanout), fanout ** (depth - 1))


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_jellyfish_is_regular_and_connected(data: st.DataObject) -> None:
    switches = data.draw(st.integers(3, 40))
    degree = data.draw(st.integers(2, min(8, switches - 1)))
    seed = data.draw(st.integers(0, 2**64 - 1))
    graph = make("jellyfish", {"switches": switches, "degree": degree, "hosts_per_switch": 0, "seed": seed})
    degrees = [len(graph.neighbours(node)) for node in graph.nodes()]
    assert max(degrees) <= degree
    assert sum(degree - found for found in degrees) == switches * degree % 2
    assert len(reached(graph)) == switches


def test_jellyfish_seeds_give_different_graphs() -> None:
    drawn = {tuple(switch_links(make("jellyfish", {"seed": seed}))) for seed in range(20)}
    assert len(drawn) == 20


def test_jellyfish_draws_every_pair_about_equally_often() -> None:
    counts = Counter(
        pair
        for seed in range(400)
        for pair in switch_links(make("jellyfish", {"switches": 8, "degree": 3, "hosts_per_switch": 0, "seed": seed}))
    )
    expected = 400 * 12 / 28
    assert len(counts) == 28
    assert all(0.7 * expected < count < 1.3 * expected for count in counts.values())


@pytest.mark.parametrize(
    ("name", "parameters", "words"),
    [
        ("fattree", {"k": 3}, ("k: 3", "even", "2 to 64")),
        ("fattree", {"k": 0}, ("k: 0", "2 to 64")),
        ("fattree", {"k": 66}, ("k: 66",)),
        ("fattree", {"k": 4.0}, ("k: 4.0",)),
        ("fattree", {"k": True}, ("k: True",)),
        ("fattree", {"k": "4"}, ("k: '4'",)),
        ("fattree", {"capacity_bps": 0}, ("capacity_bps: 0",)),
        ("fattree", {"capacity_bps": float("nan")}, ("capacity_bps: nan",)),
        ("fattree", {"capacity_bps": float("inf")}, ("capacity_bps: inf",)),
        ("fattree", {"depth": 3}, ("depth", "fattree", "k")),
        ("tree", {"depth": 0}, ("depth: 0", "1 to 16")),
        ("tree", {"depth": 16, "fanout": 3}, ("fanout", "65536")),
        ("jellyfish", {"switches": 4, "degree": 4}, ("degree: 4", "4 switches")),
        ("jellyfish", {"degree": 1}, ("degree: 1", "2 to 64")),
        ("jellyfish", {"switches": 4096, "hosts_per_switch": 100}, ("hosts_per_switch", "65536")),
        ("jellyfish", {"seed": -1}, ("seed: -1",)),
        ("portland-p6", {"hosts_per_tor": 201}, ("hosts_per_tor: 201", "0 to 200")),
        ("avalanche24", {"hosts_per_tor": -1}, ("hosts_per_tor: -1",)),
        ("torus", {}, ("'torus'", "avalanche24")),
    ],
)
def test_bad_parameters_are_named_with_their_bounds(name: str, parameters: dict[str, Any], words: tuple[str]) -> None:
    with pytest.raises(ValueError) as error:
        make(name, parameters)
    for word in words:
        assert word in str(error.value)


def test_every_leaf_is_linked_to_every_spine_at_the_uplinks_capacity() -> None:
    graph = make("leaf-spine", {"leaves": 6, "spines": 3, "hosts_per_leaf": 5, "uplink_ratio": 4.0})
    assert kinds(graph) == {NodeKind.TOR: 6, NodeKind.AGGREGATION: 3, NodeKind.HOST: 30}
    spines = {node for node in graph.switches() if graph.kind(node) is NodeKind.AGGREGATION}
    for leaf in (node for node in graph.switches() if graph.kind(node) is NodeKind.TOR):
        assert spines <= set(graph.neighbours(leaf))
        assert {graph.link(leaf, spine).capacity_bps for spine in spines} == {4e9}
        hosts = set(graph.neighbours(leaf)) - spines
        assert len(hosts) == 5
        assert {graph.link(leaf, host).capacity_bps for host in hosts} == {1e9}


def test_a_leaf_spine_fabric_has_a_bound_on_its_hosts() -> None:
    with pytest.raises(ValueError, match="hosts_per_leaf: 200 at 1024 leaves gives 204800 hosts"):
        make("leaf-spine", {"leaves": 1024, "hosts_per_leaf": 200})
