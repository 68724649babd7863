"""Steiner problems of the kind of SteinLib's series B, made by a seed, with their optimum by Dreyfus and Wagner."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush
from itertools import combinations
from random import Random

import networkx as nx


def make_problem(seed: int, nodes: int = 40, links: int = 60, terminals: int = 7) -> tuple[nx.Graph, list[int]]:
    """Return a connected random graph with integer weights 1 to 10, nodes counted from 1, and its terminals."""
    random = Random(seed)
    order = random.sample(range(1, nodes + 1), nodes)
    graph = nx.Graph()
    for place in range(1, nodes):
        graph.add_edge(order[place], order[random.randrange(place)], weight=random.randint(1, 10))
    while graph.number_of_edges() < links:
        u, v = random.sample(order, 2)
        if not graph.has_edge(u, v):
            graph.add_edge(u, v, weight=random.randint(1, 10))
    return graph, sorted(random.sample(order, terminals))


def as_stp(graph: nx.Graph, terminals: list[int]) -> str:
    """Return a problem as a SteinLib file."""
    edges = [f"E {u} {v} {weight}" for u, v, weight in graph.edges(data="weight")]
    return "\n".join(
        [
            "33D32945 STP File, STP Format Version 1.0",
            *("SECTION Graph", f"Nodes {len(graph)}", f"Edges {len(edges)}", *edges, "END"),
            *("SECTION Terminals", f"Terminals {len(terminals)}", *(f"T {node}" for node in terminals), "END"),
            *("EOF", ""),
        ]
    )


def optimal_cost(graph: nx.Graph, terminals: list[int]) -> int:
    """Return the least weight of a tree over the terminals, by the dynamic programme over their subsets."""
    *rest, root = terminals
    cost: dict[int, dict[int, int]] = {}
    for mask in _by_size(len(rest)):
        if mask & (mask - 1) == 0:
            start = {rest[mask.bit_length() - 1]: 0}
        else:
            start = {
                node: min(cost[part][node] + cost[mask ^ part][node] for part in _halves(mask)) for node in graph
            }
        cost[mask] = _spread(graph, start)
    return cost[(1 << len(rest)) - 1][root]


def _by_size(count: int) -> Iterator[int]:
    for size in range(1, count + 1):
        for chosen in combinations(range(count), size):
            yield sum(1 << index for index in chosen)


def _halves(mask: int) -> Iterator[int]:
    """Yield one of each pair of parts that make up a set."""
    part = (mask - 1) & mask
    while part:
        if part > mask ^ part:
            yield part
        part = (part - 1) & mask


def _spread(graph: nx.Graph, start: dict[int, int]) -> dict[int, int]:
    """Return for each node the least of a start's cost and the way from there."""
    queue = sorted((cost, node) for node, cost in start.items())
    reached: dict[int, int] = {}
    while queue:
        cost, node = heappop(queue)
        if node in reached:
            continue
        reached[node] = cost
        for neighbour, link in graph.adj[node].items():
            if neighbour not in reached:
                heappush(queue, (cost + link["weight"], neighbour))
    return reached
