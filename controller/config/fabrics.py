"""The section `fabrics`: what parts of the network are called that no link joins."""

from __future__ import annotations

from controller.config.document import Node
from controller.config.faults import quoted
from controller.config.policy import NamedFabric
from controller.config.read import NodeReader, step
from controller.config.terms import is_label_key

MAX_FABRICS = 1024

MAX_SWITCHES = 64
"""Switches by which one fabric may be known."""


def read_fabrics(reader: NodeReader, node: Node, path: str) -> tuple[NamedFabric, ...]:
    """Return the fabrics of a mapping of names to lists of switches that are in them, in the order of the file."""
    found = reader.entries(node, path, "a mapping of names to switches") or {}
    if len(found) > MAX_FABRICS:
        reader.faults.error(node.line, path, f"{len(found)} fabrics; at most {MAX_FABRICS} are supported")
        return ()
    first: dict[int, tuple[str, int]] = {}
    fabrics = []
    for name, (line, child) in found.items():
        own_path = step(path, name)
        if not is_label_key(name):
            message = f"{quoted(name)} cannot name a fabric: a letter, then up to 62 letters, digits, '.', '_' or '-'"
            reader.faults.error(line, own_path, message)
        fabrics.append(NamedFabric(name, _switches(reader, name, child, own_path, first), line))
    return tuple(fabrics)


def _switches(
    reader: NodeReader, name: str, node: Node, path: str, first: dict[int, tuple[str, int]]
) -> tuple[int, ...]:
    """Return the switches of a fabric; `first` has in which fabric, and where, each stood already."""

    def switch(at: Node, switch_path: str) -> int | None:
        dpid = reader.dpid(at, switch_path)
        if dpid is not None and dpid in first:
            other, line = first[dpid]
            reader.faults.error(at.line, switch_path, f"switch {dpid} is in {quoted(other)} already (line {line})")
        elif dpid is not None:
            first[dpid] = (name, at.line)
        return dpid

    switches = tuple(reader.items(node, path, "a list of switches", switch))
    if not 1 <= len(switches) <= MAX_SWITCHES and not reader.faults.any_error:
        reader.faults.error(node.line, path, f"{len(switches)} switches; a fabric is known by 1 to {MAX_SWITCHES}")
    return switches
