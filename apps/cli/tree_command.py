"""`vsrt tree`: the tree that an algorithm builds over given members of a topology file."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Container, Sequence
from pathlib import Path
from typing import Any

from apps.cli.common import InputError, emit_json, read_topology
from controller.trees.algorithms import ALGORITHMS, DEFAULT_ALGORITHM
from controller.trees.forest import Forest
from controller.trees.network import switch_graph
from controller.trees.tree import TreeRole
from topology.files import LoadedTopology
from topology.graph import Graph, NodeId, NodeKind

GROUP = "group"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the file, the members and how to build."""
    parser.add_argument(
        "file", type=Path, metavar="FILE", help="topology: node-link JSON, GraphML, edge list or SteinLib .stp"
    )
    parser.add_argument(
        "--members",
        metavar="A,B,...",
        help="hosts or switches, in the order in which they join (default: the terminals of a .stp file)",
    )
    parser.add_argument(
        "--algorithm", choices=list(ALGORITHMS), default=DEFAULT_ALGORITHM, help="default: %(default)s"
    )
    parser.add_argument("--steady-state", action="store_true", help="rebuild over member orders, keep the smallest")
    parser.add_argument("--seed", type=int, metavar="N", default=0, help="decides every tie (default: %(default)s)")


def run(args: argparse.Namespace) -> int:
    """Print the tree; 1 where members cannot be reached (the rest is built), 2 for bad input."""
    topology = read_topology(args.file)
    members = _members(topology, args.members, args.file)
    document = build(topology.graph, members, args.algorithm, args.steady_state, args.seed)
    if getattr(args, "json", False):
        emit_json(document)
    else:
        for u, v in document["links"]:
            print(f"{u}  {v}")
        print(f"size {document['size']}, cost {document['cost']:g}, fallbacks {document['fallbacks']}")
    if document["unreachable"]:
        names = ", ".join(str(node) for node in document["unreachable"])
        print(f"vsrt: {args.file}: not connected with the other members: {names}", file=sys.stderr)
        return 1
    return 0


def build(graph: Graph, members: Sequence[NodeId], algorithm: str, steady_state: bool, seed: int) -> dict[str, Any]:
    """Return the document of the command for `members` (hosts or switches of `graph`), joining in their order.

    A host joins at its switch, the lowest of them where it has several, and adds its own link. ``size`` counts the
    links between switches, ``cost`` sums the weights of all links listed.
    """
    forest = Forest(switch_graph(graph), algorithm, seed)
    homes: dict[NodeId, NodeId | None] = {}
    for member in members:
        homes[member] = home = _home(graph, member)
        if home is not None:
            forest.join(GROUP, home, TreeRole.RECEIVER)
    tree = forest.tree(GROUP)
    if tree is not None and steady_state:
        forest.rebuild(GROUP, steady_state=True)
    on_tree: Container[NodeId] = () if tree is None else tree
    links = [] if tree is None else list(tree.links())
    size = len(links)
    links += [(member, home) for member, home in homes.items() if home in on_tree and home != member]
    return {
        "algorithm": algorithm,
        "links": links,
        "size": size,
        "cost": sum(graph.link(u, v).weight for u, v in links),
        "fallbacks": 0 if tree is None else tree.fallbacks,
        "unreachable": [member for member, home in homes.items() if home not in on_tree],
    }


def _home(graph: Graph, member: NodeId) -> NodeId | None:
    if graph.kind(member) is not NodeKind.HOST:
        return member
    return next((node for node in graph.neighbours(member) if graph.kind(node) is not NodeKind.HOST), None)


def _members(topology: LoadedTopology, given: str | None, file: Path) -> list[NodeId]:
    if given is None:
        if not topology.terminals:
            raise InputError(f"--members: needed, as {file} names no terminals")
        return list(dict.fromkeys(topology.terminals))
    names = [name.strip() for name in given.split(",")]
    if not all(names):
        raise InputError(f"--members: empty name in {given!r}")
    found: list[NodeId] = []
    unknown: list[str] = []
    for name in names:
        try:
            found.append(topology.node(name))
        except KeyError:
            unknown.append(name)
    if unknown:
        raise InputError(f"--members: not in {file}: {', '.join(unknown)}")
    return list(dict.fromkeys(found))
