import numpy as np
import pytest

from controller.simulation.data_centre import DataCentre
from controller.simulation.groups import attach
from controller.simulation.outcome import least_max_pct, optimal_sizes, outcome, utilisation_pct
from controller.simulation.placement import connected, place_trees
from controller.simulation.workload import Workload, generate
from controller.trees.algorithms import ALGORITHMS
from controller.trees.forest import Forest
from controller.trees.tree import TreeRole
from topology.generators import make
from topology.graph import Graph, NodeKind

FABRICS = {
    "avalanche24": ("avalanche24", {}),
    "fat tree": ("fattree", {"k": 4}),
    "fat tree with dead links": ("fattree", {"k": 4}),
    "tree": ("tree", {"depth": 3, "fanout": 3}),
    "jellyfish": ("jellyfish", {"switches": 16, "degree": 3}),
}
FIXED = ["vsrt-literal", "pim-sm-fixed-core", "pim-sm-random-core", "pim-sm-static-uplink", "source-tree"]


def side_by_side(*names):
    """Return fabrics that no link joins as one graph."""
    graph = Graph()
    for prefix, name in enumerate(names):
        part = make(name)
        for node in part.nodes():
            graph.add_node(f"{prefix}.{node}", part.kind(node))
        for link in part.links():
            graph.add_link(f"{prefix}.{link.u}", f"{prefix}.{link.v}", capacity_bps=link.capacity_bps)
    return graph


def fabric(name):
    if name == "two fabrics":
        return DataCentre(side_by_side("avalanche24", "fattree"))
    kind, parameters = FABRICS[name]
    graph = make(kind, parameters)
    if name == "fat tree with dead links":
        links = [link for link in graph.links() if NodeKind.HOST not in (graph.kind(link.u), graph.kind(link.v))]
        for link in links[::7]:
            graph.remove_link(link.u, link.v)
    return DataCentre(graph)


@pytest.fixture(scope="module", params=[*FABRICS, "two fabrics"])
def case(request):
    centre = fabric(request.param)
    groups = generate(centre, Workload(vms=200, groups=60, group_size=(1, 9)), 4)
    kept, cut_off = connected(centre, groups)
    assert bool(cut_off) == (request.param == "two fabrics")
    return request.param, centre, kept


def live(centre, groups, algorithm, seed):
    """Let the members join one after the other in the live controller's code."""
    forest = Forest(centre.graph.copy(), algorithm, seed)
    loads = dict.fromkeys(map(frozenset, centre.cables), 0)
    sizes = []
    for group in range(len(groups)):
        rate = int(groups.rates_bps[group])
        forest.set_group_rate(group, rate)
        for i in groups.terminals[groups.offsets[group] : groups.offsets[group + 1]]:
            forest.join(group, centre.switches[i], TreeRole.RECEIVER)
        tree = forest.tree(group)
        sizes.append(tree.size)
        for link in tree.links():
            loads[frozenset(link)] += rate
    return list(loads.values()), sizes


@pytest.mark.parametrize("algorithm", FIXED)
def test_trees_are_those_of_the_live_controller(case, algorithm):
    _, centre, groups = case
    trees = place_trees(centre, groups, algorithm, seed=3)
    assert (trees.load_bps.tolist(), trees.tree_links.tolist()) == live(centre, groups, algorithm, 3)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_loads_and_sizes_are_those_of_the_links_which_span_the_members(case, algorithm):
    _, centre, groups = case
    parts, told = [], []
    trees = place_trees(centre, groups, algorithm, 1, told.append, parts)
    owner, cable = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
    load = np.zeros(len(centre.cables), dtype=np.int64)
    np.add.at(load, cable, groups.rates_bps[owner])
    assert load.tolist() == trees.load_bps.tolist()
    for group in range(len(groups)):
        ends = [centre.cables[i] for i in cable[owner == group]]
        nodes = {node for link in ends for node in link}
        members = {centre.switches[i] for i in groups.terminals[groups.offsets[group] : groups.offsets[group + 1]]}
        assert len(ends) == trees.tree_links[group] == max(0, len(nodes) - 1)
        assert members <= nodes or (not nodes and len(members) == 1)
    assert told[-1] == len(groups)
    again = place_trees(centre, groups, algorithm, 1)
    assert again.load_bps.tolist() == trees.load_bps.tolist()


def test_the_default_is_optimal_on_fabrics_and_no_algorithm_is_below_the_bounds(case):
    name, centre, groups = case
    bound = least_max_pct(centre, groups)
    optimum = optimal_sizes(centre, groups)
    for algorithm in ALGORITHMS:
        trees = place_trees(centre, groups, algorithm)
        figures = outcome(trees, utilisation_pct(centre, trees), optimum, bound)
        assert figures.max_over_lower_bound >= 1 - 1e-9
        if optimum is not None:
            assert (trees.tree_links >= optimum).all()
    assert (optimum is None) == (name == "jellyfish")
    if name in ("avalanche24", "fat tree", "tree", "two fabrics"):
        assert place_trees(centre, groups).tree_links.tolist() == optimum.tolist()


def test_optimal_sizes_are_the_fabrics_own_however_many_pods_it_has():
    graph = Graph()
    graph.add_node("c", NodeKind.CORE)
    for pod in range(70):
        graph.add_node(f"a{pod}", NodeKind.AGGREGATION)
        graph.add_link(f"a{pod}", "c")
        graph.add_node(f"b{pod}", NodeKind.AGGREGATION)
        for tor in range(2):
            graph.add_node(f"t{pod}.{tor}", NodeKind.TOR)
            graph.add_link(f"t{pod}.{tor}", f"a{pod}")
            graph.add_link(f"t{pod}.{tor}", f"b{pod}")
    centre = DataCentre(graph)
    tors = np.array([i for i, node in enumerate(centre.switches) if graph.kind(node) is NodeKind.TOR])
    generator = np.random.default_rng(3)
    sizes = generator.integers(1, 120, 50)
    offsets = np.concatenate(([0], np.cumsum(sizes)))
    groups = attach(sizes, offsets, tors[generator.integers(0, len(tors), offsets[-1])], len(centre.switches))
    shape = centre.network(0).shape
    assert optimal_sizes(centre, groups).tolist() == [
        shape.optimum(centre.switches[i] for i in groups.terminals[start:stop])
        for start, stop in zip(groups.offsets, groups.offsets[1:], strict=False)
    ]


def two_islands():
    graph = Graph()
    for node in "abcd":
        graph.add_node(node, NodeKind.TOR)
    graph.add_link("a", "b")
    graph.add_link("c", "d")
    return DataCentre(graph)


def test_members_in_another_piece_of_the_fabric_are_left_out_and_named():
    centre = two_islands()
    groups = attach(np.array([5, 7, 9]), np.array([0, 4, 6, 7]), np.array([0, 2, 2, 3, 3, 0, 1]), 4)
    kept, cut_off = connected(centre, groups)
    assert [tuple(cut) for cut in cut_off] == [(0, "a", 1), (1, "a", 1)]
    assert kept.terminals.tolist() == [2, 3, 3, 1]
    assert kept.offsets.tolist() == [0, 2, 3, 4]
    for algorithm in ("vsrt", "vsrt-literal", "source-tree", "steiner"):
        assert place_trees(centre, kept, algorithm).tree_links.tolist() == [1, 0, 0]


def test_a_connected_fabric_leaves_nobody_out(case):
    _, centre, groups = case
    assert connected(centre, groups) == (groups, [])


def test_figures_of_a_small_fabric_by_hand():
    graph = Graph()
    for node, kind in (("t1", NodeKind.TOR), ("t2", NodeKind.TOR), ("t3", NodeKind.TOR), ("s", NodeKind.AGGREGATION)):
        graph.add_node(node, kind)
    for tor in ("t1", "t2", "t3"):
        graph.add_link(tor, "s", capacity_bps=1e9)
    centre = DataCentre(graph, capacity_bps=1000)
    number = centre.number
    flat = np.array([number["t1"], number["t2"], number["t1"]])
    groups = attach(np.array([1200, 30]), np.array([0, 2, 3]), flat, len(centre.switches))
    trees = place_trees(centre, groups)
    utilisation = utilisation_pct(centre, trees)
    assert sorted(utilisation.tolist()) == [0, 120, 120]
    bound = least_max_pct(centre, groups)
    assert bound == pytest.approx(120)
    figures = outcome(trees, utilisation, optimal_sizes(centre, groups), bound)
    third = pytest.approx(100 / 3)
    assert (figures.unused_pct, figures.below_5_pct) == (third, third)
    assert figures.over_100_pct == pytest.approx(200 / 3)
    assert (figures.max_pct, figures.links_per_group, figures.optimal_pct) == (120, 1, 100)
    assert figures.max_over_lower_bound == pytest.approx(1)


def test_a_fabric_of_one_switch_has_trees_without_links():
    graph = Graph()
    graph.add_node("t", NodeKind.TOR)
    centre = DataCentre(graph)
    groups = attach(np.array([5]), np.array([0, 1]), np.array([0]), 1)
    for algorithm in ALGORITHMS:
        trees = place_trees(centre, groups, algorithm)
        figures = outcome(trees, utilisation_pct(centre, trees), None, 0.0)
        assert (figures.max_pct, figures.links_per_group, figures.max_over_lower_bound) == (0, 0, None)


def test_the_articles_figures_come_out():
    centre = DataCentre(make("portland-p6"))
    rows = {name: [] for name in ("vsrt", "vsrt-literal", "pim-sm-fixed-core", "pim-sm-random-core")}
    for seed in range(1, 4):
        groups = generate(centre, Workload(), seed)
        optimum, bound = optimal_sizes(centre, groups), least_max_pct(centre, groups)
        for name, figures in rows.items():
            trees = place_trees(centre, groups, name, seed)
            figures.append(outcome(trees, utilisation_pct(centre, trees), optimum, bound))
    mean = {name: type(f[0])(*(sum(column) / len(f) for column in zip(*f, strict=True))) for name, f in rows.items()}
    literal = mean["vsrt-literal"]
    assert literal.unused_pct < 0.5
    assert abs(literal.below_5_pct - 49.5) < 5
    assert abs(literal.max_pct - 63) < 6
    assert 85 < literal.optimal_pct < 91
    assert literal.over_100_pct == 0
    assert mean["vsrt"].optimal_pct == 100
    assert mean["vsrt"].max_over_lower_bound < 1.02
    assert abs(mean["pim-sm-fixed-core"].unused_pct - 75.5) < 0.01
    assert abs(mean["pim-sm-fixed-core"].max_pct - 425) < 30
    assert abs(mean["pim-sm-random-core"].max_pct - 64) < 6
