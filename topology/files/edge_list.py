"""Edge lists as networkx reads and writes them: two node ids a line, then a weight or a dictionary of attributes."""

from __future__ import annotations

import ast
from typing import Any

from topology.files.assembly import Assembly, RecordPosition
from topology.files.node_link import link_attributes
from topology.graph import Graph


def write(graph: Graph) -> str:
    """Return the links of a fabric, one a line; kinds, addresses and nodes without links have no place in the format.

    Raises ValueError for a node id that would not be read as one word.
    """
    for node in graph.nodes():
        if str(node).split() != [str(node)] or "#" in str(node):
            raise ValueError(f"node {node!r}: an edge list takes ids of one word only")
    lines = []
    for link in graph.links():
        lines.append(f"{link.u} {link.v} {link_attributes(link)!r}\n")
    return "".join(lines)


def read(text: str, assembly: Assembly) -> None:
    """Add the links and the nodes that they name, all of them switches."""
    for number, line in enumerate(text.split("\n"), 1):
        words = line.partition("#")[0].split(maxsplit=2)
        if not words:
            continue
        place = RecordPosition(number)
        if len(words) == 1:
            raise assembly.fault(f"{words[0][:40]!r} stands alone: a line has two node ids", place)
        for node in words[:2]:
            assembly.end(node, place)
        assembly.link(words[0], words[1], _attributes(words[2].strip(), assembly, place) if words[2:] else {}, place)


def _attributes(text: str, assembly: Assembly, place: RecordPosition) -> dict[str, Any]:
    if text.startswith("{"):
        try:
            found = ast.literal_eval(text)
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise assembly.fault("no dictionary of attributes", place)
        return found
    try:
        return {"weight": float(text)}
    except ValueError:
        raise assembly.fault(f"{text[:40]!r} is no number", place, "weight") from None
