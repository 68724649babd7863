from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from topology.generators import GENERATORS, make
from topology.graph import Graph, NodeKind

pytest.importorskip("mininet.topo")
from topology.mn import graph_topo, topos

ROOT = Path(__file__).parents[3]
SYSTEM_PYTHON = Path("/usr/bin/python3")

# What `mn --custom FILE --topo ARGUMENT` does with a file, without a network.
AS_MN = """
import sys
from mininet.util import buildTopo
customs = {}
exec(compile(open(sys.argv[1]).read(), sys.argv[1], "exec"), customs, customs)
topo = buildTopo(customs["topos"], sys.argv[2])
print(len(topo.hosts()), len(topo.switches()), len(topo.links()))
"""


@pytest.mark.parametrize("name", [name for name in GENERATORS if not name.startswith("portland")])
def test_a_topology_is_its_graph(name: str) -> None:
    graph = make(name)
    topo = graph_topo(graph)
    assert topo.names == {node: node for node in graph.nodes()}
    assert sorted(topo.hosts()) == graph.hosts()
    assert sorted(topo.switches()) == graph.switches()
    for host in graph.hosts():
        known = graph.attributes(host)
        assert topo.nodeInfo(host) == {"ip": f"{known['ip']}/8", "mac": known["mac"]}
    for switch in graph.switches():
        assert int(topo.nodeInfo(switch)["dpid"], 16) == graph.attributes(switch)["dpid"]
    found = {(info["node1"], info["node2"], info["port1"], info["port2"]) for _, _, info in topo.links(withInfo=True)}
    assert found == {(link.u, link.v, link.u_port, link.v_port) for link in graph.links()}


def test_what_a_graph_leaves_open_is_filled_without_clashes() -> None:
    graph = Graph()
    graph.add_node("a host", NodeKind.HOST)
    graph.add_node("h1", NodeKind.HOST, ip="10.0.0.2", mac="00:00:00:00:00:01")
    graph.add_node("h3", NodeKind.HOST)
    graph.add_node(2, NodeKind.SWITCH)
    graph.add_node("s1", NodeKind.SWITCH, dpid=1)
    graph.add_node("a-switch-with-a-long-name", NodeKind.SWITCH)
    graph.add_link("a host", 2)
    graph.add_link("h1", 2, 0, 2)
    graph.add_link("h3", 2)
    graph.add_link(2, "s1", 1)
    graph.add_link("s1", "a-switch-with-a-long-name")
    topo = graph_topo(graph)
    assert topo.names == {
        2: "s2",
        "a host": "h2",
        "a-switch-with-a-long-name": "s3",
        "h1": "h1",
        "h3": "h3",
        "s1": "s1",
    }
    assert [topo.nodeInfo(name)["ip"] for name in ("h2", "h1", "h3")] == ["10.0.0.1/8", "10.0.0.2/8", "10.0.0.3/8"]
    assert [topo.nodeInfo(name)["mac"][-2:] for name in ("h2", "h1", "h3")] == ["02", "01", "03"]
    assert [topo.nodeInfo(name)["dpid"] for name in ("s1", "s2", "s3")] == ["1", "2", "3"]
    assert {port: end for port, (end, _) in topo.ports["s2"].items()} == {1: "s1", 2: "h1", 3: "h2", 4: "h3"}


@pytest.mark.parametrize(
    ("attributes", "words"),
    [
        (({"dpid": 1}, {"dpid": 1}), "same dpid"),
        (({"dpid": 2}, {}), "same dpid"),
    ],
)
def test_two_switches_of_one_datapath_id_are_refused(
    attributes: tuple[dict[str, int], dict[str, int]], words: str
) -> None:
    graph = Graph()
    for node, known in zip((1, 2), attributes, strict=True):
        graph.add_node(node, NodeKind.SWITCH, **known)
    with pytest.raises(ValueError, match=words):
        graph_topo(graph)


def test_two_links_at_one_port_are_refused() -> None:
    graph = Graph()
    for node in ("s1", "s2", "s3"):
        graph.add_node(node)
    graph.add_link("s1", "s2", 1)
    graph.add_link("s1", "s3", 1)
    with pytest.raises(ValueError, match="'s1'"):
        graph_topo(graph)


def test_port_0_of_a_switch_is_refused() -> None:
    graph = Graph()
    graph.add_node("s1")
    graph.add_node("s2")
    graph.add_link("s1", "s2", 0, 1)
    with pytest.raises(ValueError, match="from 1"):
        graph_topo(graph)


def test_every_generator_is_offered_to_mn() -> None:
    assert set(topos) == set(GENERATORS)
    assert len(topos["tree"](3, fanout=2).hosts()) == 8
    with pytest.raises(ValueError, match="at most 2"):
        topos["fattree"](4, 1e9, 3)


@pytest.mark.parametrize(("topo", "sizes"), [("fattree,4", "16 20 48"), ("jellyfish,switches=6,degree=3", "12 6 21")])
def test_the_debian_package_s_mn_can_execute_the_file(topo: str, sizes: str, tmp_path: Path) -> None:
    probe = [str(SYSTEM_PYTHON), "-c", "import mininet.util"]
    if not SYSTEM_PYTHON.exists() or subprocess.run(probe, capture_output=True, check=False).returncode:
        pytest.skip("the Debian package mininet is not here")
    done = subprocess.run(
        [str(SYSTEM_PYTHON), "-B", "-c", AS_MN, str(ROOT / "topology" / "mn.py"), topo],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout.strip()) == (0, sizes), done.stderr
