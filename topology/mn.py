"""Mininet topologies made from fabric graphs: ``mn --custom topology/mn.py --topo fattree,4``."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from functools import partial
from typing import Any

if "__file__" not in globals():
    # Mininet executes this file by its path: the packages beside it are not on the import path of /usr/bin/python3.
    from pathlib import Path

    sys.path.insert(0, str(Path(sys._getframe().f_code.co_filename).resolve().parent.parent))

from mininet.node import Host
from mininet.topo import Topo

from topology.generators import GENERATORS, make
from topology.graph import Graph, NodeId, NodeKind

MAX_INTERFACE_CHARACTERS = 15
"""IFNAMSIZ of Linux, without the closing zero."""

FIRST_ADDRESS = 10 << 24
HOST_PREFIX = 8


OFFLOADS = ("tx", "rx", "tso", "gso", "gro")
"""Open vSwitch's userspace datapath forwards datagrams whose checksum the host left to its card, which has none."""

MULTICAST_ROUTE = "224.0.0.0/4"
"""Without a route for it a join fails, and no report is sent."""


class MulticastHost(Host):  # type: ignore[misc]
    """A host of ``mn`` whose programs can join and send at once."""

    def config(self, **parameters: Any) -> Any:  # noqa: D102
        result = super().config(**parameters)
        interface = self.defaultIntf()
        if interface is not None:
            switches = " ".join(f"{name} off" for name in OFFLOADS)
            self.cmd(f"ethtool -K {interface} {switches}; ip route add {MULTICAST_ROUTE} dev {interface}")
        return result


class GraphTopo(Topo):  # type: ignore[misc]
    """A fabric as Mininet builds it, with the ports, datapath ids and addresses that the graph gives.

    Where it gives none, the lowest free ones are taken: ports of hosts from 0, of switches from 1, datapath ids from
    1 (a switch whose id is a number has that one), addresses from 10.0.0.1 and 00:00:00:00:00:01.

    Attributes
    ----------
    names
        Name in Mininet of every node: its id where that makes a name of interfaces, ``h<n>`` or ``s<n>`` elsewhere.
    """

    names: dict[NodeId, str]

    def build(self, graph: Graph) -> None:
        """Add all nodes and links; ValueError where two nodes or links claim the same thing."""
        ports = _ports(graph)
        self.names = _names(graph, ports)
        hosts, switches = graph.hosts(), graph.switches()
        ips = _claim(hosts, {node: _ip_number(graph, node) for node in hosts}, FIRST_ADDRESS + 1, "ip")
        macs = _claim(hosts, {node: _mac_number(graph, node) for node in hosts}, 1, "mac")
        dpids = _claim(switches, {node: _dpid(graph, node) for node in switches}, 1, "dpid")
        for host in hosts:
            ip = ".".join(str(byte) for byte in ips[host].to_bytes(4, "big"))
            mac = macs[host].to_bytes(6, "big").hex(":")
            self.addHost(self.names[host], ip=f"{ip}/{HOST_PREFIX}", mac=mac)
        for switch in switches:
            self.addSwitch(self.names[switch], dpid=f"{dpids[switch]:x}")
        for u, v, u_port, v_port, *_ in graph.links():
            self.addLink(self.names[u], self.names[v], port1=ports[u][v, u_port], port2=ports[v][u, v_port])


def _claim(nodes: list[NodeId], given: dict[NodeId, int | None], first: int, what: str) -> dict[NodeId, int]:
    taken: dict[int, NodeId] = {}
    for node, number in given.items():
        if number is not None and taken.setdefault(number, node) != node:
            raise ValueError(f"nodes {taken[number]!r} and {node!r} have the same {what}")
    free = _free_from(first, set(taken))
    return {node: next(free) if (number := given[node]) is None else number for node in nodes}


def _free_from(first: int, taken: set[int]) -> Iterator[int]:
    number = first
    while True:
        if number not in taken:
            yield number
        number += 1


def _ip_number(graph: Graph, host: NodeId) -> int | None:
    ip = graph.attributes(host).get("ip")
    return None if ip is None else int.from_bytes(bytes(int(part) for part in ip.split(".")), "big")


def _mac_number(graph: Graph, host: NodeId) -> int | None:
    mac = graph.attributes(host).get("mac")
    return None if mac is None else int(mac.replace(":", ""), 16)


def _dpid(graph: Graph, switch: NodeId) -> int | None:
    dpid: int | None = graph.attributes(switch).get("dpid")
    return switch if dpid is None and isinstance(switch, int) and switch > 0 else dpid


def _ports(graph: Graph) -> dict[NodeId, dict[tuple[NodeId, int | None], int]]:
    """Return the port number of every node by neighbour and the port that the graph gives."""
    ports: dict[NodeId, dict[tuple[NodeId, int | None], int]] = {}
    for node in graph.nodes():
        lowest = 0 if graph.kind(node) is NodeKind.HOST else 1
        given = [(near, cable.u_port) for near in graph.neighbours(node) for cable in graph.cables(node, near)]
        known = [port for _, port in given if port is not None]
        if len(set(known)) < len(known) or min(known, default=lowest) < lowest:
            raise ValueError(f"node {node!r}: ports {sorted(known)} are not different numbers from {lowest}")
        free = _free_from(lowest, set(known))
        ports[node] = {(near, port): next(free) if port is None else port for near, port in given}
    return ports


def _names(graph: Graph, ports: dict[NodeId, dict[tuple[NodeId, int | None], int]]) -> dict[NodeId, str]:
    names: dict[NodeId, str] = {}
    for node in graph.nodes():
        room = MAX_INTERFACE_CHARACTERS - len(f"-eth{max(ports[node].values(), default=0)}")
        if isinstance(node, str) and re.fullmatch(r"[A-Za-z][A-Za-z0-9]*", node) and len(node) <= room:
            names[node] = node
    taken = set(names.values())
    numbers = {kind: _free_from(1, set()) for kind in ("h", "s")}
    for node in graph.nodes():
        if node not in names:
            letter = "h" if graph.kind(node) is NodeKind.HOST else "s"
            names[node] = next(name for number in numbers[letter] if (name := f"{letter}{number}") not in taken)
    return names


def graph_topo(graph: Graph) -> GraphTopo:
    """Return the Mininet topology of a fabric, with its names, ports, datapath ids and addresses."""
    return GraphTopo(graph)


def _named_topo(name: str, *numbers: Any, **parameters: Any) -> GraphTopo:
    """Return a generated fabric; `numbers` are its parameters in their order."""
    known = [parameter.name for parameter in GENERATORS[name].parameters]
    if len(numbers) > len(known):
        raise ValueError(f"{name} takes at most {len(known)} parameters: {', '.join(known)}")
    return graph_topo(make(name, {**dict(zip(known, numbers, strict=False)), **parameters}))


topos = {name: partial(_named_topo, name) for name in GENERATORS}
"""What ``mn --topo`` offers when this file is given by ``--custom``."""

hosts = {"proc": MulticastHost}
"""What ``mn`` then takes for a host by default."""
