from __future__ import annotations

import json
from typing import Any

import networkx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steiner_problems import as_stp, make_problem
from topology.files import FORMATS, TopologyFileError, assembly, faults, parse
from topology.files.node_link import document
from topology.generators import GENERATORS, make
from topology.graph import DEFAULT_CAPACITY_BPS, Graph, NodeKind

NODE = {"id": "a", "kind": "tor"}
TWO = [NODE, {"id": "b"}]


def facts(graph: Graph) -> tuple[object, ...]:
    return (
        {node: (graph.kind(node), graph.attributes(node)) for node in graph.nodes()},
        set(graph.links()),
    )


def links_alone(graph: Graph) -> set[tuple[object, ...]]:
    return {(str(link.u), str(link.v), *link[2:]) for link in graph.links()}


def node_link(nodes: Any = None, links: Any = (), **more: Any) -> bytes:
    return json.dumps({"nodes": TWO if nodes is None else nodes, "links": list(links), **more}).encode()


names = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=9)
ids = st.one_of(st.integers(-(2**64) + 1, 2**64 - 1), names)
positive = st.floats(1e-3, 1e15)


@st.composite
def graphs(draw: st.DrawFn, identities: st.SearchStrategy[Any] = ids) -> Graph:
    graph = Graph()
    nodes = draw(st.lists(identities, min_size=1, max_size=12, unique_by=str))
    for number, node in enumerate(nodes, 1):
        kind = draw(st.sampled_from(list(NodeKind)))
        attributes: dict[str, Any] = {}
        if draw(st.booleans()):
            attributes["pod"] = draw(st.integers(-5, 5))
        if draw(st.booleans()):
            attributes |= {"ip": f"10.0.0.{number}", "mac": f"00:00:00:00:00:{number:02x}"}
        if draw(st.booleans()):
            attributes["dpid"] = 2**64 - number
        graph.add_node(node, kind, **attributes)
    ports = dict.fromkeys(nodes, 0)
    for first in range(len(nodes)):
        for second in range(first):
            if draw(st.booleans()):
                ends = (nodes[first], nodes[second])
                for node in ends:
                    ports[node] += 1
                numbers = [ports[node] if draw(st.booleans()) else None for node in ends]
                graph.add_link(*ends, *numbers, draw(positive), draw(st.floats(0, 1e9)))
    return graph


@settings(max_examples=150, deadline=None)
@given(graphs())
def test_node_link_files_come_back_as_they_were(graph: Graph) -> None:
    text = FORMATS["node-link"].write(graph)  # type: ignore[misc]
    assert facts(parse(text.encode(), "f.json").graph) == facts(graph)
    assert facts(parse(text.encode(), "no suffix").graph) == facts(graph)


@settings(max_examples=100, deadline=None)
@given(graphs(names))
def test_graphml_files_come_back_as_they_were(graph: Graph) -> None:
    text = FORMATS["graphml"].write(graph)  # type: ignore[misc]
    assert facts(parse(text.encode(), "f.graphml").graph) == facts(graph)
    assert facts(parse(text.encode(), "f").graph) == facts(graph)


@settings(max_examples=100, deadline=None)
@given(graphs(st.from_regex(r"[a-zA-Z][a-zA-Z0-9_.-]{0,8}", fullmatch=True)))
def test_edge_lists_keep_links_and_their_attributes(graph: Graph) -> None:
    if not list(graph.links()):
        return
    text = FORMATS["edge-list"].write(graph)  # type: ignore[misc]
    assert links_alone(parse(text.encode(), "f.edgelist").graph) == links_alone(graph)


@pytest.mark.parametrize("name", [name for name in GENERATORS if not name.startswith("portland")])
def test_node_link_is_exactly_what_networkx_writes(name: str) -> None:
    written = document(make(name), {"name": name})
    as_networkx = networkx.node_link_graph(written, edges="links")
    assert networkx.node_link_data(as_networkx, edges="links") == written
    assert {"id", "kind", "level"} <= set.intersection(*(set(node) for node in written["nodes"]))
    assert all("capacity_bps" in link for link in written["links"])


def test_ports_survive_a_program_that_swaps_the_ends_of_links() -> None:
    graph = make("avalanche24")
    written = document(graph)
    for link in written["links"]:
        link["source"], link["target"] = link["target"], link["source"]
    assert facts(parse(json.dumps(written).encode(), "f.json").graph) == facts(graph)


def test_networkx_reads_our_graphml_and_we_read_its() -> None:
    graph = make("fattree")
    text = FORMATS["graphml"].write(graph)  # type: ignore[misc]
    theirs = networkx.parse_graphml(text)
    assert {node: data["kind"] for node, data in theirs.nodes(data=True)} == {
        node: str(graph.kind(node)) for node in graph.nodes()
    }
    again = "\n".join(networkx.generate_graphml(theirs))
    assert facts(parse(again.encode(), "f.graphml").graph) == facts(graph)


def test_networkx_reads_our_edge_lists_and_we_read_its() -> None:
    graph = make("jellyfish")
    text = FORMATS["edge-list"].write(graph)  # type: ignore[misc]
    theirs = networkx.parse_edgelist(text.splitlines())
    again = "\n".join(networkx.generate_edgelist(theirs))
    assert links_alone(parse(again.encode(), "f.edges").graph) == links_alone(graph)


def test_foreign_files_get_the_defaults() -> None:
    text = json.dumps(networkx.node_link_data(networkx.petersen_graph(), edges="edges"))
    graph = parse(text.encode(), "petersen.json").graph
    assert {graph.kind(node) for node in graph.nodes()} == {NodeKind.SWITCH}
    assert graph.nodes() == list(range(10))
    assert {(link.capacity_bps, link.weight, link.u_port) for link in graph.links()} == {
        (DEFAULT_CAPACITY_BPS, 1.0, None)
    }
    assert len(list(graph.links())) == 15


def test_nodes_are_found_by_what_their_id_reads() -> None:
    found = parse(node_link([{"id": 7}, {"id": "h1"}, {"id": "07"}]), "f.json")
    assert [found.node(name) for name in ("7", "h1", "07")] == [7, "h1", "07"]
    for name in ("8", "007", "", "-7", "h2", "٧", "9" * 5000):
        with pytest.raises(KeyError):
            found.node(name)


def test_graphml_defaults_apply_where_no_value_is_given() -> None:
    text = """<?xml version="1.0" encoding="ISO-8859-1"?>
    <graphml xmlns="http://graphml.graphdrawing.org/xmlns">
      <desc>any</desc>
      <key id="d0" for="node" attr.name="kind" attr.type="string"><default>tor</default></key>
      <key id="d1" for="edge" attr.name="weight" attr.type="int"><default> 4 </default></key>
      <key id="d2" for="node" attr.name="colour" attr.type="nonsense"/>
      <graph id="G" edgedefault="undirected">
        <edge source="a" target="é"><data key="d1">2</data></edge>
        <node id="a"><data key="d2">red</data></node>
        <node id="é"><data key="d0">core</data></node>
        <node id="c"/>
        <edge id="e" source="c" target="é" directed="false"/>
      </graph>
    </graphml>"""
    graph = parse(text.encode(), "f.xml").graph
    assert [graph.kind(node) for node in ("a", "é", "c")] == [NodeKind.TOR, NodeKind.CORE, NodeKind.TOR]
    assert (graph.link("a", "é").weight, graph.link("c", "é").weight) == (2.0, 4.0)


def test_edge_lists_take_weights_comments_and_windows_lines() -> None:
    graph = parse(b"\xef\xbb\xbf# a comment\r\n\r\na b\r\nb c 2.5 # heavy\r\nc d {'weight': 3}\r\n", "f.txt").graph
    assert [(link.u, link.v, link.weight) for link in graph.links()] == [
        ("a", "b", 1.0),
        ("b", "c", 2.5),
        ("c", "d", 3.0),
    ]


def test_an_edge_list_refuses_ids_of_several_words() -> None:
    graph = Graph()
    graph.add_node("rack 1")
    with pytest.raises(ValueError, match="rack 1"):
        FORMATS["edge-list"].write(graph)  # type: ignore[misc]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", ("no node",)),
        (b'{"nodes": [\n{"id": 1},\n', (":3:", "no JSON")),
        (b'{"nodes": 4}', ("nodes", "no list")),
        (b'{"links": []}', ("nodes", "missing")),
        (b'{"nodes": [{"id": 1}]}', ("links", "missing")),
        (b'{"nodes": [{"id": 1}, 2], "links": []}', ("nodes[1]", "no object")),
        (b'{"a":' * 100000, ("no JSON",)),
        (b'{"nodes": [{"id": ' + b"9" * 5000 + b'}], "links": []}', ("no JSON",)),
        (node_link([]), ("no node",)),
        (node_link([{"kind": "host"}]), ("nodes[0].id", "missing")),
        (node_link([NODE, {"id": "a"}]), ("nodes[1].id", "second", "'a'")),
        (node_link([{"id": 1}, {"id": "1"}]), ("nodes[1].id", "second")),
        (node_link([{"id": None}]), ("nodes[0].id",)),
        (node_link([{"id": True}]), ("nodes[0].id",)),
        (node_link([{"id": ["a"]}]), ("nodes[0].id",)),
        (node_link([{"id": ""}]), ("nodes[0].id",)),
        (node_link([{"id": "a\nb"}]), ("nodes[0].id", "printable")),
        (node_link([{"id": "\ud800"}]), ("nodes[0].id", "printable")),
        (node_link([{"id": "x" * 201}]), ("nodes[0].id", "200")),
        (node_link([{"id": 2**64}]), ("nodes[0].id",)),
        (node_link([{"id": "a", "kind": "router"}]), ("nodes[0].kind", "'router'", "aggregation")),
        (node_link([{"id": "a", "kind": ["tor"]}]), ("nodes[0].kind",)),
        (node_link([{"id": "a", "pod": 1.5}]), ("nodes[0].pod",)),
        (node_link([{"id": "a", "dpid": 0}]), ("nodes[0].dpid",)),
        (node_link([{"id": "a", "dpid": "1"}]), ("nodes[0].dpid",)),
        (node_link([{"id": "a", "ip": "10.0.0.256"}]), ("nodes[0].ip",)),
        (node_link([{"id": "a", "ip": 1}]), ("nodes[0].ip",)),
        (node_link([{"id": "a", "mac": "0:0:0:0:0:1"}]), ("nodes[0].mac",)),
        (node_link([{"id": "a", "dpid": 1}, {"id": "b", "dpid": 1}]), ("nodes[1].dpid", "second")),
        (node_link([{"id": "a", "ip": "10.0.0.1"}, {"id": "b", "ip": "10.0.0.1"}]), ("nodes[1].ip", "second")),
        (node_link(links=[{"source": "a"}]), ("links[0].target", "missing")),
        (node_link(links=[{"source": "a", "target": "c"}]), ("links[0].target", "'c'")),
        (node_link(links=[{"source": {}, "target": "a"}]), ("links[0].id",)),
        (node_link(links=[{"source": "a", "target": "a"}]), ("links[0]", "self-loop")),
        (
            node_link(links=[{"source": "a", "target": "b"}, {"source": "b", "target": "a"}]),
            ("links[1]", "second link"),
        ),
        (node_link(links=[{"source": "a", "target": "b", "capacity_bps": -1}]), ("links[0].capacity_bps", "-1")),
        (node_link(links=[{"source": "a", "target": "b", "capacity_bps": 0}]), ("links[0].capacity_bps",)),
        (node_link(links=[{"source": "a", "target": "b", "capacity_bps": None}]), ("links[0].capacity_bps",)),
        (
            node_link(links=[{"source": "a", "target": "b", "capacity_bps": 1e999}]),
            ("links[0].capacity_bps", "finite"),
        ),
        (node_link(links=[{"source": "a", "target": "b", "capacity_bps": 10**400}]), ("capacity_bps", "finite")),
        (node_link(links=[{"source": "a", "target": "b", "weight": "heavy"}]), ("links[0].weight", "'heavy'")),
        (node_link(links=[{"source": "a", "target": "b", "weight": float("nan")}]), ("links[0].weight",)),
        (node_link(links=[{"source": "a", "target": "b", "weight": -0.5}]), ("links[0].weight", "negative")),
        (node_link(links=[{"source": "a", "target": "b", "weight": True}]), ("links[0].weight",)),
        (node_link(links=[{"source": "a", "target": "b", "ports": {"c": 1}}]), ("links[0].ports",)),
        (node_link(links=[{"source": "a", "target": "b", "ports": 3}]), ("links[0].ports",)),
        (node_link(links=[{"source": "a", "target": "b", "ports": {"a": 0}}]), ("links[0].ports", "0 is not")),
        (node_link(links=[{"source": "a", "target": "b", "source_port": 1.5}]), ("links[0].source_port",)),
        (
            node_link(
                [NODE, {"id": "b"}, {"id": "c"}],
                [{"source": "a", "target": end, "source_port": 1} for end in ("b", "c")],
            ),
            ("links[1].source_port", "port 1", "'a'"),
        ),
        (node_link(directed=True), ("directed",)),
        (node_link(multigraph=True), ("multigraph",)),
        (b'{"nodes": [{"id": "\n\xff"}]}', (":2:", "UTF-8")),
        (b"33D32945 STP File, STP Format Version 1.0\n", ("truncated",)),
        (b"<graphml>\n<graph>\n", (":3:", "no XML")),
        (b"<graphml/>", ("no graph",)),
        (b"<graphml><graph edgedefault='directed'/></graphml>", ("edgedefault", "undirected")),
        (b"<graphml><graph>\n<node id='a'/><node id='a'/></graph></graphml>", (":2:", "second")),
        (b"<graphml><graph><node/></graph></graphml>", ("id", "missing")),
        (b"<graphml><graph>\n<node id='a'/>\n<edge source='a' target='b'/></graph></graphml>", (":3:", "'b'")),
        (b"<graphml><graph><node id='a'><data key='k'>1</data></node></graph></graphml>", ("'k'",)),
        (b"<graphml><graph><node id='a'><graph/></node></graph></graphml>", ("one graph",)),
        (b"<graphml><graph><node id='a'><port name='n'/></node></graph></graphml>", ("port",)),
        (b"<graphml><graph><node id='a'><node id='b'/></node></graph></graphml>", ("node",)),
        (
            b"<graphml><key id='w' for='edge' attr.name='weight' attr.type='double'/><graph>"
            b"<node id='a'/><node id='b'/>"
            b"<edge source='a' target='b'>\n<data key='w'>heavy</data></edge></graph></graphml>",
            (":2:", "weight", "'heavy'"),
        ),
        (b"<!DOCTYPE g [<!ENTITY a 'b'>]>\n<graphml/>", (":1:", "entities")),
        (b"a\n", (":1:", "'a'")),
        (b"a b\nb c x\n", (":2:", "weight", "'x'")),
        (b"a b\nb c inf\n", (":2:", "weight")),
        (b"a b\nb c {'weight': \n", (":2:", "dictionary")),
        (b"a b {1: 2}.x\n", (":1:", "dictionary")),
        (b"a b {'weight': " + b"(" * 500 + b"\n", (":1:", "dictionary")),
        (b"a b\nb b\n", (":2:", "self-loop")),
        (b"a b\nb a\n", (":2:", "second link")),
    ],
)
def test_what_makes_no_fabric_is_refused_with_its_place(data: bytes, words: tuple[str, ...]) -> None:
    with pytest.raises(TopologyFileError) as error:
        parse(data, "dir/given")
    text = str(error.value)
    assert text.startswith("dir/given:")
    assert "\n" not in text
    for word in words:
        assert word in text


def test_a_json_file_must_hold_an_object() -> None:
    with pytest.raises(TopologyFileError, match="no node-link document"):
        parse(b"[]", "f.json")


def test_files_that_are_too_large_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TopologyFileError, match="larger than"):
        parse(b" " * (faults.MAX_BYTES + 1), "f.json")
    with pytest.raises(TopologyFileError, match="200000"):
        parse(b"33D32945 STP File\nSECTION Graph\nNodes 99999999999\nEND\nEOF\n", "f.stp")
    monkeypatch.setattr(assembly, "MAX_NODES", 3)
    with pytest.raises(TopologyFileError, match=r"nodes\[3\]: more than 3 nodes"):
        parse(node_link([{"id": number} for number in range(4)]), "f.json")
    monkeypatch.setattr(assembly, "MAX_LINKS", 1)
    with pytest.raises(TopologyFileError, match=":2: more than 1 links"):
        parse(b"a b\nb c\n", "f.edges")


STP = """33D32945 STP File, STP Format Version 1.0
SECTION Comment
Name "odd"
END

SECTION Graph
Nodes 4
Edges 3
E 1 2 2.5
E 2 3 0
E 3 4 7
END

SECTION Terminals
Terminals 2
T 4
T 1
END
SECTION Coordinates
DD 1 2 3
END
EOF
"""


def test_steinlib_problems_have_terminals_in_their_order() -> None:
    graph, terminals = parse(STP.encode(), "odd.stp")
    assert terminals == (4, 1)
    assert [(link.u, link.v, link.weight) for link in graph.links()] == [(1, 2, 2.5), (2, 3, 0.0), (3, 4, 7.0)]
    assert parse(STP.lower().encode(), "no suffix").terminals == terminals


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("33D32945", "33D32946", (":1:", "33D32945")),
        ("EOF\n", "", ("truncated",)),
        ("END\n\nSECTION Terminals", "SECTION Terminals", (":12:", "not ended")),
        ("Edges 3", "Edges 4", (":8:", "Edges", "4 are announced, 3")),
        ("Terminals 2", "Terminals 3", (":15:", "Terminals")),
        ("E 2 3 0", "E 2 5 0", (":10:", "'5'", "1 to 4")),
        ("E 2 3 0", "E 0 3 0", (":10:", "'0'")),
        ("E 2 3 0", "E 2 3", (":10:", "weight")),
        ("E 2 3 0", "E 2 3 x", (":10:", "weight", "'x'")),
        ("E 2 3 0", "E 2 3 nan", (":10:", "weight")),
        ("E 2 3 0", "E 2 3 -1", (":10:", "weight", "negative")),
        ("E 2 3 0", "E 2 2 1", (":10:", "self-loop")),
        ("E 2 3 0", "E 2 1 1", (":10:", "second link")),
        ("E 2 3 0", "A 2 3 1", (":10:", "directed")),
        ("Nodes 4\n", "", (":8:", "number of nodes")),
        ("Nodes 4", "Nodes 0", (":7:", "Nodes")),
        ("Nodes 4", "Nodes 4\nNodes 4", (":8:", "twice")),
        ("T 1\n", "T 9\n", (":17:", "'9'")),
        ("T 1\n", "T 4\n", (":17:", "terminal already")),
        ("SECTION Coordinates", "SECTION", (":19:", "name")),
        ("SECTION Coordinates", "SECTION Graph", (":19:", "second section")),
        ("SECTION Graph", "Graph", (":6:", "outside")),
        ("EOF", "END\nEOF", ("END outside",)),
    ],
)
def test_faults_of_steinlib_problems_have_their_line(before: str, after: str, words: tuple[str, ...]) -> None:
    assert before in STP
    with pytest.raises(TopologyFileError) as error:
        parse(STP.replace(before, after, 1).encode(), "odd.stp")
    for word in words:
        assert word in str(error.value)


def test_a_problem_without_graph_is_refused() -> None:
    with pytest.raises(TopologyFileError, match="no section Graph"):
        parse(b"33D32945\nEOF\n", "f.stp")


@pytest.mark.parametrize("seed", range(3))
def test_a_problem_has_its_size(seed: int) -> None:
    problem, terminals = make_problem(seed, nodes=50 + seed, links=63 + seed, terminals=9 + seed)
    found = parse(as_stp(problem, terminals).encode(), "problem.stp")
    assert (len(found.graph), len(list(found.graph.links()))) == (50 + seed, 63 + seed)
    assert sorted(map(str, found.terminals)) == sorted(map(str, terminals))


SEEDS = [
    node_link(links=[{"source": "a", "target": "b", "weight": 2, "ports": {"a": 1}}]),
    STP.encode(),
    FORMATS["graphml"].write(make("tree", {"depth": 1, "fanout": 2})).encode(),  # type: ignore[misc]
    b"a b 2\nb c {'weight': 3}\n",
]


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(SEEDS), st.data())
def test_damaged_files_never_raise_anything_else(seed: bytes, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(seed)))
    end = data.draw(st.integers(start, min(len(seed), start + 20)))
    damaged = seed[:start] + data.draw(st.binary(max_size=12)) + seed[end:]
    try:
        found = parse(damaged, data.draw(st.sampled_from(["f", "f.json", "f.graphml", "f.stp", "f.edges"])))
    except TopologyFileError:
        return
    assert len(found.graph)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=200), st.sampled_from(["f", "f.json", "f.graphml", "f.stp", "f.edges"]))
def test_random_bytes_never_raise_anything_else(data: bytes, name: str) -> None:
    try:
        parse(data, name)
    except TopologyFileError as error:
        assert str(error).startswith(f"{name}:")
