"""Topology files: formats by name, each from text to graph and, where fabrics fit into it, back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePath
from typing import NamedTuple

from topology.files import edge_list, graphml, node_link, steinlib
from topology.files.assembly import Assembly, LoadedTopology
from topology.files.faults import MAX_BYTES, TopologyFileError
from topology.graph import Graph, NodeId

__all__ = ["FORMATS", "Format", "LoadedTopology", "TopologyFileError", "format_of_name", "parse"]


class Format(NamedTuple):
    """A file format: the suffixes that name it, and how it begins where no suffix does."""

    suffixes: tuple[str, ...]
    begins: str
    read: Callable[[str, Assembly], tuple[NodeId, ...] | None]
    """Fills the assembly and returns the terminals, if the format has such."""

    write: Callable[[Graph], str] | None


FORMATS: dict[str, Format] = {
    "node-link": Format((".json",), "{", node_link.read, node_link.write),
    "graphml": Format((".graphml", ".xml"), "<", graphml.read, graphml.write),
    "stp": Format((".stp",), steinlib.MAGIC, steinlib.read, None),
    "edge-list": Format((".edgelist", ".edges", ".txt"), "", edge_list.read, edge_list.write),
}


def format_of_name(name: str) -> str | None:
    """Return the format that the suffix of a file's name stands for, None where it stands for none."""
    suffix = PurePath(name).suffix.lower()
    return next((found for found, known in FORMATS.items() if suffix in known.suffixes), None)


def parse(data: bytes, name: str) -> LoadedTopology:
    """Return the fabric in a file.

    Parameters
    ----------
    data
        The contents, UTF-8.
    name
        The file's name: its suffix tells the format (the contents do where it is not known), and errors begin with
        it.

    Raises
    ------
    TopologyFileError
        For everything that cannot be read or makes no fabric, with the line or the field at fault.
    """
    if len(data) > MAX_BYTES:
        raise TopologyFileError(name, f"larger than {MAX_BYTES} bytes")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise TopologyFileError(name, "not UTF-8", line) from None
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    start = text[:1000].lstrip()[: len(steinlib.MAGIC)].lower()
    found = format_of_name(name) or next(key for key, known in FORMATS.items() if start.startswith(known.begins))
    assembly = Assembly(name)
    terminals = FORMATS[found].read(text, assembly)
    if not len(assembly.graph):
        raise TopologyFileError(name, "no node in it")
    return LoadedTopology(assembly.graph, terminals or ())
