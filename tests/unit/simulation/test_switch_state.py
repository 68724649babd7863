"""Entries and outputs per switch against what the live controller compiles."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.rules.compile import LOWER, SenderEntry, SwitchDuty, channel_duties
from controller.rules.model import Output
from controller.rules.pipeline import ADMIT, FORWARD, OPENFLOW_1_3
from controller.simulation.switch_state import TableUse, state_of_links, state_of_trees
from controller.trees.algorithms import ALGORITHMS
from controller.trees.forest import Forest
from controller.trees.network import switch_graph
from controller.trees.tree import TreeRole
from topology.generators import make
from topology.graph import NodeKind

FABRICS = {"avalanche24": {}, "fattree": {"k": 4}, "jellyfish": {"switches": 8, "degree": 3}}
ROLES = st.sampled_from([TreeRole.RECEIVER, TreeRole.SENDER, TreeRole.RECEIVER | TreeRole.SENDER])


def fabric(name):
    return switch_graph(make(name, FABRICS[name]))


def compiled(forest, switches, ports):
    """Count the entries of both tables and the outputs that compilation gives, per switch."""
    number = {node: i for i, node in enumerate(switches)}
    forward, admit, outputs = ([0] * len(switches) for _ in range(3))
    for tree in forest:
        group = bytes((239, 1, 0, tree.key))
        neighbours = {number[n]: {number[m] for m in near} for n, near in tree.adjacent.items()}
        members = {
            number[node]: {None: range(500, 500 + ports[tree.key][node])}
            for node, role in tree.terminals.items()
            if role & TreeRole.RECEIVER
        }
        duties = channel_duties(neighbours, lambda u, v: v + 1, members, (None,))
        for dpid in range(len(switches)):
            senders = ()
            if switches[dpid] in tree.senders:
                senders = (SenderEntry(900, b"\x02" * 6, b"\x0a\0\0\1", True),)
            rules = LOWER[OPENFLOW_1_3](group, SwitchDuty(0, duties.get(dpid, ()), senders), 1)
            for key, rule in rules.items():
                forward[dpid] += key.table == FORWARD
                admit[dpid] += key.table == ADMIT
                outputs[dpid] += sum(isinstance(action, Output) for action in rule.actions)
    return forward, admit, outputs


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("name", FABRICS)
@settings(max_examples=20)
@given(
    groups=st.lists(
        st.lists(st.tuples(st.integers(0, 50), ROLES, st.integers(1, 3)), min_size=1, max_size=6), max_size=3
    ),
    dead=st.lists(st.integers(0, 50), max_size=3),
)
def test_the_counts_are_those_of_the_compiled_rules(name, algorithm, groups, dead):
    graph = fabric(name)
    switches = graph.nodes()
    edges = graph.nodes(NodeKind.TOR) or switches
    forest = Forest(graph, algorithm)
    ports = {}
    for key, members in enumerate(groups):
        for pick, role, count in members:
            node = edges[pick % len(edges)]
            forest.join(key, node, role)
            ports.setdefault(key, {})[node] = count
    for pick in dead:
        links = list(forest.graph.links())
        forest.remove_link(*links[pick % len(links)][:2])
    state = state_of_trees(forest, switches, ports)
    forward, admit, outputs = compiled(forest, switches, ports)
    assert state.entries.tolist() == forward
    assert state.outputs.tolist() == outputs
    assert sum(admit) == sum(len(tree.senders) for tree in forest)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@settings(max_examples=20)
@given(groups=st.lists(st.lists(st.integers(0, 50), min_size=1, max_size=6), max_size=4))
def test_links_in_arrays_give_the_same_counts(algorithm, groups):
    graph = fabric("fattree")
    switches, tors = graph.nodes(), graph.nodes(NodeKind.TOR)
    number = {node: i for i, node in enumerate(switches)}
    forest = Forest(graph, algorithm)
    for key, picks in enumerate(groups):
        for pick in picks:
            forest.join(key, tors[pick % len(tors)], TreeRole.RECEIVER)
    links = [(tree.key, number[u], number[v]) for tree in forest for u, v in tree.links()]
    places = [(tree.key, number[node]) for tree in forest for node in tree.terminals]
    group, u, v = np.array(links, dtype=np.int64).reshape(-1, 3).T
    terminal_group, terminal = np.array(places, dtype=np.int64).reshape(-1, 2).T
    found = state_of_links(group, u, v, terminal_group, terminal, len(switches))
    wanted = state_of_trees(forest, switches)
    assert found.entries.tolist() == wanted.entries.tolist()
    assert found.outputs.tolist() == wanted.outputs.tolist()


def test_the_summary_says_how_entries_are_spread():
    state = TableUse(np.array([0, 1, 2, 9]), np.array([0, 2, 4, 30]))
    summary = state.summary()
    assert summary["flow_entries"] == {"max": 9, "p99": pytest.approx(8.79), "mean": 3.0}
    assert summary["outputs"]["max"] == 30
    assert (summary["group_entries"], summary["entries_total"], summary["switches_without_entries"]) == (0, 12, 1)
    empty = TableUse(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)).summary()
    assert empty["flow_entries"] == {"max": 0, "p99": 0.0, "mean": 0.0}
