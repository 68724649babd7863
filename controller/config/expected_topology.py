"""The section `topology`: the fabric that is expected, written out or in a file of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple, TypeAlias

from controller.config.alarm_settings import ExpectedTopology
from controller.config.checks import ports_in_two_links
from controller.config.document import Mapping, Node, Scalar
from controller.config.read import NodeReader
from controller.config.terms import SwitchLink, SwitchPort
from topology.files import TopologyFileError, parse
from topology.graph import Graph, Link, NodeId


class Cabling(NamedTuple):
    """Switches, by datapath id, and the links between them."""

    switches: frozenset[int]
    links: frozenset[SwitchLink]


ReadCabling: TypeAlias = Callable[[str], Cabling]
"""Returns what is in the topology file of that name; OSError or TopologyFileError where it cannot be read."""


def read_expected_topology(
    reader: NodeReader, node: Node, path: str, read_cabling: ReadCabling | None
) -> ExpectedTopology:
    """Return the expected fabric: the switches and links of the file that is named, and those written out."""
    topology = reader.settings(ExpectedTopology, node, path)
    lines = _lines(node)
    if topology.file:
        found = _in_file(reader, topology.file, lines["file"], f"{path}.file", read_cabling)
        topology = replace(topology, switches=topology.switches | found.switches, links=topology.links | found.links)
    for twice in ports_in_two_links(topology.links):
        name = "links" if "links" in lines else "file"
        reader.faults.error(lines[name], f"{path}.{name}", f"port {twice} is the end of two links")
    return topology


def cabling_in(data: bytes, name: str) -> Cabling:
    """Return the switches and the links between switches of a topology file.

    Hosts and their links are left out: a host that is switched off is no fault of the fabric.

    Parameters
    ----------
    data
        The contents, in any format of `topology.files`.
    name
        The file's name, with which errors begin.

    Raises
    ------
    TopologyFileError
        For a file that makes no fabric, a switch without a datapath id, and a link without port numbers.
    """
    graph = parse(data, name).graph
    hosts = set(graph.hosts())
    dpids = {node: _dpid(graph, node, name) for node in graph.nodes() if node not in hosts}
    links = (link for link in graph.links() if link.u in dpids and link.v in dpids)
    return Cabling(frozenset(dpids.values()), frozenset(_link(link, dpids, name) for link in links))


def _in_file(reader: NodeReader, name: str, line: int, path: str, read_cabling: ReadCabling | None) -> Cabling:
    """Return what is in the file that is named on a line; nothing, with a fault, where it cannot be read."""
    message = "only a policy that is itself in a file can name another"
    if read_cabling is not None:
        try:
            return read_cabling(name)
        except TopologyFileError as fault:
            message = str(fault)
        except OSError as fault:
            message = f"{name}: {fault.strerror or fault}"
    reader.faults.error(line, path, message)
    return Cabling(frozenset(), frozenset())


def _dpid(graph: Graph, node: NodeId, name: str) -> int:
    dpid = graph.attributes(node).get("dpid")
    if not isinstance(dpid, int):
        raise TopologyFileError(name, f"switch {node!r} has none, by which it could be known", field="dpid")
    return dpid


def _link(link: Link, dpids: dict[NodeId, int], name: str) -> SwitchLink:
    if not link.u_port or not link.v_port:
        message = f"the link of {link.u!r} and {link.v!r} does not tell the port numbers of both ends"
        raise TopologyFileError(name, message, field="ports")
    return SwitchLink(*sorted((SwitchPort(dpids[link.u], link.u_port), SwitchPort(dpids[link.v], link.v_port))))


def _lines(node: Node) -> dict[str, int]:
    """Return the lines of the values of a mapping."""
    pairs = node.pairs if isinstance(node, Mapping) else []
    return {key.text: value.line for key, value in pairs if isinstance(key, Scalar)}
