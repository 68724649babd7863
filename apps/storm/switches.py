"""The switches of a storm: leaves with hosts, and spines that are cabled to all of them."""

from __future__ import annotations

from topology.graph import Graph, NodeKind

FIRST_DPID = 0x5700_0000_0000_0000
"""Simulated switches have the datapath ids after this one, which no real one should have."""

HOST_BPS, TRUNK_BPS = 1e9, 10e9


def storm_switches(leaves: int, spines: int, ports: int) -> Graph:
    """Return leaves with so many hosts each at the ports from 1 on, and spines behind these ports."""
    graph = Graph()
    for leaf in range(1, leaves + 1):
        graph.add_node(f"leaf{leaf}", NodeKind.TOR, dpid=FIRST_DPID + leaf)
        for port_no in range(1, ports + 1):
            graph.add_node(f"h{leaf}-{port_no}", NodeKind.HOST)
            graph.add_link(f"leaf{leaf}", f"h{leaf}-{port_no}", port_no, 0, HOST_BPS)
    for spine in range(1, spines + 1):
        graph.add_node(f"spine{spine}", NodeKind.AGGREGATION, dpid=FIRST_DPID + leaves + spine)
        for leaf in range(1, leaves + 1):
            graph.add_link(f"leaf{leaf}", f"spine{spine}", ports + spine, leaf, TRUNK_BPS)
    return graph
