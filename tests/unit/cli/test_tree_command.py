import json

import networkx as nx
import pytest

from apps.cli.main import main
from controller.trees.algorithms import ALGORITHMS
from steiner_problems import as_stp, make_problem, optimal_cost


@pytest.fixture
def leaf_spine(tmp_path):
    graph = nx.Graph()
    for spine in ("s1", "s2"):
        graph.add_node(spine, kind="aggregation")
    for leaf in ("l1", "l2", "l3"):
        graph.add_node(leaf, kind="tor")
        graph.add_edges_from([(leaf, "s1"), (leaf, "s2")], capacity_bps=1e9)
        for host in (f"{leaf}a", f"{leaf}b"):
            graph.add_node(host, kind="host")
            graph.add_edge(leaf, host, capacity_bps=1e9)
    graph.add_node("alone", kind="host")
    file = tmp_path / "fabric.json"
    file.write_text(json.dumps(nx.node_link_data(graph, edges="links")))
    return file


def call(capsys, *words):
    status = main([str(word) for word in words])
    out, err = capsys.readouterr()
    return status, out, err


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_hosts_join_at_their_switches_and_size_leaves_their_links_out(capsys, leaf_spine, algorithm):
    words = ("tree", leaf_spine, "--members", "l1a,l1b,l2a,l3b", "--algorithm", algorithm, "--json")
    status, out, _ = call(capsys, *words)
    document = json.loads(out)
    assert status == 0
    assert document["algorithm"] == algorithm
    links = {frozenset(link) for link in document["links"]}
    assert {frozenset(p) for p in (("l1a", "l1"), ("l1b", "l1"), ("l2a", "l2"), ("l3b", "l3"))} <= links
    assert document["size"] == len(links) - 4
    assert document["size"] >= 3
    assert document["cost"] == len(links)
    assert document["unreachable"] == []
    assert nx.is_tree(nx.Graph(document["links"]))
    assert call(capsys, *words)[1] == out


def test_the_default_is_optimal(capsys, leaf_spine):
    _, out, _ = call(capsys, "tree", leaf_spine, "--members", "l1a,l2a,l3a", "--json")
    assert json.loads(out)["size"] == 3


def test_text_output_ends_with_the_figures(capsys, leaf_spine):
    status, out, _ = call(capsys, "tree", leaf_spine, "--members", "l1a,l1b")
    assert status == 0
    assert out.splitlines()[-1] == "size 0, cost 2, fallbacks 0"


def test_unreachable_members_are_listed_and_the_rest_is_built(capsys, leaf_spine):
    status, out, err = call(capsys, "tree", leaf_spine, "--members", "alone,l1a,l2a", "--json")
    document = json.loads(out)
    assert status == 1
    assert document["unreachable"] == ["alone"]
    assert document["size"] == 2
    assert "alone" in err


def test_unknown_members_are_named(capsys, leaf_spine):
    status, out, err = call(capsys, "tree", leaf_spine, "--members", "l1a,nobody,none", "--json")
    assert status == 2
    assert out == ""
    assert "nobody, none" in err


@pytest.mark.parametrize("members", [[], ["--members", "l1a,,l2a"], ["--members", ""]])
def test_missing_or_empty_members_are_refused(capsys, leaf_spine, members):
    status, out, err = call(capsys, "tree", leaf_spine, *members)
    assert status == 2
    assert out == ""
    assert "--members" in err


STP = """33D32945 STP File, STP Format Version 1.0
SECTION Graph
Nodes 4
Edges 4
E 1 2 10
E 1 4 1
E 4 3 1
E 3 2 1
END
SECTION Terminals
Terminals 2
T 1
T 2
END
EOF
"""


@pytest.mark.parametrize("algorithm", [name for name in ALGORITHMS if name != "vsrt-literal"])
def test_weights_decide_in_a_steinlib_file_and_its_terminals_are_the_members(capsys, tmp_path, algorithm):
    file = tmp_path / "small.stp"
    file.write_text(STP)
    status, out, _ = call(capsys, "tree", file, "--algorithm", algorithm, "--json")
    document = json.loads(out)
    assert status == 0
    assert document["cost"] == 3
    assert document["size"] == 3


def test_steady_state_is_close_to_the_optimum(capsys, tmp_path):
    excess = []
    for seed in range(100, 112):
        problem = make_problem(seed)
        file = tmp_path / f"{seed}.stp"
        file.write_text(as_stp(*problem))
        _, out, _ = call(capsys, "tree", file, "--steady-state", "--json")
        excess.append(json.loads(out)["cost"] / optimal_cost(*problem) - 1)
    assert min(excess) >= 0
    assert sum(excess) / len(excess) < 0.02
