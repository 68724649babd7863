"""Fabrics, exact sizes and invariants that the tests of the trees share."""

from __future__ import annotations

from itertools import combinations
from types import SimpleNamespace

import pytest

from controller.trees import flows
from controller.trees.forest import Forest
from controller.trees.tree import TreeRole
from topology.graph import Graph, NodeKind


def pods_and_cores(pods, tors, aggregations, cores, wiring):
    """Return a fabric of ToRs ``t0.1``, aggregations ``a0.1`` and cores ``c1``; ``wiring(j)`` names j's cores."""
    graph = Graph()
    for core in range(cores):
        graph.add_node(f"c{core}", NodeKind.CORE)
    for pod in range(pods):
        for j in range(aggregations):
            graph.add_node(f"a{pod}.{j}", NodeKind.AGGREGATION)
            for core in wiring(j):
                graph.add_link(f"a{pod}.{j}", f"c{core}", capacity_bps=1e7)
        for t in range(tors):
            graph.add_node(f"t{pod}.{t}", NodeKind.TOR)
            for j in range(aggregations):
                graph.add_link(f"t{pod}.{t}", f"a{pod}.{j}", capacity_bps=1e7)
    return graph


def fat_tree(k=4):
    half = k // 2
    return pods_and_cores(k, half, half, half * half, lambda j: range(half * j, half * (j + 1)))


def avalanche24():
    return pods_and_cores(3, 2, 2, 2, lambda j: (0, 1))


def leaf_spine(leaves=4, spines=2):
    graph = Graph()
    for s in range(spines):
        graph.add_node(f"s{s}", NodeKind.AGGREGATION)
    for leaf in range(leaves):
        graph.add_node(f"t{leaf}", NodeKind.TOR)
        for s in range(spines):
            graph.add_link(f"t{leaf}", f"s{s}")
    return graph


def k_ary_tree(depth=4, fanout=2):
    """Return a complete tree; leaves are ToRs, every other switch is of no known kind."""
    graph = Graph()
    graph.add_node("r")
    last = ["r"]
    for level in range(1, depth):
        nodes = [f"{above}{i}" for above in last for i in range(fanout)]
        for node in nodes:
            graph.add_node(node, NodeKind.TOR if level == depth - 1 else NodeKind.SWITCH)
            graph.add_link(node, node[:-1])
        last = nodes
    return graph


def hub_and_ring(spokes=8):
    """Return a hub over every second ToR of a ring."""
    graph = Graph()
    graph.add_node("hub", NodeKind.CORE)
    for i in range(spokes):
        graph.add_node(i, NodeKind.TOR)
    for i in range(spokes):
        graph.add_link(i, (i + 1) % spokes)
        graph.add_link(i, "hub")
    return graph


def petersen():
    """Return a graph without tiers: ten switches, each with three neighbours."""
    graph = Graph()
    for i in range(10):
        graph.add_node(i)
    for i in range(5):
        graph.add_link(i, (i + 1) % 5)
        graph.add_link(i, i + 5)
        graph.add_link(i + 5, (i + 2) % 5 + 5)
    return graph


FABRICS = {
    "fattree4": fat_tree,
    "avalanche24": avalanche24,
    "leaf-spine": leaf_spine,
    "tree": k_ary_tree,
    "hub-and-ring": hub_and_ring,
    "petersen": petersen,
}


def dreyfus_wagner(graph, terminals):
    """Return the exact weight of a smallest tree over `terminals` (Dreyfus and Wagner, Networks 1, 1971)."""
    nodes = graph.nodes()
    distance = {u: {v: 0.0 if u == v else float("inf") for v in nodes} for u in nodes}
    for link in graph.links():
        distance[link.u][link.v] = distance[link.v][link.u] = link.weight
    for w in nodes:
        for u in nodes:
            through = distance[u][w]
            for v in nodes:
                distance[u][v] = min(distance[u][v], through + distance[w][v])
    root, *rest = dict.fromkeys(terminals)
    if not rest:
        return 0.0
    best = {frozenset([t]): {v: distance[t][v] for v in nodes} for t in rest}
    for size in range(2, len(rest) + 1):
        for group in combinations(rest, size):
            whole, first = frozenset(group), group[0]
            splits = [
                frozenset(part) | {first} for count in range(size - 1) for part in combinations(group[1:], count)
            ]
            merged = {v: min(best[s][v] + best[whole - s][v] for s in splits) for v in nodes}
            best[whole] = {v: min(merged[u] + distance[u][v] for u in nodes) for v in nodes}
    return best[frozenset(rest)][root]


def expected_loads(forest, default_bps):
    """Return the load of every direction that carries any, link by link from the definition."""
    loads = {}
    for tree in forest:
        links = [(u, v) for u, near in tree.adjacent.items() for v in near]
        on_tree = set(tree.adjacent)
        senders = {n: tree.rates[n] for n in tree.senders if n in on_tree}
        for u, v in links:
            side, todo = {u}, [u]
            while todo:
                here = todo.pop()
                for n in tree.adjacent[here]:
                    if n not in side and not (here == u and n == v):
                        side.add(n)
                        todo.append(n)
            if not senders:
                rate = default_bps
            elif any(n in tree.receivers for n in on_tree - side):
                rate = sum(r for n, r in senders.items() if n in side)
            else:
                rate = 0
            if rate:
                loads[u, v] = loads.get((u, v), 0) + rate
    return loads


def check_tree(graph, tree):
    """Assert what holds of every tree: it spans, has no loop, uses living links and has no useless leaf."""
    nodes = set(tree.adjacent)
    attached = set(tree.terminals) - tree.detached
    assert tree.detached <= set(tree.terminals)
    assert attached <= nodes
    assert not tree.detached & nodes
    links = set(map(frozenset, tree.links()))
    assert links == {frozenset((u, v)) for u, near in tree.adjacent.items() for v in near}
    assert tree.size == len(links) == max(len(nodes) - 1, 0)
    for link in links:
        assert graph.has_link(*link)
    if nodes:
        start = next(iter(nodes))
        seen, todo = {start}, [start]
        while todo:
            for n in tree.adjacent[todo.pop()] - seen:
                seen.add(n)
                todo.append(n)
        assert seen == nodes
    for node, near in tree.adjacent.items():
        assert len(near) > 1 or node in tree.terminals or node == tree.pinned
    known = {tree.root} if nodes else set()
    for node, above in tree.parent.items():
        assert above in known
        known.add(node)
    for node in tree.detached:
        reach = {node}
        todo = [node] if node in graph else []
        while todo:
            for n in graph.neighbours(todo.pop()):
                if n not in reach:
                    reach.add(n)
                    todo.append(n)
        assert not reach & nodes


def check_forest(forest, default_bps=1_000_000):
    """Assert the invariants of all trees, of the loads and of the index of links."""
    for tree in forest:
        check_tree(forest.graph, tree)
        assert tree.rate_bps == sum(tree.rates.values())
        assert set(tree.rates) == set(tree.senders)
    found = {(u, v): bps for u, v, bps in forest.loads.directions() if bps}
    assert found == expected_loads(forest, default_bps)
    for tree in forest if not forest.is_broken else ():
        check_uses(tree, forest.loads)
    for link in forest.graph.links():
        users = {tree.key for tree in forest if link.v in tree.adjacent.get(link.u, ())}
        assert forest.groups_on(link.u, link.v) == users
    assert {(a, b) for a, b, _ in forest.loads.directions()} == {
        pair for x in forest.graph.links() for pair in ((x.u, x.v), (x.v, x.u))
    }


def check_uses(tree, loads):
    """Assert that what a tree is kept to put on directed links is what its senders send there now."""
    index, expected = flows.index_of(tree, loads), {}
    for node, above in tree.parent.items():
        up, down = flows.link_load(tree, node)
        expected.update({index[node][above]: up, index[above][node]: down})
    carried = {number: bps for number, bps in expected.items() if bps}
    assert flows.carried(tree, loads) == carried
    found = flows.uses(tree, loads)
    on_tree = [node for node in tree.rates if node in tree]
    assert (found is None) == (not on_tree)
    assert found is None or (found.numbers is None) == (len(on_tree) > 1)
    if found is not None and found.numbers is not None and flows.sent_bps(tree):
        assert dict.fromkeys(found.numbers, flows.sent_bps(tree)) == carried


def joined(graph, members, algorithm="vsrt", seed=0, key=b"g", role=TreeRole.RECEIVER):
    """Return a forest in which `members` joined one group, in order, and the group's tree."""
    forest = Forest(graph, algorithm, seed)
    for member in members:
        forest.join(key, member, role)
    return forest, forest.tree(key)


def size_without_stub(tree):
    """Return the number of links of a tree without those that only lead to its root, where that is no terminal."""
    size, node, before = tree.size, tree.root, None
    while node not in tree.terminals:
        beyond = [n for n in tree.adjacent[node] if n != before]
        if len(beyond) > 1:
            break
        size, before, node = size - 1, node, beyond[0]
    return size


@pytest.fixture(scope="session")
def lab():
    """Everything in this file, for tests that cannot import it by name."""
    return SimpleNamespace(**{name: value for name, value in globals().items() if callable(value)}, FABRICS=FABRICS)
