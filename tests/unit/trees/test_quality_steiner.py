"""Trees on Steiner problems of the kind of SteinLib's series B, against the optimum and networkx."""

from __future__ import annotations

from statistics import mean

import networkx as nx
import pytest

from apps.cli.tree_command import build
from steiner_problems import as_stp, make_problem, optimal_cost
from topology.files import parse

PROBLEMS = 18


@pytest.fixture(scope="module")
def instances():
    found = []
    for seed in range(PROBLEMS):
        problem = make_problem(seed)
        found.append((parse(as_stp(*problem).encode(), f"{seed}.stp"), optimal_cost(*problem)))
    return found


def excess_pct(cost, optimum):
    assert cost >= optimum
    return 100 * (cost / optimum - 1)


def ours(instances, steady_state):
    excesses = []
    for topology, optimum in instances:
        made = build(topology.graph, topology.terminals, "vsrt", steady_state, seed=0)
        assert not made["unreachable"]
        tree = nx.Graph()
        tree.add_edges_from(made["links"])
        assert nx.is_tree(tree) and set(topology.terminals) <= set(tree)
        excesses.append(excess_pct(made["cost"], optimum))
    return excesses


def library(instances):
    excesses = []
    for topology, optimum in instances:
        graph = nx.Graph()
        graph.add_weighted_edges_from((link.u, link.v, link.weight) for link in topology.graph.links())
        tree = nx.algorithms.approximation.steiner_tree(graph, list(topology.terminals), method="mehlhorn")
        excesses.append(excess_pct(tree.size(weight="weight"), optimum))
    return excesses


def test_the_default_is_no_worse_than_the_library_on_average(instances):
    assert mean(ours(instances, steady_state=False)) <= mean(library(instances))


def test_the_steady_state_is_within_two_per_cent_on_average_and_never_worse_than_the_default(instances):
    steady, grown = ours(instances, steady_state=True), ours(instances, steady_state=False)
    assert mean(steady) < 2.0
    assert all(one <= other for one, other in zip(steady, grown, strict=True))
