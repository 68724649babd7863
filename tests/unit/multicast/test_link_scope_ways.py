"""Where packets of link-scope groups go: kept member by member, it is what a look at all members finds."""

from __future__ import annotations

import random

import pytest

from controller.multicast.link_scope import LinkScopeWays
from controller.multicast.switch_ports import spanning_tree
from topology.graph import Graph
from turns import calls_of

GROUPS = [b"\xff\x02" + bytes(13) + bytes((number,)) for number in range(3)]


def random_graph(draw, count=14, part_count=2):
    """Return a graph of some parts that do not reach each other."""
    graph = Graph()
    for node in range(count):
        graph.add_node(node)
    for u in range(count):
        for v in range(u + 1, count):
            if u % part_count == v % part_count and draw.random() < 0.35:
                graph.add_link(u, v, 100 + v, 100 + u)
    return graph


def sent_to(graph, tree, members, dpid):
    """Return where a switch sends packets of a group, by a look beyond each neighbour."""
    trunks = []
    for near in tree.get(dpid, ()):
        beyond = [near]
        for node in beyond:
            beyond += [other for other in tree[node] if other not in beyond and {node, other} != {near, dpid}]
        if any(node in members for node in beyond):
            trunks.append(graph.port(dpid, near))
    return (*sorted(trunks), *(sorted(members.get(dpid, ())) if dpid in tree else ()))


@pytest.mark.parametrize("seed", range(9))
def test_every_change_leads_where_a_look_at_all_members_leads_and_tells_whom_it_concerns(seed):
    draw = random.Random(seed)
    graph = random_graph(draw, part_count=1 + seed % 3)
    ways, tree = LinkScopeWays(), spanning_tree(graph)
    ways.use(tree, graph)
    narrow = 0
    for _ in range(150):
        before = {(group, dpid): ways.outputs(group, dpid) for group in GROUPS for dpid in range(15)}
        group, dpid, port_no = draw.choice(GROUPS), draw.randrange(15), draw.randrange(1, 3)
        if draw.random() < 0.1:
            u, v = draw.randrange(14), draw.randrange(14)
            if graph.has_link(u, v):
                graph.remove_link(u, v)
            elif u != v:
                graph.add_link(u, v, 100 + v, 100 + u)
            tree = spanning_tree(graph)
            ways.use(tree, graph)
        else:
            has = port_no in ways.members.get(group, {}).get(dpid, ())
            was_known = group in ways.members
            concerned = (ways.discard if has else ways.add)(group, dpid, port_no)
            assert concerned is None or (was_known and group in ways.members)
            for (other, at), outputs in before.items():
                if ways.outputs(other, at) != outputs:
                    assert other == group and (concerned is None or at in concerned)
            narrow += concerned is not None and len(concerned) < 8
        for each in GROUPS:
            members = ways.members.get(each, {})
            assert all(members.values())
            for at in range(15):
                assert ways.outputs(each, at) == sent_to(graph, tree, members, at)
    assert narrow > 50


def test_a_member_more_concerns_as_many_switches_in_a_small_tree_as_in_a_large_one():
    def cost(width):
        graph = Graph()
        for node in range(1 + width + width * width):
            graph.add_node(node)
        for near in range(1, width + 1):
            graph.add_link(0, near, near, 1)
            for leaf in range(width + 1 + (near - 1) * width, width + 1 + near * width):
                graph.add_link(near, leaf, leaf, 1)
        ways = LinkScopeWays()
        ways.use(spanning_tree(graph), graph)
        last = len(graph) - 1
        ways.add(GROUPS[0], width + 1, 9)
        ways.add(GROUPS[0], 2 * width + 1, 9)
        concerned = []
        calls = calls_of(lambda: concerned.append(ways.add(GROUPS[0], last, 9)))
        return calls, len(concerned[0])

    assert cost(12) == cost(4)
