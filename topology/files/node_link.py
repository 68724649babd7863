"""Node-link JSON as networkx reads and writes it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from topology.files.assembly import Assembly, RecordPosition
from topology.files.faults import TopologyFileError
from topology.graph import Graph, Link

NODE_ATTRIBUTES = ("pod", "dpid", "ip", "mac")


def document(graph: Graph, attributes: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return what ``networkx.node_link_data(..., edges="links")`` gives for the fabric.

    Parameters
    ----------
    graph
        The fabric; ids are texts or whole numbers.
    attributes
        Facts about the whole, kept under ``graph``.

    Returns
    -------
    dict
        Nodes have ``id``, ``kind``, ``level`` and, where known, ``pod``, ``dpid``, ``ip`` and ``mac``. Links have
        ``source``, ``target``, ``capacity_bps``, ``weight`` and, where known, ``ports``: the port number by the id
        (as text) of the end that it is at.
    """
    return {
        "directed": False,
        "multigraph": False,
        "graph": dict(attributes or {}),
        "nodes": [
            {
                "kind": str(graph.kind(node)),
                "level": graph.level(node),
                **{name: value for name, value in graph.attributes(node).items() if name in NODE_ATTRIBUTES},
                "id": node,
            }
            for node in graph.nodes()
        ],
        "links": [{**link_attributes(link), "source": link.u, "target": link.v} for link in graph.links()],
    }


def link_attributes(link: Link) -> dict[str, Any]:
    """Return capacity, weight and, where known, ports by end, so that a program may swap the ends."""
    found: dict[str, Any] = {"capacity_bps": link.capacity_bps, "weight": link.weight}
    ports = {str(node): port for node, port in ((link.u, link.u_port), (link.v, link.v_port)) if port is not None}
    if ports:
        found["ports"] = ports
    return found


def write(graph: Graph) -> str:
    """Return the fabric as JSON text."""
    return json.dumps(document(graph), allow_nan=False) + "\n"


def read(text: str, assembly: Assembly) -> None:
    """Add the nodes and links of a node-link document, its links under ``links`` or ``edges``."""
    try:
        root = json.loads(text)
    except json.JSONDecodeError as error:
        raise TopologyFileError(assembly.source, f"no JSON: {error.msg}", error.lineno) from None
    except (ValueError, RecursionError) as error:
        raise TopologyFileError(assembly.source, f"no JSON: {error}") from None
    if not isinstance(root, dict):
        raise TopologyFileError(assembly.source, "no node-link document: it is no object", 1)
    for flag in ("directed", "multigraph"):
        if root.get(flag, False) is not False:
            raise assembly.fault("only undirected graphs of single links are read", RecordPosition(path=flag))
    for position, node in enumerate(_records(root, "nodes", assembly)):
        place = RecordPosition(path=f"nodes[{position}]")
        assembly.node(_field(node, "id", place, assembly), node, place)
    name = "edges" if "edges" in root and "links" not in root else "links"
    for position, link in enumerate(_records(root, name, assembly)):
        place = RecordPosition(path=f"{name}[{position}]")
        u, v = (_field(link, end, place, assembly) for end in ("source", "target"))
        assembly.link(u, v, link, place)


def _records(root: dict[str, Any], name: str, assembly: Assembly) -> list[dict[str, Any]]:
    found = root.get(name)
    if not isinstance(found, list):
        raise assembly.fault("is missing" if found is None else "is no list", RecordPosition(path=name))
    for position, record in enumerate(found):
        if not isinstance(record, dict):
            raise assembly.fault("is no object", RecordPosition(path=f"{name}[{position}]"))
    return found


def _field(record: dict[str, Any], name: str, place: RecordPosition, assembly: Assembly) -> object:
    if name not in record:
        raise assembly.fault("is missing", place, name)
    found: object = record[name]
    return found
